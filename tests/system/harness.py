# SPDX-License-Identifier: MIT
"""A private instance of mgpu for the tests: start, stop, kill, the command line as any user, the API as any user.

Waiting is always for an event with a deadline: the daemon's readiness datagram, `GET /jobs/ID/wait`, the end of a
process through a pidfd. Programs are copied from the build folder to a place that every user can reach.
"""

import contextlib
import datetime
import fcntl
import functools
import grp
import http.client
import importlib.util
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ('mgpu', 'mgpu-compat', 'mgpu-slurm', 'mgpu-tls', 'mgpud', 'mgpu-agent', 'mgpu-shepherd',
            'mgpu-gpu-test')
IS_ROOT = os.geteuid() == 0
HAS_NVIDIA = os.path.exists('/dev/nvidiactl')
HAS_TERMINALS = os.path.exists('/dev/ptmx') and os.path.isdir('/dev/pts') and os.path.ismount('/dev/pts')
DEADLINE_S = 60  # for anything that should take far less
LEAVING_S = 5   # for a process that has nothing left to do

# A finding in any of these in a log is a failed test.
SANITIZER = re.compile(r'ERROR: (Address|Leak|Undefined)\w*Sanitizer|runtime error:|Assertion .* failed')


@functools.lru_cache(maxsize=None)
def namespaces_missing(options='-m'):
    """Why a program cannot have these namespaces (options of unshare) here; empty when it can."""
    done = subprocess.run(['unshare', *options.split(), 'true'], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return f'needs namespaces of its own: {done.stderr.strip()}' if done.returncode else ''


def require_namespaces(options='-m'):
    """Skips the test where it cannot have them."""
    why = namespaces_missing(options)
    if why:
        import pytest  # only here: benchmarks use an instance without it
        pytest.skip(why)


def seconds(time):
    """A time of the API since 1970."""
    return datetime.datetime.fromisoformat(time.replace('Z', '+00:00')).timestamp()


def lines_until(process, text):
    """What it says up to a line with that text."""
    said = []
    for line in process.stdout:
        said.append(line)
        if text in line:
            return ''.join(said)
    raise AssertionError(''.join(said))


def end(process):
    """Ends a server, and returns the rest of what it says."""
    process.send_signal(signal.SIGTERM)
    rest = process.stdout.read()
    assert process.wait(DEADLINE_S) == 0, rest
    return rest


def read(name):
    """A file of the repository."""
    with open(os.path.join(ROOT, name), encoding='utf-8') as source:
        return source.read()


def free_port():
    """A TCP port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@functools.lru_cache(maxsize=None)
def has_module(name):
    """Whether Python has the module, which is not imported: torch takes seconds, in each process that collects tests."""
    return importlib.util.find_spec(name) is not None


def build_folder():
    return os.path.abspath(os.environ.get('MGPU_BUILD', os.path.join(ROOT, 'build-check')))


def is_sanitized(name='mgpud'):
    """Whether a program of the build has sanitizers in it."""
    with open(f'{build_folder()}/{name}', 'rb') as program:
        return b'__asan_init' in program.read()


def copy_programs(folder, change=lambda program: program):
    """A folder with copies of a build's programs, changed by `change`, that every user can execute."""
    place = tempfile.mkdtemp(prefix='mgpu-bin-', dir='/tmp')
    os.chmod(place, 0o755)
    for name in PROGRAMS:
        with open(os.path.join(folder, name), 'rb') as source, open(os.path.join(place, name), 'wb') as target:
            target.write(change(source.read()))
        os.chmod(os.path.join(place, name), 0o755)
    return place


@functools.lru_cache(maxsize=None)
def programs():
    """Those of the build that is tested."""
    return copy_programs(build_folder())


def open_folder(path):
    """Lets every user enter a folder below /tmp that pytest has made for the tests' own user."""
    path = str(path)
    while path.startswith('/tmp/'):
        os.chmod(path, 0o755)
        path = os.path.dirname(path)


ACTING = threading.RLock()  # the user is the same for all threads


class User:
    """A user of this machine, with what is needed to run something as him."""

    def __init__(self, name):
        entry = pwd.getpwnam(name)
        self.name, self.uid, self.gid, self.home = name, entry.pw_uid, entry.pw_gid, entry.pw_dir
        self.groups = sorted(set(os.getgrouplist(name, self.gid)))

    def popen_arguments(self):
        if self.uid == os.geteuid():
            return {}
        return {'user': self.uid, 'group': self.gid, 'extra_groups': self.groups}

    def command(self, *words):
        """Words that run others as the user. Sooner than popen_arguments(), with which Python copies itself."""
        if self.uid == os.geteuid():
            return [*words]
        groups = f'--groups={",".join(map(str, self.groups))}' if self.groups else '--clear-groups'
        return ['/usr/bin/setpriv', f'--reuid={self.uid}', f'--regid={self.gid}', groups, *words]

    def environment(self):
        return {'HOME': self.home, 'USER': self.name, 'LOGNAME': self.name, 'SHELL': '/bin/sh', 'LANG': 'C.UTF-8',
                'PATH': '/usr/local/bin:/usr/bin:/bin'}

    @contextlib.contextmanager
    def acting(self):
        """Files are opened and sockets connected as this user inside the block."""
        if self.uid == os.geteuid():
            yield
            return
        with ACTING:
            groups = os.getgroups()
            os.setgroups(self.groups)
            os.setegid(self.gid)
            os.seteuid(self.uid)
            try:
                yield
            finally:
                os.seteuid(0)
                os.setegid(0)
                os.setgroups(groups)


def make_user(name, group=None):
    """The user of that name, made when missing (as root). Tests that run side by side ask for the same ones."""
    with open(__file__, encoding='utf-8') as source:
        fcntl.flock(source, fcntl.LOCK_EX)
        add_user(name, group)
    return User(name)


def add_user(name, group):
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(['useradd', '--create-home', '--shell', '/bin/sh', '--key', 'UID_MIN=1000', name], check=True)
    if group:
        try:
            grp.getgrnam(group)
        except KeyError:
            subprocess.run(['groupadd', group], check=True)
        if name not in grp.getgrnam(group).gr_mem:
            subprocess.run(['usermod', '-a', '-G', group, name], check=True)


class Done:
    """What a command did."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f'exit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}'

    @property
    def json(self):
        return json.loads(self.out)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, user, timeout):
        super().__init__('localhost', timeout=timeout)
        self.path, self.user = path, user

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with self.user.acting() if self.user else contextlib.nullcontext():
            self.sock.connect(self.path)


class Answer:
    """A whole HTTP answer."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def __repr__(self):
        return f'{self.status} {self.headers}\n{self.body[:2000]!r}'

    @property
    def json(self):
        return json.loads(self.body)


def wait_process(pid, timeout_s=DEADLINE_S):
    """True when the process has ended within the time; it need not be a child."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], timeout_s)[0])
    finally:
        os.close(pidfd)


def processes(text):
    """{pid: command line} of the processes that have `text` in their command line."""
    found = {}
    for entry in os.listdir('/proc'):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f'/proc/{entry}/cmdline', 'rb') as source:
                line = source.read().replace(b'\0', b' ').decode(errors='replace').strip()
        except OSError:
            continue
        if text in line:
            found[int(entry)] = line
    return found


def process_environment(pid):
    """Its environment as text; '' when it has gone."""
    try:
        with open(f'/proc/{pid}/environ', encoding='utf-8', errors='replace') as source:
            return source.read()
    except OSError:
        return ''


def process_name(pid):
    """What ps shows of it; '' when it has gone."""
    try:
        with open(f'/proc/{pid}/comm', encoding='ascii') as source:
            return source.read().strip()
    except OSError:
        return ''


# Of what was freed, this much is kept to find who still uses it. With the usual 256 MiB all memory is new: half of the page faults.
QUARANTINE = 'quarantine_size_mb=4:thread_local_quarantine_size_kb=64'
_LOOKED_FOR_LEAKS = set()


def client_sanitizer(*words):
    """ASAN_OPTIONS of a command. Looking for leaks doubles its time: the first call of each verb in a process of tests does."""
    verb = tuple(str(word) for word in words[:2])
    leaks = 0 if verb in _LOOKED_FOR_LEAKS else 1
    _LOOKED_FOR_LEAKS.add(verb)
    return f'exitcode=99:detect_leaks={leaks}:{QUARANTINE}'


class Instance:
    """One mgpud with its agent, in a fresh directory."""

    def __init__(self, gpus, user=None, client=None, listen='none', arguments=(), state_dir=None,
                 parent='/tmp'):
        self.place = tempfile.mkdtemp(prefix='mgpu-t-', dir=parent)
        os.chmod(self.place, 0o755)
        self.user = user or User(pwd.getpwuid(os.geteuid()).pw_name)
        if self.user.uid != os.geteuid():
            os.chown(self.place, self.user.uid, self.user.gid)
        self.is_root = self.user.uid == 0
        self.client = client or self.user  # who calls when a test names nobody
        self.state_dir = state_dir or f'{self.place}/state'
        self.run_dir = f'{self.place}/run'
        self.socket = f'{self.run_dir}/mgpud.sock'
        self.log_path = f'{self.place}/log'
        self.listen = listen
        self.command = [f'{programs()}/mgpud', '--state-dir', self.state_dir, '--run-dir', self.run_dir,
                        '--listen', listen, '--gpus', gpus, *arguments]
        if self.is_root:
            self.command += ['--user', 'nobody']
        self.process = None
        self.expected_in_log = []  # sanitizer-like words that a test provokes on purpose

    # --- the daemon ---

    def environment(self):
        env = self.user.environment()
        # A program that gave up root cannot trace itself, which the leak check does; leaks are looked for rootless.
        leaks = 0 if self.is_root else 1
        env['ASAN_OPTIONS'] = f'detect_leaks={leaks}:abort_on_error=0:exitcode=99:allocator_may_return_null=1:{QUARANTINE}'
        env['UBSAN_OPTIONS'] = 'print_stacktrace=1'
        return env

    def spawn(self, extra=()):
        """Starts mgpud and does not wait for anything."""
        path = f'{self.place}/ready.sock'
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        ready.bind(path)
        os.chmod(path, 0o666)
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(
                [*self.command, *extra], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd='/',
                env=dict(self.environment(), NOTIFY_SOCKET=path), **self.user.popen_arguments())
        return ready

    def start(self, extra=(), timeout_s=DEADLINE_S):
        ready = self.spawn(extra)
        pidfd = os.pidfd_open(self.process.pid)
        deadline = time.monotonic() + timeout_s
        try:
            while ready in select.select([ready, pidfd], [], [], max(0, deadline - time.monotonic()))[0]:
                if b'READY=1' in ready.recv(4096):  # a slow start reports its progress before
                    return self
        finally:
            os.close(pidfd)
            ready.close()
        raise AssertionError(f'mgpud did not become ready:\n{self.log()}')

    def stop(self):
        """SIGTERM, and waits for the daemon and for its agent. Jobs go on."""
        agents = self.agents()
        self.process.terminate()
        code = self.process.wait(DEADLINE_S)
        for pid in agents:
            assert wait_process(pid), f'agent {pid} stays after mgpud has left'
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def restart(self):
        self.stop()
        return self.start()

    def restore(self, backup):
        """`mgpud --restore`, which refuses while it runs."""
        return subprocess.run([*self.command, '--restore', backup], text=True, check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=DEADLINE_S, env=self.environment(), **self.user.popen_arguments())

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as source:
            return source.read()

    def agents(self):
        """Pids of the keeper and its worker. Those that park jobs outlive them."""
        return [pid for pid, line in processes(self.place).items()
                if 'mgpu-agent' in line.split(' ')[0] and process_name(pid) != 'mgpu-park']

    def shepherds(self):
        return [pid for pid, line in processes(self.place).items() if 'mgpu-shepherd' in line.split(' ')[0]]

    def close(self):
        """Ends every job and the daemon, checks that nothing is left, and removes the directory."""
        problems = []
        if self.process and self.process.poll() is None:
            try:
                self.cancel_all()
            except Exception as error:  # noqa: BLE001 - the teardown goes on and reports
                problems.append(f'jobs could not be ended: {error!r}')
            code = self.stop()
            if code != 0:
                problems.append(f'mgpud left with {code}:\n{self.log()[-3000:]}')
        # What was told to leave, or has just ended, may still be on its way out.
        left = {pid: line for pid, line in processes(self.place).items() if not wait_process(pid, LEAVING_S)}
        if left:
            problems.append(f'processes left: {left}')
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        log = self.log() if os.path.exists(self.log_path) else ''
        found = [line for line in log.splitlines() if SANITIZER.search(line)]
        if found and not self.expected_in_log:
            problems.append('the log holds a sanitizer report:\n' + log[-6000:])
        shutil.rmtree(self.place, ignore_errors=True)
        assert not problems, '\n'.join(problems)

    # --- the command line ---

    def popen(self, *arguments, user=None, cwd=None, env=None, program='mgpu', **options):
        user = user or self.client
        environment = dict(user.environment(), MGPU_SOCKET=self.socket, ASAN_OPTIONS=client_sanitizer(program, *arguments))
        environment.update(env or {})
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        return subprocess.Popen(user.command(f'{programs()}/{program}', *map(str, arguments)), cwd=cwd or '/tmp', env=environment,
                                **options)

    def mgpu(self, *arguments, input=None, timeout_s=DEADLINE_S, check=False, **options):
        """Runs `mgpu ARGUMENTS`, or another name of `program`; what it did. `check` expects success."""
        if input is not None:
            options['stdin'] = subprocess.PIPE
        process = self.popen(*arguments, **options)
        try:
            out, err = process.communicate(input, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f'mgpu {arguments} did not end in {timeout_s} s\n'
                                 f'{Done(None, out.decode(), err.decode())}\n{self.log()[-3000:]}') from None
        done = Done(process.returncode, out.decode(errors='replace'), err.decode(errors='replace'))
        assert not SANITIZER.search(done.err), done
        if check:
            assert done.code == 0, done
        return done

    def submit(self, *arguments, **options):
        """Submits through the command line; the job's id."""
        return int(self.mgpu('submit', *arguments, check=True, **options).out)

    # --- the API ---

    def connection(self, user=None, timeout_s=DEADLINE_S):
        return UnixConnection(self.socket, user or self.client, timeout_s)

    def api(self, method, path, body=None, user=None, headers=None, timeout_s=DEADLINE_S):
        connection = self.connection(user, timeout_s)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault('Content-Type', 'application/json')
        try:
            connection.request(method, path if path.startswith('/healthz') else f'/api/v1{path}', body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def post_job(self, command, user=None, **fields):
        answer = self.api('POST', '/jobs', {'command': command, **fields}, user=user)
        assert answer.status in (200, 201), answer
        return answer.json['id']

    def job(self, job, user=None):
        answer = self.api('GET', f'/jobs/{job}', user=user)
        assert answer.status == 200, answer
        return answer.json

    def end_soon(self, job, warning_ms=0):
        """A running job gets a time limit that is over a moment from now, and `warning_ms` more: as soon as the machine lets a limit arrive in time."""
        moment_ms = 700
        while True:
            ran_ms = int(self.job(job)['run_seconds'] * 1000)
            done = self.mgpu('edit', job, f'time={ran_ms + moment_ms + warning_ms}ms')
            if done.code == 0:
                return
            assert 'would end it at once' in done.err and moment_ms < DEADLINE_S * 1000, done
            moment_ms *= 2

    def wait(self, job, states='done,failed,cancelled', timeout_s=DEADLINE_S):
        """Waits for one of the states and returns the job."""
        answer = self.api('GET', f'/jobs/{job}/wait?states={states}&timeout={timeout_s}', user=self.user,
                          timeout_s=timeout_s + 10)
        assert answer.status == 200, f'{answer}\n{self.log()[-3000:]}'
        return answer.json

    def output(self, job):
        answer = self.api('GET', f'/jobs/{job}/log', user=self.user)
        assert answer.status == 200, answer
        return answer.body.decode(errors='replace')

    def run_job(self, command, **fields):
        """Submits, waits for the end; (job, output)."""
        job = self.wait(self.post_job(command, **fields))
        return job, self.output(job['id'])

    def open_jobs(self):
        answer = self.api('GET', '/jobs?state=queued,starting,running,stopping', user=self.user)
        return [job['id'] for job in answer.json['jobs']]

    def cancel_all(self):
        jobs = self.open_jobs()
        for job in sorted(jobs, reverse=True):
            self.api('POST', f'/jobs/{job}/cancel', {'grace_s': 0}, user=self.user)
        for job in jobs:
            self.wait(job)

    def gpus(self):
        return self.api('GET', '/gpus').json['gpus']

    def await_gpus(self, are_right):
        """The GPUs once `are_right(gpus)`: looked at again with every event, of which each change of a GPU is one."""
        gpus = self.gpus()
        if are_right(gpus):
            return gpus
        for _ in self.events(after=0, user=self.user):
            gpus = self.gpus()
            if are_right(gpus):
                return gpus
        raise AssertionError(gpus)

    def await_news(self, look, process=None, timeout_s=DEADLINE_S):
        """What `look()` returns once that is true: it looks now and with every event, of jobs or of the cluster.

        None when there was no such event in time, or when `process` ended before."""
        end, fds = time.monotonic() + timeout_s, []
        connection = self.connection(self.user)
        try:
            connection.connect()
            connection.sock.sendall(b'GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
            head = b''
            while b'\r\n\r\n' not in head:
                more = connection.sock.recv(65536)
                assert more, head
                head += more
            assert head.startswith(b'HTTP/1.1 200'), head
            if process is not None and process.poll() is None:
                fds.append(os.pidfd_open(process.pid))
            while True:
                found = look()
                if found:
                    return found
                ready = select.select([connection.sock, *fds], [], [], max(0, end - time.monotonic()))[0]
                if connection.sock not in ready:
                    return look() or None
                assert connection.sock.recv(65536), f'mgpud closed the event stream\n{self.log()[-3000:]}'
        finally:
            connection.close()
            for fd in fds:
                os.close(fd)

    def kill_agent(self):
        """kill -9 of the worker and what it forked; the keeper starts another."""
        for pid in self.agents():
            if process_name(pid) == 'mgpu-agent':
                os.kill(pid, signal.SIGKILL)

    def kill_gpu_helper(self):
        """kill -9 of the process that asks the GPU driver."""
        for pid in self.agents():
            if process_name(pid) == 'mgpu-gpus':
                os.kill(pid, signal.SIGKILL)

    def events(self, after=None, user=None, timeout_s=DEADLINE_S):
        """Generator of the events of the stream, from `after` on; ends at the deadline."""
        connection = self.connection(user, timeout_s)
        headers = {'Accept': 'text/event-stream'}
        connection.request('GET', '/api/v1/events' + (f'?after={after}' if after is not None else ''), headers=headers)
        response = connection.getresponse()
        assert response.status == 200, Answer(response)
        event = {}
        end = time.monotonic() + timeout_s
        try:
            while time.monotonic() < end:
                line = response.readline().decode().rstrip('\n')
                if line.startswith(':'):
                    continue
                if line == '':
                    if 'data' in event:
                        yield event
                    event = {}
                elif line:
                    name, _, value = line.partition(': ')
                    event[name] = json.loads(value) if name == 'data' else value
        finally:
            connection.close()


def until(ask, what, timeout_s=DEADLINE_S):
    """What `ask` returns once that is something. Only for what is announced to nobody, such as the state of a
    process that is no child."""
    end = time.monotonic() + timeout_s
    while not (found := ask()):
        assert time.monotonic() < end, f'{what}: not within {timeout_s} s'
        select.select([], [], [], 0.02)
    return found


def await_text(path, text, timeout_s=DEADLINE_S):
    """Waits until a file that grows has the text; what it holds up to the end of that line."""
    held, end = b'', time.monotonic() + timeout_s
    with subprocess.Popen(['tail', '-n', '+1', '-F', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tail:
        try:
            while text.encode() not in held:
                left = end - time.monotonic()
                if left <= 0 or not select.select([tail.stdout], [], [], left)[0]:
                    raise AssertionError(f'no {text!r} in {path}:\n{held.decode(errors="replace")[-3000:]}')
                held += os.read(tail.stdout.fileno(), 1 << 16)
        finally:
            tail.kill()
    return held.decode(errors='replace')


class Gate:
    """A FIFO on which jobs wait until the test lets them go: no job in a test sleeps."""

    def __init__(self, folder):
        self.path = os.path.join(folder, f'gate-{time.monotonic_ns()}')
        os.mkfifo(self.path)
        os.chmod(self.path, 0o666)
        self.fd = os.open(self.path, os.O_RDWR)  # both ends: opening never blocks, reading does

    def command(self, then='true'):
        """A command that waits at the gate and then runs `then`."""
        return ['sh', '-c', f'read word < {self.path}; {then}']

    def open(self, count=1):
        """Lets `count` jobs pass: each takes one line."""
        for _ in range(count):
            os.write(self.fd, b'\n')

    def close(self):
        os.close(self.fd)


class Bell:
    """A FIFO into which jobs write a line to tell the test how far they are."""

    def __init__(self, folder):
        self.path = os.path.join(folder, f'bell-{time.monotonic_ns()}')
        os.mkfifo(self.path)
        os.chmod(self.path, 0o666)
        self.fd = os.open(self.path, os.O_RDWR)
        self.unread = b''

    def wait(self, timeout_s=DEADLINE_S):
        """The next line that a job wrote."""
        end = time.monotonic() + timeout_s
        while b'\n' not in self.unread:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.fd], [], [], left)[0], f'no job rang within {timeout_s} s'
            self.unread += os.read(self.fd, 65536)
        line, _, self.unread = self.unread.partition(b'\n')
        return line.decode()

    def close(self):
        os.close(self.fd)
