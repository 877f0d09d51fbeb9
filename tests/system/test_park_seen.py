# SPDX-License-Identifier: MIT
"""What people see of a job that mgpud has parked by itself (--park auto), and of the one for which it did."""

import datetime
import json
import os

import pytest

import harness
import slurm
from proof import prove
from test_metrics import scrape
from test_park import Cuda, await_phase, start_work
from test_park_auto import TIMES

RAN_S = 5  # of the host before its guest is submitted: it may be parked for four times as long
METRICS = ('mgpu_job_parks_total{cause="shorter"}', 'mgpu_job_park_refusals_total{action="park"}',
           'mgpu_job_park_refusals_total{action="return"}', 'mgpu_job_parked_seconds_total')


class Scene:
    """A host that is parked, and its guest, which runs until it is told to go."""

    def __init__(self, instance, cuda):
        self.instance, self.go, self.told = instance, f'{cuda.folder}/go', f'{cuda.folder}/told'
        self.host = start_work(instance, cuda, '-t', '2h', '-J', 'host', '--notify', f'echo "$MGPU_TEXT" >> {self.told}', '--notify-on', 'park,unpark')
        harness.until(lambda: instance.job(self.host)['run_seconds'] >= RAN_S, 'the host has run')
        self.guest = instance.submit('-q', '-g', '1', '-t', '15s', '-J', 'guest', '--', 'sh', '-c', f'while [ ! -e {self.go} ]; do sleep 0.02; done')
        instance.wait(self.guest, 'running')
        await_phase(instance, self.host, 'waiting')

    def out(self, *words):
        return self.instance.mgpu(*words, check=True).out

    def end_guest(self):
        with open(self.go, 'w', encoding='ascii'):
            pass
        assert self.instance.wait(self.guest)['state'] == 'done'
        await_phase(self.instance, self.host, None)

    def end(self):
        self.instance.mgpu('cancel', self.host, check=True)
        return self.instance.wait(self.host)

    def metrics(self):
        found = scrape(self.instance)
        return [found[name] for name in METRICS]

    def lines_told(self):
        if not os.path.exists(self.told):
            return []
        with open(self.told, encoding='utf-8') as source:
            return source.read().splitlines()


@pytest.fixture
def scene(make_instance, place):
    cuda = Cuda(f'{place}/driver')
    instance = make_instance(gpus='sim:1x24G', arguments=('--park', 'auto', *TIMES, *cuda.arguments))
    assert prove(instance).status == 200
    return Scene(instance, cuda)


def line_of(text, name):
    (line,) = [line for line in text.splitlines() if f' {name} ' in line]
    return line


def test_lists_and_notifications_name_the_guest_and_the_latest_return(scene):
    back = datetime.datetime.fromtimestamp(harness.seconds(scene.instance.job(scene.host)['latest_return']), datetime.timezone.utc)
    words = f'for job {scene.guest}, back by {back:%H:%M:%S}'
    host = scene.instance.job(scene.host)
    assert abs(host['run_seconds'] - (harness.seconds(host['parked_at']) - harness.seconds(host['started_at']))) < 0.01, host
    assert f'parked      1  ' in line_of(scene.out('--utc', 'ps'), 'host') and words in line_of(scene.out('--utc', 'ps'), 'host')
    assert words in line_of(scene.out('--utc', 'top', '--once', '--size', '120x30'), 'host')
    assert json.loads(scene.out('--json', 'ps'))['jobs'][0]['park_guest'] == int(scene.guest)
    (told,) = harness.until(scene.lines_told, 'its user is told')
    assert told.endswith(f'for job {scene.guest}, which will probably end much sooner; it continues automatically, at the latest at {back:%Y-%m-%dT%H:%M:%S}.{back.microsecond // 1000:03d}Z'), told
    scene.end_guest()
    assert ' running ' in line_of(scene.out('ps'), 'host') and 'back by' not in scene.out('ps')
    told = harness.until(lambda: len(lines := scene.lines_told()) == 2 and lines[1], 'its user is told that it continues')
    assert 'it was parked for ' in told


def test_parked_time_is_not_charged_and_is_shown_as_time_parked(scene):
    before = scene.metrics()
    assert before == [1, 0, 0, 0], before
    harness.until(lambda: scene.instance.job(scene.host)['parked_seconds'] >= 1, 'it is parked for a second')
    scene.end_guest()
    done = scene.end()
    whole = harness.seconds(done['ended_at']) - harness.seconds(done['started_at'])
    assert done['parked_seconds'] >= 1 and RAN_S <= done['run_seconds'] <= whole - done['parked_seconds'] + 0.1, done
    after = scene.metrics()
    assert after[:3] == before[:3] and abs(after[3] - done['parked_seconds']) < 0.2, after
    (past,) = [job for job in scene.instance.api('GET', '/history').json['jobs'] if job['id'] == int(scene.host)]
    assert abs(past['run_seconds'] - done['run_seconds']) < 0.01 and past['parked_seconds'] == done['parked_seconds'], past
    sums = scene.instance.api('GET', '/history?by=user').json
    (sum_of,) = sums['sums']
    charged = done['run_seconds'] + scene.instance.job(scene.guest)['run_seconds']
    assert abs(sum_of['gpu_seconds'] - charged) < 0.5, sums


def test_slurm_says_that_it_is_suspended_since_when_and_for_how_long(scene, place):
    instance, commands = scene.instance, slurm.Slurm(scene.instance, place)
    host = instance.job(scene.host)
    parked_at = datetime.datetime.fromtimestamp(int(harness.seconds(host['parked_at'])))
    ran = int(harness.seconds(host['parked_at']) - harness.seconds(host['started_at']))
    assert commands.out('squeue', '-h', '-j', scene.host, '-o', '%t %T').split() == ['S', 'SUSPENDED']

    def show():
        text = commands.out('scontrol', 'show', 'job', scene.host)
        return dict(word.split('=', 1) for word in text.split() if '=' in word)
    shown = show()
    assert shown['RunTime'] == f'00:00:{int(shown["SecsPreSuspend"]):02}' == f'00:{commands.out("squeue", "-h", "-j", scene.host, "-o", "%M").strip():>05}', shown
    assert shown['JobState'] == 'SUSPENDED' and shown['SuspendTime'] == f'{parked_at:%Y-%m-%dT%H:%M:%S}', shown
    assert abs(int(shown['SecsPreSuspend']) - ran) <= 1, (shown, ran)
    harness.until(lambda: instance.job(scene.host)['parked_seconds'] >= 2, 'it is parked for two seconds')
    scene.end_guest()
    again = show()
    assert again['JobState'] == 'RUNNING' and again['SuspendTime'] > shown['SuspendTime'], again
    assert again['SecsPreSuspend'] == shown['SecsPreSuspend']
    done = scene.end()
    text = commands.out('sacct', '-X', '-n', '-P', '-j', scene.host, '-o', 'Suspended').strip()
    suspended = sum(int(part) * 60 ** i for i, part in enumerate(reversed(text.split(':'))))
    assert abs(suspended - done['parked_seconds']) <= 1, (text, done['parked_seconds'])
    row = commands.out('sreport', '-n', '-P', '-T', 'gres/gpu', '-t', 'Seconds', 'cluster', 'account', 'start=now-1hour', 'end=now+1hour').splitlines()[0]
    ran = done['run_seconds'] + instance.job(scene.guest)['run_seconds']
    assert done['parked_seconds'] > 2 and ran - 2 <= int(row.split('|')[-1]) <= ran, (row, ran)
