#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=5
#SBATCH hetjob
#SBATCH --ntasks=2
srun echo never
