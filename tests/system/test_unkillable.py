# SPDX-License-Identifier: MIT
"""A process that nothing ends: it waits in the kernel for a file system that has stopped answering."""

import contextlib
import ctypes
import errno
import os
import select
import signal
import struct
import threading

import pytest

import harness

pytestmark = [pytest.mark.root, pytest.mark.skipif(not os.path.exists('/dev/fuse'), reason='needs /dev/fuse')]

# --- a file system with one file, in the words of linux/fuse.h ---

LOOKUP, GETATTR, OPEN, READ, INIT = 1, 3, 14, 15, 26
NODE, DIRECTORY, FILE = 2, 0o040755, 0o100644
IN_HEADER = struct.Struct('<IIQQIIII')  # length, opcode, unique, node, uid, gid, pid, padding
OUT_HEADER = struct.Struct('<IiQ')      # length, error, unique


def attributes(node):
    mode, size = (DIRECTORY, 0) if node == 1 else (FILE, 4096)
    return struct.pack('<QQQQQQIIIIIIIIII', node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class SilentFiles:
    """`path`/file can be opened by everybody, and each read of it waits until `answer`."""

    def __init__(self, path):
        os.mkdir(path)
        self.path, self.file = path, f'{path}/file'
        self.fd = os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC)
        options = f'fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other'
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b'silent', path.encode(), b'fuse', 0, options.encode()) < 0:
            pytest.skip(f'no FUSE file system can be mounted here: {os.strerror(ctypes.get_errno())}')
        self.waiting, self.is_answering, self.lock = [], False, threading.Lock()
        self.blocked, self.bell = os.pipe()
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()

    def reply(self, unique, data=b'', error=0):
        with contextlib.suppress(OSError):  # whoever asked has gone
            os.write(self.fd, OUT_HEADER.pack(OUT_HEADER.size + len(data), -error, unique) + data)

    def serve(self):
        with contextlib.suppress(OSError):  # unmounted
            while True:
                request = os.read(self.fd, 1 << 20)
                _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
                self.obey(opcode, unique, node)

    def obey(self, opcode, unique, node):
        if opcode == INIT:
            self.reply(unique, struct.pack('<IIIIHHIIHH28x', 7, 31, 65536, 0, 16, 12, 65536, 1, 16, 0))
        elif opcode == LOOKUP:
            self.reply(unique, struct.pack('<QQQQII', NODE, 0, 0, 0, 0, 0) + attributes(NODE))
        elif opcode == GETATTR:
            self.reply(unique, struct.pack('<QII', 0, 0, 0) + attributes(node))
        elif opcode == OPEN:
            self.reply(unique, struct.pack('<QII', 0, 1, 0))
        elif opcode == READ:
            with self.lock:
                self.waiting += [unique]
                os.write(self.bell, b'x')
                if self.is_answering:
                    self.answer_all()
        else:
            self.reply(unique, error=errno.ENOSYS)

    def answer_all(self):
        for unique in self.waiting:
            self.reply(unique)  # the end of the file
        self.waiting = []

    def await_reader(self):
        assert select.select([self.blocked], [], [], harness.DEADLINE_S)[0], 'nobody reads'
        os.read(self.blocked, 1)

    def answer(self):
        with self.lock:
            self.is_answering = True
            self.answer_all()

    def close(self):
        self.answer()
        ctypes.CDLL(None).umount2(self.path.encode(), 2)
        os.close(self.fd)


@pytest.fixture
def silent(place):
    made = SilentFiles(f'{place}/silent')
    yield made
    made.close()


@pytest.fixture
def box(make_instance, silent):
    return make_instance('sim:2x8G')


def told(box, verb, job, text):
    """What `mgpu VERB JOB` says once it has the text: nobody announces that time has passed."""
    return harness.until(lambda: next((line for line in box.mgpu(verb, job).out.splitlines() if text in line), None),
                         f'mgpu {verb} says {text!r}')


def others_go_on(box, job, state='stopping'):
    """The GPU of the job is given to nobody, and the other one is."""
    assert box.job(job)['state'] == state, box.job(job)
    assert [[held['id'] for held in gpu['jobs']] for gpu in box.gpus()] == [[job], []], box.gpus()
    assert box.wait(box.post_job(['true'], gpus=1))['granted'][0]['index'] == 1


def test_the_gpus_of_a_job_that_cannot_be_killed_stay_its_own_and_show_says_why(box, silent, place):
    job = box.post_job(['sh', '-c', f'read word < {silent.file}'], gpu_ids='0')
    silent.await_reader()
    waiting = box.post_job(['sh', '-c', f'echo here > {place}/ran'], gpu_ids='0')
    box.mgpu('cancel', '--grace', '0s', job, check=True)
    others_go_on(box, job)
    for verb in ('show', 'why'):
        assert 'blocked in the kernel' in told(box, verb, job, 'has not ended')
    assert job in box.api('GET', f'/jobs/{waiting}/why').json['reasons'][0]['jobs'], box.mgpu('why', waiting)
    for pid in box.shepherds():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    others_go_on(box, job)
    box.kill_agent()
    others_go_on(box, job)
    box.kill()
    box.start()
    others_go_on(box, job)
    assert told(box, 'show', job, 'has not ended')
    assert not os.path.exists(f'{place}/ran')
    silent.answer()
    assert box.wait(job)['state'] == 'cancelled'
    assert box.wait(waiting)['state'] == 'done' and os.path.exists(f'{place}/ran')


def test_nor_is_the_gpu_given_on_when_the_command_has_ended_before_its_child(box, silent, bell, gate):
    job = box.post_job(['sh', '-c', f'read word < {silent.file} & echo $$ > {bell.path}; read word < {gate.path}; exit 3'], gpu_ids='0')
    silent.await_reader()
    waiting = box.post_job(['true'], gpu_ids='0')
    pid = int(bell.wait())
    box.wait(job, 'running')
    gate.open()
    assert harness.wait_process(pid)
    others_go_on(box, job, 'running')
    for pid in box.shepherds():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    box.kill_agent()
    others_go_on(box, job, 'running')
    silent.answer()
    assert box.wait(job)['exit_code'] == 3
    assert box.wait(waiting)['state'] == 'done'
