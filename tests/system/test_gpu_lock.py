# SPDX-License-Identifier: MIT
"""Device nodes of GPUs that logins cannot open: mgpu gpu lock. The nodes are real ones of the NVIDIA driver's major
number, without the driver: opening one fails with ENXIO for who may open it, and with EACCES or EPERM for others."""

import errno
import os
import stat

import pytest

import harness
from test_park import Cuda, await_phase, start_work

pytestmark = pytest.mark.root

NVIDIA_MAJOR, CTL = 195, 255
TRY = '''
import errno, os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    except OSError as error:
        print(errno.errorcode[error.errno], end=" ", flush=True)
'''


class Machine:
    """A made-up system below a directory, with the nodes of two GPUs."""

    def __init__(self, root, state_dir):
        self.root, self.state_dir = root, state_dir
        os.makedirs(f'{root}/dev')
        for name, minor in (('nvidia0', 0), ('nvidia1', 1), ('nvidiactl', CTL)):
            os.mknod(f'{root}/dev/{name}', stat.S_IFCHR | 0o666, os.makedev(NVIDIA_MAJOR, minor))
            os.chmod(f'{root}/dev/{name}', 0o666)

    def node(self, name):
        return f'{self.root}/dev/{name}'

    def mode(self, name):
        status = os.stat(self.node(name))
        return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)

    def listed(self, name):
        """Whether users have been given access."""
        return 'system.posix_acl_access' in os.listxattr(self.node(name))


@pytest.fixture
def machine(place):
    harness.open_folder(place)
    return Machine(f'{place}/root', f'{place}/state')


@pytest.fixture
def box(machine, make_instance):
    return make_instance(gpus='sim:2x24G', state_dir=machine.state_dir, arguments=['--device-dir', f'{machine.root}/dev'])


def lock(box, machine, verb='lock', *arguments, check=True):
    return box.mgpu('gpu', verb, '--root', machine.root, '--state-dir', machine.state_dir, *arguments,
                    user=harness.User('root'), check=check)


def open_as(user, machine, name):
    """The name of the error with which a login of this user opens a node."""
    with user.acting():
        try:
            os.close(os.open(machine.node(name), os.O_RDWR | os.O_NONBLOCK))
        except OSError as error:
            return errno.errorcode[error.errno]
    return 'opened'


def attempt(machine, *names, then='true'):
    paths = ' '.join(machine.node(name) for name in names)
    return ['sh', '-c', f"/usr/bin/python3 -c '{TRY}' {paths}; {then}"]


def feature(box):
    features = box.api('GET', '/nodes').json['nodes'][0]['features']
    return next(feature for feature in features if feature['name'] == 'gpu-lock')


def test_only_jobs_open_locked_gpus_and_each_only_its_own(box, machine, ana, bo, gate):
    assert open_as(ana, machine, 'nvidia0') == 'ENXIO'
    assert not feature(box)['on'] and 'without a job' in feature(box)['text']
    assert lock(box, machine).out == '3 device nodes locked: only jobs and root can open the GPUs\n'
    assert open_as(ana, machine, 'nvidia0') == open_as(ana, machine, 'nvidiactl') == 'EACCES'
    job = box.submit('-G', '0', '--', *attempt(machine, 'nvidia0', 'nvidia1', 'nvidiactl', then=f'read x <{gate.path}'),
                     user=ana)
    box.wait(job, 'running')
    harness.until(lambda: len(box.output(job).split()) == 3, 'its tries')
    own, other, control = box.output(job).split()
    assert (own, control) == ('ENXIO', 'ENXIO') and other in ('EACCES', 'EPERM')
    assert open_as(bo, machine, 'nvidia0') == open_as(bo, machine, 'nvidiactl') == 'EACCES'
    assert machine.mode('nvidia0') == (0, 0, 0o660), 'the mode that the driver compares'
    gate.open()
    box.wait(job)
    harness.until(lambda: open_as(ana, machine, 'nvidia0') == 'EACCES', 'the end of its access')
    assert not machine.listed('nvidia0') and not machine.listed('nvidiactl')
    harness.until(lambda: feature(box)['on'], 'the feature')
    assert 'only jobs and root can open GPUs' in box.mgpu('doctor').out


def test_a_prepared_job_opens_nothing_before_its_turn(box, machine, ana, bo, gate):
    lock(box, machine)
    first = box.submit('-g', '2', '--', *gate.command(), user=ana)
    box.wait(first, 'running')
    job = box.submit('-g', '2', '--', *attempt(machine, 'nvidia0', then=f'read x <{gate.path}'), user=bo)
    harness.until(lambda: os.path.exists(f'{box.run_dir}/spool/{job}.1.0.0/ready'), 'it is not prepared')
    assert (open_as(ana, machine, 'nvidia0'), open_as(bo, machine, 'nvidia0')) == ('ENXIO', 'EACCES')
    gate.open()
    box.wait(job, 'running')
    harness.until(lambda: box.output(job), 'its try')
    assert box.output(job) == 'ENXIO '
    assert (open_as(ana, machine, 'nvidia0'), open_as(bo, machine, 'nvidia0')) == ('EACCES', 'ENXIO')
    gate.open()
    box.wait(job)


def test_what_doctor_says_after_a_change_is_what_is(box, machine):
    for verb, text in (('lock', 'only jobs and root can open GPUs'), ('unlock', 'users who log in can open GPUs without a job')):
        lock(box, machine, verb)
        assert feature(box)['text'] == text


def test_a_lock_beside_running_jobs_and_a_restart_of_the_agent_leave_them_their_gpus(box, machine, ana, gate):
    job = box.submit('-G', '1', '--', 'sh', '-c', f'read x <{gate.path}; exec "$@"', 'sh', *attempt(machine, 'nvidia1'),
                     user=ana)
    box.wait(job, 'running')
    lock(box, machine)
    harness.until(lambda: open_as(ana, machine, 'nvidia1') == 'ENXIO', 'its access')
    box.kill_agent()
    box.restart()
    box.wait(job, 'running')
    gate.open()
    assert box.wait(job)['exit_code'] == 0
    assert box.output(job) == 'ENXIO '


def test_what_a_dead_agent_left_is_taken_back(box, machine, ana, gate):
    lock(box, machine)
    job = box.submit('-G', '1', '--', 'sh', '-c', f'read x <{gate.path}', user=ana)
    box.wait(job, 'running')
    harness.until(lambda: machine.listed('nvidia1'), 'its access')
    box.stop()
    gate.open()
    box.start()
    box.wait(job)
    harness.until(lambda: not machine.listed('nvidia1'), 'the end of its access')


def test_a_driver_that_opens_the_nodes_again_is_undone(box, machine, ana):
    lock(box, machine)
    os.unlink(machine.node('nvidia0'))
    os.mknod(machine.node('nvidia0'), stat.S_IFCHR | 0o666, os.makedev(NVIDIA_MAJOR, 0))
    os.chmod(machine.node('nvidia0'), 0o666)
    harness.until(lambda: machine.mode('nvidia0') == (0, 0, 0o660), 'the lock of the new node')
    assert open_as(ana, machine, 'nvidia0') == 'EACCES'


def test_unlock_restores_what_was_and_members_of_the_group_need_no_job(box, machine, ana, bo):
    before = {name: machine.mode(name) for name in ('nvidia0', 'nvidia1', 'nvidiactl')}
    said = lock(box, machine, 'lock', '--group', 'mgpu-tg').out  # ana is a member
    assert said == '3 device nodes locked: only jobs, root and members of mgpu-tg can open the GPUs\n'
    assert open_as(ana, machine, 'nvidia0') == 'ENXIO' and open_as(bo, machine, 'nvidia0') == 'EACCES'
    assert os.path.exists(f'{machine.root}/etc/modprobe.d/mgpu-gpu-lock.conf')
    lock(box, machine, 'unlock')
    assert {name: machine.mode(name) for name in before} == before
    assert not os.listdir(f'{machine.root}/etc/modprobe.d') + os.listdir(f'{machine.root}/etc/udev/rules.d')
    assert open_as(bo, machine, 'nvidia0') == 'ENXIO'
    again = lock(box, machine, 'unlock', check=False)
    assert again.code != 0 and 'not locked' in again.err


def test_bad_requests_change_nothing(box, machine, ana):
    refused = box.mgpu('gpu', 'lock', '--root', machine.root, user=ana)
    assert refused.code != 0 and 'only root' in refused.err
    refused = lock(box, machine, 'lock', '--group', 'no-such-group', check=False)
    assert refused.code != 0 and "--group: there is no group 'no-such-group'" in refused.err
    refused = box.mgpu('gpu', 'lock', '--root', '/nowhere/at/all', user=harness.User('root'))
    assert refused.code != 0 and 'no device node of a GPU' in refused.err
    assert machine.mode('nvidia0') == (0, 0, 0o666)


def test_a_parked_job_gives_up_its_access_and_has_it_again(machine, make_instance, place, ana, bo):
    cuda = Cuda(f'{place}/driver')
    box = make_instance(gpus='sim:1x24G', state_dir=machine.state_dir,
                        arguments=['--device-dir', f'{machine.root}/dev', *cuda.arguments])
    lock(box, machine)
    job = start_work(box, cuda)
    assert open_as(ana, machine, 'nvidia0') == 'ENXIO'
    box.mgpu('park', job, check=True)
    await_phase(box, job, 'parked')
    harness.until(lambda: open_as(ana, machine, 'nvidia0') == 'EACCES', 'the end of its access')
    other = box.submit('-G', '0', '--', *attempt(machine, 'nvidia0'), user=bo)
    assert box.wait(other)['exit_code'] == 0 and box.output(other) == 'ENXIO '
    box.mgpu('unpark', job, check=True)
    await_phase(box, job, None)
    assert open_as(ana, machine, 'nvidia0') == 'ENXIO' and open_as(bo, machine, 'nvidia0') == 'EACCES'
