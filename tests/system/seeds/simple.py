# SPDX-License-Identifier: MIT
"""A master and nodes by the names mgpu_simple_master and mgpu_simple_node, all on this machine."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import harness

GPUS = 'sim:2x12G'
SUBMITTED = re.compile(r"Job submission: \{'status': 'ok', 'job_id': '([A-F][0-9A-F]{7})', 'message': 'Job submitted'\}\n")


def free_pair():
    """Two ports in a row that nobody has at the moment: for clients, and for nodes."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(('127.0.0.1', 0))
            port = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind(('127.0.0.1', port + 1))
                return port


class Master(harness.Instance):
    """mgpu_simple_master with directories of its own; what it prints is in its log."""

    def __init__(self, client=None, user=None, host='127.0.0.1', options=(), words=()):
        super().__init__('none', client=client, user=user)
        self.port = free_pair()
        self.host = host
        self.command = [f'{harness.programs()}/mgpu_simple_master', '--host', host, '--port', str(self.port), *options,
                        '--', '--state-dir', self.state_dir, '--run-dir', self.run_dir, *words]
        if self.is_root:
            self.command += ['--user', 'nobody']
        self.nodes = {}

    def node(self, name, *options, gpus=GPUS, join_env=None):
        """A node that has not been started."""
        self.nodes[name] = Node(self, name, options, gpus, join_env)
        return self.nodes[name]

    def simple(self, *arguments, port=None, host='localhost', **options):
        """mgpu_simple_client at this master, over TCP."""
        return self.mgpu('--host', host, '--port', self.port if port is None else port, *arguments, program='mgpu_simple_client',
                         env={'MGPU_SOCKET': '', **options.pop('env', {})}, **options)

    def start_simple(self, *arguments, **options):
        return self.popen('--host', 'localhost', '--port', self.port, *arguments, program='mgpu_simple_client',
                          env={'MGPU_SOCKET': ''}, **options)

    def simple_submit(self, *arguments, **options):
        """The id that is printed."""
        done = self.simple('submit', *arguments, check=True, **options)
        found = SUBMITTED.fullmatch(done.out)
        assert found, done
        return found[1]

    def await_queue(self, text):
        """The queue once it has this text."""
        def look():
            out = self.simple('queue', check=True).out
            return out if text in out else None

        found = self.await_news(look)
        assert found, f'no {text!r} in\n{self.simple("queue").out}\n{self.log()[-3000:]}'
        return found

    def await_log(self, text):
        return harness.await_text(self.log_path, text)

    def close(self):
        with contextlib.suppress(Exception):
            if self.process and self.process.poll() is None:
                for node in self.nodes.values():  # one that is away could not end its jobs
                    node.come_back()
                self.cancel_all()
        for node in self.nodes.values():
            node.close()
        super().close()


class Node:
    """mgpu_simple_node with directories of its own."""

    def __init__(self, master, name, options, gpus, join_env):
        self.master, self.name = master, name
        self.place = tempfile.mkdtemp(prefix='mgpu-n-', dir='/tmp')
        os.chmod(self.place, 0o755)
        if master.user.uid != os.geteuid():
            os.chown(self.place, master.user.uid, master.user.gid)
        self.state_dir, self.run_dir = f'{self.place}/state', f'{self.place}/run'
        self.out_path, self.log_path = f'{self.place}/out', f'{self.place}/log'
        self.command = [f'{harness.programs()}/mgpu_simple_node', '--node-id', name, '--master-port', str(master.port),
                        *options, '--', '--state-dir', self.state_dir, '--run-dir', self.run_dir, '--gpus', gpus]
        self.env = {**master.environment(), 'MGPU_SOCKET': master.socket, **(join_env or {})}
        self.process = None

    def spawn(self):
        with open(self.out_path, 'ab') as out, open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, cwd='/',
                                            env=self.env, **self.master.user.popen_arguments())
        return self

    def start(self):
        """Returns when the master has received it."""
        self.spawn()
        self.master.await_queue(f'{self.name}: 2 GPUs (2 free')
        return self

    def said(self):
        """(standard output, standard error)"""
        with open(self.out_path, encoding='utf-8') as out, open(self.log_path, encoding='utf-8') as log:
            return out.read(), log.read()

    def end(self):
        """Waits until it leaves by itself: (exit status, what it said on standard error)."""
        return self.process.wait(harness.DEADLINE_S), self.said()[1]

    def agents(self):
        """Pids of what runs there but for jobs and their shepherds."""
        return [pid for pid, line in harness.processes(self.place).items() if 'mgpu-agent' in line.split(' ')[0]]

    def stop(self):
        """SIGTERM. Jobs go on."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(harness.DEADLINE_S)

    def come_back(self):
        """Of a node that has joined and left."""
        if self.process and self.process.poll() is not None and os.path.exists(f'{self.state_dir}/node/tls/node.crt'):
            self.start()

    def close(self):
        self.stop()
        log = self.said()[1] if os.path.exists(self.log_path) else ''
        left = {pid: line for pid, line in harness.processes(self.place).items()
                if not harness.wait_process(pid, harness.LEAVING_S)}
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.place, ignore_errors=True)
        assert not left and not harness.SANITIZER.search(log), f'{left}\n{log[-3000:]}'
