# SPDX-License-Identifier: MIT
"""Clients of Slurm from Debian against mgpu: Snakemake and GNU parallel."""

import os
import shutil

import pytest
import slurm

pytestmark = [pytest.mark.real]

WORKFLOW = '''
rule all:
    input: "sum"
rule part:
    output: "part{n}"
    resources: mem_mb=500, runtime=5, slurm_account="default", slurm_partition="gpu"
    shell: "echo $SLURM_JOB_ID {wildcards.n} > {output}"
rule sum:
    input: expand("part{n}", n=[1, 2, 3])
    output: "sum"
    resources: mem_mb=500, runtime=5, slurm_account="default", slurm_partition="gpu"
    shell: "cat {input} > {output}"
'''


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.mark.skipif(not shutil.which('snakemake', path='/usr/bin'), reason='snakemake is not installed: tools/install-packages real')
@pytest.mark.parametrize('words', [
    ('--cluster', 'sbatch --parsable -J {rule}', '--cluster-cancel', 'scancel'), ('--slurm',)], ids=['cluster', 'slurm'])
def test_snakemake_runs_a_workflow(cluster, words):
    cluster.script(WORKFLOW, 'Snakefile')
    home = os.path.join(cluster.place, 'home')
    os.mkdir(home)
    os.chmod(home, 0o777)
    done = cluster.run('/usr/bin/snakemake', *words, '--jobs', 3, '--latency-wait', 20, '--nolock', timeout_s=240,
                       env={'HOME': home, 'XDG_CACHE_HOME': home})
    assert done.code == 0, done
    rows = [line.split() for line in cluster.read('sum').splitlines()]
    assert [row[1] for row in rows] == ['1', '2', '3'] and len({row[0] for row in rows}) == 3


@pytest.mark.skipif(not shutil.which('parallel', path='/usr/bin'), reason='parallel is not installed: tools/install-packages real')
def test_parallel_starts_steps(cluster):
    job = cluster.wrap('parallel -k srun -n1 bash -c "echo\\ {}" ::: a b c', '-n', 3, '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert cluster.read('out').split() == ['a', 'b', 'c']
