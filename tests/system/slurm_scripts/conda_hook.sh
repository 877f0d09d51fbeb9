#!/bin/bash -l
#SBATCH --gres=gpu:1
#SBATCH --time=00:10:00
#SBATCH --output=%x.%j

eval "$(conda shell.bash hook)"
conda activate torch
echo "environment: $CONDA_DEFAULT_ENV"
python -u main.py
conda deactivate
