# SPDX-License-Identifier: MIT
"""NVIDIA GPUs through the real backend, on a library that stands in for the driver's."""

import os
import pathlib
import subprocess

import pytest

import harness
from nvml import Nvml


@pytest.fixture
def nvml(place):
    made = Nvml(place)
    made.add(bus=0x81, uuid='GPU-second', memory_mib=81920, used_mib=1024, utilization=50, celsius=61,
             milliwatts=300000, model='NVIDIA Big One')
    made.add(bus=0x3b, uuid='GPU-first', used_mib=512, utilization=7, model='NVIDIA Small One')
    made.write()
    return made


def test_the_gpus_of_the_driver_are_listed_in_pci_order(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    gpus = box.mgpu('gpus', '-o', 'json', check=True).json['gpus']
    assert [(gpu['index'], gpu['uuid'], gpu['pci']) for gpu in gpus] == [
        (0, 'GPU-first', '0000:3b:00.0'), (1, 'GPU-second', '0000:81:00.0')]
    big = gpus[1]
    assert (big['model'], big['memory_bytes'], big['memory_used_bytes']) == ('NVIDIA Big One', 80 << 30, 1 << 30)
    assert (big['utilization'], big['temperature_c'], big['power_w']) == (0.5, 61, 300)
    job, output = box.run_job(['sh', '-c', 'echo $MGPU_GPUS'], gpu_ids='1')
    assert (job['granted'][0]['uuid'], output) == ('GPU-second', '1\n')


def test_a_node_says_which_driver_its_gpus_have_now(make_instance, nvml):
    def driver():
        return box.api('GET', '/nodes').json['nodes'][0]['driver']

    nvml.say('driver 570.10')
    nvml.write()
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    assert driver() == '570.10'
    assert '570.10' in box.mgpu('nodes', '-o', 'wide', check=True).out
    nvml.unsay('driver 570.10')
    nvml.say('driver 580.20')
    nvml.write()
    box.kill_gpu_helper()  # as when the module is replaced, which nobody may use meanwhile
    harness.until(lambda: driver() == '580.20', 'the node reports the other driver')
    box.restart()
    assert driver() == '580.20'


def test_a_node_whose_driver_does_not_say_its_version_has_none(make_instance, place):
    old = Nvml(place)
    old.add(bus=0x3b, uuid='GPU-a')
    old.say('fail nvmlSystemGetDriverVersion 3')
    old.write()
    box = make_instance(gpus='auto', arguments=old.arguments)
    assert box.api('GET', '/nodes').json['nodes'][0]['driver'] is None
    assert box.mgpu('nodes', '-o', 'node,driver', check=True).out.splitlines()[1].split()[1] == '-'


def test_numbers_that_cannot_be_true_are_not_shown(make_instance, nvml):
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-a', used_mib=24577, utilization=4294967295, celsius=4294967295,
             milliwatts=4294967295)
    nvml.write()
    gpu = make_instance(gpus='auto', arguments=nvml.arguments).gpus()[0]
    assert (gpu['uuid'], gpu['state']) == ('GPU-a', 'free')
    assert [gpu[name] for name in ('memory_used_bytes', 'utilization', 'temperature_c', 'power_w')] == [None] * 4


def test_the_topology_has_a_row_for_each_gpu(make_instance, nvml):
    nvml.add(bus=0x91, uuid='GPU-third')
    nvml.say('link 0 2')
    nvml.say('link 2 0')
    nvml.write()
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    header, *rows, words = box.mgpu('gpus', '--topology', check=True).out.splitlines()
    rows = rows[:3]  # those after them are interfaces of this machine
    assert header.split() == ['GPU', '0', '1', '2', 'NUMA']
    assert [row.split()[1:4] for row in rows] == [['X', '-', '-'], ['-', 'X', 'NV'], ['-', 'NV', 'X']]
    assert words.startswith('NV: NVLink.')
    assert box.mgpu('gpus', '--topology', '--line').code == 2


def test_the_topology_has_the_network_interfaces(make_instance, nvml, place):
    devices = f'{place}/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0'
    for port, address, numa in (('0000:02:00.0', '0000:3b:00.0', 1), ('0000:02:01.0', '0000:3c:00.0', 1)):
        os.makedirs(f'{devices}/{port}/{address}')
        pathlib.Path(f'{devices}/{port}/{address}/numa_node').write_text(f'{numa}\n', encoding='ascii')
        os.makedirs(f'{place}/sys/bus/pci/devices', exist_ok=True)
        os.symlink(f'../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/{port}/{address}',
                   f'{place}/sys/bus/pci/devices/{address}')
    os.makedirs(f'{devices}/0000:02:01.0/0000:3c:00.0/infiniband/mlx5_7')
    for name, values in (('ib7', {'speed': 200000, 'carrier': 1}), ('lo', {'carrier': 1})):
        os.makedirs(f'{place}/sys/class/net/{name}')
        for file, value in values.items():
            pathlib.Path(f'{place}/sys/class/net/{name}/{file}').write_text(f'{value}\n', encoding='ascii')
    os.symlink(f'{devices}/0000:02:01.0/0000:3c:00.0', f'{place}/sys/class/net/ib7/device')
    box = make_instance(gpus='auto', arguments=[*nvml.arguments, '--sysfs-root', f'{place}/sys'])
    rows = box.mgpu('gpus', '--topology', check=True).out.splitlines()[1:-1]
    assert rows[-1].split() == ['ib7', '(mlx5_7,', '200', 'Gb/s)', 'PIX', '-', '1'], rows
    assert box.api('GET', '/nodes').json['nodes'][0]['nics'] == [
        {'name': 'ib7', 'rdma': 'mlx5_7', 'numa': 1, 'pcie_switch': 0, 'speed_mbit': 200000, 'up': True}]


def test_the_file_may_name_the_library(make_instance, nvml, place):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8') as out:
        out.write(f'nvml-library: {nvml.library}\n')
    box = make_instance(gpus='auto', arguments=['--config', path])
    assert [gpu['uuid'] for gpu in box.gpus()] == ['GPU-first', 'GPU-second']


def test_a_library_that_is_not_there_is_told(make_instance, place):
    box = make_instance(gpus='auto', arguments=['--nvml-library', f'{place}/none.so'])
    assert box.gpus() == []
    assert f'{place}/none.so' in box.mgpu('doctor').out


def test_an_empty_path_is_refused():
    done = subprocess.run([f'{harness.programs()}/mgpud', '--nvml-library='], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=harness.DEADLINE_S)
    assert done.returncode == 64 and '--nvml-library is empty' in done.stderr, done
