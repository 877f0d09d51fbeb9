# SPDX-License-Identifier: MIT
"""What a node does with its GPUs between jobs: --gpu-scrub and --gpu-test-every, on libraries that stand in for the
driver's."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

STANDINS = ('tests/unit/agent/nvml_current/libnvidia-ml.so.1', 'lab/tests/cuda/cuda_current/libcuda.so.1')
GPUS = (('3b', '00112233445566778899aabbccddeeff'), ('5b', '10112233445566778899aabbccddeeff'))
MIB = 1 << 20


class Driver:
    """NVML and CUDA of two GPUs with 64 MiB, which do what their lines say."""

    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder)
        for library in STANDINS:
            shutil.copy(os.path.join(harness.build_folder(), library), folder)
        lines = [f'gpu 0 {bus} 64 0 0 40 50000 GPU-{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]} NVIDIA Stand-in'
                 for bus, d in GPUS]
        lines += [f'more {i} {i} 700000 1000 1980 2619 0 0' for i in range(len(GPUS))]
        pathlib.Path(f'{folder}/nvml.state').write_text('\n'.join(lines) + '\n', encoding='ascii')
        self.say()
        self.arguments = ['--nvml-library', f'{folder}/libnvidia-ml.so.1', '--cuda-library', f'{folder}/libcuda.so.1']

    def count(self, millijoules, corrected):
        """What the driver has counted since it was loaded, for all users."""
        lines = [line for line in pathlib.Path(f'{self.folder}/nvml.state').read_text(encoding='ascii').splitlines()
                 if not line.startswith('more ')]
        lines += [f'more {i} {i} 700000 {millijoules} 1980 2619 {corrected} 0' for i in range(len(GPUS))]
        pathlib.Path(f'{self.folder}/nvml.new').write_text('\n'.join(lines) + '\n', encoding='ascii')
        os.rename(f'{self.folder}/nvml.new', f'{self.folder}/nvml.state')

    def say(self, *lines):
        text = '\n'.join([f'gpu {bus} 64 {digits} NVIDIA Stand-in' for bus, digits in GPUS] + list(lines)) + '\n'
        pathlib.Path(f'{self.folder}/cuda.new').write_text(text, encoding='ascii')
        os.rename(f'{self.folder}/cuda.new', f'{self.folder}/cuda.state')


@pytest.fixture
def driver(place):
    return Driver(f'{place}/driver')


def overwritten(box):
    """The bytes of each time."""
    return [int(count) for count in re.findall(r'\((\d+) bytes\) overwritten', box.log())]


# --- between users ---

@pytest.fixture
def make_box(make_instance, driver):
    return lambda *arguments: make_instance(gpus='auto', arguments=[*driver.arguments, *arguments])


@pytest.mark.root
def test_memory_is_overwritten_before_another_user_gets_it_and_for_no_other(make_box, ana, bo):
    box = make_box('--gpu-scrub', '20s')
    for user, times in ((ana, 1), (ana, 1), (bo, 2), (bo, 2), (ana, 3)):  # who had it before the first is not known
        job = box.submit('-G', '0', '--', 'true', user=user)
        assert box.wait(job)['exit_code'] == 0
        assert overwritten(box) == [62 * MIB] * times, (user.name, box.log())


def await_energy(box, joules):
    """The node has seen the counter."""
    harness.until(lambda: box.gpus()[0]['energy_joules'] == joules, f'{joules} J on the GPU')


def energy(box, job):
    return (box.job(job)['usage'] or {}).get('energy_joules')


@pytest.mark.root
def test_figures_of_a_job_begin_at_zero_whatever_was_counted_before(make_box, driver, ana, bo, gate):
    """The counters of the driver go on, and remain the administrator's evidence: a job has the difference."""
    driver.count(5000000, 7)
    box = make_box()
    await_energy(box, 5000)
    first = box.submit('-G', '0', '--', *gate.command(), user=ana)
    box.wait(first, 'running')
    harness.until(lambda: energy(box, first), 'a sample of the job')
    begun = energy(box, first)  # of its first second, by its power
    assert begun < 1000, 'what was counted before is not its own'
    driver.count(5600000, 9)
    await_energy(box, 5600)
    harness.until(lambda: abs(energy(box, first) - begun - 600) < 1, 'the energy of the job')
    gate.open()
    box.wait(first)
    driver.count(9000000, 9)  # by nobody whom mgpu knows
    await_energy(box, 9000)
    second = box.submit('-G', '0', '--', 'sleep', '1000', user=bo)
    used = harness.until(lambda: energy(box, second) and box.job(second)['usage'], 'a sample of the job')
    assert used['energy_joules'] < 1000 and not used['gpu_memory_peak_bytes'], used
    box.mgpu('cancel', second, user=bo, check=True)
    assert box.gpus()[0]['ecc_corrected'] == 9, 'nothing was cleared'


@pytest.mark.root
def test_a_restarted_agent_knows_the_user_of_a_running_job(make_box, ana, gate):
    box = make_box('--gpu-scrub', '20s')
    job = box.submit('-G', '0', '--', *gate.command(), user=ana)
    box.wait(job, 'running')
    box.restart()
    box.wait(job, 'running')
    gate.open()
    box.wait(job)
    assert box.wait(box.submit('-G', '0', '--', 'true', user=ana))['exit_code'] == 0
    assert len(overwritten(box)) == 1


@pytest.mark.root
def test_a_gpu_that_others_share_is_overwritten_when_they_have_left(make_box, ana, bo, gate):
    box = make_box('--gpu-scrub', '20s')
    first = box.submit('-G', '0', '-m', '20M', '--', *gate.command(), user=ana)
    box.wait(first, 'running')
    assert box.wait(box.submit('-G', '0', '-m', '20M', '--', 'true', user=bo))['exit_code'] == 0
    assert len(overwritten(box)) == 1
    gate.open()
    box.wait(first)
    assert box.wait(box.submit('-G', '0', '--', 'true', user=ana))['exit_code'] == 0
    assert len(overwritten(box)) == 2, 'the other user had it too'


@pytest.mark.parametrize('says, words', [
    (('fail cuMemAlloc_v2 999',), 'CUDA_ERROR_UNKNOWN'),
    (('hang cuInit',), 'it did not finish within 2 s'),
    (('corrupt 5',), 'words do not have what was written'),
    (('used 0 20', 'fail cuMemGetInfo_v2 999'), 'cuMemGetInfo'),
    (('init 3',), 'CUDA'),
], ids=['refuses', 'hangs', 'lies', 'fails', 'does-not-start'])
def test_a_gpu_that_cannot_be_overwritten_stays_out_of_service_with_the_reason(make_box, driver, says, words):
    driver.say(*says)
    box = make_box('--gpu-scrub', '2s')
    job = box.submit('-G', '0', '--', 'true')
    gpu = harness.until(lambda: next((gpu for gpu in box.gpus() if gpu['index'] == 0 and gpu['state'] == 'unclean'), None),
                        'the GPU out of service')
    assert 'could not be overwritten' in gpu['trouble'] and words in gpu['trouble'], gpu
    assert box.job(job)['state'] in ('queued', 'starting')
    assert next(gpu for gpu in box.gpus() if gpu['index'] == 1)['state'] == 'free'
    assert not overwritten(box)
    box.mgpu('cancel', job, check=True)


def test_without_the_library_no_job_starts_and_the_reason_is_told(make_instance, driver):
    os.unlink(f'{driver.folder}/libcuda.so.1')
    box = make_instance(gpus='auto', arguments=[*driver.arguments, '--gpu-scrub', '2s'])
    job = box.submit('-G', '0', '--', 'true')
    harness.until(lambda: any('could not be overwritten' in (gpu['trouble'] or '') for gpu in box.gpus()), 'the reason')
    box.mgpu('cancel', job, check=True)


def test_what_it_overwrites_is_all_that_is_free(driver):
    """The program by itself: what others have stays, and what cannot be had fails."""
    program = f'{harness.programs()}/mgpu-gpu-test'

    def scrub():
        return subprocess.run([program, 'scrub', '--cuda-library', f'{driver.folder}/libcuda.so.1'], check=False,
                              env={'ASAN_OPTIONS': 'detect_leaks=0'}, capture_output=True, text=True,
                              timeout=harness.DEADLINE_S)
    driver.say('used 0 21')
    done = scrub()
    assert done.returncode == 0 and f'"cleared_bytes":{40 * MIB}' in done.stdout, done
    driver.say('fail cuMemAlloc_v2 2')
    done = scrub()
    assert done.returncode == 1 and 'CUDA_ERROR_OUT_OF_MEMORY' in done.stdout, done


# --- tests of idle GPUs ---

def await_tests(box, count=len(GPUS)):
    """The GPUs, once so many have been tested."""
    def look():
        gpus = sorted(box.gpus(), key=lambda gpu: gpu['index'])
        return gpus if sum(bool(gpu['tests']) for gpu in gpus) >= count else None
    return harness.until(look, 'the tests', timeout_s=60)


def test_idle_gpus_are_tested_once_per_interval_and_the_results_survive(make_box):
    box = make_box('--gpu-test-every', '1d')
    gpus = await_tests(box)
    assert all(gpu['tests'][0]['on_gpu_gb_per_s'] > 0 and gpu['tests'][0]['wrong'] == 0 for gpu in gpus), gpus
    assert all(not gpu['processes'] for gpu in gpus), 'the test is no external process'
    before = [gpu['tests'] for gpu in gpus]
    box.restart()
    assert [gpu['tests'] for gpu in await_tests(box)] == before
    assert all(gpu['test_result'] == 'passed' for gpu in await_tests(box))


def test_a_gpu_in_use_is_not_tested_and_a_job_ends_the_test(make_box, driver, gate):
    driver.say('hang cuModuleLoadData')
    box = make_box('--gpu-test-every', '1d')
    job = box.submit('-G', '0-1', '--', *gate.command())
    box.wait(job, 'running')
    assert all(not gpu['tests'] for gpu in box.gpus())
    gate.open()
    box.wait(job)
    harness.until(lambda: any('mgpu-gpu-test' in line.split(' ')[0] for line in harness.processes('health').values()),
                  'a test that hangs')
    job = box.submit('-G', '0-1', '--', 'true')
    assert box.wait(job)['exit_code'] == 0
    assert all(not gpu['tests'] for gpu in box.gpus()), 'an interrupted test has no result'


def test_a_slow_gpu_is_told_everywhere(make_box, driver, gate):
    box = make_box('--gpu-test-every', '1d')
    job = box.submit('-G', '1', '--', *gate.command())
    await_tests(box, 1)
    driver.say('speed 60000')
    gate.open()
    box.wait(job)
    slow = await_tests(box)[1]
    assert slow['test_result'] == 'slow' and slow['test_text'].endswith('40 % below the median of its model'), slow
    assert f'tested: GPU {slow["node"]}:1: {slow["test_text"]}' in box.mgpu('gpus', check=True).out
    doctor = box.mgpu('doctor')
    assert doctor.code == 1 and f'GPU {slow["node"]}:1: {slow["test_text"]}' in doctor.out, doctor.out
    metrics = box.mgpu('gpus', '-o', 'gpu,test', check=True).out
    assert [line.split() for line in metrics.splitlines()[1:3]] == [['0', 'passed'], ['1', 'slow']], metrics


def test_a_wrong_gpu_is_told_and_stays_in_service(make_box, driver):
    driver.say('corrupt 5')
    box = make_box('--gpu-test-every', '1d')
    assert all(gpu['test_result'] == 'failed' and gpu['test_text'].endswith('wrong results')
               for gpu in await_tests(box))
    assert box.mgpu('doctor').out.count('BAD  GPU test') == 2
    assert box.wait(box.submit('-g', '2', '--', 'true'))['exit_code'] == 0


def test_a_test_that_fails_is_told_with_the_reason_and_not_repeated_before_its_time(make_box, driver):
    driver.say('fail cuDevicePrimaryCtxRetain 999')
    box = make_box('--gpu-test-every', '1d')
    gpus = await_tests(box)
    assert all('CUDA_ERROR_UNKNOWN' in gpu['tests'][0]['error'] for gpu in gpus), gpus
    assert all(len(gpu['tests']) == 1 for gpu in gpus)
