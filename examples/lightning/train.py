#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A training with Lightning that saves its work on request, and continues from there in its next attempt.

    mgpu submit -g 1 --preemptible --checkpoint --signal USR1 --grace 5m -J fit -- python3 train.py

Argument: the number of steps. In a job of sbatch with srun (train.sbatch), Lightning saves and requeues the job itself.
"""

import os
import signal
import subprocess
import sys
import time

import lightning as L
import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
IS_SLURM = 'SLURM_NTASKS' in os.environ  # how Lightning recognizes it
CHECKPOINT = os.path.abspath(f"checkpoint-{os.environ.get('MGPU_JOB_ID', 0)}.ckpt")


class SaveOnRequest(L.Callback):
    """A signal only sets a flag. All ranks look at it together after a step, and save the same step."""

    def __init__(self):
        self.wanted = False

    def on_fit_start(self, trainer, pl_module):
        signal.signal(signal.SIGUSR1, self.request)

    def request(self, number, frame):
        self.wanted = True

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if not trainer.strategy.reduce_boolean_decision(self.wanted, all=False):
            return
        self.wanted = False
        trainer.save_checkpoint(f'{CHECKPOINT}.tmp')
        trainer.strategy.barrier()
        if trainer.is_global_zero:
            os.replace(f'{CHECKPOINT}.tmp', CHECKPOINT)  # a file with the right name is complete
            print(f'saved after step {trainer.global_step}', flush=True)
            subprocess.run(['mgpu', 'notify', '--checkpointed'], check=False)


class Plane(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def on_train_start(self):
        if self.trainer.is_global_zero:
            print(f"attempt {os.environ.get('MGPU_ATTEMPT', 1)} begins after step {self.trainer.global_step} of {STEPS}", flush=True)

    def training_step(self, batch, batch_idx):
        time.sleep(0.05)  # the work of a step
        if batch_idx % 16 == 15 and self.trainer.is_global_zero:
            print(f'step {self.trainer.global_step + 1}', flush=True)
        samples, targets = batch
        return torch.nn.functional.mse_loss(self.layer(samples), targets)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    L.seed_everything(1)
    samples = torch.randn(1024, 3)
    targets = (samples * torch.tensor((2.0, -3.0, 0.5))).sum(1, keepdim=True)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(samples, targets), batch_size=32)
    trainer = L.Trainer(max_steps=STEPS, devices=int(os.environ.get('MGPU_NUM_GPUS', 1)), default_root_dir=os.getcwd(), logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, callbacks=[] if IS_SLURM else [SaveOnRequest()])
    is_resumed = not IS_SLURM and os.path.exists(CHECKPOINT)
    trainer.fit(Plane(), batches, ckpt_path=CHECKPOINT if is_resumed else None)
    if trainer.is_global_zero:
        print(f'done: all {trainer.global_step} steps', flush=True)


if __name__ == '__main__':
    main()
