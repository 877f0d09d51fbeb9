# SPDX-License-Identifier: MIT
"""README.md typed on a machine that has nothing: a Debian 12 with git and ca-certificates, on which the host name cannot be looked
up and process 1 reaps nothing, as in many containers. From there to the first job of an ordinary user."""

import fcntl
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import bare_debian
import harness

MISSING = [*bare_debian.MISSING, *(name for name in ('git',) if not shutil.which(name))]
# Before those of test_packages.py, which go on with the packages that are built here, after that of test_container.py.
pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.minutes(15), pytest.mark.xdist_group('packages'),
              pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)} not installed: tools/install-packages real')]

README = pathlib.Path(harness.ROOT, 'README.md').read_text(encoding='utf-8')
HAS_NO_TERMINAL = 'DEBIAN_FRONTEND=noninteractive '
SOURCES = '''
tar -xf "$(tools/dist "$0.tar")" -C "$0" --strip-components=1
cd "$0" && git init -q && git add -A && git -c user.name=tests -c user.email=tests@localhost commit -q -m 'as it is here'
'''


class Typist:
    """Types what README.md has; a command that is not there is a fault of one of the two."""

    def __init__(self, machine):
        self.machine = machine

    def type(self, command, user='root', folder='/srv/mgpu'):
        assert command in README, f'README.md does not have: {command}'
        words = command.replace('apt install', 'apt-get install -y -q')
        return self.machine.sh(f'cd {folder} && {HAS_NO_TERMINAL}{words}' if user == 'root' else words, user=user).stdout


INSTALL_MAKE = 'apt install git make ca-certificates'


@pytest.fixture(scope='module')
def bare(tmp_path_factory):
    place = tmp_path_factory.mktemp('nothing')
    sources = place / 'sources'
    sources.mkdir()
    subprocess.run(['sh', '-ec', SOURCES, sources], cwd=harness.ROOT, check=True)
    machine = bare_debian.Machine(bare_debian.debian(tmp_path_factory), place / 'machine', sources, host_name='bare')
    machine.sh('apt-get update -q && apt-get install -q -y --no-install-recommends git ca-certificates')
    machine.sh('git clone -q /mnt /srv/mgpu')
    yield Typist(machine)
    machine.close()


def test_nothing_can_look_up_the_host_name_and_nothing_is_there(bare):
    assert bare.machine.sh('getent hosts "$(hostname)"', check=False).returncode != 0
    assert bare.machine.sh('command -v make gcc python3', check=False).stdout == ''


def test_make_run_waits_for_another_apt_and_shows_jobs(bare):
    bare.type(INSTALL_MAKE)
    with open(bare.machine.path('/var/lib/apt/lists/lock'), 'r+b') as lists:
        fcntl.lockf(lists, fcntl.LOCK_EX)
        assert 'make run' in README
        with subprocess.Popen(bare.machine.command('cd /srv/mgpu && make run'), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as run:
            said = ''
            for line in run.stdout:
                said += line
                if 'Another apt is at work' in line:
                    fcntl.lockf(lists, fcntl.LOCK_UN)
    assert run.returncode == 0, said
    assert 'Another apt is at work' in said and 'hello from GPU' in said and 'Done.' in said, said
    assert 'make deb && apt install ./dist/mgpu_*.deb' in said[said.index('Done.'):], said
    assert 'python3-torch' not in said
    assert bare.machine.sh('ls -d /tmp/mgpu-demo-*', check=False).returncode != 0


def test_the_short_tests_pass_on_what_was_built(bare):
    bare.type(INSTALL_MAKE)  # it is there, unless this test runs alone
    built = bare.machine.sh('ls /srv/mgpu/build/quick', check=False).returncode == 0  # by `make run`
    said = bare.type('make check QUICK=1')
    assert f'== build {"build" if built else "build-quick"} (gcc ' in said, said[:3000]
    counted = re.search(r'^(\d+) passed, 0 failed(?:, (\d+) skipped)?$', said, re.M)
    assert counted and int(counted[1]) > 1000 and int(counted[2] or 0) < 50, said[-3000:]
    assert 'python3-torch' not in said and 'LEFT OUT' in said, said[-3000:]


def keep(bare, folder, name):
    """A copy of what the machine has built, for what goes on with it when the machine is gone."""
    kept = bare.machine.root.parents[1] / name
    shutil.copytree(bare.machine.path(folder), kept)
    harness.open_folder(kept)
    return kept


def test_make_deb_builds_packages(bare):
    bare.type(INSTALL_MAKE)
    bare.type('make deb')
    kept = keep(bare, '/srv/mgpu/dist', 'debs')
    assert [name for name in os.listdir(kept) if name.startswith('mgpu_') and name.endswith('.deb')]
    if not bare_debian.built_packages:  # test_packages.py compares two builds, and test_container.py has made none
        bare.machine.sh('cd /srv/mgpu && tools/make-deb /srv/again')
        bare_debian.built_packages.append(keep(bare, '/srv/again', 'debs-again'))
    bare_debian.built_packages.append(kept)


def test_an_ordinary_user_runs_the_first_job(bare):
    if bare.machine.sh('ls /srv/mgpu/dist/mgpu_*.deb', check=False).returncode != 0:  # this test runs alone
        test_make_deb_builds_packages(bare)
    bare.type('apt install ./dist/mgpu_*.deb')
    bare.machine.sh('mgpud --detach --gpus sim:8x24G && useradd -m ada')
    said = bare.type("mgpu run -g 1 'echo \"hello from GPU $CUDA_VISIBLE_DEVICES\"'", user='ada')
    assert 'hello from GPU 0' in said, said
    bare.machine.sh('mgpud --stop')
