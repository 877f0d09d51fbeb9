# SPDX-License-Identifier: MIT
"""Jobs that ended: listed, summed up, kept for a time, and gone after it."""

import csv
import io
import json
import os
import select
import signal
import sqlite3
import subprocess
import time

import pytest

import harness
from nvml import Nvml


def history(instance, query='', **options):
    answer = instance.api('GET', f'/history{query}', **options)
    assert answer.status == 200, answer
    return answer.json


def fsck(instance):
    done = subprocess.run([f'{harness.programs()}/mgpud', '--fsck', '--state-dir', instance.state_dir],
                          capture_output=True, text=True, timeout=harness.DEADLINE_S)
    return done.returncode, done.stdout + done.stderr


def number(instance, sql):
    with sqlite3.connect(f'file:{instance.state_dir}/store/mgpu.db?mode=ro', uri=True, timeout=10) as db:
        return db.execute(sql).fetchone()[0]


def await_number(instance, sql, wanted):
    end = time.monotonic() + harness.DEADLINE_S
    while number(instance, sql) != wanted:
        assert time.monotonic() < end, f'{sql}: {number(instance, sql)}, not {wanted}\n{instance.log()}'
        select.select([], [], [], 0.1)


def end_some(instance):
    """Three jobs: one that ends well, one that fails, one that is cancelled in the queue."""
    good = instance.post_job(['true'], name='good')
    bad = instance.post_job(['false'], name='bad', gpus=2)
    lost = instance.post_job(['true'], name='lost', hold=True)
    instance.wait(good), instance.wait(bad)
    assert instance.api('POST', f'/jobs/{lost}/cancel', {}).status in (200, 202)
    instance.wait(lost)
    return good, bad, lost


def test_the_newest_come_first_with_what_they_held(make_instance):
    box = make_instance()
    good, bad, lost = end_some(box)
    jobs = history(box)['jobs']
    assert sorted(job['id'] for job in jobs) == sorted([good, bad, lost]) and jobs[0]['id'] == lost
    found = {job['id']: job for job in jobs}
    assert found[bad]['exit_code'] == 1 and found[bad]['gpu_seconds'] > 0
    assert found[lost]['gpu_seconds'] == 0 and found[lost]['gpu_seconds_wasted'] is None
    assert [job['id'] for job in history(box, '?limit=1')['jobs']] == [lost]
    assert [job['id'] for job in history(box, '?state=failed')['jobs']] == [bad]
    assert [job['id'] for job in history(box, '?name=go*&since=1h')['jobs']] == [good]
    assert history(box, '?until=1h')['jobs'] == []


def test_jobs_are_found_that_are_not_in_memory_any_more(make_instance):
    box = make_instance()
    first, _ = box.run_job(['true'], name='first')
    box.restart()
    assert [job['id'] for job in history(box)['jobs']] == [first['id']]


def test_everybody_sees_every_row_as_in_ps(box, ana, bo):
    job = box.post_job(['true'], user=ana) if harness.IS_ROOT else box.post_job(['true'])
    box.wait(job)
    other = bo if harness.IS_ROOT else None
    assert job in [row['id'] for row in history(box, user=other)['jobs']]


@pytest.mark.parametrize('query', ['?by=x', '?since=yesterday', '?state=queued', '?since=1h&until=2h', '?limit=0',
                                   '?user=nobody-of-that-name', '?all=1', '?by=day&limit=3'])
def test_a_question_that_makes_no_sense_is_refused(box, query):
    answer = box.api('GET', f'/history{query}')
    assert answer.status == 400 and answer.json['detail'], answer


def test_sums_agree_with_the_rows(make_instance):
    box = make_instance()
    end_some(box)
    rows = history(box)['jobs']
    for by in ('user', 'group', 'day', 'node'):
        answer = history(box, f'?by={by}')
        assert answer['by'] == by
        assert sum(part['jobs'] for part in answer['sums']) == 3
        held = sum(part['gpu_seconds'] for part in answer['sums'])
        assert held == pytest.approx(sum(row['gpu_seconds'] for row in rows), abs=0.01)
    assert history(box, '?by=user&name=bad')['sums'][0]['jobs'] == 1


def test_what_was_measured_is_split_in_used_and_wasted(make_instance, place):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-half', utilization=50)
    nvml.write()
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    job = box.post_job(['sleep', '60'])
    end = time.monotonic() + harness.DEADLINE_S
    while not (box.job(job)['usage'] or {}).get('sampled_seconds', 0) >= 2:
        assert time.monotonic() < end
        select.select([], [], [], 0.2)
    box.api('POST', f'/jobs/{job}/cancel', {})
    box.wait(job)
    part, = history(box, '?by=user')['sums']
    assert part['gpu_seconds_measured'] == part['gpu_seconds'] > 0
    assert part['gpu_seconds_used'] == pytest.approx(part['gpu_seconds'] / 2, rel=0.05)
    assert part['gpu_seconds_wasted'] == pytest.approx(part['gpu_seconds'] / 2, rel=0.05)
    shown = box.mgpu('users', '-o', 'week_asked,week_used,week_wasted', check=True).out
    assert '7D WASTED' in shown and len(shown.splitlines()) >= 2


def test_the_command_lists_and_sums(make_instance):
    box = make_instance()
    good, bad, lost = end_some(box)
    rows = list(csv.DictReader(io.StringIO(box.mgpu('history', '-a', '-o', 'csv', check=True).out)))
    assert [int(row['id']) for row in rows][0] == lost and len(rows) == 3
    held = {job['id']: job['gpu_seconds'] for job in history(box)['jobs']}
    assert float(rows[-1]['gpu_hours']) == pytest.approx(held[int(rows[-1]['id'])] / 3600, abs=0.0001)
    assert len(box.mgpu('sacct', '-a', '-s', 'failed', '--since', '1h', '-o', 'jsonl', check=True).out.splitlines()) == 1
    wide = box.mgpu('history', '-a', '-o', 'wide', check=True).out
    assert 'WASTED' in wide and 'good' in wide
    for by in ('user', 'group', 'day', 'node'):
        shown = box.mgpu('history', '--by', by, check=True).out
        assert by.upper() in shown.splitlines()[0] and any(cell in shown for cell in '█░·')
        plain = box.mgpu('history', '--by', by, check=True, env={'LC_ALL': 'C'}).out
        assert plain.isascii() and any(cell in plain for cell in '#-.')
    document = json.loads(box.mgpu('history', '--by', 'user', '-o', 'json', check=True).out)
    assert 'bar_part' not in document['sums'][0]
    for wrong in (['--by', 'week'], ['--since', 'soonish'], ['--by', 'day', '--limit', '3'], ['-s', 'queued']):
        assert box.mgpu('history', *wrong).code != 0


def test_a_long_list_comes_whole_while_jobs_go_on(make_instance):
    box = make_instance(gpus='sim:8x24G')
    jobs = [box.post_job(['true'], name=f'n{i}' + 'x' * 100) for i in range(120)]
    for job in jobs:
        box.wait(job)
    listed = [job['id'] for job in history(box)['jobs']]
    assert sorted(listed) == sorted(jobs)
    assert [job['id'] for job in history(box, '?limit=100')['jobs']] == listed[:100]


def test_old_jobs_leave_and_their_sums_stay(make_instance):
    box = make_instance(arguments=['--keep-jobs', '2s'])
    end_some(box)
    before = history(box, '?by=user')['sums'][0]
    await_number(box, 'SELECT count(*) FROM jobs', 0)
    assert number(box, 'SELECT count(*) FROM events WHERE job <> 0') == 0
    after = history(box, '?by=user')['sums'][0]
    assert (after['jobs'], after['gpu_seconds']) == (before['jobs'], pytest.approx(before['gpu_seconds'], abs=0.01))
    assert after['wait_seconds_median'] is None, 'nobody knows how long each of them waited'
    box.restart()
    assert history(box)['jobs'] == [] and box.api('GET', '/jobs/1').status == 404
    assert box.post_job(['true']) == 4, 'a number is never used again'
    box.stop()
    code, said = fsck(box)
    assert code == 0, said


def test_so_many_stay_at_most(make_instance):
    box = make_instance(arguments=['--keep-max', '2', '--keep-jobs', '0'])
    jobs = [box.post_job(['true']) for _ in range(5)]
    for job in jobs:
        box.wait(job)
    await_number(box, 'SELECT count(*) FROM ended', 2)
    assert len(history(box)['jobs']) == 2
    box.stop()
    assert fsck(box)[0] == 0


def test_how_many_stay_is_taken_up_by_a_reload(make_instance, place):
    path = f'{place}/mgpu.yaml'

    def write(text):
        with open(path, 'w', encoding='utf-8') as out:
            out.write(text)
        os.chmod(path, 0o644)

    write('keep-jobs: 0\n')
    box = make_instance(arguments=['--config', path])
    for job in [box.post_job(['true']) for _ in range(4)]:
        box.wait(job)
    write('keep-jobs: 0\nkeep-max: 1\n')
    box.process.send_signal(signal.SIGHUP)
    await_number(box, 'SELECT count(*) FROM ended', 1)
    assert 'keep-max: 0 is now 1' in box.log() and 'takes effect after a restart' not in box.log()
    write('keep-jobs: 1s\n')
    box.process.send_signal(signal.SIGHUP)
    await_number(box, 'SELECT count(*) FROM ended', 0)


def test_a_kill_while_jobs_leave_breaks_nothing(make_instance):
    box = make_instance(arguments=['--keep-jobs', '0'])
    jobs = [box.post_job(['true'], gpus=0) for _ in range(150)]
    for job in jobs:
        box.wait(job)
    box.stop()
    for _ in range(3):
        box.start(['--keep-jobs', '1s'])
        end = time.monotonic() + 3
        while time.monotonic() < end and number(box, 'SELECT count(*) FROM ended') in (150, 0):
            select.select([], [], [], 0.005)
        box.kill()
        code, said = fsck(box)
        assert code == 0, said
        assert number(box, 'SELECT (SELECT count(*) FROM ended) + (SELECT ifnull(sum(jobs), 0) FROM kept_days)') == 150
    box.start(['--keep-jobs', '1s'])
    await_number(box, 'SELECT count(*) FROM jobs', 0)
    assert history(box, '?by=day')['sums'][0]['jobs'] == 150


@pytest.mark.parametrize('wrong', [['--keep-jobs', 'long'], ['--keep-max', '-1'], ['--keep-max', 'x']])
def test_a_setting_that_makes_no_sense_is_refused(wrong):
    done = subprocess.run([f'{harness.programs()}/mgpud', *wrong], capture_output=True, text=True,
                          timeout=harness.DEADLINE_S)
    assert done.returncode in (1, 64) and wrong[0] in done.stderr


def await_forecasts(instance, wanted):
    """GET /forecasts once the newest forecast has this result."""
    end = time.monotonic() + harness.DEADLINE_S
    while True:
        answer = instance.api('GET', '/forecasts').json
        if [row['result'] for row in answer['forecasts'][:1]] == [wanted]:
            return answer
        assert time.monotonic() < end, f'{answer}\n{instance.log()}'
        select.select([], [], [], 0.1)


def test_the_forecast_of_a_start_is_kept_and_compared_with_it(make_instance, gate):
    box = make_instance('sim:1x8G')
    running = box.post_job(gate.command(), gpus=1)
    box.wait(running, 'running')
    waiting = box.post_job(['true'], gpus=1)
    told = await_forecasts(box, 'waiting')['forecasts'][0]
    assert told['job'] == waiting and told['from'] <= told['expected'] <= told['until'] and told['started_at'] is None
    why = box.api('GET', f'/jobs/{waiting}/why').json
    assert why['eta_from'] <= why['eta'] <= why['eta_until']
    assert 'of 10 such jobs), about' in ' '.join(box.mgpu('why', str(waiting), check=True).out.split())
    box.restart()  # it is not forgotten
    gate.open()
    box.wait(waiting)
    answer = box.api('GET', '/forecasts').json
    assert [row['job'] for row in answer['forecasts']] == [waiting]
    assert answer['forecasts'][0]['result'] == 'earlier'  # nothing was known of either job: it was told an hour
    ranges = answer['ranges']
    assert ranges[-1]['started'] == 1 and sum(row['started'] for row in ranges[:-1]) == 1
    shown = box.mgpu('history', '--forecasts', check=True).out
    assert 'FORECAST WAIT' in shown and shown.splitlines()[-1].split()[:3] == ['all', '1', '0%'], shown
    refused = box.mgpu('history', '--forecasts', '--by', 'user')
    assert refused.code != 0 and 'cannot be combined' in refused.err


def test_a_time_of_day_is_the_last_one(make_instance):
    box = make_instance()
    job = box.submit('-g', '0', '--', 'true')
    box.wait(job)
    for since in ('00:00', 'today', 'yesterday', '00:00:00', '1h'):
        listed = box.mgpu('history', '-o', 'id', '-H', '--since', since, check=True).out.split()
        assert listed == [str(job)], (since, listed)
    for wrong, words in ((('--since', '+2h'), 'use an age, 12h or 7d'), (('--since', '1h', '--until', '2h'), '--since is after --until')):
        done = box.mgpu('history', *wrong)
        assert done.code == 2 and words in done.err, done
    assert box.mgpu('gpus', '--history', 'today', check=True).out
