# SPDX-License-Identifier: MIT
"""A shepherd serves one job after the other. One that is killed, idle or at work, costs no job more than its own start would."""

import os
import signal

import pytest

import harness


def parent_of(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as text:
            return int(text.read().rpartition(')')[2].split()[1])
    except FileNotFoundError:
        return 0


def idle_shepherds(box):
    """Their command line names no folder: they are children of the fork server, and that is one of the agent."""
    idle = [pid for pid in map(int, filter(str.isdigit, os.listdir('/proc'))) if harness.process_name(pid) == 'mgpu-idle']
    return [pid for pid in idle if parent_of(parent_of(pid)) in box.agents()]


@pytest.fixture
def box(make_instance):
    box = make_instance(gpus='sim:1x8G')
    assert box.wait(box.submit('--', 'true'))['exit_code'] == 0
    harness.until(lambda: idle_shepherds(box), 'a shepherd that waits for the next job')
    return box


def ran_once(box, place, exit_code):
    job = box.submit('--', 'sh', '-c', f'echo here >> {place}/ran; exit {exit_code}')
    ended = box.wait(job)
    with open(f'{place}/ran', encoding='ascii') as lines:
        assert lines.read() == 'here\n'
    assert (ended['exit_code'], ended['attempt']) == (exit_code, 1), ended


def test_the_next_job_runs_once_when_the_idle_shepherd_was_killed(box, place):
    os.chmod(place, 0o777)
    for pid in idle_shepherds(box):
        os.kill(pid, signal.SIGKILL)
    ran_once(box, place, 3)


def test_a_job_of_a_shepherd_that_served_another_keeps_its_exit_code(box, gate):
    before = idle_shepherds(box)
    job = box.submit('--', *gate.command('exit 7'))
    box.wait(job, 'running')
    serving = [pid for pid, line in harness.processes(box.place).items() if f'/spool/{job}.' in line and pid in before]
    assert serving, 'the idle shepherd took the job'
    os.kill(serving[0], signal.SIGKILL)
    gate.open()
    ended = box.wait(job)
    assert (ended['exit_code'], ended['attempt']) == (7, 1), ended
