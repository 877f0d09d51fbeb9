# SPDX-License-Identifier: MIT
"""A stand-in for transformers where it is not installed: the part of its interface that examples/huggingface uses, on the CPU.

The model is a table of letter pairs, whatever its name; torch trains it. What matters here is as in transformers 4: ranks of torchrun, the callbacks
and their order, folders checkpoint-STEP to which each rank writes, and what a checkpoint restores. It shows that the example and mgpu do their
parts, not that transformers works."""

import os
import time
import types

import torch
import torch.distributed

LETTERS = 128


class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, name):
        return lambda text: {'input_ids': [min(ord(letter), LETTERS - 1) for letter in text]}


class AutoModelForCausalLM(torch.nn.Module):
    @classmethod
    def from_pretrained(cls, name):
        torch.manual_seed(1)
        return cls()

    def __init__(self):
        super().__init__()
        self.next = torch.nn.Embedding(LETTERS, LETTERS)

    def forward(self, input_ids, labels):
        return torch.nn.functional.cross_entropy(self.next(input_ids[:, :-1]).flatten(0, 1), labels[:, 1:].flatten())


class TrainerCallback:
    """All its methods exist, and do nothing."""

    def __getattr__(self, name):
        if name.startswith('on_'):
            return lambda *words, **named: None
        raise AttributeError(name)


class TrainingArguments:
    def __init__(self, *, output_dir, max_steps, per_device_train_batch_size, save_steps, logging_steps, report_to, disable_tqdm):
        self.output_dir, self.max_steps, self.batch, self.save_steps = output_dir, max_steps, per_device_train_batch_size, save_steps
        self.device = torch.device('cpu')
        self.rank, self.world = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
        if self.world > 1:
            torch.distributed.init_process_group('gloo')


class Trainer:
    def __init__(self, *, model, args, train_dataset, callbacks):
        self.model, self.args, self.samples, self.callbacks = model, args, train_dataset, callbacks
        self.state = types.SimpleNamespace(global_step=0, is_world_process_zero=args.rank == 0)
        self.control = types.SimpleNamespace(should_save=False)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def is_world_process_zero(self):
        return self.state.is_world_process_zero

    def call(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self.args, self.state, self.control, model=self.model)

    def train(self, resume_from_checkpoint=None):
        if resume_from_checkpoint:
            saved = torch.load(f'{resume_from_checkpoint}/state-{self.args.rank}.pt')  # each rank needs its own
            self.state.global_step = saved['step']
            self.model.load_state_dict(saved['model'])
        self.call('on_train_begin')
        while self.state.global_step < self.args.max_steps:
            self.step()
            self.state.global_step += 1
            self.control.should_save = self.state.global_step % self.args.save_steps == 0
            self.call('on_step_end')
            if self.control.should_save:
                self.save()
                self.call('on_save')

    def step(self):
        time.sleep(0.03)
        first = (self.state.global_step * self.args.world + self.args.rank) * self.args.batch
        rows = [self.samples[(first + i) % len(self.samples)] for i in range(self.args.batch)]
        loss = self.model(*(torch.tensor([row[key] for row in rows]) for key in ('input_ids', 'labels')))
        self.optimizer.zero_grad()
        loss.backward()
        for parameter in self.model.parameters() if self.args.world > 1 else ():
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad /= self.args.world
        self.optimizer.step()

    def save(self):
        folder = f'{self.args.output_dir}/checkpoint-{self.state.global_step}'
        os.makedirs(folder, exist_ok=True)
        torch.save({'step': self.state.global_step, 'model': self.model.state_dict()}, f'{folder}/state-{self.args.rank}.pt')

    def save_model(self, folder):
        if self.is_world_process_zero():
            os.makedirs(folder, exist_ok=True)
            torch.save(self.model.state_dict(), f'{folder}/model.pt')
