# SPDX-License-Identifier: MIT
"""The kit for new hardware: parking in the ways in which users meet it, limits, arrays, early starts and closed nodes."""

import os
import subprocess
import sys

import pytest

import harness
from test_gpu_kit import IS_WHOLE, KIT_S, kit, results, some  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')
WAYS = ('park-two', 'park-refused', 'park-crash', 'park-cancel', 'park-preempt')


def test_a_driver_that_parks_passes_every_way_of_it(kit):  # noqa: F811
    kit.install_parking()
    status, checks = kit.run('--only', ','.join([*WAYS, *(('park-auto',) if IS_WHOLE else ())]))
    assert status == 0 and {checks[name]['result'] for name in WAYS} == {'passed'}, results(checks)
    refused = checks['park-refused']['facts']
    assert all(refused[kind] for kind in ('ended', 'queued', 'forbidden')), refused
    assert checks['park-preempt']['facts']['guest_ms'] < 10000
    if IS_WHOLE:
        assert checks['park-auto']['result'] == 'passed', checks['park-auto']


@pytest.mark.parametrize('rules, cuda, name, result, text', some([
    ((), ('rot 5',), 'park-two', 'failed', 'the job ended as'),
    ((), ('rot 5',), 'park-crash', 'failed', 'the job ended as'),
    ((), ('rot 5',), 'park-preempt', 'failed', 'the job ended as'),
    (('break restore 999',), (), 'park-crash', 'failed', 'the job'),
    (('fail lock 801',), (), 'park-two', 'skipped', 'CUDA_ERROR_NOT_SUPPORTED'),
    (('fail lock 801',), (), 'park-cancel', 'skipped', 'CUDA_ERROR_NOT_SUPPORTED'),
], every=2))
def test_a_way_of_parking_that_does_not_work_is_told(kit, rules, cuda, name, result, text):  # noqa: F811
    kit.install_parking(*rules, cuda=cuda)
    status, checks = kit.run('-t', 60, '--only', name)
    assert (status, checks[name]['result']) == (int(result == 'failed'), result), checks[name]
    assert text in checks[name]['text'], checks[name]


def test_limits_an_array_and_an_early_start_pass_or_say_what_is_missing(kit):  # noqa: F811
    kit.install()
    status, checks = kit.run('--only', 'limits,array,array-ahead,early')
    assert status == 0 and checks['array']['result'] == checks['array-ahead']['result'] == 'passed', results(checks)
    assert checks['array']['facts']['elements']['done'] == 12
    assert 0 < checks['array-ahead']['facts']['behind'] < 12, checks['array-ahead']
    for name in ('limits', 'early'):
        assert checks[name]['result'] == 'passed' or len(checks[name]['text']) > 20, checks[name]
    if harness.IS_ROOT:
        assert set(checks['limits']['facts']) >= {'memory', 'cpu', 'pids'}, 'what doctor says of each'


NODES = """
set -e
for folder in /etc/modprobe.d /etc/udev/rules.d; do mkdir -p $folder; mount -t tmpfs none $folder; done
mkdir $1/dev
mount -t tmpfs none $1/dev
for name in null zero full random urandom tty; do touch $1/dev/$name; mount --bind /dev/$name $1/dev/$name; done
mkdir -m 1777 $1/dev/shm; mkdir $1/dev/pts; mount --bind /dev/pts $1/dev/pts; ln -s /proc/self/fd $1/dev/fd; ln -s pts/ptmx $1/dev/ptmx
for node in "nvidia0 0" "nvidia1 1" "nvidiactl 255"; do set -- "$1" $node; mknod -m 666 $1/dev/$2 c 195 $3; done
mount --move $1/dev /dev
$1/run -o $1/out --only lock
echo "left: $(stat -c %a /dev/nvidia0 /dev/nvidiactl | tr '\\n' ' ') $(ls /etc/modprobe.d /etc/udev/rules.d | grep mgpu)"
"""


@pytest.mark.root
def test_closed_nodes_are_opened_again_and_the_machine_is_as_before(kit):  # noqa: F811
    harness.require_namespaces()
    kit.install()
    done = subprocess.run(['unshare', '-m', 'sh', '-c', NODES, 'sh', kit.place], check=False, timeout=KIT_S, text=True,
                          capture_output=True, env={'PATH': os.environ['PATH'], 'LD_LIBRARY_PATH': f'{kit.place}/driver',
                                                    'ASAN_OPTIONS': 'detect_leaks=0'})
    sys.stdout.write(done.stdout + done.stderr)
    checks = kit.checks()
    if checks['lock']['result'] == 'skipped' and 'can open it' in checks['lock']['text']:
        pytest.skip('no node of the driver can be made here')
    assert (done.returncode, checks['lock']['result']) == (0, 'passed'), checks['lock']
    facts = checks['lock']['facts']
    assert facts['before'] == facts['after'] != facts['locked'], facts
    assert 'left: 666 666  \n' in done.stdout, done.stdout
