#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=a100:2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:10:00
srun -l python ddp.py
