# SPDX-License-Identifier: MIT
"""What a job finds on a node that is not the one it was submitted on: users, directories, commands, ports, hosts."""

import contextlib
import os
import socket
import subprocess

import pytest

import harness

Cluster = pytest.importorskip('cluster').Cluster  # nodes that join over TLS

DEADLINE_S = harness.DEADLINE_S


# --- users ---

def renamed(place, user, others):
    """A file like /etc/passwd in which that user's line is replaced."""
    path = f'{place}/passwd'
    with open('/etc/passwd', encoding='utf-8') as source, open(path, 'w', encoding='utf-8') as out:
        out.writelines(line for line in source if line.split(':')[0] != user.name)
        out.write(others)
    return path


@contextlib.contextmanager
def other_users(someone, line, arguments=()):
    """A cluster whose one node has that line of /etc/passwd instead of the user's own."""
    with Cluster(0, client=someone) as made:
        passwd = renamed(made.place, someone, line)
        words = ('unshare', '--mount', 'sh', '-c', f'mount --bind {passwd} /etc/passwd && exec "$@"', 'sh')
        if subprocess.run([*words, 'true'], capture_output=True, check=False).returncode != 0:
            pytest.skip('nothing can be mounted here')
        made.add('n1', arguments=arguments, prefix=words).join()
        yield made.box


@pytest.mark.root
def test_a_number_that_is_another_user_on_the_node_is_told_and_nothing_runs_as_him(ana):
    with other_users(ana, f'mgpu-tx:x:{ana.uid}:{ana.gid}::{ana.home}:/bin/sh\n') as box:
        told = f'{box.place}/told'
        job = box.submit('-g', '1', '--notify', f'touch {told}', '--', 'true')
        ended = box.wait(job)
        sentence = f'on node n1 user id {ana.uid} is mgpu-tx, not {ana.name}'
        assert (ended['ended_by'], ended['message']) == ('start_failed', sentence)
        error = harness.until(lambda: box.job(job)['notices'][0].get('error'), 'the notice was never tried')
        assert sentence in error and not os.path.exists(told)


@pytest.mark.root
def test_a_user_who_has_another_number_on_the_node_is_told(ana):
    with other_users(ana, f'{ana.name}:x:54321:{ana.gid}::{ana.home}:/bin/sh\n') as box:
        ended = box.wait(box.submit('-g', '1', '--', 'true'))
        assert ended['ended_by'] == 'start_failed', ended
        assert ended['message'] == f'on node n1 {ana.name} has user id 54321, not {ana.uid}'


@pytest.mark.root
def test_a_site_may_compare_users_by_number_alone(ana):
    line = f'mgpu-tx:x:{ana.uid}:{ana.gid}::{ana.home}:/bin/sh\n'
    with other_users(ana, line, ('--user-check', 'number')) as box:
        job = box.submit('-g', '1', '--', 'sh', '-c', 'id -un')
        assert box.wait(job)['exit_code'] == 0
        assert box.output(job) == 'mgpu-tx\n'


# --- directories and commands that a node does not have ---

@contextlib.contextmanager
def two_nodes(someone, hidden=None):
    """Nodes n1 and n2; what is below the directory `hidden` is not there on n2."""
    with Cluster(1, client=someone) as made:
        words = ()
        if hidden is not None:
            words = ('unshare', '--mount', 'sh', '-c', f'mount -t tmpfs none {hidden} && exec "$@"', 'sh')
            if subprocess.run([*words, 'true'], capture_output=True, check=False).returncode != 0:
                pytest.skip('nothing can be mounted here')
        made.add('n2', prefix=words).join()
        yield made.box


@pytest.fixture(scope='module')
def cluster(someone):
    """Two nodes with four GPUs each, which have the same files."""
    with two_nodes(someone) as box:
        yield box


@pytest.fixture(scope='module')
def partly(ana, tmp_path_factory):
    """The same, with a directory in which n2 has nothing."""
    hidden = str(tmp_path_factory.mktemp('hidden'))
    harness.open_folder(hidden)
    os.mkdir(f'{hidden}/here')
    os.chown(f'{hidden}/here', ana.uid, ana.gid)
    with open(f'{hidden}/here/tool', 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\necho ran > "$1"\n')
    os.chmod(f'{hidden}/here/tool', 0o755)
    with two_nodes(ana, hidden) as box:
        yield box, f'{hidden}/here'


WIDE = ('-N', '2', '-g', '8')


@pytest.mark.root
def test_a_directory_that_a_node_does_not_have_is_named(partly):
    box, here = partly
    ended = box.wait(box.submit(*WIDE, '-C', here, '--', 'true'))
    assert ended['ended_by'] == 'start_failed', ended
    assert ended['message'].endswith(f' on n2: cannot change to directory {here}: No such file or directory')


@pytest.mark.root
def test_a_job_runs_where_it_chose_to_on_a_node_without_its_directory(partly):
    box, here = partly
    job = box.submit(*WIDE, '-C', here, '--chdir-fallback', 'tmp', '--', 'sh', '-c', 'echo $MGPU_NODE in $(pwd) $PWD')
    ended = box.wait(job)
    assert ended['exit_code'] == 0, ended
    rank = {part['node']: part['rank'] for part in ended['ranks']}
    assert sorted(box.mgpu('logs', job, check=True).out.splitlines()) == sorted([
        f'{rank["n1"]}: n1 in {here} {here}', f'{rank["n2"]}: n2 in /tmp /tmp',
        f'{rank["n2"]}: mgpu: cannot change to directory {here}: No such file or directory; running in /tmp'])


@pytest.mark.root
def test_a_command_that_one_node_does_not_have_keeps_all_from_running(partly):
    box, here = partly
    mark = f'{box.place}/tool-ran'
    ended = box.wait(box.submit(*WIDE, '--', f'{here}/tool', mark))
    assert (ended['ended_by'], ended['exit_code']) == ('start_failed', 127), ended
    assert ended['message'].endswith(f' on n2: cannot execute {here}/tool: No such file or directory')
    assert not os.path.exists(mark)


def test_show_says_where_a_job_runs_that_lost_its_directory(box, place):
    gone = f'{place}/gone'
    job, home = box.submit('-C', gone, '--chdir-fallback', 'home', '--', 'pwd'), box.client.home
    ended = box.wait(job)
    sentence = f'cannot change to directory {gone}: No such file or directory; running in {home}'
    assert ended['exit_code'] == 0, ended
    assert box.output(job) == f'mgpu: {sentence}\n{home}\n'
    assert sentence in box.mgpu('show', job, check=True).out


def test_show_says_so_of_each_short_element_too(box, place):
    """Their starts are reported with their ends."""
    gone = f'{place}/gone'
    array = box.submit('-a', '0-3', '-C', gone, '--chdir-fallback', 'home', '--', 'true')
    for index in range(4):
        element = f'{array}.{index}'
        box.mgpu('wait', element, check=True)
        assert f'cannot change to directory {gone}' in box.mgpu('show', element, check=True).out


# --- where the parts meet ---

@contextlib.contextmanager
def listening(port):
    """Somebody has the port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('127.0.0.1', port))
        listener.listen()
        yield


def test_parts_meet_at_a_port_that_is_free(cluster, gate):
    script = ('import os, socket\n'
              'if os.environ["MGPU_NODE_RANK"] == "0":\n'
              '    socket.socket().bind(("", int(os.environ["MASTER_PORT"])))\n'
              'print(os.environ["MASTER_PORT"], os.environ["PET_MASTER_PORT"])\n')
    job = cluster.submit(*WIDE, '--hold', '--', 'sh', '-c', f'python3 -c "$0" && read word < {gate.path}', script)
    first = 29500 + (int(job) + 101) % 500
    with listening(first):
        cluster.mgpu('release', job, check=True)
        cluster.wait(job, 'running')
    beside = cluster.mgpu('exec', job, '--', 'sh', '-c', 'echo $MASTER_PORT', check=True).out
    gate.open(2)
    ended = cluster.wait(job)
    assert ended['exit_code'] == 0, (ended, cluster.mgpu('logs', job).out)
    lines = [line.split(': ')[1].split() for line in cluster.mgpu('logs', job, check=True).out.splitlines()]
    ports = {int(port) for line in lines for port in line}
    assert len(lines) == 2 and ports == {int(beside)} and first not in ports, (lines, beside)


def test_a_list_of_hosts_lies_ready_while_the_job_runs(cluster, gate):
    job = cluster.submit(*WIDE, '--', 'sh', '-c', f'stat -c "%a %u" $MGPU_HOSTFILE; echo $MGPU_HOSTFILE; '
                         f'echo $MGPU_HOSTS; cat $MGPU_HOSTFILE; read word < {gate.path}')
    gate.open(2)
    assert cluster.wait(job)['exit_code'] == 0
    for rank in ('0', '1'):
        lines = cluster.mgpu('logs', '--rank', rank, job, check=True).out.splitlines()
        assert lines[0] == ('440 0' if harness.IS_ROOT else f'400 {cluster.client.uid}')  # the user's by an ACL
        assert lines[3:] == [host.replace(':', ' slots=') for host in lines[2].split(',')]
        harness.until(lambda path=lines[1]: not os.path.exists(path), f'{lines[1]} stays')


# --- outputs ---

def test_a_queued_job_is_followed_on_all_the_nodes_that_it_gets(cluster, gate):
    job = cluster.submit('-g', '8', '--hold', '--', 'sh', '-c', f'echo $MGPU_NODE; read word < {gate.path}; echo bye')
    follower = cluster.popen('logs', '-f', job)
    cluster.mgpu('release', job, check=True)
    ranks = {part['rank']: part['node'] for part in cluster.wait(job, 'running')['ranks']}
    gate.open(2)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert sorted(out.decode().splitlines()) == sorted(
        f'{rank}: {word}' for rank, node in ranks.items() for word in (node, 'bye')), err


def test_a_queued_job_that_gets_one_node_is_followed_without_labels(cluster):
    job = cluster.submit('-g', '2', '--hold', '--', 'echo', 'here')
    follower = cluster.popen('logs', '-f', job)
    cluster.mgpu('release', job, check=True)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert out == b'here\n', err


def test_queued_jobs_are_followed_side_by_side(cluster):
    jobs = [cluster.submit('-g', gpus, '--hold', '--', 'echo', 'here') for gpus in ('8', '2')]
    follower = cluster.popen('logs', '-f', *jobs)
    cluster.mgpu('release', *jobs, check=True)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert sorted(out.decode().splitlines()) == sorted(
        [f'{jobs[0]} 0: here', f'{jobs[0]} 1: here', f'{jobs[1]}: here']), err


@pytest.mark.root
def test_the_output_of_another_users_queued_job_is_refused_at_once(cluster, bo):
    job = cluster.submit('-g', '8', '--hold', '--', 'true')
    refused = cluster.mgpu('logs', '-f', job, user=bo)
    assert refused.code != 0 and 'not allowed to' in refused.err, refused
    cluster.mgpu('cancel', job, check=True)


def test_two_instances_never_write_to_one_log(make_instance, gate):
    """Both put logs into the user's home, and both call their first job 1."""
    first, second = [make_instance('sim:1x8G', arguments=('--log-dir', 'home')) for _ in range(2)]
    jobs = [box.submit('--', *gate.command(f'echo {word}')) for box, word in ((first, 'one'), (second, 'two'))]
    assert jobs == [1, 1]
    logs = [box.wait(1, 'running')['log'] for box in (first, second)]
    gate.open(2)
    assert [box.wait(1)['exit_code'] for box in (first, second)] == [0, 0]
    assert logs[0] != logs[1] and [box.output(1) for box in (first, second)] == ['one\n', 'two\n'], logs
    for log in logs:
        os.unlink(log)
