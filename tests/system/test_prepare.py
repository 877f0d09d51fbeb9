# SPDX-License-Identifier: MIT
"""The job that is next on a node is prepared there while the one before it runs: nothing of that is seen, whatever happens to
it the job runs once, as it is when its turn comes."""

import os
import shutil
import signal

import pytest

import harness
from nvml import Nvml


@pytest.fixture
def stage(make_instance, gate):
    """One GPU, job 1 on it, and another one that waits: (instance, its number), prepared."""
    instance = make_instance('sim:1x24G')
    first = instance.post_job(gate.command(), gpus=1)
    instance.wait(first, 'running')

    def submit(command, **fields):
        return prepare(instance, command, **fields)
    return instance, submit


def prepare(instance, command, **fields):
    job = instance.post_job(command, gpus=1, **fields)
    harness.until(lambda: os.path.exists(entry(instance, job, 'ready')), f'job {job} is not prepared')
    return job


def node(instance):
    return instance.api('GET', '/nodes').json['nodes'][0]


def entry(instance, job, file='', attempt=1):
    return f'{instance.run_dir}/spool/{job}.{attempt}.0.0/{file}'


def shepherds_of(instance, job):
    return [pid for pid, line in harness.processes(instance.place).items()
            if f'/spool/{job}.' in line and 'mgpu-shepherd' in line.split('\0')[0].split(' ')[0]]


def dropped(instance, job):
    harness.until(lambda: not os.path.exists(entry(instance, job)), f'the entry of job {job} is still there')
    harness.until(lambda: not shepherds_of(instance, job), f'a process of job {job} is left')


def lines_of(path):
    with open(path, encoding='utf-8') as lines:
        return lines.read().splitlines()


def test_what_is_prepared_is_seen_by_nobody_and_runs_when_its_turn_comes(stage, gate, place):
    instance, submit = stage
    job = submit(['sh', '-c', 'echo $MGPU_JOB_ID $CUDA_VISIBLE_DEVICES; pwd'], cwd=place)
    assert instance.job(job)['state'] == 'queued'
    assert instance.job(job)['attempt'] == 0
    assert not os.path.exists(entry(instance, job, 'verdict'))
    assert not os.path.exists(instance.job(1)['log'].replace('1.log', f'{job}.log'))
    gate.open()
    ended = instance.wait(job)
    assert (ended['state'], ended['attempt'], ended['exit_code']) == ('done', 1, 0)
    assert instance.output(job).splitlines() == [f'{job} 0', os.path.realpath(place)]
    dropped(instance, job)


def test_a_prepared_job_sees_what_the_one_before_has_written(stage, gate, place):
    instance, submit = stage
    output = f'{place}/shared'
    with open(output, 'w', encoding='utf-8') as file:
        file.write('of the job before\n')
    os.chmod(output, 0o666)
    os.chmod(place, 0o777)
    job = submit(['cat', output])
    with open(output, 'a', encoding='utf-8') as file:
        file.write('and more of it\n')
    gate.open()
    instance.wait(job)
    assert instance.output(job) == 'of the job before\nand more of it\n'


@pytest.mark.parametrize('victims', ['agent', 'shepherd', 'mgpud', 'init', 'all'])
def test_a_prepared_job_runs_once_whatever_is_killed(stage, gate, place, victims):
    instance, submit = stage
    os.chmod(place, 0o777)
    job = submit(['sh', '-c', f'echo here >> {place}/ran; exit 3'])
    before = shepherds_of(instance, job)
    for pid in before if victims in ('shepherd', 'all') else before[1:] if victims == 'init' else ():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    if victims == 'all':
        instance.kill()
    if victims in ('agent', 'all'):
        instance.kill_agent()
    if victims == 'mgpud':
        instance.kill()
    if victims in ('mgpud', 'all'):
        instance.start()
    gate.open()
    ended = instance.wait(job)
    assert (ended['exit_code'], ended['attempt']) == (3, 1), ended
    assert lines_of(f'{place}/ran') == ['here']
    dropped(instance, job)


def test_a_cancelled_job_is_not_prepared_any_more(stage, gate, place):
    instance, submit = stage
    job = submit(['touch', f'{place}/ran'])
    instance.mgpu('cancel', job, check=True)
    dropped(instance, job)
    assert instance.job(job)['state'] == 'cancelled'
    assert not os.path.exists(f'{place}/ran')


def test_a_held_job_is_dropped_and_runs_when_it_is_released(stage, gate):
    instance, submit = stage
    job = submit(['true'])
    instance.mgpu('hold', job, check=True)
    dropped(instance, job)
    gate.open()
    instance.wait(1)
    instance.mgpu('release', job, check=True)
    assert (instance.wait(job)['state'], instance.job(job)['attempt']) == ('done', 1)


def test_a_prepared_job_that_was_edited_runs_as_edited(stage, gate):
    instance, submit = stage
    job = submit(['sh', '-c', 'echo $MGPU_JOB_NAME'], name='before')
    instance.mgpu('edit', job, 'name=after', check=True)
    gate.open()
    assert instance.wait(job)['state'] == 'done'
    assert instance.output(job) == 'after\n'
    assert instance.job(job)['attempt'] == 1


def test_the_directory_of_a_prepared_job_may_be_gone_when_its_turn_comes(stage, gate, place):
    instance, submit = stage
    folder = f'{place}/work'
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    job = submit(['true'], cwd=folder)
    os.rmdir(folder)
    gate.open()
    ended = instance.wait(job)
    assert ended['ended_by'] == 'start_failed', ended
    assert 'cannot change to directory' in ended['message']


def test_nothing_is_prepared_for_a_paused_gpu(stage, gate):
    instance, submit = stage
    job = submit(['true'])
    instance.mgpu('pause', '0', user=instance.user, check=True)
    dropped(instance, job)
    gate.open()
    instance.wait(1)
    assert instance.job(job)['state'] == 'queued'
    instance.mgpu('resume', '0', user=instance.user, check=True)
    assert instance.wait(job)['state'] == 'done'


def test_a_job_that_is_put_before_the_prepared_one_runs_first(stage, gate, place):
    instance, submit = stage
    os.chmod(place, 0o777)
    job = submit(['sh', '-c', f'echo second >> {place}/order'], priority=-5)
    urgent = instance.post_job(['sh', '-c', f'echo first >> {place}/order'], gpus=1)
    gate.open()
    for number in (urgent, job):
        assert instance.wait(number)['state'] == 'done'
        assert instance.job(number)['attempt'] == 1
    assert lines_of(f'{place}/order') == ['first', 'second']


def test_a_step_of_a_job_that_was_prepared_starts_at_once(stage, gate):
    instance, submit = stage
    second = harness.Gate(instance.place)
    job = submit(second.command())
    gate.open()
    instance.wait(job, 'running')
    assert instance.mgpu('exec', job, 'echo', 'beside it').out == 'beside it\n'
    second.open()
    assert instance.wait(job)['state'] == 'done'
    second.close()


def test_the_folder_of_a_prepared_script_may_be_gone_when_its_turn_comes(stage, gate, place):
    instance, submit = stage
    folder = f'{place}/scripts'
    os.mkdir(folder)
    with open(f'{folder}/job.sh', 'w', encoding='ascii') as script:
        script.write('#!/bin/sh\necho it runs\n')
    os.chmod(f'{folder}/job.sh', 0o755)
    for path in (folder, f'{folder}/job.sh'):
        os.chown(path, instance.client.uid, instance.client.gid)
    job = int(instance.mgpu('submit', '-g', '1', f'{folder}/job.sh', check=True, cwd='/tmp').out)
    harness.until(lambda: os.path.exists(entry(instance, job, 'ready')), 'it is not prepared')
    shutil.rmtree(folder)
    gate.open()
    assert instance.wait(job)['exit_code'] == 0
    assert instance.output(job) == 'it runs\n'


def test_nothing_is_prepared_on_a_drained_node(stage, gate):
    instance, submit = stage
    job = submit(['true'])
    name = node(instance)['name']
    instance.mgpu('node', 'drain', name, user=instance.user, check=True)
    dropped(instance, job)
    gate.open()
    instance.wait(1)
    assert (instance.job(job)['state'], instance.job(job)['attempt']) == ('queued', 0)
    instance.mgpu('node', 'resume', name, user=instance.user, check=True)
    assert (instance.wait(job)['state'], instance.job(job)['attempt']) == ('done', 1)


def test_a_job_prepared_on_a_node_that_is_lost_runs_once_when_it_returns(make_instance, gate, place):
    instance = make_instance('sim:1x24G', arguments=('--node-timeout', '1s'))
    os.chmod(place, 0o777)
    instance.wait(instance.post_job(gate.command(), gpus=1), 'running')
    job = prepare(instance, ['sh', '-c', f'echo here >> {place}/ran'])
    admin = {'user': instance.user, 'check': True}
    agent = next(pid for pid in instance.agents() if harness.process_name(pid) == 'mgpu-agent')
    os.kill(agent, signal.SIGSTOP)
    try:
        assert instance.await_news(lambda: node(instance)['state'] == 'unreachable')
        instance.mgpu('node', 'fence', '-y', node(instance)['name'], **admin)
        assert instance.wait(1)['ended_by'] == 'node_lost'
        assert (instance.job(job)['state'], instance.job(job)['attempt']) == ('queued', 0)
    finally:
        os.kill(agent, signal.SIGCONT)
    assert instance.await_news(lambda: node(instance)['up'] and node(instance)['stopping'] == 0)
    dropped(instance, job)
    assert not os.path.exists(f'{place}/ran')
    instance.mgpu('node', 'resume', node(instance)['name'], **admin)
    ended = instance.wait(job)
    assert (ended['exit_code'], ended['attempt']) == (0, 1), ended
    assert lines_of(f'{place}/ran') == ['here']


def test_a_job_prepared_for_a_gpu_that_fails_waits_for_it(make_instance, gate, place):
    machine = Nvml(place)
    machine.add(bus=0x3b, uuid='GPU-a', used_mib=10)
    machine.lines = ['more 0 0 300000 5000 1000 1000 0 0']  # with these values the stand-in tells of errors, too
    machine.write()
    instance = make_instance(gpus='auto', arguments=machine.arguments)
    instance.wait(instance.post_job(gate.command(), gpus=1), 'running')
    job = prepare(instance, ['true'])
    machine.say('xid 0 79')
    machine.write()
    assert instance.await_news(lambda: instance.gpus()[0]['state'] == 'drained')
    dropped(instance, job)
    gate.open()
    instance.wait(1)
    assert (instance.job(job)['state'], instance.job(job)['attempt']) == ('queued', 0)
    instance.mgpu('gpu', 'resume', '0', user=instance.user, check=True)
    assert (instance.wait(job)['state'], instance.job(job)['attempt']) == ('done', 1)


@pytest.mark.root
def test_a_prepared_job_whose_user_is_deleted_does_not_run(make_instance, gate, place, ana, bo):
    harness.require_namespaces()
    passwd = f'{place}/passwd'
    shutil.copy('/etc/passwd', passwd)
    instance = make_instance('sim:1x24G', start=False, arguments=('--start-patience', '2s'))
    instance.command[:0] = ['unshare', '-m', 'sh', '-c', f'mount --bind {passwd} /etc/passwd && exec "$@"', 'sh']
    instance.start()
    instance.wait(instance.post_job(gate.command(), gpus=1, user=bo), 'running')
    job = prepare(instance, ['touch', f'{place}/ran'], user=ana)
    with open(passwd, 'r+', encoding='utf-8') as lines:
        kept = ''.join(line for line in lines if not line.startswith(f'{ana.name}:'))
        lines.seek(0)
        lines.truncate()
        lines.write(kept)
    gate.open()
    ended = instance.wait(job)
    assert ended['ended_by'] == 'start_failed' and f'unknown user id on this node: {ana.uid}' in ended['message'], ended
    assert 'given up' in ended['message'], ended
    dropped(instance, job)
    assert not os.path.exists(f'{place}/ran')
