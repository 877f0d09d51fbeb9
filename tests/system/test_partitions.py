# SPDX-License-Identifier: MIT
"""Partitions: where their jobs run, who may use them, their limits and priorities, and what Slurm's commands show."""

import os
import signal
import subprocess
import tempfile

import harness
import pytest
import slurm
from cluster import Cluster

CONFIG = """partitions:
  main:
    default: true
    max-time: 8h
    default-time: 1h
  debug:
    nodes: n2
    max-time: 30m
    max-gpus: 1
    priority: 100
  mine:
    nodes: n[1-2]
    users: [mgpu-ta, "group:nosuchgroup"]
  later:
    nodes: n9
"""


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


@pytest.fixture(scope='module')
def parts(ana):
    """Nodes n1 and n2 with two GPUs each, and head without, in partitions."""
    with tempfile.TemporaryDirectory(prefix='mgpu-t-') as folder:
        os.chmod(folder, 0o755)
        path = f'{folder}/mgpu.yaml'
        write(path, CONFIG)
        with Cluster(2, gpus='sim:2x24G', client=ana, arguments=['--config', path]) as cluster:
            cluster.config = path
            yield cluster


@pytest.fixture
def box(parts):
    yield parts.box
    parts.box.cancel_all()


@pytest.fixture
def commands(box, place):
    return slurm.Slurm(box, place)


def test_a_job_runs_on_the_nodes_of_its_partition(box):
    jobs = [box.submit('-P', 'debug', '-g', '1', '--', 'true') for _ in range(4)]
    assert {box.wait(job)['node'] for job in jobs} == {'n2'}
    assert {box.job(job)['partition'] for job in jobs} == {'debug'}


def test_a_job_waits_for_its_partition_while_other_nodes_are_free(box, gate):
    first = [box.submit('-P', 'debug', '-g', '1', '--', *gate.command()) for _ in range(2)]
    for job in first:
        box.wait(job, 'running')
    late = box.submit('-P', 'debug', '-g', '1', '--', 'true')
    why = box.mgpu('why', late, '--json', check=True).json
    assert why['reasons'][0]['code'] == 'resources', why
    assert 'in partition debug' in why['reasons'][0]['text'] and '0 of 2 are free' in why['reasons'][0]['text'], why
    other = box.submit('-g', '1', '--', 'true')
    assert box.wait(other)['node'] == 'n1'
    gate.open(2)
    assert box.wait(late)['node'] == 'n2'


def test_without_a_partition_a_job_is_in_the_default_one_and_has_its_limits(box):
    job = box.job(box.submit('--', 'true'))
    assert (job['partition'], job['time_limit_s']) == ('main', 3600)
    done = box.mgpu('submit', '-t', '9h', '--', 'true')
    assert done.code == 2 and 'the maximum in partition main is 8h00m' in done.err, done


@pytest.mark.parametrize(('words', 'said'), [
    (['-P', 'nosuch'], "there is no partition 'nosuch'"),
    (['-P', 'main,nosuch'], "there is no partition 'nosuch'"),
    (['-P', 'debug', '-t', '31m'], 'the maximum in partition debug is 30m00s'),
    (['-P', 'debug', '-g', '2'], 'a job in partition debug has at most 1'),
    (['-P', 'mine', '-g', '5'], 'partition mine: no node can run it'),
    (['-P', 'debug', '-G', 'n1:0'], 'partition debug: node n1 does not belong to it'),
    (['-P', 'debug', '-N', '2', '-g', '0'], 'partition debug: it is too small'),
], ids=' '.join)
def test_a_request_that_its_partition_cannot_serve_is_refused(box, words, said):
    done = box.mgpu('submit', *words, '--', 'true')
    assert done.code in (2, 3) and said in done.err, done
    assert box.open_jobs() == []


def test_lists_of_nodes_say_where_a_job_runs(box):
    assert box.wait(box.submit('--nodelist', 'n2', '--', 'true'))['node'] == 'n2'
    assert box.wait(box.submit('--exclude', 'n1', '--', 'true'))['node'] == 'n2'
    brackets = box.submit('--hold', '--nodelist', 'n[1-2]', '--exclude', 'n[1,7]', '--', 'true')
    assert (box.job(brackets)['nodelist'], box.job(brackets)['exclude']) == ('n1,n2', 'n1,n7')
    box.mgpu('edit', brackets, 'exclude=n[2,2]', check=True)
    box.mgpu('release', brackets, check=True)
    assert box.wait(brackets)['node'] == 'n1'
    answer = box.api('POST', '/jobs', {'command': ['true'], 'exclude': 'n[1-2]'})
    assert answer.status == 400 and "exclude: 'n[1-2]' is not a list of nodes" in answer.json['detail'], answer
    assert box.wait(box.submit('--nodelist', 'n1,n2', '--exclude', 'n2', '-g', '0', '--', 'true'))['node'] == 'n1'
    wide = box.wait(box.submit('--nodelist', 'n1,n2', '-N', '2', '-g', '2', '--', 'true'))
    assert [rank['node'] for rank in wide['ranks']] == ['n1', 'n2']
    held = box.submit('--hold', '--', 'true')
    box.mgpu('edit', held, 'nodelist=n2', check=True)
    box.mgpu('release', held, check=True)
    assert box.wait(held)['node'] == 'n2'


@pytest.mark.parametrize(('words', 'said'), [
    (['--nodelist', 'n7'], "there is no node 'n7'"),
    (['--nodelist', 'n1', '--exclude', 'n1'], 'nodelist n1 without exclude n1 leaves no node'),
    (['--nodelist', 'n1', '-N', '2', '-g', '0'], 'requested 2 nodes; there is 1'),
    (['--nodelist', 'n1', '-g', '500'], 'no node can run it'),
    (['--exclude', 'n1', '-G', 'n1:0'], 'node n1 does not belong to it'),
], ids=' '.join)
def test_a_request_that_its_nodes_cannot_serve_is_refused(box, words, said):
    done = box.mgpu('submit', *words, '--', 'true')
    assert done.code in (2, 3) and said in done.err, done
    assert box.open_jobs() == []


@pytest.mark.root
def test_only_its_users_may_use_a_partition(box, bo, gate):
    assert box.wait(box.submit('-P', 'mine', '--', 'true'))['state'] == 'done'
    done = box.mgpu('submit', '-P', 'mine', '--', 'true', user=bo)
    assert done.code == 4 and 'not allowed to use partition mine' in done.err, done
    blocker = box.submit('--hold', '--', 'true', user=bo)
    done = box.mgpu('edit', blocker, 'partition=mine', user=bo)
    assert done.code == 4 and 'not allowed to use partition mine' in done.err, done
    rows = {row['name']: row['may_use'] for row in box.mgpu('partitions', '--json', user=bo, check=True).json['partitions']}
    assert rows == {'main': True, 'debug': True, 'mine': False, 'later': True}


def test_a_job_of_several_partitions_runs_where_there_is_room(box, gate):
    held = [box.submit('-P', 'debug', '-g', '1', '--', *gate.command()) for _ in range(2)]
    for job in held:
        box.wait(job, 'running')
    assert box.wait(box.submit('-P', 'debug,main', '--', 'true'))['node'] == 'n1'
    gate.open(2)


def test_a_partition_of_higher_priority_comes_first(box, gate):
    held = [box.submit('-g', '1', '--', *gate.command()) for _ in range(4)]
    for job in held:
        box.wait(job, 'running')
    early = box.submit('-p', '0', '-g', '1', '--', 'true')
    late = box.submit('-P', 'debug', '-g', '1', '--', 'true')
    positions = [box.job(job)['position'] for job in (late, early)]
    assert positions == [1, 2], positions
    gate.open(4)
    for job in (early, late):
        box.wait(job)


def test_a_partition_whose_nodes_have_not_joined_keeps_its_jobs_waiting(box, commands):
    job = box.submit('-P', 'later', '--', 'true')
    why = box.mgpu('why', job, '--json', check=True).json
    assert [reason['code'] for reason in why['reasons']] == ['partition'], why
    assert why['reasons'][0]['text'] == 'no node of partition later has joined'
    assert commands.out('squeue', '-h', '-j', job, '-o', '%P %r').split() == ['later', 'PartitionNodeLimit']
    box.mgpu('edit', job, 'partition=debug', check=True)
    assert box.wait(job)['node'] == 'n2'


def test_a_changed_configuration_moves_waiting_jobs(parts, box):
    job = box.submit('-P', 'later', '--', 'true')
    write(parts.config, CONFIG.replace('nodes: n9', 'nodes: n1'))
    box.process.send_signal(signal.SIGHUP)
    assert box.wait(job)['node'] == 'n1'
    write(parts.config, CONFIG.replace('  later:\n    nodes: n9\n', ''))
    held = box.submit('-P', 'later', '--hold', '--', 'true')
    box.process.send_signal(signal.SIGHUP)
    box.await_news(lambda: 'later' not in box.mgpu('partitions', check=True).out)
    box.mgpu('release', held, check=True)
    why = box.mgpu('why', held, '--json', check=True).json
    assert why['reasons'][0]['text'] == 'the configuration has no partition later', why
    write(parts.config, CONFIG)
    box.process.send_signal(signal.SIGHUP)
    box.await_news(lambda: 'later' in box.mgpu('partitions', check=True).out)


def test_a_restart_keeps_the_partitions_of_jobs(parts, box, gate):
    held = box.submit('-P', 'debug', '-g', '1', '--', *gate.command())
    box.wait(held, 'running')
    jobs = [box.submit('-P', 'debug', '-g', '1', '--', *gate.command()) for _ in range(2)]
    box.wait(jobs[0], 'running')
    box.kill()
    box.start()
    for name in ('n1', 'n2'):
        parts.await_node(name, lambda node: node['up'])
    gate.open(3)
    assert {box.wait(job)['node'] for job in (held, *jobs)} == {'n2'}


def test_a_replay_of_the_journal_makes_the_same_decisions(parts, box, gate, place):
    held = [box.submit('-P', 'debug', '-g', '1', '--', *gate.command()) for _ in range(2)]
    for job in held:
        box.wait(job, 'running')
    jobs = [box.submit(*words, '-g', '1', '--', 'true')
            for words in (['-P', 'debug'], ['-P', 'mine'], ['-P', 'debug,mine'], ['-P', 'mine', '--exclusive'], [])]
    gate.open(2)
    for job in jobs:
        box.wait(job)
    path = f'{place}/journal'
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    done = subprocess.run([f'{harness.build_folder()}/mgpu-sim', 'journal', path], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0 and 'all identical' in done.stdout, done


# --- Slurm's commands ---

def test_sinfo_lists_partitions_with_the_default_marked(commands):
    assert commands.out('sinfo', '-h', '-o', '%P').split() == ['main*', 'debug', 'mine', 'later']
    lines = [line.split() for line in commands.out('sinfo').splitlines()]
    assert lines[0] == ['PARTITION', 'AVAIL', 'TIMELIMIT', 'NODES', 'STATE', 'NODELIST']
    assert lines[1:] == [['main*', 'up', '8:00:00', '3', 'idle', 'head,n[1-2]'], ['debug', 'up', '30:00', '1', 'idle', 'n2'],
                         ['mine', 'up', 'infinite', '2', 'idle', 'n[1-2]'], ['later', 'up', 'infinite', '0', 'n/a']]
    assert commands.out('sinfo', '-h', '-p', 'debug', '-N', '-o', '%N %R').split() == ['n2', 'debug']


def test_scontrol_shows_partitions_and_those_of_a_node(commands):
    shown = commands.out('scontrol', '-o', 'show', 'partition', 'debug')
    for pair in ('PartitionName=debug', 'Default=NO', 'MaxTime=00:30:00', 'Nodes=n2', 'PriorityTier=101', 'TotalNodes=1'):
        assert pair in shown.split(), shown
    assert commands.out('scontrol', '-o', 'show', 'partition').count('PartitionName=') == 4
    assert 'Partitions=main,mine' in commands.out('scontrol', '-o', 'show', 'node', 'n1').split()
    done = commands.run('scontrol', 'show', 'partition', 'nosuch')
    assert done.code == 1 and 'Partition nosuch not found' in done.out + done.err, done


def test_sbatch_puts_a_job_into_a_partition(commands, gate):
    job = commands.wrap('echo $SLURM_JOB_PARTITION', '-p', 'debug', '-o', 'out')
    assert commands.finish(job)['node'] == 'n2'
    assert commands.read('out') == 'debug\n'
    job = commands.wrap('echo $SLURM_JOB_PARTITION', '-o', 'out2')
    commands.finish(job)
    assert commands.read('out2') == 'main\n'
    held = commands.wrap('true', '--hold', '-p', 'debug,mine')
    assert commands.out('squeue', '-h', '-p', 'mine', '-o', '%i %P').split() == [str(held), 'debug,mine']
    assert commands.out('squeue', '-h', '-p', 'main') == ''
    assert 'Partition=debug,mine' in commands.out('scontrol', '-o', 'show', 'job', held).split()
    assert commands.out('scancel', '-p', 'mine') == ''
    assert commands.finish(held)['state'] == 'cancelled'


def test_lists_are_narrowed_by_partition_account_and_node(commands, gate):
    debug = commands.wrap('true', '-p', 'debug', '-A', 'lab', '-o', '/dev/null')
    main = commands.wrap('true', '-q', 'high', '--gres=gpu:1', '-o', '/dev/null')
    for job in (debug, main):
        commands.finish(job)
    node = commands.box.job(main)['node']

    def ids(*words):
        return {int(word) for word in commands.out('sacct', '-X', '-n', '-P', '-o', 'JobID', '-j', f'{debug},{main}', *words).split()}
    assert ids() == {debug, main}
    assert ids('-r', 'debug') == ids('-A', 'lab') == {debug} and ids('-r', 'main,mine') == ids('-q', 'high') == {main}
    assert ids('-N', 'n[7-9]') == set() and main in ids('-N', f'{node},n7')
    held = commands.wrap('true', '-H', '-q', 'low')
    assert commands.out('squeue', '-h', '-q', 'low', '-o', '%i').split() == [str(held)]


def test_a_script_of_mgpu_keeps_a_partition_that_exists(commands, box):
    script = commands.script('#!/bin/sh\n#SBATCH -p debug\n#SBATCH --hold\ntrue\n')
    assert box.job(box.submit(script))['partition'] == 'debug'
    script = commands.script('#!/bin/sh\n#SBATCH --partition=a100 --hold\ntrue\n')
    done = box.mgpu('submit', script)
    assert done.code == 0 and '--partition' in done.err, done
    assert box.job(int(done.out))['partition'] == 'main'


@pytest.mark.parametrize(('words', 'said'), [
    (['-p', 'nosuch'], ['invalid partition specified: nosuch',
                        'Batch job submission failed: Invalid partition name specified']),
    (['-p', 'debug', '-t', '31'],
     ['Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)']),
], ids=lambda value: ' '.join(value))
def test_sbatch_refuses_in_slurms_words(commands, words, said):
    done = commands.run('sbatch', *words, '--wrap', 'true')
    assert (done.code, done.out) == (1, '')
    assert done.err.splitlines() == [f'sbatch: error: {line}' for line in said], done
    done = commands.run('srun', '-p', 'nosuch', 'true')
    assert done.code == 1 and done.err.splitlines()[:2] == [
        'srun: error: invalid partition specified: nosuch',
        'srun: error: Unable to allocate resources: Invalid partition name specified'], done


@pytest.mark.root
def test_sbatch_refuses_other_users_in_slurms_words(commands, bo):
    done = commands.run('sbatch', '-p', 'mine', '--wrap', 'true', user=bo)
    assert done.code == 1 and done.err.splitlines() == [
        "sbatch: error: Batch job submission failed: User's group not permitted to use this partition"], done


# --- exclusive ---

def test_an_exclusive_job_has_its_node_alone(box, gate):
    small = box.submit('-P', 'debug', '-g', '1', '--', *gate.command())
    box.wait(small, 'running')
    alone = box.submit('-P', 'debug', '--exclusive', '-g', '1', '--', *gate.command())
    why = box.mgpu('why', alone, '--json', check=True).json
    assert 'other jobs run on all of them' in why['reasons'][0]['text'], why
    gate.open(1)
    box.wait(alone, 'running')
    late = box.submit('-P', 'debug', '-g', '1', '--', 'true')
    assert box.job(late)['state'] == 'queued'
    gate.open(1)
    box.wait(late)
    ended, started = box.job(alone)['ended_at'], box.job(late)['started_at']
    assert ended <= started, (ended, started)


def test_an_exclusive_job_of_sbatch(commands):
    job = commands.wrap('true', '--exclusive', '--gres=gpu:1')
    assert commands.finish(job)['exclusive'] is True
    assert commands.box.wait(job)['state'] == 'done'


@pytest.mark.parametrize('limit', ['0', '00:00:00', '0:00', '0-0', '0-00:00:00', '-1', 'UNLIMITED', 'infinite'])
def test_no_limit_is_no_default_limit(commands, limit):
    """main has a default of one hour and a maximum of eight, mine neither."""
    for partition, shown in (('mine', 'UNLIMITED'), ('main', '8:00:00')):
        job = commands.wrap('true', '-H', '-p', partition, f'--time={limit}')
        assert commands.out('squeue', '-h', '-j', job, '-o', '%l').strip() == shown
        commands.out('scontrol', 'update', f'jobid={job}', 'timelimit=30')
        commands.out('scontrol', 'update', f'jobid={job}', f'timelimit={limit if limit != "-1" else "unlimited"}')  # -1: a minute less
        assert commands.out('squeue', '-h', '-j', job, '-o', '%l').strip() == shown
        commands.out('scancel', job)
    plain = commands.wrap('true', '-H')
    assert commands.out('squeue', '-h', '-j', plain, '-o', '%l').strip() == '1:00:00'
    commands.out('scancel', plain)


def test_a_job_can_decline_the_default_limit(make_instance):
    box = make_instance(arguments=['--default-time', '1h'])
    unlimited, usual = (box.submit('-g', '0', '--hold', *words, '--', 'true') for words in (('--no-time-limit',), ()))
    assert box.job(unlimited)['time_limit'] is None and box.job(unlimited)['no_time_limit'] is True
    assert box.job(usual)['time_limit'] == 3600
    box.mgpu('edit', usual, 'no_time_limit=yes', 'time_limit=none', check=True)
    assert box.job(usual)['time_limit'] is None
