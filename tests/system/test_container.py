# SPDX-License-Identifier: MIT
"""The Containerfile, built and run with podman: mgpu with simulated GPUs in one command.

No registry is reached: the base is a bare Debian that debootstrap makes, given by the build argument BASE.
"""

import pathlib
import shutil
import subprocess
import tempfile
import uuid

import pytest

import bare_debian
import harness
from test_podman import CRUN, message_queues, write  # noqa: F401

ROOT = pathlib.Path(__file__).parents[2]
MISSING = [*bare_debian.MISSING, *(name for name in ('podman',) if not shutil.which(name))]
# Before those of test_packages.py, which compare the packages that are built here with those of another machine.
pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.xdist_group('packages'),
              pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)} not installed: tools/install-packages real')]

BUILD_S = 1800  # a build of everything, on a busy machine


def run(*command, check=True, **options):
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=BUILD_S, **options)
    assert not check or done.returncode == 0, f'{command} ended with {done.returncode}\n{done.stdout[-6000:]}'
    return done.stdout


class Podman:
    """podman with images and containers of its own, which are removed at the end."""

    def __init__(self, place):
        write(f'{place}/crun', CRUN.format(crun=shutil.which('crun')), 0o755)
        self.options = ['podman', f'--root={place}/storage', f'--runroot={place}/run', '--cgroup-manager=cgroupfs', f'--runtime={place}/crun']

    def __call__(self, *words, check=True):
        return run(*self.options, *words, check=check)

    def close(self):
        self('system', 'reset', '--force', check=False)


    def try_out(self, image, *words, text=''):
        """The output of this command in a container of the image; podman's default limits are more than a container may have here."""
        command = [*self.options, 'run', '--rm', '--interactive', '--network=none', '--ulimit=nofile=4096:4096', '--ulimit=nproc=4096:4096', image, *words]
        done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope='module')
def podman(message_queues):
    with tempfile.TemporaryDirectory(prefix='mgpu-pod-', dir='/tmp', ignore_cleanup_errors=True) as place:  # podman wants short paths
        made = Podman(place)
        yield made
        made.close()


@pytest.fixture(scope='module')
def image(podman, tmp_path_factory):
    """The image, made from a base that is made here, and of the files that git knows as they are now."""
    debian = bare_debian.debian(tmp_path_factory)
    tar = tmp_path_factory.mktemp('tar') / 'base.tar'
    run('tar', '-C', debian, '--exclude=./dev/*', '-cf', tar, '.')
    base = f'localhost/mgpu-base:{uuid.uuid4().hex[:8]}'
    podman('import', tar, base)
    tar.unlink()
    source = tmp_path_factory.mktemp('source')
    run('sh', '-c', f'cd {ROOT} && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -C {source} -xf -')
    build = ['build', '--network=host', '--isolation=chroot', f'--build-arg=BASE={base}']
    podman(*build, '--target=build', '--tag=localhost/mgpu-built', source)
    podman(*build, '--tag=localhost/mgpu-try', source)
    return 'localhost/mgpu-try'


def test_the_container_runs_jobs_of_a_user_on_simulated_gpus(podman, image):
    """The command of the image, with words of a user on its input in place of a terminal."""
    printed = podman.try_out(image, text="mgpu run -g 2 -- sh -c 'id -un; echo of $CUDA_VISIBLE_DEVICES'\nmgpu gpus\n")
    lines = printed.splitlines()
    assert 'ada' in lines and 'of 0,1' in lines, printed
    assert len([line for line in lines if 'Simulated' in line]) == 8, printed


def test_the_image_has_the_package_and_not_what_it_was_built_with(podman, image):
    printed = podman.try_out(image, 'sh', '-c', 'dpkg -l mgpu | tail -1; test ! -e /src && test ! -e /usr/bin/gcc && echo small')
    assert printed.split()[0] == 'ii' and printed.strip().endswith('small'), printed


def test_what_it_was_built_with_has_the_packages(podman, image, tmp_path_factory):
    kept = tmp_path_factory.mktemp('of-a-container') / 'debs'
    built = podman('create', 'localhost/mgpu-built', 'true').split()[-1]
    podman('cp', f'{built}:/deb', kept)
    podman('rm', built)
    assert list(kept.glob('mgpu_*.deb'))
    harness.open_folder(kept)
    bare_debian.built_packages.append(kept)
