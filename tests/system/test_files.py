# SPDX-License-Identifier: MIT
"""submit from files: scripts with option lines, job files, lists of commands, sweeps; and the job's environment."""

import json
import os
import subprocess

import pytest

import slurm

GPUS = 'sim:8x24G'


@pytest.fixture
def box(shared_box):
    yield shared_box
    shared_box.cancel_all()


def write(place, name, text, mode=0o644):
    path = f'{place}/{name}'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)
    os.chmod(path, mode)
    return path


def submit(box, place, *arguments, **options):
    """The ids that are printed, one a line."""
    done = box.mgpu('submit', *arguments, cwd=place, check=True, **options)
    return [int(line) for line in done.out.split()], done


def refuse(box, place, *arguments, code=2, **options):
    """What is said about a submission that is refused; nothing is left of it."""
    before = box.api('GET', '/jobs?state=queued,starting,running').json['jobs']
    done = box.mgpu('submit', *arguments, cwd=place, **options)
    assert done.code == code and done.out == '', done
    assert box.api('GET', '/jobs?state=queued,starting,running').json['jobs'] == before
    return done.err


def ended(box, ids):
    """The outputs of the jobs, all of which must succeed."""
    outputs = []
    for job in ids:
        assert box.wait(job)['state'] == 'done', (box.job(job), box.output(job))
        outputs.append(box.output(job))
    return outputs


# --- scripts ---

def test_the_lines_of_a_script_are_options_and_the_command_line_wins(box, place):
    write(place, 'train.sh', '#!/bin/sh\n# train\n\n#MGPU -g 2 -J "my train"  # two\n#MGPU --time 4h -e A=script -e B=script\n'
                             'echo $A $B $1 $MGPU_NUM_GPUS\n#MGPU -g 7\n', 0o755)
    ids, done = submit(box, place, '-g', '3', '-e', 'A=line', 'train.sh', 'word')
    job = box.job(ids[0])
    assert (job['name'], job['gpus'], job['time_limit_s']) == ('my train', 3, 4 * 3600), job
    assert ended(box, ids) == ['line script word 3\n']
    assert 'train.sh:7: this line has no effect' in done.err


@pytest.mark.parametrize(('text', 'mode', 'words'), [
    ('#MGPU -g 0\necho ran $0\n', 0o644, ['/bin/sh', './job']),
    ('#!/bin/sh -e\n#MGPU -g 0\necho ran $0\n', 0o644, ['/bin/sh', '-e', './job']),
    ('#!/usr/bin/env sh\necho ran $0\n', 0o644, ['/usr/bin/env', 'sh', './job']),
    ('#!/bin/sh\r\n#MGPU -g 0\r\necho ran $0 # \r\n', 0o644, ['/bin/sh', './job']),
    ('#!/bin/sh\necho ran $0\n', 0o755, ['./job']),
])
def test_what_runs_a_script(box, place, text, mode, words):
    write(place, 'job', text, mode)
    ids, _ = submit(box, place, '--in-place', 'job')
    assert (box.job(ids[0])['argv'], box.job(ids[0])['name']) == (words, 'job')
    assert ended(box, ids)[0].startswith('ran ./job')


def test_a_script_is_found_from_another_directory(box, place):
    write(place, 'job.sh', '#MGPU -g 0 -C /\npwd\n')
    ids, _ = submit(box, place, '--in-place', 'job.sh')
    assert box.job(ids[0])['argv'] == ['/bin/sh', os.path.realpath(f'{place}/job.sh')]
    assert ended(box, ids) == ['/\n']


def test_a_program_in_path_is_not_a_script_of_that_name(box, place):
    write(place, 'echo', '#!/bin/sh\nfalse\n', 0o755)
    write(place, 'data', 'no script\n')
    ids, _ = submit(box, place, '-g', '0', 'echo', 'data')
    assert ended(box, ids) == ['data\n']
    assert box.wait(submit(box, place, '-g', '0', './data')[0][0])['state'] == 'failed'


@pytest.mark.parametrize(('line', 'where', 'what'), [
    ('#MGPU -g two', 'job.sh:2', "'two' is not a number of GPUs"),
    ('#MGPU --gpsu 2', 'job.sh:2', "Did you mean '--gpus'?"),
    ('#MGPU -g', 'job.sh:2', 'needs a value'),
    ('#MGPU -J "x', 'job.sh:2', 'a quote is not closed'),
    ('#MGPU python train.py', 'job.sh:2', "'python' is not an option"),
    ('#MGPU --file x', 'job.sh:2', '--file is only allowed on the command line'),
    ('#SBATCH --gres=fpga:1', 'job.sh:2', '--gres'),
    ('#SBATCH --time=soon', 'job.sh:2', '--time'),
    ('#SBATCH --nosuch=1', 'job.sh:2', "'--nosuch=1' is not an option of sbatch"),
    ('#SBATCH --constraint=a100', 'job.sh', '--constraint=a100 is not supported without GPUs'),
    ('#SBATCH -J', 'job.sh:2', '-J needs a value'),
    ('#SBATCH train.py', 'job.sh:2', 'is not an option'),
])
def test_a_wrong_line_of_a_script(box, place, line, where, what):
    write(place, 'job.sh', f'#!/bin/sh\n{line}\ntrue\n', 0o755)
    said = refuse(box, place, './job.sh')
    assert where in said and what in said, said


def test_lines_for_slurm(box, place):
    first = box.submit('-g', '0', 'true')
    write(place, 'slurm.sh', '#!/bin/bash\n#SBATCH --job-name=train --gres=gpu:2\n#SBATCH -t 30\n#SBATCH --output=%x-%j.out\n'
                             f'#SBATCH --dependency=afterok:{first}\n#SBATCH --partition=gpu -A lab\n#SBATCH --ntasks=1\n'
                             '#SBATCH -c 1 --mem=100 --requeue\n#SBATCH --licenses none:0\necho $MGPU_NUM_GPUS\n')
    ids, done = submit(box, place, 'slurm.sh')
    job = box.job(ids[0])
    assert (job['name'], job['gpus'], job['time_limit_s']) == ('train', 2, 1800), job
    assert job['memory'] == 100 << 20 and job['requeue_on_node_lost'], job
    assert done.err.count('\n') == 1, done
    assert 'ignored, not supported: --account (line 6)' in done.err and 'licenses' not in done.err


def test_submit_and_sbatch_make_the_same_request_of_a_script(box, place):
    os.mkdir(f'{place}/bin')
    commands = slurm.Slurm(box, f'{place}/bin')
    write(place, 'same.sh', '#!/bin/bash\n#SBATCH -H -J same -n 2 -c 1 --gpus-per-task=1 --mem-per-cpu=100M -t 1-2\n'
                            '#SBATCH --signal=USR1@30 --nice=7 --deadline=now+2days -p gpu --requeue --mail-type=FAIL\ntrue\n')
    ids, done = submit(box, place, 'same.sh')
    assert done.err == '', done
    names = ('name', 'gpus', 'cpus', 'memory', 'time_limit', 'warn_signal', 'priority', 'partition', 'requeue_on_node_lost',
             'notify', 'notify_on', 'hold', 'nodes')
    ours, theirs = box.job(ids[0]), box.job(commands.submit(f'{place}/same.sh'))
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
    assert ours['gpus'] == 2 and ours['cpus'] == 2, ours


def test_what_a_script_for_slurm_would_do_differently_is_told(box, place):
    write(place, 'slurm.sh', '#!/bin/bash\n#SBATCH --error=err.txt --ntasks=4\nSLURM_TMP=1\n'
                             'echo $SLURM_ARRAY_TASK_ID ${SLURM_JOB_ID} $SLURM_JOB_ID $SLURM_LOCALID $SLURM_TMP\n')
    _, done = submit(box, place, '--hold', '--mem=4G', 'slurm.sh')
    assert done.err.splitlines() == [
        'mgpu: slurm.sh uses variables of Slurm, which are not set here: SLURM_ARRAY_TASK_ID (use MGPU_ARRAY_INDEX), '
        'SLURM_JOB_ID (use MGPU_JOB_ID), SLURM_LOCALID',
        'mgpu: slurm.sh requests no GPU and gets one, the default here; #SBATCH --gpus=0 for none',
        'mgpu: --mem is memory on each GPU, which can then be shared (-m); host memory is -M'], done
    _, done = submit(box, place, '--hold', '-q', '--mem=4G', 'slurm.sh')
    assert done.err == '', done
    write(place, 'none.sh', '#!/bin/bash\n#SBATCH --gres=gpu:0\ntrue\n')
    ids, done = submit(box, place, '--hold', 'none.sh')
    assert box.job(ids[0])['gpus'] == 0 and done.err == '', done


# --- lists of commands ---

def test_a_job_for_each_line(box, place):
    write(place, 'jobs', '# a comment\necho one\n\n  echo "two  words" | cat # why\necho three\r\n')
    ids, _ = submit(box, place, '-g', '0', '--file', 'jobs')
    assert ended(box, ids) == ['one\n', 'two  words\n', 'three\n']
    ids, _ = submit(box, place, '-g', '0', '--file', '-', input=b'echo in\necho put')
    assert ended(box, ids) == ['in\n', 'put\n']


@pytest.mark.parametrize(('text', 'what'), [
    ('echo one\necho "two\n', 'jobs:2: a quote is not closed'),
    ('# nothing\n', 'jobs contains no command'),
    ('echo one\necho \0\n', 'jobs is not text'),
    ('echo one\necho ' + 'x' * (256 << 10) + '\n', 'jobs:2: the command has'),
])
def test_nothing_is_submitted_when_a_line_is_bad(box, place, text, what):
    write(place, 'jobs', text)
    assert what in refuse(box, place, '-g', '0', '--file', 'jobs')


def test_a_list_that_is_not_there_or_not_alone(box, place):
    assert 'cannot read none: No such file' in refuse(box, place, '--file', 'none', code=3)
    assert "unexpected 'true'" in refuse(box, place, '--file', 'none', 'true')


def test_a_line_that_is_refused_takes_those_before_it_back(box, place):
    write(place, 'jobs', 'true\ntrue\ntrue\n')
    # Held, so that the first is still there to be cancelled; no element is refused but by its name.
    done = box.mgpu('submit', '--hold', '-g', '0', '--sweep', 'x=1,2', '-J', 'n\x01{x}', '--file', 'jobs', cwd=place)
    assert done.code != 0 and 'jobs:1: ' in done.err and 'control character' in done.err, done
    assert not box.open_jobs()


# --- sweeps ---

def test_a_sweep_is_the_product_of_its_values(box, place):
    ids, _ = submit(box, place, '-g', '0', '--sweep', 'lr=0.1,0.01', '--sweep', 'seed=1-2', '--', 'sh', '-c',
                    'echo $lr {lr} $seed {other}')
    assert ended(box, ids) == ['0.1 0.1 1 {other}\n', '0.1 0.1 2 {other}\n', '0.01 0.01 1 {other}\n', '0.01 0.01 2 {other}\n']
    assert [box.job(job)['name'] for job in ids] == [f'sh-lr={lr}-seed={seed}' for lr in ('0.1', '0.01') for seed in (1, 2)]


def test_a_sweep_names_its_outputs(box, place, someone):
    os.chmod(place, 0o777)
    ids, _ = submit(box, place, '-g', '0', '--sweep', 'x=a/b', '-J', 'run {x}', '-o', 'out-{x}', 'echo {x}')
    assert box.wait(ids[0])['name'] == 'run a/b'
    with open(f'{place}/out-a_b', encoding='utf-8') as source:
        assert source.read() == 'a/b\n'


def test_a_dry_run_lists_the_jobs(box, place):
    done = box.mgpu('submit', '--dry-run', '--sweep', 'x=1-2', 'echo', '{x}', check=True)
    assert done.out == 'echo-x=1  echo 1\necho-x=2  echo 2\n'
    rows = [json.loads(line) for line in
            box.mgpu('submit', '--json', '--dry-run', '--sweep', 'x=1-2', 'echo', '{x}', check=True).out.splitlines()]
    assert [row['command'] for row in rows] == [['echo', '1'], ['echo', '2']] and 'env' not in rows[0]
    assert not box.open_jobs()


# --- job files ---

PIPELINE = '''\
name: train
command: [sh, -c, 'echo "$A $B"']
num_gpus: 2
time_limit: 2h
env: &env { A: one, B: 2 }
---
# needs one that stands behind it
name: report
needs: { test: ok, train: any }
command: echo report
gpus: 0
---
name: test
needs: [train]
command: echo test | cat
gpus: 0
hold: false
'''


def test_the_documents_of_a_file_are_a_pipeline(box, place):
    write(place, 'job.yaml', PIPELINE)
    ids, _ = submit(box, place, 'job.yaml')
    assert [box.job(job)['name'] for job in ids] == ['train', 'test', 'report']
    job = box.job(ids[0])
    assert (job['gpus'], job['time_limit_s']) == (2, 7200), job
    assert box.job(ids[2])['after'] == f'{ids[1]}:ok,{ids[0]}:any'
    assert ended(box, ids) == ['one 2\n', 'test\n', 'report\n']
    done = box.mgpu('submit', '--dry-run', '-g', '1', 'job.yaml', cwd=place, check=True)
    assert done.out.splitlines()[1:] == ['test  echo test | cat  after train:ok',
                                         'report  echo report  after test:ok,train:any']


def test_anchors_merges_and_lists(box, place):
    write(place, 'job.yml', 'x-base: &base { gpus: 0, name: &who base, env: [A=0, C=3], command: "false" }\n'
                            '<<: [*base, { name: other }]\nhold: false\n' +
          'sweep: { lr: [0.1, 0.2], n: 1-2 }\nenv: { A: 1, WHO: *who }\ncommand: echo $A$C$WHO $lr $n\n')
    ids, _ = submit(box, place, 'job.yml')
    assert box.job(ids[0])['name'] == 'base-lr=0.1-n=1'
    assert ended(box, ids) == [f'13base {lr} {n}\n' for lr in (0.1, 0.2) for n in (1, 2)]


def test_the_command_line_counts_more_than_a_job_file(box, place):
    write(place, 'job.yaml', 'command: echo $A\ngpus: 4\nname: file\nenv: {A: file}\n')
    ids, _ = submit(box, place, '-g', '0', '-e', 'A=line', 'job.yaml')
    assert box.job(ids[0])['name'] == 'file' and ended(box, ids) == ['line\n']


@pytest.mark.parametrize(('text', 'what'), [
    ('command: x\nnum_gpu: 1\n', "job.yaml:2: 'num_gpu' is not a key of a job"),
    ('command: x\ngpus: many\n', 'job.yaml:2: '),
    ('gpus: 1\n', 'job.yaml:1: this job has no command'),
    ('command: ""\n', 'job.yaml:1: the command is empty'),
    ('command: {a: b}\n', 'job.yaml:1: a value or a list of values is expected here'),
    ('command: x\nhold: maybe\n', 'job.yaml:2: this option must be true or false'),
    ('command: x\ndry-run: true\n', 'job.yaml:2: --dry-run is only allowed on the command line'),
    ('command: x\njson: true\n', "job.yaml:2: 'json' is not a key of a job"),
    ('command: x\nfile: y\n', 'job.yaml:2: --file is only allowed on the command line'),
    ('- a\n', 'job.yaml:1: a job must be a mapping'),
    ('', 'job.yaml contains no job'),
    ('command: [a\n', 'job.yaml:'),
    ('command: x\nneeds: [y]\n', "job.yaml:2: no job in this file is named 'y'"),
    ('command: x\nneeds: {y: now}\n', 'job.yaml:2: a need must be ok, any or fail'),
    ('name: a\ncommand: x\nneeds: a\n', 'job.yaml:1: circular dependency: a needs a'),
    ('name: a\ncommand: x\nneeds: [b]\n---\nname: b\ncommand: x\nneeds: [a]\n---\ncommand: x\nneeds: a\n', 'b needs a needs b'),
    ('name: a\ncommand: x\n---\nname: a\ncommand: x\n---\ncommand: x\nneeds: a\n', "'a' matches 2 jobs"),
    ('command: x\n<<: &a { <<: *a }\n', 'is nested deeper than'),
    ('command: x\n<<: 3\n', 'job.yaml:2: << takes a mapping'),
    ('command: x\nsweep: {x: 3-1}\n', 'is reversed'),
])
def test_a_wrong_job_file(box, place, text, what):
    write(place, 'job.yaml', text)
    assert what in refuse(box, place, 'job.yaml')


def test_a_job_file_that_is_missing_or_large(box, place):
    assert 'cannot read no.yaml: No such file' in refuse(box, place, 'no.yaml', code=3)
    write(place, 'job.yaml', '#' * ((1 << 20) + 1))
    assert 'job.yaml has more than 1048576 bytes' in refuse(box, place, 'job.yaml', code=1)
    assert "unexpected 'x'" in refuse(box, place, 'job.yaml', 'x')


def test_a_pipeline_that_is_refused_in_the_middle_is_taken_back(box, place):
    write(place, 'job.yaml', 'name: a\ncommand: x\nhold: true\n---\nname: b\nneeds: a\ncommand: x\n---\n'
                             'needs: b\ncommand: x\ngpus: 500\n')
    done = box.mgpu('submit', 'job.yaml', cwd=place)
    first, second = (int(line) for line in done.out.split())
    assert done.code != 0 and 'job.yaml:9: ' in done.err, done
    assert f'these jobs had been submitted and were cancelled: {second} {first}' in done.err, done
    assert [box.wait(job)['state'] for job in (first, second)] == ['cancelled', 'cancelled']


# --- the environment ---

def test_where_variables_are_from(box, place):
    write(place, 'env', 'A=file\nB="file two"\n')
    ids, _ = submit(box, place, '-g', '0', '--env-file', 'env', '-e', 'B=given', '--export', 'C', 'echo $A $B $C $D',
                    env={'A': 'own', 'C': 'own', 'D': 'own'})
    assert ended(box, ids) == ['file given own\n']
    ids, _ = submit(box, place, '-g', '0', '--export', 'minimal', 'echo $A $HOME', env={'A': 'own', 'HOME': '/h'})
    assert ended(box, ids) == ['/h\n']
    write(place, 'env', 'A=1\nnonsense\n')
    assert "env:2: 'nonsense' is not NAME=VALUE" in refuse(box, place, '--env-file', 'env', 'true')
    assert 'variable GONE is not set' in refuse(box, place, '--export', 'GONE', 'true', code=3)


CONDA = '''#!/bin/sh
[ "$3" = train ] || { echo "EnvironmentNameNotFound: $3" >&2; exit 1; }
echo "export CONDA_DEFAULT_ENV=$3"
'''


def test_a_conda_environment_is_active_in_the_job(box, place):
    conda = write(place, 'conda/bin/conda', CONDA, 0o755)
    ids, _ = submit(box, place, '-g', '0', '--conda', 'train', '-E', 'B=$CONDA_DEFAULT_ENV; export B',
                    'echo $CONDA_DEFAULT_ENV $B', env={'CONDA_EXE': conda})
    assert ended(box, ids) == ['train train\n']
    assert "setup      --conda train -E 'B=$CONDA_DEFAULT_ENV; export B'\n" in box.mgpu('show', ids[0], check=True).out


def test_a_virtual_environment_is_active_in_the_job(box, place):
    subprocess.run(['/usr/bin/python3', '-m', 'venv', '--without-pip', f'{place}/my venv'], check=True)
    ids, _ = submit(box, place, '-g', '0', '--venv', 'my venv', 'python', '-c', 'import sys; print(sys.prefix)')
    assert ended(box, ids) == [f'{place}/my venv\n']


@pytest.mark.parametrize(('option', 'value', 'env', 'what'), [
    ('--conda', 'other', {'CONDA_EXE': 'conda/bin/conda'}, 'cannot activate the environment other'),
    ('--conda', 'train', {'HOME': '/nowhere', 'CONDA_EXE': '/none'}, 'there is no conda on this node'),
    ('--venv', 'none', {}, './none is not a virtual environment'),
    ('--module', 'cuda', {}, '--module: '),
])
def test_what_cannot_be_set_up_ends_the_job_before_its_command(box, place, option, value, env, what):
    write(place, 'conda/bin/conda', CONDA, 0o755)
    if env.get('CONDA_EXE') == 'conda/bin/conda':
        env = {'CONDA_EXE': f'{place}/conda/bin/conda'}
    ids, _ = submit(box, place, '-g', '0', option, value, 'echo on', env=env)
    job = box.wait(ids[0])
    assert job['state'] == 'failed' and job['ended_by'] == 'setup_failed', job
    assert what in box.output(ids[0]) and 'on\n' not in box.output(ids[0]).splitlines(True)[1:]


def test_the_output_of_an_array(box, place):
    os.chmod(place, 0o777)
    ids, _ = submit(box, place, '-g', '0', '-a', '3-4', '-J', 'n', '-o', '%A.%a.%n.%%', 'echo $MGPU_ARRAY_INDEX')
    for index in (3, 4):
        done = box.mgpu('wait', f'{ids[0]}.{index}')
        assert done.code == 0, done
        with open(f'{place}/{ids[0]}.{index}.n.%', encoding='utf-8') as source:
            assert source.read() == f'{index}\n'
