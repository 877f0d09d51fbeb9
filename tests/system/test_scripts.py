# SPDX-License-Identifier: MIT
"""A submitted script runs as it was, whatever happens to its file."""

import os

import pytest

import harness

GPUS = 'sim:4x24G'


@pytest.fixture
def box(shared_box):
    yield shared_box
    shared_box.cancel_all()


def write(box, place, name, text, mode=0o755):
    """A script of the user who submits."""
    path = f'{place}/{name}'
    with open(path, 'wb') as out:
        out.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)
    os.chown(path, box.client.uid, box.client.gid)
    return path


def submit(box, place, *arguments, **options):
    done = box.mgpu('submit', '-g', '0', *arguments, cwd=place, check=True, **options)
    return int(done.out), done


def script_folders(box):
    return os.listdir(f'{box.run_dir}/scripts')


def test_a_script_that_is_changed_after_its_submission_runs_as_it_was(box, place):
    path = write(box, place, 'job.sh', '#!/bin/sh\necho first $1 "$2"\n')
    job, done = submit(box, place, '--hold', 'job.sh', 'a', 'b  c')
    assert done.err == ''
    write(box, place, 'job.sh', '#!/bin/sh\necho second\n')
    os.unlink(path)
    box.mgpu('release', str(job), check=True)
    assert box.wait(job)['state'] == 'done'
    assert box.output(job) == 'first a b  c\n'


def test_mgpu_script_is_the_file_and_argument_zero_the_copy(box, place):
    path = write(box, place, 'job.sh', '#!/bin/sh\necho "$MGPU_SCRIPT"\nbasename "$0"\nls -l "$0" | cut -c1-4\n')
    job, done = submit(box, place, 'job.sh')
    assert box.wait(job)['state'] == 'done'
    assert box.output(job) == f'{os.path.realpath(path)}\njob.sh\n-r-x\n'
    assert 'the job runs a copy' in done.err and '--in-place' in done.err
    shown = box.job(job)
    assert (shown['argv'], shown['name']) == ([os.path.realpath(path)], 'job.sh')


def test_in_place_runs_the_file_as_it_is_at_the_start(box, place):
    write(box, place, 'job.sh', '#!/bin/sh\necho first "$0"\n')
    job, done = submit(box, place, '--hold', '--in-place', 'job.sh')
    assert done.err == ''
    write(box, place, 'job.sh', '#!/bin/sh\necho second "$0"\n')
    box.mgpu('release', str(job), check=True)
    assert box.wait(job)['state'] == 'done'
    assert box.output(job) == 'second ./job.sh\n'


@pytest.mark.parametrize(('text', 'mode', 'said'), [
    ('echo no line\n', 0o755, 'no line\n'),
    ('#!/bin/sh -e\necho one; false; echo two\n', 0o755, 'one\n'),
    ('#!/usr/bin/env bash\necho ${BASH_VERSION:+bash}\n', 0o644, 'bash\n'),
    ('#!/usr/bin/python3 -u\nimport sys\nprint(sys.argv[1:])\n', 0o755, '[]\n'),
    ('#!/bin/sh\r\necho crlf # \r\n', 0o755, 'crlf\n'),
])
def test_the_interpreter_of_its_first_line_runs_it(box, place, text, mode, said):
    write(box, place, 'job', text, mode)
    job, _ = submit(box, place, './job')
    box.wait(job)
    assert box.output(job) == said


def test_python_finds_the_modules_beside_the_file_that_was_submitted(box, place):
    write(box, place, 'beside.py', 'word = "found"\n', 0o644)
    write(box, place, 'job.py', '#!/usr/bin/env python3\nimport os, beside\nprint(beside.word, os.environ["PYTHONPATH"])\n')
    job, _ = submit(box, place, '-C', '/', '-e', 'PYTHONPATH=/nowhere', 'job.py')
    assert box.wait(job)['state'] == 'done', box.output(job)
    assert box.output(job) == f'found {os.path.realpath(place)}:/nowhere\n'


def test_show_prints_the_script_to_its_owner(box, place):
    text = '#!/bin/sh\n# größer\n\ttrue\n'
    write(box, place, 'job.sh', text)
    job, _ = submit(box, place, 'job.sh')
    box.wait(job)
    assert box.mgpu('show', '--script', str(job), check=True).out == text
    assert 'script' not in box.job(job)
    assert box.api('GET', f'/jobs/{job}?script=1').json['script'] == text
    assert box.api('GET', f'/jobs/{job}?script=x').status == 400
    other = box.submit('-g', '0', 'true')
    done = box.mgpu('show', '--script', str(other))
    assert done.code != 0 and 'has no submitted script' in done.err


def test_a_script_too_long_is_refused_and_one_that_is_no_text_runs_in_place(box, place):
    write(box, place, 'long.sh', '#!/bin/sh\ntrue\n' + '#' * (1 << 20))
    done = box.mgpu('submit', 'long.sh', cwd=place)
    assert done.code != 0 and 'has more than 1048576 bytes' in done.err and '--in-place' in done.err
    write(box, place, 'latin.sh', b'#!/bin/sh\n# gr\xf6\xdfer\necho ran\n')
    job, done = submit(box, place, 'latin.sh')
    assert 'is not UTF-8 text: it is run from its file' in done.err
    assert box.wait(job)['state'] == 'done' and box.output(job) == 'ran\n'


def test_every_try_runs_the_script_that_was_submitted_and_no_copy_is_left(box, place):
    write(box, place, 'job.sh', '#!/bin/sh\necho same\nexit 75\n')
    job, _ = submit(box, place, '--retry', '1', '--retry-on', '75', 'job.sh')
    write(box, place, 'job.sh', '#!/bin/sh\necho other\n')
    ended = box.wait(job)
    assert (ended['exit_code'], ended['retries']) == (75, 1), ended
    assert box.output(job) == 'same\n'
    again = int(box.mgpu('retry', str(job), check=True).out)
    assert box.wait(again)['exit_code'] == 75
    box.restart()  # after which what was to be forgotten is
    assert script_folders(box) == []


def test_the_elements_of_an_array_run_it(box, place):
    write(box, place, 'job.sh', '#!/bin/sh\necho $MGPU_ARRAY_INDEX\n')
    job, _ = submit(box, place, '--array', '1-2', '-o', f'{place}/out.%a', 'job.sh')
    assert box.wait(job)['state'] == 'done'
    assert [open(f'{place}/out.{i}', encoding='utf-8').read() for i in (1, 2)] == ['1\n', '2\n']
    assert box.mgpu('show', '--script', f'{job}.2', check=True).out == '#!/bin/sh\necho $MGPU_ARRAY_INDEX\n'


def test_nobody_else_can_read_the_copy_and_its_user_cannot_make_it_grow(box, place, gate, bell):
    grow = 'chmod u+w "$0" && echo "# more" >> "$0" && exit 1' if harness.IS_ROOT else ''  # else it is its owner's
    write(box, place, 'job.sh', f'#!/bin/sh\n{grow}\n'
          f'echo here > {bell.path}\nread word < {gate.path}\n')
    job, _ = submit(box, place, 'job.sh')
    bell.wait()
    folder = f'{box.run_dir}/scripts/{job}.1.0.0'
    status = os.stat(f'{folder}/job.sh')
    assert status.st_uid == os.geteuid() and status.st_mode & 0o707 == 0o500
    assert os.stat(folder).st_uid == os.geteuid() and os.stat(folder).st_mode & 0o777 == 0o711
    gate.open()
    box.wait(job)


@pytest.mark.root
def test_another_user_cannot_print_the_script(box, place, bo):
    write(box, place, 'job.sh', '#!/bin/sh\n# secret\n')
    job, _ = submit(box, place, 'job.sh')
    box.wait(job)
    done = box.mgpu('show', '--script', str(job), user=bo)
    assert done.code != 0 and done.out == '' and 'can only be read by its owner' in done.err
    assert 'script' not in box.api('GET', f'/jobs/{job}?script=1', user=bo).json


@pytest.mark.parametrize('mark', ['#MGPU', '#SBATCH'])
@pytest.mark.parametrize('words', [('run',), ('run', '-d')], ids=' '.join)
def test_lines_that_only_submit_reads_are_not_passed_over_in_silence(box, place, words, mark):
    write(box, place, 'job.sh', f'#!/bin/sh\n{mark} -J other\necho ran\n')
    write(box, place, 'plain.sh', f'#!/bin/sh\necho ran\n{mark} -J other\n')
    warning = 'mgpu: warning: the #MGPU and #SBATCH lines of ./job.sh have no effect here; to use them: mgpu submit ./job.sh\n'
    assert warning in box.mgpu(*words, '-g', '0', './job.sh', cwd=place, check=True).err
    for others in (('./plain.sh',), ('-q', './job.sh')):
        done = box.mgpu(*words[:1], '-g', '0', *words[1:], *others, cwd=place, check=True)
        assert 'have no effect' not in done.err, done
    assert box.job(submit(box, place, './job.sh')[0])['name'] == 'other'


@pytest.mark.parametrize('head', ['', '#MGPU -J other\n', '#SBATCH -J other\n'], ids=['none', 'mgpu', 'slurm'])
@pytest.mark.parametrize('late', ['#MGPU -g 3', '#SBATCH --gres=gpu:3'])
def test_an_option_line_after_the_first_command_is_named(box, place, head, late):
    write(box, place, 'job.sh', f'#!/bin/sh\n{head}\nset -e\n{late}\n{late}\n')
    job, done = submit(box, place, '--hold', 'job.sh')
    line = 4 + bool(head)
    assert done.err.count('has no effect') == 1 and f'mgpu: job.sh:{line}: this line has no effect: it follows the first command\n' in done.err, done
    assert box.job(job)['gpus'] == 0
    assert 'has no effect' not in box.mgpu('submit', '-q', '-g', '0', 'job.sh', cwd=place, check=True).err


LISTS = {
    'a list': ('jobs', '{command}\n{command} 7\n'),
    'job files of words': ('jobs.yaml', 'command: [./job.sh]\n---\ncommand: [./job.sh, "7"]\n'),
    'job files of text': ('jobs.yml', 'command: {command}\n---\ncommand: {command} 7\n'),
}


@pytest.mark.parametrize('mark', ['#MGPU', '#SBATCH'])
@pytest.mark.parametrize('kind', LISTS)
def test_files_of_jobs_read_the_option_lines_of_their_scripts(box, place, mark, kind):
    name, text = LISTS[kind]
    write(box, place, 'job.sh', f'#!/bin/sh\n{mark} -J other -t 3\necho "$# $1"\n')
    write(box, place, name, text.format(command='./job.sh'))
    done = box.mgpu('submit', '-g', '0', '-p', '0', '--file', name, cwd=place, check=True)
    assert 'no effect' not in done.err, done
    first, second = map(int, done.out.split())
    for job, said in ((first, '0 \n'), (second, '1 7\n')):
        ended = box.wait(job)
        assert (ended['name'], ended['state'], box.output(job)) == ('other', 'done', said), ended
        assert ended['time_limit'] == (180 if mark == '#SBATCH' else 3)
    assert box.mgpu('submit', '-q', '-g', '0', '-J', 'mine', '--file', name, cwd=place, check=True).out
    assert box.job(second + 1)['name'] == 'mine', 'the command line overrides the lines'


def test_a_line_after_a_script_has_the_options_of_the_command_line_alone(box, place):
    write(box, place, 'job.sh', '#!/bin/sh\n#MGPU -J other -e A=1\n')
    write(box, place, 'jobs', './job.sh\necho "<$A>"\n')
    _, second = map(int, box.mgpu('submit', '-g', '0', '--file', 'jobs', cwd=place, check=True).out.split())
    box.wait(second)
    assert (box.job(second)['name'], box.output(second)) == ('sh', '<>\n')


def test_the_keys_of_a_job_file_override_the_option_lines(box, place):
    write(box, place, 'job.sh', '#!/bin/sh\n#MGPU -J other -t 5m\n')
    write(box, place, 'jobs.yaml', 'command: ./job.sh\nname: mine\n')
    job, _ = submit(box, place, 'jobs.yaml')
    assert (box.job(job)['name'], box.job(job)['time_limit']) == ('mine', 300)


@pytest.mark.parametrize('command', ['sh job.sh', './job.sh > out', 'sh job.sh | cat'])
@pytest.mark.parametrize('way', ['run', 'submit', 'list', 'file'])
def test_option_lines_that_are_not_read_are_named(box, place, way, command):
    write(box, place, 'job.sh', '#!/bin/sh\n#MGPU -J other\n')
    write(box, place, 'jobs', f'{command}\n')
    write(box, place, 'jobs.yaml', f'command: {command}\n')
    words = {'run': ('run', '-g', '0', command), 'submit': ('submit', '-g', '0', command),
             'list': ('submit', '-g', '0', '--file', 'jobs'), 'file': ('submit', '-g', '0', 'jobs.yaml')}
    assert 'job.sh have no effect here; to use them: mgpu submit ' in box.mgpu(*words[way], cwd=place, check=True).err


@pytest.mark.parametrize('option', ['--in-place', '--'])
def test_option_lines_that_are_read_are_not_said_to_have_no_effect(box, place, option):
    """Also not of a script that runs from its file."""
    write(box, place, 'job.sh', '#!/bin/sh\n#MGPU -J other\n')
    os.chmod(f'{place}/job.sh', 0o555)
    job, done = submit(box, place, option, './job.sh')
    assert box.job(job)['name'] == 'other' and 'no effect' not in done.err, done


def test_a_list_with_options_in_its_lines_is_refused(box, place):
    write(box, place, 'jobs', 'true\n-g 2 -- true\n')
    done = box.mgpu('submit', '--file', 'jobs', cwd=place)
    assert done.code == 2 and 'jobs:2: a line must begin with a command, not with an option: -g 2' in done.err, done
    assert 'before --file' in done.err and done.out == ''


@pytest.mark.parametrize('name', ['jobs', 'jobs.yaml'])
def test_commands_of_files_are_checked_like_those_of_the_command_line(box, place, name):
    write(box, place, 'jobs', './gone.sh\n./gone.sh\n')
    write(box, place, 'jobs.yaml', 'command: [./gone.sh]\n')
    done = box.mgpu('submit', '--hold', '-g', '0', '--file', name, cwd=place, check=True)
    assert done.err.count('warning: no such file: ./gone.sh') == 1, done


@pytest.mark.parametrize('verb', ['run', 'submit'])
def test_the_example_for_a_missing_command_is_of_the_verb_that_was_typed(box, verb):
    assert f'hint: for example: mgpu {verb} -g 1 -- python train.py' in box.mgpu(verb, '-g', '1').err
