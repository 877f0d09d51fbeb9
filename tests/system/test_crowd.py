# SPDX-License-Identifier: MIT
"""Many nodes at once: those of bench/agents, which speak the agents' protocol on real links. bench/cluster measures them."""

import os
import signal
import subprocess

import pytest
from cluster import Cluster
from harness import DEADLINE_S, IS_ROOT, build_folder, make_user, until

NODES, GPUS, JOBS = 40, 8, 100


class Crowd:
    def __init__(self, cluster):
        tickets = [cluster.box.api('POST', '/nodes/tokens', {'host': '127.0.0.1'}, user=cluster.box.user).json['ticket']
                   for _ in range(NODES)]
        self.process = subprocess.Popen([f'{build_folder()}/mgpu-bench-agents', str(NODES), str(GPUS)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write('\n'.join(tickets) + '\n')
        self.process.stdin.close()

    def counts(self):
        """Ends it; the messages that it counted."""
        self.process.send_signal(signal.SIGTERM)
        lines = [line.split() for line in self.process.stdout]
        assert self.process.wait(DEADLINE_S) == 0
        return {line[0]: int(line[1]) for line in lines}


@pytest.fixture
def crowd():
    if not os.access(f'{build_folder()}/mgpu-bench-agents', os.X_OK):
        pytest.skip('this build has no mgpu-bench-agents')
    with Cluster(count=0, client=make_user('mgpu-ta') if IS_ROOT else None) as cluster:
        one = Crowd(cluster)
        try:
            yield cluster.box, one
        finally:
            one.process.kill()
            one.process.wait()


def are_up(box):
    nodes = box.api('GET', '/nodes').json['nodes']
    return sum(node['up'] for node in nodes if node['name'].startswith('sim')) == NODES


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
