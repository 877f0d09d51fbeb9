# SPDX-License-Identifier: MIT
"""Standard input of run, exec and srun: every kind of source arrives whole in every program, and what a job does not
read is left to others, or named."""

import hashlib
import os
import pty
import signal
import subprocess
import threading
import time

import harness
import pytest
import slurm

BINARY = bytes(range(256)) * 40
LARGE = 100_000_000


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.fixture
def host(cluster, gate):
    """A running batch job, for exec and steps."""
    job = cluster.wrap(gate.command()[2])
    cluster.box.wait(job, states='running,done')
    return job


# What goes before a program that reads its standard input.
PROGRAMS = {
    'run': 'mgpu run -q -g 0 --',
    'exec': 'mgpu exec $HOST --',
    'srun': 'srun',
    'srun --input=all': 'srun --input=all',
    'srun --input=0': 'srun --input=0',
    'srun -n2 --input=1': 'srun -n2 --input=1',
    'srun --jobid': 'srun --jobid=$HOST --overlap',
    'srun in a job': 'mgpu exec -e PATH="$PATH" $HOST -- srun --overlap',
    'srun -n2 in a job': 'mgpu exec -e PATH="$PATH" $HOST -- srun -n2 --overlap --input=0',
    'mgpu_srun --interactive': 'mgpu_srun --interactive --gpu-ids 7 --',
}


class Shell:
    """bash lines with mgpu, Slurm's commands and the names of PROGRAMS in its PATH."""

    def __init__(self, cluster, host):
        self.cluster = cluster
        self.environment = {**cluster.environment(), 'HOST': str(host)}
        self.environment['PATH'] = f'{cluster.folder}:{harness.programs()}:/usr/local/bin:/usr/bin:/bin'
        os.symlink(f'{harness.programs()}/mgpu-compat', f'{cluster.folder}/mgpu_srun')

    def popen(self, line, **options):
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        return subprocess.Popen(['/bin/bash', '-c', line], cwd=self.cluster.place, env=self.environment,
                                **self.cluster.box.client.popen_arguments(), **options)

    def run(self, line, input=None, timeout_s=harness.DEADLINE_S, **options):
        """(output, errors) of a line that succeeds."""
        if input is not None:
            options['stdin'] = subprocess.PIPE
        process = self.popen(line, **options)
        out, err = process.communicate(input, timeout=timeout_s)
        assert process.returncode == 0, (line, process.returncode, out[-500:], err[-1500:])
        assert not harness.SANITIZER.search(err.decode(errors='replace')), err.decode(errors='replace')
        return out, err.decode()

    def file(self, name, content):
        path = os.path.join(self.cluster.place, name)
        with open(path, 'wb') as file:
            file.write(content)
        os.chmod(path, 0o644)
        return path


@pytest.fixture
def shell(cluster, host):
    return Shell(cluster, host)


@pytest.mark.parametrize('program', PROGRAMS)
def test_all_of_every_source_arrives(shell, program):
    command = PROGRAMS[program]
    shell.file('binary', BINARY)
    shell.file('unended', b'a\nb')
    for source, expected in (
            (f'{command} cat < binary', BINARY),
            (f'cat binary | {command} cat', BINARY),
            (f'{command} cat < unended', b'a\nb'),
            (f'(echo one; sleep 0.1; echo two) | {command} cat', b'one\ntwo\n'),
            (f'{command} cat <<E\nhere\ndocument\nE', b'here\ndocument\n'),
            (f'{command} cat <<< word', b'word\n'),
            (f'{command} cat < <(echo process)', b'process\n'),
            (f'exec 5< binary; head -c 100 <&5 >/dev/null; tail -c +101 binary | cmp - <({command} cat <&5)', b''),
            (f'{command} head -c 5 < /dev/zero', b'\0' * 5),
            (f'{command} cat < /dev/null', b''),
            (f'{command} cat <&-', b''),
            (f': | {command} cat', b'')):
        out, err = shell.run(source)
        assert out == expected, (source, out[:200], err)


@pytest.mark.parametrize('program', ['run', 'exec', 'srun'])
@pytest.mark.parametrize('source', ['< large', 'a pipe'])
def test_a_hundred_megabytes_arrive_unchanged(shell, program, source):
    content = os.urandom(1_000_000) * (LARGE // 1_000_000)
    shell.file('large', content)
    line = f'cat large | {PROGRAMS[program]} md5sum' if source == 'a pipe' else f'{PROGRAMS[program]} md5sum < large'
    out, _ = shell.run(line, timeout_s=120)
    assert out.split()[0].decode() == hashlib.md5(content).hexdigest()


@pytest.mark.parametrize('program', ['run', 'exec', 'srun', 'srun in a job'])
def test_a_loop_over_the_lines_of_a_file_loses_none(shell, program):
    shell.file('list', b'1\n2\n3\n4\n')
    command = PROGRAMS[program]
    out, _ = shell.run(f'while read line; do {command} echo got $line; done < list')
    assert out == b'got 1\ngot 2\ngot 3\ngot 4\n'
    out, _ = shell.run(f'while read line; do {command} sh -c "read next; echo $line then \\$next"; done < list')
    assert out == b'1 then 2\n3 then 4\n'


@pytest.mark.parametrize('command', ['mgpu run -q -g 0 --no-input --', 'mgpu exec --no-input $HOST --',
                                     'srun --input=none'])
def test_without_input_a_loop_over_a_pipe_loses_nothing_and_a_reader_gets_end_of_file(shell, command):
    out, err = shell.run(f'printf "1\\n2\\n3\\n" | while read line; do {command} sh -c "cat; echo got $line"; done')
    assert (out, err) == (b'got 1\ngot 2\ngot 3\n', '')


@pytest.mark.parametrize('program', ['run', 'exec'])
def test_lines_of_a_pipe_that_were_read_for_nothing_are_named(shell, program):
    out, err = shell.run(f'printf "1\\n2\\n3\\n" | while read line; do {PROGRAMS[program]} '
                         f'sh -c "sleep 0.5; echo got $line"; done')
    assert out == b'got 1\n'
    assert '4 bytes of standard input were read ahead and not used; --no-input leaves them to other commands' in err


@pytest.mark.parametrize('program', ['run', 'exec', 'srun'])
def test_a_reader_that_closes_early_ends_the_writer(shell, program):
    out, _ = shell.run(f'yes | {PROGRAMS[program]} head -n 1; test ${{PIPESTATUS[0]}} = 141')
    assert out == b'y\n'


@pytest.mark.parametrize('program', ['run', 'exec', 'srun', 'srun -n2 --input=1'])
def test_an_input_that_never_ends_does_not_delay_the_end(shell, program):
    read, write = os.pipe()
    process = shell.popen(f'{PROGRAMS[program]} true', stdin=read)
    os.close(read)
    try:
        assert process.wait(harness.DEADLINE_S) == 0, process.stderr.read()
    finally:
        os.close(write)


def test_srun_reads_a_terminal(shell):
    leader, follower = pty.openpty()
    process = shell.popen('exec setsid -c srun sh -c "read line; echo read: \\$line"', stdin=follower, stderr=follower)
    os.close(follower)
    os.write(leader, b'typed\n')
    assert process.communicate(timeout=harness.DEADLINE_S)[0] == b'read: typed\n'
    os.close(leader)


def start_counting(box, place, *options, **more):
    """A run whose input is a pipe; it prints "began", then the number of bytes."""
    process = box.popen('run', '-g', 0, *options, '--', 'sh', '-c', 'echo began; exec wc -c', cwd=place,
                        stdin=subprocess.PIPE, **more)
    assert process.stdout.readline() == b'began\n'
    return process


def only_job(box, states='running'):
    jobs = box.api('GET', f'/jobs?state={states}').json['jobs']
    return max(job['id'] for job in jobs)


def test_input_goes_on_where_it_was_when_mgpud_restarts(make_instance, place):
    box = make_instance()
    process = start_counting(box, place)
    process.stdin.write(b'x' * 300_000)
    process.stdin.flush()
    box.kill()
    # The pipe may still be too full for these, and is read again only when mgpud is back.
    writer = threading.Thread(target=process.stdin.write, args=(b'y' * 50_000,))
    writer.start()
    box.start()
    writer.join(harness.DEADLINE_S)
    assert not writer.is_alive(), 'the input is not read again'
    process.stdin.write(b'z' * 300_000)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (0, b'650000\n'), err


@pytest.mark.parametrize('source', ['file', 'pipe'])
def test_a_later_attempt_gets_the_whole_input_again(box, place, bell, source):
    content = b'line\n' * 20_000
    path = os.path.join(place, 'content')
    with open(path, 'wb') as file:
        file.write(content)
    os.chmod(path, 0o644)
    script = f'wc -c; if [ $MGPU_ATTEMPT = 1 ]; then echo > {bell.path}; exec sleep 1000; fi'
    with open(path, 'rb') as file:
        process = box.popen('run', '-g', 0, '--', 'sh', '-c', script, cwd=place,
                            stdin=file if source == 'file' else subprocess.PIPE)
        if source == 'pipe':
            process.stdin.write(content)
            process.stdin.close()
            process.stdin = None
        bell.wait()
        box.mgpu('requeue', only_job(box), check=True)
        out, err = process.communicate(timeout=harness.DEADLINE_S)
    assert (process.returncode, out.split()) == (0, [b'100000', b'100000']), err


def test_a_pipe_too_long_to_be_sent_again_ends_the_job_with_a_sentence(box, place, bell):
    script = f'head -c 70000000 > /dev/null; echo > {bell.path}; exec cat > /dev/null'
    process = box.popen('run', '-g', 0, '--', 'sh', '-c', script, cwd=place, stdin=subprocess.PIPE)
    for _ in range(72):
        process.stdin.write(b'x' * 1_000_000)
    bell.wait()
    job = only_job(box)
    box.mgpu('requeue', job, check=True)
    ended = box.wait(job, timeout_s=harness.DEADLINE_S)
    process.stdin.close()
    process.stdin = None
    _, err = process.communicate(timeout=harness.DEADLINE_S)
    assert ended['state'] == 'cancelled', ended
    assert b'of its standard input cannot be sent again: it is cancelled' in err, err


def test_the_log_says_that_the_command_that_sent_the_input_is_gone(box, place):
    process = start_counting(box, place, '--ctrl-c', 'detach')
    process.stdin.write(b'x' * 1000)
    process.stdin.flush()
    job = only_job(box)
    # Until the job has them, they are only in the pipe.
    harness.until(lambda: is_read(process.stdin.fileno()), 'the sender has not read its input')
    process.send_signal(signal.SIGINT)
    assert process.wait(harness.DEADLINE_S) == 0
    assert box.wait(job)['exit_code'] == 0
    out = box.output(job)
    assert 'mgpu: standard input ended after 1000 bytes: the command that sent it is gone' in out, out
    assert out.splitlines()[-1] == '1000', out


def is_read(pipe):
    import fcntl
    import struct
    import termios
    return struct.unpack('i', fcntl.ioctl(pipe, termios.FIONREAD, b'\0' * 4))[0] == 0


def test_a_killed_client_ends_the_input(box, place):
    process = start_counting(box, place)
    job = only_job(box)
    process.kill()
    process.wait(harness.DEADLINE_S)
    ended = box.wait(job)
    assert ended['state'] in ('done', 'cancelled'), ended
    assert 'mgpu: standard input ended after 0 bytes' in box.output(job) or ended['state'] == 'cancelled'


@pytest.mark.parametrize('verb', [('submit',), ('run', '-d')])
def test_a_command_that_does_not_wait_names_a_file_that_it_does_not_pass_on(box, place, verb):
    path = os.path.join(place, 'deck')
    with open(path, 'wb') as file:
        file.write(b'one\ntwo\n')
    with open(path, 'rb') as file:
        done = box.mgpu(*verb, '-g', 0, '--', 'cat', stdin=file)
    assert done.code == 0 and 'standard input is not passed to a job that is not waited for' in done.err, done
    with open(path, 'rb') as file:
        os.lseek(file.fileno(), 4, os.SEEK_SET)  # as in a shell's loop over its lines
        done = box.mgpu(*verb, '-g', 0, '--', 'true', stdin=file)
        assert done.code == 0 and done.err == '' and os.lseek(file.fileno(), 0, os.SEEK_CUR) == 4, done


@pytest.mark.parametrize('words, sentence', [
    (('submit', '--input', '-', '-g', 0, 'cat'), 'is passed on by a command that waits for the job'),
    (('run', '-d', '--input', '-', '-g', 0, 'cat'), 'is passed on by a command that waits for the job'),
    (('run', '-T', '--input', '-', '-g', 0, 'cat'), 'is passed on by a command that waits for the job'),
    (('run', '--no-input', '--input', '-', '-g', 0, 'cat'), 'exclude each other'),
])
def test_input_that_cannot_be_passed_on_is_refused(box, words, sentence):
    done = box.mgpu(*words)
    assert done.code in (2, 125) and sentence in done.err, done


def test_the_api_refuses_to_send_one_input_to_a_terminal_or_to_many(box):
    for fields in ({'tty': True}, {'array': '0-1'}):
        answer = box.api('POST', '/jobs', {'command': ['cat'], 'gpus': 0, 'input': '-', **fields})
        assert answer.status == 400 and 'input' in answer.json['detail'], answer


@pytest.mark.root
def test_only_the_owner_sends_input(box, place, bo):
    process = start_counting(box, place)
    upgrade = {'Connection': 'Upgrade', 'Upgrade': 'mgpu-terminal'}
    answer = box.api('GET', f'/jobs/{only_job(box)}/input', user=bo, headers=upgrade)
    assert answer.status == 403, answer
    assert process.communicate(b'abc', timeout=harness.DEADLINE_S)[0] == b'3\n'


def test_a_job_without_sent_input_has_none_to_send(box, gate):
    job = box.submit('-g', 0, '--', *gate.command())
    box.wait(job, states='running,done')
    answer = box.api('GET', f'/jobs/{job}/input', headers={'Connection': 'Upgrade', 'Upgrade': 'mgpu-terminal'})
    assert answer.status == 400 and 'is not sent by a client' in answer.json['detail'], answer
