# SPDX-License-Identifier: MIT
"""MIG instances, on a library that stands in for the driver's: they are GPUs of their own, and their layout is changed by
others."""

import pytest

import harness
import slurm
from nvml import Nvml

SMALL = ('instance 0 9 0 16384 0 MIG-small-1 1g.18gb', 'instance 0 10 0 16384 0 MIG-small-2 1g.18gb')
LARGE = 'instance 0 1 0 71680 0 MIG-large 3g.71gb'


@pytest.fixture
def machine(place):
    """GPU 0 is divided into three instances, which are GPUs 2 to 4; GPU 1 is whole."""
    made = Nvml(place)
    made.add(bus=0x3b, uuid='GPU-divided', memory_mib=143771, model='NVIDIA H200')
    made.add(bus=0x81, uuid='GPU-whole', memory_mib=143771, model='NVIDIA H200')
    for line in ('mig 0 1 1', 'mig 1 0 0', LARGE, *SMALL):
        made.say(line)
    made.write()
    return made


@pytest.fixture
def box(make_instance, machine):
    return make_instance(gpus='auto', arguments=machine.arguments)


def visible(box, *options):
    job = box.submit(*options, '--', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES')
    assert box.wait(job)['state'] == 'done'
    return box.output(job).strip()


def relayout(machine, *lines):
    """Replaces the instances, as nvidia-smi mig does."""
    machine.lines = [line for line in machine.lines if not line.startswith('instance')] + list(lines)
    machine.write()


def test_instances_are_listed_as_gpus_of_their_own(box):
    gpus = box.gpus()
    assert [(gpu['index'], gpu['uuid'], gpu['model'], gpu['state']) for gpu in gpus] == [
        (0, 'GPU-divided', 'NVIDIA H200', 'refused'), (1, 'GPU-whole', 'NVIDIA H200', 'free'),
        (2, 'MIG-large', 'MIG 3g.71gb', 'free'), (3, 'MIG-small-1', 'MIG 1g.18gb', 'free'),
        (4, 'MIG-small-2', 'MIG 1g.18gb', 'free')]
    assert gpus[0]['reason'] == 'MIG mode is on: its 3 instances are offered instead'
    assert gpus[3]['mig'] == {'profile': '1g.18gb', 'parent': 'GPU-divided', 'gpu_instance': 9, 'compute_instance': 0}
    assert gpus[3]['memory_bytes'] == 16 << 30 and gpus[1]['mig'] is None
    out = box.mgpu('gpus', check=True).out
    assert 'MIG 1g.18gb' in out and 'refused: MIG mode is on: its 3 instances are offered instead' in out
    header, *rows, words = box.mgpu('gpus', '--topology', check=True).out.splitlines()
    assert rows[3].split()[1:6] == ['MIG', '-', 'MIG', 'X', 'MIG'] and 'MIG: one GPU' in words, (header, rows)
    assert '5 GPUs found by nvml; 1 is not offered: MIG mode is on' in box.mgpu('doctor').out
    node = box.api('GET', '/nodes').json['nodes'][0]
    assert node['gpus'] == 4 and node['gpu_instances'] == {'3g.71gb': 1, '1g.18gb': 2}


def test_slurm_counts_instances_by_profile(box, place):
    commands = slurm.Slurm(box, place)
    assert commands.out('sinfo', '-h', '-o', '%G') == 'gpu:1,gpu:3g.71gb:1,gpu:1g.18gb:2\n'
    assert 'Gres=gpu:1,gpu:3g.71gb:1,gpu:1g.18gb:2' in commands.out('scontrol', 'show', 'node')
    commands.out('srun', '--gres=gpu:1g.18gb:2', 'true')


def test_a_job_gets_the_instances_of_the_profile_it_names(box):
    assert visible(box, '-g', '1g.18gb:2') == 'MIG-small-1,MIG-small-2'
    assert visible(box, '-g', '1g.18gb') == 'MIG-small-1'
    assert visible(box, '-g', '1:3g.71gb') == 'MIG-large'
    assert visible(box, '-g', '3:mig') == 'MIG-large,MIG-small-1,MIG-small-2'
    assert visible(box, '-g', '1:h200') == 'GPU-whole', 'as CUDA counts instances in its own way, by UUID'
    job = box.submit('-g', '1g.18gb', '--', 'true')
    assert '1g.18gb' in box.mgpu('show', job, check=True).out


def test_a_request_by_memory_gets_the_least_that_has_it(box):
    assert visible(box, '-m', '12G') == 'MIG-small-1'
    assert visible(box, '-m', '60G') == 'MIG-large'
    assert visible(box, '-m', '100G') == 'GPU-whole'


def test_several_gpus_are_not_instances_unless_they_are_named(box):
    answer = box.mgpu('submit', '-g', '2', '--', 'true')
    assert answer.code != 0 and 'one node has at most 1 that are not MIG instances' in answer.err, answer
    assert 'name their profile, as in -g 1g.18gb:2' in answer.err
    assert visible(box, '-G', '3,4') == 'MIG-small-1,MIG-small-2'


def test_a_job_of_an_instance_that_vanished_ends_with_the_reason(box, machine):
    lost = box.submit('-g', '1g.18gb', '--', 'sleep', '600')
    kept = box.submit('-g', '3g.71gb', '--', 'sleep', '600')
    for job in (lost, kept):
        box.wait(job, states='running')
    relayout(machine, LARGE, SMALL[1], 'instance 0 7 0 16384 0 MIG-new 1g.18gb')
    ended = box.wait(lost)
    assert ended['state'] == 'failed' and ended['ended_by'] == 'gpu_fault', ended
    assert 'GPU 3 (MIG 1g.18gb) does not exist any more: the MIG layout was changed' in box.mgpu('show', lost).out
    assert box.job(kept)['state'] == 'running'
    gpus = box.await_gpus(lambda gpus: [gpu['uuid'] for gpu in gpus][-1] == 'MIG-new')
    assert [gpu['uuid'] for gpu in gpus] == ['GPU-divided', 'GPU-whole', 'MIG-large', 'MIG-small-2', 'MIG-new']
    assert visible(box, '-g', '1g.18gb:2') == 'MIG-small-2,MIG-new'
    assert box.mgpu('submit', '-g', '3:1g.18gb', '--', 'true').code != 0


def test_a_gpu_whose_mig_mode_ends_is_offered_as_a_whole_again(box, machine):
    machine.unsay('mig 0 1 1')
    machine.say('mig 0 0 0')
    relayout(machine)
    box.await_gpus(lambda gpus: [(gpu['uuid'], gpu['state']) for gpu in gpus] ==
                   [('GPU-divided', 'free'), ('GPU-whole', 'free')])
    job = box.submit('-g', '2', '--', 'true')
    assert box.wait(job)['state'] == 'done'


def test_the_agent_finds_its_instances_again(box, machine):
    job = box.submit('-g', '1g.18gb', '--', 'sleep', '600')
    box.wait(job, states='running')
    box.kill_agent()
    harness.until(lambda: box.gpus()[3]['state'] == 'used', 'the instance is in use')
    assert visible(box, '-g', '1g.18gb') == 'MIG-small-2'
    assert box.job(job)['state'] == 'running'


def test_a_pause_of_the_gpu_is_one_of_its_instances(box):
    box.mgpu('gpu', 'drain', '0', user=box.user, check=True)
    assert [gpu['state'] for gpu in box.gpus()] == ['paused', 'free', 'paused', 'paused', 'paused']
    job = box.submit('-g', '1g.18gb', '--', 'true')
    assert 'paused' in box.mgpu('why', job).out
    refused = box.mgpu('gpu', 'release', '3', user=box.user)
    assert refused.code != 0 and 'is a MIG instance' in refused.err, refused
    box.mgpu('gpu', 'resume', '0', user=box.user, check=True)
    assert box.wait(job)['state'] == 'done'


def test_a_gpu_is_not_released_under_the_jobs_of_its_instances(box):
    job = box.submit('-g', '1g.18gb', '--', 'sleep', '600')
    box.wait(job, states='running')
    refused = box.mgpu('gpu', 'release', '0', user=box.user)
    assert refused.code != 0 and f'is in use by job {job}' in refused.err, refused
    box.mgpu('cancel', job, check=True)
    box.wait(job)
    box.mgpu('gpu', 'release', '0', user=box.user, check=True)
    assert [gpu['state'] for gpu in box.gpus()] == ['released', 'free', 'released', 'released', 'released']
    box.mgpu('gpu', 'resume', '0', user=box.user, check=True)
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus][2:] == ['free'] * 3)


def test_instances_hang_and_return_with_their_gpu(box, machine):
    machine.say('hang_all 0')
    machine.write()
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['lost', 'free', 'lost', 'lost', 'lost'])
    assert visible(box, '-g', '1:h200') == 'GPU-whole'
    machine.unsay('hang_all 0')
    machine.write()
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus][2:] == ['free'] * 3)
