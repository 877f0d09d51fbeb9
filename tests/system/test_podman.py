# SPDX-License-Identifier: MIT
"""Jobs in containers of podman itself, rootless, from an image that is made here: no registry is asked."""

import fcntl
import os
import shutil
import subprocess
import tarfile
import tempfile

import pytest

import harness

BUSYBOX = '/bin/busybox'
NEEDED = {'podman': 'podman', 'crun': 'crun', 'newuidmap': 'uidmap', BUSYBOX: 'busybox-static'}
MISSING = [package for program, package in NEEDED.items() if not shutil.which(program)]
pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.xdist_group('podman'),
              pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)}: not installed: tools/install-packages real')]

IMAGE = 'localhost/tiny:1'
MADE = 'made on the spot\n'
PROGRAMS = ('sh', 'cat', 'echo', 'id', 'sleep', 'true', 'touch', 'pwd', 'awk', 'ulimit', 'kill')
# What the kernel of this machine may force on crun: it does not start where cgroup v2 has controllers beside v1.
CRUN = """#!/bin/sh
if grep -q . /sys/fs/cgroup/unified/cgroup.controllers 2>/dev/null; then
    exec unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup/unified; exec "$@"' sh {crun} "$@"
fi
exec {crun} "$@"
"""


def write(path, text, mode=0o644):
    with open(path, 'w', encoding='ascii') as out:
        out.write(text)
    os.chmod(path, mode)


class Containers:
    """A user's podman with a storage of its own, and what jobs are given so that they use it."""

    def __init__(self, place, user):
        self.user, self.place = user, place
        for name in ('store', 'run'):
            os.mkdir(f'{place}/{name}', 0o700)
            os.chown(f'{place}/{name}', user.uid, user.gid)
        write(f'{place}/storage.conf', f'[storage]\ndriver = "vfs"\ngraphroot = "{place}/store"\nrootless_storage_path = "{place}/store"\n'
                                       f'runroot = "{place}/run"\n')
        write(f'{place}/crun', CRUN.format(crun=shutil.which('crun')), 0o755)
        write(f'{place}/containers.conf', '[engine]\nruntime = "crun"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
                                          f'[engine.runtimes]\ncrun = ["{place}/crun"]\n')
        self.variables = {'CONTAINERS_CONF': f'{place}/containers.conf', 'CONTAINERS_STORAGE_CONF': f'{place}/storage.conf'}
        self.options = [word for name, value in self.variables.items() for word in ('-e', f'{name}={value}')]

    def podman(self, *arguments, check=True):
        return subprocess.run(['podman', *arguments], env={**self.user.environment(), **self.variables}, cwd=self.place, check=check,
                              text=True, capture_output=True, timeout=2 * harness.DEADLINE_S, **self.user.popen_arguments()).stdout

    def make_image(self):
        root = f'{self.place}/root'
        for name in ('bin', 'etc', 'tmp'):
            os.makedirs(f'{root}/{name}')
        shutil.copy(BUSYBOX, f'{root}/bin/busybox')
        for name in PROGRAMS:
            os.symlink('busybox', f'{root}/bin/{name}')
        write(f'{root}/etc/made', MADE)
        with tarfile.open(f'{self.place}/image.tar', 'w') as archive:
            archive.add(root, '.')
        self.podman('import', f'{self.place}/image.tar', IMAGE)


def give_ids(user):
    """The range of ids that the user's container needs."""
    with open('/etc/subuid', encoding='ascii') as ranges:
        if f'{user.name}:' not in ranges.read():
            subprocess.run(['usermod', '--add-subuids', '100000-165535', '--add-subgids', '100000-165535', user.name], check=True)


@pytest.fixture(scope='module')
def message_queues():
    """What an init system mounts there, and podman wants to share with the container; the last of those who need it removes it."""
    with open('/run/lock/mgpu-tests-mqueue', 'a', encoding='ascii') as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            os.mkdir('/dev/mqueue', 0o1777)
            users.write('made by a test\n')
            users.flush()
        except FileExistsError:
            pass
        yield
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if os.path.getsize(users.name) > 0:
            os.rmdir('/dev/mqueue')
            users.truncate(0)


@pytest.fixture(scope='module')
def containers(ana, message_queues):
    place = tempfile.mkdtemp(prefix='mgpu-c-', dir='/tmp')
    os.chmod(place, 0o755)
    give_ids(ana)
    made = Containers(place, ana)
    try:
        made.make_image()
        yield made
        made.podman('system', 'migrate')  # ends the process that keeps the user's namespaces
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def submit(box, containers, place):
    """Queues shell text, or words, in the image; the number of the job."""
    def make(command, *options):
        words = ['/bin/sh', '-c', command] if isinstance(command, str) else command
        return box.submit(*containers.options, '--image', IMAGE, *options, '--', *words, cwd=place)

    return make


def test_a_job_runs_in_the_image_as_its_user_with_its_gpus(box, containers, submit, place):
    job = submit('cat /etc/made; id -u; pwd; echo $MGPU_JOB_ID $CUDA_VISIBLE_DEVICES; touch here; exit 7', '-g', '2')
    ended = box.wait(job)
    assert ended['exit_code'] == 7, box.output(job)
    gpus = box.output(job).splitlines()[-1].split()[1]
    assert box.output(job) == f'{MADE}{containers.user.uid}\n{place}\n{job} {gpus}\n' and len(gpus.split(',')) == 2
    assert os.stat(f'{place}/here').st_uid == containers.user.uid
    assert not os.path.exists('/etc/made')


def test_mounts_show_what_they_name_and_ro_ones_cannot_be_written(box, containers, submit, place):
    for name in ('data', 'out'):
        os.mkdir(f'{place}/{name}')
        os.chown(f'{place}/{name}', containers.user.uid, containers.user.gid)
    write(f'{place}/data/set', 'numbers\n')
    job = submit('cat /data/set; touch /data/new 2>/dev/null || echo refused; echo written > /out/result', '-g', '0',
                 '--image-mount', f'{place}/data:/data:ro', '--image-mount', f'{place}/out:/out')
    assert box.wait(job)['state'] == 'done', box.output(job)
    assert box.output(job) == 'numbers\nrefused\n'
    with open(f'{place}/out/result', encoding='ascii') as result:
        assert result.read() == 'written\n'


def test_the_memory_limit_of_a_job_holds_in_its_container(box, submit):
    if not feature(box, 'memory'):
        pytest.skip('memory is not limited here')
    job = submit("awk 'BEGIN { s = \"x\"; while (1) s = s s }'", '-g', '0', '-M', '128M')
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by']) == ('failed', 'oom'), (ended, box.output(job))


def feature(box, name):
    return next(one['on'] for one in box.api('GET', '/nodes').json['nodes'][0]['features'] if one['name'] == name)


def sleepers(word):
    """Processes whose command line has the word, of whatever namespace."""
    return [pid for pid, line in harness.processes(word).items() if 'sleep' in line.split(' ')[0]]


@pytest.mark.parametrize('way', ['cancel', 'kill', 'time'])
def test_nothing_of_a_container_survives_its_job(box, containers, submit, bell, gate, way):
    """Not even what ignores SIGTERM; its entry in the user's storage goes with a later job."""
    word = f'98{os.getpid()}'
    job = submit(f'trap "" TERM; sleep {word} & echo here > {bell.path}; sleep {word}', '-g', '0', '--grace', '1s',
                 *(['-t', '3s'] if way == 'time' else []))
    bell.wait()
    harness.until(lambda: len(sleepers(word)) == 2, 'both run')
    if way != 'time':
        box.mgpu(*(['cancel', str(job)] if way == 'cancel' else ['signal', str(job), 'KILL']), check=True)
    ended = box.wait(job)
    assert ended['ended_by'] == {'cancel': 'cancelled', 'kill': 'signal', 'time': 'time_limit'}[way], ended
    assert sleepers(word) == []
    if way == 'kill':
        return  # the entry goes after ten minutes
    later = submit(f'read word < {gate.path}', '-g', '0')
    state = ['ps', '--all', '--filter', f'label=mgpu.job={job}', '--format', '{{.State}}']
    # Where podman itself noticed the end, the entry goes ten minutes later (docs/containers.md).
    harness.until(lambda: containers.podman(*state).strip() == '' or containers.podman(*state).startswith('Exited'), 'the entry of the container is gone, or shows its end')
    gate.open()
    box.wait(later)


@pytest.mark.parametrize('way', ['cancel', 'time limit', 'requeue'])
def test_the_program_in_a_container_saves_its_work_before_it_ends(box, submit, bell, way):
    job = submit('[ "$MGPU_ATTEMPT" = 1 ] || exit 0; trap "sleep 1; echo saved; exit 0" TERM; '
                 f'echo here > {bell.path}; while :; do sleep 0.1; done', '-g', '0', '-t', '1h')
    bell.wait()
    if way == 'cancel':
        box.mgpu('cancel', job, check=True)
    elif way == 'requeue':
        assert box.api('POST', f'/jobs/{job}/requeue', {}).status == 200
    else:
        box.mgpu('edit', job, f'time={int(box.job(job)["run_seconds"] * 1000) + 500}ms', check=True)
    ended = box.wait(job, timeout_s=2 * harness.DEADLINE_S)
    assert ended['message'] is None, box.job(job)['events']
    assert ended['attempt'] == (2 if way == 'requeue' else 1)
    first = [event['log'] for event in box.job(job)['events'] if event['type'] == 'requeued']
    with open(first[0] if first else ended['log'], encoding='utf-8') as source:
        assert 'saved\n' in source.read()


def test_a_signal_reaches_the_program_in_the_container(box, submit, bell):
    job = submit(f'trap "echo saved; exit 9" USR1; echo here > {bell.path}; while :; do sleep 0.1; done', '-g', '0')
    bell.wait()
    box.mgpu('signal', str(job), 'USR1', check=True)
    assert box.wait(job)['exit_code'] == 9 and 'saved\n' in box.output(job)


def test_exec_enters_the_container_as_the_manual_writes_it(box, submit, bell, gate):
    job = submit(f'echo here > {bell.path}; read word < {gate.path}', '-g', '0')
    bell.wait()
    with open(f'{harness.ROOT}/docs/containers.md', encoding='utf-8') as page:
        written = next(line.strip() for line in page if line.startswith('    mgpu exec 42 '))
    assert 'label=mgpu.job=42) sh' in written and 'podman exec -it' in written
    inner = written.partition("sh -c '")[2].rstrip("'").replace('=42)', f'={job})').replace('-it ', '')
    done = box.mgpu('exec', str(job), '--', 'sh', '-c', f'{inner} -c "cat /etc/made"')
    assert (done.code, done.out) == (0, MADE), done
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_an_image_that_cannot_be_had_is_the_runtimes_failure(box, containers, place):
    job = box.submit(*containers.options, '-g', '0', '--image', 'localhost/none:1', '--', 'true', cwd=place)
    ended = box.wait(job)
    assert ended['exit_code'] == 125 and "container runtime" in ended['message'], ended
    assert 'localhost/none:1' in box.output(job)


def test_a_command_that_is_not_in_the_image_ends_with_127(box, submit):
    job = submit(['/bin/nothing'], '-g', '0')
    assert box.wait(job)['exit_code'] == 127, box.output(job)


def test_a_container_has_a_terminal_where_a_job_has_one(box, containers, submit):
    job = submit('[ -t 0 ] && [ -t 1 ] && echo on a terminal', '-g', '0', '--tty')
    assert box.wait(job)['state'] == 'done', box.output(job)
    assert 'on a terminal' in box.output(job)


def test_a_container_of_a_job_with_a_tmp_of_its_own_starts_and_leaves_nothing_in_that_of_the_node(ana, message_queues):
    folder = tempfile.mkdtemp(dir=ana.home)  # a storage below /tmp would not be there
    os.chown(folder, ana.uid, ana.gid)
    own = Containers(folder, ana)
    box = harness.Instance('sim:1x24G', client=ana, parent='/run').start()
    try:
        own.make_image()
        before = set(os.listdir('/tmp'))
        job = box.submit(*own.options, '--image', IMAGE, '--private-tmp', '-g', '0', '--', 'cat', '/etc/made', cwd=folder)
        assert box.wait(job)['state'] == 'done', box.output(job)
        assert box.output(job) == MADE and not any('podman' in name for name in set(os.listdir('/tmp')) - before)
    finally:
        box.close()
        own.podman('unshare', 'rm', '-rf', f'{folder}/store', check=False)
        shutil.rmtree(folder, ignore_errors=True)
