# SPDX-License-Identifier: MIT
"""Many nodes at once: those of bench/agents, which speak the agents' protocol on real links. bench/cluster measures them."""

import os
import pty
import re
import signal
import subprocess
import threading

import pytest
from cluster import Cluster
from harness import DEADLINE_S, IS_ROOT, build_folder, make_user, until

NODES, GPUS, JOBS = 40, 8, 100
LARGE, QUEUED = 120, 4000
READERS = 6
ROUNDS, REQUESTS = 5, 8  # of one kind, to measure what one costs
GROWTH = 2.5   # a walk over the queue per request costs ten times as much with all of it as with a tenth
TURN_S = 0.5   # of a build with sanitizers on a loaded machine


class Crowd:
    def __init__(self, cluster, count):
        tickets = [cluster.box.api('POST', '/nodes/tokens', {'host': '127.0.0.1'}, user=cluster.box.user).json['ticket']
                   for _ in range(count)]
        self.process = subprocess.Popen([f'{build_folder()}/mgpu-bench-agents', str(count), str(GPUS)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write('\n'.join(tickets) + '\n')
        self.process.stdin.close()

    def counts(self):
        """Ends it and returns the number of messages."""
        self.process.send_signal(signal.SIGTERM)
        lines = [line.split() for line in self.process.stdout]
        assert self.process.wait(DEADLINE_S) == 0
        return {line[0]: int(line[1]) for line in lines}


@pytest.fixture
def crowd(request):
    if not os.access(f'{build_folder()}/mgpu-bench-agents', os.X_OK):
        pytest.skip('this build has no mgpu-bench-agents')
    with Cluster(count=0, client=make_user('mgpu-ta') if IS_ROOT else None) as cluster:
        one = Crowd(cluster, getattr(request, 'param', NODES))
        try:
            yield cluster.box, one
        finally:
            one.process.kill()
            one.process.wait()


def are_up(box, count=NODES):
    nodes = box.api('GET', '/nodes').json['nodes']
    return sum(node['up'] for node in nodes if node['name'].startswith('sim')) == count


def test_many_nodes_run_each_job_once_and_come_back_after_a_restart(crowd):
    box, nodes = crowd
    until(lambda: are_up(box), 'all nodes are up')
    gpus = box.gpus()
    assert len({(gpu['node'], gpu['index']) for gpu in gpus}) == len(gpus) == NODES * GPUS  # in several slices
    held = [box.post_job(['sleep', '3600'], gpus=GPUS) for _ in range(3)]
    ended = [box.post_job(['true'], gpus=1 + i % 4) for i in range(JOBS)]
    assert {box.wait(job)['exit_code'] for job in ended} == {0}
    taken = [gpu for gpu in box.gpus() if gpu['jobs']]
    assert sorted({job['id'] for gpu in taken for job in gpu['jobs']}) == held
    assert len(taken) == len(held) * GPUS
    box.restart()
    until(lambda: are_up(box), 'all nodes are back')
    assert [box.job(job)['state'] for job in held] == ['running'] * len(held)
    assert len([gpu for gpu in box.gpus() if gpu['jobs']]) == len(held) * GPUS
    box.cancel_all()
    counts = nodes.counts()
    assert counts['started'] == counts['ended'] == JOBS + len(held)
    assert counts['launches'] - counts['repeated'] == counts['started'], 'an attempt started twice'


def processor_s(box):
    """Processor time of mgpud's one thread; the store has another."""
    with open(f'/proc/{box.process.pid}/task/{box.process.pid}/schedstat', encoding='ascii') as source:
        return int(source.read().split()[0]) / 1e9


def submit_many(box, count):
    connection = box.connection(box.client)
    for i in range(count):
        connection.request('POST', '/api/v1/jobs', json_of(i), {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201
    connection.close()


def json_of(number):
    return f'{{"command":["sleep","3600"],"gpus":{1 + number % 8},"time_limit":{3600 * (1 + number % 3)},"env":{{}}}}'


def cost(box, method, path, body=None):
    """Of one such request, in processor time of mgpud; the least of several rounds, because it has other work meanwhile."""
    connection = box.connection(box.client)
    rounds = []
    for _ in range(ROUNDS):
        before = processor_s(box)
        for _ in range(REQUESTS):
            connection.request(method, path, body, {'Content-Type': 'application/json'} if body else {})
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 201)
        rounds.append((processor_s(box) - before) / REQUESTS)
    connection.close()
    return min(rounds)


def costs(box, job):
    return {'submit': cost(box, 'POST', '/api/v1/jobs', json_of(0)), 'job': cost(box, 'GET', f'/api/v1/jobs/{job}'),
            'gpus': cost(box, 'GET', '/api/v1/gpus?top=10&sparse=1'), 'nodes': cost(box, 'GET', '/api/v1/nodes?limit=10')}


def read_all_the_time(box, path, is_over, counts):
    """As many answers as it gets, and at least one."""
    connection = box.connection(box.client, timeout_s=4 * DEADLINE_S)
    while counts[path] == 0 or not is_over.is_set():
        connection.request('GET', path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, path
        counts[path] += 1
    connection.close()


def longest_turn_s(box):
    connection = box.connection(box.user)
    connection.request('GET', '/metrics')
    text = connection.getresponse().read().decode()
    connection.close()
    assert len(re.findall(r'^mgpu_gpu_open{', text, re.M)) == LARGE * GPUS  # in several slices, none twice
    assert len(set(re.findall(r'^mgpu_gpu_utilization_ratio({.*})', text, re.M))) == LARGE * GPUS
    return float(re.search(r'^mgpu_turn_longest_seconds (.*)', text, re.M).group(1))


@pytest.mark.parametrize('crowd', [LARGE], indirect=True)
def test_a_long_queue_makes_no_request_dearer_and_nobody_waits_for_the_others(crowd):
    box, _ = crowd
    until(lambda: are_up(box, LARGE), 'all nodes are up')
    submit_many(box, LARGE * GPUS // 4 + QUEUED // 10)  # they have 4.5 GPUs each
    first = box.post_job(['sleep', '1'], gpus=8, env={})
    short = costs(box, first)
    submit_many(box, QUEUED)
    long = costs(box, first)
    for kind, one in short.items():
        assert long[kind] < one * GROWTH + 0.001, f'{kind}: {one * 1e3:.2f} ms, with a long queue {long[kind] * 1e3:.2f} ms'
    paths = ('/api/v1/gpus?sparse=1', '/api/v1/jobs?top=200&sparse=1', f'/api/v1/jobs/{first}/why', '/api/v1/nodes', '/metrics')
    counts, is_over = dict.fromkeys(paths, 0), threading.Event()
    readers = [threading.Thread(target=read_all_the_time, args=(box, path, is_over, counts)) for path in paths * READERS]
    for reader in readers:
        reader.start()
    submit_many(box, 20)
    is_over.set()
    for reader in readers:
        reader.join()
    assert min(counts.values()) > 0
    assert longest_turn_s(box) < TURN_S
    assert box.stop() == 0  # its jobs are made up: to cancel each would take longer than the test


def on_terminal(box, *words):
    ours, theirs = pty.openpty()
    process = box.popen(*words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b''
    try:
        while part := os.read(ours, 1 << 16):
            text += part
    except OSError:
        pass  # the end of a terminal
    os.close(ours)
    assert process.wait(DEADLINE_S) == 0
    return text.decode().splitlines()


def test_the_gpus_of_many_nodes_are_cut_on_a_terminal_alone(crowd):
    box, _ = crowd
    until(lambda: are_up(box), 'all nodes are up')
    held = box.post_job(['sleep', '3600'], gpus=3)
    until(lambda: box.job(held)['state'] == 'running', 'it runs')
    taken = {gpu['node'] for gpu in box.gpus() if gpu['jobs']}
    node = next(name for name in ('sim0001', 'sim0002') if name not in taken)
    box.mgpu('node', 'drain', node, user=box.user, check=True)
    lines = on_terminal(box, 'gpus')
    rest = NODES * GPUS - 3 - GPUS - 200
    assert f'{rest} more free: mgpu gpus NODE, mgpu gpus --limit 0' in lines[-1], lines[-3:]
    assert len([line for line in lines if line.startswith(f'{node} ')]) == GPUS
    assert len([line for line in lines if line.split()[3:4] == [str(held)]]) == 3
    assert len(box.mgpu('gpus', '-H', check=True).out.splitlines()) == NODES * GPUS
    assert len(on_terminal(box, 'gpus', '--limit', '0')) >= NODES * GPUS
    assert len(box.mgpu('gpus', '-H', '--limit', '2', check=True).out.splitlines()) == 3 * 2
    assert {line.split()[0] for line in box.mgpu('gpus', node, '-H', check=True).out.splitlines()} == {node}
    assert box.mgpu('gpus', f'{node}:3', '-o', 'node,gpu', '-H', check=True).out.split() == [node, '3']
    assert box.mgpu('gpus', 'sim9999').code == 3
    box.cancel_all()
