#!/bin/bash
#SBATCH --time=5
#SBATCH --output=failing.out
set -euo pipefail
echo before
python broken.py
echo never
