# SPDX-License-Identifier: MIT
"""What a job says of itself through $MGPU_NOTIFY, and the stops that wait until it has saved its work."""

import os
import re
import shutil
import signal
import stat
import time

import pytest

import harness

GPUS = 'sim:2x24G'
TICKS = os.sysconf('SC_CLK_TCK')


def said(instance, job, key, value):
    return harness.until(lambda: (shown := instance.job(job))[key] == value and shown, f'{key} of job {job} is {value}')


def shepherd_of(instance):
    """Of the only job; not its init and not the fork server."""
    for pid in instance.shepherds():
        with open(f'/proc/{pid}/comm', encoding='utf-8') as source:
            if source.read().strip() == 'mgpu-shepherd':
                return pid
    raise AssertionError('there is no shepherd')


def cpu_s(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as source:
        fields = source.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def talker(gate, text, then='true'):
    """A command that says this and goes on when the gate opens."""
    return ['bash', '-c', f'printf "{text}" > "$MGPU_NOTIFY"; read word < {gate.path}; {then}']


def saver(bell, gate, wait='0.3', word='CHECKPOINTED', name='TERM', before='true'):
    """In its first attempt a command that saves its work when it is told, and then goes on as if nothing had
    happened; in its second one that waits at the gate."""
    return ['bash', '-c', f'''
        if [ "$MGPU_ATTEMPT" -gt 1 ]; then echo again > {bell.path}; read word < {gate.path}; exit 0; fi
        save() {{ sleep {wait}; echo {word} > "$MGPU_NOTIFY"; echo saved; }}
        trap save {name}; {before}; echo $$ > {bell.path}; while :; do read -t 60 word <> {gate.path}; done''']


# --- what it says ---

@pytest.mark.smoke
def test_progress_and_status_are_shown(box, gate):
    job = box.submit('--', *talker(gate, 'PROGRESS=0.4\\nSTATUS=epoch 3\\nWHAT=ever\\n'))
    shown = said(box, job, 'progress', 0.4)
    assert (shown['status'], shown['checkpointed_at']) == ('epoch 3', None)
    assert box.mgpu('ps', job, '-H', '-o', 'progress,status', check=True).out.split(None, 2)[1:] == ['40%', 'epoch 3\n']
    assert '███░░░░░ 40%' in box.mgpu('ps', job, check=True).out
    assert '[###.....] 40%' in box.mgpu('ps', job, check=True, env={'LANG': 'C', 'LC_ALL': 'C'}).out
    assert re.search(r'^reports +███░░░░░ 40%  epoch 3$', box.mgpu('show', job, check=True).out, re.M)
    gate.open()
    over = box.wait(job)
    assert (over['progress'], over['status']) == (0.4, 'epoch 3')
    assert '40%' not in box.mgpu('ps', job, check=True).out


def test_what_a_short_job_says_last_is_in_its_record(box):
    job = box.submit('--', 'sh', '-c', 'echo PROGRESS=50% > $MGPU_NOTIFY; printf "CHECKPOINTED\\nSTATUS=all done" > $MGPU_NOTIFY')
    over = box.wait(job)
    assert (over['state'], over['progress'], over['status']) == ('done', 0.5, 'all done')
    assert over['checkpointed_at']
    assert re.search(r'^saved ', box.mgpu('show', job, check=True).out, re.M)


def test_a_job_without_gpus_is_heard_too(box, gate):
    job = box.submit('-g', '0', '--', *talker(gate, 'PROGRESS=1\\n'))
    said(box, job, 'progress', 1.0)
    gate.open()
    box.wait(job)


def test_words_from_users_are_escaped(box, gate):
    job = box.submit('--', *talker(gate, 'STATUS=\\033[31mred\\n'))
    said(box, job, 'status', '\x1b[31mred')
    for verb in (('show', job), ('ps', job, '-o', 'status')):
        out = box.mgpu(*verb, check=True).out
        assert '\x1b[31m' not in out and 'red' in out
    gate.open()
    box.wait(job)


def test_a_step_by_exec_speaks_for_its_job(box, gate):
    job = box.submit('--', *gate.command())
    box.wait(job, 'running')
    box.mgpu('exec', '-T', job, '--', 'sh', '-c', 'echo PROGRESS=0.25 > $MGPU_NOTIFY', check=True)
    said(box, job, 'progress', 0.25)
    gate.open()
    box.wait(job)


def test_the_pipe_is_the_owners_alone_and_goes_with_the_job(box, gate, bell):
    job = box.submit('--', 'sh', '-c', f'echo $MGPU_NOTIFY > {bell.path}; read word < {gate.path}')
    path = bell.wait()
    shown = os.stat(path)
    assert stat.S_ISFIFO(shown.st_mode) and stat.S_IMODE(shown.st_mode) == 0o600 and shown.st_uid == box.client.uid
    gate.open()
    box.wait(job)
    harness.until(lambda: not os.path.exists(path), 'the pipe is removed')


@pytest.mark.root
def test_others_cannot_speak_for_a_job(box, bo, gate, bell):
    job = box.submit('--', 'sh', '-c', f'echo $MGPU_NOTIFY > {bell.path}; read word < {gate.path}')
    path = bell.wait()
    with bo.acting():
        with pytest.raises(PermissionError):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        with pytest.raises(PermissionError):
            os.listdir(os.path.dirname(path))
    with box.client.acting(), pytest.raises(PermissionError):
        os.unlink(path)
    gate.open()
    box.wait(job)


def test_the_verb_notify(box, gate, bell):
    mgpu = f'{harness.programs()}/mgpu'
    job = box.submit('--', 'sh', '-c', f'{mgpu} notify --progress 40% --status "epoch 3" --checkpointed && '
                     f'echo ok > {bell.path}; read word < {gate.path}')
    assert bell.wait() == 'ok'
    shown = said(box, job, 'progress', 0.4)
    assert shown['status'] == 'epoch 3' and shown['checkpointed_at']
    gate.open()
    box.wait(job)
    done = box.mgpu('notify', '--progress', '0.4')
    assert done.code == 2 and 'this is not an mgpu job' in done.err and 'mgpu run' in done.err, done
    gone = box.mgpu('notify', '--progress', '0.4', env={'MGPU_NOTIFY': '/nonexistent/pipe'})
    assert gone.code == 1 and 'no reader for' in gone.err, gone
    no_pipe = box.mgpu('notify', '-c', env={'MGPU_NOTIFY': '/dev/null'})
    assert no_pipe.code == 2 and 'is not a pipe' in no_pipe.err, no_pipe


@pytest.mark.parametrize('words, text', [
    ([], 'nothing to report'), (['--progress', '1.5'], '--progress'), (['--progress', '101%'], '--progress'),
    (['--status', 'x' * 129], 'at most 128'), (['--status', 'a\nb'], 'control character'),
])
def test_what_notify_refuses(box, words, text):
    done = box.mgpu('notify', *words, env={'MGPU_NOTIFY': '/dev/null'})
    assert done.code == 2 and text in done.err, done


# --- it outlives us, and cannot hurt us ---

def test_the_pipe_outlives_shepherd_and_agent(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('--', 'bash', '-c', f'exec 2>&1; say() {{ echo "$1" > "$MGPU_NOTIFY"; echo "$1" > {bell.path}; }};'
                          f'say PROGRESS=0.1; read w < {gate.path}; say PROGRESS=0.2; read w < {gate.path};'
                          f'say PROGRESS=0.3; read w < {gate.path}')
    assert bell.wait() == 'PROGRESS=0.1'
    said(instance, job, 'progress', 0.1)
    first = shepherd_of(instance)
    os.kill(first, signal.SIGKILL)
    gate.open()
    assert bell.wait() == 'PROGRESS=0.2'
    said(instance, job, 'progress', 0.2)
    assert shepherd_of(instance) != first
    for pid in instance.agents():
        with open(f'/proc/{pid}/comm', encoding='utf-8') as source:
            if source.read().strip() == 'mgpu-agent':
                os.kill(pid, signal.SIGKILL)
    gate.open()
    assert bell.wait() == 'PROGRESS=0.3'
    said(instance, job, 'progress', 0.3)
    instance.restart()
    said(instance, job, 'progress', 0.3)
    gate.open()
    assert instance.wait(job)['progress'] == 0.3


def test_a_shepherd_that_does_not_read_keeps_no_job_waiting(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('--', 'bash', '-c', f'echo go > {bell.path}; read w < {gate.path};'
                          f'for i in $(seq 1000); do echo PROGRESS=0.5 > "$MGPU_NOTIFY"; done; echo done > {bell.path}; read w < {gate.path}')
    bell.wait()
    instance.wait(job, 'running')
    shepherd = shepherd_of(instance)
    os.kill(shepherd, signal.SIGSTOP)
    gate.open()
    assert bell.wait() == 'done'
    os.kill(shepherd, signal.SIGCONT)
    said(instance, job, 'progress', 0.5)
    gate.open()
    assert instance.wait(job)['state'] == 'done'


def test_a_flood_costs_little_and_ends(make_instance, bell, gate):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('--', 'bash', '-c', f'echo go > {bell.path}; yes PROGRESS=0.7 | head -n 1000000 > "$MGPU_NOTIFY";'
                          f'echo STATUS=over > "$MGPU_NOTIFY"; echo over > {bell.path}; read w < {gate.path}')
    bell.wait()
    instance.wait(job, 'running')
    started = time.monotonic()
    shepherd, daemon = shepherd_of(instance), instance.process.pid
    before = cpu_s(shepherd), cpu_s(daemon)
    assert bell.wait() == 'over'
    said(instance, job, 'status', 'over')
    spent = cpu_s(shepherd) - before[0], cpu_s(daemon) - before[1]
    took = time.monotonic() - started
    print(f'1000000 lines in {took:.2f} s; shepherd {spent[0]:.2f} s, mgpud {spent[1]:.2f} s of CPU')
    assert took < 20
    assert spent[0] < 3 and spent[1] < 2  # a sanitizer's build is about ten times slower
    assert instance.job(job)['progress'] == 0.7
    gate.open()
    instance.wait(job)


# --- stops that wait for a checkpoint ---

def test_a_job_that_has_saved_its_work_is_put_back_at_once(box, gate, bell):
    job = box.submit('--checkpoint', '--signal', 'USR1', '--grace', '30s', '--', *saver(bell, gate, name='USR1'))
    bell.wait()
    box.wait(job, 'running')
    asked = time.monotonic()
    box.mgpu('requeue', job, check=True)
    assert bell.wait() == 'again'
    assert 0.3 <= time.monotonic() - asked < 10
    shown = box.wait(job, 'running')
    assert (shown['attempt'], shown['restarts']) == (2, 1)
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_a_preempted_job_has_the_time_it_needs_and_no_more(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('--preemptible', '--checkpoint', '--grace', '30s', '--', *saver(bell, gate))
    bell.wait()
    instance.wait(job, 'running')
    other = instance.submit('--', *gate.command())
    asked = time.monotonic()
    instance.wait(other, 'running')
    assert time.monotonic() - asked < 10
    shown = instance.job(job)
    assert shown['state'] == 'queued' and shown['preemptions'] == 1 and shown['checkpointed_at']
    gate.open()
    assert bell.wait() == 'again'
    gate.open()
    assert instance.wait(job)['attempt'] == 2


def test_a_job_that_never_saves_is_ended_after_its_grace(box, gate, bell):
    job = box.submit('--checkpoint', '--grace', '3s', '--', *saver(bell, gate, word='NEVER'))
    bell.wait()
    box.wait(job, 'running')
    asked = time.monotonic()
    box.mgpu('requeue', job, check=True)
    waiting = r'waiting for its checkpoint, at most another ([\d.]+m?s)'
    assert re.match(waiting, harness.until(lambda: box.job(job)['reason_text'], 'it says what it waits for'))[1] in ('2s', '1s')
    assert re.search(waiting, box.mgpu('ps', job, check=True).out)
    assert re.search(r'stopping: ' + waiting, box.mgpu('show', job, check=True).out)
    assert re.search(waiting, box.mgpu('why', job, check=True).out)
    assert bell.wait() == 'again'
    assert time.monotonic() - asked >= 3
    gate.open()
    box.wait(job)


def test_what_was_saved_before_it_was_told_does_not_count(box, gate, bell):
    job = box.submit('--checkpoint', '--grace', '2s', '--',
                     *saver(bell, gate, word='NEVER', before='echo CHECKPOINTED > "$MGPU_NOTIFY"'))
    bell.wait()
    box.wait(job, 'running')
    asked = time.monotonic()
    box.mgpu('requeue', job, check=True)
    assert bell.wait() == 'again'
    assert time.monotonic() - asked >= 2
    gate.open()
    box.wait(job)


def test_without_the_promise_a_checkpoint_ends_nothing(box, gate, bell):
    job = box.submit('--grace', '2s', '--', *saver(bell, gate, wait='0'))
    bell.wait()
    box.wait(job, 'running')
    asked = time.monotonic()
    box.mgpu('requeue', job, check=True)
    assert bell.wait() == 'again'
    assert time.monotonic() - asked >= 2
    gate.open()
    box.wait(job)


def test_a_cancel_waits_for_no_checkpoint(box, gate, bell):
    job = box.submit('--checkpoint', '--signal', 'USR1', '--grace', '30s', '--', *saver(bell, gate, name='USR1'))
    bell.wait()
    box.wait(job, 'running')
    box.mgpu('cancel', job, check=True)
    assert box.wait(job)['state'] == 'cancelled'  # by SIGTERM, for which it has no trap


def test_at_its_time_limit_it_is_told_and_put_back(box, gate, bell):
    job = box.submit('--checkpoint', '--grace', '30s', '-t', '1s', '--on-timeout', 'requeue', '--', *saver(bell, gate))
    bell.wait()
    started = time.monotonic()
    assert bell.wait() == 'again'
    assert 1 <= time.monotonic() - started < 10
    gate.open()
    box.wait(job)


def test_the_warning_before_its_limit_is_where_it_saves(box, gate, bell):
    job = box.submit('--checkpoint', '--signal', 'USR1@59s', '-t', '60s', '--on-timeout', 'requeue', '--',
                     *saver(bell, gate, name='USR1'))
    bell.wait()
    assert bell.wait() == 'again'
    events = [event for event in box.job(job)['events'] if event['type'] == 'requeued']
    assert [event['cause'] for event in events] == ['time_limit']
    gate.open()
    box.wait(job)


def test_a_stop_goes_on_when_the_shepherd_dies_in_it(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G')
    job = instance.submit('--checkpoint', '--grace', '30s', '--', *saver(bell, gate, wait='1'))
    bell.wait()
    instance.wait(job, 'running')
    instance.mgpu('requeue', job, check=True)
    harness.until(lambda: instance.job(job)['reason_text'], 'it is told')
    os.kill(shepherd_of(instance), signal.SIGKILL)
    asked = time.monotonic()
    assert bell.wait() == 'again'
    assert time.monotonic() - asked < 15
    gate.open()
    instance.wait(job)


# --- the examples ---

def go_on_in_the_next_attempt(box, place, example, seconds):
    script = shutil.copy(f'{harness.ROOT}/examples/{example}', place)
    job = box.submit('-C', place, '--checkpoint', '--signal', 'USR1', '--grace', '30s', '-e', f'STATE={place}/state',
                     '--', script, '20', seconds)
    harness.until(lambda: (box.job(job)['progress'] or 0) >= 0.1, 'it has begun', timeout_s=120)
    box.mgpu('requeue', job, check=True)
    over = box.wait(job, timeout_s=120)
    assert (over['state'], over['attempt'], over['progress']) == ('done', 2, 1.0), box.output(job)
    began = re.search(r'attempt 2 begins after step (\d+) of 20', box.output(job))
    assert began and int(began[1]) >= 2, box.output(job)
    assert 'done: all 20 steps' in box.output(job)
    assert not os.path.exists(f'{place}/state')


def test_the_example_goes_on_where_it_was(box, place):
    go_on_in_the_next_attempt(box, place, 'checkpoint.sh', '0.15')


@pytest.mark.skipif(not harness.has_module('torch'), reason='python3-torch is not installed')
def test_the_training_goes_on_where_it_was(box, place):
    go_on_in_the_next_attempt(box, place, 'checkpoint.py', '0.15')
