#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small data-parallel training, one process per GPU, that shows itself converging.

    mgpu submit -g 2 -J train -- torchrun -r 1 -t 1 --nproc_per_node=2 train.py

(-r 1 -t 1 sends each rank's output to the log with its rank before it; Debian 12's torchrun does not start without
them. Add --rdzv_backend=c10d --rdzv_endpoint=localhost:0 when several such jobs run on one machine.)

Each rank draws its own samples of a noisy plane; DistributedDataParallel averages the gradients, so that all ranks
end with the same weights. It uses CUDA and NCCL when every rank has a GPU that torch can use, else the CPU and
gloo. Exits with 1 when the training does not converge or the ranks do not agree.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 200
TRUE_WEIGHTS = (2.0, -3.0, 0.5)
TOLERANCE = 0.05


def main():
    rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    local_rank = int(os.environ['LOCAL_RANK'])
    use_cuda = torch.cuda.is_available() and torch.cuda.device_count() >= int(os.environ['LOCAL_WORLD_SIZE'])
    device = torch.device('cuda', local_rank) if use_cuda else torch.device('cpu')
    dist.init_process_group('nccl' if use_cuda else 'gloo')
    torch.set_num_threads(1)
    torch.manual_seed(1 + rank)

    plane = torch.nn.Linear(3, 1).to(device)
    model = DistributedDataParallel(plane, device_ids=[local_rank] if use_cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    truth = torch.tensor(TRUE_WEIGHTS, device=device)
    first = last = 0.0
    for step in range(STEPS):
        samples = torch.randn(64, 3, device=device)
        targets = (samples * truth).sum(1, keepdim=True) + 0.01 * torch.randn(64, 1, device=device)
        loss = torch.nn.functional.mse_loss(model(samples), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
        first = last if step == 0 else first

    weights = plane.weight.detach().flatten()
    everyone = [torch.empty_like(weights) for _ in range(world)]
    dist.all_gather(everyone, weights)
    is_same = all(torch.equal(weights, other) for other in everyone)
    is_close = bool((weights - truth).abs().max() < TOLERANCE)
    # One write per line, so that the ranks' lines do not mix.
    sys.stdout.write(f"rank {rank} of {world} on {device}, CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES')}: "
                     f"loss {first:.3f} -> {last:.5f}\n")
    sys.stdout.flush()
    dist.barrier()
    if rank == 0:
        sys.stdout.write('converged\n' if is_close and is_same else
                         f'NOT converged: weights {weights.tolist()}, ranks agree: {is_same}\n')
        sys.stdout.flush()
    dist.destroy_process_group()
    return 0 if is_close and is_same else 1


if __name__ == '__main__':
    sys.exit(main())
