#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --time=00:10:00

function makehostfile() {
    perl -e '$slots=split /,/, $ENV{"SLURM_STEP_GPUS"} || $ENV{"CUDA_VISIBLE_DEVICES"}; $slots=2 if $slots==0;
             @nodes = split /\n/, qx[scontrol show hostnames $ENV{"SLURM_JOB_NODELIST"}];
             print map { "$b$_ slots=$slots\n" } @nodes'
}
makehostfile > hostfile.$SLURM_JOB_ID
cat hostfile.$SLURM_JOB_ID
deepspeed --hostfile hostfile.$SLURM_JOB_ID --master_port 29600 train.py --deepspeed ds_config.json
