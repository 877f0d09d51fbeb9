# SPDX-License-Identifier: MIT
"""Jobs on several nodes: all parts start or none does, and they end together."""

import os
import re
import signal

import pytest

import harness

pytestmark = pytest.mark.smoke

Cluster = pytest.importorskip('cluster').Cluster  # nodes that join over TLS

DEADLINE_S = harness.DEADLINE_S


@pytest.fixture(scope='module')
def cluster(someone):
    """Two nodes with four GPUs each, and a controller with none."""
    with Cluster(2, client=someone) as made:
        yield made


def parts(job):
    return {part['rank']: part for part in job['ranks']}


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


def test_run_shows_the_lines_of_all_nodes(cluster):
    box = cluster.box
    done = box.mgpu('run', '-N', '2', '--gpus-per-node', '1', '--', 'sh', '-c',
                    'for i in 1 2 3; do echo line $i of $MGPU_NODE_RANK; done')
    assert done.code == 0, done
    assert sorted(done.out.splitlines()) == [f'{rank}: line {i} of {rank}' for rank in (0, 1) for i in (1, 2, 3)]


def test_run_shows_all_nodes_of_a_job_whose_end_comes_with_its_start(cluster):
    """It is on two nodes since it needs them, without -N; often the first that is heard of it is that it is over."""
    shown = [cluster.box.mgpu('run', '-g', '8', 'echo $MGPU_NODE_RANK') for _ in range(10)]
    assert [sorted(done.out.splitlines()) for done in shown] == [['0: 0', '1: 1']] * 10, shown


def test_the_output_of_each_part_of_a_requeued_attempt_is_known_after_a_restart(cluster, gate):
    box = cluster.box
    job = box.submit('-N', '2', '--gpus-per-node', '1', '--', 'sh', '-c',
                     f'echo $MGPU_ATTEMPT of $MGPU_NODE_RANK; test $MGPU_ATTEMPT = 2 || read word < {gate.path}')
    box.wait(job, 'running')
    for rank in (0, 1):
        box.await_news(lambda rank=rank: box.mgpu('logs', job, '--rank', rank).out)
    assert box.api('POST', f'/jobs/{job}/requeue', {'hold': True}).status == 200
    box.wait(job, 'queued')
    box.kill()
    box.start()
    for node in cluster.nodes.values():
        node.await_up()
    for rank in (0, 1):
        assert box.mgpu('logs', job, '--rank', rank, check=True).out == f'1 of {rank}\n'
    assert sorted(box.mgpu('logs', job, check=True).out.splitlines()) == ['0: 1 of 0', '1: 1 of 1']
    beyond = box.api('GET', f'/jobs/{job}/log?rank=2')
    assert (beyond.status, beyond.json['detail']) == (404, f'job {job} has no output of rank 2 in attempt 1')
    box.mgpu('release', job, check=True)
    box.wait(job)
    for attempt in (1, 2):
        assert box.api('GET', f'/jobs/{job}/log?rank=1&attempt={attempt}').body == f'{attempt} of 1\n'.encode()


@pytest.mark.parametrize('nodes', [('-N', '2', '--gpus-per-node', '1'), ('-g', '8')], ids=['asked', 'needed'])
def test_run_shows_all_parts_of_an_attempt_that_was_over_at_once(cluster, place, nodes):
    """The parts wait for each other's output: the first that fails ends the others."""
    os.mkdir(f'{place}/said')
    os.chmod(f'{place}/said', 0o777)
    said = f'{place}/said/$MGPU_JOB_ID.$MGPU_ATTEMPT'
    program = (f'echo $MGPU_ATTEMPT; : > {said}.$MGPU_NODE_RANK; until [ -e {said}.0 ] && [ -e {said}.1 ]; do :; done; '
               'test $MGPU_ATTEMPT != 1 || exit 9')
    for _ in range(8):
        done = cluster.box.mgpu('run', '-q', *nodes, '--retry', '1', '--retry-on', '9', 'sh', '-c', program)
        assert (done.code, sorted(done.out.splitlines())) == (0, ['0: 1', '0: 2', '1: 1', '1: 2']), done


def test_a_part_that_cannot_start_is_named_and_no_other_runs(cluster):
    box = cluster.box
    mark = f'{box.place}/ran'
    job = box.submit('-N', '2', '-g', '2', '-o', f'{box.place}/missing-%r/out', '--', 'sh', '-c', f'echo ran > {mark}')
    ended = box.wait(job)
    assert ended['ended_by'] == 'start_failed', ended
    assert ended['message'].startswith('rank '), ended
    assert not os.path.exists(mark)


def test_cancel_ends_all_parts(cluster):
    box = cluster.box
    job = box.submit('-N', '2', '-g', '4', '--', 'sleep', '1000')
    box.wait(job, 'running')
    box.mgpu('cancel', job, check=True)
    ended = box.wait(job)
    assert ended['state'] == 'cancelled'
    assert [part['ended_by'] for part in ended['ranks']] == ['cancelled', 'cancelled']


@pytest.mark.parametrize('nodes', [1, 2])
def test_exec_works_as_soon_as_a_job_runs(cluster, nodes):
    box = cluster.box
    for _ in range(4):
        job = box.submit('-N', nodes, '-g', nodes, '--', 'sleep', '1000')
        box.wait(job, 'running')
        for _ in range(2):
            done = box.mgpu('exec', '--rank', nodes - 1, job, '--', 'echo', 'here')
            assert (done.code, done.out) == (0, 'here\n'), done
        box.mgpu('cancel', job, check=True)
        box.wait(job)


def test_exec_reaches_the_node_of_a_rank(cluster):
    box = cluster.box
    job = box.submit('-N', '2', '-g', '2', '--', 'sleep', '1000')
    running = box.wait(job, 'running')
    for rank in (0, 1):
        done = box.mgpu('exec', '--rank', str(rank), job, '--', 'sh', '-c', 'echo $MGPU_NODE $MGPU_NODE_RANK')
        assert done.out == f'{parts(running)[rank]["node"]} {rank}\n', done
    refused = box.mgpu('exec', '--rank', '7', job, '--', 'true')
    assert 'no such rank: 7' in refused.err
    shown = box.mgpu('show', job, check=True).out
    assert f'{parts(running)[0]["node"]}:0 {parts(running)[1]["node"]}:0' in shown
    box.mgpu('cancel', job, check=True)
    box.wait(job)


def test_killed_programs_lose_no_part(cluster, gate):
    box = cluster.box
    job = box.submit('-N', '2', '-g', '2', '--', 'sh', '-c', f'read word < {gate.path}; exit $MGPU_NODE_RANK')
    box.wait(job, 'running')
    os.kill(box.process.pid, signal.SIGKILL)
    box.process.wait(DEADLINE_S)
    cluster.nodes['n1'].kill()
    cluster.nodes['n2'].kill()
    gate.open(2)
    box.start()
    cluster.nodes['n1'].start()
    cluster.nodes['n2'].start()
    ended = box.wait(job)
    assert (ended['ended_by'], ended['exit_code']) == ('exit', 1), ended
    assert ended['message'].startswith('rank 1 on ')


def test_a_job_without_gpus_may_have_several_nodes(cluster):
    box = cluster.box
    job = box.submit('-N', '2', '-g', '0', '--', 'sh', '-c', 'echo $MGPU_NODE $MGPU_NNODES')
    ended = box.wait(job)
    assert ended['exit_code'] == 0, ended
    assert len(box.mgpu('logs', job, check=True).out.splitlines()) == 2


@pytest.mark.parametrize('is_busy', [False, True])
def test_what_could_run_before_a_restart_is_taken_while_its_nodes_are_away(cluster, is_busy):
    box = cluster.box
    running = box.submit('-N', '2', '-g', '2', '--', 'sleep', '1000') if is_busy else None
    if is_busy:
        box.wait(running, 'running')
    for node in cluster.nodes.values():
        node.kill()
    os.kill(box.process.pid, signal.SIGKILL)
    box.process.wait(DEADLINE_S)
    box.start()
    refused = box.mgpu('submit', '-N', '4', '-g', '4', '--', 'true')
    assert 'requested 4 nodes; there are 3' in refused.err, refused
    job = box.submit('-N', '2', '-g', '8', '--', 'true')
    assert box.job(job)['state'] == 'queued'
    for node in cluster.nodes.values():
        node.start()
    if is_busy:
        box.mgpu('cancel', running, check=True)
    assert box.wait(job)['exit_code'] == 0


def test_a_node_that_is_silent_is_named_whatever_its_rank_and_its_loss_has_a_run_time(someone, gate):
    with Cluster(2, client=someone, arguments=('--node-timeout', '2s')) as cluster:
        box = cluster.box
        job = box.submit('-N', '2', '-g', '8', '--', *gate.command())
        names = [parts(box.wait(job, 'running'))[rank]['node'] for rank in (0, 1)]
        shown = box.mgpu('show', job, check=True).out
        for name in names:
            assert f' {name} GPU 0 ' in shown, shown
        stopped = cluster.nodes[names[1]].agents()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            cluster.await_node(names[1], lambda node: node['state'] == 'unreachable')
            since = [part['unreachable_since'] for part in box.job(job)['ranks']]
            assert since[0] is None and since[1] is not None
            for verb in ('ps', 'show'):
                text = box.mgpu(verb, *([] if verb == 'ps' else [job]), check=True).out
                assert re.search(rf'node {names[1]} (has been )?unreachable since', text), (verb, text)
            box.mgpu('node', 'fence', '-y', names[1], user=box.user, check=True)
            gate.open()
            ended = box.wait(job)
            assert ended['ended_by'] == 'node_lost' and ended['run_seconds'] > 0, ended
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        # Only now it hears that nothing of the job is wanted, and whether its part has passed the gate is open.
        spool = f'{cluster.nodes[names[1]].run_dir}/spool/'
        harness.until(lambda: not harness.processes(spool), 'the node that is back has ended its part')
