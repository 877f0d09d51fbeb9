# SPDX-License-Identifier: MIT
"""A stand-in for Lightning where it is not installed: the part of its interface that examples/lightning uses, on the CPU.

What matters here is as in Lightning 2: ranks of torchrun or srun (recognized by SLURM_NTASKS), hooks and their order, what a checkpoint
restores, and the signals. Under srun SIGUSR1 saves hpc_ckpt_N.ckpt and calls `scontrol requeue`, a file of that name is continued from,
and SIGTERM is passed by. Here all ranks save after the same step; Lightning saves in the handler of the signal, and ranks that are not
in the same step by then wait for each other for ever. It shows that the example and mgpu do their parts, not that Lightning works."""

import glob
import os
import re
import signal
import subprocess

import torch
import torch.distributed


def seed_everything(seed):
    torch.manual_seed(seed)


class Callback:
    def on_fit_start(self, trainer, pl_module):
        """Before everything else of fit()."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        """After each step of the optimizer."""


class LightningModule(torch.nn.Module):
    trainer = None

    def on_train_start(self):
        """After a checkpoint was restored."""


class Strategy:
    def __init__(self, world):
        self.world = world

    def reduce_boolean_decision(self, decision, all=True):  # noqa: A002 - its name there
        if self.world == 1:
            return decision
        votes = torch.tensor(int(decision))
        torch.distributed.all_reduce(votes)
        return bool(votes.item() == self.world) if all else bool(votes.item())

    def barrier(self):
        if self.world > 1:
            torch.distributed.barrier()


def ranks():
    """(rank, number of ranks, whether srun started them)"""
    if 'SLURM_NTASKS' in os.environ:
        return int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS']), True
    return int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1)), False


class Trainer:
    def __init__(self, *, max_steps, devices, default_root_dir, callbacks, **_):
        self.max_steps, self.root, self.callbacks, self.global_step = max_steps, default_root_dir, callbacks, 0
        self.rank, self.world, self.is_slurm = ranks()
        assert self.world in (1, devices), f'{self.world} processes for {devices} devices'
        self.is_global_zero, self.strategy = self.rank == 0, Strategy(self.world)
        self.module = self.optimizer = None
        self.is_requeue_asked = False

    def connect(self):
        if self.is_slurm:
            os.environ.setdefault('MASTER_ADDR', '127.0.0.1')
            os.environ.setdefault('MASTER_PORT', str(15000 + int(os.environ['SLURM_JOB_ID'][-4:])))
            signal.signal(signal.SIGUSR1, self.ask_for_requeue)
            signal.signal(signal.SIGTERM, lambda number, frame: print(f'Bypassing SIGTERM: {number}', flush=True))
        if self.world > 1:
            torch.distributed.init_process_group('gloo', rank=self.rank, world_size=self.world)

    def ask_for_requeue(self, number, frame):
        self.is_requeue_asked = True

    def requeue(self):
        self.is_requeue_asked = False
        self.save_checkpoint(f'{self.root}/hpc_ckpt_{self.newest() + 1}.ckpt')
        if self.is_global_zero:
            subprocess.call(['scontrol', 'requeue', os.environ['SLURM_JOB_ID']])

    def newest(self):
        return max((int(re.search(r'(\d+)\.ckpt$', path)[1]) for path in glob.glob(f'{self.root}/hpc_ckpt_*.ckpt')), default=0)

    def save_checkpoint(self, path):
        if self.is_global_zero:
            torch.save({'step': self.global_step, 'model': self.module.state_dict(), 'optimizer': self.optimizer.state_dict()}, path)
        self.strategy.barrier()

    def restore(self, path):
        state = torch.load(path)
        self.global_step = state['step']
        self.module.load_state_dict(state['model'])
        self.optimizer.load_state_dict(state['optimizer'])

    def fit(self, model, batches, ckpt_path=None):
        self.module, model.trainer = model, self
        self.optimizer = model.configure_optimizers()
        for callback in self.callbacks:
            callback.on_fit_start(self, model)
        if self.is_slurm and self.newest():
            ckpt_path = f'{self.root}/hpc_ckpt_{self.newest()}.ckpt'
        if ckpt_path:
            self.restore(ckpt_path)
        self.connect()
        model.on_train_start()
        while self.global_step < self.max_steps:
            for i, batch in enumerate(batches):
                self.step(batch, i)
                if self.global_step == self.max_steps:
                    break

    def step(self, batch, i):
        loss = self.module.training_step(batch, i)
        self.optimizer.zero_grad()
        loss.backward()
        for parameter in self.module.parameters() if self.world > 1 else ():
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad /= self.world
        self.optimizer.step()
        self.global_step += 1
        if self.is_slurm and self.strategy.reduce_boolean_decision(self.is_requeue_asked, all=False):
            self.requeue()
        for callback in self.callbacks:
            callback.on_train_batch_end(self, self.module, {'loss': loss}, batch, i)
