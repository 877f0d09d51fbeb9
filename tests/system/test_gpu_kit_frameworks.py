# SPDX-License-Identifier: MIT
"""The kit for new hardware: training programs that are parked. In place of python3 with a framework there is a program
that compiles what it is given, and takes its steps with the stand-in for CUDA, which blocks it while it is parked."""

import os

import pytest

from test_gpu_kit import kit, results, some  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')

PYTHON = '''#!/usr/bin/python3
import ctypes, os, sys, time
if sys.argv[1] == '-c':
    print('9.9')
    sys.exit('MISSING' != '' and 'MISSING' in sys.argv[2])
with open(sys.argv[1]) as source:
    compile(source.read(), sys.argv[1], 'exec')
cuda = ctypes.CDLL('libcuda.so.1')
context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(16 << 20)) == 0
for step in range(1, 201):
    begin = time.monotonic()
    cuda.cuCtxSynchronize()
    time.sleep(0.01)
    has_waited = time.monotonic() - begin > 0.5
    if step % 10 == 0 or has_waited and ROTS:
        print('step', step, 'loss', float(step).hex(), flush=True)
'''


def install(kit, *rules, is_rotten=False, missing=''):  # noqa: F811
    kit.install_parking(*rules)
    os.mkdir(f'{kit.place}/path')
    with open(f'{kit.place}/path/python3', 'w', encoding='ascii') as out:
        out.write(PYTHON.replace('MISSING', missing).replace('ROTS', str(is_rotten)))
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
    (('delay restore 1500',), True, '', 'failed', 'its losses are not those of the same program that was not parked'),
    (('fail save 801',), False, '', 'passed', 'CUDA_ERROR_NOT_SUPPORTED; its losses are equal bit for bit'),
    ((), False, 'import jax', 'skipped', 'there is no python3 with a JAX that sees a GPU'),
], ids=['rot', 'refused', 'missing'])
def test_a_training_that_differs_fails_and_one_that_is_refused_goes_on(kit, rules, is_rotten, missing, result, text):  # noqa: F811
    install(kit, *rules, is_rotten=is_rotten, missing=missing)
    status, checks = kit.run('--only', 'park-jax')
    assert (status, checks['park-jax']['result']) == (int(result == 'failed'), result), checks['park-jax']
    assert text in checks['park-jax']['text'], checks['park-jax']
