# SPDX-License-Identifier: MIT
"""--private-tmp: a job has private /tmp, /var/tmp, /dev/shm and System V IPC, removed when the job ends."""

import os
import subprocess

import pytest

import harness

pytestmark = pytest.mark.root
GPUS = 'sim:2x24G'
PLACES = ('/tmp', '/var/tmp', '/dev/shm')
PARENT = '/run'  # of the instance: its socket must be there in jobs, too


@pytest.fixture(scope='module')
def ana():
    """A user whom no other test has: jobs of his name what he leaves in /dev/shm, whichever of them did."""
    return harness.make_user('mgpu-tc')


@pytest.fixture(scope='module')
def shared(ana):
    made = harness.Instance(GPUS, client=ana, parent=PARENT).start()
    yield made
    made.close()


@pytest.fixture
def box(shared):
    if 'private-tmp' in off(shared):
        pytest.skip(off(shared)['private-tmp'])
    yield shared
    shared.cancel_all()


def off(box):
    """{feature that the node lacks: why}."""
    node, = box.api('GET', '/nodes').json['nodes']
    return {row['name']: row['text'] for row in node['features'] if not row['on']}


@pytest.fixture
def mark():
    """The name of a file that no other test uses; none is left in the directories that all share."""
    name = f'mgpu-private-{os.getpid()}'
    yield name
    for place in PLACES:
        assert not os.path.exists(f'{place}/{name}')


def run(box, *words, **options):
    return box.mgpu('run', '-q', '-g', '0', '--private-tmp', *words, cwd=box.client.home, check=True, **options).out


def segments():
    with open('/proc/sysvipc/shm', encoding='ascii') as source:
        return {line.split()[1] for line in source.readlines()[1:]}


def test_a_job_writes_to_directories_of_its_own_that_end_with_it(box, mark):
    files = ' '.join(f'{place}/{mark}' for place in PLACES)
    assert run(box, '--', 'sh', '-c', f'ls -A {" ".join(PLACES)}; touch {files} && ls {files} | wc -l; df -t tmpfs /tmp >/dev/null && echo tmpfs') \
        == ''.join(f'{place}:\n{end}' for place, end in zip(sorted(PLACES), ('\n', '\n', ''))) + '3\ntmpfs\n'


def test_shared_memory_of_system_v_ends_with_the_job(box):
    before = segments()
    assert 'Shared memory id' in run(box, '--', 'ipcmk', '-M', '4096')
    assert segments() <= before
    open_one = box.mgpu('run', '-q', '-g', '0', '--', 'ipcmk', '-M', '4096', check=True, cwd=box.client.home)
    left = segments() - before
    assert len(left) == 1, open_one
    subprocess.run(['ipcrm', '-m', left.pop()], check=True)


def test_processes_of_one_job_share_them_and_exec_is_inside(box, mark):
    job = box.submit('-g', '0', '--private-tmp', '--', 'sh', '-c', f'echo from the job >/dev/shm/{mark}; read word <{hold(box)}', cwd=box.client.home)
    box.wait(job, 'running')
    try:
        done = box.mgpu('exec', job, '--', 'sh', '-c', f'until test -s /dev/shm/{mark}; do :; done; cat /dev/shm/{mark}; echo x >/tmp/{mark}; ls /tmp')
        assert (done.code, done.out) == (0, f'from the job\n{mark}\n'), done
        other = run(box, '--', 'sh', '-c', f'ls /dev/shm/{mark} || true')
        assert other == '' or 'No such file' in other
    finally:
        box.mgpu('cancel', '-q', job)
        box.wait(job)
    assert not os.path.exists(f'/tmp/{mark}')


def hold(box):
    """A FIFO that a private /tmp does not hide and nobody writes to."""
    path = f'{box.place}/hold'
    if not os.path.exists(path):
        os.mkfifo(path)
        os.chmod(path, 0o666)
    return path


def test_a_job_without_it_says_what_shared_memory_it_leaves(box, mark):
    script = f'dd if=/dev/zero of=/dev/shm/{mark} bs=1M count=3 2>/dev/null'
    job = box.submit('-g', '0', '--', 'sh', '-c', script, cwd=box.client.home)
    ended = box.wait(job)
    assert (ended['state'], ended['exit_code']) == ('done', 0) and f'3 MiB of shared memory left on the node: {mark} in /dev/shm' in ended['message'], ended
    again = box.wait(box.submit('-g', '0', '--', 'true', cwd=box.client.home))
    assert mark not in (again['message'] or ''), 'of an earlier job'
    os.unlink(f'/dev/shm/{mark}')
    with_own = box.wait(box.submit('-g', '0', '--private-tmp', '--', 'sh', '-c', script, cwd=box.client.home))
    assert with_own['message'] is None, with_own
    tidy = box.wait(box.submit('-g', '0', '--', 'sh', '-c', f'{script}; rm /dev/shm/{mark}', cwd=box.client.home))
    assert tidy['message'] is None, tidy


def test_what_it_writes_counts_against_its_memory(box):
    if 'memory' in off(box):
        pytest.skip(off(box)['memory'])
    done = box.mgpu('run', '-q', '-g', '0', '-M', '32M', '--private-tmp', '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=1M', 'count=200',
                    cwd=box.client.home)
    assert done.code == 137 and '-M' in done.err, done


@pytest.mark.parametrize(('option', 'path', 'said'), [
    ('-C', '/tmp/here', 'working directory'),
    ('-o', '/tmp/out', 'output file'),
    ('-o', '//var//tmp/out', 'output file'),
    ('--error', '/dev/shm/err', 'standard error'),
    ('--input', '/tmp/in', 'standard input'),
])
def test_what_only_the_job_would_see_is_refused_at_the_submit(box, option, path, said):
    done = box.mgpu('submit', '-g', '0', '--private-tmp', option, path, '--', 'true', cwd=box.client.home)
    assert done.code == 2 and said in done.err and 'removed when it ends' in done.err, done


def test_an_output_that_a_link_leads_there_is_refused_at_the_start(box, place):
    folder = f'{box.client.home}/mgpu-link-{os.getpid()}'
    with box.client.acting():
        os.symlink('/tmp', folder)
    try:
        job = box.submit('-g', '0', '--private-tmp', '-o', f'{folder}/out', '--', 'true', cwd=box.client.home)
        ended = box.wait(job)
        assert (ended['state'], ended['ended_by']) == ('failed', 'start_failed') and 'only the job has' in ended['message'], ended
    finally:
        os.unlink(folder)


def test_it_cannot_be_edited(box):
    job = box.submit('-g', '0', '--hold', '--', 'true', cwd=box.client.home)
    answer = box.api('POST', f'/jobs/{job}/edit', {'private_tmp': True})
    assert answer.status == 400 and 'cannot be edited' in answer.json['detail'], answer


def test_a_job_cannot_uncover_what_is_below(box, mark):
    out = run(box, '--', 'sh', '-c', 'umount /tmp 2>/dev/null; unshare -Urm umount /tmp 2>/dev/null; unshare -Urm umount -l /dev/shm 2>/dev/null; '
                                     f'nsenter -t 1 -m true 2>/dev/null; touch /tmp/{mark} /dev/shm/{mark}; ls -A /tmp /dev/shm')
    assert out == f'/dev/shm:\n{mark}\n\n/tmp:\n{mark}\n'


def test_a_terminal_of_the_job_is_inside(box, mark):
    out = run(box, '-T', '--', 'sh', '-c', f'echo t >/tmp/{mark}; ls /tmp')
    assert mark in out


def is_shared(path):
    """Whether mounts below it are passed on to other mount namespaces, as systemd sets up all of them."""
    return 'shared' in subprocess.run(['findmnt', '-n', '-o', 'PROPAGATION', '-T', path], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not is_shared(PARENT), reason='mounts of this machine are not passed on: mount --make-rshared /')
def test_mounts_of_the_machine_appear_in_a_running_job(box):
    folder = f'{box.place}/mounted'
    os.mkdir(folder)
    job = box.submit('-g', '0', '--private-tmp', '--', 'sh', '-c', f'read word <{hold(box)}', cwd=box.client.home)
    box.wait(job, 'running')
    if subprocess.run(['mount', '-t', 'tmpfs', 'none', folder], check=False).returncode != 0:
        pytest.skip('mount(2) is not permitted here')
    try:
        with open(f'{folder}/file', 'w', encoding='ascii') as out:
            out.write('there\n')
        done = box.mgpu('exec', job, '--', 'cat', f'{folder}/file')
        assert done.out == 'there\n', done
    finally:
        subprocess.run(['umount', folder], check=True)


def test_a_site_gives_it_to_all_jobs(ana, mark):
    made = harness.Instance(GPUS, client=ana, parent=PARENT, arguments=('--private-tmp',)).start()
    try:
        if 'private-tmp' in off(made):
            pytest.skip(off(made)['private-tmp'])
        job = made.submit('-g', '0', '--', 'touch', f'/tmp/{mark}', cwd=ana.home)
        assert made.wait(job)['state'] == 'done' and made.job(job)['private_tmp'] is True
        done = made.mgpu('submit', '-g', '0', '-o', '/tmp/out', '--', 'true', cwd=ana.home)
        assert done.code == 2 and 'removed when it ends' in done.err, done
    finally:
        made.close()


def test_a_node_without_root_refuses_it(ana):
    made = harness.Instance(GPUS, user=ana).start()
    try:
        assert 'private-tmp' in off(made)
        job = made.submit('-g', '0', '--private-tmp', '--', 'true', cwd=ana.home)
        ended = made.wait(job)
        assert ended['ended_by'] == 'start_failed' and 'its own /tmp' in ended['message'], ended
    finally:
        made.close()
