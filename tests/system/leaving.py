# SPDX-License-Identifier: MIT
"""For test_leaving.py: programs that go away in one way each, and what has happened to their job.

A case is one line of the table in docs/leaving.md and one of its columns. Its job, and the process that some programs
start in a job or beside it, is SCRIPT: it notes the signals that it gets, and waits for the test at a gate.
"""

import contextlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import threading
import time

import harness

DEADLINE_S = harness.DEADLINE_S
TABLE = f'{harness.ROOT}/docs/leaving.md'
WAYS = ('Ctrl-C', 'again', 'SIGTERM', 'SIGHUP', 'no reader', 'SIGKILL', 'cut')
LOST = 'lost terminal'  # SIGHUP, for a program whose output was on the terminal that has gone, too
IGNORED = 'ignored'  # all signals were ignored when the program began, and all come

# $1: its folder. "stay" as $2: SIGTERM and SIGHUP are only noted.
SCRIPT = r'''
note() { echo "$1" >>"$dir/said"; }
pass() {
    head -c 1 "$dir/gate" >/dev/null & reader=$!
    while kill -0 $reader 2>/dev/null; do wait $reader; done
}
dir=$1
trap 'note INT' INT
trap 'note TERM; [ "$stay" ] || exit 143' TERM
stay=$2
[ -z "$2" ] || trap 'note HUP' HUP
echo $$ >"$dir/pid"
echo one
pass
echo two
pass
echo three
'''


def read_table():
    """{(command, called, state): {way: effect}}; a line for both states counts for each."""
    rows = {}
    with open(TABLE, encoding='utf-8') as page:
        for line in page:
            cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
            if len(cells) != 3 + len(WAYS) or not cells[0].startswith('`'):
                continue
            for state in cells[2].split(' or '):
                rows[cells[0].strip('`'), cells[1], state] = dict(zip(WAYS, cells[3:], strict=True))
    return rows


class Folder:
    """The folder of a SCRIPT, with its gate."""

    def __init__(self, path):
        self.path = path
        os.mkdir(path)
        os.chmod(path, 0o777)
        os.mkfifo(f'{path}/gate')
        os.chmod(f'{path}/gate', 0o666)
        self.fd = os.open(f'{path}/gate', os.O_RDWR)

    def open(self, count=1):
        os.write(self.fd, b'x' * count)

    def close(self):
        os.close(self.fd)

    def said(self):
        with contextlib.suppress(FileNotFoundError), open(f'{self.path}/said', encoding='utf-8') as file:
            return file.read().split()
        return []

    def await_said(self, *words):
        harness.until(lambda: self.said() == [*words], f'{words} in {self.path}/said, which has {self.said()}')

    def pid(self):
        with open(f'{self.path}/pid', encoding='utf-8') as file:
            return int(file.read())


def is_alive(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        return file.read().rpartition(')')[2].split()[0] not in 'ZX'
    return False


class Relay:
    """A socket before that of mgpud, which can be cut."""

    def __init__(self, server, path):
        self.server, self.path, self.sockets = server, path, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.server)
                self.sockets += [client, server]
                for ends in (client, server), (server, client):
                    threading.Thread(target=self.copy, args=ends, daemon=True).start()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def cut(self):
        os.unlink(self.path)
        for one in (self.listener, *self.sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Program:
    """A process with a terminal or with pipes, and what it has printed."""

    def __init__(self, words, env, folder, has_terminal=False, is_on_it=False, has_input=False, ignored=()):
        self.out, self.err, self.master, fds = b'', b'', None, []
        if ignored:
            words = ['/usr/bin/env', *(f'--ignore-signal={name}' for name in ignored), *words]
        ends = {'stdin': subprocess.PIPE if has_input else subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                'stderr': subprocess.PIPE}
        if has_terminal:
            self.master, slave = pty.openpty()
            ends['stdin'] = slave
            if is_on_it:
                ends.update(stdout=slave, stderr=slave)
            words = ['/usr/bin/setsid', '--ctty', *words]
        self.process = subprocess.Popen(words, env=env, cwd=folder, **ends)
        if has_terminal:
            os.close(slave)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.sources = {'out': self.master if is_on_it and has_terminal else self.process.stdout.fileno(),
                        'err': None if is_on_it and has_terminal else self.process.stderr.fileno()}

    def text(self):
        return self.out.decode(errors='replace') + self.err.decode(errors='replace')

    def read(self, timeout_s):
        """Takes what is there; False when it has ended and nothing is left."""
        fds = [fd for fd in self.sources.values() if fd is not None]
        ready = select.select([*fds, self.pidfd], [], [], timeout_s)[0]
        for name, fd in self.sources.items():
            if fd not in ready or fd is None:
                continue
            try:
                piece = os.read(fd, 65536)
            except OSError:  # a terminal that the other end has closed
                piece = b''
            if not piece:
                self.sources[name] = None
            setattr(self, name, getattr(self, name) + piece)
        return ready != [self.pidfd]

    def await_text(self, *texts, count=1):
        """Until it has printed one of these so many times in all; which."""
        end = time.monotonic() + DEADLINE_S
        while True:
            for text in texts:
                if self.text().count(text) >= count:
                    return text
            left = end - time.monotonic()
            assert left > 0 and self.read(left), f'it did not print {texts} {count} times:\n{self.text()}'

    def send(self, number):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def type(self, text):
        os.write(self.master, text)

    def await_end(self):
        end = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            left = end - time.monotonic()
            assert left > 0, f'it did not end:\n{self.text()}'
            self.read(left)

    def is_connected(self):
        """Whether it has a socket open."""
        with contextlib.suppress(OSError):
            folder = f'/proc/{self.process.pid}/fd'
            return any(os.readlink(f'{folder}/{fd}').startswith('socket:') for fd in os.listdir(folder))
        return False

    def close_reader(self):
        self.process.stdout.close()
        self.sources['out'] = None

    def close_terminal(self):
        os.close(self.master)
        self.sources = {name: None if fd == self.master else fd for name, fd in self.sources.items()}
        self.master = None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.pidfd)
        if self.master is not None:
            os.close(self.master)
        for pipe in self.process.stdin, self.process.stdout, self.process.stderr:
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Call:
    """How a program is called, and what is known about it.

    words       of a case: the command line, whose first word is the name of the program
    job         whose it is: 'own', 'given' to it, or 'given on a terminal'
    ready       what it prints when all is set up; None: it is connected
    terminal    whether it has one: 'never', 'always', or with 'keys' for Ctrl-C alone
    folder      whose signals are looked at: of the 'job', or of a 'process' of the program's own
    """

    def __init__(self, words, job='own', ready='one', terminal='never', folder='job', has_input=False, env=None,
                 is_script=True, ends=False, refuses=('INT', 'TERM', 'HUP')):
        self.words, self.job, self.ready, self.terminal, self.folder = words, job, ready, terminal, folder
        self.has_input, self.env, self.is_script = has_input, env or (lambda case: {}), is_script
        self.ends = ends  # by itself, when it has done its work
        self.refuses = refuses  # the signals that do nothing if they were ignored when it began


class Case:
    """One program, in one state of its job, going away in one way."""

    def __init__(self, walk, row, way, effect, number):
        self.walk, self.row, self.way, self.effect, self.number = walk, row, way, effect, number
        self.command, self.called, self.state = row
        self.call = walk.calls[self.command, self.called]
        self.box = walk.full if self.state == 'waits' else walk.free
        self.place = f'{walk.place}/{number}'
        self.job = self.program = None
        self.folders = {}

    # --- for the words of a call ---

    def script(self, folder=None, stay=False):
        return ['sh', self.walk.script, folder or f'{self.place}/job', *(['stay'] if stay else [])]

    def process_script(self, stay=False):
        return self.script(f'{self.place}/process', stay)

    def write(self, name, text):
        path = f'{self.place}/{name}'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    # --- the job ---

    def find_job(self):
        jobs = self.box.api('GET', '/jobs?all=1').json['jobs']
        mine = f'{self.place}/'
        found = [job['id'] for job in jobs if mine in job['command'] + '/' or job['name'] == f'case-{self.number}']
        return found[0] if found else None

    def give_job(self):
        terminal = ['-T'] if self.call.job == 'given on a terminal' else []
        self.job = self.box.submit('-g', 1, *terminal, '--', *self.script(), env=self.call.env(self))
        if self.state == 'runs':
            self.box.wait(self.job, 'running')

    def now(self):
        return self.box.job(self.job)['state']

    # --- going ---

    def is_typed(self):
        return self.way in ('Ctrl-C', 'again') and self.call.terminal in ('always', 'keys')

    def start(self):
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.folders = {name: Folder(f'{self.place}/{name}') for name in ('job', 'process')}
        self.folder = self.folders[self.call.folder]
        if self.call.job != 'own':
            self.give_job()
        env = {**self.box.client.environment(), 'TERM': 'xterm', 'MGPU_SOCKET': self.box.socket,
               'SHELL': '/bin/sh', **self.call.env(self)}
        self.relay = None
        if self.way == 'cut':
            self.relay = Relay(self.box.socket, f'{self.place}/socket')
            env['MGPU_SOCKET'] = self.relay.path
        name, *words = map(str, self.call.words(self))
        env['ASAN_OPTIONS'] = harness.client_sanitizer(name, *words)
        is_on_it = self.call.terminal == 'always' or self.way == LOST
        vanishes = self.way == 'SIGHUP' and not self.call.has_input
        ignored = self.call.refuses if self.way == IGNORED else ()
        self.program = Program([self.walk.find(name), *words], env, self.place, is_on_it or vanishes or self.is_typed(),
                               is_on_it, self.call.has_input, ignored)
        if self.call.has_input and self.call.words(self)[1:] == ['mcp']:
            self.ask_assistant()
        self.await_ready()

    def ask_assistant(self):
        arguments = {'command': ' '.join(self.script()), 'gpus': 1}
        request = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'submit_job', 'arguments': arguments}}
        self.program.process.stdin.write(json.dumps(request).encode() + b'\n')
        self.program.process.stdin.flush()

    def await_ready(self):
        if self.call.job == 'own':
            self.job = self.box.await_news(self.find_job)
            assert self.job, f'it has no job:\n{self.program.text()}'
            if self.state == 'runs':
                self.box.wait(self.job, 'running,done,failed,cancelled')
        if self.call.ends:
            return
        if self.state == 'waits' or self.call.ready is None:
            harness.until(lambda: self.program.is_connected() or self.program.process.poll() is not None, 'a connection')
        else:
            self.program.await_text(self.call.ready)

    def interrupt(self):
        if self.is_typed():
            self.program.type(b'\x03')
        else:
            self.program.send(signal.SIGINT)

    def interrupt_again(self):
        """The second must come soon: where it was late, it counted as a first one."""
        first = {'SIGINT': 'Ctrl-C again within 2 s', 'is shown': 'one more within 1 sec'}.get(self.walk.rows[self.row]['Ctrl-C'])
        if first is None:
            self.interrupt()
            self.folder.await_said('INT')
            self.interrupt()
            self.folder.await_said('INT', 'INT')
            return
        while True:
            count = self.program.text().count(first)
            self.interrupt()
            self.program.await_text(first, count=count + 1)
            self.interrupt()
            while not self.is_answered(first, count + 2) and self.program.read(DEADLINE_S):
                pass
            if self.program.text().count(first) < count + 2:
                return

    def is_answered(self, first, count):
        text = self.program.text()
        return 'is stopping' in text or 'sending Ctrl-C' in text or text.count(first) == count

    def go(self):
        acts = {'Ctrl-C': self.interrupt, 'again': self.interrupt_again, 'SIGHUP': self.hang_up, LOST: self.hang_up,
                'no reader': self.close_reader, IGNORED: self.send_ignored,
                'SIGTERM': lambda: self.program.send(signal.SIGTERM), 'SIGKILL': lambda: self.program.send(signal.SIGKILL),
                'cut': lambda: self.relay.cut()}
        acts[self.way]()

    def hang_up(self):
        if self.program.master is not None:
            self.program.close_terminal()
        else:
            self.program.send(signal.SIGHUP)

    def close_reader(self):
        self.program.close_reader()
        if self.state == 'runs' and self.call.is_script:
            self.folder.open()

    def send_ignored(self):
        for name in self.call.refuses:
            self.program.send(signal.Signals[f'SIG{name}'])
        if self.state == 'runs' and self.call.ready == 'one' and not self.call.ends:
            self.folder.open()
            self.program.await_text('two')  # so it has had time to look at them
        elif not self.call.ends and self.call.job == 'own':
            assert self.program.process.poll() is None, self.program.text()

    # --- what has happened ---

    def check(self):
        checks = {'nothing': self.check_nothing, 'ends': self.check_end, 'SIGINT': self.check_signal,
                  'is shown': self.check_shown, 'a key': self.check_signal, 'to its process': self.check_signal,
                  'to the command': self.check_signal, 'its process ends': self.check_process}
        checks[self.effect]()
        if self.effect not in ('ends', 'to the command'):
            assert self.now() == ('queued' if self.state == 'waits' else 'running'), self.now()
            if self.call.folder == 'process' and self.call.job != 'own':
                assert self.folders['job'].said() == []
            self.let_end()

    def leaves(self):
        """Whether the program is expected to be gone."""
        typed = self.effect != 'nothing' and self.way in ('Ctrl-C', 'again')
        stays = self.way in ('cut', IGNORED) or self.call.ends or typed
        is_unread = self.way == 'no reader' and (self.state == 'waits' or self.call.ready != 'one')
        return not stays and not is_unread and not (self.effect == 'nothing' and self.walk.is_deaf(self))

    def check_nothing(self):
        if self.leaves():
            self.program.await_end()
        assert self.folder.said() == [], self.folder.said()

    def check_end(self):
        ended = self.box.wait(self.job)
        assert ended['state'] == 'cancelled' or self.command == 'srun' and self.called == 'of mgpu-compat', ended

    def check_signal(self):
        if not self.call.is_script:
            return
        if self.way == 'no reader':  # of a command whose standard output is that of the program
            self.check_process()
            return
        word = {'SIGTERM': 'TERM', 'SIGHUP': 'HUP', LOST: 'HUP'}.get(self.way, 'INT')
        self.folder.await_said(*[word] * (2 if self.way == 'again' else 1))

    def check_shown(self):
        self.program.await_text('one more within 1 sec')
        assert self.folder.said() == []

    def check_process(self):
        if self.call.is_script:
            pid = self.folder.pid()
            harness.until(lambda: not is_alive(pid), f'the end of {pid}')

    def let_end(self):
        """Its own end is as it would have been."""
        if self.state == 'waits' or not self.call.is_script or self.call.folder == 'process' and self.call.job == 'own':
            return
        self.folders['job'].open(3)
        ended = self.box.wait(self.job)
        assert (ended['state'], ended['exit_code']) == ('done', 0), ended

    def run(self):
        try:
            self.start()
            self.go()
            self.check()
            assert not harness.SANITIZER.search(self.program.text())
        except Exception as error:  # noqa: BLE001 - of a thread, for the test that asks
            text = self.program.text() if self.program is not None else ''
            return f'{error!r}\nits output:\n{text}'
        finally:
            if self.program is not None:
                self.program.close()
            if self.job is not None:
                with contextlib.suppress(Exception):
                    self.box.api('POST', f'/jobs/{self.job}/cancel', {'grace_s': 0})
            for folder in self.folders.values():
                folder.close()
        return None
