# SPDX-License-Identifier: MIT
"""The kit for new hardware on a machine with AMD GPUs, described by a made-up sysfs and a stand-in for ROCm's library."""

import os
import shutil

import pytest

import harness
from amd import Amd
from rocm import Rocm
from test_gpu_kit import kit, page_of, results  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.xdist_group('/tmp/mgpu-kit'),
              pytest.mark.skipif(harness.HAS_NVIDIA, reason='this machine has NVIDIA GPUs, which are looked for first')]
NAMES = 'amd,amd-jobs,amd-health,amd-scrub,amd-park'
HIP = 'lab/tests/cuda/cuda_current/libamdhip64.so.6'


@pytest.fixture
def machine(kit):  # noqa: F811
    made = Amd(kit.place)
    made.add(bus=0x83, unique_id=0xbb, used_gib=2, busy=25)
    made.add(bus=0x03, unique_id=0xaa)
    return made


def install_hip(kit, *lines, of_first='aa'):  # noqa: F811
    """HIP for the two GPUs, in another order than mgpu's."""
    shutil.copy(os.path.join(harness.build_folder(), HIP), f'{kit.place}/driver')
    with open(f'{kit.place}/driver/cuda.state', 'w', encoding='ascii') as out:
        for bus, digits in (('83', 'bb'), ('03', of_first)):
            print(f'gpu {bus} 64 00000000000000{digits}0000000000000000 AMD Stand-in', file=out)
        print('\n'.join(lines), file=out)


def test_amd_gpus_and_their_jobs_pass_and_the_report_renders(kit, machine):  # noqa: F811
    os.mkdir(f'{kit.place}/rocm')
    harness.open_folder(f'{kit.place}/rocm')
    rocm = Rocm(f'{kit.place}/rocm')
    rocm.write('gpu 0 83 0 0 0', 'gpu 0 3 0 0 0')
    install_hip(kit)
    status, checks = kit.run(*machine.arguments, *rocm.arguments, '--only', NAMES)
    assert status == 0 and {checks[name]['result'] for name in NAMES.split(',')} == {'passed'}, results(checks)
    assert checks['amd']['text'].startswith('2 GPUs (AMD Stand-in), a sample of one takes at most ')
    assert [gpu['uuid'] for gpu in checks['amd']['facts']['gpus']] == ['GPU-00000000000000aa', 'GPU-00000000000000bb']
    assert checks['amd-jobs']['text'].startswith('each of 2 GPUs is given to its job and to no other')
    assert checks['amd-health']['text'].startswith('each of 2 GPUs; the last: 100.0 and 100.0 GB/s over the bus'), checks['amd-health']
    assert checks['amd-scrub']['facts']['output']['cleared_bytes'] > 60 << 20, checks['amd-scrub']
    assert checks['amd-park']['text'].startswith('refused: ') and checks['nvml']['result'] == 'skipped'
    page = page_of(f'{kit.place}/out/report.json')
    assert page.returncode == 0 and '2 GPUs (AMD Stand-in)' in page.stdout


@pytest.mark.parametrize('lines, text', [
    (('corrupt 7',), 'GPU 0, health: exit code 1'),
    (('fail hiprtcCompileProgram 6',), 'GPU 0, health: exit code 1: hiprtcCompileProgram failed (6): Error: the stand-in'),
    (('fail cuMemAlloc_v2 2',), 'GPU 0, health: exit code 1: hipMalloc failed: hipErrorOutOfMemory (2)'),
], ids=['memory', 'translator', 'call'])
def test_an_amd_gpu_that_computes_wrongly_fails(kit, machine, lines, text):  # noqa: F811
    install_hip(kit, *lines)
    status, checks = kit.run(*machine.arguments, '--only', 'amd-health')
    assert (status, checks['amd-health']['result']) == (1, 'failed') and checks['amd-health']['text'].startswith(text), checks['amd-health']


@pytest.mark.parametrize('digits, is_filtered, text', [
    ('cc', True, 'HIP shows the job of GPU 0 no GPU: hipErrorInvalidDevice'),
    ('aa', False, 'HIP shows the job of GPU 0 (GPU-00000000000000aa) 2 GPUs, the first of them GPU-00000000000000bb'),
], ids=['none', 'all'])
def test_hip_that_shows_a_job_other_gpus_fails(kit, machine, digits, is_filtered, text):  # noqa: F811
    install_hip(kit, of_first=digits)
    if not is_filtered:
        with open(f'{kit.place}/driver/unfiltered', 'w', encoding='ascii'):
            pass
    status, checks = kit.run(*machine.arguments, '--only', 'amd-health')
    assert (status, checks['amd-health']['result'], checks['amd-health']['text']) == (1, 'failed', text), checks['amd-health']


def test_without_a_gpu_for_hip_outside_mgpu_its_checks_are_skipped(kit, machine):  # noqa: F811
    install_hip(kit, 'init 100')
    status, checks = kit.run(*machine.arguments, '--only', 'amd-health,amd-scrub')
    assert {checks[name]['result'] for name in ('amd-health', 'amd-scrub')} == {'skipped'} and status == 0, results(checks)


def test_an_amd_gpu_without_memory_fails(kit, machine):  # noqa: F811
    machine.put('devices/0000:03:00.0/mem_info_vram_total', '0\n')
    status, checks = kit.run(*machine.arguments, '--only', 'amd')
    assert (status, checks['amd']['result']) == (1, 'failed'), checks['amd']
    assert checks['amd']['text'].startswith('1 of 2 GPUs are lost')


def test_without_an_amd_gpu_its_checks_are_skipped(kit):  # noqa: F811
    status, checks = kit.run('--sysfs-root', kit.place, '--only', NAMES)
    assert status == 77 and {checks[name]['result'] for name in NAMES.split(',')} == {'skipped'}, results(checks)
    assert checks['amd-jobs']['text'] == 'there is no AMD GPU'


# What mgpu-gpu-test says of a job: whether it can open the driver, which render nodes, and its variable.
SEEN = '''#!/bin/sh
[ "$1" = nodes ] || exit 77
kfd=1; [ "$ROCR_VISIBLE_DEVICES" ] && kfd=0
own=128; [ "$ROCR_VISIBLE_DEVICES" = GPU-00000000000000aa ] && own=129
other=$((257 - own)); open_other=1; visible=$ROCR_VISIBLE_DEVICES
CHANGE
echo '{"result":"passed","nodes":[],"rocr_visible":"'$visible'","amd_nodes":[{"path":"/dev/kfd","open_errno":'$kfd'},' \
     '{"path":"/dev/dri/renderD'$own'","open_errno":'$kfd'},{"path":"/dev/dri/renderD'$other'","open_errno":'$open_other'}]}'
'''


@pytest.mark.root
@pytest.mark.parametrize('change, text', [
    ('', None), ('visible=GPU-00000000000000bb', 'has ROCR_VISIBLE_DEVICES=GPU-00000000000000bb in place of GPU-00000000000000aa'),
    ('open_other=0', 'the job of GPU 0 can open /dev/dri/renderD128'), ('[ $own = 129 ] || kfd=1', 'the job of GPU 1 cannot open /dev/kfd'),
    ('kfd=0', 'a job without GPUs can use one')], ids=['right', 'variable', 'other', 'driver', 'none'])
def test_what_a_job_of_an_amd_gpu_can_open_is_judged(kit, machine, change, text):  # noqa: F811
    with open(f'{kit.place}/bin/mgpu-gpu-test', 'w', encoding='ascii') as out:
        out.write(SEEN.replace('CHANGE', change))
    status, checks = kit.run(*machine.arguments, '--only', 'amd-jobs,doctor')
    found = checks['amd-jobs']
    if text and 'no device node is closed' in found['text']:
        pytest.skip('device nodes are not closed to jobs here')
    assert (status, found['result']) == ((1, 'failed') if text else (0, 'passed')), found
    assert found['text'].startswith(text or 'each of 2 GPUs') or text in found['text'], found
