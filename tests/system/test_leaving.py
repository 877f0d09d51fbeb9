# SPDX-License-Identifier: MIT
"""What happens to a job when the program that shows it, or waits for it, goes away."""

import os
import select
import signal

import pytest

import harness

GPUS = 'sim:8x24G'
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def read_line(process):
    assert select.select([process.stdout], [], [], harness.DEADLINE_S)[0], 'nothing on standard output'
    return process.stdout.readline()


def talking_job(box, gate):
    """Prints a line, and two more when the gate opens."""
    job = box.submit('--', 'sh', '-c', f'echo one; read x <{gate.path}; echo two; read x <{gate.path}; echo three')
    box.wait(job, 'running')
    return job


@pytest.mark.parametrize('words', [('attach',), ('attach', '-r')], ids=' '.join)
@pytest.mark.parametrize('number', SIGNALS, ids=lambda number: number.name)
def test_a_signal_for_attach_leaves_the_job(box, gate, words, number):
    job = talking_job(box, gate)
    viewer = box.popen(*words, job)
    assert read_line(viewer) == b'one\n'
    viewer.send_signal(number)
    assert viewer.wait(harness.DEADLINE_S) == 0 and 'which continues' in viewer.communicate()[1].decode()
    assert box.job(job)['state'] == 'running'
    gate.open(2)
    assert box.wait(job)['state'] == 'done' and box.output(job) == 'one\ntwo\nthree\n'


@pytest.mark.parametrize('words', [('attach',), ('attach', '-r')], ids=' '.join)
def test_a_reader_of_attach_that_goes_leaves_the_job(box, gate, words):
    job = talking_job(box, gate)
    viewer = box.popen(*words, job)
    assert read_line(viewer) == b'one\n'
    viewer.stdout.close()
    gate.open()
    assert viewer.wait(harness.DEADLINE_S) == 0, viewer.stderr.read()
    assert box.job(job)['state'] == 'running'
    gate.open()
    assert box.wait(job)['state'] == 'done'


def ignore(*numbers):
    """For preexec_fn: as nohup, and shells that start something in the background, do it."""
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers]


@pytest.mark.parametrize('number', SIGNALS, ids=lambda number: number.name)
def test_a_signal_ignored_from_the_start_does_not_end_a_run(box, gate, number):
    run = box.popen('run', '--', 'sh', '-c', f'echo one; read x <{gate.path}; echo two', preexec_fn=ignore(number))
    assert read_line(run) == b'one\n'
    run.send_signal(number)
    gate.open()
    out, err = run.communicate(timeout=harness.DEADLINE_S)
    assert (run.returncode, out) == (0, b'two\n'), err


@pytest.mark.parametrize('number', SIGNALS, ids=lambda number: number.name)
def test_a_signal_ignored_from_the_start_does_not_withdraw_a_run(box, gate, number):
    blocker = box.post_job(gate.command(), gpus=8)
    box.wait(blocker, 'running')
    run = box.popen('run', '-g', '1', '--', 'echo', 'ran', preexec_fn=ignore(number))
    box.await_news(lambda: [job for job in box.open_jobs() if job > blocker], run)
    run.send_signal(number)
    gate.open()
    out, err = run.communicate(timeout=harness.DEADLINE_S)
    assert (run.returncode, out) == (0, b'ran\n'), err
