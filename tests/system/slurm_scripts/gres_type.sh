#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --gres=gpu:a100:2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=10

echo "GPUs: $CUDA_VISIBLE_DEVICES - $SLURM_GPUS_ON_NODE on this node"
python multi_gpu.py
