# SPDX-License-Identifier: MIT
"""--park auto: mgpud parks running jobs for shorter ones of others (docs/scheduling.md, "Short jobs go first"). The driver
is the stand-in of test_park.py; parking takes a moment there, and the times by which the rule decides are as short as
mgpud permits."""

import json
import os
import re
import subprocess

import pytest

import harness
import test_park
from proof import prove
from test_park import Cuda, await_phase, goes_on, phase, start_work

TIMES = ('--park-after', '1s', '--park-cost', '100ms', '--grace', '100ms')
LONG = ('-t', '2h')
SHORT = ('-g', '1', '-t', '4s')
RUNS = 5
SHORTER, DUE = 4, 5  # causes of parks in the journal
LONG_ENOUGH = 150  # steps of a job's work, of at least 20 ms each: with `auto` it would be parked long before


@pytest.fixture
def cuda(place):
    return Cuda(f'{place}/driver')


def start(make_instance, cuda, mode='auto', arguments=()):
    instance = make_instance(gpus='sim:1x24G', arguments=('--park', mode, *TIMES, *cuda.arguments, *arguments))
    assert prove(instance).status == 200
    return instance


def journal_events(instance, place, kind):
    """The events of this type; the scheduler decides the whole journal again."""
    path = f'{place}/journal'
    instance.mgpu('journal', 'export', '-o', path, user=instance.user, check=True)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True, text=True,
                          check=False, timeout=harness.DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(path, encoding='utf-8') as lines:
        return [event for event in map(json.loads, lines) if event.get('type') == kind]


def test_a_short_job_has_the_gpu_of_a_long_one_which_continues_where_it_was(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    long = start_work(instance, cuda, *LONG)
    short = instance.submit(*SHORT, '--', 'sleep', '1')
    await_phase(instance, long, 'waiting')
    stopped = cuda.steps()
    done = instance.wait(short)
    assert done['state'] == 'done' and done['gpus'] == instance.job(long)['gpus']
    await_phase(instance, long, None)
    assert cuda.steps() >= stopped
    goes_on(cuda)
    assert instance.job(long)['attempt'] == 1
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock']
    (park,) = journal_events(instance, place, 'park')
    assert (park['job'], park['park_guest']) == (int(long), int(short)), park


def test_a_program_reads_when_it_was_parked_and_when_it_went_on(make_instance, cuda):
    instance = start(make_instance, cuda)
    noticed = f'{cuda.folder}/noticed'
    script = (f'(while ! cat "$MGPU_NOTICES" >{noticed}.part 2>/dev/null || ! grep -q unpark {noticed}.part; do sleep 0.1; done; mv {noticed}.part {noticed}) & '
              f'exec {" ".join(cuda.work())}')
    long = instance.submit('-g', '1', *LONG, '--', 'sh', '-c', script)
    harness.until(lambda: cuda.steps() > 0, 'the job works on its GPU')
    assert instance.wait(instance.submit(*SHORT, '--', 'true'))['state'] == 'done'
    await_phase(instance, long, None)
    harness.until(lambda: os.path.exists(noticed), 'it has read that it continues')
    with open(noticed, encoding='utf-8') as source:
        lines = [line.split(' ', 2) for line in source]
    host = instance.job(long)
    times = [event['at'] for event in host['events'] if event['type'] in ('parked', 'unparked')]
    assert [word for _, word, _ in lines] == ['park', 'unpark'], lines
    assert all(abs(harness.seconds(line[0]) - harness.seconds(at)) < 1 for line, at in zip(lines, times)), (lines, times)


def why_not_parked(instance, waiting):
    """The job that comes nearest to being parked for this one, and why it is not."""
    def ask():
        parking = instance.mgpu('why', waiting, '--json', check=True).json['parking']
        shown = ' '.join(instance.mgpu('why', waiting, check=True).out.split())
        is_shown = 'Parking: ' not in shown if parking is None else f'Parking: {parking["text"]}.' in shown
        return [parking] if is_shown else None  # a second may have passed in between

    (parking,) = harness.until(ask, 'both forms say the same')
    return parking and (parking['job'], parking['text'].split(', because ', 1)[1])


@pytest.mark.parametrize('mode, options', [('asked', ()), ('never', ()), ('auto', ('--no-park',))])
def test_a_job_is_not_parked_unless_mgpud_and_the_job_permit_it(make_instance, cuda, place, mode, options):
    instance = start(make_instance, cuda, mode)
    long = start_work(instance, cuda, *LONG, *options)
    short = instance.submit(*SHORT, '--', 'true')
    harness.until(lambda: cuda.steps() > LONG_ENOUGH, 'the job has worked for long')
    assert phase(instance, long) is None and instance.job(short)['state'] == 'queued'
    assert cuda.calls() == [] and journal_events(instance, place, 'park') == []
    assert why_not_parked(instance, short) == (None if mode != 'auto' else (int(long), 'it requested that (--no-park)'))
    answer = instance.mgpu('park', long)
    if mode == 'never':
        assert answer.code != 0 and 'parks no jobs (park: never)' in answer.err, answer
    else:
        assert (answer.code == 0) == (options == ()), answer


@pytest.mark.parametrize('options, arguments, why', [
    (('--tty',), (), 'it runs on a terminal'),
    ((), ('--park-max', '1M'), 'it has up to .* of GPU memory, and node .* can keep 1 MiB for one more parked job.*'),
])
def test_what_a_node_reports_of_a_job_keeps_it_from_being_parked(make_instance, cuda, place, options, arguments, why):
    instance = start(make_instance, cuda, arguments=arguments)
    long = start_work(instance, cuda, *LONG, *options)
    harness.until(lambda: instance.job(long)['park_bar'], 'a reason')
    assert re.fullmatch(why, instance.job(long)['park_bar']), instance.job(long)['park_bar']
    short = instance.submit(*SHORT, '--', 'true')
    before = cuda.steps()
    harness.until(lambda: cuda.steps() > before + LONG_ENOUGH, 'the job has worked for long')
    assert phase(instance, long) is None and instance.job(short)['state'] == 'queued'
    assert cuda.calls() == [] and journal_events(instance, place, 'park') == []
    host, reason = why_not_parked(instance, short)
    assert host == int(long) and re.fullmatch(why, reason), (host, reason)


def test_a_job_that_refuses_to_be_parked_runs_on_and_is_not_asked_again(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    long = start_work(instance, cuda, *LONG)
    cuda.rule('fail save 801')
    short = instance.submit(*SHORT, '--', 'true')
    harness.until(lambda: instance.job(long)['park_text'], 'a reason')
    cuda.rule()
    before = cuda.steps()
    harness.until(lambda: cuda.steps() > before + LONG_ENOUGH, 'the job has worked for long')
    assert phase(instance, long) is None and instance.job(short)['state'] == 'queued'
    assert len(journal_events(instance, place, 'park')) == 1
    assert why_not_parked(instance, short)[1].startswith('a job with this command could not be parked: ')
    instance.mgpu('cancel', long, check=True)
    assert instance.wait(short)['state'] == 'done'


def test_both_jobs_say_what_happens_and_until_when(make_instance, cuda):
    instance = start(make_instance, cuda)
    told, go = f'{cuda.folder}/told', f'{cuda.folder}/go'
    long = start_work(instance, cuda, *LONG, '--notify', f'echo "$MGPU_TEXT" > {told}.part; mv {told}.part {told}',
                      '--notify-on', 'park')
    short = instance.submit('-g', '1', '-t', '5s', '--', 'sh', '-c', f'while [ ! -e {go} ]; do sleep 0.02; done')
    await_phase(instance, long, 'waiting')
    instance.wait(short, 'running')
    host = instance.job(long)
    assert (host['park_cause'], host['park_guest']) == ('shorter', int(short)), host
    ran = harness.seconds(host['parked_at']) - harness.seconds(host['started_at'])
    assert 0 < harness.seconds(host['latest_return']) - harness.seconds(host['parked_at']) <= 4 * ran + 0.5
    assert instance.job(short)['park_host'] == int(long)
    shown = instance.mgpu('show', long, check=True).out
    assert f'for job {short}, which probably ended sooner' in shown and 'back by' in shown, shown
    why = instance.mgpu('why', long, check=True).out
    assert f'It makes room for job {short}' in why and 'It has GPUs again by ' in why, why
    assert f'job {long} is parked for it' in instance.mgpu('show', short, check=True).out
    assert f'Job {long} is parked for it' in instance.mgpu('why', short, check=True).out
    harness.until(lambda: os.path.exists(told), 'its user is told')
    with open(told, encoding='utf-8') as source:
        assert f'for job {short}, which will probably end much sooner; it continues automatically' in source.read()
    with open(go, 'w', encoding='ascii'):
        pass
    await_phase(instance, long, None)
    host = instance.job(long)
    assert [host[key] for key in ('park_cause', 'park_guest', 'latest_return')] == [None] * 3, host
    assert instance.job(short)['park_host'] is None


def test_a_job_with_a_gpu_that_is_owed_gets_no_time_in_which_it_could_not_return_it(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    go = f'{cuda.folder}/go'
    long = start_work(instance, cuda, *LONG)
    short = instance.submit('-g', '1', '-t', '4s', '--no-park', '--', 'sh', '-c', f'while [ ! -e {go} ]; do sleep 0.02; done')
    await_phase(instance, long, 'waiting')
    instance.wait(short, 'running')
    for change in ('time=1h', 'time=none'):
        refused = instance.mgpu('edit', short, change, user=instance.user)
        assert refused.code == 2 and f'to which parked job {long} returns at 20' in refused.err, refused
    assert instance.job(short)['time_limit_s'] == 4
    instance.mgpu('edit', short, 'time=3.5s', check=True)
    with open(go, 'w', encoding='ascii'):
        pass
    await_phase(instance, long, None)
    assert [event['job'] for event in journal_events(instance, place, 'edited')] == [int(short)]


def test_a_command_that_refused_is_not_tried_again_until_a_park_of_it_succeeds(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    first = start_work(instance, cuda, *LONG)
    cuda.rule('fail save 801')
    short = instance.submit(*SHORT, '--', 'true')
    harness.until(lambda: instance.job(first)['park_text'], 'a reason')
    cuda.rule()
    instance.kill()
    instance.start()
    instance.mgpu('cancel', first, check=True)
    assert instance.wait(short)['state'] == 'done'
    for name in cuda.states():
        os.unlink(f'{cuda.folder}/{name}')
    second = start_work(instance, cuda, *LONG)
    third = instance.submit(*SHORT, '--', 'true')
    before = cuda.steps()
    harness.until(lambda: cuda.steps() > before + LONG_ENOUGH, 'the job has worked for long')
    assert instance.job(third)['state'] == 'queued'
    bar = instance.job(second)['park_bar']
    assert re.fullmatch(r'a job with this command could not be parked: .*; it is tried again from 20.*Z on', bar), bar
    minutes = (harness.seconds(bar.split()[-2]) - harness.seconds(instance.job(first)['events'][-1]['at'])) / 60
    assert minutes < 11, 'the first pause is ten minutes'
    assert 'not for shorter jobs: a job with this command' in instance.mgpu('show', second, check=True).out
    instance.mgpu('park', second, check=True)
    await_phase(instance, second, 'parked')
    assert instance.wait(third)['state'] == 'done'
    instance.mgpu('unpark', second, check=True)
    await_phase(instance, second, None)
    assert instance.job(second)['park_bar'] is None
    assert len(journal_events(instance, place, 'park')) == 2


@pytest.mark.parametrize('moment', ['save', 'guest', 'restore'])
@pytest.mark.parametrize('victim', ['mgpud', 'agent'])
def test_daemons_that_die_lose_nothing(make_instance, cuda, moment, victim):
    instance = start(make_instance, cuda)
    long = start_work(instance, cuda, *LONG)
    if moment != 'guest':
        cuda.rule(f'delay {moment} 700')
    go = f'{cuda.folder}/go'
    short = instance.submit('-g', '1', '-t', '5s', '--', 'sh', '-c', f'while [ ! -e {go} ]; do sleep 0.02; done')
    if moment == 'save':
        harness.until(lambda: 'save' in cuda.calls(), 'the helper saves')
    else:
        instance.wait(short, 'running')
    with open(go, 'w', encoding='ascii'):
        pass
    if moment == 'restore':
        harness.until(lambda: 'restore' in cuda.calls(), 'the helper restores')
    if victim == 'mgpud':
        instance.kill()
        instance.start()
    else:
        instance.kill_agent()
    assert instance.wait(short)['state'] == 'done'
    await_phase(instance, long, None)
    goes_on(cuda)
    assert instance.job(long)['attempt'] == 1


class Guest:
    """A program that uses CUDA, ended at once in each earlier run, and does not end this time."""

    def __init__(self, instance, cuda):
        self.instance, self.cuda, self.quick = instance, cuda, f'{cuda.folder}/quick'
        self.script = f'{cuda.folder}/guest.py'
        with open(self.script, 'w', encoding='ascii') as out:
            out.write(f'import os\nif os.path.exists({self.quick!r}):\n    raise SystemExit\n{test_park.WORK}')
        os.chmod(self.script, 0o644)
        self.finish()
        for _ in range(RUNS):  # more than the weight of what is known without them (sched/history)
            instance.wait(self.submit(), 'done')
        os.unlink(self.quick)

    def submit(self, *options):
        return self.instance.submit('-q', '-g', '1', *(options or LONG), '--', '/usr/bin/python3', self.script, self.cuda.folder)

    def refuse(self):
        """It refuses to be parked when its host is due, and starts again: the host, and the job that refused."""
        host = start_work(self.instance, self.cuda, *LONG)
        guest = self.submit()
        harness.until(lambda: len(self.cuda.states()) == 2, 'the guest works on the GPU')
        self.cuda.rule('fail save 801')
        returned_in_time(self.instance, host)
        self.cuda.rule()
        return host, guest

    def finish(self):
        """Lets those that begin be over at once."""
        with open(self.quick, 'w', encoding='ascii'):
            pass


def returned_in_time(instance, host):
    """Waits until the host is parked, and back: by the moment by which it had to be."""
    await_phase(instance, host, 'waiting')
    job = instance.job(host)
    until = harness.seconds(job['latest_return'])
    assert harness.seconds(job['eta']) <= harness.seconds(job['eta_latest']) <= until, 'the limit of its guest is much later'
    back = harness.until(lambda: [event for event in instance.job(host)['events'] if event['type'] == 'unparked'], 'its return')
    assert harness.seconds(back[0]['at']) <= until + 0.5, (back, until)


def test_a_guest_that_outlasts_the_bound_of_its_host_is_parked_in_turn(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    program = Guest(instance, cuda)
    host = start_work(instance, cuda, *LONG)
    guest = program.submit()
    returned_in_time(instance, host)
    parked = harness.until(lambda: (job := instance.job(guest))['park'] == 'waiting' and job, 'the guest is parked')
    assert (parked['park_cause'], parked['park_guest']) == ('due', None), parked
    assert parked['attempt'] == 1 and harness.seconds(parked['latest_return']) > harness.seconds(parked['parked_at'])
    shown = instance.mgpu('show', guest, check=True).out
    assert 'because its GPUs were due to a job parked before' in shown and 'back by' in shown, shown
    assert 'Its GPUs were due to a job that had been parked for it.' in instance.mgpu('why', guest, check=True).out
    instance.mgpu('cancel', host, check=True)
    await_phase(instance, guest, None)
    assert instance.job(guest)['attempt'] == 1
    causes = [(event['job'], event['park_cause']) for event in journal_events(instance, place, 'park')]
    assert causes[:2] == [(int(host), SHORTER), (int(guest), DUE)], causes


def test_a_guest_that_refuses_to_be_parked_in_turn_is_requeued(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    host, guest = Guest(instance, cuda).refuse()
    requeued = harness.until(lambda: [event for event in instance.job(guest)['events'] if event['type'] == 'requeued'], 'its guest is requeued')
    assert requeued[0]['cause'] == 'preempted', requeued
    assert instance.job(host)['attempt'] == 1
    assert [event['park_cause'] for event in journal_events(instance, place, 'park')][:2] == [SHORTER, DUE]


def events_of(instance, job, kind):
    return [event for event in instance.job(job)['events'] if event['type'] == kind]


def test_a_guest_that_has_started_again_does_so_once_and_is_not_parked_after_that(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    program = Guest(instance, cuda)
    host, guest = program.refuse()
    harness.until(lambda: events_of(instance, guest, 'requeued'), 'its guest is requeued')
    (preempted,) = events_of(instance, guest, 'preempted')
    assert (preempted['due_to'], preempted['message']) == (int(host), f'its GPUs are due to job {host}, which was parked'), preempted
    instance.kill()
    instance.start()
    assert instance.job(guest)['reclaimed_by'] == int(host)
    borrowing = instance.mgpu('why', guest, '--json', check=True).json['borrowing']
    assert borrowing.startswith(f'it started again because its GPUs were due to job {host}, which was parked'), borrowing
    assert f'Borrowing: it started again because its GPUs were due to job {host}' in ' '.join(instance.mgpu('why', guest, check=True).out.split())
    assert f'because its GPUs were due to job {host}, which was parked; this happens once' in instance.mgpu('show', guest, check=True).out
    instance.mgpu('cancel', host, check=True)
    instance.wait(guest, 'running')
    assert instance.job(guest)['park_bar'] == 'it has started again for a parked job, which happens once'
    instance.mgpu('cancel', guest, check=True)
    assert [event['job'] for event in journal_events(instance, place, 'preempted')] == [int(guest)]


def test_a_job_whose_command_refuses_borrows_the_gpu_of_a_parked_one_and_all_are_told(make_instance, cuda, place):
    instance = start(make_instance, cuda)
    program, told = Guest(instance, cuda), f'{cuda.folder}/told'
    refuses = program.submit()
    harness.until(lambda: cuda.steps() > 0, 'it works on the GPU')
    cuda.rule('fail save 801')
    instance.submit(*SHORT, '--', 'true')
    harness.until(lambda: instance.job(refuses)['park_text'], 'it has refused')
    cuda.rule()
    instance.mgpu('cancel', refuses, check=True)
    program.finish()  # so that it is believed to be quick again
    instance.wait(program.submit('-a', '0-249'), 'done', timeout_s=3 * harness.DEADLINE_S)
    os.unlink(program.quick)
    for name in cuda.states():
        os.unlink(f'{cuda.folder}/{name}')

    borrower = program.submit('--hold', '--notify', f'echo "$MGPU_TEXT" > {told}.part; mv {told}.part {told}', '--notify-on', 'start')
    unwilling = program.submit('--hold', '--no-park')
    assert 'so it may start on GPUs that are due to a parked job later' in instance.mgpu('why', borrower, '--json', check=True).json['borrowing']
    assert instance.mgpu('why', unwilling, '--json', check=True).json['borrowing'] is None
    host = start_work(instance, cuda, *LONG)
    for job in (borrower, unwilling):
        instance.mgpu('release', job, check=True)
    instance.wait(borrower, 'running', timeout_s=3 * harness.DEADLINE_S)
    job = instance.job(borrower)
    assert job['gpus_due_to'] == int(host) and harness.seconds(job['gpus_due_at']) < harness.seconds(instance.job(host)['latest_return']), job
    assert instance.job(host)['gpus_lent_to'] == int(borrower)
    assert re.search(f'due to job {host} at .*: it starts again, once, if it still runs then', ' '.join(instance.mgpu('show', borrower, check=True).out.split()))
    assert f'lent to job {borrower}' in instance.mgpu('show', host, check=True).out
    assert f'Its GPUs are due to job {host} at' in instance.mgpu('why', borrower, check=True).out
    harness.until(lambda: os.path.exists(told), 'its user is told')
    with open(told, encoding='utf-8') as source:
        assert '; it starts again, once, if it still runs at 20' in source.read()
    instance.kill()
    instance.start()
    assert instance.job(borrower)['gpus_due_to'] == int(host) and instance.job(unwilling)['state'] == 'queued'
    instance.mgpu('cancel', borrower, check=True)
    await_phase(instance, host, None)
    assert instance.job(host)['gpus_lent_to'] is None
    assert journal_events(instance, place, 'preempted') == []


def test_a_return_that_fails_for_good_ends_the_job_with_a_sentence_and_its_command_is_not_parked_again(make_instance, cuda):
    instance = start(make_instance, cuda)
    told = f'{cuda.folder}/told'
    cuda.rule('fail restore 2')
    host = start_work(instance, cuda, *LONG, '--notify', f'cat > {told}.part; mv {told}.part {told}', '--notify-on', 'fail')
    short = instance.submit(*SHORT, '--', 'true')
    done = instance.wait(host)
    sentence = f'the driver could not continue it after it was parked: {done["park_text"]}'
    assert (done['ended_by'], done['message']) == ('gpu_fault', sentence), done
    assert instance.wait(short)['state'] == 'done'
    harness.until(lambda: os.path.exists(told), 'its user is told')
    with open(told, encoding='utf-8') as source:
        assert json.load(source)['message'] == sentence
    cuda.rule()
    for name in cuda.states():
        os.unlink(f'{cuda.folder}/{name}')
    instance.kill()
    instance.start()
    again = start_work(instance, cuda, *LONG)
    waits = instance.submit(*SHORT, '--', 'true')
    harness.until(lambda: instance.job(again)['run_seconds'] > 4, 'it would have been parked')
    assert phase(instance, again) is None and instance.job(waits)['state'] == 'queued'
    bar = instance.job(again)['park_bar']
    assert bar.startswith('a job with this command was parked and could not return: '), bar
    assert prove(instance).status == 200
    assert instance.wait(waits)['state'] == 'done', 'a test that passes lets it be parked again'


@pytest.mark.parametrize('is_proven', [True, False])
def test_why_says_what_the_rule_lacks_for_a_waiting_job(make_instance, cuda, is_proven):
    instance = make_instance(gpus='sim:1x24G', arguments=('--park', 'auto', *TIMES, *cuda.arguments))
    if is_proven:
        assert prove(instance).status == 200
    first = start_work(instance, cuda, '-t', '10m')
    longer = instance.submit('-g', '1', '-t', '9m', '--', 'true')
    if not is_proven:
        short = instance.submit('-g', '1', '-t', '3s', '--', 'true')
        reason = 'its node has not passed a test of parking with this driver (mgpu gpu test --park)'
        assert why_not_parked(instance, short) == (int(first), reason)
    host, reason = why_not_parked(instance, longer)
    assert host == int(first)
    assert re.fullmatch(r'it probably ends in \S+, and this one probably needs \S+: more than 1/2 of that', reason), reason
