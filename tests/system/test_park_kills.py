# SPDX-License-Identifier: MIT
"""kill -9 of mgpud, the agent or the host's shepherd in each step of parks and returns by the scheduler's own rule: nothing
is lost. Each victim once in each step; `make soak` has them in random order, for as many rounds as MGPU_SOAK_CYCLES says."""

import os
import random
import signal

import pytest

import harness
from test_park import Cuda, await_phase, start_work
from test_park_auto import LONG, start

STEPS = ('lock', 'save', 'guest', 'restore', 'unlock')
CALLS = [step for step in STEPS if step != 'guest']
ROUNDS = max(1, int(os.environ.get('MGPU_SOAK_CYCLES') or 0) // len(STEPS))
SEED = os.environ.get('MGPU_SOAK_SEED') or '1'


@pytest.fixture
def cuda(place):
    return Cuda(f'{place}/driver')


class Campaign:
    """A host that is parked for one guest after the other."""

    def __init__(self, instance, cuda):
        self.instance, self.cuda, self.calls = instance, cuda, 0
        self.host = start_work(instance, cuda, *LONG)
        self.steps = 0

    def kill(self, victim):
        if victim == 'mgpud':
            self.instance.kill()
            self.instance.start()
        elif victim == 'agent':
            self.instance.kill_agent()
        else:
            (pid,) = [pid for pid, line in harness.processes(self.instance.place).items()
                      if f'/{self.host}.1.0.0' in line and harness.process_name(pid) == 'mgpu-shepherd']
            os.kill(pid, signal.SIGKILL)

    def park_once(self, step, victim):
        """The host gives way for a guest and continues; the victim dies meanwhile."""
        go = f'{self.cuda.folder}/go'
        if step != 'guest':
            self.cuda.rule(f'hold {self.calls + 1 + CALLS.index(step)}')
        guest = self.instance.submit('-q', '-g', '1', '-t', '5s', '--', 'sh', '-c', f'while [ ! -e {go} ]; do sleep 0.02; done')
        if step in ('lock', 'save'):
            harness.until(lambda: self.cuda.calls()[self.calls:][-1:] == [step], f'the helper is at {step}')
        else:
            self.instance.wait(guest, 'running')
        with open(go, 'w', encoding='ascii'):
            pass
        if step in ('restore', 'unlock'):
            harness.until(lambda: self.cuda.calls()[self.calls:][-1:] == [step], f'the helper is at {step}')
        self.kill(victim)
        self.cuda.rule()
        assert self.instance.wait(guest)['state'] == 'done'
        await_phase(self.instance, self.host, None)
        os.unlink(go)
        self.check(step, victim, guest)

    def check(self, step, victim, guest):
        host, where = self.instance.job(self.host), f'{victim} died at {step}'
        calls = self.cuda.calls()[self.calls:]
        assert host['state'] == 'running' and host['attempt'] == 1, (where, host)
        assert self.instance.job(guest)['attempt'] == 1, where
        assert calls == CALLS, (where, calls)
        self.calls = len(self.cuda.calls())
        self.steps = harness.until(lambda: (steps := self.cuda.steps()) > self.steps and steps, f'the host goes on where it was after {where}')


@pytest.mark.parametrize('victim', ['mgpud', 'agent', 'shepherd'])
def test_no_death_in_any_step_of_a_park_by_the_rule_costs_work(make_instance, cuda, victim):
    campaign = Campaign(start(make_instance, cuda), cuda)
    order = random.Random(SEED + victim)
    for _ in range(ROUNDS):
        for step in order.sample(STEPS, len(STEPS)):
            campaign.park_once(step, victim)
