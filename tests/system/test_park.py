# SPDX-License-Identifier: MIT
"""Parked jobs: their GPUs go to others and come back. The driver is a stand-in (tests/standin/cuda_park.c), which is told
what to do by the file `rules`; a job that "uses CUDA" is a process with a file of its own there, which it looks at before
each step of its work, as a call of CUDA would block."""

import datetime
import json
import os
import re
import shutil

import pytest

import harness
import slurm
from nvml import Nvml

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
            with open(f'{me}.step.new', 'w') as out:
                out.write(str(step))
            os.rename(f'{me}.step.new', f'{me}.step')
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

    def state(self, name):
        """The library empties the file before it writes another state."""
        while True:
            with open(f'{self.folder}/{name}', encoding='ascii') as file:
                state = file.read(1)
            if state:
                return state

    def states(self):
        found = {}
        for name in os.listdir(self.folder):
            if name.isdigit():
                found[int(name)] = self.state(name)
        return found

    def steps(self):
        """The sum of the steps of all processes."""
        total = 0
        for name in os.listdir(self.folder):
            if name.endswith('.step'):
                with open(f'{self.folder}/{name}', encoding='ascii') as file:
                    total += int(file.read())
        return total

    def log(self):
        """(function, pid, microseconds of the helper's processor time until then) of each call."""
        path = f'{self.folder}/log'
        if not os.path.exists(path):
            return []
        with open(path, encoding='ascii') as file:
            return [(line.split()[0], *map(int, line.split()[1:])) for line in file]

    def calls(self):
        return [call[0] for call in self.log()]


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


def park(instance, job, *options):
    instance.mgpu('park', *options, job, check=True)
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
                                  'fail cuInit 100', 'nonsense state 7', 'version 0'])
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


@pytest.mark.parametrize('library, words', [('cuda_old', 'cuCheckpointProcessGetState'), (None, 'cannot be loaded')])
def test_a_driver_that_cannot_park_leaves_the_job_alone(make_instance, cuda, library, words):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    if library is None:
        os.unlink(cuda.library)
    else:
        shutil.copy(os.path.join(harness.build_folder(), f'tests/unit/agent/lib{library}.so'), cuda.library)
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'], 'a reason')
    assert words in instance.job(job)['park_text']
    assert cuda.calls() == []
    goes_on(cuda)


PARKING_CALLS = ['cuInit', 'cuDriverGetVersion', 'cuGetErrorName', 'cuCheckpointProcessGetState', 'cuCheckpointProcessLock',
                 'cuCheckpointProcessCheckpoint', 'cuCheckpointProcessRestore', 'cuCheckpointProcessUnlock']


def test_a_driver_without_any_one_function_leaves_the_job_alone(make_instance, cuda):
    """The library with another name in the function's place."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    with open(cuda.library, 'rb') as source:
        whole = source.read()
    texts = set()
    for name in PARKING_CALLS:
        old = b'\0' + name.encode() + b'\0'
        assert old in whole
        with open(f'{cuda.library}.new', 'wb') as out:
            out.write(whole.replace(old, b'\0x' + old[2:]))
        os.chmod(f'{cuda.library}.new', 0o755)
        os.rename(f'{cuda.library}.new', cuda.library)
        instance.mgpu('park', job, check=True)
        wanted = 'does not report its version' if name in ('cuInit', 'cuDriverGetVersion') else f'has no {name}'
        texts.add(harness.until(lambda wanted=wanted: wanted in (instance.job(job)['park_text'] or '') and
                                instance.job(job)['park_text'], f'the job is told that {name} is missing'))
        assert phase(instance, job) is None
    assert len(texts) == len(PARKING_CALLS) - 1
    assert cuda.calls() == []
    goes_on(cuda)


@pytest.mark.parametrize('name', ['cuInit', 'version'])
def test_a_driver_that_hangs_before_anything_is_touched_is_given_up(make_instance, cuda, name):
    instance = make_instance(gpus='sim:1x24G', arguments=(*cuda.arguments, '--park-timeout', '1s'))
    job = start_work(instance, cuda)
    cuda.rule(f'hang {name}')
    instance.mgpu('park', job, check=True)
    goes_on(cuda)
    text = harness.until(lambda: instance.job(job)['park_text'], 'it is given up', timeout_s=60)
    assert 'not answered' in text
    goes_on(cuda)
    assert phase(instance, job) is None and cuda.calls() == []
    cuda.rule()
    harness.until(lambda: instance.mgpu('park', job).code == 0 and phase(instance, job), 'it can be parked')
    await_phase(instance, job, 'parked')


def test_a_parked_job_that_waits_shows_when_it_will_return_and_why_not_now(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    park(instance, job)
    assert instance.job(job)['eta'] is None, 'nobody has asked it to return'
    other = instance.submit('-g', '1', '-t', '1h', '--', 'sleep', '1000')
    instance.wait(other, 'running')
    instance.mgpu('unpark', job, check=True)
    harness.until(lambda: instance.job(job)['eta'], 'the expected start')
    seconds = (datetime.datetime.fromisoformat(instance.job(job)['eta'].replace('Z', '+00:00'))
               - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 0 < seconds <= 3600 + 60
    why = instance.mgpu('why', job, check=True).out
    assert 'GPU' in why and 'parked' in why and 'not waiting' not in why, why


def test_a_node_without_nvidia_gpus_refuses_at_once(make_instance):
    instance = make_instance(gpus='sim:1x24G')
    job = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(job, 'running')
    answer = instance.mgpu('park', job)
    assert answer.code != 0 and 'cannot park jobs' in answer.err
    assert phase(instance, job) is None


def test_a_driver_that_hangs_costs_no_job(make_instance, cuda):
    """The call is never cut off: the helper undoes it when the driver answers."""
    instance = make_instance(gpus='sim:1x24G', arguments=(*cuda.arguments, '--park-timeout', '1s'))
    job = start_work(instance, cuda)
    cuda.rule('hang save')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'], 'it is given up', timeout_s=60)
    assert 'not answered' in instance.job(job)['park_text']
    cuda.rule()
    harness.until(lambda: set(cuda.states().values()) == {'0'}, 'the helper has undone it')
    goes_on(cuda)
    park(instance, job)


@pytest.mark.parametrize('moment', ['lock', 'save'])
def test_a_process_that_starts_cuda_meanwhile_is_saved_too(make_instance, cuda, moment):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    late = f'{cuda.folder}/late'
    script = f'while [ ! -e {late} ]; do sleep 0.02; done; exec {" ".join(cuda.work())}'
    job = instance.submit('-g', '1', '--', 'sh', '-c', f'({script}) & exec {" ".join(cuda.work())}')
    harness.until(lambda: len(cuda.states()) == 1 and cuda.steps() > 0, 'the first process works')
    cuda.rule(f'delay {moment} 500')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: moment in cuda.calls(), f'the first process is at {moment}')
    with open(late, 'w', encoding='ascii'):
        pass
    await_phase(instance, job, 'parked')
    assert set(cuda.states().values()) == {'2'}
    assert all(process_state(pid) == 'T' for pid in cuda.states())


@pytest.mark.parametrize('moment', ['lock', 'save'])
def test_the_agent_dies_while_a_job_is_parked(make_instance, cuda, moment):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    cuda.rule(f'delay {moment} 700')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: moment in cuda.calls(), f'the helper is at {moment}')
    instance.kill_agent()
    await_phase(instance, job, 'parked')
    assert cuda.calls() == ['lock', 'save']
    instance.kill_agent()
    cuda.rule('delay restore 700')
    instance.mgpu('unpark', job, check=True)
    harness.until(lambda: 'restore' in cuda.calls(), 'the helper restores')
    instance.kill_agent()
    await_phase(instance, job, None)
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock']
    goes_on(cuda)


@pytest.mark.parametrize('moment', ['lock', 'save'])
def test_the_helper_dies_and_the_job_goes_on(make_instance, cuda, moment):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, others=1)
    cuda.rule(f'die {moment}')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'], 'a reason')
    assert phase(instance, job) is None
    harness.until(lambda: set(cuda.states().values()) == {'0'}, 'no process is locked')
    goes_on(cuda)


def test_mgpud_dies_while_a_job_is_parked(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    park(instance, job)
    other = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(other, 'running')
    instance.mgpu('unpark', job, check=True)
    instance.kill()
    instance.start()
    assert phase(instance, job) == 'waiting'
    instance.mgpu('cancel', other, check=True)
    await_phase(instance, job, None)
    goes_on(cuda)


def test_a_parked_job_can_be_cancelled_and_requeued(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    park(instance, job)
    instance.mgpu('cancel', job, check=True)
    assert instance.wait(job)['state'] == 'cancelled'
    for name in cuda.states():
        os.unlink(f'{cuda.folder}/{name}')
    again = start_work(instance, cuda)
    park(instance, again)
    instance.mgpu('requeue', again, check=True)
    harness.until(lambda: instance.job(again)['attempt'] == 2 and instance.job(again)['state'] == 'running', 'it runs again')
    assert phase(instance, again) is None


def test_a_restore_that_fails_ends_the_job_with_a_sentence_and_its_user_is_told(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    told = f'{cuda.folder}/told'
    job = start_work(instance, cuda, '--notify', f'cat > {told}.part; mv {told}.part {told}', '--notify-on', 'fail')
    park(instance, job)
    cuda.rule('fail restore 2')
    instance.mgpu('unpark', job, check=True)
    done = instance.wait(job)
    assert done['ended_by'] == 'gpu_fault'
    assert 'CUDA_ERROR_OUT_OF_MEMORY' in done['park_text']
    sentence = f'the driver could not continue it after it was parked: {done["park_text"]}'
    assert done['message'] == sentence
    shown = instance.mgpu('show', job, check=True).out
    assert sentence in shown and 'not parked' not in shown, shown
    assert '--no-park' in instance.mgpu('postmortem', job, check=True).out
    harness.until(lambda: os.path.exists(told), 'its user is told')
    with open(told, encoding='utf-8') as source:
        assert json.load(source)['message'] == sentence


def test_show_lists_each_time_in_which_a_job_was_parked_with_its_cause(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, '--preemptible', '--on-preempt', 'park')

    def parked():
        lines = instance.mgpu('show', job, check=True).out.splitlines()
        return [line.split(maxsplit=1)[1] for line in lines if line.startswith('parked ')]
    assert parked() == []
    park(instance, job)
    (first,) = parked()
    assert re.fullmatch(rf'since \S+ \(\S+\), requested by {instance.client.name}', first), first
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    assert instance.wait(instance.submit('-g', '1', '--', 'true'))['state'] == 'done'
    await_phase(instance, job, None)
    cuda.rule('fail save 801')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'] and phase(instance, job) is None, 'it was not parked')
    cuda.rule()
    park(instance, job)
    first, second, third = parked()
    assert re.fullmatch(rf'\S+ to \S+ \(\S+\), requested by {instance.client.name}', first), first
    assert re.fullmatch(r'\S+ to \S+ \(\S+\), because other jobs needed its GPUs', second), second
    assert third.startswith('since '), third
    instance.mgpu('cancel', job, check=True)
    instance.wait(job)
    assert parked()[2].endswith(f', requested by {instance.client.name}; it ended parked'), parked()
    assert re.search(r'ran \S+  \S+ parked \S+  ended', instance.mgpu('show', job, check=True).out)
    text = instance.mgpu('history', '-o', 'id,run,parked', '--no-header', check=True).out
    assert {len(line.split()) for line in text.splitlines()} == {3} and '-' in text.split(), text


def test_a_job_returns_at_the_time_it_was_parked_for(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    instance.mgpu('park', '--for', '1s', job, check=True)
    harness.until(lambda: 'unlock' in cuda.calls(), 'it has returned')
    await_phase(instance, job, None)
    goes_on(cuda)


def test_a_parked_job_is_suspended_in_the_words_of_slurm(make_instance, cuda, place):
    """sacct counts the time in which its processes stand still for either reason, or for both, once."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    commands = slurm.Slurm(instance, place)
    job = start_work(instance, cuda)
    park(instance, job)
    assert commands.out('squeue', '-h', '-j', job, '-o', '%t %T').split() == ['S', 'SUSPENDED']
    assert commands.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'State').strip() == 'SUSPENDED'
    shown = json.loads(commands.out('squeue', '-j', job, '--json'))['jobs'][0]
    parked_at = datetime.datetime.fromisoformat(instance.job(job)['parked_at'].replace('Z', '+00:00')).timestamp()
    assert shown['suspend_time'] == int(parked_at), shown

    def suspended():
        text = commands.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'Suspended').strip()
        return sum(int(part) * 60 ** i for i, part in enumerate(reversed(text.split(':'))))
    harness.until(lambda: suspended() >= 2, 'it stands still for two seconds')
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    assert commands.out('squeue', '-h', '-j', job, '-o', '%t').strip() == 'R'
    instance.mgpu('cancel', job, check=True)
    done = instance.wait(job)
    assert 2 <= suspended() <= 3 + done['parked_seconds'], (suspended(), done['parked_seconds'])


@pytest.mark.parametrize('command', ['continue', 'resume', 'signal'])
def test_a_parked_job_that_is_continued_returns(make_instance, cuda, place, command):
    """Slurm's commands show it as suspended. One that is suspended as well continues first, and is still parked."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    commands = slurm.Slurm(instance, place)
    job = start_work(instance, cuda)

    def continues():
        return {'continue': lambda: instance.mgpu('continue', job), 'resume': lambda: commands.run('scontrol', 'resume', job),
                'signal': lambda: instance.mgpu('signal', job, 'CONT')}[command]()
    park(instance, job)
    instance.mgpu('suspend', job, check=True)
    assert continues().code == 0 and phase(instance, job) == 'parked' and instance.job(job)['suspended_at'] is None
    other = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(other, 'running')
    assert continues().code == 0 and phase(instance, job) == 'waiting'
    refused = continues()
    assert refused.code != 0 and (command == 'resume' or f'job {job} returns as soon as its GPUs are free' in refused.err), refused
    instance.mgpu('cancel', other, check=True)
    await_phase(instance, job, None)
    goes_on(cuda)


def test_a_job_without_gpus_is_refused_at_once(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    without = instance.submit('-g', '0', '--', 'sleep', '1000')
    instance.wait(without, 'running')
    answer = instance.mgpu('park', without)
    assert answer.code != 0 and 'no GPUs' in answer.err


def test_the_time_limit_stands_still_while_a_job_is_parked(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, '-t', '4')
    park(instance, job)
    other = instance.submit('-g', '1', '-t', '4', '--', 'sleep', '1000')
    assert instance.wait(other)['ended_by'] == 'time_limit'  # the same limit, which begins later, has passed
    assert phase(instance, job) == 'parked'
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    goes_on(cuda)
    assert instance.wait(job)['ended_by'] == 'time_limit'


def test_a_job_is_parked_at_its_time_limit_and_comes_back(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, '-t', '1', '--on-timeout', 'park')
    harness.until(lambda: 'restore' in cuda.calls(), 'it was parked, and came back')
    assert instance.job(job)['state'] == 'running'


def test_a_preempted_job_is_parked_and_keeps_its_work(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, '--preemptible', '--on-preempt', 'park')
    other = instance.submit('-g', '1', '--', 'sleep', '2')
    instance.wait(other, 'running')
    assert phase(instance, job) == 'waiting'
    steps = cuda.steps()
    assert instance.wait(other)['state'] == 'done'
    harness.until(lambda: cuda.steps() > steps, 'it goes on with its work')
    assert instance.job(job)['attempt'] == 1


def test_a_preempted_job_that_cannot_be_parked_is_requeued(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, '--preemptible', '--on-preempt', 'park')
    cuda.rule('fail save 801')
    other = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(other, 'running')
    assert instance.job(job)['state'] == 'queued'


def test_a_job_that_is_never_parked_refuses_whoever_asks_and_is_requeued_when_preempted(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, '--preemptible', '--no-park')
    assert 'never parked' in instance.mgpu('show', job, check=True).out
    for user in (instance.client, instance.user):  # its owner, and the administrator
        refused = instance.mgpu('park', job, user=user)
        assert refused.code == 2 and f'job {job} is never parked' in refused.err, refused
    instance.mgpu('edit', job, 'no_park=no', check=True)
    park(instance, job)
    instance.mgpu('edit', job, 'no_park=yes', check=True)
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    instance.restart()
    harness.until(lambda: instance.job(job)['state'] == 'running', 'its node reports it')
    assert instance.job(job)['no_park'] is True and instance.mgpu('park', job).code == 2
    other = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(other, 'running')
    assert instance.job(job)['state'] == 'queued' and instance.job(job)['no_park'] is True


def test_all_processes_of_a_tree_are_parked(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, others=15)
    park(instance, job)
    assert set(cuda.states().values()) == {'2'} and len(cuda.states()) == 16
    calls = cuda.calls()
    assert calls == ['lock'] * 16 + ['save'] * 16
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    assert cuda.calls()[32:] == ['restore'] * 16 + ['unlock'] * 16
    goes_on(cuda)


def assert_runs(instance, cuda, job):
    """Nothing of it is locked, saved or stopped."""
    await_phase(instance, job, None)
    harness.until(lambda: set(cuda.states().values()) == {'0'}, 'no process is locked')
    assert not any(process_state(pid) == 'T' for pid in cuda.states())
    goes_on(cuda)


def test_host_memory_that_is_full_half_way_undoes_the_save(make_instance, cuda):
    """Two of three processes have been saved when the driver finds no memory for the third."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, others=2)
    cuda.rule('room 2')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'], 'a reason')
    assert 'CUDA_ERROR_OUT_OF_MEMORY' in instance.job(job)['park_text']
    assert sorted(cuda.calls()) == ['lock'] * 3 + ['restore'] * 2 + ['save'] * 3 + ['unlock'] * 3
    assert_runs(instance, cuda, job)
    cuda.rule()
    park(instance, job)


def test_a_job_that_the_driver_leaves_on_its_gpu_runs_on(make_instance, cuda, place):
    """The driver reports success, and NVML still lists the process on the GPU."""
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    instance = make_instance(gpus='auto', arguments=(*nvml.arguments, *cuda.arguments))
    job = start_work(instance, cuda)
    nvml.say(f'process 0 compute {next(iter(cuda.states()))} 2048')
    nvml.write()
    harness.until(lambda: [process['job'] for process in instance.gpus()[0]['processes'] or []] == [job], 'the process is seen')
    instance.mgpu('park', job, check=True)
    text = harness.until(lambda: instance.job(job)['park_text'], 'a reason', timeout_s=60)
    assert 'the driver has saved its memory, but' in text and 'is still there' in text
    assert_runs(instance, cuda, job)
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock']


UUIDS = [f'GPU-00000000-0000-0000-0000-00000000000{digit}' for digit in 'abc']


def read_map(cuda):
    """The last digits of the pairs with which the driver was to restore."""
    with open(f'{cuda.folder}/map', encoding='ascii') as source:
        return {line.split()[0][-1]: line.split()[1][-1] for line in source}


@pytest.fixture
def three(make_instance, cuda, place):
    """A node with three equal GPUs, and one of another model."""
    nvml = Nvml(place)
    for number, uuid in enumerate(UUIDS):
        nvml.add(bus=0x1b + 16 * number, uuid=uuid)
    nvml.add(bus=0x5b, uuid='GPU-00000000-0000-0000-0000-00000000000d', model='NVIDIA Other')
    nvml.write()
    return make_instance(gpus='auto', arguments=(*nvml.arguments, *cuda.arguments))


def indexes(instance, job):
    return [grant['index'] for grant in instance.job(job)['granted']]


def test_a_job_may_return_on_another_gpu_of_the_same_model(three, cuda):
    job = start_work(three, cuda, '--gpu-ids', '0', '--park-anywhere')
    park(three, job)
    others = [three.submit('--gpu-ids', number, '--', 'sleep', '1000') for number in ('0', '1')]
    for other in others:
        three.wait(other, 'running')
    three.mgpu('unpark', job, check=True)
    assert_runs(three, cuda, job)
    assert indexes(three, job) == [2]
    assert read_map(cuda) == {'a': 'c', 'b': 'b', 'c': 'a', 'd': 'd'}, 'all GPUs of the node, each once'
    park(three, job)
    three.mgpu('cancel', others[1], check=True)
    three.wait(others[1])
    last = three.submit('--gpu-ids', '2', '--', 'sleep', '1000')
    three.wait(last, 'running')
    three.kill_agent()
    three.mgpu('unpark', job, check=True)
    assert_runs(three, cuda, job)
    assert indexes(three, job) == [1]
    assert read_map(cuda) == {'a': 'a', 'b': 'c', 'c': 'b', 'd': 'd'}
    assert three.job(job)['attempt'] == 1


@pytest.mark.parametrize('options, taken', [((), '0'), (('--park-anywhere',), '0-2')], ids=['its own', 'its model'])
def test_a_job_waits_for_the_gpus_on_which_it_may_return(three, cuda, options, taken):
    """Others are free: of its model, or of another."""
    job = start_work(three, cuda, '--gpu-ids', '0', *options)
    park(three, job)
    blocker = three.submit('--gpu-ids', taken, '--', 'sleep', '1000')
    three.wait(blocker, 'running')
    three.mgpu('unpark', job, check=True)
    assert phase(three, job) == 'waiting'
    assert 'GPU' in three.mgpu('why', job, check=True).out
    three.mgpu('cancel', blocker, check=True)
    assert_runs(three, cuda, job)
    assert indexes(three, job) == [0] or options
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock']


@pytest.mark.parametrize('options', [('-g', '0.5'), ('-m', '8G'), ('-N', '2', '-g', '2')])
def test_only_whole_gpus_of_one_node_can_be_exchanged(three, options):
    answer = three.mgpu('submit', *options, '--park-anywhere', '--', 'true')
    assert answer.code != 0 and 'park_anywhere needs' in answer.err


def test_calls_that_hang_hold_up_no_other_job(make_instance, cuda):
    """One job in each function of the way there, and one that is well; then each way back."""
    instance = make_instance(gpus='sim:4x24G', arguments=(*cuda.arguments, '--park-timeout', '1s'))
    jobs, pids = {}, {}
    for name in ('state', 'lock', 'save', None):
        known = set(cuda.states())
        jobs[name] = instance.submit('-g', '1', '--', *cuda.work())
        pids[name] = harness.until(lambda known=known: set(cuda.states()) - known, 'it works').pop()
    cuda.rule(*(f'hang_for {name} {pids[name]}' for name in ('state', 'lock', 'save')))
    for job in jobs.values():
        instance.mgpu('park', job, check=True)
    await_phase(instance, jobs[None], 'parked')
    for name in ('state', 'lock', 'save'):
        text = harness.until(lambda name=name: instance.job(jobs[name])['park_text'], f'{name} is given up', timeout_s=60)
        assert 'not answered' in text, text
    cuda.rule()
    harness.until(lambda: sorted(cuda.states().values()) == ['0', '0', '0', '2'], 'all of it is undone', timeout_s=60)
    for name in ('restore', 'unlock'):
        cuda.rule(f'hang {name}')
        instance.mgpu('unpark', jobs[None], check=True)
        harness.until(lambda name=name: cuda.calls()[-1] == name, f'it hangs in {name}')
        assert phase(instance, jobs[None]) == 'restoring'
        instance.mgpu('gpus', check=True)
        cuda.rule()
        await_phase(instance, jobs[None], None)
        if name == 'restore':
            park(instance, jobs[None])
    assert_runs(instance, cuda, jobs[None])


def test_a_job_that_does_not_use_cuda_gives_up_its_gpu_by_standing_still(make_instance, cuda, place):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    mark = f'{place}/driver/pid'
    job = instance.submit('-g', '1', '--', 'sh', '-c', f'echo $$ > {mark}; exec sleep 1000')
    harness.until(lambda: os.path.exists(mark) and os.path.getsize(mark), 'it runs')
    with open(mark, encoding='ascii') as source:
        pid = int(source.read())
    park(instance, job)
    assert process_state(pid) == 'T' and cuda.calls() == []
    other = instance.submit('-g', '1', '--', 'true')
    assert instance.wait(other)['exit_code'] == 0
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    harness.until(lambda: process_state(pid) == 'S', 'it continues')


def test_an_array_is_parked_element_by_element(make_instance, cuda):
    """A waiting element has nothing to be parked, and gets the GPUs of the others."""
    instance = make_instance(gpus='sim:2x24G', arguments=cuda.arguments)
    array = instance.submit('-g', '1', '--array', '0-1', '--', *cuda.work())
    harness.until(lambda: len(cuda.states()) == 2 and cuda.steps() > 0, 'both elements work')
    instance.mgpu('park', array, check=True)
    harness.until(lambda: sorted(cuda.states().values()) == ['2', '2'], 'both are saved')
    other = instance.submit('-g', '2', '--', 'true')
    assert instance.wait(other)['exit_code'] == 0
    instance.mgpu('unpark', array, check=True)
    harness.until(lambda: sorted(cuda.states().values()) == ['0', '0'], 'both run again')
    instance.mgpu('cancel', array, check=True)


CALLS = 4  # of each direction for two processes


def test_the_agent_dies_in_each_step_of_both_directions(make_instance, cuda):
    """In each call of the driver in turn: the helper survives its agent, and the next agent takes its result over."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, others=1)
    for step in range(1, CALLS + 1):
        begun = len(cuda.calls())
        for verb, wanted in (('park', 'parked'), ('unpark', None)):
            number = len(cuda.calls()) + step
            cuda.rule(f'hold {number}')
            instance.mgpu(verb, job, check=True)
            harness.until(lambda: len(cuda.calls()) == number, f'call {step} of {verb}')
            instance.kill_agent()
            cuda.rule()
            await_phase(instance, job, wanted)
        assert cuda.calls()[begun:] == ['lock'] * 2 + ['save'] * 2 + ['restore'] * 2 + ['unlock'] * 2
    assert_runs(instance, cuda, job)
    assert instance.job(job)['attempt'] == 1


def test_the_helper_dies_in_each_step_of_both_directions(make_instance, cuda):
    """A save that is cut off is undone, a restore is finished; the job never loses its work."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, others=1)
    for step in range(1, CALLS + 1):
        cuda.rule(f'die_at {len(cuda.calls()) + step}')
        instance.mgpu('park', job, check=True)
        harness.until(lambda: instance.job(job)['park_text'], f'a reason after the death in call {step}')
        assert_runs(instance, cuda, job)
        cuda.rule()
        park(instance, job)
        cuda.rule(f'die_at {len(cuda.calls()) + step}')
        instance.mgpu('unpark', job, check=True)
        assert_runs(instance, cuda, job)
    assert instance.job(job)['attempt'] == 1


def test_a_command_of_exec_is_parked_with_its_job(make_instance, cuda):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    command = instance.popen('exec', job, '--', *cuda.work())
    harness.until(lambda: len(cuda.states()) == 2, 'the command works too')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: phase(instance, job) == 'parked' or instance.job(job)['park_text'], 'a result')
    if phase(instance, job) == 'parked':
        assert set(cuda.states().values()) == {'2'} and all(process_state(pid) == 'T' for pid in cuda.states())
    instance.mgpu('cancel', job, check=True)
    instance.wait(job)
    command.wait(harness.DEADLINE_S)


@pytest.mark.parametrize('site, own, words', [
    (('--park-max', '1G'), (), 'the parked jobs of its node leave (park-max) 1 GiB for it'),
    ((), ('-M', '1G'), 'its limit of host memory leaves')], ids=['park-max', 'memory'])
def test_host_memory_is_checked_before_anything_is_touched(make_instance, cuda, place, site, own, words):
    """With what NVML says of the job's processes: 2 GiB."""
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    instance = make_instance(gpus='auto', arguments=(*nvml.arguments, *cuda.arguments, *site))
    job = start_work(instance, cuda, *own)
    nvml.say(f'process 0 compute {next(iter(cuda.states()))} 2048')
    nvml.write()
    harness.until(lambda: [process['job'] for process in instance.gpus()[0]['processes'] or []] == [job], 'the process is seen')
    instance.mgpu('park', job, check=True)
    harness.until(lambda: instance.job(job)['park_text'], 'a reason')
    text = instance.job(job)['park_text']
    if own and 'limit of host memory' not in text:
        pytest.skip('host memory is not limited here')
    assert 'it uses 2 GiB of GPU memory' in text and words in text
    assert cuda.calls() == []
    goes_on(cuda)


def test_jobs_that_are_saved_at_the_same_time_share_the_nodes_budget(make_instance, cuda, place):
    nvml = Nvml(place)
    for bus, uuid in ((0x3b, 'GPU-a'), (0x5b, 'GPU-b')):
        nvml.add(bus=bus, uuid=uuid)
    nvml.write()
    instance = make_instance(gpus='auto', arguments=(*nvml.arguments, *cuda.arguments, '--park-max', '3G'))
    jobs = [start_work(instance, cuda)]
    first = next(iter(cuda.states()))
    jobs.append(instance.submit('-g', '1', '--', *cuda.work()))
    harness.until(lambda: len(cuda.states()) == 2, 'both work')
    second = next(pid for pid in cuda.states() if pid != first)
    for job, pid in zip(jobs, (first, second)):
        nvml.say(f'process {instance.job(job)["granted"][0]["index"]} compute {pid} 2048')
    nvml.write()
    harness.until(lambda: sorted(process['job'] for gpu in instance.gpus() for process in gpu['processes'] or []) == sorted(jobs),
                  'the processes are seen')
    cuda.rule('hang save')
    instance.mgpu('park', jobs[0], check=True)
    harness.until(lambda: 'save' in cuda.calls(), 'the first one is being saved')
    instance.mgpu('park', jobs[1], check=True)
    harness.until(lambda: instance.job(jobs[1])['park_text'], 'a reason')
    assert 'it uses 2 GiB of GPU memory, and the parked jobs of its node leave (park-max) 1 GiB' in \
        instance.job(jobs[1])['park_text']
    nvml.lines.clear()  # a process that is saved has nothing on its GPU
    nvml.write()
    cuda.rule()
    await_phase(instance, jobs[0], 'parked')


def test_a_job_whose_gpu_fails_stays_parked_until_it_is_well(make_instance, cuda, place):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    instance = make_instance(gpus='auto', arguments=(*nvml.arguments, *cuda.arguments, '--gpu-recover', '1s'))
    job = start_work(instance, cuda)
    park(instance, job)
    nvml.say('lost 0')
    nvml.write()
    instance.await_gpus(lambda gpus: gpus[0]['state'] in ('lost', 'drained'))
    instance.mgpu('unpark', job, check=True)
    assert phase(instance, job) == 'waiting'
    assert 'GPU' in instance.mgpu('why', job, check=True).out
    assert 'restore' not in cuda.calls(), 'a restore that fails can never be repeated'
    nvml.unsay('lost 0')
    nvml.write()
    assert_runs(instance, cuda, job)


def test_a_tree_of_64_processes_costs_little(make_instance, cuda):
    """The helper's own processor time until its last call; the build with sanitizers takes several times as long."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda, others=63)
    park(instance, job)
    assert len(cuda.calls()) == 128
    used = cuda.log()[-1][2]
    print(f'processor time of the helper: {used / 1000:.1f} ms')
    assert used < 50000 * (10 if harness.is_sanitized() else 1)
    instance.mgpu('unpark', job, check=True)
    assert_runs(instance, cuda, job)


def back_up(instance, place):
    path = f'{place}/mgpu.backup'
    instance.mgpu('backup', path, user=instance.user, check=True)
    return path


def restore(instance, path):
    instance.stop()
    done = instance.restore(path)
    assert done.returncode == 0, done
    instance.start()


def resume_node(instance):
    name = instance.api('GET', '/nodes').json['nodes'][0]['name']
    instance.mgpu('node', 'resume', name, user=instance.user, check=True)


@pytest.mark.parametrize('is_over', [False, True], ids=['while the other runs', 'when the other has left something'])
def test_a_job_that_was_parked_after_a_backup_returns_when_that_is_restored(make_instance, cuda, place, is_over):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    instance = make_instance(gpus='auto', arguments=(*nvml.arguments, *cuda.arguments))
    job = start_work(instance, cuda)
    backup = back_up(instance, place)
    park(instance, job)
    unknown = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(unknown, 'running')
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-a', used_mib=5000)
    nvml.write()
    shepherds = [pid for pid, line in harness.processes(instance.place).items() if f'spool/{unknown}.' in line]
    if is_over:
        instance.mgpu('cancel', unknown, check=True)
        instance.wait(unknown)
    restore(instance, backup)
    await_phase(instance, job, 'waiting')
    assert any(event['data']['type'] == 'reconciled' and event['data']['job'] == job for event in instance.events(after=0))
    assert cuda.calls() == ['lock', 'save'], 'a job that this store does not know is on its GPU'
    assert is_over or (shepherds and all(os.path.exists(f'/proc/{pid}') for pid in shepherds)), 'it still runs'
    resume_node(instance)
    assert all(harness.wait_process(pid) for pid in shepherds), 'it is stopped'
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    assert_runs(instance, cuda, job)
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock']
    park(instance, job)
    instance.mgpu('unpark', job, check=True)
    assert_runs(instance, cuda, job)
    assert instance.job(job)['attempt'] == 1


def test_a_job_that_returned_after_a_backup_is_parked_again_and_returns(make_instance, cuda, place):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    park(instance, job)
    backup = back_up(instance, place)
    instance.mgpu('unpark', job, check=True)
    assert_runs(instance, cuda, job)
    restore(instance, backup)
    await_phase(instance, job, 'waiting')
    assert cuda.calls().count('save') == 2
    resume_node(instance)
    assert_runs(instance, cuda, job)


def test_a_job_that_is_returning_when_a_backup_is_restored_is_parked_again_and_returns(make_instance, cuda, place):
    """In the backup it is parked, so its GPU could be allocated to other jobs."""
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    park(instance, job)
    backup = back_up(instance, place)
    cuda.rule('hang restore')
    instance.mgpu('unpark', job, check=True)
    harness.until(lambda: cuda.calls()[-1] == 'restore', 'the driver is to restore it')
    restore(instance, backup)
    assert any(event['data']['type'] == 'reconciled' for event in instance.events(after=0))
    resume_node(instance)
    other = instance.submit('-g', '1', '--', 'sleep', '1000')
    instance.wait(other, 'starting')
    assert instance.job(job)['park'] == 'parked'
    cuda.rule()
    instance.wait(other, 'running')
    assert cuda.calls().count('save') == 2
    assert phase(instance, job) == 'waiting'
    instance.mgpu('cancel', other, check=True)
    assert_runs(instance, cuda, job)


def test_a_job_that_was_suspended_after_a_backup_goes_on_when_that_is_restored(make_instance, cuda, place):
    instance = make_instance(gpus='sim:1x24G', arguments=cuda.arguments)
    job = start_work(instance, cuda)
    backup = back_up(instance, place)
    instance.mgpu('suspend', job, check=True)
    harness.until(lambda: all(process_state(pid) == 'T' for pid in cuda.states()), 'its process is stopped')
    restore(instance, backup)
    goes_on(cuda)
    instance.mgpu('suspend', job, check=True)
    harness.until(lambda: all(process_state(pid) == 'T' for pid in cuda.states()), 'it can be suspended again')
