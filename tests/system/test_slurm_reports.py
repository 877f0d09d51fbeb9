# SPDX-License-Identifier: MIT
"""What Slurm's commands report about nodes, GPUs and partitions: two nodes that are in two partitions."""

import os
import re
import tempfile

import pytest
import slurm
from cluster import Cluster

CONFIG = """partitions:
  debug:
    nodes: n[1-2]
    default: true
    default-time: 60m
  short:
    nodes: n[1-2]
    max-time: 10m
"""


@pytest.fixture(scope='module')
def pair(someone):
    with tempfile.TemporaryDirectory(prefix='mgpu-t-') as folder:
        os.chmod(folder, 0o755)
        path = f'{folder}/mgpu.yaml'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(CONFIG)
        with Cluster(2, client=someone, arguments=['--config', path]) as made:
            yield made


@pytest.fixture
def box(pair):
    yield pair.box
    pair.box.cancel_all()


@pytest.fixture
def commands(box, place):
    return slurm.Slurm(box, place)


@pytest.fixture
def job(commands, gate):
    """A job with two tasks, 1 GiB and GPUs 0 and 1 of n1, which runs."""
    made = commands.wrap(gate.command()[-1], '-n', 2, '-w', 'n1', '--mem=1G', '-G', 2)
    commands.box.wait(made, 'running')
    return made


def pairs_of(text):
    return dict(re.findall(r'(\S+?)=(\S*)', text))


def test_a_node_shows_what_jobs_have_of_it(commands, job):
    shown = pairs_of(commands.out('scontrol', 'show', 'node', 'n1'))
    cpus = int(shown['CPUTot'])
    assert shown['CPUAlloc'] == str(min(2, cpus)) and shown['AllocMem'] == '1024' and shown['State'] == 'MIXED', shown
    assert shown['CfgTRES'] == f'cpu={cpus},mem={shown["RealMemory"]}M,billing={cpus},gres/gpu=4' or 'G,billing' in shown['CfgTRES'], shown
    assert shown['AllocTRES'] == f'cpu={min(2, cpus)},mem=1G,gres/gpu=2', shown
    assert shown['CoresPerSocket'] == shown['CPUTot'] and shown['Sockets'] == shown['ThreadsPerCore'] == '1', shown
    assert 'GresUsed' not in shown
    idle = pairs_of(commands.out('scontrol', '-o', 'show', 'node', 'n2'))
    assert (idle['CPUAlloc'], idle['AllocTRES'], idle['State']) == ('0', '', 'IDLE'), idle


def test_details_name_the_gpus_of_nodes_and_jobs(commands, job, gate):
    assert 'GresUsed=gpu:simulated_gpu:2(IDX:0-1)' in commands.out('scontrol', '-d', 'show', 'node', 'n1').split()
    assert 'GresUsed=gpu:simulated_gpu:0(IDX:N/A)' in commands.out('scontrol', 'show', 'node', 'n2', '-d').split()
    shown = commands.out('scontrol', 'show', 'job', '-d', job)
    assert '\n   JOB_GRES=gpu:2\n     Nodes=n1 CPU_IDs=(null) Mem=1024 GRES=gpu:2(IDX:0-1)\n' in shown, shown
    assert 'IDX:' not in commands.out('scontrol', 'show', 'job', job)
    wide = commands.wrap(gate.command()[-1], '-N', 2, '--gres=gpu:1')
    commands.box.wait(wide, 'running')
    shown = commands.out('scontrol', 'show', 'job', '-d', wide)
    assert '     Nodes=n1 CPU_IDs=(null) Mem=0 GRES=gpu:1(IDX:2)\n     Nodes=n2 CPU_IDs=(null) Mem=0 GRES=gpu:1(IDX:0)\n' in shown, shown


def test_a_job_shows_its_request(commands):
    made = commands.wrap('true', '-H', '-N', 2, '-n', 4, '-w', 'n[1-2]', '--mem=1G', '--gres=gpu:1', '--deadline=now+3hours', '-C', 'simulated')
    shown = pairs_of(commands.out('scontrol', 'show', 'job', made))
    assert shown['ReqNodeList'] == 'n[1-2]' and shown['ExcNodeList'] == '(null)' and shown['Deadline'] != 'N/A', shown
    assert shown['TRES'] == 'cpu=4,mem=2G,node=2,billing=4,gres/gpu=2' and shown['Features'] == 'simulated', shown
    assert 'BatchHost' not in shown and 'Comment' not in shown, shown
    free = pairs_of(commands.out('scontrol', 'show', 'job', commands.wrap('true', '-H', '-x', 'n1', '-a', '1-3%2', '--comment=why')))
    assert (free['ExcNodeList'], free['ArrayTaskThrottle'], free['Comment']) == ('n1', '2', 'why'), free


def test_nodes_in_several_partitions_are_counted_once(commands):
    assert commands.out('sinfo', '-o', '%N %G') == 'NODELIST GRES\nn[1-2] gpu:simulated_gpu:4\n'
    assert commands.out('sinfo', '-h', '-t', 'idle', '-o', '%D') == '2\n'
    assert commands.out('sinfo', '-h', '-o', '%D %F') == '2 0/2/0/2\n'
    assert commands.out('sinfo', '-h', '-N', '-o', '%N') == 'n1\nn1\nn2\nn2\n'  # but with -N, as Slurm has it
    assert commands.out('sinfo', '-h', '-o', '%P %D') == 'debug* 2\nshort 2\n'
    assert commands.out('sinfo', '-h', '-o', '%n %l') == 'n1 infinite\nn2 infinite\nn1 10:00\nn2 10:00\n'


def test_lines_of_sinfo_differ_where_their_nodes_do(commands, job):
    assert commands.out('sinfo', '-h', '-O', 'NodeList:8,GresUsed:30') == (
        'n1      gpu:simulated_gpu:2(IDX:0-1)  \nn2      gpu:simulated_gpu:0(IDX:N/A)  \n')
    assert [line.split() for line in commands.out('sinfo', '-h', '-o', '%P %t %N').splitlines()] == [
        ['debug*', 'mix', 'n1'], ['debug*', 'idle', 'n2'], ['short', 'mix', 'n1'], ['short', 'idle', 'n2']]
    assert [line.split()[0] for line in commands.out('sinfo', '-h', '-N').splitlines()] == ['n1', 'n1', 'n2', 'n2']
    used, idle, other, whole = (int(count) for count in commands.out('sinfo', '-h', '-o', '%C').split('/'))
    assert used == min(2, whole // 2) and used + idle == whole and other == 0
    assert commands.out('sinfo', '-h', '-O', 'NodeList:3,AllocMem:5') == 'n1 1024 \nn2 0    \n'


def test_all_columns_are_shown_at_once(commands, job):
    header, first = commands.out('sinfo', '-o', '%all').splitlines()[:2]
    assert header.startswith('AVAIL|ACTIVE_FEATURES|CPUS|TMP_DISK|FREE_MEM|') and header.endswith('|SOCKETS |CORES |THREADS '), header
    assert header.count('|') == first.count('|') == 41
    header, first = commands.out('squeue', '-o', '%all').splitlines()
    assert header.startswith('ACCOUNT|TRES_PER_NODE|MIN_CPUS|MIN_TMP_DISK|END_TIME|') and header.count('|') == first.count('|') == 51, header


@pytest.mark.parametrize('outside', [False, True])
def test_each_node_numbers_the_gpus_of_a_task_in_its_own_way(commands, outside):
    tasks = "-l --gpus-per-task=1 sh -c 'echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS $MGPU_STEP_GPU_PLACES'"
    if outside:
        text = commands.out('salloc', '-Q', '-N', 2, '--ntasks-per-node=2', '--gres=gpu:2', 'sh', '-c', f'srun {tasks}')
    else:
        text = commands.shell(f'srun -N2 --ntasks-per-node=2 --gres=gpu:2 {tasks}').out
    assert sorted(text.splitlines()) == ['0: 0 0,1', '1: 1 0,1', '2: 0 0,1', '3: 1 0,1'], text
