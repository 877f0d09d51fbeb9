# SPDX-License-Identifier: MIT
"""The test of a test: tools/mutants on a project of two lines. It tells what was noticed from what survived, and refuses
tables that test nothing."""

import os
import subprocess

import pytest

from harness import ROOT

FILES = {
    'meson.build': "project('tiny', 'c')\ntest('tiny', executable('tiny', 'tiny.c', 'tests/test.c'))\n",
    'meson_options.txt': "option('tests', type: 'boolean', value: true)\n",
    'tests/meson.build': "# 'tiny'\n",
    'tiny.c': 'int add(int a, int b)\n{\n    return a + b;\n}\nint spare(int a)\n{\n    return a * 2;\n}\n',
    'tests/test.c': 'int add(int a, int b);\nint main(void)\n{\n    return add(1, 2) == 3 ? 0 : 1;\n}\n',
}
NOTICED = "[[mutation]]\nname = 'sums are differences'\nfile = 'tiny.c'\nold = 'a + b'\nnew = 'a - b'\ntests = ['tiny']\n"
SURVIVES = "[[mutation]]\nname = 'what is doubled is trebled'\nfile = 'tiny.c'\nold = 'a * 2'\nnew = 'a * 3'\ntests = ['tiny']\n"


@pytest.fixture
def mutants(tmp_path):
    for name, text in FILES.items():
        path = f'{tmp_path}/{name}'
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='ascii') as out:
            out.write(text)

    def run(table, *options):
        with open(f'{tmp_path}/tests/mutants.toml', 'w', encoding='ascii') as out:
            out.write(table)
        return subprocess.run([f'{ROOT}/tools/mutants', '--root', str(tmp_path), *options], capture_output=True, text=True,
                              check=False)

    return run


def test_a_mutation_that_a_test_notices_passes_and_the_sources_stay(mutants, tmp_path):
    done = mutants(NOTICED)
    assert done.returncode == 0, done.stdout
    assert 'sums are differences (tiny.c): noticed by tiny' in done.stdout
    assert '1 of 1 mutations were noticed' in done.stdout
    with open(f'{tmp_path}/tiny.c', encoding='ascii') as source:
        assert source.read() == FILES['tiny.c']


def test_a_mutation_that_survives_or_does_not_compile_fails(mutants):
    done = mutants(NOTICED + SURVIVES)
    assert done.returncode == 1, done.stdout
    assert 'what is doubled is trebled (tiny.c): SURVIVED' in done.stdout
    assert '1 of 2 mutations were noticed' in done.stdout
    done = mutants(NOTICED.replace('a - b', 'a -'))
    assert done.returncode == 1 and 'DOES NOT COMPILE' in done.stdout, done.stdout


def test_a_test_that_fails_without_a_mutation_notices_nothing(mutants, tmp_path):
    with open(f'{tmp_path}/tests/test.c', 'w', encoding='ascii') as out:
        out.write('int main(void)\n{\n    return 1;\n}\n')
    done = mutants(NOTICED)
    assert done.returncode == 1 and 'NOT TRIED: without it tiny does not pass either' in done.stdout, done.stdout


@pytest.mark.parametrize('table, sentence', [
    (NOTICED.replace('a + b', 'a / b'), 'its text is 0 times in tiny.c'),
    (NOTICED.replace('a + b', 'return'), 'its text is 2 times in tiny.c'),
    (NOTICED.replace("'tiny']", "'huge']"), 'there is no test huge'),
    (NOTICED.replace('a - b', 'a + b'), 'changes nothing'),
], ids=['missing', 'twice', 'no test', 'nothing'])
def test_a_table_that_tests_nothing_is_refused(mutants, table, sentence):
    done = mutants(table, '--check')
    assert done.returncode == 1 and sentence in done.stdout, done.stdout
