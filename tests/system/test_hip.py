# SPDX-License-Identifier: MIT
"""mgpu-gpu-test with HIP as Debian has it. No AMD GPU is needed to translate programs for one."""

import json
import os
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.real, pytest.mark.skipif(harness.HAS_NVIDIA, reason='this machine has NVIDIA GPUs, which are looked for first')]
LIBRARY = '/usr/lib/x86_64-linux-gnu/libamdhip64.so.5'


@pytest.fixture(autouse=True)
def needs_hip():
    if not os.path.exists(LIBRARY):
        pytest.skip(f'{LIBRARY} is not here')


def run(*arguments):
    """(exit status, the last line of its output as JSON)"""
    done = subprocess.run([f'{harness.build_folder()}/mgpu-gpu-test', *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={'PATH': '/usr/bin:/bin', 'ASAN_OPTIONS': 'detect_leaks=0'}, timeout=harness.DEADLINE_S, check=False)
    assert not harness.SANITIZER.search(done.stderr), done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize('arch', ['gfx900', 'gfx908', 'gfx90a', 'gfx1030'])
def test_the_programs_are_translated_for_gpus_of_each_generation(arch):
    status, said = run('compile', '--arch', arch)
    assert (status, said['result']) == (0, 'passed') and said['bytes'] > 4096, said


def test_without_a_gpu_the_test_is_skipped_with_hips_reason():
    if os.path.exists('/dev/kfd'):
        pytest.skip('this machine has an AMD GPU')
    status, said = run('health')
    assert (status, said['result']) == (77, 'skipped') and said['hip_version'] > 50000000, said
    assert said['error'] in ('hipErrorNoDevice', 'hipErrorInvalidDevice'), said


def test_a_library_that_is_something_else_is_refused_with_what_it_lacks(tmp_path):
    other = shutil.copy('/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1', tmp_path)
    status, said = run('list', '--hip-library', other)
    assert status == 77 and said['error'] == 'libamdhip64.so has no hipInit', said
