# SPDX-License-Identifier: MIT
"""Nodes that join over TLS: how one joins, what runs there, and who is refused."""

import base64
import contextlib
import glob
import os
import signal
import socket
import ssl
import struct
import subprocess

import pytest

import harness
from cluster import Cluster

DEADLINE_S = harness.DEADLINE_S


@pytest.fixture(scope='module')
def cluster(someone):
    """Two nodes with four GPUs each, and a controller with none."""
    with Cluster(2, client=someone) as made:
        yield made


@pytest.fixture
def lone(someone):
    """A controller that nothing has joined."""
    with Cluster(0, client=someone) as made:
        yield made


# --- what runs there ---

def test_a_node_without_gpus_is_back_when_the_controller_is(lone):
    node = lone.add('n1', gpus='none').join()
    lone.await_node('n1', lambda found: found['state'] == 'up', node)
    lone.box.kill()
    lone.box.start()
    lone.await_node('n1', lambda found: found['state'] == 'up', node)


@pytest.mark.smoke
def test_a_job_runs_on_a_remote_node_and_its_output_is_followed(cluster, gate):
    box = cluster.box
    job = box.submit('-g', '4', '--', *gate.command('echo on $MGPU_NODE; echo $CUDA_VISIBLE_DEVICES; exit 3'))
    box.wait(job, 'running')
    follower = box.popen('logs', '-f', job)
    gate.open()
    out, err = follower.communicate(timeout=DEADLINE_S)
    where = box.wait(job)['node']
    assert out.decode().splitlines() == [f'on {where}', '0,1,2,3'], err
    assert box.job(job)['exit_code'] == 3


def test_jobs_use_all_nodes(cluster, gate):
    box = cluster.box
    jobs = [box.submit('-g', '4', '--', *gate.command()) for _ in range(2)]
    nodes = {box.wait(job, 'running')['node'] for job in jobs}
    gate.open(2)
    assert nodes == {'n1', 'n2'}
    assert [box.wait(job)['exit_code'] for job in jobs] == [0, 0]


@pytest.mark.smoke
def test_a_remote_job_is_cancelled(cluster, gate):
    box = cluster.box
    job = box.submit('-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    box.mgpu('cancel', job, check=True)
    assert box.wait(job)['state'] == 'cancelled'


def test_a_large_log_comes_whole(cluster):
    box = cluster.box
    job, _ = box.run_job(['sh', '-c', 'yes 0123456789abcdef | head -c 20000000'], gpus=1)
    assert len(box.output(job['id'])) == 20000000


def test_exec_and_attach_reach_a_remote_job(cluster, gate):
    box = cluster.box
    job = box.submit('-g', '1', '-T', '--', 'sh', '-c', f'echo ready; read word < {gate.path}; echo bye')
    box.wait(job, 'running')
    done = box.mgpu('exec', job, '--', 'sh', '-c', 'cat; echo in $MGPU_JOB_ID; exit 5', input=b'typed\n')
    assert (done.code, done.out) == (5, f'typed\nin {job}\n'), done
    attached = box.popen('attach', job, stdin=subprocess.PIPE)
    assert b'ready' in attached.stdout.readline()
    gate.open()
    out, err = attached.communicate(timeout=DEADLINE_S)
    assert b'bye' in out, (out, err)


def test_a_job_is_told_of_the_socket_of_its_node(cluster):
    job, out = cluster.box.run_job(['env'], gpus=1, env={'MGPU_SOCKET': '/x'})
    assert f'MGPU_SOCKET={cluster.nodes[job["node"]].run_dir}/jobs.sock' in out, out


def test_samples_of_remote_gpus_arrive(cluster):
    gpus = cluster.box.gpus()
    assert {(gpu['node'], gpu['index']) for gpu in gpus} == {(node, i) for node in ('n1', 'n2') for i in range(4)}
    assert all(gpu['memory_bytes'] for gpu in gpus)


def test_nodes_tells_address_and_version(cluster):
    done = cluster.box.mgpu('nodes', '-o', 'node,state,address,version,since', check=True)
    rows = {line.split()[0]: line.split() for line in done.out.splitlines()[1:]}
    assert rows['head'][2] == '-'
    assert rows['n1'][1] == 'up' and rows['n1'][2].startswith('127.0.0.1:')
    assert rows['n1'][4] != '-'


# --- secrets ---

def test_keys_are_nobody_elses_and_no_job_sees_one(cluster, gate):
    node = cluster.nodes['n1']
    for path in (f'{node.state_dir}/node/tls/node.key', f'{cluster.box.state_dir}/store/tls/authority.key',
                 f'{cluster.box.state_dir}/store/tls/server.key'):
        assert os.stat(path).st_mode & 0o777 == 0o600, path
    job, out = cluster.box.run_job(
        ['sh', '-c', 'ls -l /proc/self/fd; env; cat ' + f'{node.state_dir}/node/tls/node.key'], gpus=1)
    assert 'PRIVATE KEY' not in out or not harness.IS_ROOT


def test_a_token_does_not_stay_in_the_command_line(cluster):
    for name in ('n1', 'n2'):
        for pid in cluster.nodes[name].agents():
            line = harness.processes(cluster.place).get(pid, '')
            assert '#A' not in line, line


# --- restarts ---

@pytest.mark.smoke
def test_a_job_outlives_a_restart_of_the_controller(cluster, gate):
    box = cluster.box
    job = box.submit('-g', '1', '--', *gate.command('echo after; exit 7'))
    node = box.wait(job, 'running')['node']
    box.kill()
    box.start()
    cluster.await_node(node, lambda found: found['up'])
    gate.open()
    assert box.wait(job)['exit_code'] == 7
    assert box.output(job) == 'after\n'
    cluster.await_node('n1', lambda found: found['up'])
    cluster.await_node('n2', lambda found: found['up'])


def test_a_node_that_has_not_spoken_since_a_restart_can_be_drained_and_fenced(cluster):
    """It may be what somebody has come to take care of."""
    box = cluster.box
    cluster.nodes['n2'].stop()
    cluster.await_node('n2', lambda found: not found['up'])
    box.kill()
    box.start()
    assert not cluster.node('n2')['up']
    box.mgpu('node', 'drain', 'n2', user=box.user, check=True)
    box.mgpu('node', 'fence', 'n2', '--yes', user=box.user, check=True)
    box.mgpu('node', 'resume', 'n2', user=box.user, check=True)
    cluster.nodes['n2'].start()
    for name in ('n1', 'n2'):
        cluster.await_node(name, lambda found: found['up'])


def test_a_job_outlives_its_agent_and_its_end_is_told_later(cluster, gate):
    box = cluster.box
    job = box.submit('-g', '1', '--', *gate.command('exit 9'))
    name = box.wait(job, 'running')['node']
    node = cluster.nodes[name]
    node.kill()
    cluster.await_node(name, lambda found: not found['up'])
    gate.open()
    node.start()
    assert box.wait(job)['exit_code'] == 9


def test_a_worker_that_dies_is_started_again(cluster, gate):
    box = cluster.box
    job = box.submit('-g', '1', '--', *gate.command('exit 4'))
    name = box.wait(job, 'running')['node']
    before = cluster.node(name)['address']
    for pid in cluster.nodes[name].agents():
        if harness.process_name(pid) == 'mgpu-agent':
            os.kill(pid, signal.SIGKILL)
    cluster.await_node(name, lambda found: found['up'] and found['address'] != before)
    gate.open()
    assert box.wait(job)['exit_code'] == 4


# --- joining ---

def refused(cluster, ticket, *arguments, name='n9'):
    """The agent's last words, and its exit status."""
    node = cluster.add(name)
    node.spawn('--join', ticket, '--node', name, *arguments)
    code = node.end()
    del cluster.nodes[name]
    return code, node.log()


def test_a_detached_agent_and_its_worker_leave_the_callers_terminal(lone):
    node = lone.add('n1')
    try:
        # Every end of the pipe is closed only once no process of the agent has it any more.
        done = subprocess.run([*node.command, '--join', lone.ticket(), '--node', 'n1', '--detach'], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd='/',
                              timeout=harness.DEADLINE_S, env=lone.box.environment(),
                              **lone.box.user.popen_arguments())
        assert done.returncode == 0, done
        lone.await_node('n1', lambda found: found['up'])
        worker = next(pid for pid in node.agents() if harness.process_name(pid) == 'mgpu-agent')
        assert os.readlink(f'/proc/{worker}/fd/2') == f'{node.state_dir}/mgpu-agent.log'
    finally:
        agents = node.agents()
        for pid in agents:
            if harness.process_name(pid) == 'mgpu-uplink':
                os.kill(pid, signal.SIGTERM)
        assert all(harness.wait_process(pid) for pid in agents)


@pytest.mark.smoke
def test_a_token_is_good_once(lone):
    ticket = lone.ticket()
    lone.add('n1').join(ticket)
    code, log = refused(lone, ticket)
    assert code == 1 and 'has been used' in log and 'mgpu node token' in log, log


def test_joining_again_with_the_same_token_is_harmless(lone):
    ticket = lone.ticket()
    node = lone.add('n1').join(ticket)
    node.stop()
    node.join(ticket)
    node.stop()
    node.start()


def test_an_expired_token_says_so(lone):
    ticket = lone.ticket('--expires', '1s', '--node', 'n1')  # for another name: it is not used until then

    def refusal():
        code, log = refused(lone, ticket)
        assert code == 1, log
        return 'expired' in log
    harness.until(refusal, 'the token has expired')


def test_a_wrong_secret_learns_nothing(lone):
    where, _, token = lone.ticket().partition('#')
    raw = bytearray(base64.urlsafe_b64decode(token))
    raw[9] ^= 1  # of the secret
    code, log = refused(lone, where + '#' + base64.urlsafe_b64encode(bytes(raw)).decode())
    assert code == 1 and 'unknown token' in log, log
    raw[9] ^= 1
    raw[8] += 1  # another id
    code, log = refused(lone, where + '#' + base64.urlsafe_b64encode(bytes(raw)).decode())
    assert code == 1 and 'unknown token' in log, log


def test_a_wrong_pin_is_noticed_before_the_secret_is_sent(lone):
    where, _, token = lone.ticket().partition('#')
    raw = bytearray(base64.urlsafe_b64decode(token))
    raw[-1] ^= 1
    code, log = refused(lone, where + '#' + base64.urlsafe_b64encode(bytes(raw)).decode())
    assert code == 1 and 'not the cluster of the token' in log, log


@pytest.mark.parametrize('cut, words', [(-3, 'incomplete'), (1, 'incomplete')])
def test_a_truncated_token_is_told_apart(lone, cut, words):
    ticket = lone.ticket()
    ticket = ticket[:cut] if cut < 0 else ticket + 'x'
    code, log = refused(lone, ticket)
    assert code == 1 and words in log, log


def test_a_token_comes_from_standard_input_too(lone):
    node = lone.add('n1')
    node.spawn('--join-file', '-', '--node', 'n1', stdin=subprocess.PIPE)
    node.process.stdin.write(lone.ticket().encode() + b'\n')
    node.process.stdin.close()
    node.await_up()


def test_without_a_token_nobody_learns_whether_a_node_has_jobs(lone, gate):
    lone.add('n1').join()
    job = lone.box.submit('-g', '1', '--', *gate.command())
    lone.box.wait(job, 'running')
    where, _, token = lone.ticket('--replace', 'n1').partition('#')
    raw = bytearray(base64.urlsafe_b64decode(token))
    raw[9] ^= 1  # of the secret
    other = lone.add('other')
    other.spawn('--join', where + '#' + base64.urlsafe_b64encode(bytes(raw)).decode(), '--node', 'n1')
    assert other.end() == 1 and 'unknown token' in other.log(), other.log()
    assert 'jobs' not in other.log(), other.log()
    gate.open()
    assert lone.box.wait(job)['state'] == 'done'


def test_a_name_that_is_taken_is_refused_unless_the_token_replaces_it(lone):
    first = lone.add('n1').join()
    other = lone.add('other')
    other.spawn('--join', lone.ticket(), '--node', 'n1')
    assert other.end() == 1 and 'this node name belongs to another machine' in other.log(), other.log()
    other.spawn('--join', lone.ticket('--replace', 'n1'), '--node', 'n1')
    first.await_log('was removed, or its name was given to another machine')
    lone.await_node('n1', lambda node: node['up'], other)
    del lone.nodes['n1']
    first.stop()


def test_a_node_with_jobs_is_replaced_only_after_a_fence(lone, gate):
    first = lone.add('n1').join()
    job = lone.box.submit('-g', '1', '--', *gate.command())
    lone.box.wait(job, 'running')
    other = lone.add('other')
    ticket = lone.ticket('--replace', 'n1')
    other.spawn('--join', ticket, '--node', 'n1')
    assert other.end() == 1 and 'mgpu node fence n1' in other.log(), other.log()
    assert lone.box.job(job)['state'] == 'running'
    first.kill()
    lone.await_node('n1', lambda node: not node['up'])
    lone.box.mgpu('node', 'fence', 'n1', '-y', user=lone.box.user, check=True)
    other.spawn('--join', ticket, '--node', 'n1')
    lone.await_node('n1', lambda node: node['up'], other)
    assert lone.box.wait(job)['ended_by'] == 'node_lost'
    gate.open()
    del lone.nodes['n1']


def test_the_name_of_the_controllers_own_node_is_taken(lone):
    node = lone.add('other')
    node.spawn('--join', lone.ticket(), '--node', 'head')
    assert node.end() == 1 and 'the machine that mgpud runs on' in node.log(), node.log()


def test_a_token_for_one_name_is_for_no_other(lone):
    code, log = refused(lone, lone.ticket('--node', 'n3'), name='n4')
    assert code == 1 and 'a node with another name' in log, log


def test_a_forgotten_node_is_cut_off_and_told_why(lone, gate):
    node = lone.add('n1').join()
    job = lone.box.submit('-g', '1', '--', *gate.command())
    lone.box.wait(job, 'running')
    done = lone.box.mgpu('node', 'forget', 'n1', user=lone.box.user)
    assert done.code != 0 and 'n1 has 1 job' in done.err, done
    gate.open()
    lone.box.wait(job)
    lone.box.mgpu('node', 'forget', 'n1', user=lone.box.user, check=True)
    node.await_log('mgpud refused this node: node n1 was removed')
    assert lone.node('n1') is None
    assert 'refused: node n1 was removed' in lone.box.log()
    impossible = lone.box.mgpu('submit', '-g', '1', '--', 'true')
    assert impossible.code == 2, impossible
    node.stop()
    node.join()  # with a fresh token it is one again


def test_only_administrators_admit_nodes(cluster, someone):
    if someone.uid == os.geteuid():
        pytest.skip('needs a second user')
    for arguments in (('node', 'token'), ('node', 'forget', 'n1')):
        done = cluster.box.mgpu(*arguments, user=someone)
        assert done.code != 0 and 'this requires the role admin' in done.err, done


def test_a_node_of_another_cluster_is_refused_with_a_sentence_on_both_sides(lone, someone):
    with Cluster(1, client=someone) as other:
        node = other.nodes['n1']
        node.stop()
        ticket = lone.ticket()  # its port is open now
        # It believes only its own cluster ...
        node.spawn('--controller', f'127.0.0.1:{lone.port}')
        node.await_log('not the cluster of the token or pin')
        node.stop()
        # ... and is not believed when it does.
        pin = open(f'{node.state_dir}/node/tls/controller', encoding='ascii').read()
        assert pin.count('#') == 1
        raw = base64.urlsafe_b64decode(ticket.partition('#')[2])
        own_pin = base64.urlsafe_b64encode(raw[25:]).decode().rstrip('=')
        with open(f'{node.state_dir}/node/tls/controller', 'w', encoding='ascii') as out:
            out.write(f'127.0.0.1:{lone.port}#{own_pin}\n')
        node.spawn()
        node.await_log('has a certificate of another cluster')
        assert 'has a certificate of another cluster' in lone.box.log()
        node.stop()
        with open(f'{node.state_dir}/node/tls/controller', 'w', encoding='ascii') as out:
            out.write(pin)


# --- the port ---

def test_the_port_is_open_only_while_somebody_may_join(lone):
    def connect():
        socket.create_connection(('127.0.0.1', lone.port), 5).close()
    with pytest.raises(ConnectionRefusedError):
        connect()
    lone.ticket('--expires', '1s')
    connect()
    harness.await_text(lone.box.log_path, 'the node port is closed')
    with pytest.raises(ConnectionRefusedError):
        connect()


def test_garbage_is_refused_and_hurts_nobody(lone):
    lone.add('n1').join()
    for bytes_sent in (b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', os.urandom(4096), b'\x16\x03\x01' + os.urandom(500), b''):
        with socket.create_connection(('127.0.0.1', lone.port), 5) as connection:
            connection.settimeout(10)
            with contextlib.suppress(OSError):  # it may be cut off before
                connection.sendall(bytes_sent)
                connection.shutdown(socket.SHUT_WR)
            while True:
                try:
                    if not connection.recv(4096):
                        break
                except ConnectionResetError:
                    break
    assert lone.node('n1')['up']
    assert 'refused: received plain HTTP on a TLS port' in lone.box.log()


def test_a_connection_that_is_cut_in_its_handshake_is_named_by_its_address(lone):
    """Its socket is not connected any more then, and says nothing of who was there."""
    lone.add('n1').join()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(['mgpu-link/1'])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    with socket.create_connection(('127.0.0.1', lone.port), 5) as connection:
        port = connection.getsockname()[1]
        connection.sendall(outgoing.read())
        assert connection.recv(1)  # the rest is left unread, so that to close it resets the connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    harness.await_text(lone.box.log_path, f'connection from 127.0.0.1:{port} refused: ')


def tls_connection(port, purpose):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([purpose])
    return context.wrap_socket(socket.create_connection(('127.0.0.1', port), 10))


@pytest.mark.parametrize('frame', [os.urandom(300), b'mgR1' + b'\xaa\x00\x00\x00\xff\xff\xff\x7f' + bytes(100),
                                   b'mgR1' + b'\x64\x00\x00\x00\x10\x00\x00\x00' + bytes(30)],
                         ids=['random bytes', 'too long', 'cut short'])
def test_garbage_frames_of_strangers_end_their_connection(lone, frame):
    lone.ticket()
    with tls_connection(lone.port, 'mgpu-join/1') as connection:
        connection.sendall(frame)
        connection.settimeout(10)
        answer = b''
        while True:
            try:
                more = connection.recv(4096)
            except (ConnectionResetError, ssl.SSLError):
                break
            if not more:
                break
            answer += more
    assert lone.box.mgpu('nodes').code == 0
    assert answer == b'' or answer.startswith(b'mgR1')


def test_a_link_without_a_certificate_is_told_why(lone):
    lone.ticket()
    with tls_connection(lone.port, 'mgpu-link/1') as connection:
        connection.settimeout(10)
        answer = connection.recv(4096)
    assert b'it has no certificate' in answer


def test_a_silent_stranger_is_dropped(lone):
    lone.ticket()
    with socket.create_connection(('127.0.0.1', lone.port), 5) as connection:
        connection.settimeout(15)
        assert connection.recv(1) == b''


class Fake:
    """A node that has joined and says what the test wants."""

    def __init__(self, cluster, name):
        node = cluster.add(name).join()
        node.stop()
        del cluster.nodes[name]
        self.place = f'{node.state_dir}/node/tls'
        self.port = cluster.port

    def link(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(f'{self.place}/node.crt', f'{self.place}/node.key')
        context.set_alpn_protocols(['mgpu-link/1'])
        return context.wrap_socket(socket.create_connection(('127.0.0.1', self.port), 10))

    def say(self, *fields, kind=100):
        """Sends a frame, HELLO when nothing else is said; all that is answered until the end."""
        body = b''.join(struct.pack('<HHI', tag, 0, len(value)) + value for tag, value in fields)
        frame = b'mgR1' + struct.pack('<HHI', kind, 0, len(body)) + body
        frame += struct.pack('<I', crc32c(frame))
        with self.link() as connection:
            connection.sendall(frame)
            connection.settimeout(10)
            answer = b''
            while True:
                try:
                    more = connection.recv(4096)
                except (ConnectionResetError, ssl.SSLError):
                    return answer
                if not more:
                    return answer
                answer += more


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def version_apart(minors=0):
    """That of these programs, or so many minor versions later."""
    words = subprocess.run([f'{harness.programs()}/mgpud', '--version'], check=True, capture_output=True, text=True).stdout.split()
    major, minor, patch = words[-1].split('.')
    return f'{major}.{int(minor) + minors}.{patch}'.encode()


def hello(name, version=None, protocol=1):
    version = version or version_apart()
    return ((1, struct.pack('<I', protocol)), (2, name), (3, b'00000000-0000-0000-0000-000000000000'), (4, version))


def test_a_node_speaks_for_itself_alone_and_in_a_version_that_is_understood(lone):
    fake = Fake(lone, 'n1')
    assert b'may not act as n2' in fake.say(*hello(b'n2'))
    assert b'may not act as head' in fake.say(*hello(b'head'))
    later = version_apart(2)
    assert b'has mgpu ' + later in fake.say(*hello(b'n1', version=later))
    assert b'protocol 9' in fake.say(*hello(b'n1', protocol=9))
    assert b'update the older one' in fake.say(*hello(b'n1', version=b'1.0.0'))
    assert 'may not act as n2' in lone.box.log() and f'has mgpu {later.decode()}' in lone.box.log()
    assert not lone.node('n1')['up'] and lone.node('head')['up']


@pytest.mark.parametrize('frame', [b'x' * 1000, b'mgR1' + b'\x64\x00\x00\x00\xff\xff\xff\x7f' + bytes(64)])
def test_garbage_from_a_node_ends_its_link_with_a_line_in_the_log(lone, frame):
    fake = Fake(lone, 'n1')
    with fake.link() as connection:
        connection.sendall(frame)
        connection.settimeout(10)
        try:
            assert connection.recv(10) == b''
        except (ConnectionResetError, ssl.SSLError):
            pass
    assert 'node n1: disconnected from 127.0.0.1' in lone.box.log()
    assert lone.node('head')['up']


def test_a_newer_link_takes_the_place_of_one_whose_end_was_not_noticed(lone):
    fake = Fake(lone, 'n1')
    body = b''.join(struct.pack('<HHI', tag, 0, len(value)) + value for tag, value in hello(b'n1'))
    frame = b'mgR1' + struct.pack('<HHI', 100, 0, len(body)) + body
    frame += struct.pack('<I', crc32c(frame))
    with fake.link() as first, fake.link() as second:
        first.settimeout(10)
        second.settimeout(10)
        first.sendall(frame)
        assert first.recv(100)[:4] == b'mgR1', lone.box.log()  # WELCOME
        second.sendall(frame)
        assert second.recv(100)[:4] == b'mgR1', lone.box.log()
        while first.recv(4096):
            pass
        assert lone.node('n1')['up']
        with fake.link() as third, fake.link() as fourth:  # the later one speaks first
            third.settimeout(10)
            fourth.settimeout(10)
            fourth.sendall(frame)
            assert fourth.recv(100)[:4] == b'mgR1'
            assert third.recv(100) == b''
            assert lone.node('n1')['up']


# --- without root ---

@pytest.mark.root
def test_a_cluster_without_root_serves_its_user_and_leaks_nothing(ana, gate):
    with Cluster(1, user=ana, client=ana) as rootless:
        box = rootless.box
        job = box.submit('-g', '2', '--', *gate.command('id -u'))
        box.wait(job, 'running')
        rootless.nodes['n1'].stop()
        gate.open()
        rootless.nodes['n1'].start()
        assert box.wait(job)['exit_code'] == 0
        assert box.output(job) == f'{ana.uid}\n'


# --- troubles ---

@pytest.mark.parametrize('where, words', [
    ('127.0.0.1:1', 'connection refused'),
    ('no-such-host.invalid:9124', 'unknown host name'),
])
def test_why_a_controller_cannot_be_reached(lone, where, words):
    token = lone.ticket().partition('#')[2]
    code, log = refused(lone, f'{where}#{token}')
    assert code == 1 and (words in log or 'name servers' in log), log
    assert ' - ' in log, log  # what to do about it


def test_a_machine_that_has_not_joined_says_how(lone):
    node = lone.add('n1')
    node.spawn()
    assert node.end() == 1 and 'has joined no cluster' in node.log() and 'mgpu node token' in node.log()
    del lone.nodes['n1']


def test_a_clock_that_is_years_off_does_not_matter(lone):
    library = glob.glob('/usr/lib/*/faketime/libfaketime.so.1')
    if not library:
        pytest.skip('needs faketime')
    node = lone.add('n1')
    node.command = ['env', f'LD_PRELOAD={library[0]}', 'FAKETIME=-3650d', 'FAKETIME_DONT_FAKE_MONOTONIC=1',
                    'ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0', *node.command]
    node.join()


def test_sixteen_mebibytes_flow_both_ways(cluster, gate):
    """Back-pressure from end to end: what is typed comes back, however slowly it is taken."""
    box = cluster.box
    job = box.submit('-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    data = os.urandom(1 << 20) * 16
    process = box.popen('exec', job, '--', 'cat', stdin=subprocess.PIPE)
    out, err = process.communicate(data, timeout=120)
    gate.open()
    assert process.returncode == 0, err
    assert len(out) == len(data) and out == data
    box.wait(job)


# --- users on other machines ---

@pytest.fixture(scope='module')
def remote(someone):
    """A controller whose API other machines reach, a node, and the environment of a client there."""
    port = harness.free_port()
    with Cluster(1, client=someone, listen=f'0.0.0.0:{port}') as made:
        answer = made.box.mgpu('token', 'create', '--host', '127.0.0.1', '--json', check=True).json
        home = f'{made.place}/home'
        os.makedirs(home, mode=0o755)
        made.far = {'MGPU_SOCKET': '', 'MGPU_HOST': answer['api'], 'MGPU_TOKEN': answer['token'], 'HOME': home,
                    'XDG_CONFIG_HOME': ''}
        assert answer['api'].startswith(f'https://127.0.0.1:{port}#')
        yield made


def test_a_user_of_another_machine_runs_a_job(remote, someone):
    done = remote.box.mgpu('run', '-g', '1', '--', 'sh', '-c', 'id -u; exit 6', env=remote.far)
    assert (done.code, done.out) == (6, f'{someone.uid}\n'), done


def test_terminals_and_followers_work_from_another_machine(remote, gate):
    box = remote.box
    job = box.submit('-g', '1', '-T', '--', 'sh', '-c', f'echo ready; read word < {gate.path}; echo bye', env=remote.far)
    box.wait(job, 'running')
    done = box.mgpu('exec', job, '--', 'cat', input=b'typed\n', env=remote.far)
    assert (done.code, done.out) == (0, 'typed\n'), done
    follower = box.popen('logs', '-f', job, env=remote.far)
    assert b'ready' in follower.stdout.readline()
    gate.open()
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert b'bye' in out, err


def test_without_a_token_nobody_is_known(remote):
    done = remote.box.mgpu('ps', env={**remote.far, 'MGPU_TOKEN': ''})
    assert done.code != 0 and 'mgpu token create' in done.err, done
    done = remote.box.mgpu('ps', env={**remote.far, 'MGPU_TOKEN': 'mgpu_' + '0' * 64})
    assert done.code != 0 and 'unknown or has expired' in done.err, done


def test_a_token_file_that_others_can_read_is_refused(remote, place, someone):
    path = f'{place}/token'
    with open(path, 'w', encoding='ascii') as out:
        out.write(remote.far['MGPU_TOKEN'] + '\n')
    os.chown(path, someone.uid, someone.gid)
    env = {**remote.far, 'MGPU_TOKEN': '', 'MGPU_TOKEN_FILE': path}
    os.chmod(path, 0o644)
    done = remote.box.mgpu('ps', env=env)
    assert done.code != 0 and 'can be read by other users' in done.err, done
    os.chmod(path, 0o600)
    assert remote.box.mgpu('ps', env=env).code == 0


def test_a_wrong_pin_sends_nothing(remote):
    where, _, pin = remote.far['MGPU_HOST'].partition('#')
    wrong = ('B' if pin[0] == 'A' else 'A') + pin[1:]
    done = remote.box.mgpu('ps', env={**remote.far, 'MGPU_HOST': f'{where}#{wrong}'})
    assert done.code == 4 and 'not the cluster of the token or pin' in done.err, done


@pytest.mark.parametrize('host, words', [
    ('https://127.0.0.1:1#' + 'A' * 43, 'connection refused'),
    ('http://127.0.0.1:9123', 'is not https://HOST:PORT#PIN'),
    ('https://127.0.0.1:9123#short', 'is not https://HOST:PORT#PIN'),
])
def test_troubles_of_a_client_are_told_apart(remote, host, words):
    done = remote.box.mgpu('ps', env={**remote.far, 'MGPU_HOST': host})
    assert done.code != 0 and words in done.err, done


def test_plain_http_on_an_open_port_is_refused(remote):
    port = int(remote.far['MGPU_HOST'].split(':')[2].split('#')[0])
    with socket.create_connection(('127.0.0.1', port), 5) as connection:
        connection.sendall(b'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
        connection.settimeout(10)
        try:
            answer = connection.recv(4096)
        except ConnectionResetError:
            answer = b''
    assert b'HTTP/1.1' not in answer


def test_curl_reaches_the_api_with_the_clusters_certificate(remote):
    done = subprocess.run(
        ['curl', '-sS', '--cacert', f'{remote.box.state_dir}/store/tls/authority.crt', '--resolve',
         f'mgpud:{remote.far["MGPU_HOST"].split(":")[2].split("#")[0]}:127.0.0.1', '-H',
         f'Authorization: Bearer {remote.far["MGPU_TOKEN"]}',
         f'https://mgpud:{remote.far["MGPU_HOST"].split(":")[2].split("#")[0]}/api/v1/nodes'],
        capture_output=True, check=False)
    assert done.returncode == 0 and b'"n1"' in done.stdout, done


# --- doctor ---

def test_doctor_names_a_node_that_is_away_first_and_has_a_line_for_all_that_are_well(lone):
    for name in ('n1', 'n2'):
        lone.add(name).join(lone.ticket())
    harness.until(lambda: 'all 3 nodes: connected' in lone.box.mgpu('doctor').out, 'all nodes to be well')
    lone.nodes['n2'].kill()
    said = harness.until(lambda: (done := lone.box.mgpu('doctor')).out.startswith('BAD') and done, 'n2 to be missed')
    lines = said.out.splitlines()
    assert said.code == 1 and lines[0].split(None, 2) == ['BAD', 'agent', 'n2: not connected'], said
    assert sum(line.split()[1] == 'GPUs' for line in lines) <= 2, said
    one = lone.box.mgpu('doctor', 'n1')
    assert one.code == 0 and one.out.startswith('node n1\non   agent          connected\n') and 'n2' not in one.out, one
    away = lone.box.mgpu('doctor', 'n1', 'n2')
    assert away.code == 1 and away.out.count('node n') == 2 and 'BAD  agent          not connected' in away.out, away
    whole = lone.box.mgpu('doctor', '--all').out
    assert whole.count('\nnode ') == 3 and len(whole.splitlines()) > len(lines), whole
    assert [node['name'] for node in lone.box.mgpu('doctor', 'n1', '--json').json['nodes']] == ['n1']
    assert len(lone.box.mgpu('doctor', '--json').json['nodes']) == 3
    unknown = lone.box.mgpu('doctor', 'n9')
    assert unknown.code != 0 and "there is no node 'n9'" in unknown.err, unknown


def test_doctor_walks_the_way(lone):
    ticket = lone.ticket()
    done = lone.box.mgpu('doctor', '--node', ticket)
    assert done.code == 0, done
    assert [line.split()[1] for line in done.out.splitlines()[:-1]] == [
        'name', 'connection', 'TLS', 'token', 'version', 'clock']
    lone.add('n1').join(ticket)  # doctor did not use it up
    done = lone.box.mgpu('doctor', '--node', ticket)
    assert done.code == 1 and 'has been used' in done.out, done


@pytest.mark.parametrize('where, step, words', [
    ('127.0.0.1:1', 'connection', 'refused'),
    ('127.0.0.1:1#tooshort', 'token', 'incomplete'),
    ('a:b:c', 'address', 'HOST:PORT'),
])
def test_doctor_stops_at_the_first_step_that_fails(lone, where, step, words):
    done = lone.box.mgpu('doctor', '--node', where)
    bad = [line for line in done.out.splitlines() if line.startswith('BAD')]
    assert done.code == 1 and len(bad) == 1 and bad[0].split()[1] == step and words in bad[0], done
    assert 'fix:' in done.out
