# SPDX-License-Identifier: MIT
"""Several hosts on this machine: network namespaces, each with an address of its own, joined by a bridge in another.

A program runs on a host when `Host.prefix` precedes its command. They change only its network: `nsenter`, unlike
`ip netns exec`, leaves /sys as it is, and with it the cgroups. Files, processes and Unix sockets are shared by all hosts.
"""

import contextlib
import functools
import itertools
import os
import shutil
import subprocess

import harness
from cluster import Cluster

_serial = itertools.count()


def ip(*words):
    subprocess.run(['ip', *words], check=True, capture_output=True)


@functools.lru_cache(maxsize=None)
def why_not():
    """Why hosts cannot be made here; None when they can."""
    if not harness.IS_ROOT:
        return 'hosts need root'
    for program in ('ip', 'nsenter', 'setpriv'):
        if not shutil.which(program):
            return f'hosts need {program}'
    try:
        with Network(['probe']).made():
            return None
    except subprocess.CalledProcessError as error:
        return f'no network namespaces here: {error.stderr.decode().strip()}'


class Host:
    """A machine as far as its network goes."""

    def __init__(self, network, name, number):
        self.network, self.name = network, name
        self.namespace = f'{network.name}-{name}'
        self.address = f'10.213.7.{number}'
        self.prefix = ('nsenter', f'--net=/run/netns/{self.namespace}')
        self.plug = f'to-{name}'  # the bridge's end of its cable

    def cut(self):
        """Pulls the cable: what is sent either way is lost, and nobody is told."""
        ip('-n', self.network.name, 'link', 'set', self.plug, 'down')

    def mend(self):
        ip('-n', self.network.name, 'link', 'set', self.plug, 'up')

    @contextlib.contextmanager
    def mute(self):
        """Inside the block what it sends is lost, and what is sent to it arrives: it has wrong numbers for all others."""
        others = [host.address for host in self.network.hosts.values() if host is not self]
        for address in others:
            ip('-n', self.namespace, 'neighbour', 'replace', address, 'lladdr', '02:00:00:00:00:01', 'dev', 'eth0', 'nud', 'permanent')
        try:
            yield
        finally:
            for address in others:
                ip('-n', self.namespace, 'neighbour', 'delete', address, 'dev', 'eth0')

    def drop(self, port):
        """Packets to this TCP port are dropped, as by a firewall; False where there is no iptables."""
        if not shutil.which('iptables'):
            return False
        return subprocess.run([*self.prefix, 'iptables', '-A', 'INPUT', '-p', 'tcp', '--dport', str(port), '-j', 'DROP'],
                              capture_output=True, check=False).returncode == 0

    def popen(self, user, *command, env=None, **options):
        """A program of a user of this host; without a slash one of mgpu's."""
        as_user = ('setpriv', f'--reuid={user.uid}', f'--regid={user.gid}', '--init-groups')
        program = command[0] if '/' in command[0] else f'{harness.programs()}/{command[0]}'
        sanitizer = 'exitcode=99:detect_leaks=0' if '/' in command[0] else harness.client_sanitizer(*command)
        return subprocess.Popen([*self.prefix, *as_user, program, *map(str, command[1:])], env={
            **user.environment(), 'ASAN_OPTIONS': sanitizer, **(env or {})}, **{
            'cwd': '/tmp', 'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options})

    def run(self, user, *words, env=None, timeout_s=harness.DEADLINE_S):
        """What `mgpu WORDS` did, called by a user of this host."""
        process = self.popen(user, 'mgpu', *words, env=env)
        out, err = process.communicate(timeout=timeout_s)
        done = harness.Done(process.returncode, out.decode(errors='replace'), err.decode(errors='replace'))
        assert not harness.SANITIZER.search(done.err), done
        return done


class Network:
    """Hosts by name, at one bridge."""

    def __init__(self, names):
        self.name = f'mgpu-t{os.getpid()}-{next(_serial)}'
        self.hosts = {name: Host(self, name, number) for number, name in enumerate(names, 1)}

    def __getitem__(self, name):
        return self.hosts[name]

    @contextlib.contextmanager
    def made(self):
        """Exists inside the block, and is always removed after it."""
        with contextlib.ExitStack() as undo:
            self.add_namespace(self.name, undo)
            ip('-n', self.name, 'link', 'add', 'bridge', 'type', 'bridge')
            ip('-n', self.name, 'link', 'set', 'bridge', 'up')
            for host in self.hosts.values():
                self.add_namespace(host.namespace, undo)
                ip('-n', host.namespace, 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', host.plug, 'netns',
                   self.name)
                ip('-n', self.name, 'link', 'set', host.plug, 'master', 'bridge', 'up')
                ip('-n', host.namespace, 'address', 'add', f'{host.address}/24', 'dev', 'eth0')
                ip('-n', host.namespace, 'link', 'set', 'eth0', 'up')
                ip('-n', host.namespace, 'link', 'set', 'lo', 'up')
            yield self

    def add_namespace(self, name, undo):
        ip('netns', 'add', name)
        undo.callback(subprocess.run, ['ip', 'netns', 'delete', name], check=False, capture_output=True)


@contextlib.contextmanager
def spread_cluster(nodes=('n1', 'n2'), others=(), gpus='sim:4x24G', **options):
    """(network, cluster): mgpud on the host `head`, the nodes on hosts of their names, and hosts on which nothing runs."""
    with Network(['head', *nodes, *others]).made() as network:
        head = network['head']
        with Cluster(0, address=head.address, prefix=head.prefix, **options) as cluster:
            for name in nodes:
                cluster.add(name, gpus, prefix=network[name].prefix).join()
            yield network, cluster
