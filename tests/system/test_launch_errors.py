# SPDX-License-Identifier: MIT
"""What goes wrong between the queue and the command's first instruction: one clear sentence, the right exit code."""

import errno
import os
import select
import shutil
import signal
import time

import pytest

import harness

pytestmark = pytest.mark.smoke


def start(box, *arguments, **options):
    """Runs in the foreground; what `mgpu run` did, and the job."""
    done = box.mgpu('run', *arguments, **options)
    jobs = box.api('GET', '/jobs?all=1').json['jobs']
    return done, jobs[-1]


def test_a_command_that_does_not_exist_is_127(box):
    done, job = start(box, '--', 'no-such-program', 'x')
    assert done.code == 127, done
    assert (job['exit_code'], job['ended_by'], job['state']) == (127, 'start_failed', 'failed')
    assert 'no-such-program' in job['message']
    assert 'no-such-program' in box.mgpu('show', job['id'], check=True).out


def test_the_log_says_that_a_command_could_not_be_executed(box):
    for words in ([], ['--setup', 'true']):
        job = box.submit(*words, '--', 'no-such-program')
        box.wait(job)
        assert box.output(job) == 'mgpu: cannot execute no-such-program: No such file or directory\n', words


def test_a_path_that_does_not_exist_is_127(box):
    assert start(box, '--', '/no/such/program')[0].code == 127


@pytest.mark.root
def test_a_directory_of_the_path_that_may_not_be_searched_says_nothing_of_the_command(box, ana, place):
    closed = f'{place}/closed'
    os.mkdir(closed, 0o700)
    done, _ = start(box, '-e', f'PATH={closed}:/usr/bin:/bin', '--', 'no-such-program', 'x', user=ana)
    assert done.code == 127, done


def test_a_file_that_is_not_executable_is_126(box, place):
    path = f'{place}/data'
    with open(path, 'w', encoding='ascii') as out:
        out.write('x')
    done, job = start(box, '--', path)
    assert done.code == 126, done
    assert job['ended_by'] == 'start_failed' and 'Permission denied' in job['message']


def test_a_directory_as_command_is_126(box, place):
    assert start(box, '--', place)[0].code == 126


def test_a_script_without_an_interpreter_line_runs_in_a_shell_or_is_126(box, place):
    path = f'{place}/script'
    with open(path, 'w', encoding='ascii') as out:
        out.write('exit 7\n')
    os.chmod(path, 0o755)
    assert start(box, '--', path)[0].code in (7, 126)


def test_a_missing_interpreter_is_told(box, place):
    path = f'{place}/script'
    with open(path, 'w', encoding='ascii') as out:
        out.write('#!/no/such/interpreter\n')
    os.chmod(path, 0o755)
    done, job = start(box, '--', path)
    assert done.code in (126, 127) and job['message'], (done, job)


def test_a_command_is_found_by_the_submitters_path_in_the_jobs_directory(box, place):
    path = f'{place}/my-tool'
    with open(path, 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\necho found\n')
    os.chmod(path, 0o755)
    done, _ = start(box, '--', 'my-tool', env={'PATH': f'{place}:/usr/bin:/bin'})
    assert (done.code, done.out) == (0, 'found\n'), done
    assert start(box, '-C', place, '--', './my-tool')[0].out == 'found\n'


@pytest.mark.root
def test_a_directory_that_the_user_may_not_enter_is_told(box, ana, place):
    folder = f'{place}/closed'
    os.mkdir(folder, 0o700)
    done, job = start(box, '-C', folder, '--', 'true', user=ana)
    assert done.code in (125, 126), done
    assert job['ended_by'] == 'start_failed'
    assert folder in job['message'] and 'Permission denied' in job['message'], job


def test_a_directory_that_does_not_exist_is_told(box, place):
    done, job = start(box, '-C', f'{place}/none', '--', 'true')
    assert done.code == 125, done
    assert f'{place}/none' in job['message'] and 'No such file' in job['message'], job


def test_a_failing_setup_ends_the_job_before_its_command(box, place):
    done, job = start(box, '-E', 'echo preparing; exit 5', '--', 'touch', f'{place}/ran')
    assert job['ended_by'] == 'setup_failed', job
    assert done.code == 5, done
    assert not os.path.exists(f'{place}/ran')
    assert 'preparing' in box.output(job['id'])


def test_the_setup_prepares_the_environment_of_the_command(box):
    done, _ = start(box, '-E', 'export A=1; cd /usr', '--', 'sh', '-c', 'echo "$A $PWD $*"', 'sh', 'x y')
    assert (done.code, done.out) == (0, '1 /usr x y\n'), done


@pytest.mark.parametrize('words', [
    ['-C', '{late}', '--', 'true'], ['-o', '{late}/out', '--', 'true'], ['--error', '{late}/err', '--', 'true'],
    ['--input', '{late}/tool', '--', 'true'], ['--', '{late}/tool']], ids=['directory', 'output', 'error', 'input', 'command'])
def test_what_is_made_just_after_the_submission_is_found(box, place, words):
    late, hidden = f'{place}/late', f'{place}/hidden'
    job = box.submit(*[word.format(late=late) for word in words])
    box.wait(job, 'starting,running,failed')  # the node looks for it by now, or soon
    os.mkdir(hidden)
    os.chmod(hidden, 0o777)
    with open(f'{hidden}/tool', 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\n')
    os.chmod(f'{hidden}/tool', 0o755)
    os.rename(hidden, late)
    done = box.wait(job)
    assert done['exit_code'] == 0, done


def test_an_output_directory_that_does_not_exist_is_told(box, place):
    _, job = start(box, '-o', f'{place}/none/out', '--', 'true')
    assert job['ended_by'] == 'start_failed' and f'{place}/none/out' in job['message'], job


def test_a_full_output_file_system_is_the_jobs_own_affair(box, place):
    if not harness.IS_ROOT:
        pytest.skip('needs root to mount')
    small = f'{place}/small'
    os.mkdir(small)
    assert os.system(f'mount -t tmpfs -o size=64k,mode=1777 tmpfs {small}') == 0
    try:
        job, _ = None, None
        job = box.wait(box.post_job(['sh', '-c', 'yes | head -c 1000000; echo $? > /dev/null; exit 9'],
                                    output=f'{small}/out'))
        assert (job['state'], job['exit_code']) == ('failed', 9)
        assert job['log_bytes'] <= 65536
    finally:
        for pid in box.shepherds():
            assert harness.wait_process(pid), 'it leaves when the end is durable'
        assert os.system(f'umount {small}') == 0


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT])
def test_a_job_that_a_signal_ends_tells_the_signal(box, number):
    done, job = start(box, '--', 'sh', '-c', f'kill -{int(number)} $$')
    assert done.code == 128 + number, done
    assert (job['signal'], job['ended_by'], job['state']) == (number, 'signal', 'failed')


@pytest.mark.parametrize('code', [0, 1, 123, 124, 125, 126, 127, 255])
def test_the_commands_own_status_is_told_apart_from_ours(box, code):
    done, job = start(box, '--', 'sh', '-c', f'exit {code}')
    assert done.code == code
    assert (job['exit_code'], job['ended_by']) == (code, 'exit')


def test_a_very_long_command_line_arrives_whole(box):
    words = ['x' * 1000] * 120
    job, output = box.run_job(['sh', '-c', 'echo $#; echo "$*" | wc -c', 'sh', *words])
    assert output.split() == ['120', str(1001 * 120)], job


def test_odd_words_arrive_as_they_are(box):
    words = ['', ' ', 'a\nb', '$HOME', "'", '"', '*', '\\', 'é€😀', '-x', '--']
    _, output = box.run_job(['/usr/bin/python3', '-c', 'import sys; print(repr(sys.argv[1:]))', *words])
    assert output == repr(words) + '\n'


def test_children_that_stay_behind_are_ended_with_the_job(box, gate, bell):
    """setsid and ignored signals do not help: when the job has ended nothing of it runs."""
    job = box.post_job(['sh', '-c', f'setsid sh -c "trap \'\' TERM HUP; echo \\$\\$ > {bell.path}; read x < {gate.path}" '
                                    f'> /dev/null 2>&1 & read x < {gate.path}; exit 4'])
    pid = int(bell.wait())
    assert os.path.exists(f'/proc/{pid}')
    os.write(gate.fd, b'\n\n')
    done = box.wait(job)
    assert done['state'] in ('failed', 'cancelled') and done['ended_by'] == 'exit', done
    assert not os.path.exists(f'/proc/{pid}'), 'a child of an ended job is alive'


def test_a_cancelled_job_is_asked_and_then_made_to_end(box, gate, bell):
    polite = box.post_job(['sh', '-c', f'trap "echo bye; exit 3" TERM; echo up > {bell.path}; read x < {gate.path}'])
    stubborn = box.post_job(['sh', '-c', f'trap "" TERM; echo up > {bell.path}; while :; do read x < {gate.path}; done'])
    bell.wait()
    bell.wait()
    assert box.api('POST', f'/jobs/{polite}/cancel', {'grace_s': 20}).status == 202
    assert box.api('POST', f'/jobs/{stubborn}/cancel', {'grace_s': 1}).status == 202
    done = box.wait(polite)
    assert done['state'] == 'cancelled' and 'bye' in box.output(polite), done
    assert box.wait(stubborn)['state'] == 'cancelled'


@pytest.mark.parametrize(('words', 'warning'), [
    (['./nosuch.py'], 'no such file: ./nosuch.py'),
    (['./plain.sh'], './plain.sh is not executable: chmod +x ./plain.sh'),
    (['plain.sh'], 'plain.sh is not in PATH; to run the file of that name: chmod +x plain.sh, and use ./plain.sh'),
    (['nosuch.py'], 'nosuch.py: command not found in PATH'),
    (['plain.py'], './plain.py names no interpreter; to run it: python3 ./plain.py'),
    (['./plain.py'], './plain.py names no interpreter; to run it: python3 ./plain.py'),
    (['./folder'], './folder is a directory'),
    (['-C', 'missing', 'true'], 'no such directory: missing; the job cannot start without it: mkdir -p missing'),
    (['-o', 'missing/%j.out', 'true'], 'no such directory: missing; the job cannot write its output without it'),
    (['-C', 'closed', 'true'], 'you have no access to closed; the job cannot start without it'),
    (['-C', 'closed/inner', 'true'], 'you have no access to closed/inner; the job cannot start without it'),
    (['-o', 'closed/%j.out', 'true'], 'you have no access to closed; the job cannot write its output without it'),
    (['-o', 'fixed/out', 'true'], 'you may not create files in fixed; the job cannot write its output there'),
    (['-o', 'fixed/%j.out', 'true'], 'you may not create files in fixed; the job cannot write its output there'),
    (['-o', 'fixed/there', 'true'], 'you may not write to fixed/there; the job cannot write its output to it'),
    (['--venv', 'folder', 'true'], 'folder is not a virtual environment: it has no bin/activate; python3 -m venv folder creates one'),
    (['--conda', './folder', 'true'], '--conda ./folder: the folder is not a conda environment'),
    (['--input', 'missing', 'cat'], 'no such file: missing; the job cannot start without its input'),
    (['--input', 'folder', 'cat'], 'folder is a directory; the job cannot read its input from it'),
    (['--image', 'net:1', '--image-runtime', 'apptainer', 'true'], '--image-runtime apptainer: there is no apptainer here'),
    (['--notify', 'slack', 'true'], '--notify slack: command not found in PATH; a target is mail, a URL or a command'),
    (['-J', 'run-{seed}', 'true'], '{seed} in -J is not replaced: there is no --sweep seed=VALUES'),
    (['--sweep', 'lr=1,2', '-o', 'out-{seed}', 'true'], '{seed} in -o is not replaced: there is no --sweep seed=VALUES'),
    (['--sweep', 'lr=1..3', 'true'], '--sweep lr=1..3 is one value; a range is 1-3'),
    (['-o', 'folder', 'true'], 'folder is a directory; the job cannot write its output to it'),
    (['python3', 'nosuch.py'], 'no such file: nosuch.py'),
    (['-C', 'folder', '--', '/bin/sh', 'plain.sh'], 'no such file: folder/plain.sh'),
    (['-C', 'folder', 'inside'], "inside is not in PATH; to run the file in the job's directory, use ./inside"),
])
def test_what_will_fail_is_told_at_submit(box, place, words, warning):
    if 'apptainer' in words and shutil.which('apptainer'):
        pytest.skip('apptainer is installed')
    os.mkdir(f'{place}/folder')
    for name, mode in (('plain.sh', 0o644), ('plain.py', 0o755), ('folder/inside', 0o755)):
        with open(f'{place}/{name}', 'w', encoding='ascii') as out:
            out.write('echo ran\n')
        os.chmod(f'{place}/{name}', mode)
    for name, mode in (('closed', 0), ('fixed', 0o555)):
        os.makedirs(f'{place}/{name}/inner')
        with open(f'{place}/{name}/there', 'w', encoding='ascii') as out:
            os.fchmod(out.fileno(), 0o444)
        os.chmod(f'{place}/{name}', mode)
    os.mkdir(f'{place}/bin')
    os.symlink('/bin/true', f'{place}/bin/conda')
    env = {'CONDA_EXE': f'{place}/bin/conda'}
    done = box.mgpu('submit', '--hold', '-g', '0', '--', *words, cwd=place, env=env) if words[0][0] != '-' else \
        box.mgpu('submit', '--hold', '-g', '0', *words, cwd=place, env=env)
    assert done.code == 0 and f'warning: {warning}' in done.err and done.err.count('\n') == 1, done
    assert box.mgpu('submit', '-q', '--hold', '-g', '0', *words, cwd=place).err == ''


@pytest.mark.parametrize(('name', 'text', 'command'), [
    ('train.py', 'print(1)\n', 'python3 ./train.py'), ('fit.R', 'print(1)\n', 'Rscript ./fit.R'), ('run.jl', '#MGPU -t 1h\nprint(1)\n', 'julia ./run.jl'),
    ('good.py', '#!/usr/bin/python3\nprint(1)\n', None), ('job.sh', 'echo ran\n', None), ('job', 'echo ran\n', None)])
def test_a_script_that_sh_would_run_and_is_of_another_language_is_told(box, place, name, text, command):
    with open(f'{place}/{name}', 'w', encoding='ascii') as out:
        out.write(text)
    os.chmod(f'{place}/{name}', 0o777)  # the submitter may write to it, so its text is sent
    done = box.mgpu('submit', '--hold', '-g', '0', f'./{name}', cwd=place)
    assert done.code == 0 and done.err == (f'mgpu: warning: ./{name} names no interpreter; to run it: {command}\n' if command else ''), done


@pytest.mark.parametrize(('before', 'words', 'strays', 'line'), [
    ([], ['python3', '-c', 'pass', '-g', '2'], '-g 2', '-g 2 -- python3 -c pass'),
    (['-J', 'a b'], ['true', '-g2', 'x'], '-g2', "-J 'a b' -g2 -- true x"),
    ([], ['true', '--gpus=2', 'x', '--time', '4h', '-t', '1:00:00'], '--gpus=2 --time 4h', '--gpus=2 --time 4h -- true x -t 1:00:00'),
    ([], ['true', '-M', '64G', '-m', '8G'], '-M 64G -m 8G', '-M 64G -m 8G -- true'),
    ([], ['true', '-G', '0-1', '--preemptible', '--on-timeout', 'requeue'], '-G 0-1 --preemptible --on-timeout requeue',
     '-G 0-1 --preemptible --on-timeout requeue -- true'),
])
@pytest.mark.parametrize('verb', ['submit', 'run'])
def test_an_option_after_the_command_is_told_and_the_command_gets_it(box, place, verb, before, words, strays, line):
    with open(f'{place}/show', 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\nprintf "<%s>" "$@"\n')
    os.chmod(f'{place}/show', 0o755)
    words = ['./show' if word == 'true' else word for word in words]
    done = box.mgpu(verb, *before, *words, cwd=place)
    line = line.replace('true', './show')
    told = f'warning: {strays} after the command is passed to {words[0]}; for mgpu: mgpu {verb} {line}\n'
    assert done.code == 0 and told in done.err, done
    if verb == 'run' and words[0] == './show':
        assert done.out == ''.join(f'<{word}>' for word in words[1:]), done
    for quiet in (['-q', *before], [*before, '--']):
        done = box.mgpu('submit', *quiet, *words, cwd=place)
        assert done.code == 0 and 'after the command' not in done.err, done


@pytest.mark.parametrize('words', [
    ['sh', '-c', 'true'], ['ls', '-a', '.'], ['head', '-c', '4', '/dev/null'], ['true', '-t', '8', '-c', '4', '-M', '3', '-N', '2', '-p', '8080'],
    ['true', '--name', 'x', '--output', 'y', '--time', '5', '--seed', '1', '-J', 'x', '-e', '10'], ['true', '-g', 'verbose', '--gpus', 'all'],
    ['true', '-g'], ['true', '--', '-'], ["true -g 2"],
])
def test_options_that_programs_have_as_well_are_passed_without_a_word(box, words):
    done = box.mgpu('submit', '--hold', '-g', '0', *words)
    assert done.code == 0 and 'after the command' not in done.err, done


@pytest.mark.parametrize('words', [['true'], ['sh', '-c', 'nosuch'], ['nosuch | cat'], ['-E', 'PATH=/x', 'nosuch'],
                                   ['python3', '-c', 'pass'], ['sh', 'there.sh'], ['-C', 'missing', '--chdir-fallback', 'tmp', './x'], ['-e', 'PATH=/x', 'nosuch']])
def test_what_may_work_is_submitted_without_a_warning(box, place, words):
    with open(f'{place}/there.sh', 'w', encoding='ascii') as out:
        out.write('true\n')
    done = box.mgpu('submit', '--hold', '-g', '0', *words, cwd=place)
    assert done.code == 0 and done.err == '', done


def test_run_shows_only_what_this_job_appends_to_its_output(box, ana, place):
    path = f'{place}/old.log'
    for word in ('one', 'two'):
        done = box.mgpu('run', '-g', '0', '-o', 'old.log', '--', 'echo', word, cwd=place, user=ana, check=True)
        assert done.out == f'{word}\n', done
        assert ('old.log exists; the output is appended to it' in done.err) == (word == 'two'), done
    with open(path, encoding='ascii') as source:
        assert source.read() == 'one\ntwo\n'
    assert os.stat(path).st_mode & 0o777 == 0o644


@pytest.mark.parametrize('name', ['x' * 135, '\x01' * 40, 'é' * 100], ids=('long', 'escapes', 'wide'))
def test_a_program_with_a_name_of_any_length_runs_and_its_node_stays_up(box, place, name):
    path = f'{place}/{name}'.encode('utf-8', 'surrogateescape')
    with open(path, 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\nexit 7\n')
    os.chmod(path, 0o755)
    done, job = start(box, '--', os.fsdecode(path))
    assert done.code == 7, done
    assert len(job['name'].encode()) <= 128
    assert box.mgpu('run', '--', 'true').code == 0
    assert 'at most' not in box.log()


def test_run_tells_of_line_ends_that_hide_the_interpreter(box, place):
    with open(f'{place}/crlf.sh', 'wb') as out:
        out.write(b'#!/bin/sh\r\necho ran\r\n')
    os.chmod(f'{place}/crlf.sh', 0o755)
    done = box.mgpu('run', '-g', '0', './crlf.sh', cwd=place)
    assert done.code == 126 and './crlf.sh has Windows line endings' in done.err and r"sed -i 's/\r$//' ./crlf.sh" in done.err, done


@pytest.mark.root
def test_a_lease_is_kept_where_the_run_directory_is_full(make_instance, gate, bell):
    """Also when what is reserved there has been used up."""
    box = make_instance(start=False, arguments=('--node-timeout', '2s', '--node-lease', '4s'))
    os.makedirs(box.run_dir, exist_ok=True)
    assert os.system(f'mount -t tmpfs -o size=4m,mode=755 tmpfs {box.run_dir}') == 0
    try:
        box.start()
        job = box.submit('--requeue-on', 'node-lost', '--', 'sh', '-c',
                         f'echo $$ > {bell.path}; read word < {gate.path}; exit 3')
        pid = int(bell.wait())
        os.truncate(f'{box.run_dir}/spool/reserve', 0)
        with open(f'{box.run_dir}/filler', 'wb', buffering=0) as filler:
            with pytest.raises(OSError, match='No space left'):
                while filler.write(b'x' * 4096):
                    pass
        assert not harness.wait_process(pid, 10), 'the job ended on a healthy node'
        os.unlink(f'{box.run_dir}/filler')
        gate.open()
        done = box.wait(job)
        assert (done['exit_code'], done['attempt']) == (3, 1), done
    finally:
        left = box.shepherds()
        box.stop()
        for pid in left:
            harness.wait_process(pid)  # at the end of its lease at the latest
        assert os.system(f'umount {box.run_dir}') == 0


@pytest.mark.root
def test_a_job_can_be_cancelled_where_the_run_directory_is_full(make_instance):
    """Without space for a verdict a job would be starting for ever, and could not be cancelled."""
    box = make_instance(start=False)
    os.makedirs(box.run_dir, exist_ok=True)
    assert os.system(f'mount -t tmpfs -o size=4m,mode=755 tmpfs {box.run_dir}') == 0
    try:
        box.start()
        with open(f'{box.run_dir}/filler', 'wb', buffering=0) as filler:
            try:
                while filler.write(b'x' * 4096):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
        job, end = box.submit('--', 'true'), time.monotonic() + harness.DEADLINE_S
        while 'No space left on device' not in box.log() and time.monotonic() < end:
            select.select([], [], [], 0.02)
        box.mgpu('cancel', job, check=True)
        assert box.wait(job)['state'] == 'cancelled'
        os.unlink(f'{box.run_dir}/filler')
        assert box.wait(box.submit('--', 'true'))['state'] == 'done'
    finally:
        box.stop()
        assert os.system(f'umount {box.run_dir}') == 0
