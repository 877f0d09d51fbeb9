# SPDX-License-Identifier: MIT
"""What `make run` and `make install` give: the demo runs to its end, and an installed tree works from its place."""

import os
import subprocess

import pytest

import harness

BUILD = os.path.join(harness.ROOT, 'build')
needs_plain_build = pytest.mark.skipif(not os.path.exists(f'{BUILD}/mgpud'), reason='build/ is not there: run make')


@needs_plain_build
def test_the_demo_runs_within_its_time_and_leaves_nothing():
    before = set(os.listdir('/tmp'))
    done = subprocess.run([f'{harness.ROOT}/examples/demo', BUILD], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=90, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    for words in ('CUDA_VISIBLE_DEVICES=', 'hello from GPU', 'Done.'):
        assert words in done.stdout, done.stdout
    assert ':converged' in done.stdout or 'without the training' in done.stdout, done.stdout
    left = [name for name in set(os.listdir('/tmp')) - before if name.startswith('mgpu-demo-')]
    assert not left and not harness.processes('mgpu-demo-')


@needs_plain_build
def test_an_installed_tree_works(make_instance, tmp_path, someone):
    done = subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', str(tmp_path)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [os.path.join(folder, 'mgpud') for folder, _, names in os.walk(tmp_path) if 'mgpud' in names]
    assert len(found) == 1, found
    harness.open_folder(tmp_path)
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o755)
    instance = make_instance(start=False)
    instance.command[0] = found[0]
    instance.start()
    assert instance.run_job(['echo', 'installed'])[1] == 'installed\n'
