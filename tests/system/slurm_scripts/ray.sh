#!/bin/bash
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --tasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --time=5

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
srun --nodes=1 --ntasks=1 -w "$head_node" ray start --head --port=6379 --block &
wait
worker_num=$((SLURM_JOB_NUM_NODES - 1))
for ((i = 1; i <= worker_num; i++)); do
    srun --nodes=1 --ntasks=1 -w "${nodes_array[$i]}" ray start --address "$head_node:6379" --block &
done
wait
python -u simple-trainer.py
