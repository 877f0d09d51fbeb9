# SPDX-License-Identifier: MIT
"""mgpu compat: the names of mgpu-compat, the links to it, and links from when mgpu was all of these programs."""

import os
import subprocess

import pytest

import harness


def call(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_name_runs_without_a_link():
    programs = harness.programs()
    by_verb = call(f'{programs}/mgpu', 'compat', 'run', 'tgpu', '--help')
    by_word = call(f'{programs}/mgpu-compat', 'tgpu', '--help')
    assert by_verb.returncode == 0 and by_verb.stdout.startswith('usage: tgpu ')
    assert by_word.stdout == by_verb.stdout


def test_an_unknown_name_is_refused():
    programs = harness.programs()
    done = call(f'{programs}/mgpu', 'compat', 'run', 'pbsub')
    assert done.returncode == 2 and "'pbsub'" in done.stderr and 'mgpu compat list' in done.stderr
    done = call(f'{programs}/mgpu-compat', 'pbsub')
    assert done.returncode == 2 and 'mgpu compat list' in done.stderr


def test_an_old_link_to_mgpu_works_and_is_replaced(tmp_path):
    programs = os.path.realpath(harness.programs())
    os.symlink(f'{programs}/mgpu', tmp_path / 'tgpu')
    assert call(tmp_path / 'tgpu', '--help').stdout.startswith('usage: tgpu ')
    done = call(f'{programs}/mgpu', 'compat', 'install', tmp_path, 'tgpu')
    assert done.returncode == 0, done.stderr
    assert os.readlink(tmp_path / 'tgpu') == f'{programs}/mgpu-compat'


@pytest.mark.parametrize('words', [[], ['--slurm'], ['--python']], ids=' '.join)
def test_a_folder_that_is_missing_is_made(tmp_path, words):
    mgpu = f'{harness.programs()}/mgpu'
    for _ in range(2):
        done = call(mgpu, 'compat', 'install', '--force', *words, tmp_path / 'bin')
        assert done.returncode == 0 and os.listdir(tmp_path / 'bin'), done.stderr
    (tmp_path / 'file').write_text('')
    for path, said in ((tmp_path / 'none' / 'bin', 'No such file'), (tmp_path / 'file', 'Not a directory')):
        done = call(mgpu, 'compat', 'install', *words, path)
        assert done.returncode != 0 and said in done.stderr and str(path) in done.stderr, done.stderr


@pytest.mark.parametrize('is_found', [True, False])
def test_a_folder_that_no_shell_searches_is_named(tmp_path, monkeypatch, is_found):
    folder = tmp_path / 'bin'
    folder.mkdir()
    monkeypatch.setenv('PATH', f'/usr/bin:/bin:{folder if is_found else ""}')
    done = call(f'{harness.programs()}/mgpu', 'compat', 'install', folder, 'tgpu')
    assert done.returncode == 0 and (f'not in PATH: export PATH={folder}:$PATH' in done.stderr) == (not is_found), done.stderr


def test_a_file_of_another_program_stays(tmp_path):
    programs = harness.programs()
    os.symlink('/bin/true', tmp_path / 'tgpu')
    done = call(f'{programs}/mgpu', 'compat', 'install', tmp_path, 'tgpu')
    assert done.returncode == 1 and 'tgpu' in done.stderr
    assert os.readlink(tmp_path / 'tgpu') == '/bin/true'
