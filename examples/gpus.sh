#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the GPUs and variables of the job.
echo "job $MGPU_JOB_ID runs as $(id -un) in $PWD"
echo "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
env | grep '^MGPU_' | sort
if command -v nvidia-smi >/dev/null 2>&1; then
    nvidia-smi -L
fi
