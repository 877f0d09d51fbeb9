#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Evaluates one checkpoint of train.py, and writes the result beside it: evaluate.py CHECKPOINT"""

import sys

import torch

SAMPLES = 4096


def main():
    checkpoint = sys.argv[1]
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = torch.nn.Linear(3, 1).to(device)
    model.load_state_dict(torch.load(checkpoint, map_location=device))
    torch.manual_seed(2)  # samples that the training has not seen
    samples = torch.randn(SAMPLES, 3, device=device)
    with torch.no_grad():
        truth = (samples * torch.tensor((2.0, -3.0, 0.5), device=device)).sum(1, keepdim=True)
        loss = torch.nn.functional.mse_loss(model(samples), truth).item()
    result = f'{checkpoint} has loss {loss:.6f}'
    print(result)
    with open(f"{checkpoint[:-len('.pt')]}.txt", 'w', encoding='utf-8') as file:
        file.write(f'{result}\n')


if __name__ == '__main__':
    main()
