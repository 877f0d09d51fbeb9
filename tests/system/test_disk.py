# SPDX-License-Identifier: MIT
"""A disk of mgpud that is read-only, has no inodes or fails: at a start and in operation each case has its own sentence,
and nothing acknowledged is lost. Without space: test_store.py."""

import os
import subprocess

import pytest

import harness
from test_store import fsck, refuse_to_start

pytestmark = pytest.mark.root


@pytest.fixture
def disk(place):
    """A separate file system: `disk('nr_inodes=100')`. Named before `make_instance`, which ends before the mount does."""
    mounted = []

    def mount(options=''):
        path = f'{place}/disk{len(mounted)}'
        os.mkdir(path)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size=80m,mode=755,{options}', 'tmpfs', path], check=True)
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        subprocess.run(['umount', '-l', path], check=True)


def take_inodes(path):
    """Creates empty files until no more are possible; returns their folder."""
    folder = f'{path}/many'
    os.mkdir(folder)
    with pytest.raises(OSError, match='No space left'):
        for n in range(1000000):
            os.close(os.open(f'{folder}/{n}', os.O_CREAT | os.O_WRONLY))
    return folder


def give_back(folder):
    for name in os.listdir(folder):
        os.unlink(f'{folder}/{name}')


def remount(path, how):
    subprocess.run(['mount', '-o', f'remount,{how}', path], check=True)


def test_a_start_on_a_read_only_file_system_says_so(disk, make_instance):
    path = disk()
    instance = make_instance(state_dir=f'{path}/state')
    job = instance.post_job(['true'])
    instance.wait(job)
    instance.stop()
    remount(path, 'ro')
    log = refuse_to_start(instance)
    assert f'the file system of {path}/state is read-only' in log and 'hint: make it writable' in log, log
    remount(path, 'rw')
    instance.start()
    assert instance.job(job)['state'] == 'done'
    assert fsck(instance).returncode == 0


def test_a_start_without_inodes_says_so_and_is_no_damage(disk, make_instance):
    path = disk('nr_inodes=300')
    instance = make_instance(state_dir=f'{path}/state')
    job = instance.post_job(['true'])
    instance.wait(job)
    instance.stop()
    folder = take_inodes(path)
    log = refuse_to_start(instance)
    assert f'the disk of {path}/state/store is full: no free inodes' in log and 'damaged' not in log, log
    give_back(folder)
    instance.start()
    assert instance.job(job)['state'] == 'done'


def test_without_inodes_new_jobs_are_refused_and_running_ones_end(disk, make_instance, gate):
    path = disk('nr_inodes=300')
    instance = make_instance(state_dir=f'{path}/state')
    running = instance.post_job(gate.command('exit 8'))
    instance.wait(running, 'running')
    folder = take_inodes(path)
    refused = harness.until(lambda: (answer := instance.api('POST', '/jobs', {'command': ['true']})).status == 507 and answer,
                            'a refused submit')
    assert refused.json['code'] == 'store_full' and 'no inodes left' in refused.json['detail'], refused
    told = instance.mgpu('doctor')
    assert told.code == 1 and 'no inodes left' in told.out, told
    gate.open()
    assert instance.wait(running)['exit_code'] == 8
    give_back(folder)
    answer = harness.until(lambda: (answer := instance.api('POST', '/jobs', {'command': ['true']})).status == 201 and answer,
                           'an accepted submit')
    assert instance.wait(answer.json['id'])['state'] == 'done'
