# SPDX-License-Identifier: MIT
"""What `make release` leaves: the tarball that needs no installation, on a machine without its libraries, and the wheel in a virtual environment."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import build_cache

ROOT = pathlib.Path(__file__).parents[2]
BUILD_S = 1800  # on a busy machine
VERSION = re.search(r"version: '(.*)'", (ROOT / 'meson.build').read_text()).group(1)
PYTHON = '/usr/bin/python3'
BUILD = ROOT / 'build-kit'  # kept: that of `make gpu-kit` and `make release`


def can_make_wheels():
    return subprocess.run([PYTHON, '-c', 'import setuptools, pip, wheel, venv, ensurepip'], capture_output=True, check=False).returncode == 0


def run(*command, **options):
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=BUILD_S, **options)
    assert done.returncode == 0, f'{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}'
    return done.stdout


@pytest.mark.real
@pytest.mark.root
def test_the_tarball_runs_where_its_libraries_are_missing(tmp_path, someone):
    place = pathlib.Path(shutil.copytree(tmp_path, f'/var/tmp/mgpu-release-{os.getpid()}'))
    try:
        tarball = run(ROOT / 'tools' / 'portable', place, BUILD, env={**os.environ, **build_cache.variables('gcc')}).strip().split('\n')[-1]
        assert os.path.basename(tarball) == f'mgpu-{VERSION}-linux-{os.uname().machine}.tar.gz'
        run('tar', '-C', place, '-xf', tarball)
        os.chmod(place, 0o777)
        folder = tarball[:-len('.tar.gz')]
        libraries = os.listdir(f'{folder}/lib')
        assert 'libc.so.6' not in libraries and any(name.startswith('libevent') for name in libraries)
        # Those of this machine are hidden.
        hidden = [line.split()[2] for program in os.listdir(f'{folder}/bin') for line in run('ldd', BUILD / program).splitlines()
                  if len(line.split()) > 2 and line.split()[0] in libraries]
        script = '; '.join([*(f'mount --bind /dev/null {path}' for path in sorted(set(hidden))),
                            f'exec setpriv --reuid {someone.uid} --regid {someone.gid} --clear-groups sh -ec "$1"'])
        user = f'''cd {folder}; export HOME={place}/home MGPU_SOCKET={place}/run/mgpud.sock; mkdir -p $HOME
            bin/mgpud --gpus sim:2x24G --run-dir {place}/run --state-dir {place}/state --listen none --detach 2>/dev/null
            bin/mgpu run -q -g 1 -- echo from a job; bin/mgpu version
            bin/mgpud --stop --run-dir {place}/run'''
        out = run('unshare', '-m', 'sh', '-ec', script, 'sh', user)
        assert re.match(rf'from a job\nmgpu +{re.escape(VERSION)}\n', out), out
        for unit in os.listdir(f'{folder}/share/systemd'):
            text = pathlib.Path(f'{folder}/share/systemd/{unit}').read_text()
            assert not re.search(r'@\w+@', text), unit
            for program in re.findall(r'^ExecStart=(/opt/mgpu/\S+)', text, re.M):
                assert os.path.exists(program.replace('/opt/mgpu', folder)), program
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.real
@pytest.mark.skipif(not can_make_wheels(), reason='python3-pip, -setuptools, -wheel or -venv: not installed: tools/install-packages real')
def test_the_wheel_installs_into_a_virtual_environment_and_submits(box, tmp_path):
    wheel = run(ROOT / 'tools' / 'wheel', tmp_path).strip()
    digest = hashlib.sha256(pathlib.Path(wheel).read_bytes()).hexdigest()
    os.unlink(wheel)
    assert hashlib.sha256(pathlib.Path(run(ROOT / 'tools' / 'wheel', tmp_path).strip()).read_bytes()).hexdigest() == digest
    run(PYTHON, '-m', 'venv', tmp_path / 'venv')
    python = tmp_path / 'venv' / 'bin' / 'python'
    run(python, '-m', 'pip', 'install', '--quiet', '--no-index', wheel)
    program = 'import mgpu; print(mgpu.__version__, mgpu.submit("echo x", gpus=0).wait().state, mgpu.__file__)'
    out = run(python, '-c', program, cwd='/', env=dict(box.client.environment(), MGPU_SOCKET=box.socket), **box.client.popen_arguments())
    version, state, path = out.split()
    assert (version, state) == (VERSION, 'done') and path.startswith(str(tmp_path / 'venv')), out


def test_every_file_of_a_release_is_documented():
    text = (ROOT / 'docs' / 'install.md').read_text()
    for name in ('mgpu_VERSION', 'mgpu-agent_VERSION', 'python3-mgpu_VERSION', 'mgpu-doc_VERSION', 'mgpu-VERSION-linux', '.whl', 'mgpu-VERSION.tar.gz',
                 'SHA256SUMS'):
        assert name in text, name
