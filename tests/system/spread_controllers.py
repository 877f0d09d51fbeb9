# SPDX-License-Identifier: MIT
"""Three controllers, three members of etcd and three nodes, each on a host of its own (hosts.py), and what can happen to a leader."""

import contextlib
import http.client
import os
import shutil
import signal
import subprocess

import harness
import hosts
from controllers import Controller, Controllers, Etcd, has_progress

DISK_MB = 48

# As in test_clock.py: a mount namespace in which mgpud loads a clock that can be set.
ENTER = """set -e
mount --bind "$1/mnt" /mnt
mount --bind "$1/etc" /etc
shift
exec "$@"
"""
FILES = ('passwd', 'group', 'ld.so.cache', 'nsswitch.conf', 'hosts')


class SpreadEtcd(Etcd):
    """Members on the hosts e0, e1 and e2."""

    def __init__(self, network):
        self.network = network
        super().__init__(3)

    def host(self, i):
        return self.network[f'e{i}']

    def prefix(self, i):
        return self.host(i).prefix

    def address(self, i):
        return self.host(i).address

    def is_healthy(self, i):
        return subprocess.run([*self.prefix(i), 'etcdctl', '--endpoints', f'http://{self.address(i)}:{self.clients[i]}', 'endpoint', 'health'],
                              env={'ETCDCTL_API': '3', 'PATH': '/usr/bin:/bin'}, capture_output=True, check=False).returncode == 0


class SpreadController(Controller):
    """A controller on a host of its own, with a small disk and a clock that can be set."""

    def __init__(self, host, etcd, client, disk_mb):
        self.host = host
        super().__init__(host.name, etcd, client, address=host.address)
        os.makedirs(self.state_dir, exist_ok=True)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={disk_mb}m,mode=0755', 'tmpfs', self.state_dir], check=True)
        self.ballast = f'{self.state_dir}/ballast'
        for folder in ('mnt', 'etc'):
            os.mkdir(f'{self.place}/{folder}')
        for name in FILES:
            if os.path.exists(f'/etc/{name}'):
                shutil.copy(f'/etc/{name}', f'{self.place}/etc')
        shutil.copy(f'{harness.build_folder()}/tests/unit/agent/libclock.so', f'{self.place}/mnt')
        with open(f'{self.place}/etc/ld.so.preload', 'w', encoding='ascii') as target:
            target.write('/mnt/libclock.so\n')
        self.set_clock(0)
        self.command[:0] = [*host.prefix, 'unshare', '-m', 'sh', '-c', ENTER, 'sh', self.place]

    def set_clock(self, seconds):
        with open(f'{self.place}/mnt/clock.new', 'w', encoding='ascii') as target:
            target.write(f'{seconds}\n')
        os.rename(f'{self.place}/mnt/clock.new', f'{self.place}/mnt/clock')

    def route(self, verb, others):
        """Packets to these hosts are dropped ('add'), or are not any more ('del')."""
        for other in others:
            hosts.ip('-n', self.host.namespace, 'route', verb, 'blackhole', f'{other.address}/32')

    def fill_disk(self):
        with open(self.ballast, 'wb', buffering=0) as file, contextlib.suppress(OSError):  # a buffer would fail once more at its end
            while True:
                file.write(b'x' * 65536)

    def empty_disk(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ballast)


class SpreadControllers(Controllers):
    """Use as a context, inside of `network()`."""

    def __init__(self, network, client, disk_mb=DISK_MB):
        self.network, self.disk_mb = network, disk_mb
        super().__init__(client, etcd=SpreadEtcd(network))

    def make_member(self, i, client, arguments):
        return SpreadController(self.network[f'c{i}'], self.etcd, client, self.disk_mb)

    def node_prefix(self, name):
        return self.network[name].prefix

    def close(self, has_failed=False):
        for member in self.members:
            member.empty_disk()
        try:
            super().close(has_failed)
        finally:
            for member in self.members:
                subprocess.run(['umount', '-l', member.state_dir], check=False, capture_output=True)
                shutil.rmtree(member.place, ignore_errors=True)

    # --- what happens to the leader ---

    def another(self, old):
        """The leader after `old`."""
        return harness.until(lambda: next((member for member in self.members if member is not old and member.is_leading()), None),
                             'another leader', 60)

    def kill_leader(self):
        old = self.leader()
        old.kill()
        new = self.another(old)
        old.start()
        return new

    def stop_leader(self):
        old = self.leader()
        old.process.send_signal(signal.SIGSTOP)
        new = self.another(old)
        old.process.send_signal(signal.SIGCONT)
        self.await_exit(old)
        return new

    def cut_leader_from_etcd(self):
        old = self.leader()
        members = [self.network[f'e{i}'] for i in range(3)]
        old.route('add', members)
        try:
            new = self.another(old)
            self.await_exit(old, is_started=False)
        finally:
            old.route('del', members)
        old.start()
        return new

    def cut_leader_from_nodes(self):
        """It goes on leading; nothing is started meanwhile, and nothing twice afterwards. On a slow machine its lease may end."""
        old = self.leader()
        nodes = [self.network[node.name] for node in self.nodes]

        def has_all(leader, state):
            try:
                answer = leader.api('GET', '/nodes') if leader is not None else None
            except (OSError, http.client.HTTPException):
                return False
            return answer is not None and answer.status == 200 and all(node['up'] is state for node in answer.json['nodes'])

        old.route('add', nodes)
        try:
            harness.until(lambda: old.process.poll() is not None or has_all(old, False), 'nodes that are away', 90)
        finally:
            old.route('del', nodes)
        harness.until(lambda: has_all(next(filter(Controller.is_leading, self.members), None), True), 'nodes that are back', 90)
        self.start_again()
        return self.leader()

    def start_again(self):
        """As systemd does, whoever has left because its lease ended."""
        for member in self.members:
            if member.process.poll() is not None:
                self.await_exit(member)

    def fill_leaders_disk(self):
        """What comes first: it refuses jobs, or it cannot commit and exits."""
        old = self.leader()
        old.fill_disk()

        def has_noticed():
            if old.process.poll() is not None:
                return True
            try:
                return old.api('POST', '/jobs', {'command': ['true']}, timeout_s=5).status == 507
            except OSError:  # it exits, or waits for its disk
                return False

        harness.until(has_noticed, 'a leader that knows that its disk is full', 60)
        old.process.send_signal(signal.SIGKILL)
        old.process.wait(harness.DEADLINE_S)
        new = self.another(old)
        old.empty_disk()
        old.start()
        return new

    def set_leaders_clock(self, seconds):
        """A step of the wall clock is none of the lease's business. On a slow machine it may end for another reason, but not three times."""
        for _ in range(3):
            leader = self.leader()
            entry = leader.state()['entry']
            leader.set_clock(seconds)
            harness.until(lambda: leader.process.poll() is not None or (leader.state() or {}).get('entry', 0) > entry,
                          'accepted jobs after the step', 60)
            leader.set_clock(0)
            if leader.is_leading():
                return leader
            self.start_again()
        raise AssertionError('no leader survives a step of the clock')

    def kill_member_of_etcd(self, i):
        """If it led etcd, the election may take longer than the lease, and the leader of the controllers exits."""
        member = self.etcd.processes[i]
        member.kill()
        member.wait(harness.DEADLINE_S)
        has_progress(self)
        self.etcd.start(i)
        self.start_again()
        return self.leader()

    def await_exit(self, old, is_started=True):
        assert old.process.wait(60) == os.EX_TEMPFAIL, old.log()[-3000:]
        if is_started:
            old.start()


@contextlib.contextmanager
def spread_controllers(client, disk_mb=DISK_MB):
    names = [f'{kind}{i}' for kind in 'cen' for i in range(3)]
    with hosts.Network(names).made() as network, SpreadControllers(network, client, disk_mb) as made:
        for i in range(3):
            made.add_node(f'n{i}')
        yield made
