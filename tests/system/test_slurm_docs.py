# SPDX-License-Identifier: MIT
"""docs/slurm.md has the tables that the commands obey; --help has their options."""

import os
import pathlib
import re
import subprocess

import harness
import slurm_judge


def call(*words):
    return subprocess.run([f'{harness.programs()}/mgpu-slurm', *words], capture_output=True, text=True, check=True).stdout


def test_the_manual_has_the_tables_of_the_commands():
    with open(os.path.join(harness.ROOT, 'docs', 'slurm.md'), encoding='utf-8') as file:
        manual = file.read()
    assert call('tables').strip() in manual, 'put the output of `mgpu-slurm tables` at the end of docs/slurm.md'


def table_of(program):
    """Letters and long names of the options that a command knows."""
    letters, names = set(), set()
    for line in call('tables').splitlines():
        cells = re.split(r'(?<!\\)\|', line)
        if line.startswith('| `-') and program in cells[2].split(', ') + cells[2].strip().split(', '):
            letters |= set(re.findall(r'`-(\w)`', cells[1]))
            names |= set(re.findall(r'`--([\w-]+)', cells[1]))
    return letters, names


def test_every_option_of_slurm_is_known_by_its_name_and_letter():
    with open(os.path.join(os.path.dirname(__file__), 'slurm_options.txt'), encoding='utf-8') as file:
        text = file.read().replace('\n    ', ' ')
    programs = dict(line.split(': ') for line in text.splitlines() if not line.startswith('#'))
    assert len(programs) == 17
    for program, options in programs.items():
        letters, names = table_of(program)
        for option in options.split():
            letter, _, name = option.rpartition('/')
            assert name in names and letter[1:] in letters | {''}, (program, option)


COMMANDS = ['sbatch', 'srun', 'salloc', 'squeue', 'scancel', 'sacct', 'sinfo', 'scontrol', 'sacctmgr', 'sshare', 'sprio', 'sreport', 'seff',
            'sdiag', 'sstat', 'sattach', 'sbcast']


def test_help_usage_and_version_are_answered():
    for name in COMMANDS:
        text, usage = call(name, '--help'), call(name, '--usage')
        assert text.startswith(f'Usage: {name}') and '--' in text
        assert '\nHelp options:\n' in text and '  --usage  ' in text and '\nOther options:\n  -V, --version  ' in text, text
        assert usage.startswith(f'Usage: {name} [-') and max(len(line) for line in usage.splitlines()) <= 110, usage
        letters = set(re.findall(r'^  -(\w), --', text, re.MULTILINE)) - {'V'}
        shown = set(re.findall(r'\s\[-(\w)[] ]', usage))
        assert shown == letters - ({'h'} if '-h, --help' in text else set()), (name, letters ^ shown)
        assert call(name, '--version') == 'slurm 22.05.8\n'


def test_h_is_help_unless_it_is_an_option():
    for name in COMMANDS:
        if '  -h, --help ' in call(name, '--help'):
            assert call(name, '-h') == call(name, '--help')
    taken = [name for name in COMMANDS if '  -h, --help ' not in call(name, '--help')]
    assert taken == ['squeue', 'sinfo', 'sprio'], taken


def test_scripts_are_checked_for_what_differs(tmp_path):
    texts = {'plain': '#SBATCH -J a -n 2\n#SBATCH --gres=gpu:1\n', 'soft': '#SBATCH --qos=high --switches=1\n#SBATCH --gres=gpu:1 --constraint=a100\n',
             'hard': '#SBATCH -J a\n\n#SBATCH --network=ib -t nonsense\n', 'whole': '#SBATCH --reservation=x\n'}
    for name, text in texts.items():
        (tmp_path / name).write_text('#!/bin/sh\n' + text + 'true\n', encoding='utf-8')

    def check(*names):
        done = subprocess.run([f'{harness.programs()}/mgpu', 'compat', 'check', *names], capture_output=True, text=True,
                              cwd=tmp_path, check=False)
        assert done.stderr == '', done
        return done.returncode, done.stdout.splitlines()
    assert check('plain') == (0, ['plain: no difference'])
    assert check('soft') == (0, ['soft: line 2: --qos=high: recorded, and shown again',
                                 'soft: line 2: --switches=1: accepted, without effect'])
    code, lines = check('plain', 'hard')
    assert code == 1 and lines[0] == 'plain: no difference' and len(lines) == 3, lines
    assert lines[1].startswith('hard: line 4: --network=ib: refused: there is no such network')
    assert lines[2].startswith('hard: line 4: --time=nonsense: refused: ')
    assert check('whole')[0] == 1 and check('nosuch')[0] == 1


def test_commands_without_a_counterpart_name_what_to_use_instead():
    for name, instead in (('strigger', 'mgpu submit --notify'), ('sview', 'mgpu top'), ('scrontab', 'crontab(1)')):
        for words in ([], ['-l'], ['--set', '--jobid=1']):
            done = subprocess.run([f'{harness.programs()}/mgpu-slurm', name, *words], capture_output=True, text=True, check=False)
            assert done.returncode == 1 and done.stdout == '', done
            assert done.stderr.startswith(f'{name}: error: ') and instead in done.stderr, done
        assert call(name, '--version') == 'slurm 22.05.8\n'


def test_the_page_has_each_difference_that_is_a_decision():
    page = (pathlib.Path(__file__).parents[2] / 'docs' / 'slurm.md').read_text(encoding='utf-8')
    missing = {row.reason for row in slurm_judge.rows() if row.reason and not row.is_open and f': {row.reason}.' not in page}
    assert not missing, missing
