# SPDX-License-Identifier: MIT
"""Users who are in no file of /etc, as with LDAP or sssd: Debian's libnss-extrausers reads another one."""

import os
import pwd

import pytest

import harness

MODULE = '/usr/lib/libnss_extrausers.so.2'
pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not os.path.exists(MODULE), reason='libnss-extrausers is not installed: tools/install-packages real')]

NAME, UID, GROUP, GID = 'mgpu-far', 4711001, 'mgpu-lab', 4711002

# In its own mount namespace.
ENTER = """set -e
mkdir -p /var/lib/extrausers
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
mount --bind "$1" /var/lib/extrausers
shift
exec "$@"
"""


class FarUser(harness.User):
    """Known inside the namespace alone; its processes here have only the numbers."""

    def __init__(self, home):  # pylint: disable=super-init-not-called
        self.name, self.uid, self.gid, self.home, self.groups = NAME, UID, GID, home, [GID]


def write_database(folder, home):
    for name, line in (('nsswitch.conf', 'passwd: files extrausers\ngroup: files extrausers\nshadow: files\nhosts: files dns\n'),
                       ('passwd', f'{NAME}:x:{UID}:{GID}:A user of the directory:{home}:/bin/sh\n'),
                       ('group', f'{GROUP}:x:{GID}:{NAME}\n'), ('shadow', '')):
        with open(f'{folder}/{name}', 'w', encoding='ascii') as out:
            out.write(line)


@pytest.fixture
def box(make_instance):
    harness.require_namespaces()
    made = make_instance(gpus='sim:2x8G', start=False)
    made.far_home = f'{made.place}/far'
    for path in (made.far_home, f'{made.place}/extrausers'):
        os.mkdir(path)
    os.chown(made.far_home, UID, GID)
    write_database(f'{made.place}/extrausers', made.far_home)
    with open(f'{made.place}/config', 'w', encoding='ascii') as out:
        out.write(f'roles:\n  operator: [group:{GROUP}]\n')
    made.command += ['--config', f'{made.place}/config']
    made.command[:0] = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', f'{made.place}/extrausers']
    return made.start()


def test_user_of_a_directory_runs_a_job_under_his_name_and_groups(box):
    with pytest.raises(KeyError):
        pwd.getpwuid(UID)  # nobody knows him outside
    far = FarUser(box.far_home)
    job, _ = box.run_job(['sh', '-c', 'id -u; id -G; echo "$USER $HOME"; pwd'], user=far)
    assert job['exit_code'] == 0 and job['user'] == NAME, job
    output = box.api('GET', f"/jobs/{job['id']}/log", user=far).body.decode()
    assert output.splitlines() == [str(UID), str(GID), f'{NAME} {box.far_home}', box.far_home]


def test_role_of_a_group_of_a_directory_counts(box, ana):
    far = FarUser(box.far_home)
    held = box.post_job(['true'], user=ana, hold=True)
    assert box.api('POST', f'/jobs/{held}/cancel', {}, user=far).status in (200, 202), 'an operator may'


def test_running_job_outlives_the_removal_of_its_user(box, gate):
    far = FarUser(box.far_home)
    running = box.post_job(gate.command(), user=far, cwd='/')
    box.wait(running, 'running')
    with open(f'{box.place}/extrausers/passwd', 'w', encoding='ascii'):
        pass
    gate.open()
    assert box.wait(running)['exit_code'] == 0
