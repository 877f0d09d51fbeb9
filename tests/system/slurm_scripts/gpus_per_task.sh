#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00
srun bash -c 'echo "task $SLURM_PROCID has $(echo $CUDA_VISIBLE_DEVICES | tr , "\n" | wc -l) GPU"'
