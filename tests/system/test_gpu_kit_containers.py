# SPDX-License-Identifier: MIT
"""The kit for new hardware: jobs in containers, of podman itself where it is installed, and of programs in its place."""

import os
import shutil

import pytest

import harness
from test_gpu_kit import kit, results  # noqa: F401  (a fixture)
from test_podman import CRUN, MISSING, give_ids, message_queues, write  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')
NO_PODMAN = '#!/bin/sh\n[ "$1" = --version ] && { echo podman version 9; exit 0; }\necho "Error: cannot clone: Operation not permitted" >&2\nexit 125\n'
# Runs the command outside of any container; what it makes is no image.
APPTAINER = '#!/bin/sh\n[ "$1" = --version ] && { echo apptainer version 9; exit 0; }\nwhile [ "$1" != -- ]; do case $1 in /*/root) shift; exec "$@";; esac; shift; done\nshift 2\nexec "$@"\n'


def install(kit, **programs):  # noqa: F811
    """Programs in the kit's PATH, before those of the machine."""
    os.mkdir(f'{kit.place}/path')
    for name, text in programs.items():
        write(f'{kit.place}/path/{name}', text, 0o755)


@pytest.mark.real
@pytest.mark.root
@pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)}: not installed: tools/install-packages real')
def test_a_job_in_a_container_of_podman_itself_has_its_gpu(kit, ana, message_queues, monkeypatch):  # noqa: F811
    kit.install()
    write(f'{kit.place}/crun', CRUN.format(crun=shutil.which('crun')), 0o755)
    write(f'{kit.place}/containers.conf', '[engine]\nruntime = "crun"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
                                          f'[engine.runtimes]\ncrun = ["{kit.place}/crun"]\n')
    monkeypatch.setattr(harness.User, 'environment', with_variable(harness.User.environment, f'{kit.place}/containers.conf'))
    give_ids(ana)
    status, checks = kit.run('--only', 'podman', user=ana)
    found = checks['podman']
    assert (status, found['result']) == (0, 'passed'), found
    assert found['facts']['cuda']['gpus'][0]['number'] == 0 and found['facts']['nvml']['gpus'], found['facts']
    assert found['facts']['driver'] == f'{kit.place}/driver:{kit.place}/driver:ro'


def with_variable(environment, path):
    return lambda user: dict(environment(user), CONTAINERS_CONF=path)


def test_a_runtime_that_is_missing_or_starts_no_container_is_told(kit):  # noqa: F811
    kit.install_parking()
    install(kit, podman=NO_PODMAN)
    status, checks = kit.run('--only', 'podman,apptainer,park-image')
    assert status == 0, results(checks)
    assert checks['podman']['text'] == 'podman makes no image: Error: cannot clone: Operation not permitted'
    assert checks['apptainer']['text'] == checks['park-image']['text'] == 'apptainer is not installed'


@pytest.mark.skipif(bool(shutil.which('apptainer')), reason='this machine has an apptainer of its own')
def test_a_job_in_a_container_of_apptainer_has_its_gpu_and_is_parked(kit):  # noqa: F811
    kit.install_parking()
    install(kit, apptainer=APPTAINER, podman=NO_PODMAN)
    status, checks = kit.run('--only', 'apptainer,park-image')
    assert status == 0 and checks['apptainer']['result'] == 'passed', results(checks)
    assert checks['park-image']['text'] == 'parked and resumed; its memory was correct', checks['park-image']


@pytest.mark.parametrize('words, text', [
    ('unset CUDA_VISIBLE_DEVICES', 'CUDA has 2 GPUs in the container of a job with one'),
    ('export CUDA_VISIBLE_DEVICES=1', 'CUDA has GPU-10112233'),
    ('export CUDA_VISIBLE_DEVICES=', 'list in the container ended as failed'),
], ids=['all', 'another', 'none'])
def test_a_container_with_other_gpus_than_its_job_fails(kit, words, text):  # noqa: F811
    kit.install()
    install(kit, apptainer=APPTAINER.replace('shift 2\n', f'shift 2\n{words}\n'))
    status, checks = kit.run('--only', 'apptainer')
    assert (status, checks['apptainer']['result']) == (1, 'failed'), checks['apptainer']
    assert text in checks['apptainer']['text'], checks['apptainer']
