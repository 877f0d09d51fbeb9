#!/bin/bash
#SBATCH --account=def-someone
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=1000M
#SBATCH --time=0-00:10

module load StdEnv/2023 python/3.11
export SLURM_TMPDIR=${SLURM_TMPDIR:-$(mktemp -d)}
mkdir -p $SLURM_TMPDIR/data
echo "some data" > $SLURM_TMPDIR/data/input
cp $SLURM_TMPDIR/data/input result-$SLURM_JOB_ID.txt
cat result-$SLURM_JOB_ID.txt
