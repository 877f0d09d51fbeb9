# SPDX-License-Identifier: MIT
"""The kit for new hardware on a GPU that is divided into MIG instances, on libraries that stand in for the driver's."""

import os
import signal
import subprocess

import pytest

import harness
from test_gpu_kit import ASKED, IS_WHOLE, KIT_S, LONG, kit, names_of_checks, results, uuid  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')
BUS, WHOLE = '3b', '00112233445566778899aabbccddeeff'
PARTS = ((9, 128, '1g.18gb', '20' + WHOLE[2:]), (10, 128, '1g.18gb', '30' + WHOLE[2:]), (1, 192, '3g.71gb', '40' + WHOLE[2:]))


def divide(kit, parts=PARTS, of_cuda=None):  # noqa: F811
    """One GPU whose instances are those of NVML, and of CUDA unless it has others."""
    kit.install_parking()
    with open(f'{kit.place}/driver/nvml.state', 'w', encoding='ascii') as out:
        print(f'gpu 0 {BUS} 256 0 0 40 50000 {uuid(WHOLE)} NVIDIA Stand-in\nmore 0 0 700000 1000 1980 2619 0 0\nmig 0 1 1', file=out)
        for instance, mib, profile, digits in parts:
            print(f'instance 0 {instance} 0 {mib} 0 {uuid(digits).replace("GPU", "MIG")} {profile}', file=out)
    with open(f'{kit.place}/driver/cuda.state', 'w', encoding='ascii') as out:
        print('version 13000', file=out)
        for _, mib, _, digits in of_cuda or parts:
            print(f'instance {BUS} {mib} {digits} NVIDIA Stand-in MIG', file=out)


def test_every_check_passes_or_is_skipped_on_a_divided_gpu(kit):  # noqa: F811
    """Most checks use the first instance: the GPU itself has no jobs."""
    divide(kit)
    more = set() if IS_WHOLE else LONG | {'podman', 'apptainer', 'park-image', 'limits', 'park-8', 'park-40', 'park-managed', 'park-refused', 'park-preempt', 'job-limit', 'job-crash', 'array', 'array-ahead'}
    status, checks = kit.run('--only', ','.join(sorted(set(names_of_checks()) - more - ASKED)))
    outcome = results(checks)
    assert status == 0, outcome
    for name in ('numbers', 'gpus', 'job-one', 'job-cancel', 'job-share', 'external', 'oom', 'mig', 'mig-profiles', 'mig-users', 'park'):
        assert outcome[name] == 'passed', checks[name]
    assert checks['mig']['text'] == '3 instances; a job on each sees that one, with its memory'
    assert checks['mig-profiles']['text'] == '2 profiles: a job that names one is given it'
    assert checks['mig-users']['facts']['neighbour_is_another_user'] is harness.IS_ROOT
    for name in ('job-order', 'pairs', 'two-users', 'nccl'):
        assert outcome[name] == 'skipped', checks[name]


@pytest.mark.parametrize('of_cuda, name, text', [
    ((PARTS[0], (10, 256, '1g.18gb', PARTS[1][3]), PARTS[2]), 'mig', 'sees 256 MiB, and the instance has 128'),
    ((PARTS[0], (10, 20, '1g.18gb', PARTS[1][3]), PARTS[2]), 'mig', 'sees 20 MiB, and the instance has 128'),
    (PARTS[:2], 'mig', 'a job with -G 3 sees 0 GPUs'),
    (((9, 256, '1g.18gb', PARTS[0][3]), *PARTS[1:]), 'mig-users', 'sees 256 MiB'),
], ids=['more', 'less', 'missing', 'users'])
def test_an_instance_that_cuda_shows_otherwise_fails(kit, of_cuda, name, text):  # noqa: F811
    divide(kit, of_cuda=of_cuda)
    status, checks = kit.run('--only', name)
    assert (status, checks[name]['result']) == (1, 'failed'), checks[name]
    assert text in checks[name]['text'], checks[name]


def test_without_two_instances_of_a_gpu_the_checks_say_so(kit):  # noqa: F811
    divide(kit, PARTS[:1])
    status, checks = kit.run('--only', 'mig,mig-users,mig-gone')
    assert status == 0 and checks['mig']['result'] == 'passed', results(checks)
    assert checks['mig-users']['text'] == 'no GPU has two MIG instances' and checks['mig-gone']['text'] == 'it needs two MIG instances'


def remove(kit, instance):  # noqa: F811
    """As nvidia-smi mig does."""
    path = f'{kit.place}/driver/nvml.state'
    with open(path, encoding='ascii') as state:
        kept = [line for line in state if instance not in line]
    with open(f'{path}.new', 'w', encoding='ascii') as out:
        out.writelines(kept)
    os.rename(f'{path}.new', path)


def kill(kit, _):  # noqa: F811
    """The job ends for another reason."""
    for pid in harness.processes(f'{kit.place}/bin/mgpu-gpu-test idle'):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize('change, status, text', [
    (remove, 0, 'does not exist any more'), (kill, 1, 'the job on the instance that was removed ended by')], ids=['removed', 'killed'])
def test_the_job_of_an_instance_that_is_removed_ends_and_the_others_run_on(kit, change, status, text):  # noqa: F811
    """The kit removes none itself: it asks for it, and waits."""
    divide(kit)
    user = harness.User('root' if harness.IS_ROOT else os.environ['USER'])
    env = dict(user.environment(), LD_LIBRARY_PATH=f'{kit.place}/driver', ASAN_OPTIONS='detect_leaks=0')
    with subprocess.Popen([f'{kit.place}/run', '-o', f'{kit.place}/out', '--only', 'mig-gone'], env=env, cwd='/', stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, **user.popen_arguments()) as run:
        asked = next((line for line in run.stdout if 'now remove MIG instance' in line), None)
        assert asked, kit.checks()['mig-gone']
        change(kit, asked.split('MIG instance ')[1].split()[0])
        run.stdout.read()
        assert run.wait(KIT_S) == status
    assert text in kit.checks()['mig-gone']['text'], kit.checks()['mig-gone']
