# SPDX-License-Identifier: MIT
"""Slurm's commands of an ordinary user, with nodes on three hosts in network namespaces and mgpud on a fourth."""

import harness
import hosts
import pytest
import slurm

NAMES = ('n1', 'n2', 'n3')

pytestmark = pytest.mark.skipif(hosts.why_not() is not None, reason=hosts.why_not() or '')


@pytest.fixture(scope='module')
def three(someone):
    with hosts.spread_cluster(nodes=NAMES, client=someone) as (_, made):
        yield made


@pytest.fixture
def cluster(three, place):
    return slurm.Slurm(three.box, place)


def test_a_batch_script_reaches_all_its_hosts_and_they_reach_its_first(cluster):
    cluster.script('''#!/bin/bash
#SBATCH -N 3 --ntasks-per-node=2 --gres=gpu:1
#SBATCH -o out.%j
echo $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE
srun -l python3 meet.py
srun -N 1 -n 1 -w n3 bash -c 'echo last: $SLURMD_NODENAME'
exit 7
''')
    cluster.script('''import os, socket
address, rank, size = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS'])
if rank == 0:
    server = socket.create_server(('', address[1]))
    met = {server.accept()[0].makefile().readline().strip() for _ in range(size - 1)}
    print(len(met), 'hosts have come', flush=True)
else:
    while True:
        try:
            socket.create_connection(address, 30).sendall(f'{os.environ["SLURMD_NODENAME"]}.{rank}\\n'.encode())
            break
        except ConnectionRefusedError:
            pass
''', 'meet.py')
    job = cluster.submit('job.sh')
    ended = cluster.finish(job)
    out = cluster.read(f'out.{job}')
    assert (ended['state'], ended['exit_code']) == ('failed', 7), (ended, out)
    assert out.splitlines()[0] == 'n[1-3] 2(x3)' and '0: 5 hosts have come' in out and 'last: n3' in out, out
    listed = cluster.out('sacct', '-n', '-P', '-j', job, '-o', 'JobID,State,ExitCode,NNodes,NodeList').splitlines()
    assert listed[0] == f'{job}|FAILED|7:0|3|n[1-3]' and f'{job}.0|COMPLETED|0:0|3|n[1-3]' in listed, listed


def test_a_file_is_copied_to_three_hosts_and_scancel_ends_the_steps_on_all(cluster):
    cluster.script('given\n', 'given')
    line = 'sbcast -f given copy && srun -l cat copy && exec srun bash -c "echo runs; exec sleep 1000"'
    job = cluster.wrap(line, '-N', 3, '--gres=gpu:1', '-o', 'out')
    harness.await_text(f'{cluster.place}/out', 'runs\nruns\nruns\n')
    assert sorted(line for line in cluster.read('out').splitlines() if 'given' in line) == ['0: given', '1: given', '2: given']
    assert cluster.out('squeue', '-h', '-s', '-j', job, '-o', '%i %N').splitlines()[-1].endswith('n[1-3]')
    cluster.out('scancel', job)
    assert cluster.finish(job)['state'] == 'cancelled'
    assert cluster.out('sinfo', '-h', '-o', '%t %D %N').split()[0] == 'idle'


def test_srun_outside_a_job_runs_its_tasks_on_three_hosts(cluster):
    """Its rank 0 is on a machine without mgpud, which the job's own srun has to reach."""
    out = cluster.out('srun', '-N', 3, '--gres=gpu:1', 'bash', '-c', 'echo $SLURMD_NODENAME')
    assert sorted(out.split()) == ['n1', 'n2', 'n3']
    assert cluster.out('squeue', '-h') == ''


def test_the_tasks_of_a_step_on_all_hosts_save_their_work_when_the_job_is_cancelled(cluster):
    cluster.script('''import os, signal, sys, time
def save(number, frame):
    time.sleep(0.7)
    print('saved', os.environ['SLURM_PROCID'], flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('up', flush=True)
while True:
    time.sleep(0.05)
''', 'save.py')
    job = cluster.wrap('srun -l python3 save.py; echo not reached', '-N', 3, '-o', 'saved')
    harness.await_text(f'{cluster.place}/saved', 'up')
    harness.until(lambda: cluster.read('saved').count('up') == 3, 'all tasks are up')
    cluster.out('scancel', job)
    ended = cluster.finish(job)
    out = cluster.read('saved')
    assert ended['state'] == 'cancelled' and 'not reached' not in out, (ended, out)
    assert {line for line in out.splitlines() if 'saved' in line} == {f'{rank}: saved {rank}' for rank in range(3)}, out


# Options of srun, and the nodes of its tasks.
LAYOUTS = [
    ('-N3 -w n1,n2,n3 -n7', '1 1 1 2 2 3 3'),
    ('-N3 -w n1,n2,n3 -n7 -m cyclic', '1 2 3 1 2 3 1'),
    ('-N2 -w n1,n2 -n5 -m plane=2', '1 1 2 2 1'),
    ('-n3 -w n2,n1,n2 -m arbitrary', '2 1 2'),
    ('-n2 -w ./hostfile -m arbitrary', '3 1'),
    ('-n2 -w n1,n2,n3', '1 2'),
]
# Options of a step in a job of three nodes.
STEPS = LAYOUTS + [('-w n3', '1 2 3'), ('-w n3 -n1', '3'), ('-w n3 -N1', '3'), ('-w n3 -N2', '1 3'), ('-x n1 -N2', '2 3'), ('-r1 -n2', '2 3')]


def test_tasks_run_where_the_distribution_says(cluster):
    cluster.script('n3\nn1\nn3\n', 'hostfile')
    printed = "printenv SLURMD_NODENAME | sort -n | sed 's/.*n//' | xargs"
    lines = [f'srun -O {options} -l {printed}' for options, _ in LAYOUTS] + [f'SLURM_HOSTFILE=hostfile srun -l {printed}']
    inside = [f'srun -O {options} -l {printed}' for options, _ in STEPS[:2] + STEPS[3:4] + STEPS[6:]]
    cluster.script('\n'.join(inside), 'steps')
    for line, nodes in zip(lines, [nodes for _, nodes in LAYOUTS] + ['3 1 3']):
        assert cluster.shell(line).out.strip() == nodes, line
    out = cluster.run('salloc', '-Q', '-w', 'n1,n2,n3', 'bash', 'steps').out.splitlines()
    assert out == [nodes for _, nodes in STEPS[:2] + STEPS[3:4] + STEPS[6:]], out


def test_ranks_of_mpi_are_not_distributed_in_another_order(cluster):
    done = cluster.run('srun', '-w', 'n1,n2', '-n4', '-m', 'cyclic', '--mpi=pmi2', 'true')
    assert done.code == 1 and '--distribution=cyclic is not supported with --mpi=pmi2' in done.err, done


def test_tasks_on_all_hosts_have_the_limits_of_srun(cluster):
    line = 'ulimit -Sn 500; ulimit -Ss 4096; ulimit -Sc 0; srun bash -c "echo \\$(ulimit -Sn) \\$(ulimit -Ss) \\$(ulimit -Sc) \\$(env | grep -c RLIMIT)"'
    out = cluster.out('salloc', '-Q', '-w', 'n1,n2,n3', 'bash', '-c', line)
    assert out.splitlines() == ['500 4096 0 0'] * 3, out
