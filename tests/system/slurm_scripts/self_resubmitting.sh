#!/bin/bash
#SBATCH --time=5
#SBATCH --output=resubmit-%j.out
count=${COUNT:-0}
echo "round $count"
if [ $count -lt 2 ]; then
    COUNT=$((count + 1)) sbatch --dependency=afterok:$SLURM_JOB_ID "$0" > next-$count
    cat next-$count
fi
