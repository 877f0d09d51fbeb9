# SPDX-License-Identifier: MIT
"""A node starts a limited number of jobs without GPUs at a time; the others wait in the queue."""

import contextlib
import os
import signal
import subprocess

import pytest

import harness

CPU = ('-g', '0', '-c', '0.1')
SENTENCE = r'is starting 2 other jobs without GPUs, the maximum at a time'


def states(box, jobs):
    return [box.job(job)['state'] for job in jobs]


@contextlib.contextmanager
def stopped(box):
    """The agent, so that nothing starts. mgpud waits much longer before it regards the node as lost."""
    pid = next(pid for pid in box.agents() if harness.process_name(pid) == 'mgpu-agent')
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_burst_waits_in_the_queue_and_all_of_it_runs(make_instance, gate, place):
    box = make_instance(gpus='sim:2x8G', arguments=('--node-starts', '2', '--node-timeout', '5m'))
    with stopped(box):
        jobs = [box.submit(*CPU, '--', *gate.command()) for _ in range(6)]
        assert states(box, jobs) == ['starting'] * 2 + ['queued'] * 4
        reason = box.api('GET', f'/jobs/{jobs[2]}/why').json['reasons'][0]
        assert reason['code'] == 'node_starting' and reason['text'].endswith(SENTENCE), reason
        assert SENTENCE in box.mgpu('why', jobs[2]).out
        with_gpu = box.submit('-g', '1', '--', *gate.command())
        assert box.job(with_gpu)['state'] == 'starting', 'a GPU waits for no start'
        box.mgpu('cancel', jobs[2], check=True)
        assert states(box, jobs[:3]) == ['starting', 'starting', 'cancelled']
    for job in [*jobs[:2], *jobs[3:], with_gpu]:
        box.wait(job, 'running')
    gate.open(6)
    for job in [*jobs[:2], *jobs[3:], with_gpu]:
        assert box.wait(job)['exit_code'] == 0
    box.mgpu('journal', 'export', '-o', f'{place}/journal', user=box.user, check=True)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', f'{place}/journal'], check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and 'all identical' in done.stdout, (done.stdout, done.stderr)


def test_attempts_that_start_still_count_after_a_restart(make_instance, gate):
    box = make_instance(gpus='sim:2x8G', arguments=('--node-starts', '1', '--node-timeout', '5m'))
    with stopped(box):
        jobs = [box.submit(*CPU, '--', *gate.command()) for _ in range(3)]
        assert states(box, jobs) == ['starting', 'queued', 'queued']
    box.restart()
    for job in jobs:
        box.wait(job, 'running')
    gate.open(3)
    for job in jobs:
        assert box.wait(job)['exit_code'] == 0


@pytest.mark.parametrize('cause', ['requeue', 'preemption'])
def test_a_job_stopped_before_it_started_starts_again_at_once_and_is_shown_once(make_instance, cause):
    """Its start has not failed, so there is nothing to wait for; and the output of its next attempt is not also that of this one."""
    box = make_instance(gpus='sim:1x8G', arguments=('--node-timeout', '5m'))
    with stopped(box):
        run = box.popen('run', '-q', '-g', '1', '--preemptible', '--', 'sh', '-c', 'echo attempt $MGPU_ATTEMPT')
        job = box.await_news(lambda: next((job['id'] for job in box.api('GET', '/jobs?state=starting').json['jobs']), None))
        if cause == 'preemption':
            box.submit('-g', '1', '--', 'true')
        else:
            box.mgpu('requeue', job, check=True)
        assert box.job(job)['state'] == 'stopping'
    out, err = run.communicate(timeout=harness.DEADLINE_S)
    assert (run.returncode, out.decode(), err.decode()) == (0, 'attempt 2\n', '')
    returned = next(event for event in box.job(job, user=box.client)['events'] if event['type'] == 'returned')
    assert returned['not_before'] == returned['at'], returned
