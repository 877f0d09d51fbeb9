# SPDX-License-Identifier: MIT
"""A real data-parallel training, submitted as a user would: two ranks, gloo on the CPU or NCCL on GPUs."""

import re
import shutil

import pytest

import harness

TIMEOUT_S = 180


def has_torch():
    return shutil.which('torchrun') is not None and harness.has_module('torch')


needs_torch = pytest.mark.skipif(not has_torch(), reason='python3-torch is not installed')


@needs_torch
def test_a_training_on_two_gpus_converges_and_names_its_ranks(make_instance, place):
    instance = make_instance(gpus='sim:8x24G')
    train = shutil.copy(f'{harness.ROOT}/examples/train.py', place)
    job = instance.submit('-G', '3,1', '-J', 'train', '-C', place, '--', 'torchrun', '-r', '1', '-t', '1',
                          '--nproc_per_node=2', '--rdzv_backend=c10d', '--rdzv_endpoint=localhost:0', train,
                          env={'PATH': '/usr/bin:/bin', 'TORCH_HOME': place})
    done = instance.wait(job, timeout_s=TIMEOUT_S)
    output = instance.output(job)
    assert done['state'] == 'done', output
    ranks = re.findall(r'rank (\d) of 2 on \w+(?::\d)?, CUDA_VISIBLE_DEVICES=3,1: loss ([\d.]+) -> ([\d.]+)', output)
    assert sorted(rank for rank, _, _ in ranks) == ['0', '1'], output
    assert all(float(last) < 0.01 < float(first) for _, first, last in ranks), output
    assert 'converged' in output and 'NOT' not in output


@needs_torch
@pytest.mark.gpu
def test_a_training_on_real_gpus(make_instance, place):
    instance = make_instance(gpus='auto')
    count = min(2, len(instance.gpus()))
    train = shutil.copy(f'{harness.ROOT}/examples/train.py', place)
    job = instance.submit('-g', count, '-C', place, '--', 'torchrun', '-r', '1', '-t', '1', f'--nproc_per_node={count}',
                          '--rdzv_backend=c10d', '--rdzv_endpoint=localhost:0', train)
    assert instance.wait(job, timeout_s=TIMEOUT_S)['state'] == 'done', instance.output(job)
