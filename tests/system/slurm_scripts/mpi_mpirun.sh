#!/bin/bash
#SBATCH -N 1
#SBATCH -n 2
#SBATCH -t 00:10:00
module load gcc openmpi
mpirun -np $SLURM_NTASKS ./hello_mpi
