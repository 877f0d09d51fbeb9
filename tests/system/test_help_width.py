# SPDX-License-Identifier: MIT
"""Help fits a terminal of 80 columns, of every program, by every name, and of every verb."""

import os
import re
import subprocess
import tempfile

import harness

WIDTH = 80


def help_of(program, *words):
    done = subprocess.run([program, *words, '--help'], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          env={'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8', 'HOME': '/nonexistent', 'ASAN_OPTIONS': 'detect_leaks=0'})
    return done.stdout


def verbs_of(page):
    return re.findall(r'^  ([a-z][a-z-]+)  ', page, re.M)


def test_no_help_is_wider_than_a_terminal():
    wide, seen = [], 0
    with tempfile.TemporaryDirectory(dir='/tmp') as folder:
        subprocess.run([f'{harness.programs()}/mgpu', 'compat', 'install', folder], check=True, capture_output=True)
        pages = {}
        for name in ('mgpud', 'mgpu-agent', *sorted(os.listdir(folder))):
            path = f'{folder}/{name}' if os.path.exists(f'{folder}/{name}') else f'{harness.programs()}/{name}'
            pages[name] = help_of(path)
            for verb in verbs_of(pages[name]):
                pages[f'{name} {verb}'] = help_of(path, verb)
        for verb in verbs_of(subprocess.run([f'{harness.programs()}/mgpu', 'help'], check=True, capture_output=True, text=True).stdout):
            pages[f'mgpu {verb}'] = page = help_of(f'{harness.programs()}/mgpu', verb)
            for below in re.findall(rf'^  mgpu {verb} ([a-z][a-z-]+)', page, re.M):
                pages[f'mgpu {verb} {below}'] = help_of(f'{harness.programs()}/mgpu', verb, below)
        for name, page in pages.items():
            seen += bool(page)
            wide += [f'{name}: {line}' for line in page.splitlines() if len(line) > WIDTH]
    assert seen > 60, seen
    assert not wide, '\n'.join(wide)
