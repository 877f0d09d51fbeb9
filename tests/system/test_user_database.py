# SPDX-License-Identifier: MIT
"""A node whose user database hangs for one user (tests/standin/nss_hesiod.c): what the others notice."""

import glob
import os
import shutil
import time

import pytest

import harness

TIMEOUT_S = 2  # after which a silent node is unreachable


# In a mount namespace of its own: our module in the place of one that every Debian has, asked before /etc/passwd.
ENTER = """set -e
mount --bind "$1" /mnt
mount --bind /mnt/nsswitch.conf /etc/nsswitch.conf
for module in /lib/*/libnss_hesiod.so.2; do mount --bind /mnt/module "$module"; done
shift
exec "$@"
"""


class Database:
    """The one of the instance's node; hangs for at most one user."""

    def __init__(self, folder):
        self.path = f'{folder}/hanging'
        os.mkdir(folder)
        shutil.copy(f'{harness.build_folder()}/tests/unit/agent/libnss_hesiod.so', f'{folder}/module')
        with open(f'{folder}/nsswitch.conf', 'w', encoding='ascii') as target:
            target.write('passwd: hesiod files\ngroup: files\n')
        self.answer()

    def hang(self, user):
        with open(self.path, 'w', encoding='ascii') as target:
            target.write(f'{user.uid}\n')

    def answer(self):
        with open(self.path, 'w', encoding='ascii'):
            pass


@pytest.fixture
def box(make_instance, ana, place):
    harness.require_namespaces()
    if not glob.glob('/lib/*/libnss_hesiod.so.2'):
        pytest.skip('needs libnss_hesiod')
    made = make_instance(gpus='sim:4x8G', client=ana, start=False, arguments=['--node-timeout', f'{TIMEOUT_S}s'])
    made.database = Database(f'{made.place}/nss')
    made.command[:0] = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', f'{made.place}/nss']
    made.runs = f'{place}/runs'  # a line for each run of a job that was begun
    with open(made.runs, 'w', encoding='ascii'):
        os.chmod(made.runs, 0o666)
    return made.start()


def begin(box, user):
    """A job whose node looks its owner up in vain."""
    box.database.hang(user)
    job = box.submit('-g', '1', '--', 'sh', '-c', f'echo ran >>{box.runs}', user=user)
    box.wait(job, 'starting')
    return job


def runs(box):
    with open(box.runs, encoding='ascii') as source:
        return source.read().count('ran')


def test_user_whose_lookup_hangs_delays_no_other_job_and_no_heartbeat(box, ana, bo):
    hanging = begin(box, ana)
    until = time.monotonic() + 2 * TIMEOUT_S
    while time.monotonic() < until:
        job = box.submit('-g', '1', '--', 'true', user=bo)
        assert box.wait(job)['exit_code'] == 0
        assert [node['state'] for node in box.api('GET', '/nodes').json['nodes']] == ['up']
    assert box.job(hanging)['state'] == 'starting'
    box.database.answer()
    assert box.wait(hanging)['exit_code'] == 0
    assert runs(box) == 1


def test_job_is_cancelled_while_its_user_is_looked_up(box, ana):
    job = begin(box, ana)
    box.mgpu('cancel', job, check=True)
    assert box.wait(job)['state'] == 'cancelled'
    box.database.answer()
    assert all(not gpu['jobs'] for gpu in box.gpus())


def test_job_runs_once_when_mgpud_dies_while_its_user_is_looked_up(box, ana):
    job = begin(box, ana)
    box.kill()
    box.start()
    box.database.answer()
    assert box.wait(job)['exit_code'] == 0
    assert runs(box) == 1
