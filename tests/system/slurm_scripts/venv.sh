#!/bin/bash
#SBATCH --time=5
#SBATCH --account=def-someone
#SBATCH --mem=500M
source ~/env/bin/activate
python evaluate.py
