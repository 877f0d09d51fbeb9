# SPDX-License-Identifier: MIT
"""--json of squeue, sacct and sinfo: the names and types of Slurm 22.05, as programs look them up."""

import json
import time

import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def read(cluster, *words):
    page = json.loads(cluster.out(*words, '--json'))
    assert page['errors'] == [] and page['meta']['Slurm']['release'] == '22.05.8', page
    return page


def test_squeue_describes_a_waiting_job_and_an_element(cluster):
    before = int(time.time())
    job = cluster.wrap('true', '-H', '-J', 'two words', '--gres=gpu:2', '-c', 1, '-t', 90, '--mem=100M', '-A', 'lab', '-n', 2)
    found = [row for row in read(cluster, 'squeue', '--me')['jobs'] if row['job_id'] == job]
    assert len(found) == 1
    row = found[0]
    user = cluster.box.client
    expected = {'job_state': 'PENDING', 'state_reason': 'JobHeldUser', 'name': 'two words', 'user_name': user.name,
                'user_id': user.uid, 'partition': 'gpu', 'account': 'lab', 'qos': 'normal', 'time_limit': 90, 'cpus': 2,
                'tasks': 2, 'node_count': 1, 'nodes': '', 'memory_per_node': 100, 'tres_per_node': 'gres:gpu:2',
                'start_time': 0, 'end_time': 0, 'array_job_id': 0, 'array_task_id': None, 'hold': True,
                'cluster': 'mgpu', 'exit_code': 0, 'batch_flag': True}
    assert {key: row[key] for key in expected} == expected
    assert before - 5 <= row['submit_time'] <= time.time() + 5
    array = cluster.wrap('true', '-H', '--array=0-3')
    row = next(row for row in read(cluster, 'squeue')['jobs'] if row['job_id'] == array)
    assert (row['array_job_id'], row['array_task_string']) == (array, '0-3')


def test_sacct_describes_a_job_and_its_steps(cluster):
    job = cluster.wrap('srun true; srun bash -c "exit 3"; kill -9 $$', '-n', 2)
    cluster.finish(job)
    rows = read(cluster, 'sacct', '-j', job)['jobs']
    assert len(rows) == 1 and rows[0]['job_id'] == job
    row = rows[0]
    assert row['state'] == {'current': 'FAILED', 'reason': 'RaisedSignal'}
    assert row['exit_code'] == {'status': 'SIGNALED', 'return_code': 0, 'signal': {'signal_id': 9}}
    assert row['time']['submission'] <= row['time']['start'] <= row['time']['end']
    steps = {step['step']['id']: step for step in row['steps']}
    assert set(steps) == {f'{job}.batch', f'{job}.extern', f'{job}.0', f'{job}.1'}
    assert steps[f'{job}.1']['exit_code'] == {'status': 'ERROR', 'return_code': 3}
    assert (steps[f'{job}.0']['state'], steps[f'{job}.0']['tasks']['count']) == ('COMPLETED', 2)
    assert read(cluster, 'sacct', '-X', '-j', job)['jobs'][0]['steps'] == []


def test_sinfo_describes_the_nodes(cluster):
    page = read(cluster, 'sinfo')
    node = page['nodes'][0]
    assert page['meta']['plugin']['type'] == 'openapi/v0.0.38'
    assert node['name'] == cluster.out('sinfo', '-h', '-o', '%N').strip()
    assert (node['state'], node['state_flags'], node['partitions']) == ('idle', [], ['gpu'])
    assert node['gres'] == f'gpu:simulated_gpu:{len(cluster.box.gpus())}' and node['cpus'] >= 1 and node['real_memory'] > 0
    cluster.box.mgpu('node', 'drain', node['name'], '--reason', 'fan', user=cluster.box.user, check=True)
    try:
        drained = read(cluster, 'sinfo')['nodes'][0]
        assert (drained['state'], drained['state_flags'], drained['reason']) == ('idle', ['DRAIN'], 'fan')
    finally:
        cluster.box.mgpu('node', 'resume', node['name'], user=cluster.box.user, check=True)
    assert read(cluster, 'sinfo', '-p', 'nosuch')['nodes'] == []
