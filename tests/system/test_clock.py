# SPDX-License-Identifier: MIT
"""A wall clock that is set while jobs run: mgpud and mgpu-agent see it through tests/standin/clock.c. mgpu-shepherd is
statically linked and keeps the true time, as on a node whose clock differs from that of mgpud."""

import datetime
import os
import shutil
import time

import pytest

import harness
from test_park import Cuda, await_phase, park, start_work

HOURS_S = 2 * 3600
MUCH_S = 600  # far less than the step, far more than any job here takes

# In a mount namespace of its own, with the few files of /etc that are needed and one that loads the stand-in.
ENTER = """set -e
mount --bind "$1/mnt" /mnt
mount --bind "$1/etc" /etc
shift
exec "$@"
"""
FILES = ('passwd', 'group', 'ld.so.cache', 'nsswitch.conf', 'hosts')


@pytest.fixture
def cuda(place):
    return Cuda(f'{place}/driver')


@pytest.fixture
def box(make_instance, ana, cuda):
    harness.require_namespaces()
    made = make_instance(gpus='sim:2x8G', client=ana, arguments=cuda.arguments, start=False)
    os.mkdir(f'{made.place}/mnt')
    os.mkdir(f'{made.place}/etc')
    for name in FILES:
        if os.path.exists(f'/etc/{name}'):
            shutil.copy(f'/etc/{name}', f'{made.place}/etc')
    shutil.copy(f'{harness.build_folder()}/tests/unit/agent/libclock.so', f'{made.place}/mnt')
    with open(f'{made.place}/etc/ld.so.preload', 'w', encoding='ascii') as target:
        target.write('/mnt/libclock.so\n')
    made.command[:0] = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', made.place]
    set_clock(made, 0)
    return made.start()


def set_clock(box, seconds):
    """In one step; how far it is off from now on."""
    with open(f'{box.place}/mnt/clock.new', 'w', encoding='ascii') as target:
        target.write(f'{seconds}\n')
    os.rename(f'{box.place}/mnt/clock.new', f'{box.place}/mnt/clock')


def own_time(box):
    """The wall clock as mgpud sees it."""
    return datetime.datetime.strptime(box.api('GET', '/version').headers['date'], '%a, %d %b %Y %H:%M:%S %Z').timestamp()


def check_times(job):
    """What people are shown of a job that ran for a moment."""
    assert job['submitted_at'] <= job['started_at'] <= job['ended_at'], job
    assert 0 <= job['wait_seconds'] < MUCH_S and 0 <= job['run_seconds'] < MUCH_S, job


@pytest.mark.parametrize('step_s', [HOURS_S, -HOURS_S])
@pytest.mark.parametrize('is_restarted', [False, True], ids=['running', 'restarted'])
def test_running_job_is_not_ended_by_a_step_of_the_clock(box, gate, step_s, is_restarted):
    job = box.submit('-t', '1h', '-g', '1', '--', *gate.command('exit 3'))
    box.wait(job, 'running')
    if is_restarted:
        box.stop()
    set_clock(box, step_s)
    if is_restarted:
        box.start()
    other, _ = box.run_job(['true'])
    check_times(other)
    assert box.job(job)['state'] == 'running'
    gate.open()
    ended = box.wait(job)
    assert ended['exit_code'] == 3, ended
    check_times(ended)


@pytest.mark.parametrize('step_s', [HOURS_S, -HOURS_S])
def test_time_limit_is_kept_over_a_step_of_the_clock(box, gate, step_s):
    job = box.submit('-t', '3s', '-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    set_clock(box, step_s)
    box.run_job(['true'])
    ended = box.wait(job)
    assert ended['ended_by'] == 'time_limit', ended
    assert ended['run_seconds'] >= 3
    check_times(ended)


@pytest.mark.parametrize('step_s', [HOURS_S, -HOURS_S])
@pytest.mark.parametrize('is_restarted', [False, True], ids=['running', 'restarted'])
def test_retry_comes_when_it_is_due_over_a_step_of_the_clock(box, step_s, is_restarted):
    job = box.submit('--retry', '1', '--retry-on', '5', '--', 'sh', '-c', 'exit 5')
    box.wait(job, 'queued,done')
    set_clock(box, step_s)
    if is_restarted:
        box.restart()
    ended = box.wait(job)
    assert ended['exit_code'] == 5 and ended['attempt'] == 2, ended
    check_times(ended)


@pytest.mark.parametrize('step_s', [HOURS_S, -HOURS_S])
def test_a_parked_job_returns_after_the_time_it_was_parked_for(box, cuda, step_s):
    job = start_work(box, cuda)
    set_clock(box, step_s)
    began = time.monotonic()
    park(box, job, '--for', '3s')
    await_phase(box, job, None)
    passed_s = time.monotonic() - began
    assert 3 <= passed_s, passed_s
    assert 0 < box.job(job)['parked_seconds'] <= passed_s, box.job(job)


@pytest.mark.parametrize('step_s', [HOURS_S, -HOURS_S])
def test_begin_and_deadline_come_over_a_step_of_the_clock(box, gate, step_s):
    """A step ahead counts after five minutes only; after one back, mgpud's time runs at half speed."""
    box.wait(box.submit('-g', '2', '--', *gate.command()), 'running')
    late = box.submit('-g', '1', '--deadline', '+3s', '--', 'true')
    soon = box.submit('-g', '0', '--begin', '+3s', '--', 'true')
    set_clock(box, step_s)
    assert box.job(soon)['state'] == 'queued'
    begun, given_up = box.wait(soon), box.wait(late)
    assert begun['exit_code'] == 0 and given_up['ended_by'] == 'deadline', (begun, given_up)
    check_times(begun)
