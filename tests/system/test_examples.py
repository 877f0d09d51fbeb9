# SPDX-License-Identifier: MIT
"""The examples in folders of their own, run as their README.md says, and what each promises.

Libraries that Debian lacks are stand-ins of stand_ins/ where they are not installed: they show that mgpu's part and the use of the
library's interface agree, not that the library works. Each README says against what it was tested."""

import contextlib
import glob
import os
import re
import shutil
import sqlite3
import subprocess

import cluster
import harness
import pytest

TIMEOUT_S = 240  # libraries start slowly on a busy machine
BLOCK = re.compile(r'(?:^    .*\n)+', re.M)


needs_torch = pytest.mark.skipif(not harness.has_module('torch'), reason='python3-torch is not installed')


class Example:
    """A user's copy of an example, and commands typed in it."""

    def __init__(self, box, place, name, stand_ins=()):
        self.box, self.folder = box, f'{place}/{name}'
        shutil.copytree(f'{harness.ROOT}/examples/{name}', self.folder)
        os.chmod(self.folder, 0o777)
        missing = [library for library in stand_ins if not harness.has_module(library)]
        for library in missing:
            source = f'{harness.ROOT}/tests/system/stand_ins/{library}'
            for found in glob.glob(f'{source}*'):
                (shutil.copytree if os.path.isdir(found) else shutil.copy)(found, f'{place}/lib/{os.path.basename(found)}')
        if 'ray' in missing:
            os.rename(f'{place}/lib/ray/bin', f'{place}/lib/bin')
        self.environment = dict(box.client.environment(), MGPU_SOCKET=box.socket, NO_COLOR='1', PYTHONDONTWRITEBYTECODE='1', HOME=place,
                                OMP_NUM_THREADS='1', ASAN_OPTIONS='exitcode=99:detect_leaks=0', PYTHONPATH=f'{place}/lib',
                                PATH=f'{place}/lib/bin:{harness.programs()}:/usr/local/bin:/usr/bin:/bin')

    def type(self, command, timeout_s=TIMEOUT_S):
        """What the command prints; it must succeed."""
        done = subprocess.run(['timeout', str(timeout_s), 'bash', '-c', command], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, **self.box.client.popen_arguments())
        assert done.returncode == 0, f'$ {command}\n{done.stdout}{done.stderr}{self.logs()}'
        return done.stdout

    def logs(self):
        """What its jobs have printed, for a test that fails."""
        jobs = self.box.api('GET', '/jobs?all=1').json['jobs']
        return ''.join(f"--- {job['id']} {job['name']} {job['state']}\n{self.output(job['id'])[-3000:]}" for job in jobs)

    def output(self, job):
        """What all attempts of a job have printed so far, each in a log of its own."""
        text = ''
        for path in {event['log'] for event in self.box.job(job)['events'] if event['type'] == 'requeued'} - {self.box.job(job)['log']}:
            with open(path, encoding='utf-8') as log:
                text += log.read()
        answer = self.box.api('GET', f'/jobs/{job}/log')
        return text + (answer.body.decode() if answer.status == 200 else '')  # else it has printed nothing yet

    def await_output(self, job, text):
        harness.until(lambda: text in self.output(job), f'{text!r} in the output of job {job}', TIMEOUT_S)

    def commands(self):
        """[(command, the lines shown below it)] of its README."""
        found = []
        with open(f'{self.folder}/README.md', encoding='utf-8') as source:
            for block in BLOCK.findall(source.read()):
                for line in block.splitlines():
                    if line.startswith('    $ '):
                        found.append((line[6:], []))
                    else:
                        found[-1][1].append(line[4:])
        return found

    def type_readme(self, until=None):
        """Types its commands, up to one that begins with `until`; each prints the lines that are shown, with any measured values."""
        for command, shown in self.commands():
            if until and command.startswith(until):
                return
            printed = [without_values(line) for line in self.type(command).splitlines()]
            assert [line for line in shown if without_values(line) not in printed] == [], f'$ {command}\n{printed}'

    def job(self, name):
        """The newest job of that name."""
        jobs = self.box.api('GET', '/jobs?all=1').json['jobs']
        return self.box.job(max(job['id'] for job in jobs if job['name'] == name))


def gpus_of(job):
    return [gpu['index'] for gpu in job['granted']]


def without_values(line):
    return re.sub(r'\d+\.\d+|(?<=after step )\d+', 'N', line.rstrip())


@pytest.fixture
def example(make_instance, place):
    def make(name, stand_ins=(), **options):
        os.mkdir(f'{place}/lib')
        return Example(make_instance(**options), place, name, stand_ins)

    return make


def test_every_example_is_listed_and_says_against_what_it_was_tested():
    with open(f'{harness.ROOT}/examples/README.md', encoding='utf-8') as source:
        listed = set(re.findall(r'\((\w+)/README\.md\)', source.read()))
    folders = {entry.name for entry in os.scandir(f'{harness.ROOT}/examples') if entry.is_dir()}
    assert listed == folders
    for name in folders:
        with open(f'{harness.ROOT}/examples/{name}/README.md', encoding='utf-8') as source:
            assert re.search(r'^Tested against ', source.read(), re.M), name


# --- evaluation ---

@needs_torch
def test_each_checkpoint_is_evaluated_by_a_job_that_runs_beside_the_training(example):
    it = example('evaluation')
    it.type_readme()
    train, report = it.job('train'), it.job('report')
    evaluations = [it.job(f'eval-{step}') for step in (100, 200, 300)]
    for step, job in zip((100, 200, 300), evaluations):
        saved = os.stat(f'{it.folder}/checkpoints/step-{step}.pt').st_mtime
        assert job['state'] == 'done' and harness.seconds(job['submitted_at']) >= saved - 0.001, job
        assert job['ended_at'] <= report['started_at']
    assert evaluations[0]['started_at'] < train['ended_at'] and gpus_of(evaluations[0]) != gpus_of(train)
    with open(f'{it.folder}/checkpoints/step-300.txt', encoding='utf-8') as best:
        assert it.box.output(report['id']) == best.read()


@needs_torch
def test_a_training_that_is_requeued_evaluates_no_checkpoint_twice(example):
    it = example('evaluation')
    it.type('mgpu submit -g 1 -J train -- python3 train.py 200 100 0.02')
    train = it.job('train')['id']
    harness.until(lambda: os.path.exists(f'{it.folder}/checkpoints/step-100.job'), 'its first evaluation', TIMEOUT_S)
    it.type(f'mgpu requeue {train} && mgpu wait train && mgpu wait report')
    assert it.job('train')['attempt'] == 2
    names = [job['name'] for job in it.box.api('GET', '/jobs?all=1').json['jobs']]
    assert sorted(names) == ['eval-100', 'eval-200', 'report', 'train'], names


# --- optuna ---

needs_optuna = pytest.mark.skipif(not harness.has_module('optuna'), reason='python3-optuna is not installed: tools/install-packages real')
WORKER = re.compile(r'worker (\d) on GPU (\d): 6 trials, from (\S+) s to (\S+) s')


def ended_trials(path):
    if not os.path.exists(path):
        return 0
    with contextlib.closing(sqlite3.connect(path, timeout=TIMEOUT_S)) as study, contextlib.suppress(sqlite3.OperationalError):
        return study.execute("SELECT COUNT(*) FROM trials WHERE state IN ('COMPLETE', 'PRUNED')").fetchone()[0]
    return 0  # its tables are being made


@pytest.mark.real
@needs_optuna
def test_workers_of_a_study_run_trials_side_by_side_on_different_gpus(example):
    it = example('optuna')
    it.type_readme()
    workers = WORKER.findall(it.box.output(it.job('best')['id']))
    assert len(workers) == 4 and len({gpu for _, gpu, _, _ in workers}) == 4, workers
    jobs = [job for job in it.box.api('GET', '/jobs?all=1').json['jobs'] if job['name'] == 'sweep' and job['array_index'] is not None]
    assert len(jobs) == 4 and max(job['started_at'] for job in jobs) < min(job['ended_at'] for job in jobs), jobs


@pytest.mark.real
@needs_optuna
def test_a_worker_that_is_requeued_runs_only_the_trials_that_are_left(example):
    it = example('optuna')
    it.type('mgpu submit -g 1 -J worker -- python3 sweep.py 4')
    harness.until(lambda: ended_trials(f'{it.folder}/study.db'), 'the end of its first trial', TIMEOUT_S)
    it.type('mgpu requeue --grace 0s worker && mgpu wait worker && mgpu submit -g 0 -J best -- python3 sweep.py --report && mgpu wait best')
    left = re.search(r'attempt 2: (\d) trials', it.box.output(it.job('worker')['id']))
    assert left and int(left[1]) < 4
    assert 'best of 4 trials' in it.box.output(it.job('best')['id'])


# --- Lightning ---

def assert_continued(it, name, cause):
    """The job `name` has saved once on request, was ended at once, and its second attempt began with what was saved."""
    job = it.job(name)
    assert (job['state'], job['attempt']) == ('done', 2), it.logs()
    assert [event['cause'] for event in job['events'] if event['type'] == 'requeued'] == [cause]
    first, _, second = it.output(job['id']).partition('attempt 2 begins after step ')
    begun = re.match(r'\d+', second)
    assert begun and int(begun[0]) > 0 and 'done: all' in second, it.logs()
    saved = re.findall(r'saved after step (\d+)', first)  # torchrun passes on what ranks print, and not always the last line
    assert not saved or saved[-1] == begun[0], it.logs()


@needs_torch
def test_lightning_saves_on_request_and_continues_from_there(example):
    it = example('lightning', ['lightning'])
    it.type_readme(until='mgpu compat')
    assert_continued(it, 'fit', 'asked')


TORCHRUN = 'torchrun -r 1 -t 1 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=localhost:0'


@needs_torch
def test_two_ranks_of_lightning_save_together_when_they_are_preempted(example):
    it = example('lightning', ['lightning'], gpus='sim:2x24G')
    it.type(f'mgpu submit -g 2 --preemptible --checkpoint --signal USR1 --grace 5m -e PYTHONUNBUFFERED=1 -J fit -- {TORCHRUN} train.py 120')
    it.await_output(it.job('fit')['id'], 'attempt 1 begins')
    it.type('mgpu run -g 2 -- true && mgpu wait fit')  # it needs the GPUs
    assert_continued(it, 'fit', 'preempted')


@needs_torch
def test_lightning_requeues_itself_under_sbatch_on_the_signal_of_the_time_limit(example):
    it = example('lightning', ['lightning'], arguments=('--grace', '1s'))
    it.type('mgpu compat install --force --slurm ~/bin && export PATH=~/bin:$PATH && sbatch train.sbatch 120')
    it.await_output(1, 'step 16\n')
    it.type('~/bin/scancel --signal=USR1 1 && mgpu wait lightning')  # by the hand of the user, as the ranks may start slowly here
    job, output = it.job('lightning'), it.output(1)
    begun = [int(step) for step in re.findall(r'begins after step (\d+) of 120', output)]
    assert (job['state'], job['attempt']) == ('done', 2), it.logs()
    assert len(begun) == 2 and begun[0] == 0 < begun[1] and 'done: all 120 steps' in output, it.logs()


# --- transformers ---

@needs_torch
def test_a_trainer_of_transformers_saves_on_request_and_continues_from_there(example):
    it = example('huggingface', ['transformers'])
    it.type_readme(until='mgpu submit -g 2')
    assert_continued(it, 'tune', 'asked')


@needs_torch
def test_two_ranks_of_transformers_save_together_when_they_are_preempted(example):
    it = example('huggingface', ['transformers'], gpus='sim:2x24G')
    command = next(command for command, _ in it.commands() if command.startswith('mgpu submit -g 2'))
    it.type(f'{command} 150')
    it.await_output(it.job('tune2')['id'], 'attempt 1 begins')
    it.type('mgpu run -g 2 -- true && mgpu wait tune2')  # it needs the GPUs
    assert_continued(it, 'tune2', 'preempted')


@needs_torch
def test_a_checkpoint_of_transformers_that_is_not_complete_is_not_used(example):
    it = example('huggingface', ['transformers'])
    it.type('mkdir -p out-1/checkpoint-7 && touch out-1/checkpoint-7/state-0.pt')
    it.type('mgpu run -g 1 -- python3 train.py distilgpt2 README.md 3')
    assert 'attempt 1 begins after step 0 of 3' in it.output(1) and 'done: all 3 steps' in it.output(1)


# --- JAX ---

@pytest.fixture
def nodes(someone, place):
    """An example with a cluster of two nodes on this machine."""
    with cluster.Cluster(2, client=someone) as two:
        def make(name, stand_ins):
            os.mkdir(f'{place}/lib')
            return Example(two.box, place, name, stand_ins)

        yield make


@pytest.mark.skipif(not harness.has_module('numpy'), reason='python3-numpy is not installed')
def test_jax_uses_all_gpus_of_the_job_on_one_node_and_on_two(nodes):
    it = nodes('jax', ['jax'])
    it.type_readme()
    errors = re.findall(r'process (\d): loss \S+, error of the weights (\S+)', it.type('mgpu logs fit2'))
    assert sorted(rank for rank, _ in errors) == ['0', '1'] and len({error for _, error in errors}) == 1, it.logs()
    assert len({gpu['node'] for gpu in it.job('fit2')['granted']}) == 2


# --- Ray ---

def processes_of(it):
    """Those with the environment of a job of this example."""
    return [pid for pid in harness.processes('') if f'RAY_TEST={it.folder}\0' in harness.process_environment(pid)]


def test_ray_uses_all_gpus_of_the_job_and_ends_with_it_on_one_node_and_on_two(nodes):
    it = nodes('ray', ['ray'])
    it.environment['RAY_TEST'] = it.folder
    it.type_readme()
    places = [set(re.findall(r'trial \d+ on (\S+):', it.type(f'mgpu logs {name}'))) for name in ('ray', 'ray2')]
    assert len(places[0]) == 4 and len({gpu.split(':')[0] for gpu in places[1]}) == 2, places
    assert processes_of(it) == []


def test_ray_ends_with_a_job_that_is_cancelled_and_has_the_status_of_its_program(example):
    it = example('ray', ['ray'])
    it.environment['RAY_TEST'] = it.folder
    it.type('mgpu submit -g 2 -J long -- python3 cluster.py sh -c "echo begun; exec sleep infinity"')
    it.await_output(it.job('long')['id'], 'begun')
    assert len(processes_of(it)) >= 4  # cluster.py, ray, its daemon and the program
    it.type('mgpu cancel long')
    it.box.wait(it.job('long')['id'])
    harness.until(lambda: not processes_of(it), 'its processes end')
    it.type('mgpu submit -g 1 -J failing -- python3 cluster.py sh -c "exit 3"')
    assert it.box.wait(it.job('failing')['id'])['exit_code'] == 3, it.logs()
