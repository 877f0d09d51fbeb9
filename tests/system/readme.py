# SPDX-License-Identifier: MIT
"""README.md and the guides of docs/ typed as they stand: their commands on a terminal, in order, and what they print held
against what they show.

A machine of one's own is made of namespaces: the usual directories, users, homes and port of mgpu are there and empty.
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time

import harness

WIDTH, HEIGHT = 110, 40
COMMAND_S = 60

# What differs from one run, user or machine to the next, and what stands for it.
VARYING = (
    (re.compile(r' · GPUs \d.*'), ''),
    (re.compile(r'\b\d{4}-\d\d-\d\dT[\d:.]+Z\b'), 'TIME'),
    (re.compile(r'(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|\d{4}-\d\d-\d\d) )?\b\d\d:\d\d(?::\d\d)?\b'), 'TIME'),
    (re.compile(r'\b(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+(?!\w)'), 'SPAN'),
    (re.compile(r'\b\d+C \d+(?= )'), 'HEAT'),
    (re.compile(r'\b\d+(?:\.\d+)? [KMG]iB\b'), 'SIZE'),
    (re.compile(r'\b\d+%'), 'PART'),
    (re.compile(r'(?<= )\d+\.\d+\.\d+$'), 'VERSION'),
    (re.compile(r'(?<= )(?:-|SPAN)(?= (?:used|free)$)'), 'IDLE'),
    (re.compile(r'[─━█▏▎▍▌▋▊▉▁▂▃▄▅▆▇]+'), 'BAR'),
)
ESCAPE = re.compile(r'\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])')


def sections(page='README.md'):
    """{heading: [(user of the prompt, command, lines shown)]}; a command goes on in lines at the prompt `>`."""
    with open(f'{harness.ROOT}/{page}', encoding='utf-8') as source:
        text = source.read()
    found = {}
    for part in re.split(r'^## ', text, flags=re.M)[1:]:
        heading, _, body = part.partition('\n')
        steps = found.setdefault(heading, [])
        for block in re.findall(r'^```\n(.*?)^```$', body, flags=re.M | re.S):
            for line in block.splitlines():
                if line[:2] in ('$ ', '# '):
                    steps.append((line[0], line[2:], []))
                elif line.startswith('> ') and steps and not steps[-1][2]:
                    steps[-1] = (steps[-1][0], f'{steps[-1][1]}\n{line[2:]}', [])
                elif steps:
                    steps[-1][2].append(line)
    return found


def plain(text, names):
    """A line without what varies, and with the README's names of the user, the node and the directory."""
    for own, shown in names:
        text = re.sub(rf'(?<![\w/-]){re.escape(own)}(?![\w-])', shown, text)
    text = ' '.join(text.split())
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


STARTED = re.compile(r'▶ job \d+ on \S+ after ')
DETACHING = 'mgpu: Ctrl-] d detaches; the job continues'  # of a job that has not ended before that can be said


def is_passing(printed, shown):
    """Of a job that the page shows started: on a busy machine it may be queued for a moment, and then its start is said."""
    return (printed.startswith('queued, position ') and not shown.startswith('queued, ')
            or STARTED.match(printed) is not None and not shown.startswith('▶ '))


def check_shown(shown, printed, names, command):
    """Each line shown was printed, in this order, with nothing between them but where `...` stands; `begins...` too."""
    want = [plain(line, ()) for line in shown if line.strip() and line != DETACHING]
    have = [line for line in (plain(line, names) for line in printed.splitlines()) if line and line != DETACHING]
    at, may_skip = 0, False
    for line in want:
        if line == '...':
            may_skip = True
            continue
        begins = line.removesuffix('...') if line.endswith('...') else None
        while at < len(have) and have[at] != line and (may_skip or is_passing(have[at], line)):
            at += 1
        is_there = at < len(have) and (have[at] == line or begins and have[at].startswith(begins))
        assert is_there, f'$ {command}\nthe page shows:   {line}\nit printed:       {have[at:at + 1]}\n\n{printed}'
        at, may_skip = at + 1, False
    assert at == len(have) or may_skip, f'$ {command}\nthe page does not show: {have[at:]}'


class Terminal:
    """Runs one command after the other, each on a terminal, in a directory that `cd` changes."""

    def __init__(self, prefix, user, environment, folder):
        self.prefix, self.user, self.environment, self.folder = prefix, user, environment, folder

    def argv(self, user, command):
        words = ['sh', '-c', f'cd "$0" && {command}', self.folder]
        if self.prefix:
            as_user = [] if user.uid == 0 else ['setpriv', f'--reuid={user.uid}', f'--regid={user.gid}', '--init-groups']
            return [*self.prefix, *as_user, 'env', '-i', *(f'{k}={v}' for k, v in self.environment(user).items()), *words]
        return words

    def type(self, command, user=None):
        """What the command showed."""
        user = user or self.user
        if command.startswith('cd '):
            self.folder = os.path.join(self.folder, command[3:])
            return ''
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack('HHHH', HEIGHT, WIDTH, 0, 0))
        arguments = {} if self.prefix else user.popen_arguments()
        process = subprocess.Popen(
            self.argv(user, command), stdin=side, stdout=side, stderr=side, start_new_session=True, close_fds=True,
            cwd='/', env=self.environment(user), preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **arguments)
        os.close(side)
        out, end = b'', time.monotonic() + COMMAND_S
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while True:
                left = end - time.monotonic()
                assert left > 0 and select.select([main], [], [], left)[0], f'{command} does not end:\n{out.decode()}'
                more = os.read(main, 65536)
                if not more:
                    break
                out += more
        os.close(main)
        process.wait(harness.DEADLINE_S)
        text = ESCAPE.sub('', out.decode(errors='replace'))
        return '\n'.join(line.rstrip('\r').rsplit('\r', 1)[-1] for line in text.split('\n'))


SETUP = '''set -e
ip link set lo up
cp -a /etc/. "$1/etc"
mount --bind "$1/etc" /etc
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=700 tmpfs /root
mkdir /var/lib/mgpu
mount -t tmpfs -o "mode=700,uid=$3,gid=$4" tmpfs "$2"
echo ready
exec sleep infinity
'''


@contextlib.contextmanager
def own_machine(user, folder, starter):
    """A terminal of `user` on a machine where mgpu was never started; what `starter` has started is stopped at the end."""
    harness.require_namespaces('-m -n')
    with contextlib.ExitStack() as kept:
        # Cgroups are not the machine's own: two mgpud with the usual directories would share those of their jobs.
        lock = kept.enter_context(open('/tmp/mgpu-own-machine.lock', 'w', encoding='ascii'))
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = kept.enter_context(tempfile.TemporaryDirectory(prefix='mgpu-etc-', dir='/tmp'))
        os.mkdir(f'{place}/etc')
        os.chmod(place, 0o755)
        os.chmod(f'{place}/etc', 0o755)
        with subprocess.Popen(
                ['unshare', '--mount', '--net', '--propagation', 'private', 'sh', '-c', SETUP, 'sh', place, user.home,
                 str(user.uid), str(user.gid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
            terminal = None
            try:
                assert holder.stdout.readline() == b'ready\n', holder.stderr.read()
                prefix = ['nsenter', f'--target={holder.pid}', '--mount', '--net']

                def environment(who):
                    return {**who.environment(), 'PATH': f'{harness.programs()}:/usr/sbin:/usr/bin:/sbin:/bin',
                            'TERM': 'xterm', 'ASAN_OPTIONS': 'detect_leaks=0'}
                terminal = Terminal(prefix, user, environment, folder)
                yield terminal
            finally:
                if terminal:
                    terminal.type('mgpud --stop', starter)
                holder.send_signal(signal.SIGKILL)


def names_of(user):
    """What the README calls the user and the node."""
    return ((user.name, 'ada'), (socket.gethostname(), 'vm'))


def type_section(terminal, heading, page, ana, root, names):
    """Types one section; commands at the prompt # are those of `root`, where `ana` leaves out what only root can do."""
    steps = sections(page)[heading]
    for prompt, command, shown in steps:
        if prompt == '#' and root is ana and not command.startswith('mgpud'):
            continue
        typed = command
        for own, written in names:
            typed = re.sub(rf'\b{written}\b', own, typed)
        printed = terminal.type(typed, root if prompt == '#' else ana)
        if command.startswith('mgpud') and '--detach' in command:
            assert 'is ready' in printed, printed
        elif not command.startswith(('cd ', 'useradd')):
            check_shown(shown, printed, names, command)


def clone(user):
    """A copy of what the commands need of the repository, owned by this user, as a clone is; the caller removes it."""
    place = tempfile.mkdtemp(prefix='mgpu-clone-', dir='/tmp')
    os.chmod(place, 0o755)
    shutil.copytree(f'{harness.ROOT}/examples', f'{place}/examples')
    for folder, _, files in os.walk(place):
        for path in (folder, *(f'{folder}/{name}' for name in files)):
            os.chown(path, user.uid, user.gid)
    return place
