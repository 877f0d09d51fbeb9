#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:10:00
#SBATCH --export=ALL
module load openmpi
srun --cpu-bind=cores ./hello_mpi
