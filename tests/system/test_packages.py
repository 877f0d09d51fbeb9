# SPDX-License-Identifier: MIT
"""The Debian packages: built twice, checked by lintian, and used in a bare Debian: a chroot with its own mounts
and processes. Jobs go on through upgrades, downgrades, removal and purge."""

import email.utils
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil

import pytest

import bare_debian
import harness
from bare_debian import run

ROOT = pathlib.Path(__file__).parents[2]
MISSING = [*bare_debian.MISSING, *(name for name in ('dh', 'lintian') if not shutil.which(name))]
pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.xdist_group('packages'),
              pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)} not installed: tools/install-packages real')]

JOB = 'sleep 4321'
# What root has in a container of podman or docker that nobody gave more.
IN_CONTAINER = ('setpriv --inh-caps -all --bounding-set -all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,'
                '+net_bind_service,+sys_chroot,+setfcap')


def version_of(deb):
    return run('dpkg-deb', '-f', deb, 'Version').stdout.strip()


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    if os.environ.get('MGPU_PACKAGES'):  # those of an earlier `make deb`
        return pathlib.Path(os.environ['MGPU_PACKAGES'])
    if bare_debian.built_packages:
        return bare_debian.built_packages[-1]
    place = tmp_path_factory.mktemp('debs')
    harness.open_folder(place)
    run(ROOT / 'tools' / 'make-deb', place)
    return place


def the_deb(packages, name):
    found, = glob.glob(f'{packages}/{name}_*.deb')
    return found


@pytest.fixture(scope='module')
def older(packages, tmp_path_factory):
    """The same programs under a lower version: what an upgrade comes from."""
    place = tmp_path_factory.mktemp('older')
    harness.open_folder(place)
    run('dpkg-deb', '-R', the_deb(packages, 'mgpu'), place / 'tree')
    control = place / 'tree' / 'DEBIAN' / 'control'
    control.write_text(re.sub(r'(?m)^Version: .*$', 'Version: 0.1.99', control.read_text()))
    run('dpkg-deb', '--root-owner-group', '-b', place / 'tree', place / 'mgpu_0.1.99.deb')
    return place / 'mgpu_0.1.99.deb'


@pytest.fixture(scope='module')
def debian(tmp_path_factory):
    return bare_debian.debian(tmp_path_factory)


class Machine(bare_debian.Machine):
    """A Debian in which packages are installed; those under test are its /mnt."""

    def install(self, deb, check=True):
        shutil.copy(deb, self.path('/tmp'))
        return self.sh('apt-get install -qq -y --no-install-recommends --allow-downgrades -o Dpkg::Use-Pty=0 '
                       f'/tmp/{pathlib.Path(deb).name}', check=check)

    def serve(self):
        """As systemd would, with simulated GPUs."""
        self.sh('mgpud --detach --gpus sim:2x8G')

    def new_start(self):
        self.sh('mgpud --stop')
        self.serve()

    def state(self, job):
        return json.loads(self.sh(f'mgpu show --json {job}').stdout)['state']

    def has_process(self):
        return self.sh('grep -lszx 4321 /proc/[0-9]*/cmdline', check=False).returncode == 0


@pytest.fixture(scope='module')
def installed(debian, packages, tmp_path_factory):
    """The layers of a Debian with a user, in which mgpu was installed by one command."""
    place = tmp_path_factory.mktemp('installed') / 'machine'
    made = Machine(debian, place, packages)
    made.install(the_deb(packages, 'mgpu'))
    made.sh('useradd -m ana')
    made.close()
    return f'{place}/upper:{debian}'


@pytest.fixture
def machine(installed, packages, tmp_path):
    made = Machine(installed, tmp_path / 'machine', packages)
    yield made
    made.close()


@pytest.fixture
def served(machine):
    machine.serve()
    return machine


def start_job(machine):
    job = int(machine.sh(f'mgpu submit -q -g 1 -- {JOB}', user='ana').stdout.split()[-1])
    machine.sh(f'mgpu wait --for running {job}', user='ana', check=False)
    harness.until(lambda: machine.state(job) == 'running' and machine.has_process(), 'the job')
    return job


def test_two_builds_are_the_same(packages, tmp_path):
    """With the same tools and headers: debug information has the lines of system headers, and a program its checksum as its build id."""
    again = tmp_path / 'again'
    if len(bare_debian.built_packages) > 1:  # by another machine with the same tools
        again = bare_debian.built_packages[0]
    else:
        run(ROOT / 'tools' / 'make-deb', again)
    for package in sorted([*glob.glob(f'{packages}/*.deb'), *glob.glob(f'{packages}/*.tar.gz')]):
        same = again / pathlib.Path(package).name
        assert hashlib.sha256(same.read_bytes()).digest() == hashlib.sha256(pathlib.Path(package).read_bytes()).digest(), same.name


def test_lintian_has_nothing_to_say(packages):
    changes, = glob.glob(f'{packages}/*.changes')
    done = run('lintian', '--allow-root', '--fail-on', 'error,warning', changes, check=False)
    assert done.returncode == 0, done.stdout


def test_the_tarball_builds_without_git(packages, tmp_path):
    tarball, = glob.glob(f'{packages}/*.tar.gz')
    run('tar', '-C', tmp_path, '-xf', tarball)
    tree, = tmp_path.iterdir()
    assert not (tree / '.git').exists()
    run('meson', 'setup', tmp_path / 'build', tree, '-Dtests=false')
    run('tools/dist', tmp_path / 'again', cwd=tree)
    again, = glob.glob(f'{tmp_path}/again/*.tar.gz')
    assert pathlib.Path(again).read_bytes() == pathlib.Path(tarball).read_bytes()


def test_every_package_has_one_version(packages):
    version = re.search(r"version: '(.*)'", (ROOT / 'meson.build').read_text()).group(1)
    assert f'"{version}"' in (ROOT / 'src' / 'base' / 'version.h').read_text()
    assert f"__version__ = '{version}'" in (ROOT / 'python' / 'mgpu' / '_version.py').read_text()
    dated = run('dpkg-parsechangelog', '-l', ROOT / 'debian' / 'changelog', '-S', 'Date').stdout
    day = email.utils.parsedate_to_datetime(dated.strip()).date().isoformat()
    news = re.search(rf'(?m)^## {re.escape(version)} \((.*)\)$', (ROOT / 'NEWS.md').read_text())
    assert news and news[1] in (day, 'unreleased'), (dated, news)
    assert re.search(rf'(?m)^Version: +{re.escape(version)}$', (ROOT / 'contrib' / 'mgpu.spec').read_text())
    assert {version_of(deb) for deb in glob.glob(f'{packages}/*.deb')} == {version}


def test_a_bare_debian_gets_it_by_one_command_and_a_user_runs_a_job_by_another(served):
    assert 'hello from ana' in served.sh('mgpu run -g 1 -- echo hello from $(id -un)', user='ana').stdout.splitlines()
    served.sh('test -s /usr/share/bash-completion/completions/mgpu && test -s /usr/share/zsh/vendor-completions/_mgpu')
    served.sh('test -s /usr/share/fish/vendor_completions.d/mgpu.fish')
    served.sh('getent passwd mgpu')
    # dpkg of a container leaves out manuals and documents; the package has them.
    listed = served.sh('dpkg -L mgpu').stdout
    for name in ('man1/mgpu-submit.1.gz', 'man8/mgpud.8.gz', 'man7/mgpu-compat.7.gz', '/lib/systemd/system/mgpud.service'):
        assert name in listed, name


def test_a_container_without_init_and_privileges_runs_jobs_of_its_users(machine):
    machine.sh(f'{IN_CONTAINER} mgpud --detach --gpus sim:2x8G')
    assert 'hello from ana on 0' in machine.sh("mgpu run -g 1 'echo hello from $(id -un) on $CUDA_VISIBLE_DEVICES'", user='ana').stdout
    doctor = machine.sh(f'{IN_CONTAINER} mgpu doctor', check=False).stdout
    assert re.search(r'(?m)^off +private-tmp .*cannot mount', doctor) and re.search(r'(?m)^on +users .*who submitted', doctor), doctor
    machine.sh('mgpud --stop')


def test_no_user_gets_a_private_mgpud_unasked(served):
    """The user unit can be enabled, and no login starts it."""
    served.sh('test -e /usr/lib/systemd/user/mgpud.service')
    assert served.sh('find /etc/systemd/user -name "mgpud*"', check=False).stdout.strip() == ''


def test_every_setting_is_in_the_conffile_and_none_is_set(served):
    assert '/etc/mgpu/mgpu.yaml' in served.sh("dpkg-query -W -f '${Conffiles}' mgpu").stdout
    text = served.sh('cat /etc/mgpu/mgpu.yaml').stdout
    assert not [line for line in text.splitlines() if line and not line.startswith('#')]
    served.sh('mgpud --check-config')


def test_a_job_runs_through_upgrade_and_downgrade(machine, packages, older):
    machine.install(older)
    machine.serve()
    job = start_job(machine)
    said = machine.install(the_deb(packages, 'mgpu')).stdout
    assert 'keeps running' in said, said
    machine.new_start()
    harness.until(lambda: machine.state(job) == 'running', 'the job after the upgrade')
    machine.install(older)
    machine.new_start()
    harness.until(lambda: machine.state(job) == 'running', 'the job after the downgrade')
    assert machine.has_process()
    machine.sh(f'mgpu cancel {job}', user='ana')


def test_removal_ends_no_job_and_says_so(served, packages):
    job = start_job(served)
    said = served.sh('dpkg --remove mgpu').stdout
    assert '1 jobs are running and continue' in said, said
    assert served.has_process()
    served.sh('test ! -e /usr/bin/mgpud && test -e /var/lib/mgpu && test -e /etc/mgpu/mgpu.yaml')
    served.install(the_deb(packages, 'mgpu'))
    served.serve()
    harness.until(lambda: served.state(job) == 'running', 'the job after removal and return')
    said = served.sh('dpkg --purge mgpu').stdout
    assert 'jobs are still running' in said, said
    assert served.has_process()
    served.sh('test ! -e /var/lib/mgpu && test ! -e /etc/mgpu')


def test_an_installation_from_source_is_told_of(machine, packages):
    machine.sh('printf "#!/bin/sh\n" > /usr/local/bin/mgpud; chmod +x /usr/local/bin/mgpud')
    said = machine.sh(f'dpkg -i /mnt/{os.path.basename(the_deb(packages, "mgpu"))}').stdout
    assert '/usr/local/bin has another mgpu' in said, said


MADE_BAD = {
    'read-only': 'mount --bind /etc /etc && mount -o remount,bind,ro /etc',
    'full': 'cp -a /etc /etc.kept && mount -t tmpfs -o size=4m tmpfs /etc && cp -a /etc.kept/. /etc && ! cat /dev/zero >/etc/full',
}


@pytest.mark.parametrize('how', sorted(MADE_BAD))
def test_a_configuration_that_cannot_be_written_fails_and_can_be_repeated(machine, packages, how):
    machine.sh('dpkg --purge mgpu && userdel mgpu')
    machine.sh(f'dpkg --unpack /mnt/{os.path.basename(the_deb(packages, "mgpu"))}')
    machine.sh(f'{MADE_BAD[how]} 2>&1')
    failed = machine.sh('dpkg --configure mgpu', check=False)
    assert failed.returncode != 0, failed.stdout
    machine.sh('umount /etc')
    machine.sh('dpkg --configure -a && getent passwd mgpu && mgpud --version')


def test_the_log_of_a_detached_mgpud_is_rotated(served):
    served.sh('apt-get install -qq -y --no-install-recommends logrotate && logrotate --force /etc/logrotate.d/mgpu')
    # What follows is appended to the emptied file, not written behind a hole.
    served.sh('cd /var/lib/mgpu && test -s mgpud.log.1 && test $(stat -c %s mgpud.log) -lt $(stat -c %s mgpud.log.1)')
    served.sh('mgpu run -g 1 -- true', user='ana')


def test_python_comes_as_a_package(served, packages):
    served.install(the_deb(packages, 'python3-mgpu'))
    told = served.sh('python3 -c "import mgpu; print(mgpu.submit([\'true\'], gpus=1).wait().state)"', user='ana').stdout
    assert told.strip() == 'done', told


def test_a_further_machine_gets_no_controller(machine, packages):
    machine.install(the_deb(packages, 'mgpu-agent'))
    machine.sh('test ! -e /usr/bin/mgpud && mgpu-agent --version && mgpu --version')
    machine.install(the_deb(packages, 'mgpu'))
    machine.sh('test -e /usr/bin/mgpud')
    assert 'ii  mgpu-agent' not in machine.sh('dpkg -l mgpu-agent', check=False).stdout


@pytest.mark.minutes(15)
@pytest.mark.xdist_group('rpm')  # beside the others: it needs only the sources
@pytest.mark.skipif(not shutil.which('rpmbuild'), reason='rpm is not installed: tools/install-packages real')
def test_the_spec_builds_an_rpm(tmp_path):
    """As far as Debian can try it: what it is built from has other names here."""
    tarball = run(ROOT / 'tools' / 'dist', tmp_path).stdout.strip()
    run('rpmbuild', '-tb', '--nodeps', '--define', f'_topdir {tmp_path}', tarball, env={**os.environ, 'CFLAGS': '-O0 -w'})  # it is not run
    rpm, = glob.glob(f'{tmp_path}/RPMS/*/*.rpm')
    listed = run('rpm', '-qlp', rpm).stdout.split()
    assert {'/usr/bin/mgpud', '/usr/libexec/mgpu/mgpu-shepherd', '/etc/mgpu/mgpu.yaml', '/usr/lib/systemd/system/mgpud.service'} <= set(listed)
    assert run('rpm', '-qcp', rpm).stdout.split() == ['/etc/mgpu/mgpu.yaml']
