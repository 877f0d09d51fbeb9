# SPDX-License-Identifier: MIT
"""AMD GPUs, on a sysfs that is made up."""

import os
import subprocess
import time

import pytest

import harness
from amd import Amd
from rocm import Rocm

ENVIRONMENT = 'echo "${ROCR_VISIBLE_DEVICES-none} ${HIP_VISIBLE_DEVICES-none} ${CUDA_VISIBLE_DEVICES-none}"'


def await_true(is_so):
    end = time.monotonic() + harness.DEADLINE_S
    while not is_so():
        assert time.monotonic() < end


def await_doctor(box, is_right):
    await_true(lambda: is_right(box.mgpu('doctor').out))


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
    assert gpus[0]['trouble'] == 'the driver does not respond to queries about it'
    amd.put('devices/0000:03:00.0/gpu_busy_percent', '3\n')
    box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['free', 'free'])


def test_what_sysfs_lacks_comes_from_the_library_of_rocm(make_instance, amd, place):
    rocm = Rocm(place)
    rocm.write('gpu 0 83 0 0 0', 'gpu 0 3 0 0 0', 'limit 0 300000000', 'energy 0 2000000 15.5', 'ecc 0 1 7 2',
               'clocks 0 3 2 1700000000 1600000000')
    amd.put('devices/0000:83:00.0/hwmon/hwmon1/power1_cap', '250000000\n')
    box = make_instance(gpus='amd', arguments=[*amd.arguments, *rocm.arguments])
    first, second = box.await_gpus(lambda gpus: gpus[1]['energy_joules'] is not None)
    assert first['energy_joules'] is None
    assert (second['energy_joules'], second['ecc_corrected'], second['ecc_uncorrected']) == (31, 7, 2)
    assert (second['sm_clock_mhz'], second['memory_clock_mhz'], second['power_limit_w']) == (1700, 1600, 250)
    assert 'not used' not in box.mgpu('doctor').out


def test_a_library_of_rocm_that_hangs_costs_no_gpu(make_instance, amd, place):
    rocm = Rocm(place)
    lines = ['gpu 0 3 0 0 0', 'gpu 0 83 0 0 0', 'limit 0 300000000']
    rocm.write(*lines, 'hang rsmi_init')
    box = make_instance(gpus='amd', arguments=[*amd.arguments, *rocm.arguments])
    gpus = box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['free', 'free'])
    assert gpus[0]['power_limit_w'] is None
    await_doctor(box, lambda out: "ROCm's library is not used: it does not respond" in out)
    assert box.run_job(['sh', '-c', ENVIRONMENT], gpus=1)[1] == 'GPU-00000000000000aa 0 none\n'
    rocm.write(*lines)
    await_doctor(box, lambda out: 'not used' not in out)
    gpus = box.gpus()
    assert [gpu['state'] for gpu in gpus] == ['free', 'free']
    assert gpus[0]['power_limit_w'] == 300


def test_a_library_of_rocm_that_crashes_costs_no_gpu(make_instance, amd, place):
    rocm = Rocm(place)
    rocm.write('gpu 0 3 0 0 0', 'crash rsmi_dev_power_cap_get')
    box = make_instance(gpus='amd', arguments=[*amd.arguments, *rocm.arguments])
    await_doctor(box, lambda out: "2 GPUs found by amd; ROCm's library is not used: it crashed" in out)
    assert [gpu['state'] for gpu in box.gpus()] == ['free', 'free']


def test_the_process_that_calls_rocm_ends_with_the_gpu_helper(make_instance, amd, place):
    rocm = Rocm(place)
    rocm.write('gpu 0 3 0 0 0', 'limit 0 300000000', 'hang rsmi_dev_power_cap_get')
    box = make_instance(gpus='amd', arguments=[*amd.arguments, *rocm.arguments])
    callers = [pid for pid in box.agents() if harness.process_name(pid) == 'mgpu-rocm']
    assert len(callers) == 1
    box.kill_gpu_helper()
    assert harness.wait_process(callers[0])
    rocm.write('gpu 0 3 0 0 0', 'limit 0 300000000')
    await_true(lambda: box.gpus()[0]['power_limit_w'] == 300)


def test_a_library_of_rocm_that_is_not_there_is_told(make_instance, amd, place):
    box = make_instance(gpus='amd', arguments=[*amd.arguments, '--rocm-library', f'{place}/none.so'])
    assert len(box.gpus()) == 2
    out = box.mgpu('doctor').out
    assert '2 GPUs found by amd' in out and "ROCm's library is not used: it cannot be loaded" in out


def test_a_machine_without_amd_gpus_says_so(make_instance, place):
    os.makedirs(f'{place}/empty')
    box = make_instance(gpus='amd', arguments=['--sysfs-root', f'{place}/empty'])
    assert box.gpus() == []
    assert 'no AMD GPU with compute support' in box.mgpu('doctor').out


@pytest.mark.parametrize('option', ['--sysfs-root', '--rocm-library'])
def test_an_empty_place_is_refused(option):
    done = subprocess.run([f'{harness.programs()}/mgpud', f'{option}='], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=harness.DEADLINE_S)
    assert done.returncode == 64 and f'{option} is empty' in done.stderr, done
