# SPDX-License-Identifier: MIT
"""An element that is committed behind another one is prepared up to its gate while that one runs: its cell, its shepherd and
its init are there, and nothing of it has been executed or opened. Whatever dies then, it begins once, when the GPU is free."""

import contextlib
import os
import signal

import pytest

import harness
import invariants

SHORT = 3  # elements that end at once, so that the array has a pace
LEADER, FOLLOWER, LAST = SHORT, SHORT + 1, SHORT + 2
ELEMENT = 'echo begin $MGPU_ARRAY_INDEX >> {told}; [ $MGPU_ARRAY_INDEX -lt {short} ] || read word < {gate}; ' \
          'echo end $MGPU_ARRAY_INDEX >> {told}'


class Pair:
    """One GPU: an element has it until the gate opens, and the next one is prepared behind it."""

    def __init__(self, instance, gate, folder):
        self.instance, self.gate, self.told = instance, gate, os.path.join(folder, 'told')
        with open(self.told, 'w', encoding='ascii'):
            pass
        os.chmod(self.told, 0o666)
        self.array = instance.submit('-g', '1', '-a', f'0-{LAST}', '--',
                                     ELEMENT.format(told=self.told, gate=gate.path, short=SHORT))
        harness.until(lambda: self.lines()[-1:] == [f'begin {LEADER}'], 'the element at the gate')
        self.follower = self.await_prepared(FOLLOWER)

    def lines(self):
        with open(self.told, encoding='ascii') as source:
            return source.read().splitlines()

    def element(self, index):
        """The job that it is; None before it is one."""
        jobs = self.instance.api('GET', '/jobs?limit=100').json['jobs']
        return next((job for job in jobs if job['array_index'] == index and job['array_job'] == self.array), None)

    def processes(self, job):
        """Of its shepherd and its init, by name."""
        pids = [pid for pid, line in harness.processes(self.instance.place).items() if f'/spool/{job}.' in line]
        return {harness.process_name(pid): pid for pid in pids}

    def logs(self, job):
        """The files that are its output."""
        return [name for _, _, names in os.walk(self.instance.place) for name in names
                if name.startswith(f'{job}.') and name.endswith('.log')]

    def await_prepared(self, index):
        """The job that it is, when its init waits for its turn."""
        job = harness.until(lambda: self.element(index), 'an element behind the one at the gate')
        ready = f"{self.instance.run_dir}/spool/{job['id']}.{job['attempt']}.0.0/ready"
        harness.until(lambda: os.path.exists(ready) and 'mgpu-init' in self.processes(job['id']), 'a prepared element')
        assert (job['state'], job['started_at']) == ('queued', None), job
        assert not self.logs(job['id'])
        return job['id']

    def finish(self, count=LAST - SHORT + 1):
        """Each began once, after one before it had ended."""
        self.gate.open(count)
        assert self.instance.wait(self.array)['state'] == 'done'
        lines = self.lines()
        begun = [line.split()[1] for line in lines[::2]]
        assert lines == [f'{word} {index}' for index in begun for word in ('begin', 'end')]
        assert sorted(begun) == [str(index) for index in range(LAST + 1)]

    def kinds(self):
        """The events of the element behind the other."""
        return [event['type'] for event in self.instance.job(self.follower, user=self.instance.user)['events']]

    def check_store(self):
        broken = list(invariants.check_bookings(invariants.read_events(self.instance)))
        self.instance.restart()
        harness.until(lambda: not list(invariants.check_left_over(self.instance)), 'a node on which nothing is left')
        self.instance.stop()
        broken += invariants.fsck(self.instance)
        assert not broken, '\n'.join(broken[:20])
        self.instance.start()


@pytest.fixture
def pair(make_instance, gate, place):
    return Pair(make_instance(gpus='sim:1x24G', arguments=('--elements-ahead', '10m')), gate, place)


def test_it_begins_when_the_one_before_it_has_ended(pair):
    pair.finish()
    follower = pair.instance.job(pair.follower, user=pair.instance.user)
    kinds = [event['type'] for event in follower['events']]
    assert kinds == ['submitted', 'allocated', 'inherits', 'started', 'ended'], follower
    assert follower['attempt'] == 1
    pair.check_store()


def test_it_is_shown_to_wait_for_the_one_before_it_and_to_have_no_gpu(pair):
    box, follower, leader = pair.instance, f'{pair.array}.{FOLLOWER}', f'{pair.array}.{LEADER}'
    job, sentence = box.job(pair.follower), f'it gets the GPUs of {leader} when that ends'
    assert (job['state'], job['granted'], job['node'], job['reason'], job['reason_text']) == ('queued', [], None, 'resources', sentence)
    assert sentence in box.mgpu('why', follower, check=True).out
    assert sentence in box.mgpu('ps', check=True).out
    for state, is_there in (('starting', False), ('queued', True)):
        assert (pair.follower in [job['id'] for job in box.api('GET', f'/jobs?state={state}').json['jobs']]) == is_there
    assert [[job['id'] for job in gpu['jobs']] for gpu in box.gpus()] == [[box.job(leader)['id']]]
    for refused in (box.mgpu('suspend', follower), box.mgpu('signal', follower, 'USR1'), box.mgpu('retry', follower)):
        assert refused.code == 6 and 'queued' in refused.err and 'starting' not in refused.err, refused
    pair.finish()
    assert len(box.job(pair.follower)['granted']) == 1


def test_it_is_given_back_to_be_held_and_begins_once_after_the_release(pair):
    box, follower = pair.instance, f'{pair.array}.{FOLLOWER}'
    box.mgpu('release', follower, check=True)
    assert pair.kinds() == ['submitted', 'allocated']  # it was not held, and stays where it is
    box.mgpu('hold', follower, check=True)
    job = box.job(pair.follower)
    assert (job['state'], job['reason']) == ('queued', 'held_user'), job
    assert pair.kinds() == ['submitted', 'allocated', 'returned', 'held']
    pair.gate.open(2)
    harness.until(lambda: pair.lines()[-1:] == [f'end {LAST}'], 'the other elements')
    assert f'begin {FOLLOWER}' not in pair.lines() and not pair.logs(pair.follower)
    box.mgpu('release', follower, check=True)
    pair.finish(1)
    pair.check_store()


def test_it_is_given_back_to_be_edited_and_begins_once_as_it_is_then(pair):
    box, follower = pair.instance, f'{pair.array}.{FOLLOWER}'
    box.mgpu('edit', follower, 'time=1h', 'name=other', check=True)
    pair.finish()
    job = box.job(pair.follower)
    assert (job['name'], job['time_limit_s'], job['exit_code']) == ('other', 3600, 0), job
    pair.check_store()


def test_it_is_given_back_when_it_is_to_be_requeued_and_is_then_refused_as_any_job_that_waits(pair):
    refused = pair.instance.mgpu('requeue', f'{pair.array}.{FOLLOWER}')
    assert refused.code == 6 and 'is queued: only a running job can be requeued' in refused.err, refused
    pair.finish()
    assert 'preempted' not in pair.kinds()


def kill_mgpud(pair):
    pair.instance.kill()
    pair.instance.start()


def kill_process(name):
    def kill(pair):
        pid = pair.processes(pair.follower).get(name)
        if pid is not None:  # it may have ended
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return kill


def kill_both(pair):
    kill_process('mgpu-shepherd')(pair)
    pair.instance.kill_agent()


VICTIMS = {
    'mgpud': kill_mgpud,
    'agent': lambda pair: pair.instance.kill_agent(),
    'shepherd': kill_process('mgpu-shepherd'),
    'init': kill_process('mgpu-init'),
    'shepherd and agent': kill_both,
}


@pytest.mark.parametrize('victim', VICTIMS)
def test_it_begins_once_after_a_death_while_it_waits(pair, victim):
    before = pair.processes(pair.follower)
    VICTIMS[victim](pair)
    if victim in ('shepherd', 'init'):  # a new agent does not prepare it again
        harness.until(lambda: 'mgpu-init' in dict(pair.processes(pair.follower).items() - before.items()), 'it is prepared again')
    assert pair.lines()[-1] == f'begin {LEADER}'
    pair.finish()
    assert pair.logs(pair.follower) == [f'{pair.follower}.log']
    pair.check_store()


@pytest.mark.parametrize('victim', [victim for victim in VICTIMS if victim != 'init'])  # whose death ends what has begun
def test_it_begins_once_when_the_one_before_it_ends_at_the_time_of_a_death(pair, victim):
    pair.gate.open()
    VICTIMS[victim](pair)
    pair.finish(LAST - SHORT)
    pair.check_store()


def test_nothing_is_left_of_one_that_is_cancelled_before_its_turn(pair):
    pair.instance.mgpu('cancel', str(pair.follower), check=True)
    cancelled = pair.instance.wait(pair.follower)
    assert (cancelled['state'], cancelled['started_at']) == ('cancelled', None), cancelled
    harness.until(lambda: not pair.processes(pair.follower), 'its processes are gone')
    assert not pair.logs(pair.follower)
    pair.await_prepared(LAST)
    pair.gate.open(2)
    assert pair.instance.wait(pair.array)['state'] != 'running'
    assert f'begin {FOLLOWER}' not in pair.lines()
    assert pair.lines()[-4:] == [f'begin {LEADER}', f'end {LEADER}', f'begin {LAST}', f'end {LAST}']
    pair.check_store()


def test_a_drained_node_gives_it_back(pair):
    root = pair.instance.user
    name = pair.instance.api('GET', '/nodes').json['nodes'][0]['name']
    pair.instance.mgpu('node', 'drain', name, user=root, check=True)
    harness.until(lambda: not pair.processes(pair.follower), 'its processes are gone')
    assert not pair.logs(pair.follower)
    pair.gate.open()
    harness.until(lambda: pair.instance.job(pair.follower)['state'] == 'queued' and not pair.instance.shepherds(), 'an idle node')
    assert pair.lines()[-1] == f'end {LEADER}'
    pair.instance.mgpu('node', 'resume', name, user=root, check=True)
    pair.finish(LAST - SHORT)
    pair.check_store()
