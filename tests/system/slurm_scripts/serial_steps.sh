#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=10:00
srun --ntasks=1 echo first
srun --ntasks=1 echo second
sacct -j $SLURM_JOB_ID --format=JobID,JobName%20,State -n -P | grep -c '\.[0-9]'
