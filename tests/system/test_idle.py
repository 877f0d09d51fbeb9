# SPDX-License-Identifier: MIT
"""Jobs that leave their GPUs unused: marked, preempted, ended. Simulated GPUs are never used."""

import os
import re
import select
import signal
import subprocess
import time

import pytest

import harness
import invariants
from nvml import Nvml


def await_idle(instance, job, level):
    """The event that puts the job at this level (None: it uses its GPUs again)."""
    for event in instance.events(after=0, user=instance.user):
        told = event['data']
        if (told['type'], told['job']) == ('idle', job) and told['idle'] == level:
            return told
    raise AssertionError(f'job {job} never got to {level}')


def make(make_instance, *arguments, gpus='sim:1x24G'):
    return make_instance(gpus=gpus, arguments=arguments)


def test_an_idle_job_is_marked_everywhere(make_instance, gate):
    box = make(make_instance, '--idle-warn', '2s')
    job = box.post_job(gate.command())
    told = await_idle(box, job, 'told')
    assert told['state'] == 'running' and told['idle_s'] >= 2 and 'has left its GPUs unused' in told['message']
    shown = box.job(job)
    assert shown['idle'] == 'told' and shown['idle_s'] >= 2 and shown['usage']['idle_s'] >= 2
    gpu, = box.gpus()
    assert gpu['wasted'] and gpu['idle_s'] >= 2
    assert '! idle ' in box.mgpu('ps', '-a', check=True, env={'LC_ALL': 'C'}).out
    assert 'has left its GPUs unused for' in box.mgpu('show', job, check=True).out
    header, row = box.mgpu('gpus', check=True, env={'LC_ALL': 'C'}).out.splitlines()
    assert 'IDLE' in header and 's !' in row
    assert f'job {job}: it has left its GPUs unused' in box.log()


def test_a_free_gpu_is_not_idle(make_instance):
    box = make(make_instance, '--idle-warn', '1s')
    gpu, = box.gpus()
    assert gpu['idle_s'] is None and not gpu['wasted']
    row = box.mgpu('gpus', '-o', 'idle', '-H', check=True).out.split()
    assert row == ['-']


def test_idleness_goes_on_over_restarts_of_both_daemons(make_instance, gate):
    box = make(make_instance, '--idle-warn', '2s')
    job = box.post_job(gate.command())
    await_idle(box, job, 'told')
    agents = box.agents()
    for agent in agents:
        os.kill(agent, signal.SIGKILL)
    assert all(harness.wait_process(agent) for agent in agents)
    box.kill()
    box.start()
    assert box.job(job)['idle'] == 'told', 'what was told is durable'
    box.restart()
    levels = [event['data']['idle'] for event in list_events(box) if event['data']['type'] == 'idle']
    assert levels == ['told'], 'a restart tells nobody anew'
    box.stop()
    assert not list(invariants.fsck(box))
    box.start()


def list_events(instance):
    """All events so far."""
    mark = instance.post_job(['true'], gpus=0)
    instance.wait(mark)
    for event in instance.events(after=0, user=instance.user):
        yield event
        if event['data']['job'] == mark and event['data']['type'] == 'ended':
            return


def test_a_job_is_ended_after_its_idle_timeout(make_instance):
    box = make(make_instance)
    done = box.mgpu('run', '--idle-timeout', '2s', '--', 'sleep', '600')
    assert done.code == 124 and 'ended because it was idle' in done.err, done
    job, = box.api('GET', '/jobs?all=1').json['jobs']
    assert (job['ended_by'], job['exit_code'], job['state']) == ('idle_timeout', 124, 'failed')
    assert job['message'] == 'it left all of its GPUs unused for 2s' and job['idle_timeout_s'] == 2
    kinds = [event['data']['type'] for event in list_events(box) if event['data']['job'] == job['id']]
    assert kinds.index('idle') < kinds.index('stop'), 'it was told first'


def test_run_tells_of_each_level_that_the_job_gets_to(make_instance):
    box = make(make_instance, '--idle-warn', '1s', '--idle-preemptible', '4s', '--idle-end', '6s')
    done = box.mgpu('run', '--', 'sleep', '600', env={'TZ': 'UTC'})
    told, yields = [line for line in done.err.splitlines() if 'has left its GPUs unused' in line]
    assert re.fullmatch(r'mgpu: job 1 has left its GPUs unused for [1-3]s; it will be ended at [0-9:]+ if it stays idle', told), told
    assert re.fullmatch(r'mgpu: job 1 has left its GPUs unused for [45]s; other jobs can preempt it; it will be ended at '
                        r'[0-9:]+ if it stays idle', yields), yields
    assert done.code == 124
    quiet = box.mgpu('run', '-q', '--idle-timeout', '2s', '--', 'sleep', '600')
    assert 'has left its GPUs' not in quiet.err


def test_a_wait_is_answered_at_another_level_of_idleness(make_instance, gate):
    box = make(make_instance, '--idle-warn', '1s', '--idle-end', '1h')
    job = box.post_job(gate.command())
    answer = box.api('GET', f'/jobs/{job}/wait?states=done&idle=none')
    assert (answer.status, answer.json['state'], answer.json['idle']) == (200, 'running', 'told')
    assert answer.json['idle_end_s'] == 3600
    refused = box.api('GET', f'/jobs/{job}/wait?idle=very')
    assert refused.status == 400 and "idle: unknown level 'very'" in refused.json['detail']
    gate.open()
    assert box.api('GET', f'/jobs/{job}/wait?states=done&idle=told').json['state'] == 'done'


def test_the_site_ends_idle_jobs_but_not_exempt_ones(make_instance, gate):
    box = make(make_instance, '--idle-warn', 'never', '--idle-end', '2s', gpus='sim:2x24G')
    exempt = box.post_job(gate.command(), idle_ok=True)
    job = box.post_job(gate.command())
    assert box.wait(job)['ended_by'] == 'idle_timeout'
    shown = box.job(exempt)
    assert (shown['state'], shown['idle'], shown['idle_ok']) == ('running', None, True)
    gate.open()
    assert box.wait(exempt)['ended_by'] == 'exit'


def test_an_idle_job_gives_way_and_waits_again_as_a_preemptible_one(make_instance, gate, place):
    box = make(make_instance, '--idle-preemptible', '2s')
    idle = box.post_job(gate.command())
    await_idle(box, idle, 'yields')
    waiting = box.post_job(['true'])
    assert box.wait(waiting)['exit_code'] == 0
    shown = box.wait(idle, states='running')
    assert shown['preemptions'] == 1 and shown['preemptible']
    kinds = [event['data'] for event in list_events(box) if event['data']['job'] == idle]
    preempted, = [event for event in kinds if event['type'] == 'preempted']
    assert preempted['message'] == 'it left its GPUs unused, and another job needs them'
    gate.open()
    assert box.wait(idle)['exit_code'] == 0
    box.mgpu('journal', 'export', '-o', f'{place}/journal', user=box.user, check=True)
    replay = subprocess.run([f'{harness.build_folder()}/mgpu-sim', 'journal', f'{place}/journal'], check=False,
                            capture_output=True, text=True, timeout=harness.DEADLINE_S)
    assert replay.returncode == 0, replay.stderr


def test_a_job_that_uses_its_gpu_again_is_not_marked_any_more(make_instance, place, gate):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a', utilization=90)
    nvml.write()
    box = make(make_instance, '--idle-warn', '2s', *nvml.arguments, gpus='auto')
    job = box.post_job(gate.command())
    box.wait(job, states='running')
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-a', utilization=0)
    nvml.write()
    await_idle(box, job, 'told')
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-a', utilization=60)
    nvml.write()
    assert await_idle(box, job, None)['message'] == 'it uses its GPUs again'
    assert box.job(job)['idle'] is None and box.job(job)['idle_s'] is None
    assert 'idle' not in box.mgpu('ps', '-a', check=True).out


def test_the_unused_gpu_of_a_job_that_uses_another_is_marked(make_instance, place, gate):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-busy', utilization=90)
    nvml.add(bus=0x81, uuid='GPU-still', utilization=0)
    nvml.write()
    box = make(make_instance, '--idle-warn', '2s', *nvml.arguments, gpus='auto')
    job = box.post_job(gate.command(), gpus=2)
    end = time.monotonic() + harness.DEADLINE_S
    while not box.gpus()[1]['wasted']:
        assert time.monotonic() < end, box.gpus()
        select.select([], [], [], 0.2)
    busy, still = box.gpus()
    assert busy['idle_s'] is None and not busy['wasted'] and still['idle_s'] >= 2
    shown = box.job(job)
    assert shown['idle'] is None and shown['usage']['gpus_idle_s'][0] == 0 and shown['usage']['gpus_idle_s'][1] >= 2


@pytest.mark.parametrize('options, sentence', [
    (('-g', '0', '--idle-timeout', '1m'), '--idle-timeout has no effect with -g 0'),
    (('-g', '0', '--idle-ok'), '--idle-ok has no effect with -g 0'),
    (('--idle-timeout', '10ms'), 'idle_timeout: 10 ms is below 1000 ms'),
    (('--idle-timeout', '1m', '--idle-ok'), 'idle_ok and idle_timeout are mutually exclusive'),
    (('--idle-timeout', 'soon'), '--idle-timeout'),
])
def test_what_makes_no_sense_is_refused(box, options, sentence):
    done = box.mgpu('submit', *options, '--', 'true')
    assert done.code == 2 and sentence in done.err, done


def test_a_site_can_leave_idle_ok_to_operators(make_instance, someone):
    box = make(make_instance, '--idle-ok', 'operators')
    done = box.mgpu('submit', '--idle-ok', '--', 'true')
    if someone.uid == os.getuid():
        assert done.code == 0, 'who runs mgpud is its administrator'
    else:
        assert done.code == 4 and 'you are not allowed to request idle_ok' in done.err, done


@pytest.mark.parametrize('option, value, word', [
    ('--idle-warn', '0', 'never'), ('--idle-end', '10ms', 'less than a second'), ('--idle-end', 'x', '--idle-end'),
    ('--idle-ok', 'maybe', 'allowed or operators'),
])
def test_bad_settings_are_refused(option, value, word):
    done = subprocess.run([f'{harness.programs()}/mgpud', option, value], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=harness.DEADLINE_S)
    assert done.returncode != 0 and word in done.stderr, done.stderr
