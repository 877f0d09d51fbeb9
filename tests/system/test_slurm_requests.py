# SPDX-License-Identifier: MIT
"""What sbatch, srun and salloc refuse because it contradicts itself, and what a job that waits shows."""

import datetime
import os
import re

import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.mark.parametrize('options', [['--gres=gpu:2', '--gpus=1'], ['--gpus=3', '--gpus-per-task=2'], ['--gpus-per-node=2', '-G', '1']])
def test_numbers_of_gpus_that_contradict_each_other_are_refused(cluster, options):
    for command in (['sbatch', '--wrap', 'true'], ['srun', 'true'], ['salloc', 'true']):
        done = cluster.run(command[0], *options, *command[1:])
        assert done.code == 1 and done.out == '' and 'Invalid generic resource (gres) specification\n' in done.err, done
        assert re.search(r'error: Failed to (ensure|validate job spec,) --gpus ', done.err), done


def test_numbers_of_gpus_that_agree_are_taken(cluster):
    for options in (['--gres=gpu:2', '--gpus=2'], ['--gpus=2', '--gpus-per-task=1', '-n', '2'], ['--gpus=4', '--gpus-per-task=2']):
        assert cluster.box.job(cluster.wrap('true', '-H', *options))['gpus'] == int(options[0 if '=gpu' not in options[0] else 1][-1])


def test_one_kind_of_memory_is_requested(cluster):
    for command in (['sbatch', '--wrap', 'true'], ['srun', 'true'], ['salloc', 'true']):
        done = cluster.run(command[0], '--mem=1G', '--mem-per-cpu=1G', *command[1:])
        assert done.code == 1 and '--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.' in done.err, done
    script = cluster.script('#!/bin/sh\n#SBATCH --mem=3G\ntrue\n')
    assert cluster.box.job(cluster.submit('-H', '-c', '2', '--mem-per-cpu=512M', script))['memory'] == 1 << 30
    assert cluster.box.job(cluster.submit('-H', '--mem=1G', script, env={'SBATCH_MEM_PER_CPU': '2G'}))['memory'] == 1 << 30


def test_a_held_job_alone_has_no_priority(cluster):
    held, first, later = cluster.wrap('true', '-H'), *(cluster.wrap('true', '-b', 'now+1hour', *more) for more in ([], ['--nice=50']))
    shown = dict(line.split() for line in cluster.out('squeue', '-h', '-o', '%i %Q').splitlines())
    assert shown[str(held)] == '0' and int(shown[str(first)]) > int(shown[str(later)]) > 0, shown
    assert re.fullmatch(r'0\.9\d{13}\n', cluster.out('squeue', '-h', '-j', first, '-o', '%p'))
    assert f'Priority={shown[str(first)]} ' in cluster.out('scontrol', 'show', 'job', first)


def test_one_element_of_a_waiting_array_is_shown_alone(cluster):
    job = cluster.wrap('true', '-b', 'now+1hour', '-a', '1-3', '-o', 'x-%A_%2a.out')
    other = cluster.wrap('true', '-b', 'now+1hour', '-a', '1-3')
    assert cluster.out('squeue', '-h', '-o', '%i', '-j', f'{job}_2') == f'{job}_2\n'
    assert cluster.out('squeue', '-h', '-o', '%i', '-j', f'{job}_[1,3],{other}').split() == [f'{job}_1', f'{job}_3', f'{other}_[1-3]']
    shown = cluster.out('scontrol', 'show', 'job', f'{job}_2')
    assert f'ArrayJobId={job} ArrayTaskId=2 ' in shown and f'StdOut={cluster.place}/x-{job}_02.out\n' in shown, shown
    assert cluster.run('squeue', '-j', f'{job}_7').code == 1


def test_the_output_of_a_job_that_waits_has_its_path(cluster):
    job = cluster.wrap('true', '-H', '-J', 'name', '-o', 'out-%x-%4j%%.txt', '-e', '/tmp/%A.err')
    shown = cluster.out('scontrol', 'show', 'job', job)
    assert f'StdOut={cluster.place}/out-name-{job:04}%.txt\n' in shown and f'StdErr=/tmp/{job}.err\n' in shown, shown


@pytest.mark.parametrize(('line', 'code'), [('kill -9 $$', 1), ('kill -TERM $$', 1), ('exit 3', 3), ('true', 0)])
def test_a_script_that_a_signal_ends_is_a_failure_of_sbatch_wait(cluster, line, code):
    assert cluster.run('sbatch', '--wait', '-o', '/dev/null', '--wrap', line).code == code


@pytest.mark.parametrize('line', ['sbatch -v -n 2 -H --wrap true', 'srun -n2 -v true', 'salloc -vv --ntasks=2 true'])
def test_verbose_prints_the_options_of_the_command_line_and_of_variables(cluster, line):
    name = line.split()[0]
    done = cluster.shell(line, env={'SBATCH_ACCOUNT': 'of a variable'})
    lines = [text.removeprefix(f'{name}: ') for text in done.err.splitlines()]
    assert done.code == 0 and lines[:2] == ['defined options', '-------------------- --------------------'], done
    end = lines.index('end of defined options')
    assert lines[end - 1] == lines[1] and 'ntasks              : 2' in lines[2:end], done
    assert f'verbose             : {2 if "-vv" in line else 1}' in lines[2:end], done
    assert ('account             : of a variable' in lines[2:end]) == (name == 'sbatch'), done
    assert cluster.shell(line.replace(' -vv', '').replace(' -v', '')).err.count('defined') == 0


def test_job_0_cannot_be_cancelled(cluster):
    done = cluster.run('scancel', '0')
    assert (done.code, done.err) == (1, 'scancel: error: Invalid job id 0\n'), done


def test_a_script_on_several_nodes_writes_one_file(two, place):
    cluster = slurm.Slurm(two.box, place)
    job = cluster.wrap('srun true; echo done', '-N', 2, '-e', 'err')
    assert cluster.finish(job)['state'] == 'done'
    assert sorted(name for name in os.listdir(place) if name != 'bin') == ['err', f'slurm-{job}.out']


@pytest.mark.parametrize('lines, expected', [
    ('#PBS -l nodes=1:ppn=2,mem=1gb,walltime=5:00 -N nm', 'JobName=nm TimeLimit=00:05:00 NumTasks=2 MinMemoryNode=1G'),
    ('#PBS -l select=1:ncpus=2:mpiprocs=1 -l walltime=5', 'TimeLimit=00:05:00 NtasksPerN:B:S:C=1:0:*:*'),
    ('#BSUB -n 2,3 -W 5 -x -J nm -M4096', 'JobName=nm TimeLimit=00:05:00 NumTasks=3 OverSubscribe=NO MinMemoryCPU=4M'),
    ('#BSUB -J nm\n#PBS -N other', 'JobName=nm'),
    ('#SBATCH -J mine --ignore-pbs\n#PBS -N other', 'JobName=mine')])
def test_lines_of_other_schedulers_are_options_of_sbatch(cluster, lines, expected):
    job = cluster.submit('-H', cluster.script(f'#!/bin/bash\n{lines}\ntrue\n'))
    shown = cluster.out('scontrol', '-o', 'show', 'job', job).split(' ')
    assert set(expected.split()) <= set(shown), shown


@pytest.mark.parametrize('line, sentence', [
    ('#PBS -X', 'Unrecognized command line parameter ?'), ('#PBS word', 'Invalid argument: word'),
    ('#BSUB -n 2,', "#BSUB -n format not correct given: '2,'")])
def test_lines_of_other_schedulers_that_are_wrong_are_refused(cluster, line, sentence):
    done = cluster.run('sbatch', '-H', cluster.script(f'#!/bin/bash\n{line}\ntrue\n'))
    assert done.code != 0 and done.out == '' and f'sbatch: error: {sentence}\n' in done.err, done


@pytest.mark.parametrize('options, left_s', [(['-t', '10'], 600), (['-t', '10', '--time-min', '2'], 120), ([], 60)])
def test_a_job_starts_only_while_its_deadline_leaves_it_time(cluster, options, left_s):
    job = cluster.submit('-H', '-o', '/dev/null', '--deadline=2036-01-02T03:04:05', *options, '--wrap', 'true', env={'TZ': 'UTC'})
    latest = datetime.datetime(2036, 1, 2, 3, 4, 5) - datetime.timedelta(seconds=left_s)
    assert cluster.box.job(job)['deadline'].startswith(latest.isoformat()), cluster.box.job(job)['deadline']
    assert 'Deadline=2036-01-02T03:04:05 ' in cluster.out('scontrol', '-o', 'show', 'job', job, env={'TZ': 'UTC'})
