# SPDX-License-Identifier: MIT
"""What `make run` and `make install` give: the demo runs to its end, and an installed tree works from its place."""

import os
import re
import subprocess

import pytest

import harness
from test_training import has_torch

BUILD = os.path.join(harness.ROOT, 'build')
needs_plain_build = pytest.mark.skipif(not os.path.exists(f'{BUILD}/mgpud'), reason='build/ is not there: run make')


DEMO_S = 120  # of all its jobs, on a busy machine


def demo(*words, path='/usr/sbin:/usr/bin:/sbin:/bin', prefix=()):
    """Its exit status and what it said; it leaves nothing."""
    build = BUILD if os.path.exists(f'{BUILD}/mgpud') else harness.build_folder()
    before = set(os.listdir('/tmp'))
    done = subprocess.run([*prefix, f'{harness.ROOT}/examples/demo', *words, build], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEMO_S, check=False, env={**os.environ, 'PATH': path, 'ASAN_OPTIONS': 'detect_leaks=0'})
    left = [name for name in set(os.listdir('/tmp')) - before if name.startswith('mgpu-demo-')]
    mine = [name for name in left if name in done.stdout]
    assert not mine and not [pid for name in mine for pid in harness.processes(name)], left
    return done.returncode, done.stdout + done.stderr


def test_the_demo_runs_within_its_time_and_leaves_nothing():
    status, said = demo()
    assert status == 0, said[-8000:]
    for words in ('CUDA_VISIBLE_DEVICES=', 'hello from GPU', 'Done.'):
        assert words in said, said
    assert 'make deb && apt install ./dist/mgpu_*.deb' in said[said.index('Done.'):], 'the next step'
    assert not re.search(r'timeline .*limit none|requested +\d+ GPUs, priority', said), 'a job has no time limit'


def write_torchrun(place, text):
    with open(f'{place}/torchrun', 'w', encoding='ascii') as out:
        out.write(f'#!/bin/sh\n{text}\n')
    os.chmod(f'{place}/torchrun', 0o755)
    return f'{place}:/usr/sbin:/usr/bin:/sbin:/bin'


def test_a_demo_that_fails_shows_what_its_failed_job_has_printed_and_why_it_ended(place):
    status, said = demo('--training', path=write_torchrun(place, 'echo the reason is here; exit 7'))
    assert status == 7, said
    assert 'the demo failed' in said.lower() and 'the reason is here' in said and 'failed: exit 7' in said, said


def test_a_demo_whose_job_hangs_ends_by_the_limit_of_the_job_and_says_so(place):
    shortened = f'{place}/demo'
    with open(f'{harness.ROOT}/examples/demo', encoding='utf-8') as source, open(shortened, 'w', encoding='utf-8') as out:
        text = source.read().replace('RUN_TIME=2m', 'RUN_TIME=4s').replace('$(dirname "$0")', f'{harness.ROOT}/examples')
        out.write(text)
    os.chmod(shortened, 0o755)
    write_torchrun(place, 'echo it hangs here; exec sleep 1000')
    build = BUILD if os.path.exists(f'{BUILD}/mgpud') else harness.build_folder()
    done = subprocess.run([shortened, '--training', build], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEMO_S,
                          check=False, env={**os.environ, 'PATH': f'{place}:/usr/sbin:/usr/bin:/sbin:/bin', 'ASAN_OPTIONS': 'detect_leaks=0'})
    said = done.stdout + done.stderr
    assert done.returncode == 124 and 'it hangs here' in said and 'reached its time limit' in said, said


@pytest.mark.root
def test_the_training_of_the_demo_needs_no_host_name_that_can_be_looked_up():
    harness.require_namespaces('--uts')
    if not has_torch():
        pytest.skip('python3-torch is not installed')
    status, said = demo('--training', prefix=('unshare', '--uts', 'sh', '-c', 'hostname cannot-be-looked-up.invalid && exec "$@"', 'sh'))
    assert status == 0 and ':converged' in said, said[-8000:]


RECORD = '#!/bin/sh\necho "${0##*/} $*" >> "$RECORDED"\n[ "$1" != setup ] || { mkdir -p "$2" && touch "$2/build.ninja"; }\n'


def test_what_make_run_has_built_quickly_is_optimized_by_the_next_make_and_never_the_other_way_round(tmp_path):
    for name in ('meson', 'ninja'):
        (tmp_path / name).write_text(RECORD, encoding='ascii')
        (tmp_path / name).chmod(0o755)
    record, folder = tmp_path / 'record', tmp_path / 'folder'

    def make(target):
        record.write_text('', encoding='ascii')
        subprocess.run(['make', '-C', harness.ROOT, target, f'BUILD={folder}'], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                       env={**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'RECORDED': str(record)})
        return record.read_text(encoding='ascii').splitlines()

    first = make('programs')
    assert '-Doptimization=0' in first[0] and first[1:] == [f'ninja -C {folder} programs'], first
    assert make('programs') == [f'ninja -C {folder} programs']
    assert make('all') == [f'meson configure {folder} --buildtype=debugoptimized -Dtests=false', f'ninja -C {folder}']
    assert make('all') == [f'ninja -C {folder}'] and make('programs') == [f'ninja -C {folder} programs'], 'an optimized build stays one'


def test_no_benchmark_measures_what_make_run_has_built_quickly(tmp_path):
    (tmp_path / 'quick').touch()
    done = subprocess.run([f'{harness.ROOT}/bench/top'], env={**os.environ, 'MGPU_BUILD': str(tmp_path)}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'is not optimized' in done.stderr and 'run make first' in done.stderr, done


@needs_plain_build
def test_an_installed_tree_works(make_instance, tmp_path, someone):
    done = subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', str(tmp_path)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [os.path.join(folder, 'mgpud') for folder, _, names in os.walk(tmp_path) if 'mgpud' in names]
    assert len(found) == 1, found
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o755)
    instance = make_instance(start=False)
    instance.command[0] = found[0]
    instance.start()
    assert instance.run_job(['echo', 'installed'])[1] == 'installed\n'
