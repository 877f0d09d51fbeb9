# SPDX-License-Identifier: MIT
"""Ports of jobs on the caller's machine: mgpu forward, with a server in the job and clients here."""

import contextlib
import functools
import hashlib
import os
import select
import signal
import socket
import threading

import harness
import pytest
from cluster import Cluster
from running import Running, all_ended

DEADLINE_S = harness.DEADLINE_S
MEGABYTES = 24

# Says which port it has, then serves each connection by its first line.
SERVER = r'''
import hashlib, os, socket, sys, threading

def serve(peer):
    stream = peer.makefile('rwb')
    word = stream.readline().strip()
    if word == b'echo':
        for line in stream:
            stream.write(line)
            stream.flush()
    elif word == b'digest':  # the answer comes after the end of the input
        stream.write(hashlib.sha256(stream.read()).hexdigest().encode() + b'\n')
        stream.flush()
    elif word == b'flood':
        piece = b'x' * 65536
        for _ in range(%(pieces)d):
            peer.sendall(piece)
    elif word == b'whoami':
        text = open('/proc/self/cgroup').read()
        stream.write(f'{os.getuid()} {text}'.encode())
        stream.flush()
    elif word == b'reset':
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        stream.close()
        peer.close()
        return
    stream.close()
    peer.shutdown(socket.SHUT_RDWR)

where = sys.argv[1]
if where.startswith('/'):
    server = socket.socket(socket.AF_UNIX)
    server.bind(where)
    server.listen(64)
else:
    server = socket.create_server((where, 0), family=socket.AF_INET6 if ':' in where else socket.AF_INET, backlog=64)
with open(sys.argv[2], 'w') as bell:
    bell.write(f'{server.getsockname()[1] if not where.startswith("/") else 0}\n')
while True:
    threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
''' % {'pieces': MEGABYTES * 16}


def listening(user, address, port=0):
    """A socket of that user."""
    with user.acting():
        return socket.create_server((address, port), family=socket.AF_INET6 if ':' in address else socket.AF_INET)


class Server:
    """A job that serves, and its port."""

    def __init__(self, box, where='127.0.0.1', user=None):
        self.box = box
        with contextlib.closing(harness.Bell(box.place)) as bell:
            self.job = box.post_job(['/usr/bin/python3', '-c', SERVER, where, bell.path], user=user)
            self.port = int(bell.wait())


class Forward(Running):
    """mgpu forward with its first local end."""

    def __init__(self, box, *arguments, **options):
        super().__init__(box.popen('forward', *arguments, **options))
        line = self.first_line()
        assert ' -> ' in line, (line, self.process.communicate(timeout=DEADLINE_S))
        self.where = line.split(' -> ')[0]

    def connect(self, word=None):
        if self.where.startswith('/'):
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(self.where)
        else:
            peer = socket.create_connection(('127.0.0.1', int(self.where.rpartition(':')[2])))
        peer.settimeout(DEADLINE_S)
        if word:
            peer.sendall(word.encode() + b'\n')
        return peer

    def ask(self, word, text=b''):
        """Sends, ends the input, and reads to the end."""
        with self.connect(word) as peer:
            peer.sendall(text)
            peer.shutdown(socket.SHUT_WR)
            return read_all(peer)


def read_file(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def proc_file(pid, name):
    """'' when the process, which may be one of another instance, has ended."""
    try:
        return read_file(f'/proc/{pid}/{name}')
    except (FileNotFoundError, ProcessLookupError):
        return ''


def resident_bytes(pid):
    return int(read_file(f'/proc/{pid}/statm').split()[1]) * os.sysconf('SC_PAGE_SIZE')


def carrying():
    """Pids of the processes that carry connections on nodes; of other instances too."""
    return [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and harness.process_name(int(pid)) == 'mgpu-port']


def read_all(peer):
    pieces = []
    while piece := peer.recv(1 << 16):
        pieces.append(piece)
    return b''.join(pieces)


@pytest.fixture
def box(make_instance):
    """With sanitizers, what has passed and is freed is kept for a while: little, as a test looks at the memory."""
    box = make_instance('sim:2x24G', start=False)
    usual = box.environment()
    box.environment = lambda: {**usual, 'ASAN_OPTIONS': usual['ASAN_OPTIONS'] + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'}
    box.start()
    return box


@pytest.fixture
def forward(box):
    """Starts mgpu forward; ends what is left."""
    with all_ended(functools.partial(Forward, box)) as make:
        yield make


@pytest.mark.smoke
def test_a_port_of_a_job_is_a_port_of_this_machine_until_ctrl_c(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    with here.connect('echo') as peer:
        peer.sendall(b'hello\n')
        assert peer.recv(100) == b'hello\n'
    done = here.stop()
    assert done.code == 0, done
    assert box.job(server.job)['state'] == 'running'


def test_the_end_of_the_input_reaches_the_job_and_the_answer_comes_after_it(box, forward):
    server, text = Server(box), os.urandom(3 << 20)
    here = forward(server.job, f'0:{server.port}')
    assert here.ask('digest', text) == hashlib.sha256(text).hexdigest().encode() + b'\n'


def test_many_connections_are_carried_at_once_and_do_not_mix(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    peers = [here.connect('echo') for _ in range(40)]
    for i, peer in enumerate(peers):
        peer.sendall(f'{i}\n'.encode())
    for i, peer in reversed(list(enumerate(peers))):
        with peer:
            assert peer.recv(100) == f'{i}\n'.encode()


def test_a_reader_that_stops_makes_the_job_wait_and_gets_everything_later(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    before = resident_bytes(box.process.pid)
    with here.connect('flood') as slow:
        assert slow.recv(1) == b'x'
        with here.connect('echo') as other:  # others are not held up
            other.sendall(b'still here\n')
            assert other.recv(100) == b'still here\n'
        assert resident_bytes(box.process.pid) - before < 8 << 20
        assert len(read_all(slow)) == (MEGABYTES << 20) - 1


def test_a_connection_that_the_job_resets_is_reset_here(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    with here.connect('reset') as peer, pytest.raises(ConnectionResetError):
        read_all(peer)


@pytest.mark.root
def test_the_connection_is_made_as_the_job_s_user_in_its_cgroup(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    with here.connect('whoami') as peer:
        uid, job_cgroup = read_all(peer).decode().split(' ', 1)
    assert uid == str(box.client.uid)
    with here.connect('echo') as peer:
        peer.sendall(b'x\n')
        assert peer.recv(10) == b'x\n'
        carriers = [pid for pid in carrying() if f'Uid:\t{uid}\t{uid}\t{uid}\t{uid}' in proc_file(pid, 'status')]
        assert any(proc_file(pid, 'cgroup') == job_cgroup for pid in carriers), (carriers, job_cgroup)


@pytest.mark.parametrize('where', ['::1', 'unix'])
def test_servers_on_ipv6_and_unix_sockets_are_reached(box, forward, where):
    path = f'{box.place}/here.sock'
    if where == 'unix':
        folder = f'{box.place}/served'
        os.mkdir(folder)
        os.chown(folder, box.client.uid, box.client.gid)
        where = f'{folder}/server.sock'
    server = Server(box, where)
    remote = server.port or where
    if remote == where:
        os.chmod(box.place, 0o777)
        here = forward(server.job, f'{path}:{remote}')
        assert os.stat(path).st_mode & 0o777 == 0o600
    else:
        here = forward(server.job, f'0:{remote}')
    assert here.ask('digest', b'x') == hashlib.sha256(b'x').hexdigest().encode() + b'\n'
    here.stop()
    assert not os.path.exists(path)


@pytest.mark.root
def test_a_server_on_ipv6_is_reached_beside_a_stranger_on_ipv4(box, bo, forward):
    server = Server(box, '::1')
    with listening(bo, '127.0.0.1', server.port):
        here = forward(server.job, f'0:{server.port}')
        assert here.ask('digest', b'x') == hashlib.sha256(b'x').hexdigest().encode() + b'\n'


@pytest.mark.root
def test_nobody_else_can_listen_at_a_local_port(box, bo, forward):
    """`localhost` leads to ::1 as well, which browsers and ssh try first."""
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    port = int(here.where.rpartition(':')[2])
    for address in ('127.0.0.1', '::1'):
        with pytest.raises(OSError, match='already in use'):
            listening(bo, address, port)
    with box.client.acting(), socket.create_connection(('::1', port), DEADLINE_S) as peer:
        peer.sendall(b'echo\nx\n')
        assert peer.recv(10) == b'x\n'


@pytest.mark.root
@pytest.mark.parametrize('is_stranger', [True, False])
def test_a_local_port_that_a_stranger_has_at_one_address_is_not_used(box, bo, forward, is_stranger):
    server = Server(box)
    with listening(bo if is_stranger else box.client, '::1') as taken:
        port = taken.getsockname()[1]
        if is_stranger:
            done = box.mgpu('forward', server.job, f'{port}:{server.port}')
            assert done.code == 1 and f'cannot listen on port {port} of this machine (::1)' in done.err, done
        else:
            assert forward(server.job, f'{port}:{server.port}').ask('digest', b'x')


def test_a_port_on_which_nobody_listens_is_named_and_the_others_go_on(box, forward):
    server = Server(box)
    with socket.create_server(('127.0.0.1', 0)) as unused:
        port = unused.getsockname()[1]
    here = forward(server.job, f'0:{port}')
    with here.connect() as peer, pytest.raises(ConnectionResetError):
        read_all(peer)
    assert here.line() == f'mgpu forward: nothing listens on port {port} for job {server.job}\n'
    assert here.process.poll() is None


@pytest.mark.root
def test_a_port_of_another_user_is_refused(box, forward, bo):
    server = Server(box)
    with bo.acting():
        trap = socket.create_server(('127.0.0.1', 0))
    with trap:
        port = trap.getsockname()[1]
        here = forward(server.job, f'0:{port}')
        with here.connect() as peer, pytest.raises(ConnectionResetError):
            read_all(peer)
        assert f'port {port} belongs to a process of another user (uid {bo.uid})' in here.line()


@pytest.mark.root
def test_other_users_of_this_machine_cannot_use_a_forward(box, forward, bo):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    with bo.acting(), here.connect() as peer:
        assert read_all(peer) == b''
    assert f'refused a connection of another user of this machine (uid {bo.uid})' in here.line()
    assert here.ask('digest', b'x')


@pytest.mark.root
def test_ports_of_a_job_are_for_its_owner_alone(box, bo):
    server = Server(box)
    for user in (bo, box.user):  # an ordinary user and the administrator
        answer = box.api('GET', f'/jobs/{server.job}/port?port={server.port}', user=user,
                         headers={'Connection': 'Upgrade', 'Upgrade': 'mgpu-terminal'})
        assert answer.status == 403, answer
        assert 'only its owner may connect to its ports' in answer.json['detail'], answer
        done = box.mgpu('forward', server.job, f'0:{server.port}', user=user)
        assert done.code == 4 and 'only its owner' in done.err, done


def test_a_forward_ends_with_its_job_and_with_its_status(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    with here.connect('echo') as peer:
        peer.sendall(b'x\n')
        assert peer.recv(10) == b'x\n'
        box.mgpu('cancel', server.job, check=True)
        with contextlib.suppress(ConnectionResetError):
            assert read_all(peer) == b''
    assert here.process.wait(DEADLINE_S) not in (0, 2)


def test_a_forward_survives_restarts_of_mgpud_and_of_the_agent(box, forward):
    server = Server(box)
    here = forward(server.job, f'0:{server.port}')
    box.restart()
    assert here.ask('digest', b'x')
    box.stop()
    asked = []
    asking = threading.Thread(target=lambda: asked.append(here.ask('digest', b'y')))
    asking.start()
    box.start()
    asking.join(DEADLINE_S)
    assert asked == [hashlib.sha256(b'y').hexdigest().encode() + b'\n']
    assert here.process.poll() is None


def test_a_waiting_job_is_awaited_and_an_ended_one_refused(box, forward):
    first = box.post_job(['sleep', '600'], gpus=2)
    with contextlib.closing(harness.Bell(box.place)) as bell:
        job = box.post_job(['/usr/bin/python3', '-c', SERVER, '127.0.0.1', bell.path], gpus=1)
        process = box.popen('forward', job, '0:9')
        box.mgpu('cancel', first, check=True)
        line = process.stdout.readline().decode()
        process.kill()
        process.communicate()
        bell.wait()  # without a bell it would end by itself
    assert f'-> port 9 of job {job}' in line
    box.mgpu('cancel', job, check=True)
    box.wait(job)
    done = box.mgpu('forward', job, '9')
    assert done.code == 6 and f'job {job} has ended' in done.err, done


def test_ports_of_a_job_on_another_node_are_reached_also_after_its_agent_was_away(someone):
    text = os.urandom(1 << 20)
    with Cluster(1, client=someone) as cluster, contextlib.ExitStack() as kept:
        box = cluster.box
        server = Server(box)
        assert box.job(server.job)['node'] == 'n1'
        here = Forward(box, server.job, f'0:{server.port}')
        kept.callback(here.process.communicate)
        kept.callback(here.process.kill)
        assert here.ask('digest', text) == hashlib.sha256(text).hexdigest().encode() + b'\n'
        cluster.nodes['n1'].kill()
        cluster.await_node('n1', lambda found: not found['up'])
        asked = []
        asking = threading.Thread(target=lambda: asked.append(here.ask('digest', text)))
        asking.start()  # waits for the node, up to a minute
        cluster.nodes['n1'].start()
        asking.join(2 * DEADLINE_S)
        assert asked == [hashlib.sha256(text).hexdigest().encode() + b'\n']


@pytest.mark.parametrize('words, sentence', [
    ((), 'no job and port given'),
    (('1',), 'no port given'),
    (('1', 'http'), "the local port: 'http' is not a whole number"),
    (('1', '70000'), 'the local port'),
    (('1', '80:0'), 'the port of the job'),
    (('1', '/run/x.sock'), 'no local port for /run/x.sock'),
    (('1', '80:/' + 'x' * 120), 'the path of a socket has at most 107 bytes'),
])
def test_wrong_operands_are_explained(box, words, sentence):
    done = box.mgpu('forward', *words)
    assert done.code == 2 and sentence in done.err, done


def test_a_local_port_in_use_is_named(box):
    server = Server(box)
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        done = box.mgpu('forward', server.job, f'{port}:{server.port}')
    assert done.code == 1 and f'cannot listen on port {port} of this machine' in done.err, done
