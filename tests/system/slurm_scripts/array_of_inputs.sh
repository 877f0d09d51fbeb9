#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=1-4%2
#SBATCH --output=logs/sweep_%A_%a.out
#SBATCH --error=logs/sweep_%A_%a.err
#SBATCH --ntasks=1
#SBATCH --time=00:05:00

LINE=$(sed -n "${SLURM_ARRAY_TASK_ID}p" <<'EOF'
--lr 0.1
--lr 0.01
--lr 0.001
--lr 0.0001
EOF
)
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT from $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX, job $SLURM_ARRAY_JOB_ID"
python sweep.py $LINE
