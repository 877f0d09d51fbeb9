# SPDX-License-Identifier: MIT
"""Workflow programs that submit to Slurm: their command lines, the files that they submit, and how they read the answers.

ReFrame, Toil, Nextflow, Cromwell, simple_slurm and Lightning, restated from their sources.
"""

import re

import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def test_reframe_reads_nodes_partitions_and_states(cluster):
    ended, waiting = cluster.wrap('exit 3', '-o', '/dev/null'), cluster.wrap('true', '-H', '-a', '0-1')
    cluster.finish(ended)
    for line in cluster.out('scontrol', '-a', 'show', '-o', 'nodes').splitlines():
        for key in ('NodeName', 'Partitions', 'ActiveFeatures', 'State'):
            assert re.search(rf'{key}=(\S+)', line), (key, line)
        assert not {'DOWN', 'DRAIN', 'MAINT', 'NO_RESPOND'} & set(re.search(r'State=(\S+)', line)[1].split('+'))
    out = cluster.out('scontrol', '-a', 'show', '-o', 'partitions')
    assert re.search(r'PartitionName=(?P<partition>\S+)\s+.*Default=YES.*', out)['partition'] == 'gpu'
    out = cluster.out('sacct', '-S', '2026-01-01', '-P', '-j', f'{ended},{waiting}', '-o', 'jobid,state,exitcode,end,nodelist',
                      env={'SLURM_TIME_FORMAT': '%s'})
    pattern = (r'^(?P<jobid>\d+(?:\+\d+|_\d+|_\[\d+-\d+\])?)\|(?P<state>\S+)([^\|]*)\|(?P<exitcode>\d+)\:(?P<signal>\d+)\|(?P<end>\S+)\|'
               r'(?P<nodespec>.*)')
    found = {match['jobid']: match for match in re.finditer(pattern, out, re.MULTILINE)}
    assert (found[str(ended)]['state'], found[str(ended)]['exitcode']) == ('FAILED', '3') and float(found[str(ended)]['end']) > 1e9
    assert found[f'{waiting}_[0-1]']['state'] == 'PENDING' and found[f'{waiting}_[0-1]']['nodespec'] == 'None assigned', out
    out = cluster.out('squeue', '-h', '-j', f'{ended},{waiting}', '-o', '%i|%T|%N|%r')
    assert out == f'{waiting}_[0-1]|PENDING||JobHeldUser\n'
    assert cluster.out('squeue', '-h', '-j', waiting, '-o', '%r') == 'JobHeldUser\n'


def test_toil_finds_partitions_states_and_statuses(cluster, gate):
    for line in cluster.out('sinfo', '-a', '-o', '%P %G %l %p %c %m').splitlines()[1:]:
        name, gres, _, priority, cpus, memory = line.split(' ')
        assert name.rstrip('*') == 'gpu' and gres.startswith('gpu:') and int(priority) >= 0 and int(cpus.rstrip('+')) > 0 and memory, line
    words = ['-J', 'toil_job_1_x', '--signal=B:INT@30', '--export=ALL,TOIL_A=b', '--mem=200', '--cpus-per-task=1', '--time=0:100', '-o', '/dev/null']
    said = [cluster.out('sbatch', *words, '--wrap', f'exec sh -c "{line}"') for line in ('test $TOIL_A = b', 'exit 5', 'kill -9 \\$\\$')]
    jobs = [int(text.strip().split()[-1]) for text in said]
    running = cluster.wrap(gate.command()[2])
    for job in jobs:
        cluster.finish(job)
    out = cluster.out('sacct', '-n', '-j', ','.join(str(job) for job in [*jobs, running]), '--format', 'JobIDRaw,State,ExitCode', '-P', '-S', '1970-01-01')
    states = {}
    for line in out.splitlines():
        name, state, code = line.split('|')
        if '.' not in name:
            status, number = map(int, code.split(':'))
            states[int(name)] = state.split(' ')[0], 128 + number if number else status
    assert [states[job] for job in jobs] == [('COMPLETED', 0), ('FAILED', 5), ('FAILED', 137)] and states[running][1] == 0, out
    record, key = {}, None
    for item in cluster.out('scontrol', 'show', 'job', jobs[1]).strip().split():
        name, equals, value = item.partition('=')
        key = name if equals else key
        record[key] = value if equals else f'{record[key]} {name}'
    assert (record['JobId'], record['JobState'], record['ExitCode']) == (str(jobs[1]), 'FAILED', '5:0')
    cluster.box.wait(running, 'running')
    rows = [line.split() for line in cluster.out('squeue', '-h', '--format', '%i %t %M').splitlines()]
    assert [row[1] for row in rows if row[0] == str(running)] == ['R'] and all(re.fullmatch(r'(\d+-)?(\d+:)*\d+:\d+', row[2]) for row in rows)
    gate.open()


NEXTFLOW = """#!/bin/bash
#SBATCH -J nf-process_(1)
#SBATCH -o .command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 1
#SBATCH -t 00:10:00
#SBATCH --mem 200M
#SBATCH -p gpu
on_exit() { exit_status=$?; printf -- $exit_status > .exitcode; exit $exit_status; }
on_term() { set +e; [[ "$pid" ]] && kill -TERM $pid; }
trap on_exit EXIT
trap on_term TERM INT USR2
(%s) &
pid=$!
wait $pid || nxf_main_ret=$?
exit ${nxf_main_ret:-0}
"""


def test_nextflow_reads_the_exit_file_of_its_tasks(cluster, bell):
    job = int(re.search(r'Submitted batch job (\d+)', cluster.out('sbatch', cluster.script(NEXTFLOW % 'exit 7')))[1])
    cluster.finish(job)
    assert cluster.read('.exitcode') == '7'
    job = int(re.search(r'Submitted batch job (\d+)', cluster.out('sbatch', cluster.script(NEXTFLOW % f'echo up > {bell.path}; exec sleep 100')))[1])
    assert bell.wait() == 'up'
    rows = [line.split() for line in cluster.out('squeue', '--noheader', '-o', '%i %t', '-t', 'all', '-u', cluster.box.client.name).splitlines()]
    assert [str(job), 'R'] in rows and all(len(row) == 2 for row in rows)
    assert cluster.out('scancel', job) == ''
    assert cluster.finish(job)['state'] == 'cancelled' and cluster.read('.exitcode') == '143'


def test_cromwell_submits_checks_and_kills(cluster, gate):
    line = gate.command()[2].replace("'", "'\\''")
    out = cluster.out('/bin/bash', '-c', f"sbatch -J cromwell_1 -D {cluster.place} -o stdout -e stderr -t 10 -p gpu --cpus-per-task=1 --mem=200 --wrap '{line}'")
    job = int(re.search(r'Submitted batch job (\d+).*', out)[1])
    assert cluster.run('squeue', '-j', job).code == 0 and str(job) in cluster.out('squeue', '-j', job)
    assert cluster.run('scancel', job).code == 0
    cluster.finish(job)
    assert str(job) not in cluster.out('squeue', '-h', '-j', f'{job},{job}')


def test_simple_slurm_submits_on_standard_input(cluster):
    text = ('sbatch << EOF\n#!/bin/sh\n\n#SBATCH --array               3-5\n#SBATCH --job-name            name\n#SBATCH --output              %A_%a.out\n'
            '#SBATCH --cpus-per-task       1\n\necho element \\$SLURM_ARRAY_TASK_ID of \\$SLURM_ARRAY_JOB_ID\nEOF')
    job = int(re.search(r'Submitted batch job (\d+)', cluster.shell(text).out)[1])
    for index in (3, 4, 5):
        cluster.finish(f'{job}.{index}')
        assert cluster.read(f'{job}_{index}.out') == f'element {index} of {job}\n'


def test_lightning_requeues_on_its_signal_and_exits(cluster):
    """The script's own trap, the usual one: it requeues the job and exits at once."""
    text = ('#!/bin/bash\n#SBATCH --job-name=train --ntasks-per-node=1 --nodes=1 --signal=B:USR1@8 --time=0:10 --open-mode=append -o out\n'
            "trap 'scontrol requeue $SLURM_JOB_ID; exit 0' USR1\n"
            'echo run ${SLURM_RESTART_COUNT:-0} $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_NTASKS_PER_NODE\n'
            '[ -n "$SLURM_RESTART_COUNT" ] && exit 0\nwhile :; do sleep 0.1; done\n')
    job = cluster.submit(cluster.script(text))
    assert cluster.finish(job)['state'] == 'done'
    assert cluster.read('out').splitlines()[:1] + cluster.read('out').splitlines()[-1:] == ['run 0 train 1 1', 'run 1 train 1 1']
