#!/bin/bash
#SBATCH --gpus=1
#SBATCH --time=00:05:00
export APPTAINER_CACHEDIR=$SLURM_TMPDIR
srun apptainer exec --nv --bind $PWD:/data pytorch.sif python /data/train.py
