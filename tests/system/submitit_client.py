# SPDX-License-Identifier: MIT
"""A client of Slurm that works as submitit does: the file for sbatch, the folder %j that is made after sbatch has returned, pickles for
calls and results, sacct as the only source of states, signals and requeues for checkpoints. Run as a user, with the commands in PATH:

    submitit_client.py SCENARIO FOLDER   # exits with 0 if the scenario went well
    submitit_client.py work FOLDER       # what the jobs run
"""

import os
import pathlib
import pickle
import re
import shlex
import signal
import subprocess
import sys
import time

OPEN_STATES = {'READY', 'PENDING', 'RUNNING', 'UNKNOWN', 'REQUEUED', 'COMPLETING', 'PREEMPTED'}
DEADLINE_S = 60


def pause(seconds=0.05):
    time.sleep(seconds)


def put(path, value):
    """Whole, or not at all: another process may look for it."""
    part = path.with_suffix(f'.{os.getpid()}.part')
    part.write_bytes(pickle.dumps(value))
    part.rename(path)


# --- in a job ---

class Worker:
    """One task: waits for its call, does it, leaves its result."""

    def __init__(self, folder):
        array = os.environ.get('SLURM_ARRAY_JOB_ID')
        self.job = f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ['SLURM_JOB_ID']
        self.rank = int(os.environ['SLURM_PROCID'])
        self.call_path = folder / self.job / f'{self.job}_submitted.pkl'
        self.result_path = folder / self.job / f'{self.job}_{self.rank}_result.pkl'
        end = time.monotonic() + DEADLINE_S
        while not self.call_path.exists():
            assert time.monotonic() < end, f'no call in {self.call_path}'
            pause()
        self.call = pickle.loads(self.call_path.read_bytes())

    def checkpoint(self, *_):
        if self.rank != 0:
            return
        self.call['step'] += 1
        self.call['countdown'] -= 1
        if self.call['countdown'] < 0:
            raise RuntimeError('timed-out too many times')
        put(self.call_path, self.call)
        subprocess.run(['scontrol', 'requeue', self.job], check=True)
        sys.exit(255)

    def run(self):
        signal.signal(signal.SIGUSR2, self.checkpoint)
        if self.call['name'] != 'rest':  # which is cancelled, and need not wait for SIGKILL
            signal.signal(signal.SIGTERM, lambda *_: print('bypassing', flush=True))
        signal.signal(signal.SIGCONT, lambda *_: None)
        try:
            put(self.result_path, ('success', CALLS[self.call['name']](self, *self.call['arguments'])))
        except Exception as error:
            put(self.result_path, ('error', repr(error)))
            raise


def multiply(worker, a, b):
    print('computing', flush=True)
    return a * b


def refuse(worker):
    raise ValueError('bad input')


def places(worker):
    """Where the task is."""
    names = ('SLURM_NTASKS', 'SLURM_JOB_NUM_NODES', 'SLURM_NODEID', 'SLURM_PROCID', 'SLURM_LOCALID')
    hosts = subprocess.run(['scontrol', 'show', 'hostnames', os.environ['SLURM_JOB_NODELIST']], check=True, capture_output=True, text=True)
    return [int(os.environ[name]) for name in names] + [len(hosts.stdout.split()), os.environ.get('SUBMITIT_EXECUTOR'), os.environ.get('SETUP')]


def steps(worker, count):
    """Runs until it has been requeued this many times."""
    (worker.call_path.parent / f"began_{worker.call['step']}").touch()
    while worker.call['step'] < count:
        pause()
    return worker.call['step']


def rest(worker):
    (worker.call_path.parent / 'began_0').touch()
    time.sleep(600)


CALLS = {call.__name__: call for call in (multiply, refuse, places, steps, rest)}


# --- outside ---

class Job:
    """A job, or an element of an array: "12", "12_3"."""

    def __init__(self, executor, name, tasks=1):
        self.executor, self.name, self.tasks = executor, name, tasks
        self.folder = executor.folder / name
        self.states = []

    def result(self, task=0):
        """Polls sacct and the folder at once, as submitit does at intervals: no state may be missing or end the job too early."""
        path = self.folder / f'{self.name}_{task}_result.pkl'
        end = time.monotonic() + DEADLINE_S
        while not path.exists():
            assert time.monotonic() < end, f'{self.name}: no end; states {self.states}'
            state = self.executor.state(self)
            if state.split(' ')[0] in OPEN_STATES:
                pause()
                continue
            late = time.monotonic() + 2  # for a slow file system
            while not path.exists() and time.monotonic() < late:
                pause()
            assert path.exists(), f'{self.name} has not produced any output (state: {state}); states {self.states}'
        kind, value = pickle.loads(path.read_bytes())
        if kind == 'error':
            raise RuntimeError(value)
        return value

    def await_end(self):
        end = time.monotonic() + DEADLINE_S
        while self.executor.state(self).split(' ')[0] in OPEN_STATES:
            assert time.monotonic() < end, self.states
            pause()
        return self.states[-1]

    def await_file(self, name):
        end = time.monotonic() + DEADLINE_S
        while not (self.folder / name).exists():
            assert time.monotonic() < end, f'{self.name}: no {name}; {self.executor.state(self)}'
            pause()

    def log(self, task=0, kind='out'):
        return (self.folder / f'{self.name}_{task}_log.{kind}').read_text()


class Executor:
    """Submits calls, and reads the states of all jobs with one sacct."""

    def __init__(self, folder, **options):
        self.folder, self.options, self.jobs = folder, options, []
        self.may_be_away = False

    def script(self, count, setup=()):
        number = '%A_%a' if count > 1 else '%j'
        base = {'job-name': 'submitit', 'nodes': 1, 'ntasks-per-node': 1, 'time': 5, 'wckey': 'submitit', 'open-mode': 'append',
                'signal': 'USR2@90', 'output': self.folder / number / f'{number}_0_log.out', 'error': self.folder / number / f'{number}_0_log.err'}
        if count > 1:
            base['array'] = f'0-{count - 1}%{min(count, 3)}'
        base.update(self.options)
        lines = [f'#SBATCH --{name}={shlex.quote(str(value))}' for name, value in sorted(base.items())]
        srun = ['srun', '--unbuffered', '--output', self.folder / number / f'{number}_%t_log.out', '--error', self.folder / number / f'{number}_%t_log.err']
        work = [sys.executable, '-u', os.path.abspath(__file__), 'work', self.folder]
        return '\n'.join(['#!/bin/bash', '', '# Parameters', *lines, '', *setup, 'export SUBMITIT_EXECUTOR=slurm',
                          shlex.join(str(word) for word in [*srun, *work]), ''])

    def submit(self, name, *arguments, countdown=3, setup=()):
        return self.submit_all(name, [arguments], countdown, setup)[0]

    def submit_all(self, name, calls, countdown=3, setup=()):
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f'submission_{len(self.jobs)}.sh'
        path.write_text(self.script(len(calls), setup))
        said = subprocess.run(['sbatch', str(path)], check=True, capture_output=True, text=True)
        number = re.search(r'job (?P<id>[0-9]+)', said.stdout)['id']
        tasks = int(self.options.get('ntasks-per-node', 1))
        made = [Job(self, number if len(calls) == 1 else f'{number}_{i}', tasks) for i in range(len(calls))]
        self.jobs += made
        for job, arguments in zip(made, calls):  # now, while the job may have started
            job.folder.mkdir()
            put(job.folder / f'{job.name}_submitted.pkl', {'name': name, 'arguments': arguments, 'step': 0, 'countdown': countdown})
        return made

    def states(self):
        words = ['sacct', '-o', 'JobID,State,NodeList', '--parsable2']
        for number in sorted({job.name.split('_')[0] for job in self.jobs}):
            words += ['-j', number]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0 and self.may_be_away:
            return None
        assert done.returncode == 0 and done.stderr == '', done
        found = {}
        for line in done.stdout.splitlines()[1:]:
            name, state, _ = line.split('|')
            if '.' in name:
                continue
            match = re.fullmatch(r'(\d+)(?:_(\d+)|_\[([\d,-]+)(?:%\d+)?\])?', name)
            assert match, line
            ranges = match[3].split(',') if match[3] else []
            for first, _, last in (one.partition('-') for one in ranges):
                for index in range(int(first), int(last or first) + 1):
                    found[f'{match[1]}_{index}'] = state
            if not ranges:
                found[name] = state
        return found

    def state(self, job):
        found = self.states()
        if found is None:
            return 'UNKNOWN'
        assert job.name in found, f'{job.name} is not in {found}'
        job.states.append(found[job.name])
        return found[job.name]


# --- scenarios ---

def one_call(folder):
    job = Executor(folder).submit('multiply', 6, 7)
    assert job.result() == 42 and job.await_end() == 'COMPLETED', job.states
    assert 'computing' in job.log() and set(job.states) <= {'PENDING', 'RUNNING', 'COMPLETED'}, (job.log(), job.states)


def an_array(folder):
    jobs = Executor(folder).submit_all('multiply', [(i, 10) for i in range(5)])
    assert [job.result() for job in jobs] == [0, 10, 20, 30, 40]
    assert {job.await_end() for job in jobs} == {'COMPLETED'}


def many_at_once(folder):
    executor = Executor(folder)
    jobs = [executor.submit('multiply', i, 2) for i in range(8)]
    assert [job.result() for job in jobs] == [2 * i for i in range(8)]


def several_tasks(folder):
    job = Executor(folder, **{'ntasks-per-node': 2}).submit('places', setup=['export SETUP=done'])
    for task in range(2):
        assert job.result(task) == [2, 1, 0, task, task, 1, 'slurm', 'done'], job.result(task)


def a_failure(folder):
    job = Executor(folder).submit('refuse')
    try:
        job.result()
    except RuntimeError as error:
        assert 'bad input' in str(error)
    else:
        raise AssertionError('no error')
    assert job.await_end() == 'FAILED' and 'ValueError' in job.log(kind='err')


def a_cancel(folder):
    """Of one that runs, of an element, whether it runs or waits, and of the rest of its array."""
    executor = Executor(folder)
    job = executor.submit('rest')
    job.await_file('began_0')
    subprocess.run(['scancel', job.name], check=True)
    assert job.await_end().startswith('CANCELLED')
    elements = executor.submit_all('rest', [(), (), ()])
    subprocess.run(['scancel', elements[1].name], check=True)
    assert elements[1].await_end().startswith('CANCELLED') and executor.state(elements[0]) in OPEN_STATES, (elements[0].states, elements[1].states)
    subprocess.run(['scancel', elements[0].name.split('_', maxsplit=1)[0]], check=True)
    assert all(element.await_end().startswith('CANCELLED') for element in elements)


def a_preemption(folder):
    """What submitit's _interrupt does: SIGTERM, then SIGUSR2; the job checkpoints and requeues itself, twice."""
    job = Executor(folder).submit('steps', 2)
    for step in range(2):
        job.await_file(f'began_{step}')
        subprocess.run(['scancel', job.name, '--signal', 'SIGTERM'], check=True)
        subprocess.run(['scancel', job.name, '--signal', 'USR2'], check=True)
    assert job.result() == 2 and 'bypassing' in job.log(), job.states
    assert job.await_end() == 'COMPLETED'


def a_preempted_element(folder):
    jobs = Executor(folder).submit_all('steps', [(1,), (1,)])
    for job in jobs:
        job.await_file('began_0')
        subprocess.run(['scancel', job.name, '--signal', 'USR2'], check=True)
    assert [job.result() for job in jobs] == [1, 1]


def a_timeout(folder):
    """The signal before the limit is the checkpoint; the job ends in its second run."""
    job = Executor(folder, time='0:12', signal='USR2@10').submit('steps', 1)
    assert job.result() == 1, job.states


def too_many_timeouts(folder):
    job = Executor(folder).submit('steps', 5, countdown=1)
    for step in range(2):
        job.await_file(f'began_{step}')
        subprocess.run(['scancel', job.name, '--signal', 'USR2'], check=True)
    try:
        job.result()
    except RuntimeError as error:
        assert 'timed-out too many times' in str(error)
    else:
        raise AssertionError('no error')
    assert job.await_end() == 'FAILED'


def an_odd_folder(folder):
    job = Executor(folder / 'with blanks & [x]').submit('multiply', 3, 3)
    assert job.result() == 9


def a_restart(folder):
    """mgpud is restarted while jobs are submitted and polled: those who run the scenario do that when the file exists."""
    executor = Executor(folder)
    jobs = [executor.submit('multiply', i, 3) for i in range(3)] + [executor.submit('rest')]
    jobs[3].await_file('began_0')
    executor.may_be_away = True
    (folder / 'restart').touch()
    end = time.monotonic() + DEADLINE_S
    while not (folder / 'restarted').exists():
        assert time.monotonic() < end
        executor.state(jobs[0])
        executor.state(jobs[3])
    executor.may_be_away = False
    assert [job.result() for job in jobs[:3]] == [0, 3, 6] and executor.state(jobs[3]) == 'RUNNING'
    subprocess.run(['scancel', jobs[3].name], check=True)
    assert jobs[3].await_end().startswith('CANCELLED')


SCENARIOS = {scenario.__name__: scenario for scenario in (
    one_call, an_array, many_at_once, several_tasks, a_failure, a_cancel, a_preemption, a_preempted_element, a_timeout, too_many_timeouts,
    an_odd_folder, a_restart)}


if __name__ == '__main__':
    if sys.argv[1] == 'work':
        Worker(pathlib.Path(sys.argv[2])).run()
    else:
        SCENARIOS[sys.argv[1]](pathlib.Path(sys.argv[2]))
