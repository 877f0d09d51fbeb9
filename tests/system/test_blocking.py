# SPDX-License-Identifier: MIT
"""Calls that may hang (the user database, files of users) take seconds, by tests/standin/slow.c. The loops of mgpud and
mgpu-agent make none of them, and other users are served meanwhile."""

import json
import os
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.root
STALL_MS = 4000
ROUND_S = 12  # what takes longer than the stall has come to its end by then
ANSWER_S = 3  # of a request that needs nothing slow; one wait for the user database is a second

# In a mount namespace of its own, with the few files of /etc that are needed and one that loads the stand-in.
ENTER = """set -e
mount --bind "$1/mnt" /mnt
mount --bind "$1/etc" /etc
shift
exec "$@"
"""
FILES = ('passwd', 'group', 'ld.so.cache', 'nsswitch.conf', 'hosts', 'mgpu')


@pytest.fixture
def box(make_instance, ana):
    if subprocess.run(['unshare', '-m', 'true'], check=False).returncode:
        pytest.skip('needs mount namespaces')
    made = make_instance(gpus='sim:4x8G', client=ana, start=False)
    with open(f'{made.place}/config', 'w', encoding='ascii') as out:
        out.write('roles:\n  operator: [group:mgpu-tg]\n')
    made.command += ['--config', f'{made.place}/config']
    os.mkdir(f'{made.place}/mnt')
    os.mkdir(f'{made.place}/etc')
    for name in FILES:
        if os.path.isfile(f'/etc/{name}'):
            shutil.copy(f'/etc/{name}', f'{made.place}/etc')
    shutil.copy(f'{harness.build_folder()}/tests/unit/agent/libslow.so', f'{made.place}/mnt')
    for name, text in (('etc/ld.so.preload', '/mnt/libslow.so\n'), ('mnt/slow', ''), ('mnt/stalls', '')):
        with open(f'{made.place}/{name}', 'w', encoding='ascii') as target:
            target.write(text)
    os.chmod(f'{made.place}/mnt/stalls', 0o666)
    made.command[:0] = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', made.place]
    return made.start()


def slow(box, line):
    with open(f'{box.place}/mnt/slow.new', 'w', encoding='ascii') as target:
        target.write(line)
    os.rename(f'{box.place}/mnt/slow.new', f'{box.place}/mnt/slow')


def stalls(box):
    with open(f'{box.place}/mnt/stalls', encoding='utf-8') as source:
        return source.read().splitlines()


# Another user, who asks one thing after the other; at the end it prints how long the slowest answer took.
OTHERS = '''
import json, socket, sys, time
path, until, slowest = sys.argv[1], time.monotonic() + float(sys.argv[2]), (0, None)
body = json.dumps({'command': ['true'], 'cwd': '/', 'hold': True})
requests = [('POST', '/jobs', body), ('GET', '/jobs?limit=10', ''), ('GET', '/gpus', ''), ('GET', '/version', '')]
while time.monotonic() < until:
    for method, target, text in requests:
        begin = time.monotonic()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            sock.sendall(f'{method} /api/v1{target} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n'
                         f'Content-Length: {len(text)}\\r\\n\\r\\n{text}'.encode())
            answer = b''.join(iter(lambda: sock.recv(65536), b''))
        slowest = max(slowest, (time.monotonic() - begin, target))
        assert answer.startswith(b'HTTP/1.1 20'), (target, answer[:300])
        if answer and begin + 0.05 > time.monotonic():
            time.sleep(0.02)
print(json.dumps(slowest))
'''


def meanwhile(box, user, does):
    """What a user does while calls are slow, and what another user waits for in that time."""
    others = subprocess.Popen(['/usr/bin/python3', '-c', OTHERS, box.socket, str(ROUND_S)], cwd='/', stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, **user.popen_arguments())
    does()
    out = others.communicate(timeout=ROUND_S + harness.DEADLINE_S)[0]
    slow(box, '')
    assert others.returncode == 0
    seconds, target = json.loads(out)
    assert not stalls(box), stalls(box)
    assert seconds < ANSWER_S, (seconds, target)


def start_and_leave(box, made, *words, user):
    """A command of this user that is not waited for."""
    made.append(box.popen(*words, user=user, cwd=user.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL))


def end_all(made):
    for process in made:
        process.kill()
        process.wait()


def test_slow_user_database_stalls_no_loop(box, ana, bo):
    made = []

    def ask():
        for words in (('submit', '--', 'true'), ('history', '-u', 'nobody'), ('users',), ('token', 'create'),
                      ('submit', '--notify', 'end', '--', 'true'), ('node', 'drain', 'localhost')):
            start_and_leave(box, made, *words, user=ana)

    box.run_job(['true'], user=bo)
    slow(box, f'users {STALL_MS}\n')
    meanwhile(box, bo, ask)
    end_all(made)
    assert box.run_job(['true'], user=ana, cwd='/')[0]['exit_code'] == 0


def test_submission_without_a_directory_says_that_the_user_database_is_slow(box, ana):
    slow(box, f'users {STALL_MS}\n')
    answer = box.api('POST', '/jobs', {'command': ['true']}, user=ana)
    slow(box, '')
    assert (answer.status, answer.json['code']) == (503, 'directory_away'), answer


def test_slow_files_of_users_stall_no_loop(box, ana, bo):
    made = []
    script = f'{ana.home}/mgpu-slow.sh'
    with ana.acting():
        with open(script, 'w', encoding='ascii') as target:
            target.write('#!/bin/sh\necho it ran\n')
        os.chmod(script, 0o755)
    running = box.mgpu('submit', '-o', f'{ana.home}/mgpu-slow.log', '--', 'sh', '-c', 'echo begun; exec sleep 60', user=ana,
                       cwd=ana.home, check=True).out.split()[0]
    box.wait(running, 'running')

    def ask():
        for words in (('submit', '-o', f'{ana.home}/mgpu-slow2.log', '-g', '1', script), ('logs', running), ('logs', '-f', running),
                      ('exec', running, 'true'), ('submit', '-C', ana.home, '--', 'true'), ('show', running)):
            start_and_leave(box, made, *words, user=ana)

    try:
        slow(box, f'files {STALL_MS} {ana.home}\n')
        meanwhile(box, bo, ask)
        box.mgpu('cancel', running, user=ana, check=True)
        box.wait(running)
    finally:
        end_all(made)
        for name in ('mgpu-slow.sh', 'mgpu-slow.log', 'mgpu-slow2.log'):
            if os.path.exists(f'{ana.home}/{name}'):
                os.unlink(f'{ana.home}/{name}')


def test_slow_call_in_a_loop_is_noticed(box, bo):
    """The stand-in records what the test above relies on: mgpud looks at /etc/passwd in its loop, which is local."""
    slow(box, f'files {STALL_MS} /etc/passwd\n')
    box.api('GET', '/jobs?user=nobody', user=bo)
    slow(box, '')
    assert any('stat64 /etc/passwd' in line for line in stalls(box)), stalls(box)
