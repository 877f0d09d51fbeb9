# SPDX-License-Identifier: MIT
"""A compromised mgpud: it has the link of an mgpu-agent that runs as root, and sends whatever it likes.

The frames are made from the field tables of the build (tests/support/message_tables.c), so that they follow every change
of a message.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

import harness
import skew

FORMATS = {'bool': '<?', 'u32': '<I', 'i32': '<i', 'u64': '<Q', 'i64': '<q'}
VICTIM, VICTIM_TOKEN = 900, 4242  # a job that another mgpud would have started


def message_names():
    """Those that message.h names."""
    with open(f'{harness.ROOT}/src/wire/message.h', encoding='utf-8') as source:
        text = source.read()
    return re.findall(r'MESSAGE_(\w+)', text[text.index('enum message_id {'):text.index('};', text.index('enum message_id {'))])


def load_tables():
    program = f'{harness.build_folder()}/tests/unit/wire/message_tables'
    return json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout)


def encode_value(field, value):
    kind = field['kind']
    if kind in FORMATS:
        return struct.pack(FORMATS[kind], value)
    if kind == 'string':
        return value if isinstance(value, bytes) else value.encode()
    if kind == 'strings':
        return b''.join((word if isinstance(word, bytes) else word.encode()) + b'\0' for word in value)
    items = (encode_fields(field['fields'], item) for item in value)
    return b''.join(skew.FIELD.pack(0, 0, len(item)) + item for item in items)


def encode_fields(fields, values):
    known = {field['name']: field for field in fields}
    assert set(values) <= set(known), set(values) - set(known)
    encoded = ((known[name]['tag'], encode_value(known[name], value)) for name, value in values.items())
    return b''.join(skew.FIELD.pack(tag, 0, len(value)) + value for tag, value in encoded)


def decode_numbers(fields, body):
    """{name: number} of a message; what is no number is left out."""
    known, found, at = {field['tag']: field for field in fields}, {}, 0
    while at < len(body):
        tag, _, length = skew.FIELD.unpack_from(body, at)
        at += skew.FIELD.size
        field = known.get(tag)
        if field and field['kind'] in FORMATS:
            found[field['name']] = struct.unpack(FORMATS[field['kind']], body[at:at + length])[0]
        at += length
    return found


class Rogue:
    """The agent, its links one after the other, and the streams that it dials."""

    def __init__(self, arguments=()):
        self.tables = load_tables()
        self.names = {table['id']: name for name, table in self.tables.items()}
        self.place = tempfile.mkdtemp(prefix='mgpu-t-', dir='/tmp')
        os.chmod(self.place, 0o755)
        self.run_dir, self.log_path = f'{self.place}/run', f'{self.place}/log'
        os.makedirs(self.run_dir)
        self.changed, self.streams = threading.Condition(), []
        self.heard, self.messages, self.is_closed = bytearray(), [], True
        self.epoch, self.orders, self.questions = 1, itertools.count(1), itertools.count(1)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(f'{self.run_dir}/link.sock')
        self.listener.listen(1024)
        threading.Thread(target=self.accept, daemon=True).start()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        programs = harness.programs()
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(
                [f'{programs}/mgpu-agent', f'--uplink-fd={theirs.fileno()}', f'--run-dir={self.run_dir}',
                 f'--state-dir={self.place}/state', '--gpus=sim:2x8G', '--node=rogue', '--log-dir=home',
                 f'--shepherd={programs}/mgpu-shepherd', *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs.fileno()], cwd='/',
                env={'PATH': '/usr/bin:/bin', 'UBSAN_OPTIONS': 'print_stacktrace=1',
                     'ASAN_OPTIONS': 'detect_leaks=0:exitcode=99:allocator_may_return_null=1'})
        theirs.close()
        self.link = None
        self.greet()

    # --- what comes ---

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.streams.append(self.listener.accept()[0])
                threading.Thread(target=self.read_stream, args=(self.streams[-1],), daemon=True).start()

    def read_stream(self, stream):
        with contextlib.suppress(OSError), stream:
            while True:
                more = stream.recv(65536)
                if not more:
                    return
                with self.changed:
                    self.heard += more
                    self.changed.notify_all()

    def read_link(self, link):
        held = b''
        with contextlib.suppress(OSError):
            while True:
                more = link.recv(65536)
                if not more:
                    break
                held = self.take(held + more)
        with self.changed:
            if link is self.link:
                self.is_closed = True
            self.changed.notify_all()

    def take(self, held):
        with self.changed:
            while len(held) >= skew.HEAD.size:
                _, kind, _, length = skew.HEAD.unpack_from(held)
                if len(held) < skew.HEAD.size + length + 4:
                    break
                body, held = held[skew.HEAD.size:skew.HEAD.size + length], held[skew.HEAD.size + length + 4:]
                name = self.names[kind]
                if name != 'GPUS':
                    self.heard += body
                    self.messages.append((name, decode_numbers(self.tables[name]['fields'], body)))
            self.changed.notify_all()
        return held

    def wait(self, is_there, what):
        deadline = time.monotonic() + harness.DEADLINE_S
        with self.changed:
            while not is_there():
                left = deadline - time.monotonic()
                assert left > 0, f'{what}; the agent says:\n{self.log()[-3000:]}'
                self.changed.wait(left)

    def came(self, name, **values):
        return any(kind == name and values.items() <= numbers.items() for kind, numbers in self.messages)

    # --- what goes ---

    def send_bytes(self, bytes_):
        """What the other side does not take any more is lost with the link."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.link.sendall(bytes_)

    def send(self, name, **values):
        table = self.tables[name]
        self.send_bytes(skew.frame(table['id'], encode_fields(table['fields'], values)))

    def open_link(self):
        if self.link:
            self.link.close()
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.messages, self.is_closed = [], False
        socket.send_fds(self.control, [b'L'], [theirs.fileno()])
        theirs.close()
        threading.Thread(target=self.read_link, args=(self.link,), daemon=True).start()
        self.wait(lambda: self.came('HELLO'), 'no HELLO came')

    def greet(self):
        self.open_link()
        self.send('WELCOME', epoch=self.epoch, event=1, began_ms=1)
        self.settle()

    def settle(self):
        """Until all that was sent has been taken. A link that was closed for it is replaced by the next one."""
        question = next(self.questions)
        self.send('INSPECT', question=question, pid=1)
        self.wait(lambda: self.is_closed or self.came('PROCESS_INFO', question=question), 'the agent does not answer')
        if self.is_closed:
            assert self.process.poll() is None, f'the agent died:\n{self.log()[-4000:]}'
            self.greet()

    def launch(self, job, uid, token=1, **values):
        self.send('LAUNCH', **{'job': job, 'attempt': 1, 'token': token, 'uid': uid, 'gid': uid,
                               'order': next(self.orders), **values})

    # --- how it is ---

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as source:
            return source.read()

    def spool(self):
        """(job, attempt, step, rank) of the entries there are."""
        names = (name for name in os.listdir(f'{self.run_dir}/spool') if re.fullmatch(r'[0-9.]+', name))
        return {tuple(map(int, name.split('.'))) for name in names}

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def clear(self, tokens, spared=(VICTIM,)):
        """Ends and forgets all attempts of other jobs than these. `tokens`: {(job, attempt, step, rank): token}"""
        deadline = time.monotonic() + harness.DEADLINE_S
        while True:
            left = {id_ for id_ in self.spool() if id_[0] not in spared}
            if not left:
                return
            assert time.monotonic() < deadline, f'{left}\n{self.log()[-3000:]}'
            for id_ in left:
                names = dict(zip(('job', 'attempt', 'step', 'rank'), id_), token=tokens.get(id_, 1))
                self.send('STOP', **names, signal=9, grace_ms=0)
                self.send('RELEASE_ATTEMPT', **names)
            self.settle()
            with self.changed:
                self.changed.wait(0.2)

    def hang_up(self):
        """Ends the streams: who follows a log goes on until then."""
        for stream in self.streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        self.streams = []

    def close(self):
        self.hang_up()
        self.clear({(VICTIM, 1, 0, 0): VICTIM_TOKEN}, spared=())
        self.control.close()
        self.link.close()
        assert self.process.wait(harness.DEADLINE_S) == 0, self.log()[-3000:]
        left = harness.processes(self.place)
        assert all(harness.wait_process(pid) for pid in left), f'{len(left)} processes are left'
        self.listener.close()
        shutil.rmtree(self.place, ignore_errors=True)
