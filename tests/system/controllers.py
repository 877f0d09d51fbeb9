# SPDX-License-Identifier: MIT
"""Several controllers with a real etcd: members, controllers and nodes, all on this machine."""

import collections
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import urllib.request

import harness
from cluster import Cluster, Node
from harness import DEADLINE_S

LEASE_S = 3


def free_ports(count):
    """Different TCP ports that nobody has at the moment."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(('127.0.0.1', 0))
        return [probe.getsockname()[1] for probe in probes]


def has_etcd():
    return shutil.which('etcd') is not None


class Etcd:
    """Members of one etcd cluster, by default three."""

    def __init__(self, count=3, arguments=(), tls=None, is_checked=True):
        """`tls`: files of the authority, the servers' certificate and key, and a list of revoked ones or None.
        `is_checked`: that certificate is a good one."""
        self.tls, self.scheme = tls, 'etcds' if tls else 'etcd'
        self.place = tempfile.mkdtemp(prefix='mgpu-etcd-', dir='/tmp')
        ports = free_ports(2 * count)
        self.clients, self.peers = ports[:count], ports[count:]
        self.arguments = arguments
        self.processes = [None] * count
        self.shown = None  # other ports that lead there
        self.prefix_shown = ''
        try:
            for i in range(count):
                self.start(i)
            for i in range(count):
                harness.until(lambda i=i: (self.is_healthy if is_checked else self.has_certificate)(i), f'etcd member {i}')
        except BaseException:
            self.close()
            raise

    def start(self, i):
        url = f'http{"s" if self.tls else ""}://{self.address(i)}:{self.clients[i]}'
        peer = f'http://{self.address(i)}:{self.peers[i]}'
        members = ','.join(f'm{k}=http://{self.address(k)}:{port}' for k, port in enumerate(self.peers))
        with open(f'{self.place}/log{i}', 'ab') as log:
            self.processes[i] = subprocess.Popen(
                [*self.prefix(i), 'etcd', '--name', f'm{i}', '--data-dir', f'{self.place}/m{i}', '--listen-client-urls', url,
                 '--advertise-client-urls', url, '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
                 '--initial-cluster', members, '--heartbeat-interval', '200', '--election-timeout', '2000',
                 *self.tls_arguments(), *self.arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place)

    def prefix(self, i):  # the words that start a program on its host
        return ()

    def address(self, i):
        return '127.0.0.1'

    def tls_arguments(self):
        if not self.tls:
            return ()
        authority, certificate, key, revoked = self.tls
        return ('--client-cert-auth', '--trusted-ca-file', authority, '--cert-file', certificate, '--key-file', key,
                *(('--client-crl-file', revoked) if revoked else ()))

    def is_healthy(self, i):
        if self.tls:
            authority, certificate, key, _ = self.tls
            return subprocess.run(['etcdctl', '--endpoints', f'https://127.0.0.1:{self.clients[i]}', '--cacert', authority, '--cert',
                                   certificate, '--key', key, 'endpoint', 'health'], capture_output=True, check=False,
                                  env={'ETCDCTL_API': '3', 'PATH': '/usr/bin:/bin'}).returncode == 0
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{self.clients[i]}/health', timeout=2) as answer:
                return b'true' in answer.read()
        except OSError:
            return False

    def has_certificate(self, i):
        """It answers, whatever its certificate is worth."""
        try:
            return ssl.get_server_certificate((self.address(i), self.clients[i]), timeout=2)
        except OSError:
            return None

    def signal(self, number):
        for process in self.processes:
            process.send_signal(number)

    @property
    def url(self):
        return f'{self.scheme}://' + ','.join(
            f'{self.address(i) if not self.shown else "127.0.0.1"}:{port}' for i, port in enumerate(self.shown or self.clients)) + self.prefix_shown

    def followers(self):
        """The members that etcd can miss without an election, which may take longer than the lease of the controllers."""
        found = json.loads(self.ctl('endpoint', 'status', '--cluster', '-w', 'json'))
        status = {int(one['Endpoint'].rsplit(':', 1)[1]): one['Status'] for one in found}
        return [i for i, port in enumerate(self.clients) if status[port]['header']['member_id'] != status[port]['leader']]

    def transactions(self, i):
        """That member `i` has begun, also without a leader."""
        with urllib.request.urlopen(f'http://127.0.0.1:{self.clients[i]}/metrics', timeout=DEADLINE_S) as answer:
            found = re.search(r'^grpc_server_started_total{.*grpc_method="Txn".*} ([0-9]+)$', answer.read().decode(), re.M)
        return int(found.group(1)) if found else 0

    def ctl(self, *arguments):
        return subprocess.run(['etcdctl', '--endpoints', f'127.0.0.1:{self.clients[0]}', *arguments],
                              env={'ETCDCTL_API': '3', 'PATH': '/usr/bin:/bin'}, check=True, capture_output=True,
                              text=True).stdout

    def close(self):
        for process in filter(None, self.processes):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(DEADLINE_S)
        shutil.rmtree(self.place, ignore_errors=True)


class Controller(harness.Instance):
    """One of several; what starts it again after its exit is the test."""

    def __init__(self, name, etcd, client, arguments=(), address='127.0.0.1'):
        self.port, self.nodes_port = free_ports(2)
        self.address = address
        super().__init__('none', client=client, listen=f'{address}:{self.port}', arguments=(
            '--node', name, '--nodes-listen', f'{address}:{self.nodes_port}', '--cluster', etcd.url,
            '--cluster-lease', f'{LEASE_S}s', *arguments))
        self.name = name

    def state(self):
        """What it answers to /cluster; None if it does not."""
        try:
            answer = self.api('GET', '/cluster', timeout_s=3)
        except (OSError, http.client.HTTPException):
            return None
        return answer.json if answer.status == 200 else None

    def is_leading(self):
        state = self.state()
        return state is not None and state['role'] == 'leader'

    def tables(self):
        """All tables as text, without what describes this file alone."""
        with contextlib.closing(sqlite3.connect(f'file:{self.state_dir}/store/mgpu.db?mode=ro', uri=True)) as db:
            return [line for line in db.iterdump() if "'mark'" not in line]


class Controllers:
    """Controllers c0, c1, ... with etcd, and nodes that know all of them."""

    def __init__(self, client, count=3, etcd=None, arguments=(), is_own=True):
        """`is_own`: the members of etcd end with the controllers."""
        self.etcd, self.is_own = etcd or Etcd(), is_own
        self.members, self.nodes = [], []
        try:
            self.members = [self.make_member(i, client, arguments) for i in range(count)]
            self.members[0].start(extra=['--migrate'])
            self.leader()
            for member in self.members[1:]:
                member.start()
        except BaseException:
            self.close(has_failed=True)
            raise

    def make_member(self, i, client, arguments):
        return Controller(f'c{i}', self.etcd, client, arguments)

    def node_prefix(self, name):
        return ()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close(kind is not None)

    def leader(self, timeout_s=DEADLINE_S):
        return harness.until(
            lambda: next((member for member in self.members if member.is_leading()), None), 'a leader', timeout_s)

    def standbys(self):
        """All but the leader, once they follow the log."""
        def following():
            states = [(member, member.state() or {}) for member in self.members]
            found = [member for member, state in states if state.get('role') == 'standby'
                     and state['age_ms'] is not None and state['leader'] is not None]
            return found if len(found) == len(self.members) - 1 else None

        return harness.until(following, 'standbys that follow the log')

    def add_node(self, name, gpus='sim:4x24G', is_told=True):
        """Joins at the leader, then runs with the addresses of all, or, not told, with what it learns."""
        leader = self.leader()
        shim = Cluster.__new__(Cluster)
        shim.box, shim.place, shim.nodes = leader, leader.place, {}
        node = Node(shim, name, gpus, prefix=self.node_prefix(name))
        self.nodes.append(node)
        node.join(None if is_told else shim.ticket('--host', f'{leader.address}:{leader.nodes_port}'))
        if is_told:
            node.stop()
            node.spawn('--controller', ','.join(f'{member.address}:{member.nodes_port}' for member in self.members))
            node.await_up()
        return node

    def await_equal(self):
        """All controllers have all of the log; the tables of each."""
        leader = self.leader()

        def are_equal():
            entry = (leader.state() or {}).get('entry')
            return entry and all((member.state() or {}).get('entry') == entry for member in self.members)

        harness.until(are_equal, 'standbys that have the whole log')
        return [member.tables() for member in self.members]

    def close(self, has_failed=False):
        problems = []
        with contextlib.suppress(AssertionError, OSError):
            self.leader(5).cancel_all()
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.stop()
        for member in self.members:
            if member.process and member.process.poll() is None:
                member.process.send_signal(signal.SIGCONT)
                member.process.terminate()
                member.process.wait(DEADLINE_S)
            log = member.log() if os.path.exists(member.log_path) else ''
            found = [line for line in log.splitlines() if harness.SANITIZER.search(line)]
            if found:
                problems.append(f'{member.name}:\n{log[-6000:]}')
            if has_failed:
                print(f'{member.name}:\n{log[-3000:]}')
        for member in self.members:
            for pid in harness.processes(member.place):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(member.place, ignore_errors=True)
        if self.is_own:
            self.etcd.close()
        assert has_failed or not problems, '\n'.join(problems)


# --- clients, and what must be true afterwards ---

STATUSES = 5  # of jobs `with_statuses`: the rest of their ids


def run_clients(controllers, ran, upset, count=4, with_statuses=False, pause_s=0):
    """The jobs acknowledged to clients while `upset()` did its worst. Each writes its id to the file `ran`."""
    user = controllers.members[0].client
    program = f'{ran}.client.py'  # the clone may be root's alone
    shutil.copyfile(f'{harness.ROOT}/tests/system/controllers_client.py', program)
    os.chmod(program, 0o644)
    sockets = [member.socket for member in controllers.members]
    end = f'; exit $((MGPU_JOB_ID % {STATUSES}))' if with_statuses else ''
    clients = [subprocess.Popen(
        ['/usr/bin/python3', program, f'k{i}',
         f'echo $MGPU_JOB_ID >>{ran}{end}', str(pause_s), *sockets], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd='/tmp',
        env=user.environment(), **user.popen_arguments()) for i in range(count)]
    try:
        upset()
    finally:
        outputs = [client.communicate(b'', timeout=harness.DEADLINE_S)[0] for client in clients]
        os.unlink(program)
    assert [client.returncode for client in clients] == [0] * count
    acknowledged = [int(line.split()[1]) for output in outputs for line in output.decode().splitlines()]
    assert len(set(acknowledged)) == len(acknowledged), 'two requests got one job'
    return acknowledged


def check_all_ran_once(controllers, acknowledged, ran, with_statuses=False):
    leader = controllers.leader()
    wrong = []
    for job in acknowledged:
        end = leader.wait(job, timeout_s=120)
        if end['exit_code'] != (job % STATUSES if with_statuses else 0):
            wrong.append((job, end['state'], end['exit_code'], end.get('reason')))
    assert not wrong, f'wrong exit statuses: {wrong[:10]}'
    with open(ran, encoding='ascii') as file:
        times = collections.Counter(int(line) for line in file)
    assert [job for job, count in times.items() if count > 1] == [], 'jobs that ran twice'
    assert set(acknowledged) <= set(times), 'jobs that were acknowledged and did not run'


def check_equal(controllers):
    tables = controllers.await_equal()
    assert all(table == tables[0] for table in tables)
    leader = controllers.leader()
    leader.process.terminate()
    assert leader.process.wait(harness.DEADLINE_S) == 0
    done = subprocess.run([*leader.command, '--fsck'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def has_progress(controllers, entries=20):
    """Whoever leads accepts jobs again, and has done so for a while."""
    def entry():
        states = (member.state() or {} for member in controllers.members)
        return next((state['entry'] for state in states if state.get('role') == 'leader'), 0)

    before = harness.until(entry, 'a leader', 60)
    harness.until(lambda: entry() > before + entries, 'accepted jobs', 60)
