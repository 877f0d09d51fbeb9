# SPDX-License-Identifier: MIT
"""GPUs that fail, and GPUs that a job does not leave as it found them. On a stand-in for the driver's library."""

import pytest

import harness
from nvml import Nvml

MORE = 'more {} {} 300000 {} 1000 1000 0 0'  # with these values the stand-in tells of errors, too


class Machine(Nvml):
    """Two GPUs that tell of their errors."""

    def __init__(self, folder):
        super().__init__(folder)
        self.add(bus=0x3b, uuid='GPU-a', used_mib=10)
        self.add(bus=0x81, uuid='GPU-b', used_mib=10)
        self.lines = [MORE.format(0, 0, 5000), MORE.format(1, 1, 5000)]
        self.write()

    def use(self, gpu, used_mib):
        """The driver says that so much memory is used."""
        words = self.gpus[gpu].split(' ')
        words[4] = str(used_mib)
        self.gpus[gpu] = ' '.join(words)
        self.write()

    def fail(self, gpu, *xids):
        for xid in xids:
            self.say(f'xid {gpu} {xid}')
        self.write()


@pytest.fixture
def machine(place):
    return Machine(place)


@pytest.fixture
def box(make_instance, machine):
    return make_instance(gpus='auto', arguments=machine.arguments)


def fail_at_gate(box, gate, then='exit 3', **fields):
    """A job on GPU 0 that runs and waits."""
    job = box.post_job(gate.command(then), **{'gpu_ids': '0', **fields})
    box.wait(job, 'running')
    return job


def test_a_job_that_fails_after_an_error_of_its_own_says_so(box, machine, gate):
    job = fail_at_gate(box, gate)
    machine.fail(0, 31, 45)
    gate.open()
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by'], ended['exit_code']) == ('failed', 'gpu_fault', 3), ended
    assert 'GPU 0: Xid 31' in ended['message'] and 'illegal address' in ended['message']
    assert ended['usage']['xid'] == 31
    assert 'Xid 31' in box.mgpu('postmortem', job).out
    assert 'Xid 31' in box.mgpu('ps', '-a').out
    assert box.mgpu('wait', job).code == 3
    box.restart()
    assert box.job(job)['ended_by'] == 'gpu_fault'
    assert box.gpus()[0]['state'] == 'free', 'it was the application'
