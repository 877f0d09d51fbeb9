#!/bin/bash
#SBATCH --job-name=omp
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=00:05:00
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
echo "threads: $OMP_NUM_THREADS"
