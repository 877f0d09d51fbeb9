# SPDX-License-Identifier: MIT
"""Batch scripts as the help pages of sites print them, each submitted as it stands and run to its end.

The scripts are in slurm_scripts/. The programs that they run are stand-ins (PROGRAM), which print how they were called and
what of their surroundings such programs use. EXPECTED has what each script must have written, by file: `%j` is its number,
and the lines that tasks or steps print side by side are compared in any order.
"""

import os
import pathlib
import re

import cluster
import harness
import pytest
import slurm

FOLDER = pathlib.Path(__file__).parent / 'slurm_scripts'
NODES = 2

PROGRAM = r'''#!/bin/bash
name=${0##*/}
case "$name $1" in
"module "*) exit 0 ;;
"nvidia-smi -L") IFS=,; for gpu in $CUDA_VISIBLE_DEVICES; do echo "GPU: NVIDIA A100"; done; exit 0 ;;
"conda info") dirname "$(dirname "$0")"; exit 0 ;;
"conda shell.bash") cat "$(dirname "$0")/../etc/profile.d/conda.sh"; exit 0 ;;
"solver "*) cat; exit 0 ;;
"mpirun -np") for ((i = 0; i < $2; i++)); do OMPI_COMM_WORLD_RANK=$i "$3"; done; exit 0 ;;
"python broken.py") echo "Traceback: no such module" >&2; exit 3 ;;
"hello_mpi "*) echo "rank ${OMPI_COMM_WORLD_RANK-$SLURM_PROCID} of $SLURM_NTASKS"; exit 0 ;;
esac
gpus=0
[ -z "$CUDA_VISIBLE_DEVICES" ] || gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | wc -l)
echo "$name $* on $gpus GPUs as ${SLURM_PROCID:-0}/${SLURM_LOCALID:-0}"
'''

CONDA = 'conda() { [ "$1" != activate ] || export CONDA_DEFAULT_ENV=$2; }\n'

CONFIG = 'partitions:\n  gpu:\n    default: true\n    max-time: 8h\n  cpu:\n    max-time: 8h\n'

ONE = 'slurm-{j}.out'

EXPECTED = {
    'accelerate_nodes': {ONE: [f'accelerate launch --num_processes 4 --num_machines 2 --rdzv_backend c10d --main_process_ip n1 '
                               f'--main_process_port 9901 --machine_rank {rank} complete_nlp_example.py --mixed_precision fp16 '
                               f'on 2 GPUs as {rank}/0' for rank in (0, 1)]},
    'apptainer': {ONE: [r'apptainer exec --nv --bind \S+:/data pytorch.sif python /data/train.py on 1 GPUs as 0/0']},
    'array_in_bash_array': {f'seeds_{i}.txt': [f'python run.py --seed {i + 1}{i + 1} on 0 GPUs as 0/0'] for i in range(3)},
    'array_of_inputs': {f'logs/sweep_{{j}}_{i}.out': [f'task {i} of 4 from 1 to 4, job {{j}}', f'python sweep.py --lr {rate} on 0 GPUs as 0/0']
                        for i, rate in enumerate(('0.1', '0.01', '0.001', '0.0001'), 1)},
    'array_with_step': {f'step-{i}.log': [f'run {i}', f'run {i + 10}'] for i in (10, 30, 50)},
    'chain_head': {'chain.out': ['3'], 'chain-1.out': ['prepare'], 'chain-2.out': ['train'], 'chain-3.out': ['prepare', 'train']},
    'conda_hook': {'conda_hook.sh.{j}': ['environment: torch', 'python -u main.py on 1 GPUs as 0/0']},
    'conda_profile': {ONE: ['environment: base']},
    'constraint': {ONE: ['python inference.py on 1 GPUs as 0/0']},
    'deepspeed_hostfile': {ONE: ['n1 slots=2', 'n2 slots=2', 'deepspeed --hostfile hostfile.{j} --master_port 29600 train.py '
                                 '--deepspeed ds_config.json on 2 GPUs as 0/0']},
    'ended_header': {ONE: ['first']},
    'failing': {'failing.out': ['before', 'Traceback: no such module']},
    'gpu_per_step': {ONE: ['step on a GPU', 'step on a GPU']},
    'gpus_option': {ONE: ['gpus=2 cpus=1 mem=512', 'python fit.py on 2 GPUs as 0/0']},
    'gpus_per_node': {ONE: [f'{rank}: python ddp.py on 2 GPUs as {rank}/{rank % 2}' for rank in range(4)]},
    'gpus_per_task': {ONE: ['task 0 has 1 GPU', 'task 1 has 1 GPU']},
    'gres_autodetect_type': {ONE: [r'python -c print\(1\) on 1 GPUs as 0/0']},
    'gres_type': {ONE: ['GPUs: 0,1 - 2 on this node', 'python multi_gpu.py on 2 GPUs as 0/0']},
    'hello': {'hello-{j}.out': [r'Hello from hello on \S+']},
    'heredoc_program': {'heredoc.out': ['title   run of mgpu-ta', 'nodes   1']},
    'jax_nodes': {ONE: ['process 0 of 2, local 0, node 0', 'process 1 of 2, local 0, node 1']},
    'jupyter': {'jupyter-{j}.log': ['Tunnel:', r'ssh -N -L \d+:\S+:\d+ mgpu-ta@login.cluster.example.edu', r'Then open http://localhost:\d+',
                                    r'jupyter notebook --no-browser --port=\d+ --ip=\S+ on 1 GPUs as 0/0']},
    'lightning': {ONE: ['0: python train.py on 2 GPUs as 0/0', '1: python train.py on 2 GPUs as 1/1']},
    'mail': {ONE: ['done']},
    'mpi_mpirun': {ONE: [f'rank {rank} of 2' for rank in range(2)]},
    'mpi_srun': {ONE: [f'rank {rank} of 4' for rank in range(4)]},
    'one_gpu_python': {'train_{j}.out': ['GPU: NVIDIA A100', 'python train.py --epochs 3 on 1 GPUs as 0/0'],
                       'train_{j}.err': ['finished with status 0']},
    'openmp': {ONE: ['threads: 2']},
    'parallel_steps': {ONE: ['part 1', 'part 2', 'part 3', 'part 4', 'all parts done']},
    'plain_sh': {ONE: ['in the directory of the submission', '1']},
    'python_script': {'py.out': ['job py tasks 1', 'GPUs 1']},
    'ray': {ONE: ['ray start --head --port=6379 --block on 2 GPUs as 0/0', 'ray start --address n1:6379 --block on 2 GPUs as 0/0',
                  'python -u simple-trainer.py on 2 GPUs as 0/0']},
    'requeue_on_signal': {'requeue-{j}.log': ['checkpoint before the limit', 'continued after restart 1']},
    'scratch_and_trap': {'scratch.out': ['cleaned up'], 'copied': ['computed']},
    'self_resubmitting': {'resubmit-{j}.out': ['round 0', r'Submitted batch job \d+'], 'next-0': [r'Submitted batch job \d+'],
                          'next-1': [r'Submitted batch job \d+']},
    'serial_steps': {ONE: ['first', 'second', '2']},
    'torchrun_nodes': {ONE: ['Node IP: known'] + [
        r'torchrun --nnodes 2 --nproc_per_node 1 --rdzv_id \d+ --rdzv_backend c10d --rdzv_endpoint n1:29500 multinode_trainer.py 50 10 '
        f'on 1 GPUs as {rank}/0' for rank in (0, 1)]},
    'torchrun_one_node': {ONE: ['torchrun --standalone --nproc_per_node=4 train.py on 4 GPUs as 0/0']},
    'variables': {ONE: ['Job ID: {j} / {j}', 'Partition: gpu', 'Nodes: 1 1', 'Tasks: 2 2 2', 'Cluster: mgpu', 'JobName=vars', 'RUNNING']},
    'venv': {ONE: ['in the environment', 'python evaluate.py on 0 GPUs as 0/0']},
    'venv_in_tmpdir': {ONE: ['some data'], 'result-{j}.txt': ['some data']},
}

ENDS = {'failing': ('failed', 3)}  # others: done, 0


@pytest.fixture(scope='module')
def nodes(ana, tmp_path_factory):
    config = tmp_path_factory.mktemp('site') / 'mgpu.yaml'
    config.write_text(CONFIG)
    os.chmod(config, 0o644)
    for folder in list(config.parents)[:2]:
        os.chmod(folder, 0o755)
    with cluster.Cluster(NODES, gpus='sim:4x80G:NVIDIA A100-SXM4-80GB', client=ana, arguments=['--config', str(config)]) as made:
        yield made


@pytest.fixture
def site(nodes, place):
    """Commands, in a home directory with the programs of the scripts."""
    made = slurm.Slurm(nodes.box, place)
    with nodes.box.client.acting():
        for folder in ('sw/bin', 'sw/etc/profile.d', 'env/bin', 'logs'):
            os.makedirs(f'{place}/{folder}')
        pathlib.Path(f'{place}/sw/etc/profile.d/conda.sh').write_text(CONDA, encoding='utf-8')
        pathlib.Path(f'{place}/env/bin/activate').write_text('echo in the environment\n', encoding='utf-8')
        program = pathlib.Path(f'{place}/sw/bin/program')
        program.write_text(PROGRAM, encoding='utf-8')
        program.chmod(0o755)
        pathlib.Path(f'{place}/.bash_profile').write_text(f'PATH={place}/sw/bin:{made.folder}:$PATH\n', encoding='utf-8')
        for name in ('module', 'python', 'nvidia-smi', 'conda', 'solver', 'torchrun', 'accelerate', 'deepspeed', 'ray', 'jupyter',
                     'apptainer', 'mpirun'):
            os.symlink('program', f'{place}/sw/bin/{name}')
        os.symlink('sw/bin/program', f'{place}/hello_mpi')
    yield made
    nodes.box.cancel_all()


def submit(site, name):
    env = {'HOME': site.place, 'PATH': f'{site.place}/sw/bin:{site.environment()["PATH"]}'}
    script = pathlib.Path(site.place) / f'{name}.sh'  # the checkout may be closed to its user
    script.write_text((FOLDER / f'{name}.sh').read_text(encoding='utf-8'), encoding='utf-8')
    return site.run('sbatch', '--parsable', script, env=env)


def check(path, expected):
    """Each expression is a line of the file, and the file has no others."""
    lines = path.read_text(encoding='utf-8').splitlines()
    for expression in expected:
        found = next((line for line in lines if re.fullmatch(expression, line)), None)
        assert found is not None, f'{path.name} lacks {expression}: {lines}'
        lines.remove(found)
    assert lines == [], f'{path.name} has more: {lines}'


@pytest.mark.parametrize('name', EXPECTED)
def test_a_script_runs_to_its_end_as_it_stands(site, name):
    done = submit(site, name)
    assert done.code == 0 and done.err == '', done
    job = int(done.out)
    end = site.finish(job)
    harness.until(lambda: not site.box.open_jobs(), 'the end of the jobs that it has submitted')
    assert (end['state'], end['exit_code']) == ENDS.get(name, ('done', 0)), end
    for file, expected in EXPECTED[name].items():
        check(pathlib.Path(site.place, file.replace('{j}', str(job))), [line.replace('{j}', str(job)) for line in expected])


def test_a_heterogeneous_job_is_refused_in_a_sentence(site):
    done = submit(site, 'hetjob')
    assert done.code == 1 and 'there are no heterogeneous jobs' in done.err and done.out == '', done


def test_each_script_is_in_the_table():
    assert {path.stem for path in FOLDER.glob('*.sh')} == {*EXPECTED, 'hetjob'}
