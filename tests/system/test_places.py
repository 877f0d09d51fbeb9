# SPDX-License-Identifier: MIT
"""What a job finds on a node that is not the one it was submitted on: users, directories, commands, ports, hosts."""

import contextlib
import os
import subprocess
import time

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


def await_notice(box, job):
    """The job's first notice once it was tried. Nothing tells of tries, so this asks again and again."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        notice = box.job(job)['notices'][0]
        if notice.get('error'):
            return notice
        time.sleep(0.05)
    raise AssertionError(box.job(job)['notices'])


@pytest.mark.root
def test_a_number_that_is_another_user_on_the_node_is_told_and_nothing_runs_as_him(ana):
    with other_users(ana, f'mgpu-tx:x:{ana.uid}:{ana.gid}::{ana.home}:/bin/sh\n') as box:
        told = f'{box.place}/told'
        job = box.submit('-g', '1', '--notify', f'touch {told}', '--', 'true')
        ended = box.wait(job)
        sentence = f'on node n1 user id {ana.uid} is mgpu-tx, not {ana.name}'
        assert (ended['ended_by'], ended['message']) == ('start_failed', sentence)
        notice = await_notice(box, job)
        assert sentence in notice['error'] and not os.path.exists(told)


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
