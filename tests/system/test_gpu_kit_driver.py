# SPDX-License-Identifier: MIT
"""The stand-ins as slow as the driver of a report (docs/hardware): the time and the code of each call of NVML, and what
calls take while programs start. mgpu must count no GPU as lost then."""

import glob
import json

import pytest

import harness
from test_gpu_kit import kit, results  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')

# The fact of a report, and NVML's function.
FUNCTIONS = {
    'uuid': 'UUID', 'name': 'Name', 'pci': 'PciInfo_v3', 'minor': 'MinorNumber', 'memory': 'MemoryInfo', 'memory_v2': 'MemoryInfo_v2',
    'utilization': 'UtilizationRates', 'temperature': 'Temperature', 'power': 'PowerUsage', 'power_limit': 'EnforcedPowerLimit',
    'energy': 'TotalEnergyConsumption', 'sm_clock': 'ClockInfo', 'memory_clock': 'ClockInfo', 'ecc_corrected': 'TotalEccErrors',
    'ecc_uncorrected': 'TotalEccErrors', 'mig_mode': 'MigMode', 'compute_mode': 'ComputeMode', 'numa_node': 'NumaNodeId',
    'recovery': 'FieldValues', 'processes': 'ComputeRunningProcesses_v3', 'event_types': 'SupportedEventTypes'}
REPORTS = sorted(glob.glob(f'{harness.ROOT}/docs/hardware/*.json'))


class Driver:
    """What a report says of NVML."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as source:
            checks = {check['name']: check['facts'] for check in json.load(source)['checks']}
        self.gpu, self.samples = checks['nvml']['gpus'][0], checks['samples']
        self.init_us = checks['nvml']['init_us']

    def lines(self):
        """A stand-in each of whose calls takes what the slowest of that report took."""
        longest = {'nvmlInit_v2': self.init_us, 'nvmlDeviceGetHandleByIndex_v2': self.gpu['handle_us']}
        for fact, name in FUNCTIONS.items():
            longest[f'nvmlDeviceGet{name}'] = max(longest.get(f'nvmlDeviceGet{name}', 0), self.gpu[fact]['most_us'])
        slowest = self.samples['while_programs_start']['most_us'] // 1000
        measured = 10  # calls of one sample that measure
        return [f'time {name} {us}' for name, us in longest.items() if us > 0] + [f'starting {slowest // measured}']


@pytest.mark.parametrize('path', REPORTS, ids=[path.rsplit('/', 1)[1] for path in REPORTS])
def test_a_driver_as_slow_as_that_of_a_report_loses_no_gpu(kit, path):  # noqa: F811
    driver = Driver(path)
    assert set(FUNCTIONS) == {fact for fact, value in driver.gpu.items() if isinstance(value, dict)}, 'a call without its function'
    kit.install(nvml=driver.lines(), cuda=('init_ms 300',))
    status, checks = kit.run('--only', 'gpus,job-cancel,external')
    assert status == 0, results(checks)
    facts, samples = checks['nvml']['facts'], checks['samples']['facts']
    assert facts['init_us'] >= driver.init_us and facts['gpus'][0]['handle_us'] >= driver.gpu['handle_us']
    for fact in FUNCTIONS:
        assert facts['gpus'][0][fact]['most_us'] >= driver.gpu[fact]['most_us'], fact
    assert facts['gpus'][0]['numa_node']['code'] == driver.gpu['numa_node']['code'] == 3, 'not supported'
    assert samples['while_programs_start']['most_us'] > samples['at_rest']['mean_us'] >= 5000
    assert samples['while_programs_start']['most_us'] >= 60000, 'as the report: it took eight times as long'


@pytest.fixture
def box(kit, make_instance):  # noqa: F811
    """An instance on the kit's driver."""
    kit.install()
    return make_instance(gpus='auto', arguments=['--nvml-library', f'{kit.place}/driver/libnvidia-ml.so.1'])


def holder(kit, mib):  # noqa: F811
    return ['env', f'LD_LIBRARY_PATH={kit.place}/driver', f'{kit.place}/bin/mgpu-gpu-test', 'hold', '-m', f'{mib}M', '-s', '600']


def test_the_memory_of_a_job_that_has_ended_is_gone_with_it(box, kit):  # noqa: F811
    """Samples come once a second; who looks in between is not told of memory that nobody has."""
    for _ in range(3):
        job = box.submit('-G', '0', '--', *holder(kit, 128))
        harness.until(lambda: box.gpus()[0]['memory_used_bytes'] >= 128 << 20, 'its memory is seen')
        box.mgpu('cancel', '--grace', '0', job, check=True)
        assert box.wait(job)['state'] == 'cancelled'
        gpu = box.gpus()[0]
        assert (gpu['state'], gpu['memory_used_bytes'], gpu['processes']) == ('free', 0, [])
