#!/bin/bash
#SBATCH --array=10-50:20
#SBATCH --output=step-%a.log
#SBATCH --time=5
START=$SLURM_ARRAY_TASK_ID
for ((i = START; i < START + SLURM_ARRAY_TASK_STEP; i += 10)); do
    echo "run $i"
done
