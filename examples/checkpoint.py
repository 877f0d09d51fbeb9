#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small training job that saves its work on request and continues from there in its next attempt.

    mgpu submit -g 1 --preemptible --checkpoint --signal USR1 --grace 5m -- ./checkpoint.py

Arguments: number of steps, seconds that each takes at least. The state is in STATE, else in checkpoint-JOB.pt of the
working directory. A signal only sets a flag: it is looked at between two steps, where the state is whole.
"""

import os
import signal
import sys
import time

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
STATE = os.environ.get('STATE', f"checkpoint-{os.environ.get('MGPU_JOB_ID', 0)}.pt")


def say(*lines):
    """To mgpu, when it is there. It never waits."""
    try:
        pipe = os.open(os.environ['MGPU_NOTIFY'], os.O_WRONLY | os.O_NONBLOCK)
    except (KeyError, OSError):
        return
    try:
        os.write(pipe, ''.join(f'{line}\n' for line in lines).encode())
    except BlockingIOError:
        pass  # it is full: the next word will do
    finally:
        os.close(pipe)


def save(step, model, optimizer):
    """A file with another name first: what has the right name is whole, and on the disk."""
    with open(f'{STATE}.tmp', 'wb') as file:
        torch.save({'step': step, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f'{STATE}.tmp', STATE)


def main():
    wanted = []
    signal.signal(signal.SIGUSR1, lambda number, frame: wanted.append(number))
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    truth = torch.tensor((2.0, -3.0, 0.5), device=device)
    begin, loss = 0, torch.zeros(1)
    if os.path.exists(STATE):
        state = torch.load(STATE, map_location=device)
        begin = state['step']
        model.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])
    print(f"attempt {os.environ.get('MGPU_ATTEMPT', 1)} begins after step {begin} of {STEPS} on {device}", flush=True)
    for step in range(begin + 1, STEPS + 1):
        samples = torch.randn(64, 3, device=device)
        loss = torch.nn.functional.mse_loss(model(samples), (samples * truth).sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(SECONDS)
        say(f'PROGRESS={step / STEPS:.6f}', f'STATUS=step {step}, loss {loss.item():.4f}')
        if wanted:
            save(step, model, optimizer)
            print(f'saved after step {step}', flush=True)
            say('CHECKPOINTED')
            wanted.clear()
    if os.path.exists(STATE):
        os.unlink(STATE)
    print(f'done: all {STEPS} steps, loss {loss.item():.5f}')


if __name__ == '__main__':
    main()
