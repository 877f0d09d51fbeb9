# SPDX-License-Identifier: MIT
"""A controller, nodes and a user on hosts with a network between them: addresses, cut links, firewalls."""

import contextlib
import json
import random
import select

import pytest

import harness
import hosts
import invariants
from cluster import Cluster

DEADLINE_S = harness.DEADLINE_S

RENDEZVOUS = '''
import os, socket, sys
rank, where = os.environ['MGPU_NODE_RANK'], (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
if rank == '0':
    listener = socket.create_server(where)
    open(sys.argv[1], 'w').write('listening\\n')
    line, peer = listener.accept()
else:
    open(sys.argv[1]).readline()
    line, peer = socket.create_connection(where, 20), where
line.sendall(b'I am rank ' + rank.encode())
line.shutdown(socket.SHUT_WR)
print(peer[0], 'said:', b''.join(iter(lambda: line.recv(100), b'')).decode())
'''

# The kernel's lock proves that no other attempt is alive; it releases the lock of a killed one.
ATTEMPT = '''
import fcntl, json, os, signal, sys, time
marks, bell, gate = sys.argv[1:]
attempt = int(os.environ['MGPU_ATTEMPT'])
out = open(marks, 'a', buffering=1)
def mark(what):
    out.write(json.dumps({'what': what, 'attempt': attempt, 'at': time.clock_gettime(time.CLOCK_BOOTTIME)}) + '\\n')
def end(*_):
    mark('end')
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
try:
    fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    mark('overlap')
mark('start')
open(bell, 'w').write('%d\\n' % attempt)
open(gate).readline()
mark('end')
sys.exit(3)
'''


@pytest.fixture(scope='module', autouse=True)
def possible():
    if hosts.why_not():
        pytest.skip(hosts.why_not())


@pytest.fixture(scope='module')
def spread(someone):
    """(network, cluster): two nodes with four GPUs each, and a laptop that may reach the API."""
    with hosts.spread_cluster(others=['laptop'], client=someone, listen='0.0.0.0:9123') as made:
        yield made


@contextlib.contextmanager
def cut(host):
    """The host's cable is out inside the block."""
    host.cut()
    try:
        yield
    finally:
        host.mend()


def test_jobs_run_on_hosts_of_their_own(spread, gate):
    network, cluster = spread
    box = cluster.box
    jobs = [box.submit('-g', '4', '--', *gate.command('echo here; exit 5')) for _ in range(2)]
    where = {job: box.wait(job, 'running')['node'] for job in jobs}
    assert sorted(where.values()) == ['n1', 'n2']
    for job, node in where.items():
        assert cluster.node(node)['address'].startswith(f'{network[node].address}:')
        seen = box.mgpu('exec', job, '--', 'cat', '/proc/net/fib_trie', check=True)
        assert network[node].address in seen.out and network['head'].address not in seen.out, seen
    follower = box.popen('logs', '-f', jobs[0])
    gate.open(2)
    out, err = follower.communicate(timeout=DEADLINE_S)
    assert out == b'here\n', err
    for job in jobs:
        assert box.wait(job)['exit_code'] == 5 and box.output(job) == 'here\n'


def test_the_parts_of_a_job_meet_at_the_masters_address(spread, gate):
    network, cluster = spread
    done = cluster.box.mgpu('run', '-N', '2', '-g', '2', '--', 'python3', '-c', RENDEZVOUS, gate.path)
    assert done.code == 0, done
    spoken = {rank: network[node].address for rank, node in
              [(part['rank'], part['node']) for part in cluster.box.job(newest(cluster.box))['ranks']]}
    assert sorted(done.out.splitlines()) == [f'0: {spoken[1]} said: I am rank 1', f'1: {spoken[0]} said: I am rank 0']


def test_collectives_are_told_the_interface_where_a_node_has_several(spread):
    network, cluster = spread
    hosts.ip('-n', network['n1'].namespace, 'link', 'add', 'eth9', 'type', 'veth', 'peer', 'name', 'eth9b')
    hosts.ip('-n', network['n1'].namespace, 'address', 'add', '10.9.9.9/24', 'dev', 'eth9')
    hosts.ip('-n', network['n1'].namespace, 'link', 'set', 'eth9', 'up')
    tell = 'echo $MGPU_NODE $NCCL_SOCKET_IFNAME $GLOO_SOCKET_IFNAME'
    try:
        done = cluster.box.mgpu('run', '-N', '2', '-g', '2', '--', 'sh', '-c', tell, check=True)
        assert sorted(line.split(': ')[1] for line in done.out.splitlines()) == ['n1 =eth0 eth0', 'n2'], done
        done = cluster.box.mgpu('run', '-N', '2', '-g', '2', '--', 'sh', '-c', tell, check=True,
                                env={'NCCL_SOCKET_IFNAME': 'eth9'})
        assert sorted(line.split(': ')[1] for line in done.out.splitlines()) == ['n1 eth9 eth0', 'n2 eth9'], done
        job = cluster.box.submit('-N', '1', '-g', '4', '--nodelist', 'n1', '--', 'sh', '-c', tell)
        cluster.box.wait(job)
        assert cluster.box.output(job) == 'n1\n', 'a job on one node needs no interface'
    finally:
        hosts.ip('-n', network['n1'].namespace, 'link', 'delete', 'eth9')


def test_a_node_beside_the_controller_is_met_at_an_address_that_all_reach(someone, gate):
    """It dialled 127.0.0.1, as one on the controller's own machine does; the other node is on another host."""
    with hosts.Network(['head', 'far']).made() as network:
        head = network['head']
        with Cluster(0, client=someone, address='0.0.0.0', prefix=head.prefix) as cluster:
            for name, host, address in (('near', head, '127.0.0.1'), ('far', network['far'], head.address)):
                secret = cluster.ticket('--node', name).split('#')[1]
                cluster.add(name, prefix=host.prefix).join(f'{address}:{cluster.port}#{secret}')
            done = cluster.box.mgpu('run', '-N', '2', '-g', '8', '--', 'python3', '-c',
                                    'import os; print(os.environ["MASTER_ADDR"], os.environ["MGPU_HOSTS"])', check=True)
            for line in done.out.splitlines():
                assert '127.' not in line and head.address in line and network['far'].address in line, done
            done = cluster.box.mgpu('run', '-N', '2', '-g', '8', '--', 'python3', '-c', RENDEZVOUS, gate.path)
            assert done.code == 0 and done.out.count('said: I am rank') == 2, done


def newest(box):
    return max(job['id'] for job in box.api('GET', '/jobs?all=1').json['jobs'])


def test_a_user_of_another_host_needs_a_token_and_nothing_else(spread, someone, place):
    network, cluster = spread
    laptop = network['laptop']
    made = cluster.box.mgpu('token', 'create', '--host', network['head'].address, '--json', check=True).json
    far = {'MGPU_HOST': made['api'], 'MGPU_TOKEN': made['token'], 'HOME': place}
    done = laptop.run(someone, 'run', '-g', '1', '--', 'sh', '-c', 'id -u; exit 6', env=far)
    assert (done.code, done.out) == (6, f'{someone.uid}\n'), done
    assert laptop.run(someone, 'nodes', env=far).out.count(' up ') == 3
    assert 'mgpu token create' in laptop.run(someone, 'ps', env={**far, 'MGPU_TOKEN': ''}).err


def test_doctor_tells_apart_why_a_controller_is_not_reached(spread, someone):
    network, cluster = spread
    laptop, head = network['laptop'], network['head']

    def told(where):
        done = laptop.run(someone, 'doctor', '--node', where)
        bad = [line for line in done.out.splitlines() if line.startswith('BAD')]
        assert done.code == 1 and len(bad) == 1, done
        return bad[0]

    assert laptop.run(someone, 'doctor', '--node', cluster.ticket()).code == 0
    assert 'connection refused' in told(f'{head.address}:9')
    assert 'no route to this network' in told('203.0.113.1:9124')
    assert 'no route to this machine' in told('10.213.7.200:9124')
    unknown = told('no-such-host.invalid:9124')
    assert 'unknown host name' in unknown or 'name servers' in unknown


def test_doctor_tells_of_a_firewall_that_drops(spread, someone):
    network, _ = spread
    if not network['head'].drop(13):
        pytest.skip('needs iptables')
    done = network['laptop'].run(someone, 'doctor', '--node', f'{network["head"].address}:13')
    assert done.code == 1 and 'the connection timed out' in done.out, done


def test_a_job_outlives_a_cut_link_and_its_result_is_told_later(someone, gate, bell):
    with hosts.spread_cluster(['n1'], client=someone, arguments=('--node-timeout', '2s')) as (network, cluster):
        box = cluster.box
        job = box.submit('-g', '2', '--', 'sh', '-c',
                         f'echo up > {bell.path}; read word < {gate.path}; seq 100000; echo over > {bell.path}; exit 7')
        assert bell.wait() == 'up'
        box.wait(job, 'running')
        with cut(network['n1']):
            cluster.await_node('n1', lambda node: node['state'] == 'unreachable')
            gate.open()
            assert bell.wait() == 'over'
            shown = box.job(job)
            assert shown['state'] == 'running' and shown['unreachable_since'], shown
            booked = [gpu['index'] for gpu in box.gpus() if job in [held['id'] for held in gpu['jobs']]]
            assert len(booked) == 2, box.gpus()
        cluster.await_node('n1', lambda node: node['state'] == 'up')
        assert box.wait(job)['exit_code'] == 7
        assert box.output(job) == ''.join(f'{i}\n' for i in range(1, 100001))


def test_a_job_whose_node_is_cut_off_goes_on_elsewhere_and_never_runs_twice(someone, gate, bell, place):
    marks = f'{place}/marks'
    with hosts.spread_cluster(client=someone,
                              arguments=('--node-timeout', '2s', '--node-lease', '4s')) as (network, cluster):
        box = cluster.box
        job = box.submit('-g', '1', '--requeue-on', 'node-lost', '--', 'python3', '-c', ATTEMPT, marks, bell.path,
                         gate.path)
        assert bell.wait() == '1'
        first = box.wait(job, 'running')['node']
        with cut(network[first]):
            assert bell.wait() == '2'
            second = box.wait(job, 'running')['node']
            gate.open()
            ended = box.wait(job)
        assert (ended['exit_code'], ended['attempt'], ended['restarts']) == (3, 2, 1), ended
        assert second != first
    with open(marks, encoding='ascii') as source:
        told = [json.loads(line) for line in source]
    assert [(mark['what'], mark['attempt']) for mark in told] == [('start', 1), ('end', 1), ('start', 2), ('end', 2)]
    assert [mark['at'] for mark in told] == sorted(mark['at'] for mark in told)


# --- links that come and go ---

FLAPS = 8
SEED = 1
# Two at a time on one GPU would be seen by its lock.
ONCE = 'exec 9> "$1/$MGPU_NODE-$MGPU_GPUS"; flock -n 9 || echo overlap >> "$1/ran"; echo $MGPU_JOB_ID >> "$1/ran"; sleep $2; exit 3'


@pytest.mark.parametrize('how', ['both ways', 'one way'])
def test_links_that_come_and_go_lose_no_job_and_repeat_none(someone, place, how):
    """Links are cut at random, for moments and for longer than a node may be silent, while jobs start, run and end on both nodes."""
    chance = random.Random(SEED)
    with hosts.spread_cluster(client=someone, gpus='sim:2x24G', arguments=('--node-timeout', '2s')) as (network, cluster):
        box = cluster.box
        jobs = []
        for _ in range(FLAPS):
            jobs += [box.submit('-g', '1', '--', 'sh', '-c', ONCE, 'sh', place, str(chance.random())) for _ in range(3)]
            host = network[chance.choice(('n1', 'n2'))]
            with cut(host) if how == 'both ways' else host.mute():
                select.select([], [], [], chance.choice((0.05, 0.3, 1, 3)))  # a random time, not a wait for anything
            select.select([], [], [], chance.random() / 2)
        ended = [box.wait(job) for job in jobs]
        assert [(job['exit_code'], job['attempt']) for job in ended] == [(3, 1)] * len(jobs), ended
        for name in ('n1', 'n2'):
            cluster.await_node(name, lambda node: node['state'] == 'up')
        was_away = [event for event in invariants.read_events(box) if event.get('change') == 'node_unreachable']
        print(f'{len(jobs)} jobs, {FLAPS} cuts; a node was unreachable {len(was_away)} times')
        assert was_away
    with open(f'{place}/ran', encoding='ascii') as source:
        assert sorted(map(int, source)) == jobs
