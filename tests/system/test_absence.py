# SPDX-License-Identifier: MIT
"""Commands while mgpud is away: they wait for one that restarts, say so once, and submit once."""

import os
import shutil
import signal
import socket
import subprocess
import time

import harness
import pytest
import slurm
from harness import DEADLINE_S

SENTENCE = 'mgpud does not answer; waiting for it to return'
# Each has to succeed once mgpud is back.
COMMANDS = {
    'ps': ('mgpu', 'ps'),
    'submit': ('mgpu', 'submit', '-g', '0', '--', 'true'),
    'run': ('mgpu', 'run', '-g', '0', '--', 'true'),
    'gpus': ('mgpu', 'gpus'),
    'history': ('mgpu', 'history'),
    'users': ('mgpu', 'users'),
    'sbatch': ('sbatch', '--wrap', 'true'),
    'srun': ('srun', 'true'),
    'squeue': ('squeue',),
    'sinfo': ('sinfo',),
    'sacct': ('sacct',),
}
SUBMIT = {'submit', 'run', 'sbatch', 'srun'}


def start_all(box, commands):
    """Every command, as the client of the instance."""
    made = {}
    for name, words in COMMANDS.items():
        path = harness.programs() + '/mgpu' if words[0] == 'mgpu' else f'{commands.folder}/{words[0]}'
        made[name] = subprocess.Popen([path, *words[1:]], env=commands.environment(), cwd=commands.place, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **box.client.popen_arguments())
    return made


def read_until(process, text):
    """Standard error until it has the text."""
    seen, end = '', time.monotonic() + DEADLINE_S
    while text not in seen:
        assert time.monotonic() < end, seen
        line = process.stderr.readline()
        assert line, f'it ended: {seen}'
        line = line.decode() if isinstance(line, bytes) else line
        seen += line
    return seen


@pytest.mark.parametrize('leave', ['kill', 'stop'])
def test_commands_wait_for_mgpud_and_say_so_once(make_instance, place, leave):
    box = make_instance(gpus='sim:2x24G')
    commands = slurm.Slurm(box, place)
    getattr(box, leave)()
    waiting = start_all(box, commands)
    seen = {name: read_until(process, SENTENCE) for name, process in waiting.items()}
    box.start()
    for name, process in waiting.items():
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, (name, out, seen[name] + err)
        assert (seen[name] + err).count(SENTENCE) == 1, (name, err)
    jobs = box.api('GET', '/jobs').json['jobs']
    assert len(jobs) == len(SUBMIT), jobs


def test_without_any_mgpud_a_command_fails_at_once(make_instance, place):
    box = make_instance(start=False)
    for path in (f'{place}/nothing/mgpud.sock', f'{place}/mgpud.sock'):
        began = time.monotonic()
        done = box.mgpu('ps', env={'MGPU_SOCKET': path})
        assert done.code == 5 and SENTENCE not in done.err and time.monotonic() - began < 10, done
    # A socket without an mgpud's lock beside it is somebody else's.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(f'{place}/mgpud.sock')
    done = box.mgpu('ps', env={'MGPU_SOCKET': f'{place}/mgpud.sock'})
    assert done.code == 5 and SENTENCE not in done.err, done


def test_an_mgpud_that_was_stopped_some_time_ago_is_not_waited_for(make_instance):
    box = make_instance(gpus='sim:2x24G')
    box.stop()
    lock = f'{box.run_dir}/mgpud.lock'
    assert os.path.getsize(lock) == 0
    os.utime(lock, (time.time() - 31,) * 2)
    done = box.mgpu('ps')
    assert done.code == 5 and SENTENCE not in done.err, done
    box.start()


def test_doctor_and_completion_do_not_wait(make_instance):
    box = make_instance(gpus='sim:2x24G')
    box.kill()
    done = box.mgpu('doctor')
    assert done.code != 0 and SENTENCE not in done.err, done
    box.start()


def test_ctrl_c_ends_the_wait(make_instance):
    box = make_instance(gpus='sim:2x24G')
    box.kill()
    client = box.popen('run', '--', 'true')
    client.stderr.readline()
    client.send_signal(signal.SIGINT)
    assert client.wait(DEADLINE_S) != 0
    client.communicate()
    box.start()
    assert box.api('GET', '/jobs').json['jobs'] == []


def test_a_submit_whose_client_has_left_is_not_carried_out(make_instance, place):
    box = make_instance(gpus='sim:2x24G')
    os.kill(box.process.pid, signal.SIGSTOP)
    try:
        client = box.popen('submit', '-g', '0', '--', 'touch', f'{place}/ran')
        harness.wait_process(client.pid, 1)
        client.kill()
        client.communicate()
    finally:
        os.kill(box.process.pid, signal.SIGCONT)
    assert box.api('GET', '/jobs').json['jobs'] == [] and not os.path.exists(f'{place}/ran')


def test_a_number_that_cannot_be_written_is_said_on_standard_error(make_instance, place):
    box = make_instance(gpus='sim:2x24G')
    commands = slurm.Slurm(box, place)
    for number, words in enumerate((('mgpu', 'submit', '-g', '0', 'true'), ('mgpu', 'submit', '-q', '-g', '0', 'true'), ('sbatch', '--wrap', 'true')), 1):
        path = harness.programs() + '/mgpu' if words[0] == 'mgpu' else f'{commands.folder}/{words[0]}'
        with open('/dev/full', 'w', encoding='ascii') as full:
            done = subprocess.run([path, *words[1:]], env=commands.environment(), cwd=place, stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=DEADLINE_S, **box.client.popen_arguments())
        assert done.returncode == 1 and f'job {number} was submitted' in done.stderr, done


@pytest.mark.parametrize('names', [('mgpu.db', 'mgpu.db-wal', 'mgpu.db-shm'), ('mgpu.db',), ('mgpu.db-wal',)], ids=' '.join)
def test_nothing_is_acknowledged_without_the_files_of_the_store(make_instance, names):
    box = make_instance(gpus='sim:2x24G')
    box.submit('-g', '0', '--hold', '--', 'true')
    for name in names:
        os.unlink(f'{box.state_dir}/store/{name}')
    answer = box.api('POST', '/jobs', {'command': ['true'], 'gpus': 0, 'hold': True})
    assert answer.status == 503 and answer.json['outcome'] == 'unknown', answer
    assert box.process.wait(DEADLINE_S) != 0
    assert 'was removed or replaced while mgpud runs' in box.log(), box.log()


@pytest.mark.parametrize('what', ['the run directory', 'the socket', 'another in its place'])
def test_an_mgpud_that_nobody_can_reach_ends_and_is_good_as_new_after_a_restart(make_instance, what):
    box = make_instance()
    if what == 'the run directory':
        shutil.rmtree(box.run_dir)
    else:
        os.unlink(box.socket)
    if what == 'another in its place':
        os.mkfifo(box.socket)
    assert box.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL
    assert f'{box.socket} was removed or replaced' in box.log()
    if what == 'another in its place':
        os.unlink(box.socket)
    box.start()
    assert box.wait(box.submit('-g', '1', '--', 'true'))['state'] == 'done'
