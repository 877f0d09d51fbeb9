# SPDX-License-Identifier: MIT
"""The kit for new hardware: training programs that are parked. In place of python3 with a framework there is a program
that compiles what it is given, and takes its steps with the stand-in for CUDA, which blocks it while it is parked."""

import os

import pytest

from test_gpu_kit import kit, results, some  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')

# Each check runs it twice, and parks it the second time: then it waits at a step until mgpud knows the outcome, which is
# after the driver does.
PYTHON = '''#!/usr/bin/python3
import ctypes, json, os, subprocess, sys, time
if sys.argv[1] == '-c':
    print('9.9')
    sys.exit('MISSING' != '' and 'MISSING' in sys.argv[2])
with open(sys.argv[1]) as source:
    compile(source.read(), sys.argv[1], 'exec')
was_control = os.path.exists(sys.argv[1] + '.control')
open(sys.argv[1] + '.control', 'w').close()
cuda = ctypes.CDLL('libcuda.so.1')
context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(16 << 20)) == 0

def is_over():
    shown = subprocess.run(['CLIENT', 'show', os.environ['MGPU_JOB_ID'], '--json'], stdout=subprocess.PIPE, check=True).stdout
    return any(event['type'] == 'unparked' for event in json.loads(shown)['events'])

def was_restored():
    with open('DRIVER/%d' % os.getpid(), 'rb') as state:
        return state.read(2)[1:] == b'r'

for step in range(1, 201):
    cuda.cuCtxSynchronize()
    if step % 10 == 0:
        print('step', step, 'loss', float(step + (ROTS and was_restored()) / 2).hex(), flush=True)
    give_up = time.monotonic() + 120
    while step == 150 and was_control and not is_over():
        assert time.monotonic() < give_up, 'nobody parked it'
        time.sleep(0.1)
'''


def install(kit, *rules, is_rotten=False, missing=''):  # noqa: F811
    kit.install_parking(*rules)
    os.mkdir(f'{kit.place}/path')
    text = PYTHON
    for word, value in (('MISSING', missing), ('ROTS', str(is_rotten)), ('DRIVER', f'{kit.place}/driver/cuda.d'),
                       ('CLIENT', f'{kit.place}/bin/mgpu')):
        text = text.replace(word, value)
    with open(f'{kit.place}/path/python3', 'w', encoding='ascii') as out:
        out.write(text)
    os.chmod(f'{kit.place}/path/python3', 0o755)


def test_trainings_that_are_parked_print_the_same_losses(kit):  # noqa: F811
    install(kit)
    names = some(['park-torch', 'park-jax'], every=1)
    status, checks = kit.run('--only', ','.join(names))
    assert status == 0, results(checks)
    for name in names:
        assert checks[name]['text'] == 'parked and resumed; its losses are equal bit for bit', checks[name]
        assert checks[name]['facts']['version'] == '9.9'


@pytest.mark.parametrize('rules, is_rotten, missing, result, text', [
    ((), True, '', 'failed', 'its losses are not those of the same program that was not parked'),
    (('fail save 801',), False, '', 'passed', 'CUDA_ERROR_NOT_SUPPORTED; its losses are equal bit for bit'),
    ((), False, 'import jax', 'skipped', 'there is no python3 with a JAX that sees a GPU'),
], ids=['rot', 'refused', 'missing'])
def test_a_training_that_differs_fails_and_one_that_is_refused_goes_on(kit, rules, is_rotten, missing, result, text):  # noqa: F811
    install(kit, *rules, is_rotten=is_rotten, missing=missing)
    status, checks = kit.run('--only', 'park-jax')
    assert (status, checks['park-jax']['result']) == (int(result == 'failed'), result), checks['park-jax']
    assert text in checks['park-jax']['text'], checks['park-jax']
