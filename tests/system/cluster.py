# SPDX-License-Identifier: MIT
"""A controller and nodes that have joined it, all on this machine, each with directories of its own."""

import contextlib
import os
import shutil
import signal
import subprocess

import harness
from harness import DEADLINE_S


class Node:
    """An mgpu-agent that joins, or has joined, a cluster."""

    def __init__(self, cluster, name, gpus='sim:4x24G', arguments=(), prefix=()):
        self.cluster, self.name = cluster, name
        self.place = f'{cluster.place}/{name}'
        os.makedirs(self.place, mode=0o755, exist_ok=True)
        if cluster.box.user.uid != os.geteuid():
            os.chown(self.place, cluster.box.user.uid, cluster.box.user.gid)
        self.state_dir, self.run_dir = f'{self.place}/state', f'{self.place}/run'
        self.log_path = f'{self.place}/log'
        self.command = [*prefix, f'{harness.programs()}/mgpu-agent', '--state-dir', self.state_dir,
                        '--run-dir', self.run_dir, '--gpus', gpus, *arguments]
        self.process = None

    def spawn(self, *extra, stdin=subprocess.DEVNULL):
        """Starts it and waits for nothing."""
        box = self.cluster.box
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen([*self.command, *extra], stdin=stdin, stdout=log, stderr=log, cwd='/',
                                            env=box.environment(), **box.user.popen_arguments())
        return self

    def join(self, ticket=None, *extra):
        """Joins under its name; returns when the controller has it."""
        self.spawn('--join', ticket or self.cluster.ticket(), '--node', self.name, *extra)
        return self.await_up()

    def start(self, *extra):
        """Starts one that has joined before."""
        self.spawn(*extra)
        return self.await_up()

    def await_up(self):
        self.cluster.await_node(self.name, lambda node: node['up'], self)
        return self

    def stop(self):
        """SIGTERM. Jobs go on."""
        self.process.terminate()
        return self.process.wait(DEADLINE_S)

    def kill(self):
        """kill -9 of the uplink and the worker, as when the machine loses its agent; jobs go on."""
        for pid in self.agents():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(DEADLINE_S)

    def agents(self):
        """Pids of the uplink, the worker and what it forked."""
        return [pid for pid, line in harness.processes(self.place).items() if 'mgpu-agent' in line.split(' ')[0]]

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as source:
            return source.read()

    def await_log(self, text, timeout_s=DEADLINE_S):
        """Waits until its log has the text."""
        harness.await_text(self.log_path, text, timeout_s)

    def end(self, timeout_s=DEADLINE_S):
        """Waits until it leaves by itself; its exit status."""
        return self.process.wait(timeout_s)


class Cluster:
    """Nodes n1, n2, ... of `gpus` each, and a controller named `head` with `local` as GPUs. Use as a context.

    `prefix` has the words that start a program on the host with that `address` (hosts.py).
    """

    def __init__(self, count=2, gpus='sim:4x24G', local='none', client=None, user=None, start=True, listen='none',
                 arguments=(), address='127.0.0.1', prefix=(), head='head'):
        self.port = harness.free_port()
        self.box = harness.Instance(local, user=user, client=client, listen=listen, arguments=(
            '--node', head, '--nodes-listen', f'{address}:{self.port}', *arguments))
        self.box.command[:0] = prefix
        self.place = self.box.place
        self.nodes = {}
        if start:
            self.box.start()
            for i in range(count):
                self.add(f'n{i + 1}', gpus).join()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close(kind is not None)

    def add(self, name, gpus='sim:4x24G', arguments=(), prefix=()):
        """A node that has not joined yet."""
        node = Node(self, name, gpus, arguments, prefix)
        self.nodes[name] = node
        return node

    def ticket(self, *arguments):
        """What `mgpu node token` prints."""
        return self.box.mgpu('node', 'token', *arguments, user=self.box.user, check=True).out.strip()

    def node(self, name):
        """The node as the API has it, or None."""
        found = [node for node in self.box.api('GET', '/nodes').json['nodes'] if node['name'] == name]
        return found[0] if found else None

    def await_node(self, name, is_right, agent=None, timeout_s=DEADLINE_S):
        """The node once it is as wanted; of `agent`, unless that ends before."""
        def look():
            node = self.node(name)
            return node if node is not None and is_right(node) else None

        found = self.box.await_news(look, agent.process if agent else None, timeout_s)
        if found:
            return found
        log = agent.log() if agent else ''
        raise AssertionError(f'node {name}: {self.node(name)}\n{log[-3000:]}\n{self.box.log()[-3000:]}')

    def close(self, has_failed=False):
        """Ends all jobs and programs, and checks that nothing is left and no sanitizer spoke."""
        problems = []
        try:
            if self.box.process and self.box.process.poll() is None:
                for node in self.nodes.values():  # an agent that is away could not end its jobs
                    if node.process and node.process.poll() is not None and os.path.exists(f'{node.state_dir}/node/tls'):
                        with contextlib.suppress(Exception):
                            node.start()
                self.box.cancel_all()
        except Exception as error:  # noqa: BLE001 - the teardown goes on and reports
            problems.append(f'jobs could not be ended: {error!r}')
        for node in self.nodes.values():
            if node.process and node.process.poll() is None:
                node.stop()
        for node in self.nodes.values():
            log = node.log() if os.path.exists(node.log_path) else ''
            if harness.SANITIZER.search(log):
                problems.append(f'{node.name}:\n{log[-6000:]}')
        try:
            self.box.close()
        except AssertionError as error:
            problems.append(str(error))
        shutil.rmtree(self.place, ignore_errors=True)
        assert has_failed or not problems, '\n'.join(problems)
