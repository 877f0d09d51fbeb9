# SPDX-License-Identifier: MIT
"""What takes longer than two seconds says so: backups on a terminal, an upgrade of the store in the log and at systemd. The disk
of the store is slow here (tests/standin/slow.c)."""

import contextlib
import fcntl
import os
import pty
import re
import select
import sqlite3
import struct
import subprocess
import termios
import time

import pytest

import harness
import test_blocking
import test_store

SLOW_MS = 200  # each call that looks at, opens or syncs a file of the store
CLEAR = '\r\x1b[K'


@pytest.fixture(name='box')
def made_box(make_instance):
    made = make_instance(gpus='sim:4x24G', client=harness.User('nobody'), start=False, arguments=('--node', 'n1'))
    made.command[:0] = test_blocking.prepare(made.place)
    yield made
    test_blocking.slow(made, '')


def on_terminal(box, *words):
    """The output of `mgpud WORDS` of this instance on a terminal, and its exit status. Its disk is slow until the first line."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    running = subprocess.Popen([*box.command, *words], stdin=secondary, stdout=secondary, stderr=secondary,
                               env=box.environment(), **box.user.popen_arguments())
    os.close(secondary)
    said = b''
    with contextlib.suppress(OSError):  # read(2) fails once the program has ended
        while piece := os.read(primary, 4096):
            said += piece
            if CLEAR.encode() in said:
                test_blocking.slow(box, '')  # the rest is of no interest
    os.close(primary)
    return said.decode().replace('\r\n', '\n'), running.wait(harness.DEADLINE_S)


@pytest.mark.root
def test_a_slow_backup_restore_and_check_show_one_line_that_is_gone_in_the_end(box):
    box.start()
    box.stop()
    folder, backup = f'{box.state_dir}/store', f'{box.place}/backup'
    with contextlib.closing(sqlite3.connect(f'{folder}/mgpu.db')) as db:
        db.executemany("INSERT INTO cluster_state VALUES ('rows', ?, x'00')", [(f'{i}',) for i in range(8000)])
        db.commit()
    quick, status = on_terminal(box, '--fsck')
    assert status == 0 and CLEAR not in quick, quick
    for words, name, line in ((('--fsck',), 'mgpu.db', 'checking the store: [0-9]+s'),
                              (('--backup', backup), 'mgpu.db', 'copying the store: [0-9]+%, [0-9]+s'),
                              (('--restore', backup), 'backup-in-progress', '(reading the backup: [0-9]+%, |checking the backup: )[0-9]+s')):
        test_blocking.slow(box, f'files {SLOW_MS} {folder}/{name}\n')
        said, status = on_terminal(box, *words)
        shown = said.split(CLEAR)
        assert status == 0 and any(re.fullmatch(line, one) for one in shown), (words, said)
        assert not re.search(r': [0-9%, ]*[0-9]+s', shown[-1]), (words, said)
    assert 'is restored to' in said


@pytest.mark.root
def test_a_slow_upgrade_of_the_store_is_in_the_log_and_gets_time_from_systemd(box):
    folder = f'{box.state_dir}/store'
    os.makedirs(folder, 0o700)
    with open(test_store.OLD_STORES[-1], encoding='utf-8') as source, contextlib.closing(sqlite3.connect(f'{folder}/mgpu.db')) as db:
        db.executescript(source.read())
    for path in (folder, f'{folder}/mgpu.db'):
        os.chown(path, box.client.uid, box.client.gid)
    test_blocking.slow(box, f'files {SLOW_MS} {folder}/mgpu.db\n')
    ready, told, deadline = box.spawn(), [], time.monotonic() + harness.DEADLINE_S
    with ready:
        while not told or 'READY=1' not in told[-1]:
            assert select.select([ready], [], [], max(0, deadline - time.monotonic()))[0], (told, box.log())
            told.append(ready.recv(4096).decode())
            test_blocking.slow(box, '')
    assert re.fullmatch(r'STATUS=(copying the store: \d+%, |reading the jobs of the store: )\d+s\nEXTEND_TIMEOUT_USEC=60000000', told[0]), told
    assert 'finished after' in box.log(), box.log()
    assert box.job(5)['elements']['done'] == 3


# --- tools/slowly, which scripts run commands with ---

SLOWLY = f'{harness.ROOT}/tools/slowly'


def slowly(*words):
    done = subprocess.run([SLOWLY, 'building', *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=harness.DEADLINE_S)
    return done.returncode, done.stdout, done.stderr


def test_a_script_shows_the_output_of_a_command_that_fails_alone():
    assert slowly('sh', '-c', 'echo out; echo err >&2') == (0, '', '')
    assert slowly('sh', '-c', 'echo out; echo err >&2; exit 3') == (3, '', 'out\nerr\n')
    assert slowly('no-such-program')[0] == 127


def test_a_script_says_on_a_terminal_how_long_its_command_takes(tmp_path):
    fifo = tmp_path / 'fifo'
    os.mkfifo(fifo)
    primary, secondary = pty.openpty()
    running = subprocess.Popen([SLOWLY, 'building', 'cat', fifo], stdin=secondary, stdout=secondary, stderr=secondary)
    os.close(secondary)
    said = b''
    while b'building: 2 s' not in said and b'building: 3 s' not in said:
        said += os.read(primary, 4096)
    fifo.write_text('')  # its command ends
    with contextlib.suppress(OSError):
        while piece := os.read(primary, 4096):
            said += piece
    os.close(primary)
    assert running.wait(harness.DEADLINE_S) == 0 and said.endswith(CLEAR.encode()), said
