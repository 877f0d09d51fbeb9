#!/bin/bash -l
#SBATCH --nodes=1
#SBATCH --gres=gpu:2
#SBATCH --ntasks-per-node=2
#SBATCH --mem=0
#SBATCH --time=0-00:10:00
#SBATCH --signal=SIGUSR1@90

export NCCL_DEBUG=INFO
export PYTHONFAULTHANDLER=1
srun -l python train.py
