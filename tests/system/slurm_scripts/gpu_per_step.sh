#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --gres=gpu:2
#SBATCH --time=00:10:00
srun -n1 --gres=gpu:1 --exact --mem=100M bash -c 'echo "step on ${CUDA_VISIBLE_DEVICES:+a GPU}"' &
srun -n1 --gres=gpu:1 --exact --mem=100M bash -c 'echo "step on ${CUDA_VISIBLE_DEVICES:+a GPU}"' &
wait
