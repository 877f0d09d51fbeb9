#!/bin/bash
#SBATCH --gres=gpu:nvidia_a100-sxm4-80gb:1
#SBATCH --time=5
python -c 'print(1)'
