# SPDX-License-Identifier: MIT
"""Versions that are one minor version apart: a controller of one, nodes of another, and updates under running jobs.

Other builds than the one that is tested come from MGPU_OTHER_BUILDS (`make soak` makes one of an older commit).
"""

import shutil

import pytest

import harness
import skew
from cluster import Cluster

NODES = ('n1', 'n2')


@pytest.fixture(scope='module')
def newer():
    """The folder of programs that are one minor version further."""
    place = skew.next_minor(harness.programs())
    yield place
    shutil.rmtree(place, ignore_errors=True)


def make(someone, controller, agent):
    """A cluster whose mgpud and whose nodes are of these folders."""
    cluster = Cluster(0, client=someone, start=False)
    cluster.box.command[0] = f'{controller}/mgpud'
    cluster.box.start()
    for name in NODES:
        node = cluster.add(name)
        node.command[0] = f'{agent}/mgpu-agent'
        node.join()
    return cluster


def restart(cluster, folder=None):
    """SIGTERM of mgpud, and another start, of the programs in the folder when one is given."""
    box = cluster.box
    box.process.terminate()
    assert box.process.wait(harness.DEADLINE_S) == 0
    box.command[0] = f'{folder}/mgpud' if folder else box.command[0]
    box.start()
    for name in NODES:
        cluster.await_node(name, lambda node: node['up'], cluster.nodes[name])


def submit_wide(box, gate):
    """A job whose part on the second node fails, after the gate."""
    return box.submit('-N', '2', '-g', '2', '--', 'sh', '-c', f'read word < {gate.path}; exit $MGPU_NODE_RANK')


def see_all_work(cluster, gate):
    """Submit, logs, cancel, a job on both nodes, restarts of both sides, and an end that is told later."""
    box = cluster.box
    job = box.submit('-g', '1', '--', *gate.command('echo on $MGPU_NODE; exit 3'))
    name = box.wait(job, 'running')['node']
    follower = box.popen('logs', '-f', job)
    gate.open()
    assert box.wait(job)['exit_code'] == 3
    assert follower.communicate(timeout=harness.DEADLINE_S)[0].decode() == f'on {name}\n'

    job = box.submit('-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    box.mgpu('cancel', job, check=True)
    assert box.wait(job)['state'] == 'cancelled'

    wide = submit_wide(box, gate)
    job = box.submit('-g', '1', '--', *gate.command('echo told; exit 9'))
    box.wait(wide, 'running')
    node = cluster.nodes[box.wait(job, 'running')['node']]
    restart(cluster)
    node.kill()
    cluster.await_node(node.name, lambda found: not found['up'])
    gate.open(3)
    node.start()
    assert box.wait(job)['exit_code'] == 9
    assert box.output(job) == 'told\n'
    assert box.wait(wide)['message'].startswith('rank 1 on ')


def versions(cluster):
    return {node['name']: node['version'] for node in cluster.box.api('GET', '/nodes').json['nodes']}


def assert_apart(cluster):
    told = versions(cluster)
    head, node = (tuple(map(int, told[name].split('.')[:2])) for name in ('head', 'n1'))
    assert told['n1'] == told['n2'] and head[0] == node[0] and abs(head[1] - node[1]) == 1, told


def test_nodes_of_the_next_version_work(someone, newer, gate):
    with make(someone, harness.programs(), newer) as cluster:
        assert_apart(cluster)
        see_all_work(cluster, gate)


def test_nodes_of_the_last_version_work(someone, newer, gate):
    with make(someone, newer, harness.programs()) as cluster:
        assert_apart(cluster)
        see_all_work(cluster, gate)


if skew.other_builds():
    @pytest.mark.parametrize('name', sorted(skew.other_builds()))
    @pytest.mark.parametrize('is_node', [True, False], ids=['nodes', 'controller'])
    def test_another_build_works(someone, newer, name, is_node, gate):
        other = harness.copy_programs(skew.other_builds()[name])
        ours = newer if skew.version_of(other) == skew.version_of(harness.programs()) else harness.programs()
        try:
            with make(someone, *((ours, other) if is_node else (other, ours))) as cluster:
                assert_apart(cluster)
                see_all_work(cluster, gate)
        finally:
            shutil.rmtree(other)


def test_each_side_passes_over_what_only_a_newer_one_knows(someone, gate):
    ways = []
    with Cluster(2, client=someone) as cluster:
        for name in NODES:
            node = cluster.nodes[name]
            node.stop()
            ways.append(skew.Newer(cluster, node))
            node.command += ['--controller', ways[-1].place]
            node.start()
        see_all_work(cluster, gate)
        log = cluster.box.log() + ''.join(node.log() for node in cluster.nodes.values())
        assert 'cut off' not in log and 'unknown' not in log, log
        assert all(way.frames > 5 for way in ways), [way.frames for way in ways]
    for way in ways:
        way.close()


def test_updates_of_either_side_and_back_disturb_no_running_job(someone, newer, gate):
    with Cluster(2, client=someone) as cluster:
        box = cluster.box
        job = box.submit('-g', '1', '--', *gate.command('echo $MGPU_NODE; exit 5'))
        wide = submit_wide(box, gate)
        before = [box.wait(id_, 'running') for id_ in (job, wide)]
        for folder in (newer, harness.programs()):
            restart(cluster, folder)
            assert versions(cluster)['head'].split('.') == list(map(str, skew.version_of(folder)))
        for node in cluster.nodes.values():
            node.stop()
            node.command[0] = f'{newer}/mgpu-agent'
            node.start()
        after = [box.job(id_) for id_ in (job, wide)]
        for was, now in zip(before, after):
            assert [now[key] for key in ('state', 'attempt', 'started_at')] == ['running', 1, was['started_at']], now
        gate.open(3)
        ended = box.wait(job)
        assert (ended['exit_code'], box.output(job)) == (5, f'{before[0]["node"]}\n')
        assert box.wait(wide)['message'].startswith('rank 1 on ')
