# SPDX-License-Identifier: MIT
"""Parked jobs: their GPUs go to others and come back. The driver is a stand-in (tests/standin/cuda_park.c), which is told
what to do by the file `rules`; a job that "uses CUDA" is a process with a file of its own there, which it looks at before
each step of its work, as a call of CUDA would block."""

import os
import shutil
import time

import pytest

import harness

WORK = '''
import os, sys, time
folder = sys.argv[1]
others = int(sys.argv[2]) if len(sys.argv) > 2 else 0
for _ in range(others):
    if os.fork() == 0:
        break
me = f'{folder}/{os.getpid()}'
with open(me, 'w') as out:
    out.write('0')
uvm = open(f'{folder}/nvidia-uvm')
step = 0
while True:
    with open(me) as state:
        if state.read(1) == '0':
            step += 1
            with open(f'{me}.step', 'w') as out:
                out.write(str(step))
    time.sleep(0.02)
'''


class Cuda:
    """The library in a folder of its own, its rules, and the processes that use it."""

    def __init__(self, folder, library='cuda_park'):
        self.library = f'{folder}/libcuda.so.1'
        self.folder = f'{folder}/cuda.d'
        os.makedirs(self.folder)
        for path in (folder, self.folder):
            os.chmod(path, 0o777)
        shutil.copy(os.path.join(harness.build_folder(), f'tests/unit/agent/lib{library}.so'), self.library)
        os.chmod(self.library, 0o755)
        self.script = f'{folder}/work.py'
        with open(self.script, 'w', encoding='ascii') as out:
            out.write(WORK)
        with open(f'{self.folder}/nvidia-uvm', 'w', encoding='ascii'):
            pass
        self.rule()
        self.arguments = ('--cuda-library', self.library)

    def rule(self, *lines):
        """Replaces all rules, at once."""
        with open(f'{self.folder}/rules.new', 'w', encoding='ascii') as out:
            out.write(''.join(f'{line}\n' for line in lines))
        os.chmod(f'{self.folder}/rules.new', 0o644)
        os.rename(f'{self.folder}/rules.new', f'{self.folder}/rules')

    def work(self, others=0):
        """The command of a job that uses CUDA in 1 + `others` processes."""
        return ('/usr/bin/python3', self.script, self.folder, str(others))

    def states(self):
        found = {}
        for name in os.listdir(self.folder):
            if name.isdigit():
                with open(f'{self.folder}/{name}', encoding='ascii') as file:
                    found[int(name)] = file.read(1)
        return found

    def steps(self):
        """The sum of the steps of all processes."""
        total = 0
        for name in os.listdir(self.folder):
            if name.endswith('.step'):
                with open(f'{self.folder}/{name}', encoding='ascii') as file:
                    total += int(file.read() or 0)
        return total

    def calls(self):
        path = f'{self.folder}/log'
        if not os.path.exists(path):
            return []
        with open(path, encoding='ascii') as file:
            return [line.split()[0] for line in file]


@pytest.fixture
def cuda(place):
    return Cuda(f'{place}/driver')


def start_work(instance, cuda, *options, others=0):
    """A job that has begun its work on the GPU."""
    job = instance.submit('-g', '1', *options, '--', *cuda.work(others))
    harness.until(lambda: len(cuda.states()) >= 1 + others and cuda.steps() > 0, 'the job works on its GPU')
    return job


def phase(instance, job):
    return instance.job(job)['park']


def await_phase(instance, job, wanted):
    harness.until(lambda: phase(instance, job) == wanted, f'job {job} is {wanted or "running"}')


def park(instance, job):
    instance.mgpu('park', job, check=True)
    await_phase(instance, job, 'parked')


def process_state(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        return file.read().rsplit(')', 1)[1].split()[0]


def goes_on(cuda):
    before = cuda.steps()
    harness.until(lambda: cuda.steps() > before, 'the job goes on with its work')


def test_a_parked_job_gives_its_gpu_to_another_and_returns(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    other = instance.submit('-g', '1', '--', 'sleep', '1000')
    assert instance.job(other)['state'] == 'queued'
    park(instance, job)
    instance.wait(other, 'running')
    steps = cuda.steps()
    assert set(cuda.states().values()) == {'2'}
    assert all(process_state(pid) == 'T' for pid in cuda.states())
    assert cuda.calls() == ['lock', 'save']
    instance.mgpu('unpark', job, check=True)
    assert phase(instance, job) == 'waiting'
    assert 'GPU' in instance.mgpu('why', job, check=True).out
    assert cuda.steps() == steps
    instance.mgpu('cancel', other, check=True)
    await_phase(instance, job, None)
    goes_on(cuda)
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock']
    assert instance.job(job)['parked_seconds'] > 0


@pytest.mark.parametrize('rule', ['fail lock 801', 'fail save 801', 'lie lock', 'lie save', 'fail state 999', 'version 12080',
                                  'fail cuInit 100'])
def test_a_job_that_cannot_be_parked_goes_on(make_instance, cuda, rule):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    cuda.rule(rule)
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'], 'a reason')
    assert phase(instance, job) is None
    assert instance.job(job)['state'] == 'running'
    goes_on(cuda)
    assert set(cuda.states().values()) == {'0'}
    cuda.rule()
    park(instance, job)
