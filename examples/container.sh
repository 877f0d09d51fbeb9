#!/bin/bash
# A job in a container: mgpu submit examples/container.sh
#MGPU -g 1 -t 10m -J container
#MGPU --image docker.io/pytorch/pytorch:latest
python -c 'import torch; print(torch.__version__, torch.cuda.device_count(), "GPU(s)")'
