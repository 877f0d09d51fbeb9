#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A data-parallel training with JAX: one process for each node, which uses all GPUs that the job has there.

    mgpu submit -g 2 -J fit -- python3 train.py
    mgpu submit -N 2 -g 4 -J fit -- python3 train.py

Argument: the number of steps.
"""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
BATCH = 64  # samples for each GPU
RATE = 0.1
TRUTH = np.array([2.0, -3.0, 0.5], dtype=np.float32)


def join():
    """Connects the nodes of the job by the variables that mgpu sets; a job on one node needs none."""
    if int(os.environ.get('MGPU_NNODES', 1)) > 1:
        jax.distributed.initialize(coordinator_address=f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
                                   num_processes=int(os.environ['MGPU_NNODES']), process_id=int(os.environ['MGPU_NODE_RANK']))


def loss_of(weights, samples, targets):
    return jnp.mean((samples @ weights - targets) ** 2)


@jax.jit
def step(weights, samples, targets):
    """The mean is over the samples of all GPUs: JAX adds what is needed between them."""
    loss, slope = jax.value_and_grad(loss_of)(weights, samples, targets)
    return weights - RATE * slope, loss


def main():
    join()
    mesh = Mesh(np.array(jax.devices()), ('gpu',))
    is_split, is_same = NamedSharding(mesh, PartitionSpec('gpu')), NamedSharding(mesh, PartitionSpec())
    print(f'process {jax.process_index()} of {jax.process_count()} with {jax.local_device_count()} of {jax.device_count()} devices, '
          f"GPUs {os.environ.get('MGPU_GPUS')}", flush=True)
    random = np.random.default_rng(jax.process_index())  # each process draws its own samples
    weights, loss = jax.make_array_from_process_local_data(is_same, np.zeros(3, dtype=np.float32)), None
    for _ in range(STEPS):
        samples = random.standard_normal((BATCH * jax.local_device_count(), 3), dtype=np.float32)
        weights, loss = step(weights, jax.make_array_from_process_local_data(is_split, samples),
                             jax.make_array_from_process_local_data(is_split, samples @ TRUTH))
    error = float(jnp.max(jnp.abs(weights - TRUTH)))
    print(f'process {jax.process_index()}: loss {float(loss):.5f}, error of the weights {error:.5f}', flush=True)
    return 0 if error < 0.05 else 1


if __name__ == '__main__':
    sys.exit(main())
