#!/bin/bash
#SBATCH --array=0-2
#SBATCH -t 5
#SBATCH -o seeds_%a.txt
SEEDS=(11 22 33)
python run.py --seed ${SEEDS[$SLURM_ARRAY_TASK_ID]}
