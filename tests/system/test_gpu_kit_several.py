# SPDX-License-Identifier: MIT
"""The kit for new hardware: several GPUs, several users, and shares under MPS."""

import os
import shutil

import pytest

import harness
from test_gpu_kit import GPUS, kit, results, some, uuid  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')
LINKED = ('peer 0 1 200000', 'peer 1 0 200000')
LINKS = ('link 0 1', 'link 1 0')
BUSY = 'the machine is busy'


def say(kit, name, *lines):  # noqa: F811
    with open(f'{kit.place}/driver/{name}.state', 'a', encoding='ascii') as out:
        print('\n'.join(lines), file=out)


def test_two_gpus_with_a_link_nccl_and_two_users_pass(kit):  # noqa: F811
    kit.install_parking(cuda=LINKED)
    say(kit, 'nvml', *LINKS)
    status, checks = kit.run('--only', 'job-order,pairs,two-users,nccl,park-nccl,gpu-lost')
    assert status == 0, results(checks)
    assert checks['pairs']['text'] == '2 pairs with a link (from 200.0 GB/s), 0 without (up to 0.0 GB/s)'
    assert checks['nccl']['facts']['output']['gpus'] == 2 and checks['nccl']['facts']['output']['wrong_words'] == 0
    assert checks['park-nccl']['text'] == 'parked and resumed; its sums were right'
    assert checks['two-users']['result'] == ('passed' if harness.IS_ROOT else 'skipped')
    lost = checks['gpu-lost']
    assert lost['result'] == 'passed' or lost['text'].startswith((BUSY, 'a thread of the helper cannot be')), lost


@pytest.mark.parametrize('nvml, cuda, nccl, name, text', some([
    (LINKS, (), (), 'pairs', 'mgpu shows a link from GPU 0 to 1, and CUDA has no access to its memory'),
    ((), (), ('wrong 5',), 'nccl', 'the job ended as failed'),
    ((), (), ('fail ncclAllReduce 1',), 'nccl', 'ncclAllReduce failed: unhandled cuda error (1)'),
    ((), (), ('wrong 5',), 'park-nccl', 'the job ended as failed'),
], every=2))
def test_what_is_wrong_between_gpus_fails(kit, nvml, cuda, nccl, name, text):  # noqa: F811
    kit.install_parking(cuda=cuda)
    say(kit, 'nvml', *nvml)
    say(kit, 'nccl', *nccl)
    status, checks = kit.run('--only', name)
    assert (status, checks[name]['result']) == (1, 'failed'), checks[name]
    assert text in checks[name]['text'], checks[name]


def test_what_nccl_keeps_from_being_saved_goes_on_with_its_sums_right(kit):  # noqa: F811
    kit.install_parking('fail save 801')
    status, checks = kit.run('--only', 'park-nccl')
    assert (status, checks['park-nccl']['result']) == (0, 'passed'), checks['park-nccl']
    assert 'CUDA_ERROR_NOT_SUPPORTED; its sums were right' in checks['park-nccl']['text']


def test_without_nccl_or_a_second_gpu_the_checks_are_skipped_with_the_reason(kit):  # noqa: F811
    kit.install(of_cuda=GPUS)
    os.unlink(f'{kit.place}/driver/libnccl.so.2')
    with open(f'{kit.place}/driver/nvml.state', 'w', encoding='ascii') as out:
        print(f'gpu 0 {GPUS[0][0]} 256 0 0 40 50000 {uuid(GPUS[0][1])} NVIDIA Stand-in', file=out)
    with open(f'{kit.place}/driver/cuda.state', 'w', encoding='ascii') as out:
        print(f'gpu {GPUS[0][0]} 256 {GPUS[0][1]} NVIDIA Stand-in', file=out)
    status, checks = kit.run('--only', 'job-order,pairs,two-users,nccl')
    assert status == 0 and {checks[name]['text'] for name in ('job-order', 'pairs', 'two-users', 'nccl')} == {'there is one GPU'}


@pytest.fixture
def mps(kit):  # noqa: F811
    """The stand-in for MPS where the kit finds it."""
    folder = f'{kit.place}/path'
    os.mkdir(folder)
    shutil.copy(f'{harness.ROOT}/tests/standin/nvidia-cuda-mps-control', folder)
    os.chmod(f'{folder}/nvidia-cuda-mps-control', 0o755)


@pytest.mark.root
def test_a_share_under_mps_has_its_cap_and_its_neighbour_does_not_notice(kit, mps):  # noqa: F811
    kit.install_parking()
    status, checks = kit.run('--only', 'mps,park-mps')
    assert (status, checks['mps']['result'], checks['park-mps']['result']) == (0, 'passed', 'passed'), results(checks)
    assert 'of a share of 64M were given, 128M were refused' in checks['mps']['text']
    assert checks['mps']['facts']['neighbour_is_another_user'] is True
    assert 'cannot lock process' in checks['park-mps']['text'] and 'CUDA_ERROR_NOT_SUPPORTED' in checks['park-mps']['text']
