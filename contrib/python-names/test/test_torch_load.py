#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Part of mgpu: made by `mgpu compat install --python`.
"""What torch sees of the GPUs of this job: version, CUDA, and each GPU with its memory.

    mgpu run -g 2 -- ./torch_check.py
    mgpu_simple_client submit --gpus 2 --interactive "./torch_check.py"

Exits with 1 when torch is not installed, and when CUDA works but shows another number of GPUs than the job was given.
Without CUDA (simulated GPUs, torch for the CPU) that is said, and is no failure.
"""

import os
import sys


def main():
    given = [word for word in os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',') if word]
    print(f'job {os.environ.get("MGPU_JOB_ID", "-")} on {os.environ.get("MGPU_NODE", "this machine")}: '
          f'{len(given)} GPU(s) given: {",".join(given) or "none"}')
    try:
        import torch
    except ImportError as error:
        print(f'torch cannot be imported: {error}')
        return 1
    print(f'torch {torch.__version__}')
    if not torch.cuda.is_available():
        print('CUDA is not available: torch computes on the CPU here')
        print(f'sum of ones on cpu: {torch.ones(1000).sum().item():.0f}')
        return 0
    count = torch.cuda.device_count()
    print(f'CUDA {torch.version.cuda}, {count} GPU(s)')
    for index in range(count):
        gpu = torch.cuda.get_device_properties(index)
        total = torch.ones(1000, device=f'cuda:{index}').sum().item()
        print(f'  cuda:{index}: {gpu.name}, {gpu.total_memory // 2**20} MiB; sum of ones there: {total:.0f}')
    return 0 if count == len(given) else 1


if __name__ == '__main__':
    sys.exit(main())
