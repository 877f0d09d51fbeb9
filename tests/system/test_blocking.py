# SPDX-License-Identifier: MIT
"""Calls that may hang (the user database, files of users, the disk of the store) take seconds, by tests/standin/slow.c.
The loops of mgpud, mgpu-agent and mgpu-uplink make none of them, and other users are served meanwhile.

What the loops do call, found with `files 1 /` in the control file, is on local file systems: RUN (a tmpfs), cgroups, /proc,
/dev, /etc/passwd and its like; of mgpu-agent also STATE (the epoch, which must be on the disk before it is obeyed, the state
of locked GPUs, and copies of exit records), and the log where standard error is a file. A pipe, a terminal or journald is
never waited for (base/log.c).
"""

import json
import os
import re
import shutil
import subprocess

import pytest

import harness
from cluster import Cluster

pytestmark = pytest.mark.root
STALL_MS = 4000
EACH_MS = 500  # where one request makes many such calls, and the times of answers do not matter
ROUND_S = 12  # what takes longer than the stall has come to its end by then
ANSWER_S = 3  # of a request that needs nothing slow; one wait for the user database is a second

# In its own mount namespace, with the few files of /etc that are needed and one that loads the stand-in.
ENTER = """set -e
mount --bind "$1/mnt" /mnt
mount --bind "$1/etc" /etc
shift
exec "$@"
"""
FILES = ('passwd', 'group', 'ld.so.cache', 'nsswitch.conf', 'hosts', 'mgpu')


def prepare(place):
    """The folders that ENTER needs; the words that start a program in such a namespace."""
    harness.require_namespaces()
    os.makedirs(f'{place}/mnt')
    os.makedirs(f'{place}/etc')
    for name in FILES:
        if os.path.isfile(f'/etc/{name}'):
            shutil.copy(f'/etc/{name}', f'{place}/etc')
    shutil.copy(f'{harness.build_folder()}/tests/unit/agent/libslow.so', f'{place}/mnt')
    for name, text in (('etc/ld.so.preload', '/mnt/libslow.so\n'), ('mnt/slow', ''), ('mnt/stalls', '')):
        with open(f'{place}/{name}', 'w', encoding='ascii') as target:
            target.write(text)
    os.chmod(f'{place}/mnt/stalls', 0o666)
    return ['unshare', '-m', 'sh', '-c', ENTER, 'sh', place]


@pytest.fixture
def box(make_instance, ana):
    made = make_instance(gpus='sim:4x8G', client=ana, start=False)
    with open(f'{made.place}/config', 'w', encoding='ascii') as out:
        out.write('roles:\n  operator: [group:mgpu-tg]\n')
    made.command += ['--config', f'{made.place}/config', '--log-dir', f'{made.place}/logs']
    made.command[:0] = prepare(made.place)
    return made.start()


def slow(box, line):
    with open(f'{box.place}/mnt/slow.new', 'w', encoding='ascii') as target:
        target.write(line)
    os.rename(f'{box.place}/mnt/slow.new', f'{box.place}/mnt/slow')


def stalls(box):
    with open(f'{box.place}/mnt/stalls', encoding='utf-8') as source:
        return source.read().splitlines()


# Another user, who asks one thing after the other; at the end it prints how long the slowest answer took.
OTHERS = '''
import json, socket, sys, time
path, until, slowest = sys.argv[1], time.monotonic() + float(sys.argv[2]), (0, None)
requests = json.loads(sys.argv[3])
while time.monotonic() < until:
    for method, target, text in requests:
        begin = time.monotonic()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            sock.sendall(f'{method} /api/v1{target} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n'
                         f'Content-Length: {len(text)}\\r\\n\\r\\n{text}'.encode())
            answer = b''.join(iter(lambda: sock.recv(65536), b''))
        slowest = max(slowest, (time.monotonic() - begin, target))
        assert answer.startswith(b'HTTP/1.1 20'), (target, answer[:300])
        if answer and begin + 0.05 > time.monotonic():
            time.sleep(0.02)
print(json.dumps(slowest))
'''


READS = [('GET', '/jobs?limit=10', ''), ('GET', '/gpus', ''), ('GET', '/version', '')]
SUBMIT = ('POST', '/jobs', json.dumps({'command': ['true'], 'cwd': '/', 'hold': True}))


def meanwhile(box, user, does, requests=(SUBMIT, *READS), answer_s=ANSWER_S):
    """What a user does while calls are slow, and what another user waits for in that time."""
    others = subprocess.Popen(['/usr/bin/python3', '-c', OTHERS, box.socket, str(ROUND_S), json.dumps(requests)], cwd='/',
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **user.popen_arguments())
    does()
    out = others.communicate(timeout=ROUND_S + harness.DEADLINE_S)[0]
    slow(box, '')
    assert others.returncode == 0
    seconds, target = json.loads(out)
    assert not stalls(box), stalls(box)
    assert seconds < answer_s, (seconds, target)


def start_and_leave(box, made, *words, user):
    """A command of this user that is not waited for."""
    made.append(box.popen(*words, user=user, cwd=user.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL))


def end_all(made):
    for process in made:
        process.kill()
        process.wait()


def test_slow_user_database_stalls_no_loop(box, ana, bo):
    made = []

    def ask():
        for words in (('submit', '--', 'true'), ('history', '-u', 'nobody'), ('users',), ('token', 'create'),
                      ('submit', '--notify', 'end', '--', 'true'), ('node', 'drain', 'localhost')):
            start_and_leave(box, made, *words, user=ana)

    box.run_job(['true'], user=bo)
    slow(box, f'users {STALL_MS}\n')
    meanwhile(box, bo, ask)
    end_all(made)
    assert box.run_job(['true'], user=ana, cwd='/')[0]['exit_code'] == 0


def test_submission_without_a_directory_says_that_the_user_database_is_slow(box, ana):
    slow(box, f'users {STALL_MS}\n')
    answer = box.api('POST', '/jobs', {'command': ['true']}, user=ana)
    slow(box, '')
    assert (answer.status, answer.json['code']) == (503, 'directory_away'), answer


def test_slow_files_of_users_stall_no_loop(box, ana, bo):
    made = []
    script = f'{ana.home}/mgpu-slow.sh'
    with ana.acting():
        with open(script, 'w', encoding='ascii') as target:
            target.write('#!/bin/sh\necho it ran\n')
        os.chmod(script, 0o755)
    running = box.mgpu('submit', '-o', f'{ana.home}/mgpu-slow.log', '--', 'sh', '-c', 'echo begun; exec sleep 60', user=ana,
                       cwd=ana.home, check=True).out.split()[0]
    box.wait(running, 'running')

    def ask():
        for words in (('submit', '-o', f'{ana.home}/mgpu-slow2.log', '-g', '1', script), ('logs', running), ('logs', '-f', running),
                      ('exec', running, 'true'), ('submit', '-C', ana.home, '--', 'true'), ('show', running)):
            start_and_leave(box, made, *words, user=ana)

    try:
        slow(box, f'files {STALL_MS} {ana.home}\n')
        meanwhile(box, bo, ask)
        box.mgpu('cancel', running, user=ana, check=True)
        box.wait(running)
    finally:
        end_all(made)
        for name in ('mgpu-slow.sh', 'mgpu-slow.log', 'mgpu-slow2.log'):
            if os.path.exists(f'{ana.home}/{name}'):
                os.unlink(f'{ana.home}/{name}')


def test_slow_folder_of_logs_stalls_no_loop(box, ana, bo):
    """Output goes there unless a job names another file."""
    made = []
    running = box.mgpu('submit', '--', 'sh', '-c', 'echo begun; exec sleep 60', user=ana, cwd='/', check=True).out.split()[0]
    box.wait(running, 'running')

    def ask():
        for words in (('submit', '--', 'echo', 'it ran'), ('logs', running), ('logs', '-f', running), ('exec', running, 'true'),
                      ('show', running)):
            start_and_leave(box, made, *words, user=ana)

    try:
        slow(box, f'files {STALL_MS} {box.place}/logs\n')
        meanwhile(box, bo, ask)
        box.mgpu('cancel', running, user=ana, check=True)
        box.wait(running)
    finally:
        end_all(made)


def test_slow_disk_of_the_store_stalls_no_loop(box, ana, bo):
    """Answers that show a change wait for its commit; the loop does not."""
    made = []

    def ask():
        for words in (('submit', '--', 'true'), ('doctor',), ('token', 'create'), ('history',), ('users',)):
            start_and_leave(box, made, *words, user=ana)

    box.run_job(['true'], user=bo)
    slow(box, f'files {EACH_MS} {box.state_dir}/store\n')
    try:
        meanwhile(box, bo, ask, READS, answer_s=harness.DEADLINE_S)
    finally:
        end_all(made)


@pytest.fixture(name='joined')
def cluster_with_a_slow_node(ana):
    with Cluster(count=0, client=ana) as cluster:
        place = f'{cluster.place}/slow'
        cluster.add('n1', prefix=prepare(place)).join()
        cluster.place_of_slow = place
        yield cluster


def test_slow_names_and_files_stall_no_loop_of_a_joined_machine(joined, ana):
    """mgpu-uplink looks up the controller for each stream and each new link."""
    box, made = joined.box, []
    if os.path.exists(f'{ana.home}/mgpu-slow.log'):
        os.unlink(f'{ana.home}/mgpu-slow.log')
    job = box.mgpu('submit', '-C', ana.home, '-o', 'mgpu-slow.log', '--', 'sh', '-c', 'echo begun; exec sleep 120', user=ana,
                   cwd=ana.home, check=True).out.split()[0]
    box.wait(job, 'running')

    class Node:
        place = joined.place_of_slow

    try:
        for line in (f'users {EACH_MS}\n', f'files {EACH_MS} {ana.home}\n'):
            slow(Node, line)
            start_and_leave(box, made, 'exec', job, 'true', user=ana)
            assert box.mgpu('logs', job, user=ana, check=True).out == 'begun\n', line
            box.kill()  # nothing that stops waits for the node
            box.start()
            joined.await_node('n1', lambda node: node['up'])
            slow(Node, '')
            assert not stalls(Node), stalls(Node)
        assert box.job(job, ana)['state'] == 'running'
        # Its own state, which is on a local disk, shows that its calls are noticed.
        slow(Node, f'files 1 {joined.nodes["n1"].state_dir}\n')
        box.kill()
        box.start()
        joined.await_node('n1', lambda node: node['up'])
        assert any(line.startswith(f'{joined.nodes["n1"].process.pid} ') for line in stalls(Node)), stalls(Node)
    finally:
        end_all(made)
        box.mgpu('cancel', job, user=ana)
        box.wait(job)
        if os.path.exists(f'{ana.home}/mgpu-slow.log'):
            os.unlink(f'{ana.home}/mgpu-slow.log')


# --- the stand-in ---

# Every function of it, called by the first thread of a program with the name of a daemon; the folder has `file` and `link`.
CALLS = '''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(8192)
at = os.open(sys.argv[1], os.O_RDONLY)
os.chdir(sys.argv[1])
fd = os.open('file', os.O_RDWR)
def path(name):
    return os.path.join(sys.argv[1], name).encode()
called = []
def call(name, *arguments):
    called.append(name)
    function = getattr(libc, name)
    function.restype = ctypes.c_void_p if name in ('opendir', 'fdopendir', 'fopen', 'fopen64') else ctypes.c_long
    function(*[ctypes.c_void_p(one) if isinstance(one, int) and one > 1 << 31 else one for one in arguments])
if sys.argv[2] == 'users':
    for name in ('getpwnam', 'getgrnam'):
        call(name, b'root')
    for name in ('getpwuid', 'getgrgid'):
        call(name, 0)
    result = ctypes.byref(ctypes.c_void_p())
    for name, key in (('getpwnam_r', b'root'), ('getpwuid_r', 0), ('getgrnam_r', b'root'), ('getgrgid_r', 0)):
        call(name, key, room, ctypes.byref(room, 1024), ctypes.c_size_t(4096), result)
    call('getgrouplist', b'root', 0, room, ctypes.byref(ctypes.c_int(8)))
    call('initgroups', b'root', 0)
    call('getaddrinfo', b'127.0.0.1', None, None, ctypes.byref(ctypes.c_void_p()))
else:
    for name in ('open', 'open64', '__open_2', '__open64_2'):
        call(name, path('file'), 0)
    for name in ('openat', 'openat64', '__openat_2', '__openat64_2'):
        call(name, at, b'file', 0)
    for name in ('stat', 'stat64', 'lstat', 'lstat64', 'statvfs', 'statvfs64', 'statfs', 'statfs64'):
        call(name, b'file', room)
    for name in ('fstatat', 'fstatat64'):
        call(name, at, b'file', room, 0)
    call('statx', at, b'file', 0, 0, room)
    for name in ('fstat', 'fstat64', 'fstatvfs', 'fstatvfs64', 'fstatfs', 'fstatfs64'):
        call(name, fd, room)
    call('access', path('file'), 0)
    call('faccessat', at, b'file', 0, 0)
    call('readlink', path('link'), room, ctypes.c_size_t(100))
    call('__readlink_chk', path('link'), room, ctypes.c_size_t(100), ctypes.c_size_t(100))
    call('readlinkat', at, b'link', room, ctypes.c_size_t(100))
    call('__readlinkat_chk', at, b'link', room, ctypes.c_size_t(100), ctypes.c_size_t(100))
    call('realpath', path('file'), room)
    call('__realpath_chk', path('file'), room, ctypes.c_size_t(8192))
    call('mkdir', path('folder'), 0o700)
    call('rmdir', path('folder'))
    call('mkdirat', at, b'folder', 0o700)
    call('unlinkat', at, b'folder', 0x200)
    call('rename', path('file'), path('other'))
    call('renameat', at, b'other', at, b'file')
    call('renameat2', at, b'file', at, b'other', 0)
    call('chmod', path('other'), 0o600)
    call('fchmodat', at, b'other', 0o600, 0)
    call('chown', path('other'), 0, 0)
    call('fchownat', at, b'other', 0, 0, 0)
    call('chdir', path('.'))
    call('fchdir', at)
    call('opendir', path('.'))
    call('fdopendir', os.dup(at))
    call('fopen', path('other'), b'r')
    call('fopen64', path('other'), b'r')
    call('write', fd, b'x', ctypes.c_size_t(1))
    call('fsync', fd)
    call('fdatasync', fd)
    call('ftruncate', fd, ctypes.c_long(0))
    call('ftruncate64', fd, ctypes.c_long(0))
    call('unlink', path('other'))
print(*called, sep='\\n')
'''


@pytest.mark.parametrize('kind', ['users', 'files'])
def test_every_call_of_the_stand_in_is_slow_in_a_loop(tmp_path, kind):
    place, folder = str(tmp_path / 'place'), tmp_path / 'slow'
    folder.mkdir()
    (folder / 'file').write_text('')
    (folder / 'link').symlink_to('file')
    os.symlink('/usr/bin/python3', tmp_path / 'mgpud')

    class Place:
        pass

    Place.place = place
    enter = prepare(place)
    slow(Place, f'{kind} 1 {folder}\n')
    done = subprocess.run([*enter, tmp_path / 'mgpud', '-SE', '-c', CALLS, folder, kind], check=True, text=True, capture_output=True,
                          timeout=harness.DEADLINE_S)
    called = done.stdout.split()
    with open(f'{harness.ROOT}/tests/standin/slow.c', encoding='utf-8') as source:
        text = source.read().split('/* --- files --- */')[kind == 'files']
    defined = re.findall(r'NEXT\((?!name)(\w+)\)', text) if kind == 'users' else \
        re.findall(r'^(?:OPEN|OPENAT)\((\w+)\)$|^(?:PATH|AT|FD)\([^,]+,\s*(\w+),', text, re.MULTILINE)
    defined = {''.join(name) for name in defined}
    assert defined == set(called), defined ^ set(called)
    seen = [line.split(' ')[1] for line in stalls(Place)]
    assert [name for name in called if name not in seen] == []


def test_slow_call_in_a_loop_is_noticed(box, bo):
    """The stand-in records what the test above relies on: mgpud looks at /etc/passwd in its loop, which is local."""
    slow(box, f'files {STALL_MS} /etc/passwd\n')
    box.api('GET', '/jobs?user=nobody', user=bo)
    slow(box, '')
    assert any('stat64 /etc/passwd' in line for line in stalls(box)), stalls(box)
