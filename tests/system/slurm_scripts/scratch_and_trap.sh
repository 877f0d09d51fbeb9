#!/bin/bash
#SBATCH --time=00:05:00
#SBATCH --output=scratch.out
SCRATCH=$(mktemp -d /tmp/$USER.$SLURM_JOB_ID.XXXX)
cleanup() {
    cp $SCRATCH/out $SLURM_SUBMIT_DIR/copied
    rm -rf $SCRATCH
    echo "cleaned up"
}
trap cleanup EXIT
cd $SCRATCH
echo computed > out
