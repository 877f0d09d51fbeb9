# SPDX-License-Identifier: MIT
"""What is done with jobs that run: signals, suspend, requeue, retry; and what they do by themselves at their time
limit and after a failure."""

import json
import os
import re
import select
import signal
import subprocess

import pytest

import harness

GPUS = 'sim:4x24G'


def state_of(pid):
    """The letter in /proc: T is stopped."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as source:
        return source.read().rsplit(')', 1)[1].split()[0]


def kill_shepherds(instance):
    """Not their inits, which alone know the status of the command."""
    for pid in instance.shepherds():
        with open(f'/proc/{pid}/comm', encoding='utf-8') as source:
            name = source.read().strip()
        if name == 'mgpu-shepherd':
            os.kill(pid, signal.SIGKILL)


def trap(bell, gate, *signals, then='true'):
    """A command that rings its pid, then each signal it gets, until a line comes through the gate."""
    traps = ' '.join(f"trap 'echo {name} > {bell.path}' {name};" for name in signals)
    # The shell's read is interrupted by a signal: the loop goes on until a line was read.
    return ['bash', '-c', f'{traps} echo $$ > {bell.path}; until read word < {gate.path}; do :; done; {then}']


@pytest.fixture(params=['name', 'number'])
def usr1(request):
    return {'name': 'USR1', 'number': str(int(signal.SIGUSR1))}[request.param]


# --- signals ---

def test_a_signal_that_is_not_last_is_put_last_in_the_hint(box):
    for words, hint in ((('USR1', 'name'), 'name USR1'), (('5', 'x'), '5 USR1'), (('5', '6', 'x'), '5 USR1'), (('HUP', '5.3'), '5.3 HUP')):
        done = box.mgpu('signal', *words)
        assert done.code == 2 and f'hint: give the signal last: mgpu signal {hint}\n' in done.err, done


def test_a_signal_reaches_a_running_job(box, gate, bell, usr1):
    job = box.submit('--', *trap(bell, gate, 'USR1'))
    bell.wait()
    box.wait(job, 'running')
    box.mgpu('signal', job, usr1, check=True)
    assert bell.wait() == 'USR1'
    gate.open()
    assert box.wait(job)['exit_code'] == 0
    seen = [event for event in box.job(job)['events'] if event['type'] == 'signalled']
    assert [(event['signal'], event['user']) for event in seen] == [(int(signal.SIGUSR1), box.client.name)]


def test_a_signal_reaches_every_process_of_a_job(box, gate, bell):
    inner = f"trap 'echo inner > {bell.path}' USR2; echo in > {bell.path}; until read w < {gate.path}; do :; done"
    job = box.submit('--', 'bash', '-c', f"trap 'echo outer > {bell.path}' USR2; bash -c \"{inner}\" & echo out > {bell.path};"
                     ' while kill -0 $! 2> /dev/null; do wait $!; done')
    assert {bell.wait(), bell.wait()} == {'in', 'out'}
    box.wait(job, 'running')
    box.mgpu('signal', job, 'SIGUSR2', check=True)
    assert {bell.wait(), bell.wait()} == {'inner', 'outer'}
    gate.open()
    box.wait(job)


@pytest.mark.parametrize('words, said', [
    (['SIGNOSUCH'], 'is not a signal'), (['0'], 'is not a signal'), (['999'], 'is not a signal'), ([], 'no signal given'),
])
def test_what_is_no_signal_is_a_usage_error(box, words, said):
    done = box.mgpu('signal', 1, *words)
    assert done.code == 2 and said in done.err, done


def test_the_api_refuses_what_is_no_signal(box, gate):
    job = box.submit('--', *gate.command())
    box.wait(job, 'running')
    for body in ({}, {'signal': 'NOSUCH'}, {'signal': 10}, {'signal': '10', 'more': 1}):
        assert box.api('POST', f'/jobs/{job}/signal', body).status == 400, body
    gate.open()


def test_only_what_runs_can_be_signalled(box, gate):
    waiting = box.submit('--hold', '--', 'true')
    done = box.mgpu('signal', waiting, 'USR1')
    assert done.code == 6 and 'only a running job' in done.err, done
    over = box.submit('--', 'true')
    box.wait(over)
    done = box.mgpu('signal', over, 'USR1')
    assert done.code == 6 and 'has already ended' in done.err, done
    assert box.mgpu('signal', 999999, 'USR1').code == 3


@pytest.mark.root
def test_others_may_not_signal_a_job(box, bo, gate):
    job = box.submit('--', *gate.command())
    box.wait(job, 'running')
    for verb, *words in (('signal', 'KILL'), ('suspend',), ('continue',), ('requeue',)):
        done = box.mgpu(verb, job, *words, user=bo)
        assert done.code == 4, done
    gate.open()
    assert box.wait(job)['state'] == 'done'
    assert box.mgpu('retry', job, user=bo).code == 4


def test_a_signal_to_an_array_reaches_its_elements(box, gate, bell):
    array = box.submit('-a', '0-1', '--', *trap(bell, gate, 'USR1'))
    bell.wait(), bell.wait()
    for index in (0, 1):
        harness.until(lambda i=index: box.job(f'{array}.{i}')['state'] == 'running', 'the element runs')
    box.mgpu('signal', array, 'USR1', check=True)
    assert [bell.wait(), bell.wait()] == ['USR1', 'USR1']
    gate.open(2)
    box.wait(array)


# --- suspend ---

def test_a_suspended_job_stands_still_and_keeps_its_gpus(box, gate, bell):
    job = box.submit('-g', '2', '--', *trap(bell, gate))
    pid = int(bell.wait())
    box.wait(job, 'running')
    done = box.mgpu('suspend', job, check=True)
    assert 'keeps its GPUs' in done.err
    harness.until(lambda: state_of(pid) == 'T', 'it is stopped')
    shown = box.job(job)
    assert shown['state'] == 'running' and shown['suspended_at'] and len(shown['granted']) == 2
    assert box.mgpu('ps', job, '-o', 'state', '-H', check=True).out.strip() == 'suspended'
    box.mgpu('continue', job, check=True)
    harness.until(lambda: state_of(pid) != 'T', 'it goes on')
    assert box.job(job)['suspended_at'] is None
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_stop_and_cont_are_suspend_and_continue(box, gate, bell):
    job = box.submit('--', *trap(bell, gate))
    pid = int(bell.wait())
    box.wait(job, 'running')
    box.mgpu('signal', job, 'STOP', check=True)
    harness.until(lambda: state_of(pid) == 'T', 'it is stopped')
    assert box.job(job)['suspended_at']
    box.mgpu('signal', job, 'CONT', check=True)
    harness.until(lambda: state_of(pid) != 'T', 'it goes on')
    assert not box.job(job)['suspended_at']
    gate.open()
    box.wait(job)


def test_cont_reaches_what_somebody_else_stopped(box, gate, bell):
    job = box.submit('--', *trap(bell, gate))
    pid = int(bell.wait())
    box.wait(job, 'running')
    os.kill(pid, signal.SIGSTOP)
    harness.until(lambda: state_of(pid) == 'T', 'it is stopped')
    box.mgpu('continue', job, check=True)
    harness.until(lambda: state_of(pid) != 'T', 'it goes on')
    gate.open()
    box.wait(job)


def test_a_suspended_job_can_be_cancelled(box, gate, bell):
    job = box.submit('--', *trap(bell, gate, 'TERM'))
    pid = int(bell.wait())
    box.wait(job, 'running')
    box.mgpu('suspend', job, check=True)
    harness.until(lambda: state_of(pid) == 'T', 'it is stopped')
    box.mgpu('cancel', '--grace', '20s', job, check=True)
    assert bell.wait() == 'TERM'  # it is woken for its last chance
    gate.open()
    assert box.wait(job)['state'] == 'cancelled'


def test_a_suspension_outlives_everything_of_ours(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('--', *trap(bell, gate))
    pid = int(bell.wait())
    instance.wait(job, 'running')
    instance.mgpu('suspend', job, check=True)
    harness.until(lambda: state_of(pid) == 'T', 'it is stopped')
    kill_shepherds(instance)
    instance.restart()
    assert instance.job(job)['suspended_at']
    assert state_of(pid) == 'T'
    instance.mgpu('continue', job, check=True)
    harness.until(lambda: state_of(pid) != 'T', 'it goes on')
    gate.open()
    instance.wait(job)


def test_a_job_that_is_stopping_was_running_after_its_start(box, gate, bell):
    job = box.submit('-g', '0', '--', 'sh', '-c', f"trap '' TERM; echo up > {bell.path}; read x < {gate.path}")
    bell.wait()
    box.wait(job, 'running')
    box.mgpu('cancel', '--grace', '1h', job, check=True)
    box.wait(job, 'stopping')
    states = [(event['type'], event['state']) for event in box.mgpu('show', job, '--json', check=True).json['events']]
    assert states[-2:] == [('started', 'running'), ('stop', 'stopping')], states
    gate.open()
    box.wait(job)


# --- requeue, retry ---

def test_a_requeued_job_runs_again_behind_those_that_wait(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('-g', '1', '--', *trap(bell, gate, then=f'echo $MGPU_ATTEMPT > {bell.path}'))
    bell.wait()
    instance.wait(job, 'running')
    other = instance.submit('-g', '1', '--', *gate.command(f'echo other > {bell.path}'))
    instance.mgpu('requeue', '--grace', '0', job, check=True)
    instance.wait(other, 'running')
    assert instance.job(job)['state'] == 'queued'
    story = instance.mgpu('show', job, check=True).out
    assert '  requeue (attempt 1)' in story and '  preempted' not in story, story
    gate.open()
    assert bell.wait() == 'other'
    bell.wait()
    gate.open()
    assert bell.wait() == '2'
    done = instance.wait(job)
    assert (done['state'], done['attempt'], done['restarts'], done['preemptions']) == ('done', 2, 1, None)


def test_what_has_ended_is_retried_and_not_requeued(box):
    job = box.submit('-J', 'again', '-t', '5m', '-e', 'WHAT=ever', '--', 'sh', '-c', 'echo $WHAT')
    box.wait(job)
    done = box.mgpu('requeue', job)
    assert done.code == 6 and f'mgpu retry {job}' in done.err, done
    copy = int(box.mgpu('retry', job, check=True).out)
    assert copy > job
    shown = box.wait(copy)
    assert (shown['name'], shown['time_limit_s'], shown['exit_code']) == ('again', 300, 0)
    assert box.output(copy) == 'ever\n'


def test_a_retried_element_is_one_job(box):
    array = box.submit('-a', '3-4', '--', 'sh', '-c', 'exit $MGPU_ARRAY_INDEX')
    box.wait(array)
    copy = int(box.mgpu('retry', f'{array}.3', check=True).out)
    assert box.wait(copy)['array_job'] is None


def test_what_waits_or_runs_is_not_retried(box, gate):
    job = box.submit('--', *gate.command())
    box.wait(job, 'running')
    done = box.mgpu('retry', job)
    assert done.code == 6 and 'has not ended' in done.err, done
    gate.open()
    waiting = box.submit('--hold', '--', 'true')
    assert box.mgpu('requeue', waiting).code == 6


# --- time limits ---

def test_a_time_limit_is_kept_while_the_daemons_are_down(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('-t', '2s', '--', *trap(bell, gate))
    pid = int(bell.wait())
    instance.wait(job, 'running')
    pidfd = os.pidfd_open(pid)
    instance.stop()
    assert select.select([pidfd], [], [], 20)[0], 'it outlived its limit'
    os.close(pidfd)
    instance.start()
    done = instance.wait(job)
    assert (done['ended_by'], done['exit_code']) == ('time_limit', 124)
    assert 1.9 <= done['run_seconds'] <= 2.1


def test_a_time_limit_is_kept_by_who_adopts_the_job(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('-t', '3s', '--', *trap(bell, gate))
    bell.wait()
    instance.wait(job, 'running')
    kill_shepherds(instance)
    done = instance.wait(job)
    assert done['ended_by'] == 'time_limit' and 2.9 <= done['run_seconds'] < 4


def test_a_job_is_warned_before_its_time_is_up(box, gate, bell):
    job = box.submit('-t', '2s', '--signal', 'USR1@1500ms', '--', *trap(bell, gate, 'USR1'))
    bell.wait()
    assert bell.wait() == 'USR1'
    assert box.wait(job)['ended_by'] == 'time_limit'


def test_a_grace_of_its_own_is_kept_at_the_limit(box, gate, bell):
    job = box.submit('-t', '500ms', '--grace', '300ms', '--', *trap(bell, gate, 'TERM'))
    bell.wait()
    assert bell.wait() == 'TERM'
    done = box.wait(job)
    assert done['ended_by'] == 'time_limit' and 0.8 <= done['run_seconds'] < 1.6


def test_a_running_job_can_be_given_less_time(box, gate, bell):
    job = box.submit('-t', '1h', '--', *trap(bell, gate))
    bell.wait()
    box.wait(job, 'running')
    done = box.mgpu('edit', job, 'name=other')
    assert done.code == 6 and 'only its time limit' in done.err, done
    past = box.mgpu('edit', job, 'time=1ms')
    assert past.code == 2 and f'job {job} has run for ' in past.err and f'mgpu cancel {job} ends it' in past.err, past
    assert box.job(job)['time_limit_s'] == 3600
    box.end_soon(job)
    assert box.wait(job)['ended_by'] == 'time_limit'


@pytest.mark.root
def test_only_an_operator_gives_a_running_job_more_time(box, gate, bell):
    job = box.submit('-t', '1h', '--', *trap(bell, gate))
    bell.wait()
    box.wait(job, 'running')
    done = box.mgpu('edit', job, 'time=2h')
    assert done.code == 4 and 'can only be shortened' in done.err, done
    box.mgpu('edit', job, 'time=2h', user=box.user, check=True)
    assert box.job(job)['time_limit_s'] == 7200
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_the_site_has_a_longest_and_a_usual_time(make_instance):
    instance = make_instance(gpus='sim:1x8G', arguments=('--max-time', '1h', '--default-time', '10m'))
    done = instance.mgpu('submit', '-t', '2h', '--', 'true')
    assert done.code == 2 and 'the maximum is 1h' in done.err, done
    assert instance.job(instance.submit('--', 'true'))['time_limit_s'] == 600
    assert instance.job(instance.submit('-t', '30m', '--', 'true'))['time_limit_s'] == 1800
    job = instance.submit('--hold', '--', 'true')
    assert instance.mgpu('edit', job, 'time=90m').code == 2
    for queued in instance.open_jobs():
        instance.api('POST', f'/jobs/{queued}/release')


def test_a_restart_accepts_jobs_whose_time_limit_the_site_set(make_instance):
    instance = make_instance(gpus='sim:1x8G', arguments=('--default-time', '10m'))
    job = instance.submit('--hold', '--', 'true')
    instance.restart()
    assert instance.job(job)['time_limit_s'] == 600


def test_a_job_can_go_on_after_its_time(box, gate):
    job = box.submit('-t', '300ms', '--on-timeout', 'requeue', '--max-requeues', '2', '--', *gate.command())
    done = box.wait(job)
    assert (done['ended_by'], done['attempt'], done['restarts']) == ('time_limit', 3, 2)
    causes = [event['cause'] for event in box.job(job)['events'] if event['type'] == 'requeued']
    assert causes == ['time_limit', 'time_limit']


# --- retries ---

def test_a_chosen_exit_code_is_tried_again(box, place):
    script = f'echo attempt $MGPU_ATTEMPT; test -e {place}/ok && exit 0; touch {place}/ok; exit 75'
    job = box.submit('--retry', '3', '--retry-on', '75,80', '--', 'sh', '-c', script)
    done = box.wait(job)
    assert (done['exit_code'], done['attempt'], done['retries']) == (0, 2, 1)
    again = next(event for event in box.job(job)['events'] if event['type'] == 'requeued')
    assert (again['cause'], again['exit_code']) == ('failed', 75) and again['not_before']
    with open(again['log'], encoding='utf-8') as log:
        assert log.read() == 'attempt 1\n'
    assert box.output(job) == 'attempt 2\n'


def test_a_failing_program_is_not_tried_again_unasked(box):
    job = box.submit('--retry', '3', '--', 'sh', '-c', 'exit 3')
    done = box.wait(job)
    assert (done['exit_code'], done['attempt'], done['retries']) == (3, 1, None)


def test_a_start_that_fails_is_tried_as_often_as_asked(box):
    job = box.submit('--retry', '1', '--', '/nonexistent/command')
    done = box.wait(job)
    assert (done['ended_by'], done['attempt'], done['retries']) == ('start_failed', 2, 1)


def test_a_job_that_waits_for_its_next_try_can_be_cancelled(box):
    job = box.submit('--retry', '100', '--retry-on', '1', '--', 'false')
    harness.until(lambda: (box.job(job)['retries'] or 0) >= 2, 'it was tried again')
    harness.until(lambda: box.job(job)['reason'] == 'backoff', 'it waits for its next try')
    box.mgpu('cancel', job, check=True)
    assert box.wait(job)['state'] == 'cancelled'


@pytest.mark.parametrize('words', [
    ['--retry', '-1'], ['--retry', '101'], ['--retry-on', '75'], ['--retry', '1', '--retry-on', '0'],
    ['--retry', '1', '--retry-on', '256'], ['--retry', '1', '--retry-on', 'x'], ['--signal', 'NOSUCH'],
    ['--signal', 'USR1@'], ['--signal', 'USR1@0'], ['--on-timeout', 'explode'], ['--max-requeues', '0'],
    ['--grace', '-1'], ['--grace', '2-00:00:00'],
], ids=' '.join)
def test_what_makes_no_sense_is_refused(box, words):
    done = box.mgpu('submit', *words, '--', 'true')
    assert done.code == 2 and done.out == '', done


# --- the events tell it all ---

def test_the_journal_of_all_this_can_be_replayed(make_instance, gate, bell, place):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('-t', '1h', '--', *trap(bell, gate))
    bell.wait()
    instance.wait(job, 'running')
    for verb, *words in (('suspend',), ('continue',), ('signal', 'WINCH'), ('requeue', '--grace', '0')):
        instance.mgpu(verb, job, *words, check=True)
    bell.wait()
    instance.wait(job, 'running')
    gate.open()
    instance.wait(job)
    instance.wait(instance.submit('--retry', '1', '--retry-on', '1', '--', 'false'))
    journal = instance.mgpu('journal', 'export', user=instance.user, check=True)
    types = [json.loads(line).get('type') for line in journal.out.splitlines()]
    assert {'suspended', 'continued', 'signalled', 'requeued'} <= set(types)
    with open(f'{place}/journal', 'w', encoding='utf-8') as target:
        target.write(journal.out)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', f'{place}/journal'], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done


# --- what is shown, and cancel by filter ---

def test_show_lists_the_attempts_and_their_logs(box, place):
    script = f'test -e {place}/ok && exit 0; touch {place}/ok; exit 75'
    job = box.submit('--retry', '2', '--retry-on', '75', '--signal', 'USR1@5', '-t', '1h', '-o', f'{place}/out.%a',
                     '--', 'sh', '-c', script)
    box.wait(job)
    out = box.mgpu('show', job, check=True).out
    assert 'retried up to 2 times' in out and 'signal before the limit: USR1@5' in out
    assert re.search(rf'^attempt +1: failed, exit 75, {place}/out.1$', out, re.M), out
    assert box.job(job)['log'] == f'{place}/out.2'


def test_cancel_takes_those_in_a_state(box, gate, bell):
    running = box.submit('--', *trap(bell, gate))
    bell.wait()
    box.wait(running, 'running')
    suspended = box.submit('--', *trap(bell, gate))
    bell.wait()
    box.wait(suspended, 'running')
    box.mgpu('suspend', suspended, check=True)
    held = box.submit('--hold', '--', 'true')
    queued = box.submit('-b', '+1h', '--', 'true')
    for states, jobs in (('suspended', [suspended]), ('held', [held]), ('held,suspended', [suspended, held]), ('queued', [held, queued]),
                         ('running', [running, suspended]), ('suspended,queued', [suspended, held, queued]), ('parked,parking,unparking,starting early', [])):
        found = box.mgpu('ps', '-q', '-H', '-o', 'id', '-s', states, check=True).out.split()
        assert sorted(found) == sorted(map(str, jobs)), states
    box.mgpu('cancel', queued, check=True)
    box.mgpu('cancel', '-y', '-s', 'held', check=True)
    assert box.wait(held)['state'] == 'cancelled'
    box.mgpu('cancel', '-y', '-s', 'suspended', check=True)
    assert box.wait(suspended)['state'] == 'cancelled'
    assert box.job(running)['state'] == 'running'
    box.mgpu('cancel', '-y', '-u', box.client.name, '-s', 'queued,running', check=True)
    assert box.wait(running)['state'] == 'cancelled'
    done = box.mgpu('cancel', '-y', '-s', 'done')
    assert done.code == 2 and 'is not the state of an unended job' in done.err, done
    for state in ('parking', 'parked', 'unparking', 'starting early', 'stopping', 'queued,parked'):
        box.mgpu('cancel', '-y', '-s', state, check=True)
    assert box.mgpu('cancel', '-s', 'held').code == 2  # cannot ask
