# SPDX-License-Identifier: MIT
"""Jobs on several nodes: all parts start or none does, and they end together."""

import json
import os
import signal

import pytest

import harness
from cluster import Cluster

DEADLINE_S = harness.DEADLINE_S


@pytest.fixture(scope='module')
def cluster(someone):
    """Two nodes with four GPUs each, and a controller with none."""
    with Cluster(2, client=someone) as made:
        yield made


def parts(job):
    return {part['rank']: part for part in job['parts']}


def test_each_node_runs_a_part_and_knows_the_others(cluster):
    box = cluster.box
    job = box.submit('-N', '2', '-g', '8', '--', 'sh', '-c',
                     'echo $MGPU_NODE $MGPU_NODE_RANK of $MGPU_NNODES, $CUDA_VISIBLE_DEVICES, $MGPU_NODELIST, '
                     '$PET_NNODES $PET_NODE_RANK $PET_NPROC_PER_NODE ${MASTER_ADDR:+address} $MASTER_PORT')
    ended = box.wait(job)
    assert ended['exit_code'] == 0, ended
    nodes = [parts(ended)[rank]['node'] for rank in (0, 1)]
    assert sorted(nodes) == ['n1', 'n2']
    out = box.mgpu('logs', job, check=True).out.splitlines()
    port = out[0].split()[-1]
    assert sorted(out) == [f'{rank}: {nodes[rank]} {rank} of 2, 0,1,2,3, {",".join(nodes)}, 2 {rank} 4 address {port}'
                           for rank in (0, 1)]
    one = box.mgpu('logs', job, '--rank', '1', check=True).out
    assert one.startswith(f'{nodes[1]} 1 of 2')


def test_the_first_part_that_fails_ends_the_others(cluster, gate):
    box = cluster.box
    job = box.submit('-N', '2', '-g', '2', '--', 'sh', '-c',
                     f'test $MGPU_NODE_RANK = 0 && exec sleep 1000; read word < {gate.path}; exit 3')
    running = box.wait(job, 'running')
    gate.open()
    ended = box.wait(job)
    assert (ended['state'], ended['exit_code']) == ('failed', 3)
    assert ended['message'] == f'rank 1 on {parts(running)[1]["node"]}: exit 3'
    assert parts(ended)[0]['ended_by'] == 'cancelled'
    assert parts(ended)[1]['exit_code'] == 3
