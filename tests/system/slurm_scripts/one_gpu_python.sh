#!/bin/bash
#SBATCH -J train
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH -c 2
#SBATCH --mem=2G
#SBATCH -t 0-00:10:00
#SBATCH -o train_%j.out
#SBATCH -e train_%j.err

module purge
module load python/3.11 cuda/12.1

nvidia-smi -L
srun python train.py --epochs 3
echo "finished with status $?" >&2
