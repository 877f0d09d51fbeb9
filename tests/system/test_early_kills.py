# SPDX-License-Identifier: MIT
"""kill -9 of mgpud, the agent or the job's shepherd in each step of a grant: the job that started early runs once, and its
process that waits gets its GPU. Each victim once in each step; `make soak` has them in random order, for as many rounds as
MGPU_SOAK_CYCLES says. The steps are files that appear in the spool: the exit record of the job before it; its own spec with
the GPUs that its filter now allows; and the result of the grant."""

import ctypes
import os
import random
import select
import struct

import pytest

import harness
from test_devices import nodes  # noqa: F401: a fixture
from test_early import VICTIMS, command, early, has_asked, starts_early  # noqa: F401: fixtures, too

pytestmark = pytest.mark.root

STEPS = ('exit', 'spec', 'park')
ROUNDS = max(1, int(os.environ.get('MGPU_SOAK_CYCLES') or 0) // len(STEPS))
SEED = os.environ.get('MGPU_SOAK_SEED') or '1'
DEADLINE_S = 60
MOVED_TO = 0x80  # IN_MOVED_TO


class Watch:
    """Says when a file gets its name in a folder. The kernel writes it down, so that nothing is missed before await_()."""

    def __init__(self, folder, name):
        self.name, libc = name, ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(folder), MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), f'inotify of {folder}')

    def await_(self):
        while select.select([self.fd], [], [], DEADLINE_S)[0]:
            data, at = os.read(self.fd, 65536), 0
            while at < len(data):
                length, = struct.unpack_from('I', data, at + 12)
                found = data[at + 16:at + 16 + length].rstrip(b'\0').decode()
                at += 16 + length
                if found == self.name:
                    os.close(self.fd)
                    return
        raise AssertionError(f'{self.name} does not come in {DEADLINE_S} s')


class Campaign:
    """Jobs of which each has the only GPU until its gate opens, and the next one waits for it."""

    def __init__(self, instance, nodes, folder):  # noqa: F811
        self.instance, self.nodes, self.folder = instance, nodes, folder
        self.gate, self.code = harness.Gate(folder), 0  # the job's exit code
        self.job = instance.post_job(self.gate.command(), gpus=1, time_limit='1m')
        instance.wait(self.job, 'running')

    def grant_once(self, step, victim):
        where, gate = f'{victim} died at {step}', harness.Gate(self.folder)
        job = self.instance.post_job(command(self.nodes, 'print(look(ctl), look(gpu), flush=True)',
                                             f'open({gate.path!r}).readline()', 'sys.exit(5)'),
                                     gpus=1, early=True, time_limit='1m')
        starts_early(self.instance, job)
        harness.until(lambda: has_asked(self.instance, job), 'nothing waits')
        watched = self.job if step == 'exit' else job
        watch = Watch(f'{self.instance.run_dir}/spool/{watched}.1.0.0', step)
        self.gate.open()
        watch.await_()
        VICTIMS[victim](self.instance, job)
        harness.until(lambda: self.read(job) == 'begun\nENXIO ENXIO\n', f'its opens go on after {where}')
        found = harness.until(lambda: (now := self.instance.job(job))['park'] is None and now, f'it has its GPU after {where}')
        assert (found['state'], found['attempt']) == ('running', 1), (where, found)
        self.check_end(where)
        self.gate, self.job, self.code = gate, job, 5

    def read(self, job):
        answer = self.instance.api('GET', f'/jobs/{job}/log', user=self.instance.user)
        return answer.body.decode() if answer.status == 200 else None  # the agent is away

    def check_end(self, where):
        ended = self.instance.wait(self.job)
        assert (ended['attempt'], ended['exit_code']) == (1, self.code), (where, ended)
        self.gate.close()

    def finish(self):
        self.gate.open()
        self.check_end('the last one')


@pytest.mark.parametrize('victim', ['mgpud', 'agent', 'shepherd'])
def test_no_death_in_any_step_of_a_grant_costs_a_job_its_gpu(early, nodes, tmp_path, victim):  # noqa: F811
    campaign = Campaign(early(), nodes, str(tmp_path))
    order = random.Random(SEED + victim)
    for _ in range(ROUNDS):
        for step in order.sample(STEPS, len(STEPS)):
            campaign.grant_once(step, victim)
    campaign.finish()
