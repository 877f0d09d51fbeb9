# SPDX-License-Identifier: MIT
"""Processes of exec and steps over several nodes lose their connections: nothing of them is lost, or comes twice."""

import hashlib
import os
import signal
import subprocess
import threading
import time

import cluster
import harness
import pytest
import slurm
from harness import DEADLINE_S

SIZE = 24 << 20


def echo(job, *command):
    """A client of exec whose process first says that it runs."""
    return ('exec', job, '--', 'sh', '-c', 'echo up; ' + ' '.join(command))


def finish(process, data=None):
    out, err = process.communicate(data, timeout=2 * DEADLINE_S)
    return harness.Done(process.returncode, out, err.decode())


@pytest.mark.parametrize('leave', ['kill', 'stop'])
def test_a_process_of_exec_outlives_mgpud(make_instance, gate, bell, leave):
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    os.mkfifo(f'{gate.path}.2')
    os.chmod(f'{gate.path}.2', 0o666)
    client = box.popen(*echo(job, f'read x < {gate.path}.2; echo "<$x>"; echo bad >&2; exit 9'))
    assert client.stdout.readline() == b'up\n'
    getattr(box, leave)()
    with open(f'{gate.path}.2', 'w', encoding='ascii') as out:
        out.write('while mgpud was not reachable\n')
    box.start()
    done = finish(client)
    assert (done.code, done.out) == (9, b'<while mgpud was not reachable>\n') and 'bad\n' in done.err, done
    gate.open()


def test_all_bytes_arrive_once_in_both_directions_while_mgpud_is_killed_again_and_again(make_instance, gate):
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    data = os.urandom(SIZE)
    client = box.popen(*echo(job, 'tee /dev/stderr'), stdin=subprocess.PIPE)
    assert client.stdout.readline() == b'up\n'
    got = {}

    def read(name, source):
        summed = hashlib.sha256()
        got[name] = [summed, 0]
        while piece := source.read1(1 << 16):
            summed.update(piece)
            got[name][1] += len(piece)

    def write():
        client.stdin.write(data)
        client.stdin.close()

    readers = [threading.Thread(target=read, args=('out', client.stdout)), threading.Thread(target=read, args=('err', client.stderr))]
    writer = threading.Thread(target=write)
    for thread in (*readers, writer):
        thread.start()
    kills = 0
    while writer.is_alive() and kills < 8:
        box.kill()
        box.start()
        kills += 1
    for thread in (writer, *readers):
        thread.join(2 * DEADLINE_S)
        assert not thread.is_alive(), got
    assert client.wait(DEADLINE_S) == 0
    wanted = hashlib.sha256(data).digest()
    assert (got['out'][1], got['out'][0].digest()) == (SIZE, wanted), f'{kills} kills'
    assert got['err'][1] == SIZE and got['err'][0].digest() == wanted, f'{kills} kills'
    gate.open()


def test_a_process_that_was_started_when_mgpud_died_runs_once(make_instance, gate, place):
    """The request may have reached the node or not: the client asks before it starts it again."""
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    for turn in range(6):
        client = box.popen('exec', job, '--', 'sh', '-c', f'echo x >> {place}/ran.{turn}; echo up')
        if turn % 2:
            harness.wait_process(client.pid, 0.004 * turn)
        box.kill()
        box.start()
        done = finish(client)
        ran = open(f'{place}/ran.{turn}', encoding='ascii').read() if os.path.exists(f'{place}/ran.{turn}') else ''
        assert ran in ('', 'x\n'), 'it ran twice'
        assert (done.code == 0) == (ran == 'x\n'), done
    gate.open()


def test_a_process_ends_when_its_client_is_killed_after_a_restart(make_instance, gate):
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    client = box.popen('exec', job, '--', 'sh', '-c', 'echo $$; read x; echo "<$x>"; exec sleep 4325', stdin=subprocess.PIPE)
    pid = int(client.stdout.readline())
    box.kill()
    box.start()
    client.stdin.write(b'again\n')
    client.stdin.flush()
    assert client.stdout.readline() == b'<again>\n'
    client.kill()
    client.communicate()
    assert harness.wait_process(pid, DEADLINE_S)
    gate.open()


def test_a_process_whose_client_is_lost_ends_with_its_job(make_instance, gate):
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    client = box.popen('exec', job, '--', 'sh', '-c', 'echo up; exec sleep 4326', stdin=subprocess.PIPE)
    assert client.stdout.readline() == b'up\n'
    box.kill()
    client.kill()  # nobody says that it does not return
    client.communicate()
    box.start()
    begun = time.monotonic()
    gate.open()
    box.wait(job)
    harness.until(lambda: not any(f'spool/{job}.' in line for line in harness.processes(box.place).values()), 'the end of the shepherds')
    assert time.monotonic() - begun < 20


def test_exec_on_a_terminal_outlives_mgpud(make_instance, gate):
    harness.HAS_TERMINALS or pytest.skip('no terminals here')
    box = make_instance(gpus='sim:2x24G')
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    client = box.popen('exec', '-T', job, '--', 'sh', '-c', 'echo up; read x; echo "<$x>"; exit 3', stdin=subprocess.PIPE)
    assert client.stdout.readline() == b'up\r\n'
    box.restart()
    done = finish(client, b'on\n')
    assert done.code == 3 and b'<on>' in done.out, done
    gate.open()


@pytest.fixture(scope='module')
def nodes(someone):
    with cluster.Cluster(2, client=someone) as made:
        yield made


def uplink(node):
    """Kills the process that has the connection to mgpud; the worker stays."""
    names = {harness.process_name(pid): pid for pid in node.agents()}
    os.kill(names['mgpu-uplink'], signal.SIGKILL)
    node.process.wait(DEADLINE_S)
    node.start()


def restart(nodes):
    nodes.box.kill()
    nodes.box.start()
    for name, node in nodes.nodes.items():
        nodes.await_node(name, lambda seen: seen['up'], node)


LOSSES = {
    'mgpud': restart,
    'the uplink of the first node': lambda nodes: uplink(nodes.nodes['n1']),
    'the uplink of the second node': lambda nodes: uplink(nodes.nodes['n2']),
}


@pytest.mark.parametrize('loss', LOSSES)
def test_a_step_over_two_nodes_outlives(nodes, place, bell, loss):
    commands = slurm.Slurm(nodes.box, place)
    names = [os.path.join(place, name) for name in ('go.0', 'go.1')]
    for name in names:
        os.mkfifo(name)
        os.chmod(name, 0o666)
    line = (f'srun -N 2 -n 2 -l sh -c \'echo up > {bell.path}; read x < {place}/go.$SLURM_PROCID; '
            'echo "$x $SLURM_PROCID"; exit 5\'')
    job = commands.wrap(line, '-N', 2, '-o', 'out')
    assert bell.wait() == 'up' and bell.wait() == 'up'
    LOSSES[loss](nodes)
    for name in names:
        with open(name, 'w', encoding='ascii') as out:
            out.write('told\n')
    ended = commands.finish(job)
    out = commands.read('out')
    assert (ended['state'], ended['exit_code']) == ('failed', 5), (ended, out)
    assert sorted(line for line in out.splitlines() if 'told' in line) == ['0: told 0', '1: told 1'], out
    listed = commands.out('sacct', '-n', '-P', '-j', job, '-o', 'JobID,State,ExitCode').splitlines()
    assert f'{job}.0|FAILED|5:0' in listed, listed
