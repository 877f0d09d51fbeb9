# SPDX-License-Identifier: MIT
"""Terminals of jobs, through a real one (tmux): what a person sees, and what survives."""

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

import harness
import pytest

DEADLINE_S = harness.DEADLINE_S
pytestmark = [pytest.mark.skipif(shutil.which('tmux') is None, reason='no tmux here'),
              pytest.mark.skipif(not harness.HAS_TERMINALS, reason='no pseudoterminals here (devpts)')]


class Screen:
    """One tmux of its own with one window, in which `mgpu ARGUMENTS` runs."""

    def __init__(self, box, place, columns=100, rows=30):
        self.box, self.socket = box, f'{place}/tmux-{time.monotonic_ns()}'
        self.size = ['-x', str(columns), '-y', str(rows)]
        self.environment = dict(os.environ, LANG='C.UTF-8', TERM='xterm-256color', HOME=box.client.home, SHELL='/bin/sh')
        self.mark = 0

    def tmux(self, *arguments):
        return subprocess.run(['tmux', '-S', self.socket, '-f', '/dev/null', *arguments], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S,
                              **self.box.client.popen_arguments()).stdout

    def run(self, *arguments):
        """Runs mgpu; "over N" with its status N appears after it."""
        words = ' '.join(f"'{word}'" for word in [f'{harness.programs()}/mgpu', *map(str, arguments)])
        script = f'{self.socket}.sh'
        with open(script, 'w', encoding='utf-8') as file:
            file.write(f'export MGPU_SOCKET={self.box.socket} ASAN_OPTIONS=exitcode=99 MGPU_PAGER=cat; cd /tmp; trap : INT\n'
                       f'{words}\necho "over $?"; read forever\n')
        os.chmod(script, 0o755)
        out = self.tmux('new-session', '-d', *self.size, 'sh', script)
        assert out == '', out
        return self

    def text(self, *options):
        return self.tmux('capture-pane', '-p', *options)

    def wait(self, pattern, *options):
        """Until the screen matches; the match."""
        end = time.monotonic() + DEADLINE_S
        while True:
            text = self.text(*options)
            found = re.search(pattern, text, re.M)
            if found:
                return found
            assert time.monotonic() < end, f'{pattern!r} did not appear:\n{text}\n{self.box.log()[-2000:]}'
            self.next_change()

    def next_change(self):
        """A screen has no event to wait for: a look every 20 ms."""
        select.select([], [], [], 0.02)

    def type(self, *keys):
        self.tmux('send-keys', *keys)

    def client(self):
        """Pid of the mgpu in it."""
        shell = self.tmux('list-panes', '-F', '#{pane_pid}').strip()
        with open(f'/proc/{shell}/task/{shell}/children', encoding='ascii') as file:
            return int(file.read().split()[0])

    def close(self):
        self.tmux('kill-server')


@pytest.fixture
def screen(box, place):
    made = []

    def make(*arguments, **options):
        made.append(Screen(box, place, **options).run(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def last_job(box):
    return max(job['id'] for job in box.api('GET', '/jobs?all=1').json['jobs'])


def job_of(box, script, *options):
    job = box.submit('-g', 0, '-T', *options, '--', 'sh', '-c', script)
    box.wait(job, 'running')
    return job


def test_run_on_a_terminal_has_one_of_the_same_size_and_keeps_colours(box, screen):
    one = screen('run', '-g', 0, '--', 'sh', '-c', 'stty size; printf "\\033[31mred\\033[0m\\n"; exit 3')
    one.wait(r'^over 3')
    assert re.search(r'^30 100$', one.text(), re.M), one.text()
    assert '\x1b[31mred' in one.text('-e')
    assert 'failed in' in one.text()
    job = last_job(box)
    assert box.output(job) == '30 100\r\n\x1b[31mred\x1b[0m\r\n', 'the log has every byte'


def test_logs_are_plain_when_they_are_piped_and_raw_on_demand(box):
    job = job_of(box, 'printf "\\033[31mred\\033[0m\\n"')
    box.wait(job)
    assert box.mgpu('logs', job).out == 'red\n'
    assert box.mgpu('logs', '--raw', job).out == '\x1b[31mred\x1b[0m\r\n'


def test_no_tty_and_a_pipe_have_none(box, screen):
    screen('run', '-g', 0, '--no-tty', '--', 'sh', '-c', 'test -t 1 || echo plain').wait(r'^plain\n.*\n?over 0')
    done = box.mgpu('run', '-g', 0, '--', 'sh', '-c', 'test -t 1 || echo plain')
    assert done.out == 'plain\n'


def test_a_terminal_without_one_here(box):
    done = box.mgpu('run', '-g', 0, '-T', '--', 'sh', '-c', 'test -t 0 && test -t 1 && stty size')
    assert done.out == '24 80\r\n' and done.code == 0, done
    done = box.mgpu('run', '-g', 0, '-i', '--', 'sh', '-c', 'stty -echo; echo up; cat', input=b'piped\n')
    assert done.out.endswith('piped\r\n') and done.code == 0, done


def test_a_resize_reaches_the_job(box, screen):
    one = screen('run', '-g', 0, '--', 'sh', '-c', 'trap "stty size" WINCH; echo up; while :; do read x && break; done')
    one.wait(r'^up')
    one.tmux('resize-window', '-x', '77', '-y', '22')
    one.wait(r'^22 77$')
    one.type('Enter')
    one.wait(r'^over 0')


def test_keys_go_to_the_job_and_ctrl_c_is_one(box, screen):
    one = screen('run', '-g', 0, '--', 'sh', '-c', 'trap "echo trapped; exit 7" INT; echo up; while :; do read x; echo "<$x>"; done')
    one.wait(r'^up')
    one.type('word', 'Enter')
    one.wait(r'^<word>')
    one.type('C-c')
    one.wait(r'trapped')
    one.wait(r'^over 7')


def test_detach_leaves_it_running_and_attach_comes_back(box, screen):
    one = screen('run', '-g', 0, '--', 'sh', '-c', 'echo up; read x; echo "<$x>"; exit 5')
    one.wait(r'^up')
    one.type('C-]')
    one.type('d')
    one.wait(r'^over 0')
    job = last_job(box)
    assert f'mgpu attach {job}' in one.text()
    assert box.job(job)['state'] == 'running'
    two = screen('attach', job)
    two.wait(r'^up')
    two.type('back', 'Enter')
    two.wait(r'^<back>')
    two.wait(r'^over 5')


def test_the_prefix_passes_after_a_second_and_with_unknown_keys(box, screen):
    one = screen('run', '-g', 0, '--', 'sh', '-c', 'stty raw -echo; echo up; head -c 3 | od -An -tx1; stty sane')
    one.wait(r'^up')
    one.type('C-]')
    one.type('x')
    one.type('C-]')  # nothing follows: passed on when a second is over
    one.wait(r'1d 78 1d')
    one.wait(r'^over 0')


def test_detach_keys_of_ones_own(box, screen):
    one = screen('run', '-g', 0, '--detach-keys', 'ctrl-p,ctrl-q', '--', 'sh', '-c', 'echo up; read x')
    one.wait(r'^up')
    one.type('C-p', 'C-q')
    one.wait(r'detached')
    one.wait(r'^over 0')
    done = box.mgpu('run', '--detach-keys', 'ctrl-1', '--', 'true')
    assert done.code == 125 and 'is not a key' in done.err


def test_the_menu_says_the_state_and_cancels_when_it_is_told_twice(box, screen):
    one = screen('run', '-g', 0, '-J', 'mine', '--', 'sh', '-c', 'echo up; read x')
    one.wait(r'^up')
    one.type('C-]', '?')
    one.wait(r'd detach')
    one.type('C-]', 's')
    one.wait(r'\(mine\) running for')
    one.type('C-]', 'l')
    one.wait(r'^up\n(.*\n)*up')
    one.type('C-]', 'k')
    one.wait(r'y to cancel')
    one.type('n')
    one.wait(r'not cancelled')
    one.type('C-]', 'k')
    one.wait(r'y to cancel')
    one.type('y')
    one.wait(r'^over 143')


def test_two_look_and_only_one_types(box, screen):
    job = job_of(box, 'echo up; read x; echo "<$x>"; read y')
    one, two = screen('attach', job), screen('attach', '-r', job)
    one.wait(r'^up')
    two.wait(r'^up')
    viewers = box.job(job)['viewers']
    assert [viewer['read_only'] for viewer in sorted(viewers, key=lambda v: v['read_only'])] == [False, True]
    two.type('no', 'Enter')
    one.type('yes', 'Enter')
    one.wait(r'^<yes>')
    two.wait(r'^<yes>')
    two.type('C-]', 'd')
    two.wait(r'^over 0')
    one.type('Enter')
    one.wait(r'^over 0')


def test_attach_without_a_terminal_shows_the_output(box, gate, screen):
    job = box.post_job(['sh', '-c', f'echo plain; read x < {gate.path}'])
    box.wait(job, 'running')
    one = screen('attach', job)
    one.wait(r'has no terminal')
    one.wait(r'^plain')
    one.type('C-c')
    one.wait(r'^over 0')
    assert box.job(job)['state'] == 'running'
    gate.open()


def test_attach_to_what_does_not_run_is_6(box, gate):
    assert box.mgpu('attach', 999999).code == 3
    job = box.post_job(['true'])
    box.wait(job)
    done = box.mgpu('attach', job)
    assert done.code == 6 and 'already ended' in done.err, done
    held = box.submit('--hold', '-T', '--', 'true')
    done = box.mgpu('attach', held)
    assert done.code == 6 and 'not running yet' in done.err, done


def test_the_job_survives_the_death_of_its_client(box, screen):
    one = screen('run', '-g', 0, '--', 'sh', '-c', 'echo up; read x; echo "<$x>"; exit 5')
    one.wait(r'^up')
    job = last_job(box)
    os.kill(one.client(), signal.SIGKILL)
    one.wait(r'over 137')  # not at the start of a line: nobody put the terminal back
    two = screen('attach', job)
    two.wait(r'^up')
    two.type('again', 'Enter')
    two.wait(r'^over 5')


@pytest.mark.parametrize('victim', ['mgpud', 'agent'])
def test_the_terminal_survives_the_death_of_a_daemon(make_instance, place, victim):
    box = make_instance(gpus='sim:2x24G')
    one = Screen(box, place).run('run', '-g', 0, '--', 'sh', '-c',
                                 'n=0; while read x; do n=$((n+1)); echo "$n<$x>"; done')
    try:
        one.wait(r'', )
        while not box.api('GET', '/jobs?state=running').json['jobs']:
            one.next_change()
        one.type('a', 'Enter')
        one.wait(r'^1<a>')
        if victim == 'mgpud':
            box.kill()
            box.start()
        else:
            worker = max(box.agents())
            os.kill(worker, signal.SIGKILL)
            assert harness.wait_process(worker)
        one.type('b', 'Enter')
        one.wait(r'^2<b>')
        assert len(re.findall(r'^1<a>', one.text(), re.M)) == 1, 'nothing is shown twice'
        two = Screen(box, place).run('attach', '@')
        try:
            two.wait(r'^2<b>')
            two.type('c', 'Enter')
            one.wait(r'^3<c>')
            two.type('C-d')
            one.wait(r'^over 0')
            two.wait(r'^over 0')
        finally:
            two.close()
    finally:
        one.close()


def test_who_loses_his_terminal_is_hung_up_on(box):
    """The one process whose death the job feels, as on any terminal."""
    job = job_of(box, 'echo up; exec sleep 4323')
    raw = Raw(box, f'/jobs/{job}/terminal?position=0')
    raw.until(b'up')
    for pid in harness.processes(f'/spool/{job}.'):
        with open(f'/proc/{pid}/comm', encoding='ascii') as comm:
            if comm.read() == 'mgpu-terminal\n':
                os.kill(pid, signal.SIGKILL)
    ended = box.wait(job)
    assert (ended['ended_by'], ended['signal']) == ('signal', signal.SIGHUP)
    raw.close()


def test_shell_is_a_shell_with_gpus_for_two_hours(box, screen):
    one = screen('shell', '-g', 1)
    one.wait(r'^\$')
    one.type('echo "gpus=$MGPU_NUM_GPUS"', 'Enter')
    one.wait(r'^gpus=1')
    assert box.job(last_job(box))['time_limit_s'] == 7200
    one.type('exit 4', 'Enter')
    one.wait(r'^over 4')


def test_a_waiting_run_shows_its_keys_and_d_leaves_it(box, gate, screen):
    blocker = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(blocker, 'running')
    one = screen('run', '--', 'true', columns=80)
    one.wait(r'queued.*d detach, w why, Ctrl-C cancel')
    one.type('w')
    one.wait(r'has waited')
    one.type('d')
    one.wait(r'^over 0')
    job = last_job(box)
    assert box.job(job)['state'] == 'queued'
    gate.open()
    box.wait(job)


def test_the_next_attempt_is_joined_too(box, gate, screen):
    every = len(box.gpus())
    one = screen('run', '--preemptible', '-g', every, '--', 'sh', '-c', 'echo "attempt $MGPU_ATTEMPT"; read x; exit 3')
    one.wait(r'^attempt 1')
    other = box.post_job(gate.command(), gpus=every)
    one.wait(r'requeued')
    box.wait(other, 'running')
    gate.open()
    one.wait(r'^attempt 2')
    one.type('Enter')
    one.wait(r'^over 3')


# --- Ctrl-C without a terminal ---

def press(process):
    process.send_signal(signal.SIGINT)


def test_ctrl_c_is_passed_on_then_asks_then_kills(box, bell):
    process = box.popen('run', '-g', 0, '--', 'sh', '-c', f'trap "echo int > {bell.path}" INT; trap "echo term > {bell.path}" TERM;'
                        f'echo up > {bell.path}; while :; do read x < /dev/null; done')
    assert bell.wait() == 'up'
    assert b'started' in process.stderr.readline()
    press(process)
    assert bell.wait() == 'int'
    assert b'received SIGINT' in process.stderr.readline()
    press(process)
    assert bell.wait() == 'term'
    assert b'is stopping' in process.stderr.readline()
    press(process)
    assert b'is being killed' in process.stderr.readline()
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130


def test_ctrl_c_can_detach_and_cancel(box, bell, gate):
    for word, code, states in (('detach', 0, 'running'), ('cancel', 130, 'cancelled')):
        process = box.popen('run', '-g', 0, '--ctrl-c', word, '--', 'sh', '-c', f'echo up > {bell.path}; read x < {gate.path}')
        bell.wait()
        assert b'started' in process.stderr.readline()
        press(process)
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == code
        assert box.job(last_job(box))['state'] == states
    gate.open()
    assert box.mgpu('run', '--ctrl-c', 'sometimes', '--', 'true').code == 125


# --- exec ---

def test_exec_runs_in_the_job_with_its_user_gpus_and_exit_status(box, gate):
    job = box.post_job(['sh', '-c', f'echo $CUDA_VISIBLE_DEVICES; read x < {gate.path}'], gpus=1, env={'OWN': 'x'})
    box.wait(job, 'running')
    follow = box.popen('logs', '-f', job)
    where = follow.stdout.readline().decode().strip()
    follow.kill()
    follow.communicate()
    done = box.mgpu('exec', job, '--', 'sh', '-c', 'id -un; echo "$CUDA_VISIBLE_DEVICES $OWN $MGPU_JOB_ID"; cat; echo bad >&2; exit 9',
                    input=b'through\n')
    assert done.out == f'{box.client.name}\n{where} x {job}\nthrough\n'
    assert done.err == 'bad\n' and done.code == 9
    gate.open()
    assert box.wait(job)['state'] == 'done', 'the end of an exec is not the end of its job'


# A stream that does not say what it is for is closed after 10 s: the silence is what is tested, after bytes that were read.
SILENT = ['sh', '-c', 'echo a; sleep 1; echo b; sleep 11; echo c']


@pytest.mark.parametrize('verb', ['run', 'exec'])
@pytest.mark.parametrize('words, out', [(('echo a | tr a b',), 'b\n'), (('echo', 'a | tr a b'), 'a | tr a b\n'), (('echo $((1+1)); exit 0',), '2\n'), (('true',), '')])
def test_a_single_word_for_a_shell_is_run_by_one(box, gate, verb, words, out):
    job = box.submit('-g', '0', '--', *gate.command())
    box.wait(job, 'running')
    ask = ['exec', job, '--'] if verb == 'exec' else ['run', '-q', '-g', '0', '--']
    assert box.mgpu(*ask, *words, check=True).out == out
    gate.open()


def test_exec_may_be_silent(box, gate):
    job = box.submit('-g', '0', '--', *gate.command())
    box.wait(job, 'running')
    assert box.mgpu('exec', job, '--', *SILENT, check=True).out.split() == ['a', 'b', 'c']
    gate.open()
    box.wait(job)


def test_a_followed_job_may_be_silent(box):
    assert box.mgpu('run', '-g', '0', '--', *SILENT, check=True).out.split() == ['a', 'b', 'c']


def test_exec_on_a_terminal(box, gate, screen):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    one = screen('exec', job, '--', 'sh', '-c', 'stty size; read x; echo "<$x>"; kill -TERM $$')
    one.wait(r'^30 100')
    one.type('hello', 'Enter')
    one.wait(r'^<hello>')
    one.wait(r'^over 143')
    gate.open()


def test_a_command_that_cannot_be_executed_is_named_once_in_the_output(screen):
    one = screen('run', '-g', '0', '--', 'nosuchcmd')
    text = one.wait(r'^over 127').string
    assert len(re.findall(r'^mgpu: cannot execute nosuchcmd', text, re.M)) == 1, text
    assert 'did not start, exit 127: cannot execute nosuchcmd' in text


def test_exec_that_cannot_be(box, gate, bo):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    done = box.mgpu('exec', job, '--', 'nosuchcmd')
    assert done.code == 127 and done.err == 'mgpu: cannot execute nosuchcmd: No such file or directory\n', done
    assert box.mgpu('exec', job, '--', '/etc/passwd').code == 126
    assert box.mgpu('exec', job).code == 2
    assert box.mgpu('exec', '-C', 'relative', job, 'true').code == 2
    assert box.mgpu('exec', 999999, 'true').code == 3
    if harness.IS_ROOT:
        done = box.mgpu('exec', job, 'true', user=bo)
        assert done.code == 4 and 'only its owner' in done.err
    gate.open()
    box.wait(job)
    assert box.mgpu('exec', job, 'true').code == 6
    held = box.submit('--hold', '--', 'true')
    assert box.mgpu('exec', held, 'true').code == 6


def test_exec_ends_with_its_job_and_with_its_client(box, gate):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    first = box.popen('exec', job, '--', 'sh', '-c', 'echo up; exec sleep 4321')
    assert first.stdout.readline() == b'up\n'
    second = box.popen('exec', job, '--', 'sh', '-c', 'echo $$; exec sleep 4322')
    pid = int(second.stdout.readline())
    second.kill()
    second.communicate()
    assert harness.wait_process(pid), 'it is hung up on'
    box.mgpu('cancel', job, check=True)
    told = first.communicate(timeout=DEADLINE_S)
    assert first.returncode in (137, 143), told
    box.wait(job)
    assert not [line for line in harness.processes('sleep 4321').values() if line.startswith('sleep')]


def test_exec_hears_ctrl_c(box, gate):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    process = box.popen('exec', job, '--', 'sh', '-c', 'trap "echo caught; exit 3" INT; echo up; while :; do read x; done')
    assert process.stdout.readline() == b'up\n'
    press(process)
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert out == b'caught\n' and process.returncode == 3
    gate.open()


def test_exec_outlives_an_agent_and_leaves_nothing(make_instance, gate):
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    process = box.popen('exec', job, '--', 'sh', '-c', 'echo up; read x; echo "<$x>"', stdin=subprocess.PIPE)
    assert process.stdout.readline() == b'up\n'
    worker = max(box.agents())
    os.kill(worker, signal.SIGKILL)
    assert harness.wait_process(worker)
    out, _ = process.communicate(b'on\n', timeout=DEADLINE_S)
    assert out == b'<on>\n' and process.returncode == 0
    gate.open()
    box.wait(job)
    end = time.monotonic() + DEADLINE_S
    while [name for name in os.listdir(f'{box.run_dir}/spool') if name.startswith(f'{job}.')]:
        assert time.monotonic() < end, os.listdir(f'{box.run_dir}/spool')
        select.select([], [], [], 0.02)


# --- the API ---

class Raw:
    """A client of the API's terminal, by hand."""

    def __init__(self, box, path, method='GET', body=b'', user=None, headers='Connection: Upgrade\r\nUpgrade: mgpu-terminal\r\n'):
        connection = box.connection(user)
        connection.connect()
        self.sock = connection.sock
        self.sock.sendall(f'{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n'.encode() + body)
        self.data = b''
        while b'\r\n\r\n' not in self.data:
            self.more()
        head, _, self.data = self.data.partition(b'\r\n\r\n')
        self.head = head.decode()
        self.status = int(self.head.split()[1])

    def more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise EOFError(self.data)
        self.data += piece

    def frame(self):
        while len(self.data) < 4 or len(self.data) < 4 + int.from_bytes(self.data[1:4], 'big'):
            self.more()
        length = int.from_bytes(self.data[1:4], 'big')
        kind, payload, self.data = self.data[:1], self.data[4:4 + length], self.data[4 + length:]
        return kind, payload

    def send(self, kind, payload=b''):
        self.sock.sendall(kind + len(payload).to_bytes(3, 'big') + payload)

    def until(self, text):
        seen = b''
        while text not in seen:
            kind, payload = self.frame()
            seen += payload if kind == b'o' else b''
        return seen

    def close(self):
        self.sock.close()


def test_the_frames_are_as_documented(box):
    job = job_of(box, 'echo up; read x; echo "<$x>"; exit 5')
    raw = Raw(box, f'/jobs/{job}/terminal?rows=20&columns=60&position=0')
    assert raw.status == 101 and 'Upgrade: mgpu-terminal' in raw.head
    assert raw.frame() == (b'p', bytes(8))
    raw.until(b'up\r\n')
    raw.send(b'w', struct.pack('>HH', 25, 75))
    raw.send(b'i', b'hi\n')
    raw.until(b'<hi>\r\n')
    assert raw.frame() == (b'x', struct.pack('>i', 5))
    with pytest.raises(EOFError):
        raw.frame()
    raw.close()


@pytest.mark.parametrize('headers', ['', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'])
def test_what_asks_for_no_terminal_is_refused(box, headers):
    job = job_of(box, 'read x')
    raw = Raw(box, f'/jobs/{job}/terminal', headers=headers)
    assert raw.status == 400
    raw.close()


@pytest.mark.parametrize('query', ['rows=-1', 'rows=5000', 'columns=x', 'position=-5', 'read_only=2', 'what=1'])
def test_a_bad_query_is_400(box, query):
    job = job_of(box, 'read x')
    raw = Raw(box, f'/jobs/{job}/terminal?{query}')
    assert raw.status == 400, raw.head
    raw.close()


def test_nonsense_ends_the_connection_and_not_the_job(box):
    """A frame that a newer version may know is none: it is passed over."""
    job = job_of(box, 'echo up; read x')
    for junk in (b'\xff' * 5000, b'i\xff\xff\xff', b'?\0\0\1x' + b'i\xff\xff\xff'):
        raw = Raw(box, f'/jobs/{job}/terminal?position=0')
        raw.until(b'up')
        raw.sock.sendall(junk)
        with contextlib.suppress(ConnectionResetError):
            with pytest.raises(EOFError):
                while True:
                    raw.frame()
        raw.close()
    assert box.job(job)['state'] == 'running'


def test_a_client_that_stops_reading_stalls_nobody(box, gate):
    """The job writes 100 MB, one who attached reads nothing: the job ends, others are served meanwhile, and nobody keeps it
    in memory."""
    def resident_bytes():
        with open(f'/proc/{box.process.pid}/status', encoding='ascii') as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith('VmRSS'))

    job = job_of(box, f'read x < {gate.path}; head -c 100000000 /dev/zero | tr "\\0" x; echo; echo finished')
    stalled = Raw(box, f'/jobs/{job}/terminal?position=0')
    before = resident_bytes()
    gate.open()
    assert box.mgpu('run', '-g', 0, 'true').code == 0
    assert box.job(job)['state'] == 'running', 'the job above ran while this one wrote'
    assert box.wait(job)['state'] == 'done'
    assert resident_bytes() - before < 30_000_000
    assert box.job(job)['log_bytes'] >= 100_000_000
    assert box.mgpu('logs', '-n', 1, job).out == 'finished\n'
    stalled.close()


@pytest.mark.root
def test_only_the_owner_uses_a_terminal(box, ana, bo):
    root = harness.User('root')
    job = job_of(box, 'read x')
    for user in (bo, root):
        raw = Raw(box, f'/jobs/{job}/terminal', user=user)
        assert raw.status == 403
        raw.close()
    assert box.api('POST', f'/jobs/{job}/signal', {'signal': 'INT'}, user=bo).status == 403


@pytest.mark.root
def test_a_site_may_let_administrators_look(make_instance, ana):
    box = make_instance(gpus='sim:2x24G', arguments=['--watch-terminals'])
    job = job_of(box, 'echo up; read x; echo "<$x>"')
    watcher = Raw(box, f'/jobs/{job}/terminal?position=0', user=harness.User('root'))
    watcher.until(b'up')
    watcher.send(b'i', b'no\n')
    assert [(v['user'], v['read_only']) for v in box.job(job)['viewers']] == [('root', True)]
    assert 'root' in box.mgpu('show', job).out, 'the owner sees who looks'
    owner = Raw(box, f'/jobs/{job}/terminal?position=0')
    owner.send(b'i', b'yes\n')
    watcher.until(b'<yes>')
    owner.close()
    watcher.close()


def test_a_signal_reaches_the_job(box, bell):
    job = box.post_job(['sh', '-c', f'trap "echo caught > {bell.path}; exit 6" USR1; echo up > {bell.path}; while :; do read x < /dev/null; done'])
    bell.wait()
    box.wait(job, 'running')
    assert box.api('POST', f'/jobs/{job}/signal', {'signal': 'USR1'}).status == 200
    assert bell.wait() == 'caught'
    assert box.wait(job)['exit_code'] == 6
    assert box.api('POST', f'/jobs/{job}/signal', {'signal': 'INT'}).status == 409
    for bad in (0, 65, -1, 'x'):
        assert box.api('POST', f'/jobs/{job}/signal', {'signal': bad}).status == 400


def test_the_output_of_a_job_that_is_over_at_once_is_whole(box, screen):
    """Whoever is faster, the job or the one who joins: every line is there, once."""
    for _ in range(8):
        one = screen('run', '-g', 0, '--', 'sh', '-c', 'echo first; echo last')
        one.wait(r'^over 0')
        assert re.search(r'\A(?:mgpu: Ctrl-.*\n)?first\nlast\n', one.text()), one.text()


STOP_AGAIN = '''
import os, signal, sys
while True:
    os.kill(int(sys.argv[1]), signal.SIGSTOP)
'''


def terminal_process(box):
    """Pid of the process that moves the bytes of the only terminal, or of an exec step."""
    return harness.until(lambda: [pid for pid in box.shepherds() if harness.process_name(pid) == 'mgpu-terminal'], 'its process')[0]


def test_a_stopped_process_of_a_terminal_finishes_its_work(box, gate):
    job = job_of(box, f'echo first; read x < {gate.path}; echo last')
    pid = terminal_process(box)
    os.kill(pid, signal.SIGSTOP)
    gate.open()
    assert box.wait(job)['state'] == 'done'
    assert harness.wait_process(pid), 'it outlives its job'
    assert box.mgpu('logs', job).out == 'first\nlast\n'


def test_a_stopped_process_of_an_exec_step_ends_with_the_job(box, gate):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    client = box.popen('exec', job, '--', 'sh', '-c', 'echo up; exec sleep 4323')
    assert client.stdout.readline() == b'up\n'
    pid = terminal_process(box)
    os.kill(pid, signal.SIGSTOP)
    box.mgpu('cancel', job, check=True)
    client.communicate(timeout=DEADLINE_S)
    assert client.returncode in (137, 143)
    assert harness.wait_process(pid), 'it outlives its job'


def test_a_process_of_a_terminal_that_is_stopped_again_and_again_is_killed(box, gate):
    job = job_of(box, f'read x < {gate.path}')
    pid = terminal_process(box)
    stopper = subprocess.Popen(['/usr/bin/python3', '-c', STOP_AGAIN, str(pid)], stderr=subprocess.DEVNULL)
    try:
        gate.open()
        assert box.wait(job)['state'] == 'done'
        assert harness.wait_process(pid), 'it outlives its job'
    finally:
        stopper.kill()
        stopper.wait()


def test_a_process_of_a_terminal_that_is_stopped_after_its_job_is_killed(box, gate):
    """One who attached reads nothing, so it lives for a while after the job."""
    job = job_of(box, f'read x < {gate.path}; head -c 20000000 /dev/zero | tr "\\0" x')
    pid = terminal_process(box)
    stalled = Raw(box, f'/jobs/{job}/terminal?position=0')
    gate.open()
    assert box.wait(job)['state'] == 'done'
    os.kill(pid, signal.SIGSTOP)
    assert harness.wait_process(pid), 'it outlives its job'
    stalled.close()


# --- terminals that nobody uses ---

IDLE_TEXT = 'its terminal was unused for'


def check_idle_end(box, job, limit):
    ended = box.wait(job)
    assert (ended['ended_by'], ended['exit_code'], ended['state']) == ('idle_timeout', 124, 'failed'), ended
    assert ended['message'].split(';')[0] == f'{IDLE_TEXT} {limit}', ended


def test_a_job_on_a_terminal_that_nobody_uses_is_told_and_ended(box):
    job = job_of(box, 'echo up; read x', '--tty-idle', '2s')
    assert box.job(job)['tty_idle_s'] == 2
    check_idle_end(box, job, '2s')
    assert 'this terminal was unused for 1s; the job ends in ' in box.output(job)
    assert 'ended if its terminal is unused for 2s' in box.mgpu('show', job).out


def test_a_key_keeps_a_job_whose_terminal_was_idle(box, screen):
    one = screen('run', '-g', 0, '-T', '--tty-idle', '4s', '--', 'cat')
    told = r'unless you press a key\]'
    one.wait(told)
    one.type('k')
    one.wait(told + r'(.|\n)*' + told)
    one.type('Enter', 'C-d')
    one.wait(r'^over 0')


def test_the_time_of_an_unused_terminal_goes_on_when_the_shepherd_is_killed(box):
    job = job_of(box, 'trap "" HUP; echo up; while :; do read x; done', '--tty-idle', '3s', '--grace', '100ms')
    harness.await_text(box.job(job)['log'], 'up')  # only then does it ignore the hang-up of its terminal
    for pid in box.shepherds():
        os.kill(pid, signal.SIGKILL)
    check_idle_end(box, job, '3s')


def test_a_suspended_job_does_not_leave_its_terminal_unused(box):
    still = job_of(box, 'echo up; read x', '--tty-idle', '2s')
    box.mgpu('suspend', still, check=True)
    check_idle_end(box, job_of(box, 'read x', '--tty-idle', '3s'), '3s')
    assert box.job(still)['state'] == 'running' and box.job(still)['suspended_at'], 'longer than its time'
    box.mgpu('continue', still, check=True)
    check_idle_end(box, still, '2s')


def test_a_shell_is_ended_after_two_hours_or_half_an_hour_of_nothing(box, screen):
    def asked(*options):
        one = screen('shell', '-g', 0, *options)
        one.wait(r'\$$')
        job = box.job(last_job(box))
        one.type('exit', 'Enter')
        one.wait(r'^over 0')
        return job['time_limit_s'], job['tty_idle_s']

    assert asked() == (7200, 1800)
    assert asked('-t', '10m', '--tty-idle', '5m') == (600, 300)
    assert asked('--tty-idle', 'none') == (7200, None)


def test_somebody_at_the_terminal_is_told_that_the_gpus_are_unused(screen):
    one = screen('run', '-g', 1, '--idle-timeout', '3s', '--', 'sh', '-c', 'echo up; read x')
    one.wait(r'^\[mgpu: job \d+ has left its GPUs unused for \ds; it will be ended at [0-9:]+ if it stays idle\]')
    one.wait(r'^over 124')


def test_a_job_without_a_terminal_cannot_leave_it_unused(box):
    done = box.mgpu('submit', '-g', 0, '--tty-idle', '5m', '--', 'true')
    assert done.code == 2 and 'tty_idle requires a terminal' in done.err, done
    done = box.mgpu('submit', '-g', 0, '-T', '--tty-idle', '10ms', '--', 'true')
    assert done.code == 2 and 'tty_idle: 10 ms is below 1000 ms' in done.err, done
