#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH -t 5
export COORDINATOR=$(scontrol show hostname "$SLURM_NODELIST" | head -n1):1234
srun bash -c 'echo "process $SLURM_PROCID of $SLURM_NTASKS, local $SLURM_LOCALID, node $SLURM_NODEID"'
