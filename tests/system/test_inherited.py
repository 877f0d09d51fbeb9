# SPDX-License-Identifier: MIT
"""A job submitted in a job is nobody's child: it inherits no variable that describes the other."""

import os
import re

import harness
import pytest
import slurm

TABLE = os.path.join(harness.ROOT, 'src/job/inherited.c')
PAGE = os.path.join(harness.ROOT, 'man/mgpu.1.scd')


def rows():
    """(name, the variable that must be beside it or None) of the table."""
    with open(TABLE, encoding='utf-8') as file:
        found = re.findall(r'\{ "([A-Z_0-9]+\*?)", (?:NULL|"([A-Z_]+)"),', file.read())
    assert len(found) > 40
    return [(name.replace('*', 'X'), beside or None) for name, beside in found]


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def environment_of(text):
    return dict(line.split('=', 1) for line in text.splitlines() if '=' in line)


# Lines that submit `env > child` in the job of the line and wait for it.
WAYS = {
    'mgpu submit': 'mgpu wait $(mgpu submit -q -g 0 -o /dev/null -- sh -c "env > child")',
    'mgpu run': 'mgpu run -q -g 0 -- sh -c "env > child" < /dev/null',
    'sbatch': 'sbatch -W -o /dev/null --wrap "env > child"',
}
# What these set themselves.
OWN = {'sbatch': r'SLURM|ENVIRONMENT$'}


@pytest.mark.parametrize('way', WAYS)
def test_no_variable_of_the_job_reaches_a_job_submitted_in_it(cluster, way):
    box = cluster.box
    marked = ' '.join(f'{name}=parent' for name, _ in rows() if not name.startswith('MGPU_JOB_ID'))
    path = f'{cluster.folder}:{harness.programs()}:/usr/local/bin:/usr/bin:/bin'
    script = cluster.script(f'#!/bin/bash\nexport PATH={path} MINE=mine\nsocket=$MGPU_SOCKET\nexport {marked} '
                            f'MGPU_SOCKET=$socket TORCHELASTIC_RUN_ID=parent SLURM_JOB_ID=parent\n{WAYS[way]}\n')
    job = box.submit('-g', 0, '-c', '0.1', '-a', '3', '-o', 'out', script, cwd=cluster.place)
    assert box.wait(job)['state'] == 'done', cluster.read('out')
    child = environment_of(cluster.read('child'))
    assert child['MINE'] == 'mine' and child['MGPU_JOB_ID'] != str(job)
    left = {name: value for name, value in child.items() if value == 'parent'}
    assert left == {}, left
    assert 'MGPU_ARRAY_INDEX' not in child and 'MGPU_ARRAY_JOB' not in child
    if way != 'sbatch':
        assert not [name for name in child if name.startswith('SLURM')]


def test_a_job_submitted_in_an_sbatch_job_is_no_part_of_it(cluster):
    line = 'mgpu run -q -g 0 -- sh -c "env > child" < /dev/null'
    job = cluster.wrap(f'PATH={harness.programs()}:$PATH; {line}', '--export', f'ALL,PATH=/usr/bin:/bin', '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert not [name for name in environment_of(cluster.read('child')) if name.startswith('SLURM')]


def test_a_variable_that_is_given_reaches_it(cluster):
    path = f'{harness.programs()}:/usr/bin:/bin'
    line = 'mgpu run -q -g 0 -e MASTER_ADDR=given -e RANK=0 -- sh -c "env > child" < /dev/null'
    script = cluster.script(f'#!/bin/sh\nexport PATH={path} MGPU_NNODES=2 MASTER_ADDR=parent RANK=mine\n{line}\n')
    job = cluster.box.submit('-g', 0, '-c', '0.1', '-o', 'out', script, cwd=cluster.place)
    assert cluster.box.wait(job)['state'] == 'done', cluster.read('out')
    child = environment_of(cluster.read('child'))
    assert (child['MASTER_ADDR'], child['RANK']) == ('given', '0')


def test_outside_a_job_they_are_variables_like_others(box, place):
    env = {'MASTER_ADDR': 'here', 'RANK': '1', 'PET_NNODES': '2', 'SLURM_TIME_FORMAT': 'relative', 'OMPI_MCA_btl': 'self'}
    done = box.mgpu('run', '-q', '-g', 0, '--', 'env', env=env, cwd=place, check=True)
    assert {name: environment_of(done.out).get(name) for name in env} == env


def test_a_client_that_sends_its_environment_as_it_is_gets_the_same(box):
    env = {'MGPU_JOB_ID': '7', 'MGPU_NNODES': '2', 'PET_NNODES': '2', 'MGPU_ARRAY_INDEX': '3', 'MINE': 'mine', 'PATH': '/usr/bin:/bin'}
    job, out = box.run_job(['env'], gpus=0, env=env)
    child = environment_of(out)
    assert child['MGPU_JOB_ID'] == str(job['id']) and child['MINE'] == 'mine'
    assert not {'MGPU_NNODES', 'PET_NNODES', 'MGPU_ARRAY_INDEX'} & set(child)


def test_the_manual_lists_them_all():
    with open(PAGE, encoding='utf-8') as file:
        page = file.read()
    missing = [name for name, _ in rows() if f'_{name.removesuffix("X")}' not in page]
    assert missing == []
