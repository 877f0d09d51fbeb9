# SPDX-License-Identifier: MIT
"""docs/slurm.md has the tables that the commands obey; --help has their options."""

import os
import subprocess

import harness


def call(*words):
    return subprocess.run([f'{harness.programs()}/mgpu-slurm', *words], capture_output=True, text=True, check=True).stdout


def test_the_manual_has_the_tables_of_the_commands():
    with open(os.path.join(harness.ROOT, 'docs', 'slurm.md'), encoding='utf-8') as file:
        manual = file.read()
    assert call('tables').strip() in manual, 'put the output of `mgpu-slurm tables` at the end of docs/slurm.md'


def test_help_usage_and_version_are_answered():
    for name in ('sbatch', 'srun', 'salloc', 'squeue', 'scancel', 'sacct', 'sinfo', 'scontrol'):
        assert call(name, '--help').startswith(f'Usage: {name} ') and '--' in call(name, '--help')
        assert call(name, '--usage') == call(name, '--help').splitlines()[0] + '\n'
        assert call(name, '--version') == 'slurm 22.05.8\n'
