# SPDX-License-Identifier: MIT
"""The kit for new hardware: training programs that are parked. In place of python3 with a framework there is a program
that compiles what it is given, and takes its steps with the stand-in for CUDA, which blocks it while it is parked."""

import os

import pytest

from test_gpu_kit import kit, results, some  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')

# Each check runs it twice, and parks it the second time: then it waits at a step until the driver was asked for the end of that.
PYTHON = '''#!/usr/bin/python3
import ctypes, os, sys, time
if sys.argv[1] == '-c':
    print('9.9')
    sys.exit('MISSING' != '' and 'MISSING' in sys.argv[2])
with open(sys.argv[1]) as source:
    compile(source.read(), sys.argv[1], 'exec')
folder, was_control = 'DRIVER', os.path.exists(sys.argv[1] + '.control')
open(sys.argv[1] + '.control', 'w').close()
cuda = ctypes.CDLL('libcuda.so.1')
context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(16 << 20)) == 0

def was_asked(function):
    with open(folder + '/log', 'a+') as log:
        log.seek(0)
        return any(line.startswith(function + ' %d ' % os.getpid()) for line in log)

def was_restored():
    with open(folder + '/%d' % os.getpid(), 'rb') as state:
        return state.read(2)[1:] == b'r'

for step in range(1, 201):
    cuda.cuCtxSynchronize()
    if step % 10 == 0:
        print('step', step, 'loss', float(step + (ROTS and was_restored()) / 2).hex(), flush=True)
    give_up = time.monotonic() + 120
    while step == 150 and was_control and not was_asked('LAST'):
        assert time.monotonic() < give_up, 'nobody parked it'
        time.sleep(0.01)
'''
LAST = 'unlock'  # of a park and its end, and of one that the driver refuses to save


def install(kit, *rules, is_rotten=False, missing=''):  # noqa: F811
    kit.install_parking(*rules)
    os.mkdir(f'{kit.place}/path')
    text = PYTHON
    for word, value in (('MISSING', missing), ('ROTS', str(is_rotten)), ('LAST', LAST), ('DRIVER', f'{kit.place}/driver/cuda.d')):
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
