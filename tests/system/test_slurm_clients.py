# SPDX-License-Identifier: MIT
"""What clients of Slurm call and how they read the answers: their command lines, and their own expressions."""

import re

import pytest
import slurm

SCRIPT = '#!/bin/bash\n#SBATCH --job-name=one\necho hello\n'


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.fixture
def waiting(cluster, gate):
    """A job that runs until the gate opens."""
    return cluster.wrap(gate.command()[2])


@pytest.mark.smoke
def test_a_script_is_submitted_and_its_number_is_read(cluster):
    out = cluster.out('sbatch', cluster.script(SCRIPT))
    expressions = {'submitit': r'job (?P<id>[0-9]+)', 'parsl': r'Submitted batch job (?P<id>\S*)',
                   'nextflow': r'Submitted batch job (?P<id>\d+)', 'aiida': r'Submitted batch job (?P<id>\d+)',
                   'cylc': r'\ASubmitted\sbatch\sjob\s(?P<id>\d+)', 'fireworks': r'Submitted batch job\s+(?P<id>\d+)',
                   'dask': r'(?P<id>\d+)'}
    ids = {re.search(expression, out)['id'] for expression in expressions.values()}
    assert len(ids) == 1 and out.split()[-1] in ids, out
    job = cluster.finish(int(ids.pop()))
    assert (job['state'], job['name']) == ('done', 'one')


def test_submitit_finds_the_state_of_array_elements(cluster, gate):
    array = cluster.wrap(gate.command()[2], '--array=0-3%1', '--signal=USR2@90', '--open-mode=append',
                         '--output=%A_%a_0_log.out', '--error=%A_%a_0_log.err')
    cluster.box.wait(f'{array}.0', 'running')
    out = cluster.out('sacct', '-o', 'JobID,State,NodeList', '--parsable2', '-j', str(array))
    lines = [line.split('|') for line in out.splitlines()[1:] if '.' not in line.split('|')[0]]
    found = {}
    for name, state, _ in lines:
        match = re.match(r'^(\d+)_(?:(\d+)|\[([0-9,\-]+)(?:%\d+)?\])$', name)
        assert match, name
        found[match[2] or match[3]] = state
    assert found == {'0': 'RUNNING', '1-3': 'PENDING'}
    gate.open(4)


def test_snakemake_reads_the_state_by_raw_number(cluster, waiting):
    cluster.box.wait(waiting, 'running')
    out = cluster.out('sacct', '-P', '-n', '--format=JobIdRaw,State', '-j', waiting)
    states = dict(line.split('|') for line in out.splitlines())
    assert states[str(waiting)] == 'RUNNING'
    out = cluster.out('scontrol', '-o', 'show', 'job', waiting)
    assert re.search(r'JobState=(\w+)', out)[1] == 'RUNNING' and len(out.splitlines()) == 1
    assert cluster.out('sinfo', '-o', '%P').splitlines()[1] == 'gpu*'


def test_snakemakes_plugin_asks_for_jobs_by_their_name(cluster):
    name = '0b5fcf4e-1d5c-4b21-9ea7-2f1f1fbe0b2d'
    job = cluster.wrap('exit 3', '--job-name', name, '--export=ALL', '--comment', 'rule x', '--mem', '100',
                       '--ntasks=1', '--cpus-per-task=1', '-A', 'lab', '-p', 'gpu', '-t', '5', '--no-requeue')
    cluster.finish(job)
    out = cluster.out('sacct', '-X', '--parsable2', '--clusters', 'all', '--noheader', '--format=JobIdRaw,State',
                      '--starttime', '2026-01-01T00:00', '--endtime', 'now', '--name', name)
    assert out.splitlines() == [f'{job}|FAILED']
    assert f'{job}|FAILED' in cluster.out('squeue', '--format=%i|%T', '--states=all', '--noheader', '--name', name)
    config = cluster.out('scontrol', 'show', 'config')
    assert re.search(r'MinJobAge\s+=\s+(\d+)', config)[1] == '300'
    assert cluster.out('sacct', '-P', '-b', '-j', job, '-n').splitlines()[0] == f'{job}|FAILED|3:0'


def test_nextflow_reads_two_columns(cluster, waiting):
    cluster.box.wait(waiting, 'running')
    out = cluster.out('squeue', '--noheader', '-o', '%i %t', '-t', 'all', '-p', 'gpu', '-u', cluster.box.client.name)
    rows = [line.split() for line in out.splitlines()]
    assert all(len(row) == 2 for row in rows) and [str(waiting), 'R'] in rows


def test_parsl_sees_a_job_as_soon_as_sbatch_returns(cluster, waiting):
    other = cluster.wrap('true', '--hold')
    assert cluster.run('sacct', '-X').code == 0
    out = cluster.out('sacct', '-X', '--noheader', '--format=jobid,state%20', '--job', f'{waiting},{other}')
    states = dict(line.split() for line in out.splitlines())
    assert states[str(other)] == 'PENDING' and str(waiting) in states
    cluster.box.wait(waiting, 'running')
    out = cluster.out('squeue', '--noheader', '--format=%i %t', '--job', f'{waiting},{other}')
    assert dict(line.split() for line in out.splitlines()) == {str(waiting): 'R', str(other): 'PD'}
    assert cluster.out('scancel', waiting, other) == ''


def test_psij_reads_three_words_a_line(cluster, waiting):
    cluster.wrap('true', '--hold')
    out = cluster.out('squeue', '-O', 'JobArrayID,StateCompact,Reason', '-t', 'all', '--me')
    rows = [line.split() for line in out.splitlines()[1:]]
    assert rows and all(len(row) == 3 for row in rows), out
    assert ['PD', 'JobHeldUser'] in [row[1:] for row in rows]
    assert str(waiting) in cluster.out('squeue', '--me', '-o', '%i', '-h', '-r', '-t', 'all').split()
    assert cluster.out('scancel', '-Q', waiting) == ''


def test_aiida_reads_its_fourteen_fields(cluster, waiting):
    cluster.box.wait(waiting, 'running')
    fields = '^^^'.join(['%i', '%t', '%r', '%B', '%u', '%D', '%C', '%R', '%P', '%l', '%M', '%S', '%j', '%V'])
    out = cluster.out('squeue', '--noheader', '-o', fields, f'--jobs={waiting},{waiting}')
    values = out.strip().split('^^^')
    assert len(values) == 14 and values[:2] == [str(waiting), 'R'] and values[9] == 'UNLIMITED'
    assert re.fullmatch(r'(\d+-)?(\d+:)?\d+:\d+', values[10])
    assert all(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d', values[i]) for i in (11, 13))
    names = cluster.out('sacct', '--helpformat').split()
    assert {'JobID', 'State', 'ExitCode', 'MaxRSS'} <= set(names)
    out = cluster.out('sacct', '--format=' + ','.join(names), '--parsable', f'--jobs={waiting}')
    header, row = (line.split('|') for line in out.splitlines()[:2])
    assert len(header) == len(row) == len(names) + 1


def test_an_unknown_job_fails_alone_and_is_left_out_of_several(cluster):
    done = cluster.run('squeue', '-h', '-j', 4711000)
    assert (done.code, done.out) == (1, '') and done.err == 'slurm_load_jobs error: Invalid job id specified\n'
    assert cluster.out('squeue', '-h', '-j', '4711000,4711001') == ''
    assert cluster.out('scancel', 4711000) == ''
    done = cluster.run('scontrol', 'show', 'job', 4711000)
    assert done.code == 1 and 'slurm_load_jobs error: Invalid job id specified' in done.err


def test_batchspawner_learns_the_host_and_that_nobody_answers(cluster, waiting):
    cluster.box.wait(waiting, 'running')
    state, host = cluster.out('squeue', '-h', '-j', waiting, '-o', '%T %B').split()
    assert state == 'RUNNING' and host == cluster.box.job(waiting)['node']
    away = {'MGPU_SOCKET': f'{cluster.place}/nobody.sock'}
    done = cluster.run('squeue', '-h', '-j', waiting, '-o', '%T %B', env=away)
    assert done.code == 1 and 'slurm_load_jobs error: Unable to contact slurm controller' in done.err
    done = cluster.run('sbatch', '--wrap', 'true', env=away)
    assert done.code == 1 and done.out == '' and done.err.startswith('sbatch: error: ')


def test_cylc_finds_the_number_at_the_beginning_of_a_line(cluster, waiting):
    out = cluster.out('squeue', '-h', '-j', waiting)
    assert re.match(r'^ *(\d+)', out)[1] == str(waiting)


def test_radical_reads_what_scontrol_shows(cluster, waiting):
    cluster.box.wait(waiting, 'running')
    out = cluster.out('scontrol', 'show', 'job', waiting)
    for key in ('JobState', 'JobName', 'StartTime', 'EndTime', 'RunTime', 'NodeList'):
        assert re.search(rf'\b{key}=\S+', out), key
    assert re.search(r'CPUTot=(\d+)', cluster.out('scontrol', 'show', 'nodes'))
    assert re.fullmatch(r'slurm \d+\.\d+\.\d+', cluster.out('scontrol', '--version').strip())
    assert cluster.out('scontrol', 'suspend', waiting) == ''
    assert cluster.out('squeue', '-h', '-j', waiting, '-o', '%t') == 'S\n'
    assert cluster.out('scontrol', 'resume', waiting) == ''


def test_fireworks_counts_the_lines_of_a_user(cluster, waiting):
    out = cluster.out('squeue', '-o', '%u', '-u', cluster.box.client.name, '-h', '-p', 'gpu')
    assert out.splitlines() == [cluster.box.client.name]


@pytest.mark.parametrize('words, sentence', [
    (('-p', 'nosuch', '--wrap', 'true'), 'nvalid partition'),
    (('--nosuch', '--wrap', 'true'), "unrecognized option '--nosuch'"),
    (('--array=9-1', '--wrap', 'true'), 'Invalid job array specification'),
    (('--time=abc', '--wrap', 'true'), '--time'),
    (('--gres=gpu:9999', '--wrap', 'true'), 'gres'),
    (('--gpus=900', '--wrap', 'true'), 'Batch job submission failed'),
    (('--constraint=a100&nvme', '--gpus=1', '--wrap', 'true'), 'features are GPU models'),
    (('--constraint=a100', '--wrap', 'true'), 'is not supported without GPUs'),
    (('--licenses=matlab:1', '--wrap', 'true'), 'Invalid license specification'),
    (('-M', 'other', '--wrap', 'true'), "No cluster 'other' known by database."),
    (('-N', '2', '-m', 'arbitrary', '--wrap', 'true'), 'With Arbitrary distribution you need to specify a nodelist'),
    (('--gpus-per-socket=1', '--wrap', 'true'), '--gpus-per-socket option requires --sockets-per-node'),
    (('--kill-on-invalid-dep=maybe', '--wrap', 'true'), 'Invalid --kill-on-invalid-dep specification'),
    (('--export-file=nosuch', '--wrap', 'true'), '--export-file: cannot read nosuch'),
    (('--dependency=afterok:x', '--wrap', 'true'), 'dependency'),
    (('nosuch.sh',), 'Unable to open file nosuch.sh'),
], ids=lambda value: '-'.join(value) if isinstance(value, tuple) else None)
def test_a_bad_request_is_refused_and_leaves_no_job(cluster, words, sentence):
    before = len(cluster.box.api('GET', '/jobs?all=1').json['jobs'])
    done = cluster.run('sbatch', *words)
    code = 255 if re.search('unrecognized option|Invalid --[a-z-]+ specification', done.err) else 1  # as Slurm's
    assert (done.code, done.out) == (code, '') and sentence in done.err and 'sbatch: ' in done.err, done
    assert len(cluster.box.api('GET', '/jobs?all=1').json['jobs']) == before


@pytest.mark.parametrize('text, sentence', [
    ('', 'Batch script is empty!'),
    (' \n\n', 'Batch script contains only whitespace!'),
    ('echo hello\n', 'This does not look like a batch script.'),
    ('#!/bin/sh\r\necho\r\n', 'Batch script contains DOS line breaks'),
    ('#!/bin/sh\necho \0\n', 'NULL character'),
    ('#!/bin/sh\n' + 'x' * (10 << 20), 'the script has more than'),
], ids=['empty', 'blank', 'no-interpreter', 'dos', 'nul', 'long'])
def test_a_script_that_cannot_run_is_refused_in_slurms_words(cluster, text, sentence):
    by_file = cluster.run('sbatch', cluster.script(text))
    by_input = cluster.run('sbatch', input=text)
    for done in (by_file, by_input):
        assert (done.code, done.out) == (1, '') and sentence in done.err, done.err[-500:]


def test_submitit_signals_requeues_and_asks_for_several_jobs(cluster, bell):
    line = f'trap "echo TERM > {bell.path}" TERM; trap "echo USR2 > {bell.path}; exit 0" USR2; echo ready > {bell.path}; while :; do sleep 0.1; done'
    jobs = [int(re.search(r'job (?P<id>[0-9]+)', cluster.out('sbatch', '--signal=USR2@90', '--open-mode=append', '--wrap', words))['id'])
            for words in (f"srun sh -c '{line}'", 'true')]  # scancel signals steps, not the script
    assert bell.wait() == 'ready'
    out = cluster.out('sacct', '-o', 'JobID,State,NodeList', '--parsable2', '-j', jobs[0], '-j', jobs[1])
    found = dict(row.split('|')[:2] for row in out.splitlines()[1:] if '.' not in row.split('|')[0])
    assert found.keys() == {str(job) for job in jobs} and found[str(jobs[0])] == 'RUNNING'
    assert cluster.out('scancel', jobs[0], '--signal', 'SIGTERM') == '' and bell.wait() == 'TERM'
    assert cluster.out('scontrol', 'requeue', jobs[0]) == ''
    assert bell.wait() in ('TERM', 'ready')
    cluster.out('scancel', *jobs)


def test_lightning_requeues_an_element_from_inside(cluster, bell):
    line = (f'echo ${{SLURM_RESTART_COUNT:-0}} $SLURM_JOB_NAME > {bell.path}; [ -n "$SLURM_RESTART_COUNT" ] && exit 0; '
            'scontrol requeue ${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}; sleep 60')
    array = cluster.submit('--array=3', '--requeue', '-J', 'train', '--signal=SIGUSR1@90', '--wrap', line)
    assert (bell.wait(), bell.wait()) == ('0 train', '1 train')
    assert cluster.finish(f'{array}.3')['state'] == 'done'
    assert cluster.out('sacct', '-j', f'{array}_3', '-n', '-X', '-o', 'nodelist%-256').strip() == cluster.box.job(f'{array}.3')['node']


def test_launchers_and_head_nodes_are_found_as_in_slurm(cluster):
    text = ('which srun sinfo > /dev/null && echo found\n'
            'head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1); scontrol show hostname | grep -qx $head && echo $head\n'
            'srun --nodes=1 --ntasks=1 -w $head hostname > host && cmp -s host <(hostname) && echo same\n'
            'srun --ntasks 2 -l bash <<< "echo parsl"\nsrun -n 2 --comment deepspeed --unbuffered --output task_%t_log.out echo $SLURM_NTASKS\n')
    out = cluster.out('sbatch', '--parsable', '--get-user-env=L', '--export=PATH', '-n', 2, '-o', 'out', input=f'#!/bin/bash\n{text}')
    job = int(out.splitlines()[-1].split(';')[0])
    assert cluster.finish(job)['state'] == 'done'
    lines = cluster.read('out').splitlines()
    assert lines[:3] == ['found', cluster.box.job(job)['node'], 'same'] and sorted(lines[3:]) == ['0: parsl', '1: parsl'], lines
    assert cluster.read('task_1_log.out') == '2\n'
    out = cluster.out('sacct', '--format=JobID,State', '--parsable2', '--noheader', f'--jobs={job}')
    assert out.splitlines()[0] == f'{job}|COMPLETED'
    assert str(job) not in cluster.out('squeue', '-h', '-o', '%i', '-u', cluster.box.client.name).split()
