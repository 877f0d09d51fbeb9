# SPDX-License-Identifier: MIT
"""Jobs of sbatch on several nodes: the script is on the first, and its end is that of the job."""

import pytest
import slurm

Cluster = pytest.importorskip('cluster').Cluster  # nodes that join over TLS


@pytest.fixture(scope='module')
def two(someone):
    with Cluster(2, client=someone) as made:
        yield made


@pytest.fixture
def cluster(two, place):
    return slurm.Slurm(two.box, place)


def test_a_batch_script_runs_on_the_first_node_alone(cluster):
    line = 'echo $SLURM_NODEID of $SLURM_JOB_NUM_NODES, $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE $SLURM_NTASKS'
    job = cluster.wrap(line, '-N', 2, '--ntasks-per-node=2', '--gres=gpu:1', '-o', 'out')
    ended = cluster.finish(job)
    assert (ended['state'], ended['exit_code']) == ('done', 0), ended
    assert cluster.read('out') == '0 of 2, n[1-2] 2(x2) 4\n'
    assert cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'State,NNodes,NodeList') == 'COMPLETED|2|n[1-2]\n'


def test_the_status_of_the_script_is_that_of_the_job(cluster):
    job = cluster.wrap('exit 3', '-N', 2, '--gres=gpu:1', '-o', 'out')
    ended = cluster.finish(job)
    assert (ended['state'], ended['exit_code']) == ('failed', 3), ended


def test_nodes_are_listed_in_one_line(cluster):
    assert cluster.out('sinfo', '-h', '-o', '%D %N') == '3 head,n[1-2]\n'
    assert cluster.out('sinfo', '-N', '-h', '-o', '%N').split() == ['head', 'n1', 'n2']
