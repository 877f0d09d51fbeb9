#!/bin/bash
#SBATCH --job-name=vars
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --time=5
echo "Job ID: $SLURM_JOB_ID / $SLURM_JOBID"
echo "Partition: $SLURM_JOB_PARTITION"
echo "Nodes: $SLURM_NNODES $SLURM_JOB_NUM_NODES"
echo "Tasks: $SLURM_NTASKS $SLURM_NPROCS $SLURM_TASKS_PER_NODE"
echo "Cluster: $SLURM_CLUSTER_NAME"
scontrol show job $SLURM_JOB_ID | grep -o 'JobName=vars'
squeue -h -j $SLURM_JOB_ID -o '%T'
