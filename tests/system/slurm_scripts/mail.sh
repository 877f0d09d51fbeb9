#!/bin/bash
#SBATCH --mail-type=NONE
#SBATCH --mail-user=someone@example.edu
#SBATCH --qos=normal
#SBATCH --comment="weekly run"
#SBATCH --nice=10
#SBATCH --get-user-env
#SBATCH --time=1:00
echo done
