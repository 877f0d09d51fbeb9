#!/bin/bash
#SBATCH --time=00:02:00
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=requeue-%j.log

checkpoint_and_requeue() {
    echo "checkpoint before the limit"
    scontrol requeue $SLURM_JOB_ID
    wait
}
trap checkpoint_and_requeue USR1

if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
    echo "continued after restart $SLURM_RESTART_COUNT"
    exit 0
fi
sleep 90 &
kill -USR1 $$
wait
