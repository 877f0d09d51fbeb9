#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --time=00:10:00
export MASTER_PORT=$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))
torchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE train.py
