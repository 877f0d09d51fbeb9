#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Fine-tunes a language model on a text with transformers' Trainer, saves on request, and continues in the next attempt.

    mgpu submit -g 1 --preemptible --checkpoint --signal USR1 --grace 10m -J tune -- python3 train.py distilgpt2 text.txt

Arguments: the model (a name or a folder), the text, and the number of steps. With torchrun there is one process for each GPU.
"""

import glob
import os
import signal
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainerCallback, TrainingArguments

MODEL, TEXT = sys.argv[1:3]
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
BLOCK = 64  # tokens of a sample
OUTPUT = f"out-{os.environ.get('MGPU_JOB_ID', 0)}"
COMPLETE = 'complete'  # a file in each checkpoint to which all ranks have written


class SaveOnRequest(TrainerCallback):
    """A signal only sets a flag. All ranks look at it together after a step, and save the same step."""

    def __init__(self):
        self.wanted, self.is_asked = False, False
        signal.signal(signal.SIGUSR1, self.request)

    def request(self, number, frame):
        self.wanted = True

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print(f"attempt {os.environ.get('MGPU_ATTEMPT', 1)} begins after step {state.global_step} of {STEPS}", flush=True)

    def on_step_end(self, args, state, control, **kwargs):
        flag = torch.tensor(float(self.wanted), device=args.device)
        if torch.distributed.is_initialized():
            torch.distributed.all_reduce(flag)
        if flag.item() > 0:
            self.wanted, self.is_asked, control.should_save = False, True, True
        return control

    def on_save(self, args, state, control, **kwargs):
        if torch.distributed.is_initialized():
            torch.distributed.barrier()
        if state.is_world_process_zero:
            with open(f'{OUTPUT}/checkpoint-{state.global_step}/{COMPLETE}', 'w', encoding='ascii') as mark:
                os.fsync(mark.fileno())
            print(f'saved after step {state.global_step}', flush=True)
            if self.is_asked:
                subprocess.run(['mgpu', 'notify', '--checkpointed'], check=False)
        self.is_asked = False


def blocks_of(tokenizer):
    with open(TEXT, encoding='utf-8') as file:
        tokens = tokenizer(file.read())['input_ids']
    return [{'input_ids': tokens[i:i + BLOCK], 'labels': tokens[i:i + BLOCK]} for i in range(0, len(tokens) - BLOCK + 1, BLOCK)]


def main():
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL)
    arguments = TrainingArguments(output_dir=OUTPUT, max_steps=STEPS, per_device_train_batch_size=4, save_steps=100, logging_steps=50,
                                  report_to='none', disable_tqdm=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=blocks_of(tokenizer), callbacks=[SaveOnRequest()])
    marks = glob.glob(f'{OUTPUT}/checkpoint-*/{COMPLETE}')
    newest = max((os.path.dirname(mark) for mark in marks), key=lambda path: int(path.rpartition('-')[2]), default=None)
    trainer.train(resume_from_checkpoint=newest)
    trainer.save_model(f'{OUTPUT}/model')
    if trainer.is_world_process_zero():
        print(f'done: all {trainer.state.global_step} steps, the model is in {OUTPUT}/model', flush=True)


if __name__ == '__main__':
    main()
