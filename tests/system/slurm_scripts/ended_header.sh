#!/bin/bash
## A comment of the site's
#SBATCH --job-name=first    # a remark behind an option
#SBATCH --time=5
##SBATCH --job-name=commented-out

echo "$SLURM_JOB_NAME"
#SBATCH --job-name=too-late
