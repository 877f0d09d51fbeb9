#!/bin/sh
#SBATCH -J old
#SBATCH -n 1
#SBATCH -t 1
#SBATCH -D .

cd $SLURM_SUBMIT_DIR
[ "$SLURM_SUBMIT_DIR" = "$PWD" ] && echo in the directory of the submission
echo $SLURM_SUBMIT_HOST | wc -w
