# SPDX-License-Identifier: MIT
"""GPUs that fail, and GPUs that a job does not leave as it found them. On a stand-in for the driver's library."""

import glob
import os
import subprocess
import time

import pytest

import harness
import invariants
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


def hold(box, gate, then='exit 3', **fields):
    """A job on GPU 0 that runs and waits."""
    job = box.post_job(gate.command(then), **{'gpu_ids': '0', **fields})
    box.wait(job, 'running')
    return job


def wait_gpu(box, gpu, state):
    """The GPU once it has that state: whatever takes it out of use, or puts it back, is an event."""
    shown = box.gpus()[gpu]
    for _ in box.events(after=0) if shown['state'] != state else ():
        shown = box.gpus()[gpu]
        if shown['state'] == state:
            break
    assert shown['state'] == state, f'{shown}\n{box.log()[-2000:]}'
    return shown


def wait_xid(box, job, xid):
    """Until the usage of a running job, which comes once a second, names the error."""
    end = time.monotonic() + harness.DEADLINE_S
    while (box.job(job)['usage'] or {}).get('xid') != xid:
        assert time.monotonic() < end, box.job(job)


def test_a_job_that_fails_after_an_error_of_its_own_says_so(box, machine, gate):
    job = hold(box, gate)
    machine.fail(0, 31, 45)
    wait_xid(box, job, 31)
    gate.open()
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by'], ended['exit_code']) == ('failed', 'gpu_fault', 3), ended
    assert 'GPU 0: Xid 31' in ended['message'] and 'invalid address' in ended['message']
    assert ended['usage']['xid'] == 31
    assert 'compute-sanitizer' in box.mgpu('postmortem', job).out
    assert 'exit 3: GPU 0: Xid 31' in box.mgpu('ps', '-a').out
    assert box.mgpu('wait', job).code == 3
    box.restart()
    assert box.job(job)['ended_by'] == 'gpu_fault'
    assert box.gpus()[0]['state'] == 'free', 'it was the application'


def test_a_job_that_succeeds_all_the_same_is_done_with_a_warning(box, machine, gate):
    job = hold(box, gate, 'true')
    machine.fail(0, 31)
    wait_xid(box, job, 31)
    assert 'Xid 31' in box.mgpu('show', job).out, 'the owner is told while it runs'
    assert 'warning: GPU 0: Xid 31' in box.mgpu('ps').out
    gate.open()
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by']) == ('done', 'exit')
    assert 'Xid 31' in box.mgpu('postmortem', job).out


def test_an_error_before_the_job_or_on_another_gpu_is_not_its_own(box, machine, gate):
    machine.fail(0, 13)
    job = hold(box, gate)
    machine.fail(1, 31)
    gate.open()
    ended = box.wait(job)
    assert (ended['ended_by'], ended['usage']['xid'] if ended['usage'] else None) == ('exit', None), ended


def test_on_a_shared_gpu_nobody_knows_whose_it_was(box, machine, gate):
    job = hold(box, gate, gpu_mem='1G')
    machine.fail(0, 31)
    wait_xid(box, job, 31)
    gate.open()
    ended = box.wait(job)
    assert ended['ended_by'] == 'gpu_fault' and 'shared with others' in ended['message'], ended


def test_a_gpu_that_fails_is_drained_over_restarts_until_it_is_resumed(box, machine, gate, someone):
    job = hold(box, gate)
    machine.fail(0, 79)
    shown = wait_gpu(box, 0, 'drained')
    assert shown['fault']['kind'] == 'device' and shown['fault']['xid'] == 79 and shown['fault']['since']
    assert 'fallen off the bus' in shown['reason']
    assert box.job(job)['state'] == 'running', 'what runs there goes on'
    assert 'Xid 79' in box.mgpu('show', job).out
    gate.open()
    assert box.wait(job)['ended_by'] == 'gpu_fault'
    other = box.post_job(['true'])
    assert box.wait(other)['granted'][0]['index'] == 1, 'others go on'
    waiting = box.post_job(['true'], gpu_ids='0')
    why = box.api('GET', f'/jobs/{waiting}/why').json['reasons']
    assert why[0]['code'] == 'gpu_paused' and 'Xid 79' in why[0]['text'], why
    box.kill()
    for pid in box.agents():
        assert harness.wait_process(pid)
    box.start()
    assert box.gpus()[0]['state'] == 'drained'
    assert 'drained: Xid 79' in box.mgpu('gpus').out
    assert box.api('GET', '/nodes').json['nodes'][0]['gpus_drained'] == 1
    assert '1 of them failed and is out of service' in box.mgpu('doctor').out
    assert box.mgpu('gpu', 'resume', '0', user=someone).code == (4 if box.is_root else 0)
    if box.is_root:
        assert box.mgpu('gpu', 'resume', '0', user=box.user).code == 0
    assert box.wait(waiting)['state'] == 'done'
    assert 'is out of service: Xid 79' in box.log()
    assert '1 of them failed' not in box.mgpu('doctor').out


def test_the_events_tell_of_a_drained_gpu_and_give_the_same_decisions_again(box, machine, place):
    box.wait(box.post_job(['true'], gpu_ids='0'))
    machine.fail(0, 48)
    wait_gpu(box, 0, 'drained')
    box.wait(box.post_job(['true']))
    waiting = box.post_job(['true'], gpu_ids='0')
    box.mgpu('gpu', 'resume', '0', user=box.user, check=True)
    assert box.wait(waiting)['state'] == 'done'
    told = next(event['data'] for event in box.events(after=0) if event['data'].get('change') == 'gpu_drain')
    assert told['uuid'] == 'GPU-a' and 'double bit ECC' in told['message'], told
    path = f'{place}/journal'
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    done = subprocess.run([f'{harness.build_folder()}/mgpu-sim', 'journal', path], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done
    box.stop()
    assert list(invariants.fsck(box)) == []
    box.start()
    assert box.gpus()[0]['state'] == 'free', 'a resume outlives a restart, too'


def test_a_contained_error_is_over_when_the_gpu_was_well_for_a_while(make_instance, machine, gate):
    box = make_instance(gpus='auto', arguments=[*machine.arguments, '--gpu-recover', '2s'])
    job = hold(box, gate)
    machine.fail(0, 94)
    wait_gpu(box, 0, 'drained')
    gate.open()
    assert box.wait(job)['ended_by'] == 'gpu_fault'
    waiting = box.post_job(['true'], gpu_ids='0')
    assert box.wait(waiting)['state'] == 'done'


def test_a_gpu_that_needs_a_reset_returns_after_one(make_instance, machine):
    box = make_instance(gpus='auto', arguments=[*machine.arguments, '--gpu-recover', '1s'])
    machine.fail(0, 119)
    assert wait_gpu(box, 0, 'drained')['fault']['kind'] == 'reset'
    waiting = box.post_job(['true'], gpu_ids='0')
    machine.lines[0] = MORE.format(0, 0, 10)  # its counter of energy began anew
    machine.write()
    assert box.wait(waiting)['state'] == 'done'


def test_a_gpu_that_vanishes_is_drained_and_returns_when_it_is_seen(box, machine):
    machine.say('lost 0')
    machine.write()
    shown = wait_gpu(box, 0, 'lost')
    assert shown['fault']['kind'] == 'lost' and 'vanished' in shown['reason']
    waiting = box.post_job(['true'], gpu_ids='0')
    assert box.wait(box.post_job(['true']))['granted'][0]['index'] == 1
    reasons = box.api('GET', f'/jobs/{waiting}/why').json['reasons']
    assert [reason['code'] for reason in reasons] == ['gpu_paused'] and 'vanished' in reasons[0]['text'], reasons
    machine.unsay('lost 0')
    machine.write()
    assert box.wait(waiting)['state'] == 'done'


def test_a_gpu_is_not_given_on_before_it_is_clean(box, machine, gate):
    job = hold(box, gate, 'true')
    waiting = box.post_job(['true'], gpu_ids='0')
    machine.use(0, 12000)
    gate.open()
    box.wait(job)
    shown = wait_gpu(box, 0, 'unclean')
    assert '11.7 GiB still used by no process' in shown['reason'], shown
    assert box.job(waiting)['state'] in ('queued', 'starting')
    why = box.mgpu('submit', '--dry-run', '-G', '0', '--', 'true').out
    assert 'being cleared' in why and 'by no process' in why, why
    assert 'unclean: ' in box.mgpu('gpus').out
    machine.use(0, 100)
    done = box.wait(waiting)
    assert (done['state'], done['ended_by']) == ('done', 'exit'), done


def test_a_gpu_that_stays_unclean_is_a_fault(make_instance, machine, gate):
    box = make_instance(gpus='auto', arguments=[*machine.arguments, '--gpu-unclean', '1s', '--gpu-recover', '1s'])
    job = hold(box, gate, 'true')
    machine.use(0, 12000)
    gate.open()
    box.wait(job)
    assert wait_gpu(box, 0, 'drained')['fault']['kind'] == 'unclean'
    assert 'not clean for' in box.log()
    machine.use(0, 10)
    assert box.wait(box.post_job(['true'], gpu_ids='0'))['state'] == 'done'


def test_a_little_more_memory_than_before_is_nothing(box, machine, gate):
    job = hold(box, gate, 'true')
    machine.use(0, 400)
    gate.open()
    box.wait(job)
    assert box.wait(box.post_job(['true'], gpu_ids='0'))['state'] == 'done'
    assert box.job(job + 1)['attempt'] == 1


def test_a_gpu_whose_driver_asks_for_a_reset_is_drained_until_it_was_reset(make_instance, machine):
    box = make_instance(gpus='auto', arguments=[*machine.arguments, '--gpu-recover', '1s'])
    machine.say('recovery 0 1')
    machine.write()
    shown = wait_gpu(box, 0, 'drained')
    assert shown['fault']['kind'] == 'reset' and shown['reason'] == 'the driver requests a reset', shown
    waiting = box.post_job(['true'], gpu_ids='0')
    machine.unsay('recovery 0 1')
    machine.say('recovery 0 0')
    machine.write()
    assert box.wait(waiting)['state'] == 'done'


def test_a_gpu_in_mig_mode_is_not_offered(make_instance, machine):
    machine.say('mig 0 1 1')
    machine.write()
    box = make_instance(gpus='auto', arguments=machine.arguments)
    shown = box.gpus()[0]
    assert shown['state'] == 'refused' and 'MIG mode is on' in shown['reason'], shown
    assert 'refused: MIG mode is on' in box.mgpu('gpus').out
    assert '1 is not offered: MIG mode is on' in box.mgpu('doctor').out
    assert box.wait(box.post_job(['true']))['granted'][0]['index'] == 1
    waiting = box.post_job(['true'], gpu_ids='0')
    reasons = box.api('GET', f'/jobs/{waiting}/why').json['reasons']
    assert [reason['code'] for reason in reasons] == ['gpu_paused'] and 'MIG mode is on' in reasons[0]['text'], reasons
    machine.unsay('mig 0 1 1')
    machine.write()
    assert box.wait(waiting)['state'] == 'done'


def test_the_compute_mode_of_a_gpu_is_kept(box, machine, gate):
    machine.say('compute 0 2')
    machine.say('compute 1 3')
    machine.write()
    box.await_gpus(lambda gpus: gpus[0]['state'] == 'refused')
    assert 'its compute mode is Prohibited' in box.mgpu('gpus').out
    shares = box.post_job(['true'], gpu_mem='1G')
    assert box.wait(box.post_job(['true'], gpus=1))['granted'][0]['index'] == 1, 'the whole GPU is one process'
    assert box.job(shares)['state'] == 'queued'
    reasons = box.api('GET', f'/jobs/{shares}/why').json['reasons']
    assert 'excluded by its mode' in ' '.join(reason['text'] for reason in reasons), reasons
    machine.unsay('compute 1 3')
    machine.write()
    assert box.wait(shares)['granted'][0]['index'] == 1


def holders(path):
    """The processes that have this file open."""
    found = []
    for fd in glob.glob('/proc/[0-9]*/fd/*'):
        try:
            if os.readlink(fd) == path:
                found.append(int(fd.split('/')[2]))
        except OSError:
            pass  # it has just gone
    return found


def test_a_released_gpu_can_be_reset_and_the_others_work_on(box, machine, gate, someone):
    nodes = [f'{machine.state}.gpu{i}' for i in range(2)] + [f'{machine.state}.ctl']
    for path in nodes:
        with open(path, 'w', encoding='ascii'):
            os.chmod(path, 0o644)
    box.kill()
    for pid in box.agents():
        assert harness.wait_process(pid)
    box.start()
    assert all(holders(path) for path in nodes)
    job = hold(box, gate, then='true')
    refused = box.mgpu('gpu', 'release', '0-1', user=box.user)
    assert refused.code != 0 and f'in use by job {job}' in refused.err and 'drain --wait' in refused.err, refused
    assert [gpu['state'] for gpu in box.gpus()] == ['used', 'free']
    if box.is_root:
        assert box.mgpu('gpu', 'release', '1', user=someone).code == 4
    assert box.mgpu('gpu', 'release', '1', '--reason', 'reset', user=box.user, check=True).out == ''
    assert box.gpus()[1]['state'] == 'released' and box.gpus()[1]['reason'] == 'reset'
    end = time.monotonic() + harness.DEADLINE_S
    while not holders(nodes[0]):
        assert time.monotonic() < end, 'the next helper opens the other GPU'
    assert not holders(nodes[1])
    assert 'released: reset' in box.mgpu('gpus').out
    gate.open()
    assert box.wait(job)['state'] == 'done'
    assert box.mgpu('gpu', 'release', '0', user=box.user, check=True).code == 0
    assert not any(holders(path) for path in nodes), 'the driver can be unloaded'
    box.kill()
    for pid in box.agents():
        assert harness.wait_process(pid)
    box.start()
    assert [gpu['state'] for gpu in box.gpus()] == ['released', 'released']
    assert not any(holders(path) for path in nodes)
    waiting = box.post_job(['true'], gpu_ids='1')
    assert box.api('GET', f'/jobs/{waiting}/why').json['reasons'][0]['code'] == 'gpu_paused'
    box.mgpu('gpu', 'resume', '1', user=box.user, check=True)
    assert box.wait(waiting)['state'] == 'done'
    assert [gpu['state'] for gpu in box.gpus()] == ['released', 'free']
    assert not holders(nodes[0]) and holders(nodes[1])
    box.mgpu('gpu', 'resume', '0', user=box.user, check=True)
    wait_gpu(box, 0, 'free')
