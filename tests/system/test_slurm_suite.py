# SPDX-License-Identifier: MIT
"""What Slurm's own test programs look for in the output of its commands, each as a line and expressions.

The programs themselves need expect and the whole of Slurm; slurm_judge/suite.rows compares the same lines with Slurm.
"""

import os
import re
import signal
import subprocess

import pytest
import slurm

# A line, the number of times that each expression is found in what it prints. JOB is that of a held job.
LINES = [
    ('sacct --help', {r'sacct...OPTION': 1, r'Valid..OPTION..values are:': 1, '--duplicates': 1}),
    ('scontrol help', {'Valid <COMMAND> values are:': 1, 'reconfigure  ': 1, 'version      ': 1}),
    ('sinfo --usage', {r'Usage: (.*\n)*.*partition': 1}),
    ('squeue --usage', {r'Usage: (.*\n)*.*usage': 1}),
    ('srun --usage', {r'Usage: srun (.*\n)* +executable ': 1}),
    ('sbatch --help', {'^Usage:': 1, '^Constraint options:': 1, '^GPU scheduling options:': 1}),
    ('srun --help', {'^Parallel run options:': 1, '^Constraint options:': 1}),
    ('salloc --help', {'^Parallel run options:': 1, '^Consumable resources related options:': 1}),
    ('sshare --help', {'Usage: sshare .OPTION': 1, 'Valid OPTIONs are': 1, 'verbose *display more information': 1}),
    ('sstat --help', {'sstat...OPTION': 1, 'Valid <OPTION>': 1}),
    ('scontrol show config', {'^SlurmctldPort': 1, '^SlurmdPort': 1, '^SLURM_CONF': 1, '^OverTimeLimit +=': 1,
                              r'^JobAcctGatherType +=.jobacct_gather/cgroup': 1, r'^SelectTypeParameters +=.CR_CORE_MEMORY': 1}),
    ('scontrol show daemons', {'slurmctld': 1}),
    ('srun -v -t1 true 2>&1', {r'jobid \d+: nodes\(1\):`\S+\', cpu counts: 1\(x1\)': 1, r'launching StepId=\d+\.0 on host \S+, 1 tasks: 0': 1,
                               'time                : 00:01:00': 1, 'defined options': 2}),
    ('srun -v -n2 -O true 2>&1', {r'launching StepId=\d+\.0 on host \S+, 2 tasks: \[0-1\]': 1}),
    ('SBATCH_DEBUG=4 SBATCH_ACCOUNT=dummy SBATCH_TIMELIMIT=3 sbatch -H -o /dev/null --wrap true 2>&1',
     {'account *: dummy': 1, 'time *: 00:03:00': 1, 'verbose *: 4': 1}),
    ('SLURM_DEBUG=0 srun true 2>&1', {'defined options': 0}),
    ('SLURM_NPROCS=3 srun -O bash -c "echo task"', {'task': 3}),
    ('srun -O -n6 -W1 bash -c "[ \\$SLURM_PROCID == 1 ] || sleep 100" 2>&1',
     {'First task exited 1s ago': 1, r'StepId=\d+\.0 tasks 0,2-5: running': 1, 'task 1: exited': 1}),
    ('srun --export=TEST_ENV=123 /usr/bin/env', {'TEST_ENV=': 1}),
    ('sbatch -N1000000k --wrap true 2>&1', {'More processors requested than permitted': 1}),
    ('sbatch --test-only -N650000 -N1 --wrap true 2>&1', {'to start at': 1}),
    ('srun --constraint=invalid,constraint true 2>&1', {'error:.*Invalid feature specification': 1}),
    ('scancel -v JOB; scancel -v JOB 2>&1', {'error: .*already completing or completed': 1}),
    ('scancel JOB; yes | scancel -i JOB 2>&1', {r'Kill job error.* JOB': 1, r'y/n': 0}),
    ('scancel --name=INVALID --qos=none --verbose 2>&1', {'No active jobs match ALL job filters, including: job_name=INVALID qos=none': 1}),
    ('scontrol listpids JOB.10 nodename 2>&1', {r'StepId=JOB\.10 does not exist on node nodename\.': 1}),
]


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def test_slurms_test_programs_find_what_they_look_for(cluster):
    wrong = []
    for line, expected in LINES:
        job = cluster.wrap('true', '-H', '-o', '/dev/null') if 'JOB' in line else 0
        done = cluster.shell(line.replace('JOB', str(job)))
        for expression, count in expected.items():
            found = len(re.findall(expression.replace('JOB', str(job)), done.out, re.MULTILINE))
            if found != count:
                wrong.append(f'{line}: {expression!r} {found} times, not {count}, in {done.out[-800:]!r}')
    assert not wrong, '\n'.join(wrong)


def test_a_process_of_a_job_is_told_its_end(cluster):
    cluster.out('sbatch', '-W', '-t1', '-o', 'out', '--wrap', 'scontrol pidinfo $$')
    found = re.fullmatch(r'Slurm JobId=(\d+) ends at .*\nJob remaining time is (\d+) seconds\n', cluster.read('out'))
    assert found and 30 <= int(found[2]) <= 60, cluster.read('out')


def test_requests_that_have_no_effect_are_shown_with_the_job(cluster):
    def shown(*options):
        job = cluster.wrap('true', '-H', *options)
        return re.findall(r'(?:MinTmpDiskNode|OverSubscribe|Contiguous)=(\S*)', cluster.out('scontrol', 'show', 'job', job))
    assert shown() == ['0', 'OK', '0']
    assert shown('--tmp=2', '--contiguous', '--oversubscribe') == ['2M', 'YES', '1']
    assert shown('--tmp=3G', '--exclusive') == ['3G', 'NO', '0']


@pytest.mark.parametrize('number', ['USR1', 'USR2', 'ALRM'])
def test_signals_for_srun_reach_its_tasks(cluster, bell, number):
    line = f'trap "echo got {number} > {bell.path}; exit 0" {number}; echo ready > {bell.path}; while :; do sleep 0.1; done'
    srun = subprocess.Popen(['srun', 'bash', '-c', line], cwd=cluster.place, env=cluster.environment(), stdin=subprocess.DEVNULL,
                            **cluster.box.client.popen_arguments())
    assert bell.wait() == 'ready'
    os.kill(srun.pid, getattr(signal, f'SIG{number}'))
    assert bell.wait() == f'got {number}'
    assert srun.wait(30) == 0


@pytest.mark.parametrize('word, end', [('', ''), ('--time=0:01', ' DUE TO TIME LIMIT')], ids=['cancelled', 'late'])
def test_a_step_says_why_it_ends_before_its_tasks(cluster, bell, word, end):
    job = cluster.wrap(f'srun bash -c "echo ready > {bell.path}; sleep 100"', '-o', 'out', *word.split())
    assert bell.wait() == 'ready'
    if not word:
        cluster.out('scancel', job)
    cluster.finish(job)
    out = cluster.read('out')
    assert re.search(rf'srun: Job step aborted: Waiting up to \d+ seconds for job step to finish\.\nslurmstepd: error: '
                     rf'\*\*\* STEP {job}\.0 ON \S+ CANCELLED AT \S+{end} \*\*\*\n', out), out


def test_a_step_knows_all_nodes_of_its_job_and_refuses_contradictions(cluster):
    node = cluster.box.job(cluster.finish(cluster.wrap('true'))['id'])['node']
    out = cluster.shell(f'salloc -Q srun -w {node} -x {node} true 2>&1; salloc -Q srun -N2 true 2>&1').out
    assert f'srun: error: Requested node {node} is also in the excluded list.' in out and 'Only allocated 1 nodes asked for 2' in out, out


def test_salloc_that_is_interrupted_while_it_waits_gives_the_job_up(cluster):
    salloc = subprocess.Popen(['salloc', '-b', 'now+1hour', 'true'], cwd=cluster.place, env=cluster.environment(), stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, **cluster.box.client.popen_arguments())
    said = [salloc.stderr.readline() for _ in range(2)]
    job = int(re.search(r'job (\d+) queued and waiting', said[1])[1])
    salloc.send_signal(signal.SIGINT)
    assert f'salloc: Job allocation {job} has been revoked.\n' in salloc.stderr.read()
    assert salloc.wait(30) != 0 and cluster.finish(job)['state'] == 'cancelled'
