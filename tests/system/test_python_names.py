# SPDX-License-Identifier: MIT
"""mgpu compat install --python: what people type who know another scheduler by its Python files."""

import os
import pathlib
import signal
import subprocess

import pytest

import harness

PYTHON = '/usr/bin/python3'
NAMES = {'src/mgpu_scheduler_server.py': 'mgpu_scheduler_server', 'src/mgpu_srun.py': 'mgpu_srun', 'src/mgpu_queue.py': 'mgpu_queue',
         'src/mgpu_cancel.py': 'mgpu_cancel', 'src/mgpu_simple_master.py': 'mgpu_simple_master', 'src/mgpu_simple_node.py': 'mgpu_simple_node',
         'src/mgpu_simple_client.py': 'mgpu_simple_client', 'scheduler.py': 'scheduler', 'run_server.py': 'run_server', 'tui.py': 'tui',
         'srun.py': 'srun', 'tgpu.py': 'tgpu'}


@pytest.fixture(scope='module')
def folder(shared_box, tmp_path_factory):
    place = tmp_path_factory.mktemp('names')
    harness.open_folder(place)
    os.chown(place, shared_box.client.uid, shared_box.client.gid)
    done = shared_box.mgpu('compat', 'install', '--python', place / 'scheduler')
    assert done.code == 0 and 'files in' in done.err, done
    return place / 'scheduler'


def spawn(box, folder, *words, **options):
    environment = dict(box.client.environment(), MGPU_SOCKET=box.socket, PYTHONDONTWRITEBYTECODE='1')
    return subprocess.Popen([PYTHON, *map(str, words)], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **{'stdin': subprocess.DEVNULL, **options}, **box.client.popen_arguments())


def type_line(box, folder, *words, given=None, timeout_s=harness.DEADLINE_S):
    process = spawn(box, folder, *words, **({'stdin': subprocess.PIPE} if given is not None else {}))
    out, err = process.communicate(given, timeout=timeout_s)
    return harness.Done(process.returncode, out, err)


@pytest.mark.parametrize('path', NAMES)
def test_each_file_is_the_command_of_its_name(shared_box, folder, path):
    done = type_line(shared_box, folder, path, '--help')
    assert done.code == 0 and done.out.startswith(f'usage: {NAMES[path]}'), done


def test_exit_status_input_and_output_are_the_commands_own(box, folder):
    done = type_line(box, folder, 'srun.py', 'sh', '-c', 'echo out; echo err >&2; exit 9')
    assert done.code == 9 and done.out.endswith('out\n') and 'err\n' in done.err, done
    assert 'through' in type_line(box, folder, 'srun.py', 'cat', given='through\n').out


def test_signals_reach_the_command_as_they_would_without_python(box, folder):
    job = spawn(box, folder, 'srun.py', 'sh', '-c', 'echo ready; grep SigIgn /proc/self/status; exec sleep 60')
    while 'ready' not in job.stdout.readline():
        pass
    assert int(job.stdout.readline().split()[1], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=harness.DEADLINE_S)
    assert job.returncode != 0


def test_its_tests_pass_on_a_private_mgpud(box, folder):
    before = [job['id'] for job in box.api('GET', '/jobs').json['jobs']]
    done = type_line(box, folder, 'test/run_tests.py', timeout_s=4 * harness.DEADLINE_S)
    assert done.code == 0 and 'Ran 6 tests' in done.err, done
    assert type_line(box, folder, '-m', 'unittest', 'test_scheduler', '-v', timeout_s=4 * harness.DEADLINE_S).code == 0
    assert [job['id'] for job in box.api('GET', '/jobs').json['jobs']] == before


def test_there_is_nothing_to_install(folder):
    lines = (folder / 'requirements.txt').read_text().splitlines()
    assert lines and all(line.startswith('#') for line in lines)


def test_files_of_others_stay(box, folder):
    again = box.mgpu('compat', 'install', '--python', folder)
    assert again.code == 0, again
    mine = folder / 'scheduler.py'
    before = mine.read_text()
    with box.client.acting():
        mine.write_text('print("mine")\n')
    done = box.mgpu('compat', 'install', '--python', folder)
    assert done.code != 0 and 'scheduler.py already exists' in done.err and mine.read_text() == 'print("mine")\n', done
    assert box.mgpu('compat', 'install', '--python', '--force', folder).code == 0 and mine.read_text() == before


@pytest.mark.parametrize(('arguments', 'said'), [
    (['--python'], 'no folder given'), (['--python', 'DIR', 'srun'], 'takes one folder'), (['--python', '--slurm', 'DIR'], 'takes one folder'),
    (['--python', '/nonexistent/DIR'], 'cannot make the folder'), (['--python', '/etc/passwd'], 'cannot open the folder')])
def test_wrong_folders_are_refused(box, place, arguments, said):
    done = box.mgpu('compat', 'install', *arguments, cwd=place)
    assert done.code != 0 and said in done.err, done
    assert not pathlib.Path(place, 'DIR').exists()
