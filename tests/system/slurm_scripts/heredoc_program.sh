#!/bin/bash
#SBATCH -t 5
#SBATCH -o heredoc.out
cat > input.$SLURM_JOB_ID <<EOF
title   run of $SLURM_JOB_USER
nodes   $SLURM_JOB_NUM_NODES
EOF
solver < input.$SLURM_JOB_ID
