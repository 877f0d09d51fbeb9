# SPDX-License-Identifier: MIT
"""What survives: every program that is connected to a job, times every process of mgpu that can be killed beneath it.

LOSSES are the columns and PROGRAMS the rows; each pair must end as if nothing had happened. For each loss, all programs are
started side by side, the process is killed (and started again, where nothing else does it), and all of them are finished.
"""

import os
import re
import shlex
import signal
import socket
import subprocess

import cluster
import controllers
import harness
import pytest
import slurm
import test_notebook
from harness import DEADLINE_S


@pytest.fixture(scope='module')
def nodes(someone):
    with cluster.Cluster(2, gpus='sim:8x24G', local='sim:8x24G', client=someone) as made:
        yield made


def named(node, name):
    """Pids of a node's processes with this name in ps."""
    return [pid for pid in node.agents() if harness.process_name(pid) == name]


def kill_mgpud(nodes):
    nodes.box.kill()
    nodes.box.start()


def restart_mgpud(nodes):
    nodes.box.process.terminate()
    assert nodes.box.process.wait(DEADLINE_S) == 0
    nodes.box.start()


def kill_uplink(nodes, name):
    node = nodes.nodes[name]
    for pid in named(node, 'mgpu-uplink'):
        os.kill(pid, signal.SIGKILL)
    node.process.wait(DEADLINE_S)
    node.start()


def kill_worker(nodes, name):
    for pid in named(nodes.nodes[name], 'mgpu-agent'):
        os.kill(pid, signal.SIGKILL)


def kill_own_worker(nodes):
    for pid in named(nodes.box, 'mgpu-agent'):
        os.kill(pid, signal.SIGKILL)


def kill_own_keeper(nodes):
    """mgpud leaves, so that its service manager starts both."""
    for pid in named(nodes.box, 'mgpu-keeper'):
        os.kill(pid, signal.SIGKILL)
    assert nodes.box.process.wait(DEADLINE_S) == os.EX_TEMPFAIL
    nodes.box.start()


def kill_node(nodes, name):
    nodes.nodes[name].kill()
    nodes.nodes[name].start()


LOSSES = {
    'mgpud is killed': kill_mgpud,
    'mgpud is restarted': restart_mgpud,
    'the uplink of the first node is killed': lambda nodes: kill_uplink(nodes, 'n1'),
    'the uplink of the second node is killed': lambda nodes: kill_uplink(nodes, 'n2'),
    'the worker of the first node is killed': lambda nodes: kill_worker(nodes, 'n1'),
    'the worker of the second node is killed': lambda nodes: kill_worker(nodes, 'n2'),
    'the keeper beside mgpud is killed': kill_own_keeper,
    'the worker beside mgpud is killed': kill_own_worker,
    'the agent of the second node is killed': lambda nodes: kill_node(nodes, 'n2'),
}


FAILOVER = 'another controller leads'


class Scene:
    """One cell after another: what runs, and a way to let it go on."""

    def __init__(self, nodes, place, where='n2'):
        self.nodes, self.box, self.place, self.where = nodes, nodes.box, place, where
        self.commands = slurm.Slurm(nodes.box, place)
        self.gates = []

    def gate(self, name, readers=1):
        """Shell words that wait until `open` was called, for each of the readers."""
        for i in range(readers):
            os.mkfifo(f'{self.place}/{name}.{i}')
            os.chmod(f'{self.place}/{name}.{i}', 0o666)
        self.gates.append((name, readers))
        return f'read x < {self.place}/{name}'

    def open(self):
        for name, readers in self.gates:
            for i in range(readers):
                with open(f'{self.place}/{name}.{i}', 'w', encoding='ascii') as out:
                    out.write('on\n')

    def host(self, name):
        """A job that the gate ends."""
        job = self.box.submit('-g', '0', '-c', '0.05', '--nodelist', self.where, '--', 'sh', '-c', f'echo up; {self.gate(name)}.0; echo "<$x>"')
        self.box.wait(job, 'running')
        return job


def read_line(process, wanted):
    line = process.stdout.readline()
    assert line.strip() == wanted, (line, process.poll())


def end(process, code, wanted):
    out, err = process.communicate(timeout=2 * DEADLINE_S)
    assert process.returncode == code and wanted in out, (process.returncode, out, err)


def run_job(scene):
    job = scene.host('job')
    yield
    assert scene.box.wait(job)['state'] == 'done' and scene.box.output(job) == 'up\n<on>\n'


def run_step(scene):
    inner = f'echo up; {scene.gate("step", 2)}.$SLURM_PROCID; echo "<$x>"; exit 5'
    job = scene.commands.wrap(f'srun -N 2 -n 2 sh -c {shlex.quote(inner)}', '-N', 2, '-w', 'n1,n2', '-o', 'step.out')
    harness.await_text(f'{scene.place}/step.out', 'up\nup\n')
    yield
    ended = scene.commands.finish(job)
    assert ended['exit_code'] == 5 and scene.commands.read('step.out').count('<on>') == 2, (ended, scene.commands.read('step.out'))


def run_exec(scene):
    job = scene.box.submit('-g', '0', '-c', '0.05', '--nodelist', scene.where, '--', 'sleep', '600')
    scene.box.wait(job, 'running')
    client = scene.box.popen('exec', job, '--', 'sh', '-c', f'echo up; {scene.gate("exec")}.0; echo "<$x>"; exit 7')
    read_line(client, b'up')
    yield
    end(client, 7, b'<on>')
    scene.box.mgpu('cancel', job, check=True)
    scene.box.wait(job)


def viewer(*words):
    def run(scene):
        job = scene.host(words[0])
        client = scene.box.popen(*words, job)
        read_line(client, b'up')
        yield
        end(client, 0, b'<on>')
    return run


def run_wait(scene):
    job = scene.host('wait')
    client = scene.box.popen('wait', job)
    yield
    end(client, 0, b'')


def run_waiting(scene):
    """srun outside a job, in the queue until the whole cluster is free again."""
    job = scene.box.submit('-g', '8', '-c', '0.05', '--nodelist', 'n1', '--', 'sh', '-c', f'{scene.gate("blocker")}.0')
    scene.box.wait(job, 'running')
    client = subprocess.Popen([f'{scene.commands.folder}/srun', '-G', '8', '-w', 'n1', 'echo', 'ran'], cwd=scene.place, stdin=subprocess.DEVNULL,
                              env=scene.commands.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **scene.box.client.popen_arguments())
    scene.box.await_news(lambda: [one for one in scene.box.open_jobs() if one > job], client)
    yield
    end(client, 0, b'ran\n')


ECHO = """import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    peer = server.accept()[0]
    peer.sendall(peer.recv(100))
    peer.close()
"""


def said_by(port, text):
    with socket.create_connection(('127.0.0.1', port), DEADLINE_S) as peer:
        peer.sendall(text)
        return peer.recv(100)


def run_forward(scene):
    """New connections after the loss arrive as those before."""
    job = scene.box.submit('-g', '0', '-c', '0.05', '--nodelist', scene.where, '--', 'python3', '-c', ECHO)
    scene.box.wait(job, 'running')
    port = harness.until(lambda: scene.box.output(job).strip(), 'the port of the server')
    client = scene.box.popen('forward', job, f'0:{port}')
    here = int(re.search(rb'127\.0\.0\.1:(\d+)', client.stdout.readline())[1])
    assert said_by(here, b'before') == b'before'
    yield
    assert client.poll() is None and said_by(here, b'after') == b'after', client.poll()
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=DEADLINE_S)
    scene.box.mgpu('cancel', job, check=True)
    scene.box.wait(job)


def run_notebook(scene):
    """With the stand-in of test_notebook.py for Jupyter."""
    folder = f'{scene.place}/programs'
    os.mkdir(folder)
    with open(f'{folder}/jupyter-lab', 'w', encoding='utf-8') as out:
        out.write(test_notebook.STAND_IN % '')
    os.chmod(f'{folder}/jupyter-lab', 0o755)
    client = scene.box.popen('notebook', '--no-browser', '-g', '0', '-c', '0.05', '--nodelist', scene.where, env={'PATH': f'{folder}:/usr/bin:/bin'})
    address = client.stdout.readline().decode().strip()
    assert test_notebook.get(address)
    yield
    assert client.poll() is None and test_notebook.get(address)
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=DEADLINE_S)
    assert client.returncode == 0


PROGRAMS = {
    'a job': run_job,
    'a step over two nodes': run_step,
    'mgpu exec': run_exec,
    'mgpu attach': viewer('attach'),
    'mgpu logs -f': viewer('logs', '-f'),
    'mgpu wait': run_wait,
    'mgpu forward': run_forward,
    'mgpu notebook': run_notebook,
    'a waiting srun': run_waiting,
}


def survive(scene, loss, lose):
    running = {name: program(scene) for name, program in PROGRAMS.items()}
    for program in running.values():
        next(program)
    lose()
    scene.open()
    for name, program in running.items():
        try:
            assert next(program, 'ended') == 'ended'
        except AssertionError as error:
            raise AssertionError(f'{name}, while {loss}: {error}') from error


@pytest.mark.parametrize('loss', LOSSES)
def test_every_program_survives_when(nodes, place, loss):
    def lose():
        LOSSES[loss](nodes)
        for name, node in nodes.nodes.items():
            nodes.await_node(name, lambda seen: seen['up'], node)

    survive(Scene(nodes, place, 'head' if 'beside mgpud' in loss else 'n2'), loss, lose)


class Entry:
    """Several controllers: programs are started on the machine of a standby, and the test asks the one that leads."""

    def __init__(self, made):
        self.controllers, self.standby = made, made.standbys()[0]
        self.popen, self.mgpu, self.submit, self.socket = self.standby.popen, self.standby.mgpu, self.standby.submit, self.standby.socket
        self.box, self.nodes = self, {}

    def __getattr__(self, name):
        return getattr(self.controllers.leader(), name)


@pytest.mark.real
@pytest.mark.root
@pytest.mark.skipif(not controllers.has_etcd(), reason='etcd-server is not installed')
def test_every_program_survives_when_another_controller_leads(ana, place):
    with controllers.Controllers(ana) as made:
        for name in ('n1', 'n2'):
            made.add_node(name, gpus='sim:8x24G')

        def lose():
            made.leader().kill()
            new = made.leader()
            for name in ('n1', 'n2'):
                harness.until(lambda name=name: any(one['name'] == name and one['up'] for one in new.api('GET', '/nodes').json['nodes']), f'{name} is up')

        survive(Scene(Entry(made), place), FAILOVER, lose)


def test_the_page_has_each_row_and_each_column():
    with open(f'{harness.ROOT}/docs/restarts.md', encoding='utf-8') as source:
        named = {name for line in source if line.startswith('| `') for name in re.findall(r'`([^`]+)`', line.split(' | ')[0])}
    assert named == {*LOSSES, *PROGRAMS, FAILOVER}
