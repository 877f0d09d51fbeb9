# SPDX-License-Identifier: MIT
"""Clients of Slurm from Debian against mgpu: Snakemake, Cylc, GNU parallel, Open MPI, PyTorch and Dask."""

import os
import re
import shutil
import subprocess

import harness
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


# --- on two nodes ---

@pytest.fixture
def nodes(two, place):
    return slurm.Slurm(two.box, place)


MPI_PROGRAM = '''
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank() + 1)
rows = world.gather((world.Get_rank(), os.environ['SLURMD_NODENAME']))
if rows:
    print(world.Get_size(), total, rows)
'''


@pytest.mark.skipif(not harness.has_module('mpi4py'), reason='mpi4py is not installed: tools/install-packages real')
def test_ranks_of_open_mpi_talk_on_two_nodes(nodes):
    nodes.script(MPI_PROGRAM, 'sum.py')  # over TCP: the shared memory of Open MPI takes two nodes on one host for one
    line = (f'mpirun --mca btl tcp,self --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo '
            '/usr/bin/python3 sum.py')
    job = nodes.wrap(line, '-N', 2, '--ntasks-per-node=2', '--gres=gpu:1', '-o', 'out')
    assert nodes.box.wait(job, timeout_s=120)['state'] == 'done', nodes.read('out')
    assert nodes.read('out') == "4 10 [(0, 'n1'), (1, 'n1'), (2, 'n2'), (3, 'n2')]\n"


GLOO_PROGRAM = '''
import os
import torch
import torch.distributed as dist
rank, size = int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS'])
dist.init_process_group('gloo', rank=rank, world_size=size)
value = torch.tensor([rank + 1.0])
dist.all_reduce(value)
print('rank', rank, 'of', size, 'on', os.environ['SLURMD_NODENAME'], value.item(), flush=True)
'''


TORCHRUN_PROGRAM = '''
import os
import torch
import torch.distributed as dist
dist.init_process_group('gloo')
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
print(f'rank {dist.get_rank()} of {dist.get_world_size()}: {value.item()} on', os.environ['SLURMD_NODENAME'], flush=True)
'''


@pytest.mark.skipif(not harness.has_module('torch'), reason='python3-torch is not installed')
def test_pytorch_meets_by_the_variables_of_srun(nodes):
    nodes.script(GLOO_PROGRAM, 'meet.py')
    line = (f'export GLOO_SOCKET_IFNAME=lo MASTER_ADDR=127.0.0.1\n'
            'test $(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1) = n1 || exit 9\n'
            'srun /usr/bin/python3 meet.py')
    job = nodes.wrap(line, '-N', 2, '--ntasks-per-node=1', '--gres=gpu:1', '-o', 'out')
    assert nodes.box.wait(job, timeout_s=180)['state'] == 'done', nodes.read('out')
    assert sorted(nodes.read('out').splitlines()) == ['rank 0 of 2 on n1 3.0', 'rank 1 of 2 on n2 3.0']


@pytest.mark.skipif(not harness.has_module('torch'), reason='python3-torch is not installed')
def test_torchrun_starts_its_workers_on_two_nodes(nodes):
    nodes.script(TORCHRUN_PROGRAM, 'train.py')
    port = harness.free_port()
    nodes.script('[ $SLURM_NODEID = 0 ] && host=true || host=false  # both nodes have one address here\n'
                 'exec /usr/bin/python3 -m torch.distributed.run --nnodes 2 --nproc_per_node 2 --rdzv_id $SLURM_JOB_ID --rdzv_backend c10d '
                 f'--rdzv_endpoint $MASTER_ADDR:{port} --rdzv_conf is_host=$host '
                 '--redirects 1 --tee 1 train.py\n', 'node.sh')  # the defaults of torch 1.13 fail with Python 3.11
    line = (f'export GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1\n'
            'srun --nodes=2 --ntasks-per-node=1 bash node.sh')
    job = nodes.wrap(line, '-N', 2, '--ntasks-per-node=1', '--gres=gpu:1', '-o', 'out')
    assert nodes.box.wait(job, timeout_s=180)['state'] == 'done', nodes.read('out')
    lines = sorted(line[line.index('rank '):] for line in nodes.read('out').splitlines() if ']:rank ' in line)
    assert [line.split(' on ')[0] for line in lines] == [f'rank {rank} of 4: 10.0' for rank in range(4)], nodes.read('out')
    assert {line.split(' on ')[1] for line in lines} == {'n1', 'n2'}


# --- Cylc: its module for Slurm. Its scheduler needs pyuv, which Debian 12 lacks ---

CYLC_PROGRAM = '''
import subprocess
import time
from collections import OrderedDict
from cylc.flow.job_runner_handlers.slurm import JOB_RUNNER_HANDLER as handler

def submit(name, line):
    directives = handler.format_directives({'job_file_path': name, 'directives': OrderedDict({'--mem': '300M', '--ntasks': '1'}),
                                            'task_id': '1/' + name, 'workflow_name': 'flow', 'execution_time_limit': 125})
    with open(name, 'w') as file:
        print('#!/bin/bash', *directives, line, sep='\\n', file=file)
    done = subprocess.run(handler.SUBMIT_CMD_TMPL % {'job': name}, shell=True, capture_output=True, text=True, check=True)
    return handler.REC_ID_FROM_SUBMIT_OUT.match(done.stdout)['id']

def poll(*ids):
    return handler.filter_poll_many_output(subprocess.run(handler.get_poll_many_cmd(ids), capture_output=True, text=True).stdout)

short, long = submit('short', 'echo $SLURM_JOB_NAME'), submit('long', 'sleep 600')
while poll(short, long) != [long]:
    time.sleep(0.2)
subprocess.run(handler.KILL_CMD_TMPL % {'job_id': long}, shell=True, check=True)
while poll(short, long):
    time.sleep(0.2)
print(short, long)
'''


@pytest.mark.skipif(not harness.has_module('cylc'), reason='cylc-flow is not installed: tools/install-packages real')
def test_cylc_submits_polls_and_kills_jobs(cluster):
    done = cluster.run('/usr/bin/python3', '-', input=CYLC_PROGRAM, timeout_s=120)
    assert done.code == 0, done
    short, long = (cluster.box.job(int(job)) for job in done.out.split())
    assert (short['state'], short['name'], short['time_limit'], long['state']) == ('done', 'short.1.flow', 125, 'cancelled'), (short, long)
    assert cluster.read('short.out') == 'short.1.flow\n'


# --- Dask: workers as dask-jobqueue submits them ---

DASK_WORKER = '''#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -e dask-%J.err
#SBATCH -o dask-%J.out
#SBATCH -p gpu
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=954M
#SBATCH -t 00:30:00

/usr/bin/python3 -m distributed.cli.dask_worker --scheduler-file scheduler.json --nthreads 1 --memory-limit 0 --no-dashboard
'''

DASK_CLIENT = '''
import os
from distributed import Client
with Client(scheduler_file='scheduler.json', timeout=60) as client:
    client.wait_for_workers(2, timeout=60)
    print(sorted(client.run(lambda: int(os.environ['SLURM_JOB_ID'])).values()))
    print(client.submit(sum, client.map(lambda n: n * n, range(10))).result())
'''


@pytest.mark.skipif(not harness.has_module('distributed'), reason='python3-distributed is not installed: tools/install-packages real')
def test_dask_computes_on_workers_that_are_jobs(cluster):
    user = cluster.box.client
    scheduler = subprocess.Popen(
        ['/usr/bin/python3', '-m', 'distributed.cli.dask_scheduler', '--host', '127.0.0.1', '--port', '0', '--no-dashboard',
         '--scheduler-file', 'scheduler.json'], cwd=cluster.place, env=cluster.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user.popen_arguments())
    try:
        harness.until(lambda: os.path.exists(f'{cluster.place}/scheduler.json'), 'the scheduler of Dask', 60)
        worker = cluster.script(DASK_WORKER, 'worker.sh')
        jobs = [int(re.search(r'\d+', cluster.out('sbatch', worker)).group()) for _ in range(2)]
        done = cluster.run('/usr/bin/python3', '-', input=DASK_CLIENT, timeout_s=180)
        assert done.code == 0 and done.out.splitlines() == [str(jobs), '285'], done
        for job in jobs:
            assert cluster.out('scancel', job) == ''
        assert {cluster.finish(job)['state'] for job in jobs} == {'cancelled'}
    finally:
        scheduler.terminate()
        scheduler.wait(harness.DEADLINE_S)
