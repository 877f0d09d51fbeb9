# SPDX-License-Identifier: MIT
"""scontrol: what it changes, its abbreviations, and its commands from standard input."""

import re

import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.mark.parametrize(('words', 'key', 'value'), [
    (['job={}', 'com=why'], 'slurm', 'comment=why'), (['JobId', '{}', 'comment', 'two words'], 'slurm', 'comment=two words'),
    (['jobid={}', 'timel=5'], 'time_limit', 300.0), (['JOBID={}', 'TimeLimit=UNLIMITED'], 'no_time_limit', True),
    (['jobid={}', 'numcpus=2'], 'cpus', 2), (['jobid={}', 'NumCPUs=1-4'], 'cpus', 1), (['jobid={}', 'gres=gpu:2'], 'gpus', 2),
    (['jobid={}', 'TresPerNode=gres:gpu:1'], 'gpus', 1), (['jobid={}', 'MinMemoryNode=100'], 'memory', 100 << 20),
    (['jobid={}', 'nice'], 'priority', -100), (['jobid={}', 'Nice=5'], 'priority', -5), (['jobid={}', 'na=other'], 'name', 'other'),
    (['jobid={}', 'acc=lab'], 'slurm', 'account=lab'), (['jobid={}', 'q=x', 'qos=high'], None, 'q=x'),
    (['jobid={}', 'exc=n7'], 'exclude', 'n7'), (['jobname=upd', 'Nice=3'], 'priority', -3), (['jobid={}', 'reque=1'], 'requeue_on_node_lost', True)])
def test_keys_are_those_of_slurm_and_may_be_abbreviated(cluster, words, key, value):
    job = cluster.wrap('true', '-H', '-J', 'upd')
    done = cluster.run('scontrol', 'update', *(word.format(job) for word in words))
    if key is None:
        assert done.code == 1 and f'Update of this parameter is not supported: {value}' in done.err, done
        return
    assert (done.code, done.out, done.err) == (0, '', ''), done
    shown = cluster.box.job(job)[key]
    assert value in shown if isinstance(shown, list) else shown == value, shown


def test_an_update_that_is_wrong_changes_nothing(cluster):
    job = cluster.wrap('true', '-H')
    for words, said in ((['comment=x'], 'No valid entity in update command'), ([f'jobid={job}', 'comment=x', 'foo'], 'Invalid input: foo'),
                        ([f'jobid={job}', 'comment=x', 'numcpus=0'], 'NumCPUs'), ([f'jobid={job}', 'comment=x', 'gres=disk:2'], 'disk:2'),
                        (['partitionname=gpu', 'state=down'], 'configuration'), (['jobid=999999', 'comment=x'], 'Invalid job id specified'),
                        (['jobname=nosuch', 'nice=1'], "No jobs with name 'nosuch'")):
        done = cluster.run('scontrol', 'update', *words)
        assert done.code == 1 and done.out == '' and said in done.err, done
    assert not any(note.startswith('comment') for note in cluster.box.job(job)['slurm'])


def test_jobs_are_held_and_released_by_their_name(cluster):
    first, second = (cluster.wrap('true', '-J', 'named', '-b', 'now+1hour') for _ in range(2))
    other = cluster.wrap('true', '-b', 'now+1hour')
    assert cluster.out('scontrol', 'hold', 'jobname=named') == ''
    held = {job: cluster.box.job(job)['hold'] for job in (first, second, other)}
    assert held == {first: 'user', second: 'user', other: None}
    assert cluster.out('scontrol', 'rel', 'JobName=named') == '' and cluster.box.job(first)['hold'] is None
    done = cluster.run('scontrol', 'hold', 'jobname=nosuch')
    assert (done.code, done.err) == (1, 'Invalid job id specified for job jobname=nosuch\nslurm_suspend error: Invalid job id specified\n')


def test_the_job_on_top_is_considered_before_the_others(cluster):
    jobs = [cluster.wrap('true', '-b', 'now+1hour') for _ in range(3)]
    assert cluster.out('scontrol', 'top', f'{jobs[2]},{jobs[1]}') == ''
    first, second, third = (cluster.box.job(job)['priority'] for job in (jobs[2], jobs[1], jobs[0]))
    assert first > second > third
    done = cluster.run('scontrol', 'top', '999999')
    assert done.code == 1 and 'Invalid job id specified' in done.err, done


def test_a_job_is_awaited_until_it_has_its_nodes(cluster, gate):
    job = cluster.wrap(gate.command()[-1])
    node = cluster.box.wait(job, 'running')['node']
    assert cluster.out('scontrol', 'wait_job', job) == f'Nodes {node} are ready for use\n'
    gate.open()
    cluster.finish(job)
    done = cluster.run('scontrol', 'wait_job', job)
    assert (done.code, done.err) == (1, f'scontrol: Job {job} no longer running\n'), done
    assert cluster.run('scontrol', 'wait_job', '999999').code == 1 and cluster.run('scontrol', 'wait_job').code == 1


def is_in(place, pid):
    """True for a process of a job that was submitted there: other instances have jobs with the same numbers."""
    try:
        with open(f'/proc/{pid}/environ', 'rb') as file:
            return f'PWD={place}'.encode() in file.read().split(b'\0')
    except OSError:
        return False


def test_the_processes_of_a_job_are_listed(cluster, gate, bell):
    job = cluster.wrap(f"srun -n2 sh -c 'echo up > {bell.path}; {gate.command()[-1]}; true'", '-o', '/dev/null')
    bell.wait(), bell.wait()
    lines = [line.split() for line in cluster.out('scontrol', 'listpids', job).splitlines()]
    lines[1:] = [line for line in lines[1:] if is_in(cluster.place, line[0])]
    assert lines[0] == ['PID', 'JOBID', 'STEPID', 'LOCALID', 'GLOBALID']
    places = sorted((step, local, rank) for pid, number, step, local, rank in lines[1:] if local != '-')
    assert places == [('0', '0', '0'), ('0', '1', '1'), ('batch', '0', '0')], lines
    assert {line[1] for line in lines[1:]} == {str(job)}
    tasks = [line.split() for line in cluster.out('scontrol', 'listpids', f'{job}.0').splitlines()[1:]]
    tasks = [line for line in tasks if is_in(cluster.place, line[0])]
    assert tasks and {line[2] for line in tasks} == {'0'}
    shown = cluster.out('scontrol', 'pidinfo', tasks[0][0])
    assert re.fullmatch(rf'Slurm JobId={job} ends at .+\nJob remaining time is \d+ seconds\n', shown), shown
    gate.open(2)
    cluster.finish(job)
    done = cluster.run('scontrol', 'listpids', 999999)
    assert (done.code, done.err) == (1, 'JobId=999999 does not exist on node (null).\n'), done
    assert cluster.run('scontrol', 'pidinfo', '1').err == 'Failed to locate job for requested pid\n'


def test_commands_are_read_from_standard_input(cluster):
    job = cluster.wrap('true', '-H')
    done = cluster.run('scontrol', input=f'oneliner\n\nshow j {job}\n!!\nbogus\nvers\nquit\nshow job {job}\n')
    lines = [line for line in done.out.splitlines() if not line.startswith('scontrol: ')]  # which repeat the commands
    assert len(lines) == 3 and lines[0] == lines[1] and lines[0].startswith(f'JobId={job} ') and lines[2] == 'slurm 22.05.8', done
    assert done.code == 1 and done.err == 'invalid keyword: bogus\n', done
    assert cluster.run('scontrol', input='').code == 0


def test_commands_that_do_not_exist_here_are_refused_with_a_reason(cluster):
    for words in (['notify', '1', 'hello'], ['reconfigure'], ['create', 'partition=x'], ['shutdown'], ['takeover'], ['reboot', 'n1']):
        done = cluster.run('scontrol', *words)
        assert done.code == 1 and re.match(rf'scontrol: error: {words[0]}: \S+ \S+', done.err), done
    assert cluster.out('scontrol', 'completing') == ''
    listed = cluster.out('scontrol', 'help')
    assert all(f'\n  {word} ' in listed for word in ('hold', 'top', 'listpids', 'wait_job', 'completing', 'show', 'update'))
