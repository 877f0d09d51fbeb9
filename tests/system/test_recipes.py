# SPDX-License-Identifier: MIT
"""HACKING's recipes are true: a made-up option of submit, added to a copy of the sources in the files alone that its recipe names,
builds, and is there for users, in the API and on its way to the node; likewise a reason of `mgpu why` and a setting of the scheduler."""

import concurrent.futures
import os
import re
import shutil
import subprocess

from harness import ROOT

RECIPE = '**An option of `run` and `submit`**'
REASON_RECIPE = '**A reason of `mgpu why`**'
SETTING_RECIPE = '**A setting of `mgpud`**'
HELP = 'time for which it may warm up: 90s'
EDITS = {  # file: the line before which something is put, and what
    'src/job/ask.h': (
        ('    int64_t tty_idle_ms;', '    int64_t warm_up_ms; // made up\n'),
        ('        X(base, 73,', f'        X(base, 65535, RECORD_DURATION, warm_up_ms, warm_up, 0, "{HELP}", ASK_SHOWN), \\\n'),
    ),
    'src/cli/submit/submit_options.c': (
        ('    { 0, "dry-run"', '    { 0, "warm-up", "TIME", ask_help_warm_up, .set_key = set_key, .key = "warm_up" },\n'),
    ),
}
REASON = ('src/job/why_code.h', '    X(PARTITION, "partition"', '    X(FULL_MOON, "full_moon", "Full moon", "the moon is not full") \\\n')
WORD = ('compat/slurm/state.c', '#define REASON_PARTITION', '#define REASON_FULL_MOON "Moon"\n')
SETTING = ('src/sched/sched.h', '    X(U32, node_jobs, node_jobs)', '    X(U32, moon_jobs, node_jobs) \\\n')
# What knows no option by name, and what it needs.
FOLDERS = ('src/base', 'src/base/json', 'src/job', 'src/wire', 'src/cli/term', 'src/cli/api', 'src/cli/options', 'src/cli/submit')
LIBRARIES = ('jansson', 'yaml-0.1', 'libssl', 'libcrypto')


def files_of_recipe(title):
    with open(f'{ROOT}/HACKING.md', encoding='utf-8') as source:
        text = source.read()
    section = text[text.index(title):]
    return set(re.findall(r'`([\w./-]+/[\w./-]+)`', section[:section.index('\n\n')]))


def insert(folder, path, before, new):
    with open(f'{folder}/{path}', encoding='utf-8') as source:
        text = source.read()
    assert text.count(before) == 1, f'{path}: {before}'
    with open(f'{folder}/{path}', 'w', encoding='utf-8') as target:
        target.write(text.replace(before, new + before))


def compiler_says(folder, source, *options):
    """Its exit status, and all that it prints."""
    words = ['cc', '-std=gnu17', '-D_GNU_SOURCE', '-Isrc', '-I.', *options, source]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def build(folder):
    """The probe with all that is changed, compiled as fast as can be; ccache makes it nothing when nothing has changed."""
    compiler = (['ccache'] if shutil.which('ccache') else []) + ['cc']
    flags = ['-std=gnu17', '-D_GNU_SOURCE', '-D_FILE_OFFSET_BITS=64', '-ffunction-sections', '-Wall', '-Wno-missing-field-initializers', '-Werror', '-Isrc']
    sources = [f'{place}/{name}' for place in FOLDERS for name in sorted(os.listdir(f'{folder}/{place}')) if name.endswith('.c')]
    sources.append('probe.c')

    def compile_one(source):
        done = subprocess.run([*compiler, *flags, '-c', source, '-o', source.replace('/', '_') + '.o'], cwd=folder, capture_output=True, text=True)
        return done.stderr

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [text for text in pool.map(compile_one, sources) if text]
    assert not problems, '\n'.join(problems)
    libraries = subprocess.run(['pkg-config', '--libs', *LIBRARIES], check=True, capture_output=True, text=True).stdout.split()
    objects = [source.replace('/', '_') + '.o' for source in sources]
    linked = subprocess.run(['cc', *objects, '-o', 'probe', '-Wl,--gc-sections', *libraries, '-lhttp_parser', '-ldl', '-lpthread'], cwd=folder,
                            capture_output=True, text=True)
    assert linked.returncode == 0, linked.stderr


def test_an_option_of_submit_needs_the_files_of_its_recipe_alone(tmp_path):
    assert set(EDITS) <= files_of_recipe(RECIPE), 'HACKING does not name them'
    assert REASON[0] in files_of_recipe(REASON_RECIPE), 'HACKING does not name it'
    folder = str(tmp_path)
    shutil.copytree(f'{ROOT}/src', f'{folder}/src')
    shutil.copy(f'{ROOT}/tests/system/recipe_option.c', f'{folder}/probe.c')
    for path, changes in EDITS.items():
        for before, new in changes:
            insert(folder, path, before, new)
    insert(folder, *REASON)
    build(folder)
    done = subprocess.run([f'{folder}/probe', 'warm-up', 'warm_up', '2m'], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf'^ +--warm-up TIME +{re.escape(HELP)}$', done.stdout, re.MULTILINE), done.stdout
    assert f'edit warm_up=TIME {HELP}\n' in done.stdout
    told = dict(line.split(' ', 1) for line in done.stdout.splitlines() if line.startswith(('request ', 'answer ', 'launch ')))
    assert told == {'request': '120', 'answer': '120.0', 'launch': '120.0'}, told
    assert 'reason full_moon: Full moon: the moon is not full\n' in done.stdout


def test_a_reason_does_not_compile_without_its_word_of_slurm(tmp_path):
    assert WORD[0] in files_of_recipe(REASON_RECIPE), 'HACKING does not name it'
    folder = str(tmp_path)
    for place in ('src', 'compat'):
        shutil.copytree(f'{ROOT}/{place}', f'{folder}/{place}')
    insert(folder, *REASON)
    status, text = compiler_says(folder, WORD[0], '-fsyntax-only')
    assert status != 0 and 'REASON_FULL_MOON' in text, text
    insert(folder, *WORD)
    assert compiler_says(folder, WORD[0], '-fsyntax-only') == (0, '')


def test_a_setting_of_the_scheduler_is_written_and_read_by_one_row(tmp_path):
    assert SETTING[0] in files_of_recipe(SETTING_RECIPE), 'HACKING does not name it'
    folder = str(tmp_path)
    for place in ('src', 'lab'):
        shutil.copytree(f'{ROOT}/{place}', f'{folder}/{place}')
    insert(folder, *SETTING)
    for source in ('src/controller/core/settings.c', 'lab/sim/settings_text.c'):
        status, text = compiler_says(folder, source, '-E', '-P')
        assert status == 0 and '"moon_jobs"' in text, source
        assert compiler_says(folder, source, '-fsyntax-only') == (0, ''), source
