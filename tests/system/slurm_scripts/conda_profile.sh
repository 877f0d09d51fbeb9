#!/bin/bash
#SBATCH --time=5
source $(conda info --base)/etc/profile.d/conda.sh
conda activate base
echo "environment: $CONDA_DEFAULT_ENV"
