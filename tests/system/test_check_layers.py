# SPDX-License-Identifier: MIT
"""The test of a test: tools/check-layers finds one planted violation of each of its rules."""

import os
import subprocess

import pytest

from harness import ROOT

SPDX = '/* SPDX-License-Identifier: MIT */\n'
TABLE = """# The house

## Rooms

| room | holds | may include |
|---|---|---|
| `base` | things that nothing else | nothing of ours |
| `job` | what a job is. Pure | base |
%s
## Words
"""
CLEAN = {'ARCHITECTURE.md': TABLE % '',
         'src/base/text.h': SPDX + '#pragma once\n', 'src/job/a.h': SPDX + '#pragma once\n',
         'src/job/a.c': SPDX + '#include "job/a.h"\n\n#include <string.h>\n\n#include "base/memory.h"\n',
         'src/base/memory.h': SPDX + '#pragma once\n', 'src/base/files.h': SPDX + '#pragma once\n'}
# A larger house: a folder in a folder, and rows that are beside it.
STORE = {'src/store/s.h': SPDX + '#pragma once\n', 'src/store/db/d.c': SPDX + '#include "store/s.h"\n'}


PLANTED = {
    'a pure room opens a file': ('src/job/b.c', SPDX + 'void f(FILE *f)\n{\n    (void)fopen("x", "r");\n}\n', 'pure'),
    'a pure room reads the clock': ('src/job/b.c', SPDX + '#include <time.h>\n', 'pure'),
    'a pure room makes a thread': ('src/job/b.c', SPDX + '#include <pthread.h>\n', 'pure'),
    'a pure room has a socket': ('src/job/b.h', SPDX + '#pragma once\n#include <sys/socket.h>\n', 'pure'),
    'a pure room uses files of base': ('src/job/b.c', SPDX + '#include "base/files.h"\n', 'pure'),
    'base includes job': ('src/base/b.c', SPDX + '#include "job/a.h"\n', 'may not include'),
    'an include without its room': ('src/base/b.c', SPDX + '#include "text.h"\n', 'does not name its room'),
    'an include by a relative path': ('src/base/b.c', SPDX + '#include "../job/a.h"\n', 'does not name its room'),
    'ours in angle brackets': ('src/base/b.c', SPDX + '#include <base/text.h>\n', 'is ours'),
    'a header that does not exist': ('src/base/b.c', SPDX + '#include "base/none.h"\n', 'does not exist'),
    'a file that is too long': ('src/base/b.c', SPDX + '\n' * 600, '601 lines'),
    'a function that is too long': ('src/base/b.c', SPDX + 'void f(void)\n{\n' + '    g();\n' * 61 + '}\n', '61 lines'),
    'no licence line': ('src/base/b.c', '#include "base/text.h"\n', 'SPDX'),
    'a header without a guard': ('src/base/b.h', SPDX, '#pragma once'),
    'an unbounded copy': ('src/base/b.c', SPDX + 'void f(char *a)\n{\n    strcpy(a, "x");\n}\n', 'strcpy'),
    'a TODO without a number': ('src/base/b.c', SPDX + '/* TODO: later */\n', 'TODO'),
    'src uses a wing': ('src/base/b.c', SPDX + '#include "lab/sim/engine.h"\n', 'is of a wing'),
    'a folder of a wing that is no room': ('lab/dust/b.c', SPDX, 'not a room'),
    'a folder that is no room': ('src/utils/b.c', SPDX, 'not a room'),
}

ROWS = '| `store` | what is durable | base |\n| `store/db` | one way to do it | %s |\n'
WRONG_ROWS = {
    'a folder in a room includes what its row lacks': (ROWS % 'base', 'room store/db may not include "store/s.h"'),
    'a permission that no file uses': (ROWS % 'base, store', 'room store/db may include base, and no file does'),
    'a permission for what is not there': (ROWS % 'store, attic', 'may include attic, which is not a room'),
    'a row without a file': (ROWS % 'store' + '| `attic` | dust | base |\n', 'room attic has no file'),
    'rooms in a circle': (ROWS.replace('base', 'base, store/db') % 'store', 'in a circle: store store/db'),
}


def check(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as out:
            out.write(text)
    return subprocess.run([f'{ROOT}/tools/check-layers', str(folder)], capture_output=True, text=True, check=False)


def test_a_clean_tree_passes(tmp_path):
    done = check(tmp_path, CLEAN)
    assert done.returncode == 0, done.stdout


def test_words_in_comments_and_strings_are_no_violations(tmp_path):
    text = SPDX + '/* strcpy(a, b) and FILE * */\nconst char *f(void)\n{\n    return "sprintf(";\n}\n'
    assert check(tmp_path, {**CLEAN, 'src/job/b.c': text}).returncode == 0


def test_an_empty_tree_is_a_failure(tmp_path):
    os.makedirs(tmp_path / 'src')
    assert check(tmp_path, {}).returncode == 1


@pytest.mark.parametrize('name', PLANTED)
def test_a_planted_violation_is_found(tmp_path, name):
    path, text, sentence = PLANTED[name]
    done = check(tmp_path, {**CLEAN, path: text})
    assert done.returncode == 1
    assert sentence in done.stdout and path.rsplit('/', 1)[0] in done.stdout, done.stdout


@pytest.mark.parametrize(('count', 'code'), [(40, 0), (41, 1)])
def test_a_folder_with_too_many_sources_is_found(tmp_path, count, code):
    done = check(tmp_path, {**CLEAN, **{f'src/base/b{n}.c': SPDX for n in range(count)}})
    assert done.returncode == code and ('41 source files' in done.stdout) == (code == 1), done.stdout


def test_the_tree_itself_is_clean():
    done = subprocess.run([f'{ROOT}/tools/check-layers'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize('name', WRONG_ROWS)
def test_a_wrong_row_of_the_table_is_found(tmp_path, name):
    rows, sentence = WRONG_ROWS[name]
    done = check(tmp_path, {**CLEAN, **STORE, 'ARCHITECTURE.md': TABLE % rows})
    assert done.returncode == 1
    assert sentence in done.stdout, done.stdout


def test_a_header_by_itself_may_be_included(tmp_path):
    rows = '| `store` | what is durable | nothing of ours |\n| `store/db` | one way to do it | `store/s.h` |\n'
    done = check(tmp_path, {**CLEAN, **STORE, 'ARCHITECTURE.md': TABLE % rows})
    assert done.returncode == 0, done.stdout


OBJECTS = {
    'a pure room reads the clock by its own declaration': ('long time(long *t);\nlong f(void)\n{\n    return time(0);\n}\n',
                                                           'it calls time()'),
    'a room calls what it may not include': ('int upper(void);\nint f(void)\n{\n    return upper();\n}\n',
                                             'room job calls upper() of room store'),
    'a pure room calls a file of base that is not': ('int touch(void);\nint f(void)\n{\n    return touch();\n}\n',
                                                     'room job is pure: it calls touch() of base/files.h'),
    'a pure room copies bytes': ('void *memcpy(void *a, const void *b, unsigned long n);\n'
                                 'void *f(void *a, void *b, unsigned long n)\n{\n    return memcpy(a, b, n);\n}\n', None),
}


@pytest.mark.parametrize('name', OBJECTS)
def test_calls_are_read_in_the_object_files(tmp_path, name):
    code, sentence = OBJECTS[name]
    files = {**CLEAN, 'ARCHITECTURE.md': TABLE % '| `store` | what is durable | nothing of ours |\n', 'src/job/b.c': SPDX + code,
             'src/store/s.c': SPDX + 'int upper(void);\nint upper(void)\n{\n    return 1;\n}\n',
             'src/base/files.c': SPDX + 'int touch(void);\nint touch(void)\n{\n    return 1;\n}\n'}
    check(tmp_path, files)
    for source in ('job/b', 'store/s', 'base/files'):
        room, stem = source.split('/')
        folder = tmp_path / 'build' / 'src' / room / f'lib{room}.a.p'
        os.makedirs(folder)
        subprocess.run(['gcc', '-O0', '-fno-builtin', '-c', tmp_path / 'src' / f'{source}.c', '-o', folder / f'{stem}.c.o'], check=True)
    done = subprocess.run([f'{ROOT}/tools/check-layers', tmp_path, tmp_path / 'build'], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if sentence is None else 1), done.stdout
    assert sentence is None or sentence in done.stdout, done.stdout


def check_core(folder, files):
    """What is said of these files of the controller's core, compiled."""
    files = {f'src/controller/core/{name}.c': SPDX + text for name, text in files.items()}
    check(folder, {**CLEAN, 'ARCHITECTURE.md': TABLE % '| `controller/core` | what is decided | nothing of ours |\n', **files})
    objects = folder / 'build/src/controller/core/libcore.a.p'
    os.makedirs(objects)
    for path in files:
        subprocess.run(['gcc', '-c', folder / path, '-o', objects / f'{os.path.basename(path)}.o'], check=True)
    return subprocess.run([f'{ROOT}/tools/check-layers', folder, folder / 'build'], capture_output=True, text=True, check=False)


def test_a_concern_of_the_core_is_called_by_its_hooks_alone(tmp_path):
    done = check_core(tmp_path, {
        'limits': 'int core_limit(void);\nconst int core_concern_limits = 1;\nint core_limit(void)\n{\n    return 1;\n}\n',
        'concerns': 'extern const int core_concern_limits;\nconst int *const rows[] = { &core_concern_limits };\n',
        'loss': 'int core_limit(void);\nint f(void);\nint f(void)\n{\n    return core_limit();\n}\n'})
    assert done.returncode == 1
    assert 'core_limit() is of the concern controller/core/limits.c' in done.stdout, done.stdout
    assert 'concerns.c:' not in done.stdout, done.stdout


def test_files_of_the_core_that_call_each_other_in_a_circle_are_found(tmp_path):
    call = 'int %s(void);\nint %s(void);\nint %s(void)\n{\n    return %s();\n}\n'
    done = check_core(tmp_path, {'a': call % ('f', 'g', 'f', 'g'), 'b': call % ('g', 'h', 'g', 'h'), 'c': call % ('h', 'f', 'h', 'f')})
    assert done.returncode == 1
    assert 'circle: controller/core/a.c controller/core/b.c controller/core/c.c' in done.stdout, done.stdout
