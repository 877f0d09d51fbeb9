# SPDX-License-Identifier: MIT
"""docs/faq.md: its links lead somewhere, its commands and options exist, and what it says of exit statuses is so."""

import os
import re

import pytest

import harness

with open(os.path.join(harness.ROOT, 'docs', 'faq.md'), encoding='utf-8') as source:
    TEXT = source.read()


def test_links_lead_to_headings_and_files():
    headings = {re.sub(r'[^a-z0-9 -]', '', line[3:].lower()).replace(' ', '-') for line in TEXT.splitlines() if line.startswith('## ')}
    links = re.findall(r'\]\(([^)]+)\)', TEXT)
    assert len(links) >= len(headings)
    for link in links:
        assert link[1:] in headings if link.startswith('#') else os.path.exists(os.path.join(harness.ROOT, 'docs', link)), link


def test_commands_and_options_exist(box):
    commands = {tuple(found) for found in re.findall(r'`mgpu ([a-z-]+)((?: --?[a-zA-Z][a-z-]*)?)', TEXT)}
    assert ('why', '') in commands and len(commands) > 10
    for verb, option in commands:
        shown = box.mgpu('help', verb).out
        assert shown.startswith('usage: mgpu'), verb
        assert option.strip() in shown, (verb, option)
    help_of_submit = box.mgpu('help', 'submit').out
    for option in set(re.findall(r'`(--?[a-zA-Z][a-z-]*)', TEXT)):
        assert re.search(rf'(^|[ ,]){re.escape(option)}\b', help_of_submit, re.M) or option in box.mgpu('help', 'run').out, option


@pytest.mark.parametrize(('words', 'code'), [
    (['no-such-program'], 127),
    (['/etc/passwd'], 126),
    (['-C', '/nonexistent', '--', 'true'], 125),
    (['-t', '1s', '--', 'sleep', '60'], 124),
    (['--', 'sh', '-c', 'kill -TERM $$'], 143),
])
def test_exit_statuses_are_those_of_the_page(box, words, code):
    assert f'{code}' in TEXT
    options = words[:words.index('--')] if '--' in words else []
    command = words[words.index('--') + 1:] if '--' in words else words
    done = box.mgpu('run', '-q', '-g', '0', '--retry', '0', *options, '--', *command)
    assert done.code == code, done


def test_a_job_ends_with_its_command_unless_it_waits(box):
    for script, out in (('(sleep 60; echo never) &', ''), ('(sleep 0.1; echo waited) & wait', 'waited\n')):
        done = box.mgpu('run', '-q', '-g', '0', '--', 'sh', '-c', script)
        assert (done.code, done.out) == (0, out), done
