#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --time=00:10:00
#SBATCH --output=jupyter-%J.log

port=$(shuf -i 8000-9999 -n 1)
node=$(hostname -s)
user=$(whoami)

cat <<END
Tunnel:
ssh -N -L ${port}:${node}:${port} ${user}@login.cluster.example.edu
Then open http://localhost:${port}
END
jupyter notebook --no-browser --port=${port} --ip=${node}
