# SPDX-License-Identifier: MIT
"""The test of a test: tools/check-layers finds one planted violation of each of its rules."""

import os
import subprocess

import pytest

from harness import ROOT

SPDX = '/* SPDX-License-Identifier: MIT */\n'
CLEAN = {'src/base/text.h': SPDX + '#pragma once\n', 'src/job/a.h': SPDX + '#pragma once\n',
         'src/store/s.h': SPDX + '#pragma once\n',
         'src/job/a.c': SPDX + '#include "job/a.h"\n\n#include <string.h>\n\n#include "base/memory.h"\n',
         'src/base/memory.h': SPDX + '#pragma once\n', 'src/base/files.h': SPDX + '#pragma once\n'}

PLANTED = {
    'a pure room opens a file': ('src/job/b.c', SPDX + 'void f(FILE *f)\n{\n    (void)fopen("x", "r");\n}\n', 'pure'),
    'a pure room reads the clock': ('src/job/b.c', SPDX + '#include <time.h>\n', 'pure'),
    'a pure room makes a thread': ('src/sched/b.c', SPDX + '#include <pthread.h>\n', 'pure'),
    'a pure room has a socket': ('src/sched/b.h', SPDX + '#pragma once\n#include <sys/socket.h>\n', 'pure'),
    'a pure room uses files of base': ('src/job/b.c', SPDX + '#include "base/files.h"\n', 'pure'),
    'base includes job': ('src/base/b.c', SPDX + '#include "job/a.h"\n', 'may not include'),
    'the client includes the store': ('src/cli/b.c', SPDX + '#include "store/s.h"\n', 'may not include'),
    'the agent includes the store': ('src/agent/b.c', SPDX + '#include "store/s.h"\n', 'may not include'),
    'the shepherd includes any of job': ('src/shepherd/b.c', SPDX + '#include "job/a.h"\n', 'may not include'),
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
    'a folder that is no room': ('src/utils/b.c', SPDX, 'not a room'),
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


def test_the_tree_itself_is_clean():
    done = subprocess.run([f'{ROOT}/tools/check-layers'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
