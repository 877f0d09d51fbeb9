# SPDX-License-Identifier: MIT
"""Two mgpuds on one machine: the second says what it would share and starts only if it was asked to; clients name the one they ask."""

import os
import pty
import subprocess

import pytest

import harness
from cluster import Cluster

NVIDIA_MAJOR = 195
FIRST_MINOR = 1000 + 10 * int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])  # of no GPU, and of no test beside this one
REFUSED = 'a second one would allocate the same GPUs, CPUs and memory'


@pytest.fixture(name='nodes')
def device_nodes(tmp_path):
    for n in range(2):
        os.mknod(tmp_path / f'nvidia{n}', 0o20666, os.makedev(NVIDIA_MAJOR, FIRST_MINOR + n))
    os.mknod(tmp_path / 'nvidiactl', 0o20666, os.makedev(NVIDIA_MAJOR, FIRST_MINOR + 9))
    return str(tmp_path)


@pytest.fixture(name='make')
def maker(make_instance, nodes):
    if not harness.IS_ROOT:
        pytest.skip('needs device nodes and two users')

    def make(gpus='auto', user=None, arguments=(), start=True):
        return make_instance(gpus=gpus, user=user, client=user, start=start, arguments=['--device-dir', nodes, *arguments])
    return make


def refusal_of(box):
    done = subprocess.run(box.command, check=False, capture_output=True, text=True, timeout=harness.DEADLINE_S, cwd='/',
                          stdin=subprocess.DEVNULL, env=box.environment(), **box.user.popen_arguments())
    assert done.returncode != 0, done
    return done.stderr


@pytest.mark.parametrize(('first', 'second'), [('ana', 'bo'), ('ana', 'ana'), (None, 'ana'), (None, None)])
def test_a_second_one_names_the_first_and_does_not_start(make, nodes, request, first, second):
    first, second = (name and request.getfixturevalue(name) for name in (first, second))
    one = make(user=first)
    said = refusal_of(make(user=second, start=False))
    assert f'(pid {one.process.pid}, of uid {one.user.uid}) allocates {nodes}/nvidia0 to {nodes}/nvidia1: {REFUSED}' in said, said
    assert '--gpus' in said and 'mgpu run' in said, said
    one.stop()
    make(user=second)


def test_what_a_dead_process_has_left_open_keeps_nobody_from_starting(make, nodes, ana):
    """A child that was forked and not executed yet holds the claims of a parent that was killed."""
    code = f"""
import os, socket, sys
claims = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for n, claim in enumerate(claims):
    claim.bind('\\0mgpu-gpu-{NVIDIA_MAJOR}:%d' % ({FIRST_MINOR} + n))
    claim.listen()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    os.close(1)
    sys.stdin.read()
    os._exit(0)
"""
    holder = subprocess.Popen(['/usr/bin/python3', '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert int(holder.stdout.read()) > 0 and holder.wait(harness.DEADLINE_S) == 0
    box = make(user=ana, start=False)
    ready = box.spawn()
    holder.stdin.close()  # its child ends, too
    assert ready.recv(4096) and 'allocates' not in box.log(), box.log()
    ready.close()


@pytest.mark.parametrize('gpus', ['sim:2x8G', 'none'])
def test_one_that_allocates_no_real_gpus_is_in_nobodys_way(make, gpus, ana, bo):
    one = make(user=ana)
    assert 'allocates' not in make(gpus, user=bo).log()
    one.stop()
    assert 'allocates' not in make(user=ana).log()


def test_who_names_the_gpus_is_told_what_is_shared(make, nodes, ana, bo):
    one = make(user=ana)
    said = make('amd', user=bo).log()
    assert f'pid {one.process.pid}, of uid {ana.uid}) also allocates {nodes}/nvidia0 to {nodes}/nvidia1' in said, said
    assert REFUSED not in said, said


def test_no_user_keeps_the_machines_from_starting(make, ana):
    one = make(user=ana)
    assert f'pid {one.process.pid}, of uid {ana.uid}) also allocates' in make().log()


@pytest.mark.parametrize('backlog', [None, 0], ids=['who does not listen', 'whose queue is full'])
def test_nor_does_one_who_cannot_be_named(make, ana, backlog):
    code = f"""
import os, socket, sys
os.setuid({ana.uid})
names = ['\\0mgpu-gpu-{NVIDIA_MAJOR}:%d' % ({FIRST_MINOR} + n) for n in range(2)]
kept = []
for name in names:
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(name)
    if {backlog} is not None:
        kept[-1].listen({backlog})
        kept.append(socket.socket(socket.AF_UNIX))
        kept[-1].connect(name)
print('held', flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(['/usr/bin/python3', '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == 'held\n'
        assert 'another mgpu on this machine also allocates' in make().log()
        assert REFUSED in refusal_of(make(user=ana, start=False))
        holder.stdin.close()


def test_a_joined_machine_has_its_gpus_too(make, nodes, ana):
    one = make(user=ana)
    with Cluster(count=0, client=ana) as cluster:
        cluster.add('n1', 'auto', arguments=['--device-dir', nodes]).join()
        harness.until(lambda: f'pid {one.process.pid}, of uid {ana.uid}) also allocates' in cluster.nodes['n1'].log(), 'it says so')
        one.stop()


def screen_of(words, env, user):
    main, side = pty.openpty()
    process = subprocess.Popen(words, stdin=side, stdout=side, stderr=side, env=env, cwd='/', **user.popen_arguments())
    os.close(side)
    text = b''
    try:
        while chunk := os.read(main, 65536):
            text += chunk
    except OSError:  # it has left
        pass
    os.close(main)
    assert process.wait(harness.DEADLINE_S) == 0, text
    return text.decode()


def test_a_command_on_a_terminal_names_the_one_it_asks(make_instance, place, someone):
    """The user's own and the machine's, in a namespace where it lies in the usual place."""
    harness.require_namespaces()
    box = make_instance(gpus='sim:2x8G')
    own = make_instance(gpus='none', user=someone, client=someone)
    inside = f'mount -t tmpfs none /run && mkdir /run/mgpu && mount --bind {box.run_dir} /run/mgpu && exec "$@"'
    os.makedirs(f'{place}/runtime')
    os.symlink(own.run_dir, f'{place}/runtime/mgpu')
    before = ['unshare', '--mount', 'sh', '-c', inside, 'sh', 'setpriv', f'--reuid={someone.uid}', f'--regid={someone.gid}', '--init-groups',
              f'{harness.programs()}/mgpu']
    env = dict(someone.environment(), XDG_RUNTIME_DIR=f'{place}/runtime', TERM='dumb')
    note = f'mgpu: asking the mgpud at {place}/runtime/mgpu/mgpud.sock; another one answers at /run/mgpu/mgpud.sock (--socket)'
    root = harness.User('root')
    for words in (['ps'], ['gpus'], [], ['history'], ['run', '-g', '0', '--', 'true'], ['submit', '-g', '0', '--', 'true']):
        assert screen_of([*before, *words], env, root).count(note) == 1, words
    assert note not in screen_of([*before, '-q', 'ps'], env, root)
    assert note not in screen_of([*before, '--socket', '/run/mgpu/mgpud.sock', 'ps'], env, root)
    done = subprocess.run([*before, 'ps'], check=True, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
    assert 'another' not in done.stderr, done
    box.stop()
    assert 'another' not in screen_of([*before, 'ps'], env, root)


STALE_SOCKET = 'import os, socket; place = os.environ["XDG_RUNTIME_DIR"] + "/mgpu"; os.makedirs(place, 0o700); socket.socket(socket.AF_UNIX).bind(place + "/mgpud.sock")'


def test_a_user_whose_own_mgpud_was_stopped_is_told_to_start_that(make_instance, tmp_path):
    user = make_instance(start=False).client
    os.chmod(tmp_path, 0o777)
    environment = {**user.environment(), 'XDG_RUNTIME_DIR': str(tmp_path), 'HOME': str(tmp_path)}
    environment.pop('MGPU_SOCKET', None)

    def run(*command):
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=harness.DEADLINE_S, cwd='/', env=environment,
                              stdin=subprocess.DEVNULL, **user.popen_arguments())
    if user.uid == 0:
        pytest.skip('needs a user who is not root')
    assert run('/usr/bin/python3', '-c', STALE_SOCKET).returncode == 0
    done = run(f'{harness.programs()}/mgpu', 'ps')
    assert done.returncode != 0, done
    assert 'your own mgpud is not running: mgpud --detach' in done.stderr and 'systemctl' not in done.stderr, done
