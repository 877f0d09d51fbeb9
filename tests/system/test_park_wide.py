# SPDX-License-Identifier: MIT
"""Jobs on several hosts are parked and returned as a whole: on all of their nodes, or on none. Each node has its own
stand-in for CUDA's driver (test_park.py)."""

import contextlib
import os
import signal

import pytest

import harness
from test_park import Cuda, await_phase, phase, process_state

hosts = pytest.importorskip('hosts')
pytestmark = pytest.mark.skipif(hosts.why_not() is not None, reason=str(hosts.why_not()))

NODES = ('n1', 'n2')
CALLS = 2  # of each direction on a node, for one process


class Wide:
    """Two nodes on hosts of their own, and their drivers."""

    def __init__(self, cluster, network, place):
        self.cluster, self.box = cluster, cluster.box
        self.place = f'{place}/drivers'
        self.cuda = {}
        os.makedirs(self.place)
        os.chmod(self.place, 0o777)
        for name in NODES:
            self.cuda[name] = Cuda(f'{self.place}/{name}')
            cluster.add(name, 'sim:1x24G', arguments=self.cuda[name].arguments, prefix=network[name].prefix).join()

    def start(self, *options):
        """A job on both nodes that has begun its work on all GPUs."""
        script = self.cuda['n1'].script
        job = self.box.submit('-N', '2', '-g', '2', *options, '--', 'sh', '-c',
                              f'exec /usr/bin/python3 {script} {self.place}/$MGPU_NODE/cuda.d')
        harness.until(lambda: all(cuda.steps() > 0 for cuda in self.cuda.values()), 'the job works on both nodes', timeout_s=60)
        return job

    def states(self):
        return {name: sorted(cuda.states().values()) for name, cuda in self.cuda.items()}

    def await_text(self, job):
        return harness.until(lambda: self.box.job(job)['park_text'], 'a reason', timeout_s=60)

    def assert_runs(self, job):
        """Nothing of it is locked, saved or stopped, on any node."""
        harness.until(lambda: phase(self.box, job) is None, 'the job runs', timeout_s=60)
        harness.until(lambda: self.states() == {name: ['0'] for name in NODES}, 'no process is locked', timeout_s=60)
        for cuda in self.cuda.values():
            harness.until(lambda cuda=cuda: not any(process_state(pid) == 'T' for pid in cuda.states()), 'no process is stopped')
            before = cuda.steps()
            harness.until(lambda cuda=cuda, before=before: cuda.steps() > before, 'it works')

    def assert_parked(self, job):
        harness.until(lambda: phase(self.box, job) == 'parked', 'the job is parked', timeout_s=60)
        assert self.states() == {name: ['2'] for name in NODES}
        for cuda in self.cuda.values():
            assert all(process_state(pid) == 'T' for pid in cuda.states())


@pytest.fixture
def wide(place, someone):
    with hosts.spread_cluster(nodes=(), others=NODES, client=someone) as (network, cluster):
        yield Wide(cluster, network, place)


def test_a_job_on_two_hosts_gives_its_gpus_to_another_and_returns(wide):
    box = wide.box
    job = wide.start()
    box.mgpu('park', job, check=True)
    wide.assert_parked(job)
    other = box.submit('-N', '2', '-g', '2', '--', 'sleep', '1000')
    box.wait(other, 'running')
    box.mgpu('unpark', job, check=True)
    assert phase(box, job) == 'waiting'
    assert 'GPU' in box.mgpu('why', job, check=True).out
    box.mgpu('cancel', other, check=True)
    wide.assert_runs(job)
    assert box.job(job)['attempt'] == 1
    assert {name: cuda.calls() for name, cuda in wide.cuda.items()} == {
        name: ['lock', 'save', 'restore', 'unlock'] for name in NODES}


def test_a_rank_that_refuses_makes_the_others_run_on(wide):
    """Whether the other has been saved by then, or is in the middle of it."""
    box = wide.box
    job = wide.start()
    wide.cuda['n2'].rule('delay save 400', 'fail save 801')
    box.mgpu('park', job, check=True)
    text = wide.await_text(job)
    assert text.startswith('node n2: ') and 'CUDA_ERROR_NOT_SUPPORTED' in text, text
    wide.assert_runs(job)
    assert 'save' in wide.cuda['n1'].calls()
    wide.cuda['n1'].rule('hang save')
    wide.cuda['n2'].rule('fail lock 801')
    box.mgpu('park', job, check=True)
    harness.until(lambda: phase(box, job) is None, 'the refusal does not wait for the other rank')
    wide.cuda['n1'].rule()
    wide.assert_runs(job)
    wide.cuda['n2'].rule()
    box.mgpu('park', job, check=True)
    wide.assert_parked(job)
    box.mgpu('unpark', job, check=True)
    wide.assert_runs(job)
    assert box.job(job)['attempt'] == 1


def test_a_rank_whose_restore_fails_ends_the_job(wide):
    box = wide.box
    job = wide.start()
    box.mgpu('park', job, check=True)
    wide.assert_parked(job)
    wide.cuda['n1'].rule('fail restore 2')
    box.mgpu('unpark', job, check=True)
    done = box.wait(job)
    assert done['ended_by'] == 'gpu_fault'
    assert done['park_text'].startswith('node n1: ')


def test_a_preempted_job_on_two_hosts_keeps_its_work(wide):
    box = wide.box
    job = wide.start('--preemptible', '--on-preempt', 'park')
    other = box.submit('-N', '2', '-g', '2', '--', 'sleep', '1')
    assert box.wait(other)['state'] == 'done'
    wide.assert_runs(job)
    assert box.job(job)['attempt'] == 1


def kill_agent(node):
    """kill -9 of all of its processes but the one that calls the driver, as a crash of the agent."""
    for pid in node.agents():
        if harness.process_name(pid) != 'mgpu-park':
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    node.process.wait(harness.DEADLINE_S)


@pytest.mark.parametrize('victim', ['agent', 'mgpud'])
def test_agent_or_mgpud_dies_in_each_step_of_both_directions(wide, victim):
    """While one node is at its nth call of the driver, and the other may have finished, or not begun."""
    box, node, cuda = wide.box, wide.cluster.nodes['n1'], wide.cuda['n1']
    job = wide.start()
    for step in range(1, CALLS + 1):
        for verb in ('park', 'unpark'):
            number = len(cuda.calls()) + step
            cuda.rule(f'hold {number}')
            box.mgpu(verb, job, check=True)
            harness.until(lambda number=number: len(cuda.calls()) == number, f'call {step} of {verb}', timeout_s=60)
            if victim == 'agent':
                kill_agent(node)
                node.start()
            else:
                box.kill()
                box.start()
            cuda.rule()
            (wide.assert_parked if verb == 'park' else wide.assert_runs)(job)
    assert box.job(job)['attempt'] == 1
    assert cuda.calls() == ['lock', 'save', 'restore', 'unlock'] * CALLS
