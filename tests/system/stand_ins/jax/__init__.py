# SPDX-License-Identifier: MIT
"""A stand-in for JAX where it is not installed: the part of its interface that examples/jax uses, with numpy.

What matters here is as in JAX: the processes of initialize() find each other at the coordinator's address, a device is one of the job's GPUs, and a
split array has the parts of all processes. Slopes are differences, and each process computes the whole. It shows that the example and mgpu do their
parts, not that JAX works."""

import os

import numpy as np

from jax import distributed
from jax import sharding  # noqa: F401 - a module there

STEP = 1e-3


def local_device_count():
    return max(1, int(os.environ.get('MGPU_NUM_GPUS', 1)))


def device_count():
    return sum(distributed.gather(local_device_count()))


def devices():
    return list(range(device_count()))


def process_index():
    return distributed.rank()


def process_count():
    return distributed.processes()


def jit(function):
    return function


def value_and_grad(function):
    def both(weights, *others):
        slope = np.zeros(len(weights))
        for i in range(len(weights)):
            aside = np.zeros(len(weights))
            aside[i] = STEP
            slope[i] = (function(weights + aside, *others) - function(weights - aside, *others)) / (2 * STEP)
        return function(weights, *others), slope

    return both


def make_array_from_process_local_data(placement, local):
    return np.concatenate(distributed.gather(local)) if placement.is_split else local
