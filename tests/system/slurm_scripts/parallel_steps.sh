#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00
for i in 1 2 3 4; do
    srun --ntasks=1 --exclusive --nodes=1 bash -c "echo part $i" &
done
wait
echo all parts done
