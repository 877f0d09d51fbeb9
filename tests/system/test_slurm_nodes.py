# SPDX-License-Identifier: MIT
"""Jobs of sbatch on several nodes: the script is on the first, and its end is that of the job."""

import re

import pytest
import slurm


@pytest.fixture
def cluster(two, place):
    return slurm.Slurm(two.box, place)


def test_a_batch_script_runs_on_the_first_node_alone(cluster):
    line = 'echo $SLURM_NODEID of $SLURM_JOB_NUM_NODES, $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE $SLURM_NTASKS'
    job = cluster.wrap(line, '-N', 2, '--ntasks-per-node=2', '--gres=gpu:1', '-o', 'out')
    ended = cluster.finish(job)
    assert (ended['state'], ended['exit_code']) == ('done', 0), ended
    assert cluster.read('out') == '0 of 2, n[1-2] 2(x2) 4\n'
    assert cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'State,NNodes,NodeList') == 'COMPLETED|2|n[1-2]\n'


def test_gpus_of_each_node_are_not_collected_from_several(cluster):
    done = cluster.run('sbatch', '--gres=gpu:9', '--wrap', 'true')
    assert done.code == 1 and 'requested 9 GPUs' in done.err, done


def test_a_file_is_copied_to_all_nodes_of_a_job(cluster):
    cluster.script('given\n', 'given')
    line = ('sbcast -f given copy; cat copy; sbcast given copy; echo $?; '
            'sbcast -f -p given copy; echo $?; sbcast nosuch copy; echo $?')
    job = cluster.wrap(line, '-N', 2, '--gres=gpu:1', '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    lines = cluster.read('out').splitlines()
    assert lines[0] == 'given' and [line for line in lines if line.isdigit()] == ['1', '0', '1'], lines
    assert any('copy: File exists' in line for line in lines) and "sbcast: error: Can't open `nosuch`" in lines[-2], lines
    assert cluster.out('sacct', '-n', '-P', '-j', f'{job}.0', '-o', 'NTasks,NodeList') == '2|n[1-2]\n'


def test_the_status_of_the_script_is_that_of_the_job(cluster):
    job = cluster.wrap('exit 3', '-N', 2, '--gres=gpu:1', '-o', 'out')
    ended = cluster.finish(job)
    assert (ended['state'], ended['exit_code']) == ('failed', 3), ended


@pytest.mark.parametrize(('options', 'nodes'), [(['-w', 'n2'], ['n2']), (['--exclude=n1'], ['n2']), (['-w', 'n[1-2]'], ['n1', 'n2'])])
def test_a_job_runs_on_the_nodes_that_are_listed(cluster, options, nodes):
    job = cluster.finish(cluster.wrap('true', '--gres=gpu:1', *options))
    assert [rank['node'] for rank in job['ranks'] or [job]] == nodes


def test_more_nodes_than_are_listed_are_refused(cluster):
    done = cluster.run('sbatch', '-N', '2', '-w', 'n1', '--wrap', 'true')
    assert done.code == 1 and 'Requested node configuration is not available' in done.err, done


def test_nodes_are_listed_in_one_line(cluster):
    assert cluster.out('sinfo', '-h', '-o', '%D %N') == '3 head,n[1-2]\n'
    assert cluster.out('sinfo', '-N', '-h', '-o', '%N').split() == ['head', 'n1', 'n2']


def test_the_columns_of_sinfo_for_nodes_stand_below_their_heads(cluster):
    lines = cluster.out('sinfo', '-N').splitlines()
    assert lines[0] == 'NODELIST   NODES PARTITION STATE ', lines
    assert lines[1].startswith('head           1      gpu* '), lines
    lines = cluster.out('sinfo', '-N', '-l').splitlines()
    assert re.fullmatch(r'NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON +', lines[1]), lines
    assert lines[2].startswith('head           1      gpu* ') and {len(line) for line in lines[1:]} == {len(lines[1])}, lines


def test_a_test_names_the_node(cluster):
    done = cluster.run('sbatch', '--test-only', '--wrap', 'true')
    assert done.code == 0 and re.fullmatch(r'sbatch: Job 0 to start at \S+ using 1 processors on nodes \S+ in partition gpu\n', done.err), done
    done = cluster.run('sbatch', '--test-only', '-w', 'n1', '--wrap', 'true')
    assert ' processors on nodes n1 in partition gpu' in done.err, done


@pytest.mark.parametrize('words', [['sbatch', '--wrap', 'true'], ['srun', 'true'], ['salloc', 'true']])
def test_a_time_that_is_none_is_refused_as_slurm_does(cluster, words):
    done = cluster.run(words[0], '--time=abc', *words[1:])
    assert done.code == 255 and done.err == f'{words[0]}: error: Invalid --time specification\n', done


def test_a_step_runs_on_all_nodes_of_its_job_and_each_task_sees_its_gpu(cluster):
    line = ('srun -l bash -c \'echo $SLURMD_NODENAME $SLURM_NODEID $SLURM_LOCALID $SLURM_STEP_ID of $SLURM_NTASKS; exit $SLURM_PROCID\'; '
            'srun -w n2 -n 1 bash -c \'echo $SLURM_JOB_NUM_NODES $SLURM_STEP_NODELIST\'; '
            'srun -x n1 -n 1 --gpus-per-task=1 bash -c \'echo "gpus: $CUDA_VISIBLE_DEVICES"\'')
    job = cluster.wrap(line, '-N', 2, '--ntasks-per-node=2', '--gres=gpu:1', '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    lines = cluster.read('out').splitlines()
    assert sorted(line for line in lines if line[1:2] == ':') == [
        '0: n1 0 0 0 of 4', '1: n1 0 1 0 of 4', '2: n2 1 0 0 of 4', '3: n2 1 1 0 of 4'], lines
    assert '2 n2' in lines
    assert [line for line in lines if line.startswith('gpus: ')] not in ([], ['gpus: '])
    out = cluster.out('sacct', '-n', '-P', '-j', job, '-o', 'JobID,State,ExitCode,NNodes,NTasks,NodeList')
    assert out.splitlines()[3:] == [f'{job}.0|FAILED|3:0|2|4|n[1-2]', f'{job}.1|COMPLETED|0:0|1|1|n2', f'{job}.2|COMPLETED|0:0|1|1|n2']


def test_steps_on_different_nodes_run_together(cluster):
    line = ('for n in n1 n2; do srun -w $n -n 1 bash -c "touch up.$n; until [ -e up.n1 -a -e up.n2 ]; do :; done" & done; wait')
    job = cluster.wrap(line, '-N', 2, '--ntasks-per-node=1', '--gres=gpu:1', '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')


def test_a_step_that_does_not_reach_mgpud_is_not_recorded(cluster):
    job = cluster.wrap('unset MGPU_SOCKET; srun bash -c \'echo "step $SLURM_STEP_ID"\'', '-n', 1, '--gres=gpu:1', '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert cluster.read('out') == 'srun: warning: mgpud does not answer: this step is not recorded\nstep 0\n'
