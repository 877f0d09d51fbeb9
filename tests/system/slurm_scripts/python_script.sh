#!/usr/bin/env python3
#SBATCH --job-name=py
#SBATCH --gres=gpu:1
#SBATCH --time=5
#SBATCH --output=py.out
import os
print('job', os.environ['SLURM_JOB_NAME'], 'tasks', os.environ.get('SLURM_NTASKS', '1'))
print('GPUs', len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')))
