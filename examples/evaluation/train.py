#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A training that submits an evaluation of each of its checkpoints as another job, and a report when all have ended.

    mgpu submit -g 1 -J train -- python3 train.py

Arguments: number of steps, steps between two checkpoints, seconds that each step takes at least. The checkpoints are in
the folder `checkpoints` of the working directory. A training that is started again continues from the newest one, and
submits the evaluations that are missing.
"""

import glob
import os
import re
import subprocess
import sys
import time

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
EVERY = int(sys.argv[2]) if len(sys.argv) > 2 else 100
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 0.02
FOLDER = 'checkpoints'
HERE = os.path.dirname(os.path.abspath(__file__))


def submit(*words):
    """The number of the new job. It is a separate job: it has other GPUs, and may outlive this one."""
    return subprocess.run(['mgpu', 'submit', *words], check=True, capture_output=True, text=True).stdout.strip()


def write(path, fill):
    """A file under another name first: a file with the right name is complete."""
    with open(f'{path}.tmp', 'wb') as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f'{path}.tmp', path)


def step_of(checkpoint):
    return int(re.search(r'step-(\d+)', checkpoint)[1])


def evaluate_missing():
    """Submits the evaluations that no job has yet; the jobs of all of them."""
    jobs = []
    for checkpoint in sorted(glob.glob(f'{FOLDER}/step-*.pt'), key=step_of):
        record = f'{checkpoint[:-3]}.job'
        if not os.path.exists(record):
            job = submit('-g', '1', '-J', f'eval-{step_of(checkpoint)}', '--', sys.executable, f'{HERE}/evaluate.py', checkpoint)
            write(record, lambda file, job=job: file.write(job.encode()))
            print(f'job {job} evaluates {checkpoint}', flush=True)
        with open(record, encoding='ascii') as file:
            jobs.append(file.read())
    return jobs


def main():
    os.makedirs(FOLDER, exist_ok=True)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    truth = torch.tensor((2.0, -3.0, 0.5), device=device)
    newest = max(glob.glob(f'{FOLDER}/step-*.pt'), key=step_of, default=None)
    if newest:
        model.load_state_dict(torch.load(newest, map_location=device))
    for step in range(step_of(newest) + 1 if newest else 1, STEPS + 1):
        samples = torch.randn(64, 3, device=device)
        loss = torch.nn.functional.mse_loss(model(samples), (samples * truth).sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(SECONDS)
        if step % EVERY == 0:
            write(f'{FOLDER}/step-{step}.pt', lambda file: torch.save(model.state_dict(), file))
            evaluate_missing()
    after = [word for job in evaluate_missing() for word in ('--after', f'{job}:any')]
    report = submit('-g', '0', '-J', 'report', *after, '--', 'sh', '-c', f'sort -g -k 4 {FOLDER}/step-*.txt | head -n 1')
    print(f'job {report} will name the best checkpoint', flush=True)


if __name__ == '__main__':
    main()
