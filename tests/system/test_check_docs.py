# SPDX-License-Identifier: MIT
"""The test of a test: tools/check-docs finds one planted violation of each of its rules."""

import os
import subprocess

import pytest

from harness import ROOT

LONG = 'A sentence that is long enough to be noticed when a merge leaves it behind.'
CLEAN = {'man/mgpud.8.scd': '# OPTIONS\n\n*--one* _N_\n\tFirst.\n\n*--two*, *--three*\n\tSecond, unlike\n\t*--one* here.\n',
         'docs/api.md': '# API\n\n| key | |\n| --- | --- |\n| `a` | x |\n| `b` | x |\n\n| key | |\n| --- | --- |\n| `a` | y |\n'}
# Tests that two pages name.
CLEAN['docs/security.md'] = '| attack | test |\n| --- | --- |\n| `x` | `test_a::test_one`, `unit_a::two`, all of `test_a`, `fuzz_a`, `tests/vm`, `tests/vm/a.sh::three` |\n'
CLEAN['docs/faults.md'] = '| fault | test |\n| --- | --- |\n| a | `test_a` ("one of them") |\n'
CLEAN['tests/system/test_a.py'] = 'def test_one():\n    pass\n\n\ndef test_this_is_one_of_them():\n    pass\n'
CLEAN['tests/unit/base/unit_a.c'] = 'TEST(two)\n{\n}\n'
CLEAN['tests/fuzz/fuzz_a.c'] = ''
CLEAN['tests/vm/a.sh'] = 'three() {\n}\n'

PLANTED = {
    'an option twice': ('man/verbs/ps.scd', '*-a*, *--all*\n\tX.\n\n*--all*\n\tY.\n', '--all is described twice'),
    'no blank line before an option': ('man/a.8.scd', '*--one*\n\tX.\n*--two* _N_\n\tY.\n', 'a.8.scd:3: an option begins'),
    'an option inside of a text': ('man/a.8.scd', '*--one*\n\tX or\n\t*--two* *a*|*b*, *--three* _N_\n\tY.\n',
                                   'a.8.scd:3: an option begins'),
    'a sentence twice': ('man/a.8.scd', f'*--one*\n\tX. {LONG}\n\tY. {LONG}\n', 'is repeated'),
    'a sentence of a guide twice': ('README.md', f'{LONG}\n\nX. {LONG}\n', 'is repeated'),
    'a key twice': ('docs/api.md', '| key | type |\n| --- | --- |\n| `a` | x |\n| `b` | x |\n| `a` | y |\n', '`a` has two rows'),
    'an option of the same commands twice': ('docs/slurm.md', '| option | of | here |\n| --- | --- | --- |\n| `a` | x | |\n| `a` | y | |\n| `a` | x | |\n',
                                            'docs/slurm.md:5: `a` has two rows'),
    'a test that is gone': ('docs/faults.md', '| fault | test |\n| --- | --- |\n| x | `test_a::test_one`, `unit_a::two` |\n| y | `test_a::test_gone` |\n',
                            'docs/faults.md:4: `test_a::test_gone` is no test'),
    'a file of tests that is gone': ('docs/security.md', '| attack | test |\n| --- | --- |\n| x | all of `test_gone` |\n', '`test_gone` is no test'),
    'a folder of tests that is gone': ('docs/faults.md', '| fault | test |\n| --- | --- |\n| x | `tests/gone` |\n', '`tests/gone` is no test'),
    'tests with words that are gone': ('docs/faults.md', '| fault | test |\n| --- | --- |\n| x | `test_a` ("a word") |\n',
                                       '`test_a` is no test with "a word" in its name'),
    'a row of another table': ('docs/api.md', '| key | type |\n| --- | --- |\n| `a` | x |\n| `b` | 1 | bytes |\n', '`b` has 3 cells'),
}


def check(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as out:
            out.write(text)
    return subprocess.run([f'{ROOT}/tools/check-docs', str(folder)], capture_output=True, text=True, check=False)


def test_clean_pages_pass(tmp_path):
    done = check(tmp_path, CLEAN)
    assert done.returncode == 0, done.stdout


def test_the_same_option_in_two_sections_is_no_violation(tmp_path):
    text = '# RUN\n\n*--seed* _N_\n\tX.\n\n# CHECK\n\n*--seed* _N_\n\tY.\n'
    assert check(tmp_path, {**CLEAN, 'man/mgpu-sim.1.scd': text}).returncode == 0


def test_the_same_option_of_two_commands_is_no_violation(tmp_path):
    text = '| option | of | here |\n| --- | --- | --- |\n| `a` | x | |\n| `a` | y | |\n'
    assert check(tmp_path, {**CLEAN, 'docs/slurm.md': text}).returncode == 0


def test_no_pages_are_a_failure(tmp_path):
    assert check(tmp_path, {}).returncode == 1


@pytest.mark.parametrize('name', PLANTED)
def test_a_planted_violation_is_found(tmp_path, name):
    path, text, sentence = PLANTED[name]
    done = check(tmp_path, {**CLEAN, path: text})
    assert done.returncode == 1
    assert sentence in done.stdout and path in done.stdout, done.stdout


def test_the_pages_themselves_are_clean():
    done = subprocess.run([f'{ROOT}/tools/check-docs'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
