# SPDX-License-Identifier: MIT
"""A node that cannot start jobs for reasons of its own: nobody's queue is emptied by it, and all jobs run after the repair.
docs/start-failures.md."""

import contextlib
import os
import re
import signal
import subprocess

import pytest

import harness

Cluster = pytest.importorskip('cluster').Cluster  # nodes that join over TLS

pytestmark = pytest.mark.root  # mounts another /etc/passwd

USERS, FIRST_UID = 5, 4711101

ENTER = """set -e
mount --bind "$1" /etc/passwd
[ -z "$2" ] || mount -t tmpfs -o size=4m,mode=755 tmpfs "$2"
shift 2
exec "$@"
"""


class NumberedUser(harness.User):
    """Known in the namespaces of the cluster alone."""

    def __init__(self, n, home):  # pylint: disable=super-init-not-called
        self.name, self.uid, self.gid, self.home, self.groups = f'mgpu-s{n}', FIRST_UID + n, FIRST_UID + n, home, [FIRST_UID + n]

    def line(self):
        return f'{self.name}:x:{self.uid}:{self.gid}::{self.home}:/bin/sh\n'


class Patient:
    """Node n1 of three, with a user database, home directories and a run directory that can be taken from it."""

    def __init__(self, cluster, users, passwd):
        self.cluster, self.users, self.passwd = cluster, users, passwd
        self.node = cluster.nodes['n1']
        with open(passwd, encoding='utf-8') as lines:
            self.everybody = lines.read()

    def inside(self, *words):
        subprocess.run(['nsenter', '-t', str(self.node.process.pid), '-m', *words], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def write_passwd(self, text):
        with open(self.passwd, 'w', encoding='utf-8') as out:  # in place: it is mounted
            out.write(text)

    @contextlib.contextmanager
    def without_users(self, *users):
        self.write_passwd(''.join(line for line in self.everybody.splitlines(True)
                                  if not any(line.startswith(f'{user.name}:') for user in users or self.users)))
        yield
        self.write_passwd(self.everybody)

    @contextlib.contextmanager
    def without_homes(self):
        homes = os.path.dirname(self.users[0].home)
        self.inside('mount', '-t', 'tmpfs', 'tmpfs', homes)
        yield
        self.inside('umount', '-l', homes)

    @contextlib.contextmanager
    def with_full_disk(self):
        self.inside('sh', '-c', f'dd if=/dev/zero of={self.node.run_dir}/filler bs=64k; true')
        yield
        self.inside('rm', f'{self.node.run_dir}/filler')

    @contextlib.contextmanager
    def with_hanging_driver(self):
        stopped = [pid for pid in self.node.agents() if harness.process_name(pid) == 'mgpu-gpus']
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        yield
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # it may have been replaced
                os.kill(pid, signal.SIGCONT)

    def post(self, user, **fields):
        runs = f'{self.cluster.place}/runs'
        return self.cluster.box.post_job(['sh', '-c', f'echo ran >> {runs}; sleep 0.2'], user=user, gpus=1, cwd=user.home,
                                         env={'HOME': user.home, 'PATH': '/usr/bin:/bin'}, **fields)

    def reasons(self, job):
        return self.cluster.box.mgpu('why', job, user=self.cluster.box.user, check=True).out

    def await_reason(self, job, pattern):
        assert harness.until(lambda: re.search(pattern, self.reasons(job)), f'not told of {job}: {pattern}')

    def count_runs(self):
        with open(f'{self.cluster.place}/runs', encoding='ascii') as lines:
            return lines.read().count('ran')


@pytest.fixture
def patient(ana, tmp_path_factory, request):
    if subprocess.run(['unshare', '-m', 'true'], check=False).returncode:
        pytest.skip('needs mount namespaces')
    folder = str(tmp_path_factory.mktemp('storm'))
    harness.open_folder(folder)
    users = [NumberedUser(n, f'{folder}/homes/{n}') for n in range(USERS)]
    for user in users:
        os.makedirs(user.home)
        os.chown(user.home, user.uid, user.gid)
    for name in ('passwd', 'passwd1'):
        with open('/etc/passwd', encoding='utf-8') as source, open(f'{folder}/{name}', 'w', encoding='utf-8') as out:
            out.write(source.read() + ''.join(user.line() for user in users))

    def enter(name, run_dir=''):
        return ('unshare', '-m', 'sh', '-c', ENTER, 'sh', f'{folder}/{name}', run_dir)

    arguments = getattr(request, 'param', ())
    with Cluster(0, client=ana, prefix=enter('passwd'), arguments=arguments) as made:
        with open(f'{made.place}/runs', 'w', encoding='ascii'):
            os.chmod(f'{made.place}/runs', 0o666)
        run_dir = f'{made.place}/n1/run'
        os.makedirs(run_dir)
        made.add('n1', prefix=enter('passwd1', run_dir)).join()
        made.add('n2', prefix=enter('passwd')).join()
        made.add('n3', prefix=enter('passwd')).join()
        yield Patient(made, users, f'{folder}/passwd1')


def test_no_job_is_lost_while_a_node_of_three_fails_in_every_way(patient):
    box = patient.cluster.box
    troubles = ((patient.without_users, 'unknown user id on this node'), (patient.without_homes, 'home directory'),
                (patient.with_full_disk, None), (patient.with_hanging_driver, None))
    jobs = []
    for trouble, pattern in troubles:
        with trouble():
            jobs += [patient.post(user) for user in patient.users for _ in range(4)]
            bound = [patient.post(user, nodelist='n1') for user in patient.users]
            if pattern is not None:
                patient.await_reason(bound[0], pattern)
            jobs += bound
    ended = [box.wait(job, timeout_s=60) for job in jobs]
    assert len(jobs) == 100 and [job for job in ended if job['exit_code'] != 0] == []
    assert patient.count_runs() == len(jobs)


def test_other_users_jobs_start_on_a_node_that_does_not_know_one(patient):
    box = patient.cluster.box
    with patient.without_users(patient.users[0]):
        waiting = patient.post(patient.users[0], nodelist='n1')
        patient.await_reason(waiting, 'unknown user id on this node')
        for _ in range(3):
            assert box.wait(patient.post(patient.users[1], nodelist='n1'))['exit_code'] == 0
        elsewhere = box.wait(patient.post(patient.users[0]))
        assert elsewhere['exit_code'] == 0 and elsewhere['node'] != 'n1', elsewhere
        assert box.job(waiting)['state'] in ('queued', 'starting')
    assert box.wait(waiting)['exit_code'] == 0


def test_jobs_that_wait_for_a_node_do_so_over_a_restart_of_mgpud(patient):
    box = patient.cluster.box
    with patient.without_users():
        waiting = [patient.post(user, nodelist='n1') for user in patient.users]
        patient.await_reason(waiting[0], 'unknown user id on this node')
        box.kill()
        box.start()
        patient.await_reason(waiting[0], 'unknown user id on this node')
    assert {box.wait(job, timeout_s=60)['exit_code'] for job in waiting} == {0}
    assert patient.count_runs() == len(waiting)


@pytest.mark.parametrize('patient', [('--start-patience', '3s')], indirect=True)
def test_the_jobs_of_a_user_who_was_deleted_end_with_a_sentence(patient):
    box, user = patient.cluster.box, patient.users[0]
    with patient.without_users(user):
        done = box.wait(patient.post(user, nodelist='n1'), timeout_s=60)
        sentence = f'given up after its starts have failed for 3s: unknown user id on this node: {user.uid}'
        assert (done['ended_by'], done['message']) == ('start_failed', sentence), done
        elsewhere = [box.wait(patient.post(user), timeout_s=60) for _ in range(3)]
        assert all(job['exit_code'] == 0 and job['node'] != 'n1' for job in elsewhere), elsewhere


def test_a_shepherd_that_cannot_run_is_named_everywhere(ana, tmp_path):
    broken = f'{tmp_path}/mgpu-shepherd'
    with open(broken, 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\nkill -SEGV $$\n')
    os.chmod(broken, 0o755)
    harness.open_folder(str(tmp_path))
    with Cluster(0, client=ana) as made:
        node = made.add('n1', arguments=('--shepherd', broken)).join()
        box = made.box
        job = box.submit('-g', '1', '--', 'true')
        for show in (lambda: box.mgpu('why', job, check=True).out, lambda: box.mgpu('ps', check=True).out):
            assert harness.until(lambda ask=show: 'mgpu-shepherd ends before the start' in ask(), 'the reason is not told')
        assert node.log().count('mgpu-shepherd ends before the start') == box.job(job)['attempt'], node.log()
        told = box.mgpu('doctor').out
        assert f'no job can start here: {broken} --version is killed by signal 11' in told, told
        box.mgpu('cancel', job, check=True)
