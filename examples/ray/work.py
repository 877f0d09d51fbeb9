#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Trials on a Ray cluster, one on each GPU at a time: work.py [TRIALS]"""

import os
import sys
import time

import ray

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 8
START_S = 120


@ray.remote(num_gpus=1)
def trial(rate):
    """The loss after some steps, and where it ran. Ray sets CUDA_VISIBLE_DEVICES to one of the GPUs of the job."""
    time.sleep(1)  # the work
    return (1 - rate) ** 2, f"{os.environ.get('MGPU_NODE')}:{os.environ.get('CUDA_VISIBLE_DEVICES')}"


def main():
    ray.init(address=os.environ['RAY_ADDRESS'])
    end = time.monotonic() + START_S
    while len([node for node in ray.nodes() if node['Alive']]) < int(os.environ['RAY_NODES']):
        if time.monotonic() > end:
            sys.exit('work.py: not all nodes have joined Ray')
        time.sleep(0.2)
    print(f"{ray.cluster_resources()['GPU']:.0f} GPUs on {os.environ['RAY_NODES']} nodes", flush=True)
    results = ray.get([trial.remote(i / TRIALS) for i in range(TRIALS)])
    for i, (loss, gpu) in enumerate(results):
        print(f'trial {i} on {gpu}: loss {loss:.5f}')
    print(f'{TRIALS} trials on {len({gpu for _, gpu in results})} GPUs: best {min(results)[0]:.5f}')


if __name__ == '__main__':
    main()
