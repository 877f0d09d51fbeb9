#!/bin/bash
#SBATCH --gpus=1
#SBATCH --constraint=a100
#SBATCH --time=5
python inference.py
