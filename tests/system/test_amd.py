# SPDX-License-Identifier: MIT
"""AMD GPUs, on a sysfs that is made up."""

import os
import subprocess

import pytest

import harness
from amd import Amd

ENVIRONMENT = 'echo "${ROCR_VISIBLE_DEVICES-none} ${HIP_VISIBLE_DEVICES-none} ${CUDA_VISIBLE_DEVICES-none}"'


@pytest.fixture
def amd(place):
    made = Amd(place)
    made.add(bus=0x83, unique_id=0xbb, used_gib=2, busy=25)
    made.add(bus=0x03, unique_id=0xaa)
    return made


def test_amd_gpus_are_listed_and_given_to_jobs(make_instance, amd):
    box = make_instance(gpus='amd', arguments=amd.arguments)
    gpus = box.gpus()
    assert [(gpu['index'], gpu['uuid'], gpu['pci'], gpu['model']) for gpu in gpus] == [
        (0, 'GPU-00000000000000aa', '0000:03:00.0', 'AMD Stand-in'),
        (1, 'GPU-00000000000000bb', '0000:83:00.0', 'AMD Stand-in')]
    assert (gpus[1]['memory_used_bytes'], gpus[1]['utilization'], gpus[1]['temperature_c'], gpus[1]['power_w']) == (
        2 << 30, 0.25, 45, 90)
    assert box.api('GET', '/nodes').json['nodes'][0]['gpu_backend'] == 'amd'
    job, output = box.run_job(['sh', '-c', ENVIRONMENT], gpu_ids='1')
    assert job['granted'][0]['uuid'] == 'GPU-00000000000000bb'
    assert output == 'GPU-00000000000000bb 0 none\n'
    job, output = box.run_job(['sh', '-c', ENVIRONMENT], gpus=2)
    assert output == 'GPU-00000000000000aa,GPU-00000000000000bb 0,1 none\n'


def test_a_job_without_gpus_gets_none_of_amd(make_instance, amd):
    box = make_instance(gpus='amd', arguments=amd.arguments)
    assert box.run_job(['sh', '-c', ENVIRONMENT], gpus=0)[1] == '  none\n'


@pytest.mark.skipif(harness.HAS_NVIDIA, reason='this machine has NVIDIA GPUs, which are looked for first')
def test_amd_gpus_are_found_without_being_named(make_instance, amd):
    box = make_instance(gpus='auto', arguments=amd.arguments)
    assert [gpu['index'] for gpu in box.gpus()] == [0, 1]
    assert '2 GPUs found by amd' in box.mgpu('doctor').out


def test_an_amd_gpu_that_vanishes_is_lost_and_the_other_is_not(make_instance, amd):
    box = make_instance(gpus='amd', arguments=amd.arguments)
    amd.remove('devices/0000:03:00.0')
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['lost', 'free'])
    assert box.run_job(['sh', '-c', ENVIRONMENT], gpus=1)[1] == 'GPU-00000000000000bb 0 none\n'


def test_an_amd_gpu_that_hangs_is_lost_alone_and_returns(make_instance, amd):
    box = make_instance(gpus='amd', arguments=amd.arguments)
    busy = f'{amd.root}/devices/0000:03:00.0/gpu_busy_percent'
    os.unlink(busy)
    os.mkfifo(busy)  # whoever reads it waits
    gpus = box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['lost', 'free'])
    assert gpus[0]['trouble'] == 'the driver does not answer when it is asked about it'
    amd.put('devices/0000:03:00.0/gpu_busy_percent', '3\n')
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['free', 'free'])


def test_a_machine_without_amd_gpus_says_so(make_instance, place):
    os.makedirs(f'{place}/empty')
    box = make_instance(gpus='amd', arguments=['--sysfs-root', f'{place}/empty'])
    assert box.gpus() == []
    assert 'no AMD GPU that can compute' in box.mgpu('doctor').out


def test_an_empty_root_is_refused():
    done = subprocess.run([f'{harness.programs()}/mgpud', '--sysfs-root='], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=harness.DEADLINE_S)
    assert done.returncode == 64 and '--sysfs-root is empty' in done.stderr, done
