# SPDX-License-Identifier: MIT
"""What the scheduler promises, through the command line: shares, limits, arrays, dependencies, times, holds, edits,
pauses, reservations, and the reasons that are told for waiting."""

import json
import os
import pty
import re

import pytest

GPUS = 'sim:4x24G'  # also where the machine has real ones: the rules need a known number


def lines(text):
    return text.splitlines()


def reasons(box, job):
    return [reason['code'] for reason in box.mgpu('why', job, '--json', check=True).json['reasons']]


@pytest.fixture
def admin(box):
    """The user whose requests are an administrator's: the one that mgpud runs for."""
    return box.user


@pytest.fixture
def full(box, gate):
    """A job that has every GPU until the gate opens."""
    job = box.post_job(gate.command(), gpus=len(box.gpus()), name='full')
    box.wait(job, 'running')
    yield job
    gate.open()


# --- in general ---

@pytest.mark.parametrize('words', [
    ['why'], ['hold'], ['release'], ['edit'], ['nodes'], ['users'], ['gpu'], ['gpu', 'pause'], ['gpu', 'resume'], ['gpu', 'policy'],
    ['gpu', 'drain'],
    ['node'],
    ['node', 'drain'], ['reserve'], ['reserve', 'add'], ['reserve', 'list'], ['reserve', 'rm'], ['journal', 'export'], ['config'], ['config', 'list'], ['config', 'get'],
], ids=' '.join)
def test_every_verb_and_action_has_help(box, words):
    nowhere = {'MGPU_SOCKET': '/nonexistent/mgpud.sock'}
    page = box.mgpu(*words, '--help', env=nowhere, check=True)
    assert f'mgpu {" ".join(words)}' in page.out
    assert box.mgpu('help', *words, env=nowhere, check=True).out == page.out


def test_an_unknown_action_gets_a_suggestion(box):
    done = box.mgpu('gpu', 'paus', '0')
    assert done.code == 2 and "Did you mean 'pause'?" in done.err, done
    done = box.mgpu('reserve')
    assert done.code == 2 and 'add, list or rm' in done.err, done


@pytest.mark.parametrize('arguments, said', [
    (['submit', '-g', '1.5', '--', 'true'], 'neither a number of GPUs nor a part of a GPU'),
    (['submit', '-g', 'h200', '--', 'true'], '-g 2:h200'),
    (['submit', '-g', '2:', '--', 'true'], 'has no model'),
    (['submit', '-g', '0', '-m', '8G', '--', 'true'], 'has no effect with -g 0'),
    (['submit', '-G', '0', '--gpu-allow', '0-3', '--', 'true'], '--gpu-allow'),
    (['submit', '-N', '2', '--gpus-per-node', '2', '-g', '3', '--', 'true'], 'contradicts'),
    (['submit', '-t', '0', '--', 'true'], 'no time to run'),
    (['submit', '-t', '4 hours', '--', 'true'], 'is not a duration'),
    (['submit', '-b', '25:00', '--', 'true'], 'is not a time'),
    (['submit', '-b', '2h', '--', 'true'], '+2h'),
    (['submit', '-b', '2027-02-30', '--', 'true'], 'does not exist'),
    (['submit', '-b', '+2h', '--deadline', '+1h', '--', 'true'], '--deadline is not after --begin'),
    (['submit', '--deadline', '2020-01-01', '--', 'true'], 'deadline'),
    (['submit', '-a', '9-0', '--', 'true'], '-a: the range 9-0'),
    (['submit', '-a', '0-200000', '--', 'true'], '100000'),
    (['submit', '-A', '1:soon', '--', 'true'], "'soon'"),
    (['submit', '-A', '99999999', '--', 'true'], '99999999'),
    (['submit', '-c', 'many', '--', 'true'], 'not a number of CPUs'),
    (['submit', '-M', '1X', '--', 'true'], 'is not a size'),
    (['submit', '-g', '1:nosuchmodel', '--', 'true'], 'nosuchmodel'),
    (['reserve', 'add', '--gpus', '1', '--for', '1h'], '--users'),
    (['reserve', 'add', '--gpus', '1', '--gpu-ids', '0', '--users', 'root', '--for', '1h'], 'cannot be combined'),
    (['gpu', 'pause'], 'no GPU given'),
    (['pause', 'x'], "'x' is not a GPU"),
    (['gpu', 'policy', '0'], 'no policy given'),
    (['gpu', 'policy', '0', 'foo'], "'foo' is not a policy"),
    (['gpu', 'policy', 'ignore'], 'no GPU given'),
    (['gpu', 'pause', '0', '--until', '2020-01-01'], 'has already passed'),
    (['node', 'drain'], 'no node given'),
], ids=lambda value: ' '.join(value) if isinstance(value, list) else '')
def test_a_mistake_is_one_clear_sentence(box, arguments, said):
    done = box.mgpu(*arguments)
    assert done.code in (2, 3) and done.out == '' and said in done.err, done
    assert len(lines(done.err)) <= 2 and lines(done.err)[0].startswith('mgpu '), done
    assert box.open_jobs() == []


def test_the_output_of_an_array_is_not_for_the_foreground(box):
    done = box.mgpu('run', '-a', '0-3', '--', 'true')
    assert done.code == 125 and 'mgpu submit -a' in done.err, done


# --- requests ---

def test_shares_fill_one_gpu_and_not_more(box, gate):
    jobs = [box.submit('-g', '0.5', '-G', '0', '--', *gate.command()) for _ in range(3)]
    for job in jobs[:2]:
        box.wait(job, 'running')
    assert box.job(jobs[2])['state'] == 'queued'
    assert box.mgpu('ps', '-H', '-o', 'gpus', jobs[0], check=True).out.strip() == '0.5'
    gate.open(3)
    for job in jobs:
        assert box.wait(job)['state'] == 'done'


def test_only_the_gpus_allowed_are_given(box):
    job, _ = box.run_job(['true'], gpus=2, gpu_allow='1,3')
    assert sorted(gpu['index'] for gpu in job['granted']) == [1, 3]


def test_a_model_is_given_by_a_part_of_its_name(box):
    model = box.gpus()[0]['model']
    job = box.wait(box.submit('-g', f'1:{model}', '--', 'true'))
    assert job['state'] == 'done' and job['gpu_model'] == model


def test_gpus_may_be_named_with_their_node(box):
    node = box.gpus()[0]['node']
    job = box.wait(box.submit('-G', f'{node}:2,0', '--', 'true'))
    assert [gpu['index'] for gpu in job['granted']] == [2, 0]


def test_every_option_reaches_the_job(box):
    job = box.mgpu('submit', '--json', '--hold', '-g', '2', '-c', '0.5', '-M', '512M', '-t', '90m', '-b',
                   '2030-01-02T03:04:05Z', '--deadline', '2030-01-03T00:00:00Z', '--preemptible', '--gpu-allow', '0-3', '--',
                   'true', check=True).json
    assert (job['gpus'], job['cpus'], job['memory'], job['time_limit_s']) == (2, 0.5, 512 << 20, 5400)
    assert job['begin_at'].startswith('2030-01-02T03:04:05') and job['deadline_at'].startswith('2030-01-03T00:00:00')
    assert job['preemptible'] is True and job['gpu_allow'] == '0-3' and job['hold'] == 'user'


# --- limits and times ---

def test_a_time_limit_ends_the_job_with_124(box, gate):
    done = box.mgpu('run', '-t', '200ms', '--', *gate.command())
    assert done.code == 124 and 'time limit' in done.err, done
    gate.open()


def test_a_time_limit_is_kept_to_a_tenth_of_a_second(box):
    """On a machine that is free for a moment. On a busy one the kernel wakes a shepherd later, but not each of five by seconds."""
    jobs = [box.submit('-g', 0, '-t', '700ms', '--', 'sleep', '600') for _ in range(5)]
    late = [box.wait(job)['run_seconds'] - 0.7 for job in jobs]
    assert min(late) <= 0.1 and sorted(late)[2] <= 0.5, late


def test_no_job_is_ended_before_its_time(box):
    """The limit is of the time that is shown: it runs from the same moment, also when a busy machine lets the command begin late."""
    for limit_ms in (1, 50):
        jobs = [box.submit('-g', 0, '-t', f'{limit_ms}ms', '--', 'sleep', '600') for _ in range(40)]
        assert [job for job in map(box.wait, jobs) if job['run_seconds'] < limit_ms / 1000] == []


def test_no_forecast_begins_before_the_begin_time(box):
    job = box.submit('-b', '+2h', '--', 'true')
    why = box.api('GET', f'/jobs/{job}/why').json
    assert why['eta_from'] >= box.job(job)['begin_at'] and why['eta_until'] >= why['eta_from'], why


def test_a_job_without_gpus_does_not_wait_for_a_paused_one(box):
    cpus = box.api('GET', '/nodes').json['nodes'][0]['cpus']
    box.mgpu('gpu', 'pause', '0', user=box.user, check=True)
    try:
        box.post_job(['sleep', '600'], gpus=0, cpus=cpus)
        why = box.api('GET', f'/jobs/{box.post_job(["true"], gpus=0, cpus=cpus)}/why').json
        assert [reason['code'] for reason in why['reasons']].count('gpu_paused') == 0 and why['reasons'], why
    finally:
        box.mgpu('gpu', 'resume', '0', user=box.user, check=True)


def test_a_job_does_not_begin_before_its_time(box):
    job = box.submit('-b', '+1h', '--', 'true')
    assert 'begin_time' in reasons(box, job)
    box.mgpu('edit', job, 'begin=', check=True)
    assert box.wait(job)['state'] == 'done'


def test_a_deadline_that_passes_gives_the_job_up(box, full):
    job = box.submit('--deadline', '+1', '--', 'true')
    done = box.wait(job)
    assert (done['state'], done['ended_by']) == ('failed', 'deadline')
    assert box.mgpu('wait', job).code == 125


def test_a_job_above_its_owners_limit_is_refused(make_instance):
    instance = make_instance(gpus='sim:4x8G', arguments=['--user-max-gpus', '2', '--group-max-gpus', '3'])
    done = instance.mgpu('submit', '-g', '3', '--', 'true')
    assert done.code == 2 and 'requested 3 GPUs; the limit of its owner is 2' in done.err, done
    assert '--user-max-gpus' in done.err
    job = instance.submit('-g', '2', '--', 'true')
    assert instance.wait(job)['state'] == 'done'


# --- dependencies ---

def test_a_job_waits_for_another_and_for_how_it_ends(box, gate):
    first = box.submit('-J', 'first', '--', *gate.command('exit 3'))
    box.wait(first, 'running')
    good = box.submit('-A', 'first', '--', 'true')
    any_end = box.submit('-A', f'{first}:any', '--', 'true')
    fail = box.submit('--after', f'{first}:fail', '--', 'true')
    assert 'dependency' in reasons(box, any_end) and str(first) in box.mgpu('why', any_end, check=True).out
    gate.open()
    assert box.wait(any_end)['state'] == 'done' and box.wait(fail)['state'] == 'done'
    assert reasons(box, good) == ['dependency_never'] and 'never' in box.mgpu('why', good, check=True).out
    box.mgpu('edit', good, 'after=', check=True)
    assert box.wait(good)['state'] == 'done'


def test_a_job_can_ask_to_be_given_up_with_its_dependency(box, gate):
    first = box.submit('--', *gate.command('exit 3'))
    job = box.submit('-A', first, '--cancel-if-never', '--', 'true')
    last = box.submit('-A', f'{job}:fail', '--', 'true')
    assert 'ended if its dependency can never' in ' '.join(box.mgpu('show', job, check=True).out.split())
    gate.open()
    done = box.wait(job)
    assert (done['state'], done['ended_by'], done['cancel_if_never']) == ('failed', 'dependency', True)
    assert 'can never be satisfied' in box.mgpu('show', job, check=True).out
    assert box.mgpu('wait', job).code == 125
    assert box.wait(last)['state'] == 'done'


def test_a_circle_of_dependencies_is_refused(box):
    first = box.submit('--hold', '--', 'true')
    second = box.submit('-A', first, '--', 'true')
    done = box.mgpu('edit', first, f'after={second}')
    assert done.code == 2 and str(second) in done.err, done
    assert box.mgpu('edit', first, f'after={first}').code == 2


# --- arrays ---

def test_an_array_runs_every_element_once(box, place):
    array = box.submit('-a', '0-9:3', '-J', 'sweep', '--', 'sh', '-c', f'echo $MGPU_ARRAY_INDEX >> {place}/seen')
    done = box.wait(array)
    assert (done['state'], done['exit_code']) == ('done', 0)
    with open(f'{place}/seen', encoding='ascii') as seen:
        assert sorted(int(line) for line in seen) == [0, 3, 6, 9]
    element = box.mgpu('show', f'{array}.3', '--json', check=True).json
    assert (element['array_job'], element['array_index'], element['name']) == (array, 3, 'sweep')


def test_an_array_runs_no_more_at_a_time_than_it_says(box, gate):
    array = box.submit('-g', '0', '-a', '0-5%2', '-J', 'few', '--', *gate.command())
    for index in (0, 1):
        box.wait(f'{array}.{index}', 'running')
    rows = [row.split() for row in lines(box.mgpu('ps', '-H', '-o', 'id,state', '-n', 'few', check=True).out)]
    assert [row[0] for row in rows if row[1] == 'running'] == [f'{array}.0', f'{array}.1'], rows
    assert 'few [2-5]' in box.mgpu('ps', array, check=True).out
    gate.open(6)
    assert box.wait(array)['state'] == 'done'


def test_an_element_that_was_held_and_released_waits_for_the_others(box, gate):
    array = box.submit('-g', '0', '-a', '0-3%2', '--', *gate.command())
    for index in (0, 1):
        box.wait(f'{array}.{index}', 'running')
    box.mgpu('hold', f'{array}.3', check=True)
    box.mgpu('release', f'{array}.3', check=True)
    assert box.job(f'{array}.3')['state'] == 'queued'
    assert '2 elements of this array run (its limit)' in box.mgpu('why', f'{array}.3', check=True).out
    gate.open()
    box.wait(f'{array}.3', 'running')
    gate.open(3)
    assert box.wait(array)['state'] == 'done'


def test_cancelling_an_array_ends_what_is_left_of_it(box, gate):
    array = box.submit('-g', '0', '-a', '0-9%1', '--', *gate.command())
    box.wait(f'{array}.0', 'running')
    box.mgpu('cancel', array, check=True)
    assert box.wait(array)['state'] == 'cancelled'
    assert box.wait(f'{array}.0')['state'] == 'cancelled'
    gate.open()


def test_an_array_that_runs_as_a_whole_is_cancelled_as_a_whole(box, gate):
    array = box.submit('-g', '0', '-a', '0-1', '--', *gate.command())
    for index in (0, 1):
        box.wait(f'{array}.{index}', 'running')
    box.mgpu('cancel', array, check=True)
    done = box.wait(array)
    assert (done['state'], done['ended_by']) == ('cancelled', 'cancelled')
    gate.open()


def test_cancelling_everything_starts_nothing_and_is_no_error(box, gate):
    array = box.submit('-g', '0', '-a', '0-9%2', '--', *gate.command())
    after = box.submit('-g', '0', '-a', '0-3', '-A', f'{array}:any', '--', 'true')
    for index in (0, 1):
        box.wait(f'{array}.{index}', 'running')
    done = box.mgpu('cancel', '-y', '--all', check=True)
    assert done.err == '', done
    assert box.wait(array)['state'] == 'cancelled' and box.wait(after)['state'] == 'cancelled'
    events = [event['type'] for event in box.job(after)['events']]
    assert 'split' not in events and events[0] == 'submitted', events
    gate.open(2)


def test_why_names_the_element_that_is_ahead(box, gate):
    array = box.submit('-g', '4', '-a', '0', '-t', '1h', '--', *gate.command())
    box.wait(f'{array}.0', 'running')
    job = box.submit('--', 'true')
    ahead = box.mgpu('why', job, '--json', check=True).json['ahead'][0]
    assert (ahead['array_job'], ahead['array_index'], ahead['gpus'], ahead['gpu_share']) == (array, 0, 4, None)
    assert f'{array}.0  ' in box.mgpu('why', job, check=True).out
    gate.open()
    box.wait(job)


def test_an_element_has_one_number_and_nothing_of_its_array_waits(box, gate):
    array = box.submit('-g', '2', '-a', '0-1', '-t', '1h', '-J', 'pair', '--', *gate.command())
    elements = [f'{array}.{index}' for index in (0, 1)]
    for element in elements:
        box.wait(element, 'running')
    assert box.mgpu('gpus', '-H', '-o', 'job', check=True).out.split() == [elements[0]] * 2 + [elements[1]] * 2
    on_gpu = box.api('GET', '/gpus').json['gpus'][3]['jobs'][0]
    assert (on_gpu['array_job'], on_gpu['array_index'], on_gpu['adopted_pid']) == (array, 1, None)
    picture = box.mgpu('top', '--once', '--size', '80x24', check=True).out.splitlines()
    assert ' 2 run 0 wait' in picture[0], picture[0]
    assert [re.match(r'│ \d (\S+) ', line)[1] for line in picture[2:6]] == [elements[0]] * 2 + [elements[1]] * 2
    shown = box.mgpu('show', array, check=True).out
    assert re.search(r'^state +all its elements have started$', shown, re.M), shown
    assert 'queued' not in shown.split('events')[0] and 'predicted' not in shown and 'waits' not in shown, shown
    gate.open(2)
    box.wait(array)


@pytest.mark.parametrize('after, kind', [('{0}.1', 'ok'), ('{0}.1:any', 'any'), ('{0}.2:fail', 'fail'), ('{0}.1:start', 'start'), ('{0}.1,{0}.2:any', 'ok'),
                                         ('{0}.3?{0}.1', 'ok'), ('edit {0}.1', 'ok')])
def test_a_job_after_a_waiting_element_waits_for_that_one_alone(box, after, kind):
    array = box.submit('-g', '0', '-a', '0-3', '--hold', '--', 'exit $((MGPU_ARRAY_INDEX == 2))')
    if after.startswith('edit '):
        job = box.submit('-g', '0', '--hold', '--', 'true')
        box.mgpu('edit', job, 'after=' + after.split()[1].format(array), check=True)
        box.mgpu('release', job, check=True)
    else:
        job = box.submit('-g', '0', '-A', after.format(array), '--', 'true')
    assert f'{array}:' not in box.job(job)['after'] and kind in box.job(job)['after']
    named = box.job(job)['after_shown']
    assert all(f'{array}.{index}:' in named for index in (1, 2, 3) if f'.{index}' in after), named
    assert named in box.mgpu('show', job, check=True).out
    assert box.job(job)['state'] == 'queued'
    for index in (1, 2):
        if f'.{index}' in after:
            box.mgpu('release', f'{array}.{index}', check=True)
            box.wait(f'{array}.{index}')
    assert box.wait(job)['state'] == 'done'
    assert box.job(array)['state'] == 'queued' and box.mgpu('ps', '-H', '-o', 'id', f'{array}.0', check=True).out.split()[0].startswith(str(array))
    box.mgpu('cancel', array, check=True)


@pytest.mark.root
def test_a_waiting_element_of_another_user_is_no_dependency(box, bo):
    array = box.submit('-g', '0', '-a', '0-3', '--hold', '--', 'true')
    done = box.mgpu('submit', '-g', '0', '-A', f'{array}.1', '--', 'true', user=bo)
    assert done.code != 0 and f'{array}.1 has not started, and only its owner can wait for it alone' in done.err, done
    job = int(box.mgpu('submit', '-q', '-g', '0', '-A', f'{array}:any', '--', 'true', user=bo, check=True).out)
    box.mgpu('cancel', array, check=True)
    assert box.wait(job)['state'] == 'done'


def test_a_job_after_an_array_waits_for_all_of_it(box, gate):
    array = box.submit('-g', '0', '-a', '0-2', '--', *gate.command())
    after = box.submit('-g', '0', '-A', array, '--', 'true')
    gate.open(2)
    assert box.job(after)['state'] == 'queued'
    gate.open()
    assert box.wait(after)['state'] == 'done'


# --- hold, release, edit ---

def test_a_held_job_waits_until_it_is_released(box):
    job = box.submit('--hold', '--', 'true')
    assert 'held_user' in reasons(box, job)
    assert box.mgpu('ps', '-H', '-o', 'state', job, check=True).out == 'held\n'
    assert box.mgpu('ps', '-H', '-o', 'id', '-s', 'held', check=True).out.split() == [str(job)]
    box.mgpu('release', job, check=True)
    assert box.wait(job)['state'] == 'done'
    assert box.mgpu('hold', job).code == 6


def test_a_waiting_job_is_held_and_released(box, full):
    job = box.submit('--', 'true')
    box.mgpu('hold', job, check=True)
    assert 'held_user' in reasons(box, job)
    box.mgpu('release', job, check=True)
    assert 'held_user' not in reasons(box, job)


def test_an_array_whose_elements_are_all_jobs_holds_and_releases_those_that_wait(box, gate):
    array = box.submit('-g', '1', '-a', f'1-{len(box.gpus())}', '--', *gate.command())
    for index in range(len(box.gpus())):
        box.wait(f'{array}.{index + 1}', 'running')
    assert box.mgpu('hold', array).code == 6, 'none of them waits'
    other, again = box.submit('-g', '1', '--', *gate.command()), f'{array}.1'
    box.mgpu('requeue', again, check=True)
    box.wait(other, 'running')
    assert 'held_user' not in reasons(box, again)
    box.mgpu('hold', array, check=True)
    assert 'held_user' in reasons(box, again)
    assert box.job(f'{array}.2')['state'] == 'running'
    box.mgpu('release', array, check=True)
    assert 'held_user' not in reasons(box, again)
    box.mgpu('cancel', array, other, check=True)
    box.wait(array)


@pytest.mark.root
def test_what_an_administrator_holds_its_owner_cannot_release(box, full, ana, admin):
    job = box.submit('--', 'true', user=ana)
    box.mgpu('hold', job, user=admin, check=True)
    assert 'held_admin' in reasons(box, job)
    assert box.mgpu('release', job, user=ana).code == 4
    box.mgpu('release', job, user=admin, check=True)
    assert 'held_admin' not in reasons(box, job)


def test_edit_changes_what_a_waiting_job_asks_for(box, full):
    job = box.submit('-g', '4', '-t', '1h', '--', 'true')
    box.mgpu('edit', job, 'gpus=2', 'time=', 'priority=-5', 'name=smaller', check=True)
    changed = box.job(job)
    assert (changed['gpus'], changed['time_limit_s'], changed['priority'], changed['name']) == (2, None, -5, 'smaller')
    box.mgpu('edit', job, 'gpus=', check=True)
    assert box.job(job)['gpus'] == 1, 'the default of -g'
    assert box.mgpu('edit', full, 'gpus=1').code == 6


def test_an_unknown_key_gets_the_nearest_one(box):
    done = box.mgpu('edit', '1', 'gpuz=1')
    assert done.code == 2 and "Did you mean 'gpus'?" in done.err, done
    assert box.mgpu('edit', '1').code == 2
    assert box.mgpu('edit', 'gpus=1').code == 2
    assert box.mgpu('edit', '1', 'gpus=1', 'gpus=2').code == 2


def test_an_edit_that_can_never_be_met_changes_nothing(box, full):
    job = box.submit('-g', '1', '--', 'true')
    assert box.mgpu('edit', job, 'gpus=5').code == 2
    assert box.job(job)['gpus'] == 1


# --- the output of each attempt ---

ATTEMPTS = 'echo out $MGPU_ATTEMPT; [ $MGPU_ATTEMPT = 2 ] || exit 9'


def test_a_job_that_waits_to_be_tried_again_has_the_output_of_the_attempt_that_failed(box, gate):
    job = box.submit('-q', '-g', '0', '--retry', '1', '--retry-on', '9', '--', 'sh', '-c', f'{ATTEMPTS}; {gate.command()[2]}')
    box.await_news(lambda: box.job(job)['retry_at'] is not None)
    assert box.mgpu('logs', job, check=True).out == 'out 1\n'
    box.wait(job, 'running')
    first = box.api('GET', f'/jobs/{job}/log?attempt=1&follow=1&wait=1')
    assert (first.status, first.body) == (200, b'out 1\n'), first
    gate.open()
    box.wait(job)
    assert box.mgpu('logs', job, check=True).out == 'out 2\n'


def test_the_output_of_a_requeued_attempt_is_known_after_a_restart(make_instance, gate):
    box = make_instance()
    job = box.submit('-q', '-g', '0', '--', 'sh', '-c', f'echo out $MGPU_ATTEMPT; {gate.command()[2]}')
    box.wait(job, 'running')
    box.await_news(lambda: box.mgpu('logs', job, check=True).out)
    assert box.api('POST', f'/jobs/{job}/requeue', {'hold': True}).status == 200
    box.wait(job, 'queued')
    box.kill()
    box.start()
    assert box.job(job)['state'] == 'queued'
    assert box.mgpu('logs', job, check=True).out == 'out 1\n'
    gate.open()
    box.mgpu('release', job, check=True)
    box.wait(job)
    first = [box.api('GET', f'/jobs/{job}/log?attempt=1').body for box in (box, box.restart())]
    assert first == [b'out 1\n'] * 2, first
    assert box.mgpu('logs', job, check=True).out == 'out 2\n'


def test_who_follows_a_job_gets_the_output_of_an_attempt_that_was_over_at_once(box):
    for _ in range(5):
        done = box.mgpu('run', '-q', '-g', '0', '--retry', '1', '--retry-on', '9', 'sh', '-c', ATTEMPTS)
        assert (done.code, done.out) == (0, 'out 1\nout 2\n'), done


# --- why ---

def test_why_names_who_is_in_the_way_and_what_would_help(box, gate):
    first = box.submit('-g', '3', '-t', '1h', '-J', 'wide', '--', *gate.command())
    box.wait(first, 'running')
    job = box.submit('-g', '2', '-J', 'mine', '--', 'true')
    why = box.mgpu('why', job, '--json', check=True).json
    assert why['schema'] == 'mgpu/v1' and why['job'] == job and why['starts_now'] is False
    assert why['reasons'][0]['code'] == 'resources' and why['reasons'][0]['jobs'] == [first]
    assert why['eta'] and why['eta_basis'] and why['eta_latest'] and why['eta_latest_basis']
    assert why['change']['edit'] == {'gpus': 1}
    said = box.mgpu('why', 'mine', check=True).out
    assert f'Job {job} (mine) has waited' in said and '1. Resources' in said and f'mgpu edit {job} gpus=1' in said
    shown = box.mgpu('ps', '-H', '-o', 'reason,left,why', job, check=True).out.split()
    assert shown[0] == 'resources' and shown[1].startswith('~')
    assert '1. Resources' in box.mgpu('show', job, check=True).out
    gate.open()
    box.wait(job)


def test_ps_and_why_say_by_which_rule_another_job_is_ahead(box, full, gate):
    long = box.submit('-g', '4', '-t', '10h', '-J', 'long', '--', 'true')
    short = box.submit('-g', '4', '-t', '1m', '-J', 'short', '--', *gate.command())
    shown = box.mgpu('ps', '-H', '-o', 'why', long, check=True).out
    assert re.search(rf'; after job {short}, which is expected to take \d+m?[\ds]*, this one \d+[hm]', shown), shown
    assert 'after job' not in box.mgpu('ps', '-H', '-o', 'why', short, check=True).out
    said = ' '.join(box.mgpu('why', '-v', long, check=True).out.split())
    assert f'expected to be shorter (job {short}: ' in said, said
    assert '(12d12h after it, 30 times its time limit) in any case' in said, said
    why = box.mgpu('why', short, '--json', check=True).json
    assert why['overtaken_until'] <= why['promised_until'] and why['promise_basis'] == '30m00s after it, 30 times its time limit', why
    box.mgpu('cancel', long, short, check=True)


def test_a_forecast_without_a_limit_has_no_latest_time(box, full):
    job = box.submit('--', 'true')
    why = box.mgpu('why', job, '--json', check=True).json
    assert why['eta_latest'] is None and str(full) in why['eta_latest_basis']


def test_why_of_a_job_that_does_not_wait(box):
    job = box.wait(box.submit('-J', 'quick', '--', 'true'))['id']
    done = box.mgpu('why', job, check=True)
    assert f'Job {job} (quick) has ended: exit 0' in done.out
    assert box.mgpu('why', '99999999').code == 3


def test_a_dry_run_makes_no_job(box):
    before = box.mgpu('ps', '-a', '--json', check=True).json['jobs']
    done = box.mgpu('submit', '--dry-run', '-g', '2', '--', 'true', check=True)
    assert 'It would start now' in done.out
    assert box.mgpu('run', '--dry-run', '--json', '--', 'true', check=True).json['starts_now'] is True
    assert len(box.mgpu('ps', '-a', '--json', check=True).json['jobs']) == len(before)
    assert box.mgpu('submit', '--dry-run', '-g', '5', '--', 'true').code == 2


def test_a_dry_run_says_what_would_block(box, full):
    done = box.mgpu('submit', '--dry-run', '-g', '2', '--', 'true', check=True)
    assert 'It would wait' in done.out and 'Resources' in done.out, done


# --- GPUs, nodes, reservations, users, the journal ---

def test_nothing_starts_on_a_paused_gpu(box, admin):
    box.mgpu('pause', '0', '--reason', 'fan', user=admin, check=True)
    try:
        assert box.gpus()[0]['state'] == 'paused'
        assert 'paused: fan' in box.mgpu('gpus', check=True).out
        job = box.submit('-G', '0', '--', 'true')
        assert 'gpu_paused' in reasons(box, job) and 'fan' in box.mgpu('why', job, check=True).out
    finally:
        box.mgpu('resume', '0', user=admin, check=True)
    assert box.wait(job)['state'] == 'done'


def test_a_pause_ends_by_itself(box, admin):
    box.mgpu('gpu', 'pause', '1', '--until', '+1', user=admin, check=True)
    job = box.submit('-G', '1', '--', 'true')
    assert box.wait(job)['state'] == 'done'


def test_a_pause_outlives_a_restart(make_instance):
    instance = make_instance(gpus='sim:2x8G')
    admin = instance.user
    instance.mgpu('gpu', 'pause', '0', '--reason', 'fan', '--until', '+1h', user=admin, check=True)
    before = instance.gpus()[0]
    instance.restart()
    after = instance.gpus()[0]
    assert after['state'] == 'paused' and after['reason'] == 'fan' and after['until'] == before['until'] is not None
    why = instance.mgpu('submit', '--dry-run', '--json', '-G', '0', '--', 'true', check=True).json
    paused = next(reason for reason in why['reasons'] if reason['code'] == 'gpu_paused')
    assert 'fan' in paused['text'] and paused['until'] == before['until']


def test_a_drain_returns_when_nothing_runs_there(box, admin, gate):
    jobs = [box.post_job(gate.command(), gpu_ids='0', gpu_mem='1G') for _ in range(2)]
    for job in jobs:
        box.wait(job, 'running')
    node = box.gpus()[0]['node']
    draining = box.popen('gpu', 'drain', '--wait', '--reason', 'fan', '1-2', f'{node}:0', user=admin)
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus[:3]] == ['paused'] * 3)
    late = box.post_job(['true'], gpu_ids='0')
    for number in range(2):
        assert draining.poll() is None, f'{2 - number} jobs are still there'
        gate.open()
        box.wait(jobs[number]) if number == 1 else box.api('GET', '/gpus')
    try:
        assert draining.wait(30) == 0, draining.stderr.read()
        assert [gpu['state'] for gpu in box.gpus()] == ['paused'] * 3 + ['free']
        assert box.job(late)['state'] == 'queued'
    finally:
        draining.communicate()
        box.mgpu('gpu', 'resume', '0-2', user=admin, check=True)
    assert box.wait(late)['state'] == 'done'
    assert box.mgpu('gpu', 'drain', '--wait', '0', user=admin).code == 0, 'nothing is there'
    box.mgpu('resume', '0', user=admin, check=True)


def test_a_node_is_drained_of_jobs_without_gpus_too(make_instance, gate):
    instance = make_instance(gpus='sim:2x8G')
    job = instance.post_job(gate.command(), gpus=0)
    instance.wait(job, 'running')
    node = instance.gpus()[0]['node']
    draining = instance.popen('node', 'drain', '--wait', node, user=instance.user)
    next(event for event in instance.events(after=0)
         if event['data']['type'] == 'cluster' and event['data']['change'] == 'node_drain')
    assert draining.poll() is None
    gate.open()
    assert draining.wait(30) == 0, draining.stderr.read()
    draining.communicate()
    assert instance.job(job)['state'] == 'done'


def test_a_drain_on_a_terminal_names_the_jobs_for_which_it_waits(make_instance, gate):
    instance = make_instance(gpus='sim:2x8G')
    job = instance.post_job(gate.command(), gpus=0)
    instance.wait(job, 'running')
    primary, secondary = pty.openpty()
    draining = instance.popen('node', 'drain', '--wait', instance.gpus()[0]['node'], user=instance.user, stderr=secondary)
    os.close(secondary)
    assert f'mgpu: waiting for the end of job {job}; no new jobs start there' in os.read(primary, 4096).decode()
    gate.open()
    assert draining.wait(30) == 0
    draining.communicate()
    os.close(primary)


def test_pausing_needs_an_existing_gpu(box, admin):
    assert box.mgpu('gpu', 'pause', '77', user=admin).code == 3
    assert box.mgpu('gpu', 'drain', '--wait', '0,77', user=admin).code == 3
    assert all(gpu['state'] == 'free' for gpu in box.gpus()), 'all or none'
    assert box.mgpu('gpu', 'drain', '--wait', 'nowhere:0', user=admin).code == 3
    assert box.mgpu('gpu', 'resume', '77', user=admin).code == 3
    assert box.mgpu('gpu', 'policy', '77', 'ignore', user=admin).code == 3
    assert box.mgpu('node', 'drain', 'nowhere', user=admin).code == 3


@pytest.mark.root
def test_only_administrators_pause_drain_reserve_and_export(box, ana):
    node = box.gpus()[0]['node']
    for words in (['pause', '0'], ['gpu', 'drain', '--wait', '0'], ['gpu', 'resume', '0'], ['gpu', 'policy', '0', 'ignore'], ['node', 'drain', node], ['journal', 'export'],
                  ['reserve', 'add', '--gpus', '1', '--users', ana.name, '--for', '1h']):
        done = box.mgpu(*words, user=ana)
        assert done.code == 4 and done.out == '', done


def test_a_drained_node_starts_nothing(box, admin):
    node = box.gpus()[0]['node']
    box.mgpu('node', 'drain', node, '--reason', 'kernel', user=admin, check=True)
    try:
        assert 'drained: kernel' in box.mgpu('nodes', check=True).out
        job = box.submit('-g', '0', '--', 'true')
        assert 'node_drained' in reasons(box, job)
    finally:
        box.mgpu('node', 'resume', node, user=admin, check=True)
    assert box.wait(job)['state'] == 'done'
    assert box.mgpu('nodes', 'nowhere').code == 3


def test_a_reservation_keeps_gpus_for_its_users(box, admin):
    done = box.mgpu('reserve', 'add', '--gpus', '4', '--users', 'nobody', '--for', '1h', '--name', 'course', user=admin,
                    check=True)
    number = done.out.strip()
    assert re.fullmatch(r'\d+', number), done
    try:
        row = box.mgpu('reserve', 'list', '--json', check=True).json['reservations'][0]
        assert (str(row['id']), row['name'], row['gpus'], row['users']) == (number, 'course', 4, ['nobody'])
        assert 'course' in box.mgpu('reserve', 'list', check=True).out and row['gpu_ids'].endswith(':0-3')
        job = box.submit('--', 'true')
        assert 'reservation' in reasons(box, job)
    finally:
        box.mgpu('reserve', 'rm', number, user=admin, check=True)
    assert box.wait(job)['state'] == 'done'
    assert box.mgpu('reserve', 'rm', number, user=admin).code == 3


def test_an_action_of_another_program_is_answered_with_that_of_this_one(box):
    for words, here in ((['config', 'set', 'max-time', '1d'], 'mgpud --reload'), (['node', 'remove', 'gpu1'], 'mgpu node forget')):
        done = box.mgpu(*words)
        assert done.code == 2 and 'hint: here: ' in done.err and here in done.err and 'Did you mean' not in done.err, done


def test_a_reservation_is_removed_by_its_name_if_no_other_has_it(box, admin):
    numbers = [box.mgpu('reserve', 'add', '--gpus', '1', '--users', 'nobody', '--from', start, '--for', '1h', '--name', name, user=admin,
                        check=True).out.strip() for start, name in (('+2d', 'course'), ('+4d', 'twin'), ('+6d', 'twin'))]
    box.mgpu('reserve', 'rm', 'course', user=admin, check=True)
    unknown = box.mgpu('reserve', 'rm', 'course', user=admin)
    assert unknown.code == 3 and 'there is no reservation named course' in unknown.err and 'mgpu reserve list' in unknown.err, unknown
    several = box.mgpu('reserve', 'rm', 'twin', user=admin)
    assert several.code == 2 and f'2 reservations are named twin: {numbers[1]}, {numbers[2]}' in several.err, several
    box.mgpu('reserve', 'rm', *numbers[1:], user=admin, check=True)


def test_reservations_in_the_past_or_too_large_are_refused(box, admin):
    for words in (['--gpus', '1', '--from', '2020-01-01', '--for', '1h'], ['--gpus', '5', '--for', '1h'],
                  ['--gpu-ids', '9', '--for', '1h']):
        done = box.mgpu('reserve', 'add', '--users', 'nobody', *words, user=admin)
        assert done.code in (2, 3) and len(lines(done.err)) <= 2, done


def test_reservations_are_listed_with_their_days_in_order(box, admin):
    numbers = [box.mgpu('reserve', 'add', '--gpus', '1', '--users', 'nobody', '--from', start, '--for', '1h', user=admin,
                        check=True).out.strip() for start in ('+9d', '+2d', '+5d')]
    try:
        rows = [row.split() for row in box.mgpu('reserve', 'list', '-H', check=True).out.splitlines()]
        assert [row[0] for row in rows] == [numbers[1], numbers[2], numbers[0]], rows
        assert all(re.search(r' 20\d\d-\d\d-\d\d \d\d:\d\d 20\d\d-\d\d-\d\d \d\d:\d\d ', ' '.join(row)) for row in rows), rows
        listed = box.mgpu('reserve', 'list', '-H', '--sort', 'id', check=True).out.splitlines()
        assert [row.split()[0] for row in listed] == sorted(numbers, key=int)
    finally:
        box.mgpu('reserve', 'rm', *numbers, user=admin, check=True)


def test_reservations_do_not_overlap(box, admin):
    def add(*words):
        return box.mgpu('reserve', 'add', '--users', 'nobody', '--from', '+10h', '--for', '1h', *words, user=admin)
    first = add('--gpu-ids', '0,1')
    assert first.code == 0, first
    try:
        done = add('--gpu-ids', '1,2')
        assert done.code in (2, 6) and f'{box.gpus()[1]["node"]}:1' in done.err, done
        assert 'mgpu reserve list' in done.err, done
        assert add('--gpus', '3').code in (2, 6)
    finally:
        box.mgpu('reserve', 'rm', first.out.strip(), user=admin, check=True)


def test_users_shows_who_uses_what(box, gate):
    job = box.post_job(gate.command(), gpus=2)
    box.wait(job, 'running')
    rows = box.mgpu('users', '--json', check=True).json['users']
    mine = next(row for row in rows if row['user'] == box.client.name)
    assert (mine['running'], mine['gpus']) == (1, 2) and 0 <= mine['factor'] <= 1
    assert box.client.name in box.mgpu('users', check=True).out
    gate.open()


def test_the_journal_is_exported_whole(box, admin, place):
    box.wait(box.submit('--', 'true'))
    done = box.mgpu('journal', 'export', user=admin, check=True)
    head, *events = [json.loads(line) for line in lines(done.out)]
    assert head['schema'] == 'mgpu-journal/v1'
    numbers = [event['seq'] for event in events]
    assert numbers == sorted(set(numbers)) and events[0]['seq'] == 1
    after = box.mgpu('journal', 'export', '--after', numbers[-2], user=admin, check=True)
    assert [json.loads(line)['seq'] for line in lines(after.out)[1:]] == numbers[-1:]
    box.mgpu('journal', 'export', '-o', f'{place}/journal', user=admin, check=True)
    with open(f'{place}/journal', encoding='utf-8') as journal:
        assert journal.read() == done.out


# --- preemption ---

def test_a_preemptible_job_gives_way_and_comes_back(box, place, gate):
    job = box.submit('-g', '4', '--preemptible', '--', *gate.command())
    box.wait(job, 'running')
    other = box.submit('-g', '4', '--', 'true')
    assert box.wait(other)['state'] == 'done'
    box.wait(job, 'running')
    gate.open(2)
    done = box.wait(job)
    assert (done['state'], done['preemptions'], done['attempt']) == ('done', 1, 2)


def test_a_job_above_a_later_limit_can_be_edited_to_less(make_instance):
    instance = make_instance(gpus='sim:4x8G')
    job = instance.submit('-g', '3', '--hold', '--', 'true')
    instance.stop()
    instance.start(extra=['--user-max-gpus', '2'])
    instance.mgpu('edit', job, 'name=later', check=True)
    done = instance.mgpu('edit', job, 'gpus=4')
    assert done.code == 2 and 'requested 4 GPUs; the limit of its owner is 2' in done.err, done
    assert (instance.job(job)['name'], instance.job(job)['gpus']) == ('later', 3)
    instance.mgpu('edit', job, 'gpus=1', check=True)
    instance.mgpu('release', job, check=True)
    assert instance.wait(job)['state'] == 'done'
