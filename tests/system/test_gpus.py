# SPDX-License-Identifier: MIT
"""Who gets which GPU, and when. On simulated GPUs, so that their number and memory are known."""

import pytest

pytestmark = pytest.mark.smoke

GPUS = 'sim:8x24G'


def indexes(job):
    return [grant['index'] for grant in job['granted']]


def show_environment(box, *words, **fields):
    """A job that prints variables; (job, {name: value})."""
    job, output = box.run_job(['sh', '-c', 'env | grep -E "^(CUDA|MGPU)"'], **fields)
    return job, dict(line.split('=', 1) for line in output.splitlines())


def test_the_gpus_are_listed_in_order_with_names_that_stay(box):
    gpus = box.gpus()
    assert [gpu['index'] for gpu in gpus] == list(range(8))
    assert len({gpu['uuid'] for gpu in gpus}) == 8
    assert all(gpu['memory_bytes'] == 24 << 30 and gpu['state'] == 'free' for gpu in gpus)
    before = [gpu['uuid'] for gpu in gpus]
    box.restart()
    assert [gpu['uuid'] for gpu in box.gpus()] == before


def test_one_gpu_is_the_default(box):
    job, env = show_environment(box)
    assert len(job['granted']) == 1
    assert env['CUDA_VISIBLE_DEVICES'] == str(indexes(job)[0])


def test_a_job_is_told_exactly_the_gpus_it_holds(box):
    job, env = show_environment(box, gpus=3)
    assert env['CUDA_VISIBLE_DEVICES'] == ','.join(map(str, indexes(job)))
    assert env['CUDA_DEVICE_ORDER'] == 'PCI_BUS_ID'
    assert env['MGPU_JOB_ID'] == str(job['id'])
    assert len(set(indexes(job))) == 3


def test_exact_ids_are_given_in_the_order_asked(box):
    job, env = show_environment(box, gpu_ids='5,0,2-3')
    assert indexes(job) == [5, 0, 2, 3]
    assert env['CUDA_VISIBLE_DEVICES'] == '5,0,2,3'
    assert job['gpus'] == 4


def test_a_job_without_gpus_sees_none(box):
    job, env = show_environment(box, gpus=0)
    assert job['granted'] == []
    assert env.get('CUDA_VISIBLE_DEVICES', '') in ('', '-1', 'NoDevFiles')


def test_the_setup_command_cannot_change_the_gpus(box):
    job, output = box.run_job(['sh', '-c', 'echo $CUDA_VISIBLE_DEVICES $FROM_SETUP'], gpu_ids='6',
                              setup='export CUDA_VISIBLE_DEVICES=0 FROM_SETUP=yes')
    assert output == '6 yes\n', job


def test_no_gpu_is_given_to_two_exclusive_jobs(box, gate):
    jobs = [box.post_job(gate.command(), gpus=2) for _ in range(4)]
    held = [index for job in jobs for index in indexes(box.wait(job, 'running'))]
    assert sorted(held) == list(range(8))
    assert all(gpu['state'] == 'used' and len(gpu['jobs']) == 1 for gpu in box.gpus())
    gate.open(4)
    for job in jobs:
        assert box.wait(job)['state'] == 'done'
    assert all(gpu['state'] == 'free' for gpu in box.gpus())


def test_jobs_that_name_their_memory_share_a_gpu(box, gate):
    jobs = [box.post_job(gate.command(), gpu_ids='1', gpu_mem='8G') for _ in range(4)]
    for job in jobs[:3]:
        grant = box.wait(job, 'running')['granted'][0]
        assert (grant['index'], grant['memory'], grant['shared']) == (1, 8 << 30, True)
    assert box.job(jobs[3])['state'] == 'queued', '4 x 8 GiB do not fit into 24 GiB'
    assert box.gpus()[1]['state'] == 'shared' and len(box.gpus()[1]['jobs']) == 3
    gate.open()
    box.wait(jobs[3], 'running')
    gate.open(3)
    for job in jobs:
        box.wait(job)


def test_an_exclusive_job_does_not_share(box, gate):
    shared = box.post_job(gate.command(), gpu_ids='2', gpu_mem='1G')
    box.wait(shared, 'running')
    whole = box.post_job(gate.command(), gpu_ids='2')
    assert box.job(whole)['state'] == 'queued'
    gate.open()
    box.wait(shared)
    assert box.wait(whole, 'running')['granted'][0]['shared'] is False
    late = box.post_job(['true'], gpu_ids='2', gpu_mem='1G')
    assert box.job(late)['state'] == 'queued'
    gate.open()
    assert box.wait(late)['state'] == 'done'


def test_higher_priority_runs_first_then_first_come_first_served(box, gate, place):
    blocker = box.post_job(gate.command(), gpus=8)
    box.wait(blocker, 'running')
    order = f'{place}/order'
    asked = [(-10, 'a'), (-5, 'b'), (-10, 'c'), (-5, 'd'), (-1000, 'e'), (0, 'f')]
    jobs = [box.post_job(['sh', '-c', f'echo {name} >> {order}'], gpus=8, priority=priority)
            for priority, name in asked]
    positions = {job: box.job(job)['position'] for job in jobs}
    assert sorted(positions.values()) == [1, 2, 3, 4, 5, 6]
    assert box.job(jobs[0])['reason']
    gate.open()
    for job in jobs:
        box.wait(job)
    with open(order, encoding='ascii') as lines:
        assert lines.read().split() == ['f', 'b', 'd', 'a', 'c', 'e']


def test_a_freed_gpu_starts_the_next_job_at_once(box, gate):
    """Without polling: the next job's allocation is committed together with the end that made it possible."""
    blocker = box.post_job(gate.command(), gpus=8)
    box.wait(blocker, 'running')
    waiting = box.post_job(['true'], gpus=1)
    gate.open()
    box.wait(waiting)
    ended = next(event for event in box.job(blocker)['events'] if event['type'] == 'ended')
    allocated = next(event for event in box.job(waiting)['events'] if event['type'] == 'allocated')
    assert allocated['at'] == ended['at'] or allocated['seq'] - ended['seq'] <= 2, (ended, allocated)


def test_a_cancelled_queued_job_lets_the_next_one_pass(box, gate):
    blocker = box.post_job(gate.command(), gpu_ids='0')
    box.wait(blocker, 'running')
    wide, narrow = box.post_job(['true'], gpus=8), box.post_job(['true'], gpu_ids='0')
    assert box.api('POST', f'/jobs/{wide}/cancel').status == 202
    assert box.wait(wide)['state'] == 'cancelled'
    gate.open()
    assert box.wait(narrow)['state'] == 'done'


@pytest.mark.parametrize('fields, words', [
    ({'gpus': 9}, ('9', '8')),
    ({'gpus': 1024}, ('1024',)),
    ({'gpus': 1025}, ('1025',)),
    ({'gpus': -1}, ('gpus',)),
    ({'gpus': 2 ** 70}, ('big',)),
    ({'gpus': 2 ** 40}, ('gpus',)),
    ({'gpus': 1.5}, ('gpus',)),
    ({'gpus': '2x'}, ('gpus', '2x')),
    ({'gpus': '2:'}, ('2:', 'GPUs')),
    ({'gpus': '2:nosuch'}, ('nosuch', 'available: ')),
    ({'gpu_share': 1000}, ('gpu_share',)),
    ({'gpu_ids': '8'}, ('8',)),
    ({'gpu_ids': '0,0'}, ('twice',)),
    ({'gpu_ids': ''}, ('gpu_ids',)),
    ({'gpu_ids': '3-1'}, ('3-1',)),
    ({'gpu_ids': 'all'}, ('all',)),
    ({'gpu_ids': '0,1', 'gpus': 3}, ('2', '3')),
    ({'gpu_mem': '25G'}, ('25',)),
    ({'gpu_mem': '1024T'}, ('GiB',)),
    ({'gpu_mem': 0}, ()),
    ({'gpu_mem': -5}, ('gpu_mem',)),
    ({'gpu_mem': '8X'}, ('8X',)),
    ({'gpu_mem': '1G', 'gpus': 0}, ('gpu_mem',)),
], ids=str)
def test_an_impossible_request_is_refused_at_once(box, fields, words):
    answer = box.api('POST', '/jobs', {'command': ['true'], **fields})
    if fields == {'gpu_mem': 0}:
        assert answer.status in (201, 400)  # zero bytes: nothing asked for, or no size; both can be said
        return
    assert answer.status == 400, answer
    problem = answer.json
    assert problem['code'] in ('invalid', 'unsatisfiable') and problem['detail']
    for word in words:
        assert word in problem['detail'], problem


@pytest.mark.gpu
def test_a_real_gpu_is_the_one_that_the_job_sees(make_instance):
    instance = make_instance(gpus='auto')
    uuids = {gpu['index']: gpu['uuid'] for gpu in instance.gpus()}
    job, output = instance.run_job(['sh', '-c', 'nvidia-smi -L -i $CUDA_VISIBLE_DEVICES'])
    assert uuids[indexes(job)[0]] in output


@pytest.mark.gpu
def test_a_real_gpu_is_measured(make_instance):
    gpu = make_instance(gpus='auto').gpus()[0]
    assert gpu['memory_bytes'] > 1 << 30 and gpu['memory_used_bytes'] is not None
    assert gpu['temperature_c'] is not None and gpu['model']


def test_a_machine_without_gpus_runs_jobs_that_need_none(make_instance):
    instance = make_instance(gpus='none')
    assert instance.gpus() == []
    assert instance.run_job(['echo', 'x'], gpus=0)[1] == 'x\n'
    answer = instance.api('POST', '/jobs', {'command': ['true']})
    assert answer.status == 400 and answer.json['hint'], answer
