# SPDX-License-Identifier: MIT
"""Texts as other systems write them: each program that reads one takes it, or refuses it in one sentence."""

import os

import harness
import pytest
import slurm

MARK = b'\xef\xbb\xbf'
SCRIPT = b'#!/bin/bash\n#MGPU -g 2 -t 5m\n#SBATCH --gres=gpu:2\n[[ a == a ]] && echo "gpus=$MGPU_NUM_GPUS$SLURM_GPUS_ON_NODE"'

# How the same text is written.
FORMS = {
    'as it is': lambda text: text,
    'with a byte order mark': lambda text: MARK + text,
    'with a last newline': lambda text: text + b'\n',
}
DOS = {'with DOS line ends': lambda text: text.replace(b'\n', b'\r\n'),
       'with a mark and DOS line ends': lambda text: MARK + text.replace(b'\n', b'\r\n') + b'\r\n'}


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def write(place, name, content, mode=0o755):
    path = os.path.join(place, name)
    if os.path.exists(path):
        os.unlink(path)
    with open(path, 'wb') as file:
        file.write(content)
    os.chmod(path, mode)
    if harness.IS_ROOT:
        user = harness.User('mgpu-ta')
        os.chown(path, user.uid, user.gid)
    return path


def submitted(cluster, content, mode):
    path = write(cluster.place, 'job.sh', content, mode)
    job = cluster.box.submit(path, cwd=cluster.place)
    return cluster.box.wait(job)['state'], cluster.box.output(job)


def sbatched(cluster, content, _):
    done = cluster.run('sbatch', '-W', '-o', 'out', write(cluster.place, 'job.sh', content))
    return 'done' if done.code == 0 else done.err, cluster.read('out')


@pytest.mark.parametrize('form', {**FORMS, **DOS})
@pytest.mark.parametrize('mode', [0o755, 0o644])
def test_a_script_has_its_options_and_its_interpreter(cluster, form, mode):
    content = {**FORMS, **DOS}[form](SCRIPT.replace(b'#SBATCH --gres=gpu:2\n', b''))
    state, out = submitted(cluster, content, mode)
    assert (state, out.replace('\r', '')) == ('done', 'gpus=2\n')


@pytest.mark.parametrize('form', FORMS)
def test_a_script_of_sbatch_has_its_options_and_its_interpreter(cluster, form):
    assert sbatched(cluster, FORMS[form](SCRIPT), None) == ('done', 'gpus=22\n')


@pytest.mark.parametrize('form', FORMS)
def test_a_script_sent_through_the_api_has_its_interpreter(box, form):
    script = FORMS[form](SCRIPT).decode()
    job, out = box.run_job(['/tmp/job.sh'], gpus=2, script=script)
    assert (job['state'], out) == ('done', 'gpus=2\n')


def test_a_marked_script_without_its_x_bit_is_no_command_name(cluster):
    write(cluster.place, 'job.sh', MARK + b'#!/bin/bash\n#SBATCH --gres=gpu:2\necho $MGPU_NUM_GPUS\n', 0o644)
    job = cluster.box.submit('job.sh', cwd=cluster.place)
    assert cluster.box.wait(job)['state'] == 'done' and cluster.box.output(job) == '2\n'


@pytest.mark.parametrize('form', {**FORMS, **DOS})
def test_lists_and_variables_are_read(cluster, form):
    box, place, as_form = cluster.box, cluster.place, {**FORMS, **DOS}[form]
    commands = write(place, 'commands', as_form(b'echo one\necho two'))
    jobs = [int(line) for line in box.mgpu('submit', '-g', 0, '--file', commands, check=True).out.split()]
    for job in jobs:
        box.wait(job)
    assert [box.output(job) for job in jobs] == ['one\n', 'two\n']
    with open(commands, 'rb') as file:
        assert len(box.mgpu('submit', '-g', 0, '--file', '-', stdin=file, check=True).out.split()) == 2
    variables = write(place, 'variables', as_form(b'FIRST=a b\nSECOND=2'))
    done = box.mgpu('run', '-q', '-g', 0, '--env-file', variables, '--', 'sh', '-c', 'echo $FIRST,$SECOND', check=True)
    assert done.out == 'a b,2\n'
    jobs = write(place, 'jobs.yaml', as_form(b'gpus: 0\ncommand: echo yaml'))
    job = int(box.mgpu('submit', jobs, check=True).out)
    box.wait(job)
    assert box.output(job) == 'yaml\n'


@pytest.mark.parametrize('form', {**FORMS, **DOS})
def test_the_programs_of_several_tasks_are_read(cluster, form):
    write(cluster.place, 'programs', {**FORMS, **DOS}[form](b'0 echo zero\n1 echo one'))
    done = cluster.run('srun', '-n2', '--multi-prog', 'programs')
    assert done.code == 0 and sorted(done.out.split()) == ['one', 'zero'], done


UTF_16 = {
    'a script': (b'#!/bin/sh\necho', ('submit', 'text')),
    'a list': (b'echo one\n', ('submit', '-g', 0, '--file', 'text')),
    'variables': (b'A=1\n', ('submit', '-g', 0, '--env-file', 'text', 'true')),
    'a job file': (b'gpus: 0\ncommand: echo\n', ('submit', 'text.yaml')),
}


@pytest.mark.parametrize('kind', UTF_16)
@pytest.mark.parametrize('encoding', ['utf-16-le', 'utf-16-be'])
def test_utf_16_is_refused_in_one_sentence(box, place, kind, encoding):
    content, words = UTF_16[kind]
    mark = b'\xff\xfe' if encoding == 'utf-16-le' else b'\xfe\xff'
    for name in ('text', 'text.yaml'):
        write(place, name, mark + content.decode().encode(encoding))
    done = box.mgpu(*words, cwd=place)
    assert done.code != 0 and done.out == '' and 'is UTF-16 text, and UTF-8 is expected' in done.err, done


def test_sbatch_refuses_utf_16_in_one_sentence(cluster):
    write(cluster.place, 'job.sh', b'\xff\xfe' + '#!/bin/sh\n'.encode('utf-16-le'))
    done = cluster.run('sbatch', 'job.sh')
    assert done.code == 1 and 'is UTF-16 text, and UTF-8 is expected' in done.err, done


def test_a_marked_file_that_is_run_itself_is_refused_or_warned_about(box, place):
    write(place, 'job.sh', MARK + b'#!/bin/bash\n[[ a == a ]]\n')
    done = box.mgpu('submit', '--in-place', '-g', 0, 'job.sh', cwd=place)
    assert done.code != 0 and 'begins with a byte order mark, so its first line names no interpreter' in done.err, done
    done = box.mgpu('run', '-g', 0, './job.sh', cwd=place)
    assert 'warning: ./job.sh begins with a byte order mark' in done.err, done


@pytest.mark.parametrize('words, sentence', [
    (('-o', '~/x', 'true'), 'warning: -o ~/x: ~ is not replaced here'),
    (('-C', '~/x', 'true'), 'warning: -C ~/x: ~ is not replaced here'),
    (('--input', '~/x', 'true'), 'warning: --input ~/x: ~ is not replaced here'),
    (('-o', 'out_%x_%j', 'true'), 'warning: -o out_%x_%j: a % that begins none of %j %n %a %A %h %r %% stays as it is'),
    (('--error', '%%%', 'true'), 'warning: --error %%%: a % that'),
    (('--input', '%4N', 'true'), 'warning: --input %4N: a % that'),
    (('FOO=1', 'true'), 'FOO=1: command not found in PATH; to set a variable: -e FOO=1'),
    (('-e', 'CUDA_VISIBLE_DEVICES=5', 'true'), 'warning: -e CUDA_VISIBLE_DEVICES has no effect'),
])
def test_what_a_shell_would_have_done_is_named(box, place, words, sentence):
    done = box.mgpu('submit', '--hold', '-g', 0, *words, cwd=place)
    assert done.code == 0 and sentence in done.err, done


@pytest.mark.parametrize('name', ['out', '%j', '%4j.%03a', '%n%A%h%r', '100%%', '%%x'])
def test_the_codes_of_a_file_are_no_reason_for_a_warning(box, place, name):
    done = box.mgpu('submit', '--hold', '-g', 0, '-o', name, 'true', cwd=place)
    assert (done.code, done.err) == (0, ''), done


@pytest.mark.parametrize('path', ['./tools:/usr/bin:/bin', 'tools:/usr/bin:/bin'])
def test_a_relative_entry_of_path_is_no_reason_for_a_warning(box, place, path):
    os.mkdir(f'{place}/tools')
    write(f'{place}/tools', 'tool2', b'#!/bin/sh\necho ran\n')
    done = box.mgpu('run', '-g', 0, 'tool2', cwd=place, env={'PATH': path})
    assert done.code == 0 and done.out == 'ran\n' and 'warning' not in done.err, done


def test_a_removed_directory_has_a_hint(box, place):
    folder = f'{place}/gone'
    line = f'mkdir {folder}; cd {folder}; rmdir {folder}; exec {harness.programs()}/mgpu submit -g 0 true'
    done = os.popen(f"MGPU_SOCKET={box.socket} sh -c '{line}' 2>&1").read()
    assert 'cannot determine the current directory' in done and '-C DIR' in done, done


@pytest.mark.parametrize('output', ['own.lnk', '/dev/stdout'])
def test_an_output_file_that_is_a_link_is_named(box, place, output):
    write(place, 'real.out', b'')
    os.symlink('real.out', f'{place}/own.lnk')
    done = box.mgpu('submit', '--hold', '-g', 0, '-o', output, 'true', cwd=place)
    assert done.code == 0 and 'is a symbolic link, which the output of a job does not follow' in done.err, done


@pytest.mark.parametrize('command', [('sbatch', '-H', '--wrap', 'true'), ('srun', 'true')])
def test_slurm_commands_name_variables_that_are_left_out(cluster, command):
    done = cluster.run(*command, env={'RAW': b'\xff\xfe'.decode('utf-8', 'surrogateescape')})
    assert done.code == 0 and 'warning: 1 environment variable is not UTF-8 text and omitted' in done.err, done
