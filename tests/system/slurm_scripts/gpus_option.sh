#!/bin/bash
#SBATCH --gpus=2
#SBATCH --cpus-per-gpu=1
#SBATCH --mem-per-gpu=512M
#SBATCH --time=00:10:00
echo "gpus=$SLURM_GPUS cpus=$SLURM_CPUS_PER_GPU mem=$SLURM_MEM_PER_GPU"
python fit.py
