# SPDX-License-Identifier: MIT
"""The commands of docs/cookbook.md, typed section by section as they stand.

Programs that Debian lacks (conda, TensorBoard) are stand-ins where they are not installed, so that their sections show that mgpu's part is right; all
others are real and are skipped where they are not installed. test_debugger.py has debugpy."""

import os
import re
import select
import shutil
import signal
import subprocess
import time

import harness
import pytest

DEADLINE_S = harness.DEADLINE_S
BLOCK = re.compile(r'(?:^`(?P<file>[\w.]+)`:\n)?^```\n(?P<text>.*?)^```$', re.M | re.S)
INTERACTIVE = ('mgpu notebook', 'mgpu forward')  # until Ctrl-C
NEEDED = {'Jupyter': 'jupyter-notebook', 'VS Code, and ssh into a job': 'ssh-keygen', 'torchrun': 'torchrun', 'Snakemake': 'snakemake',
          'Makefiles': 'make'}
STAND_INS = {
    'conda': '#!/bin/sh\necho "export CONDA_DEFAULT_ENV=$3"\n',
    'tensorboard': '#!/bin/sh\nmkdir -p runs; cd runs; exec /usr/bin/python3 -m http.server --bind 127.0.0.1 6006\n',
    # ssh reads the configuration of the user's entry in passwd, not of HOME.
    'ssh': '#!/bin/sh\nexec /usr/bin/ssh -F "$HOME/.ssh/config" "$@"\n',
    'python3': '#!/bin/sh\ncase $2 in debugpy) exec /usr/bin/python3 -m http.server --bind 127.0.0.1 5678 ;; esac\nexec /usr/bin/python3 "$@"\n',
}
LACKING = ('conda', 'tensorboard')  # of these, the real ones are better


def sections():
    """{heading: [(file to write or None, text)]}"""
    with open(f'{harness.ROOT}/docs/cookbook.md', encoding='utf-8') as source:
        parts = re.split(r'^## ', source.read(), flags=re.M)[1:]
    return {part.partition('\n')[0]: [(found['file'], found['text']) for found in BLOCK.finditer(part)] for part in parts}


SECTIONS = sections()


class Desk:
    """A user with an empty home and one shell, which keeps what a section changes in it."""

    def __init__(self, box):
        self.box, self.home = box, f'{box.place}/home'
        programs = f'{box.place}/programs'
        for folder in (self.home, f'{self.home}/.ssh', programs):
            os.mkdir(folder, 0o755)
            os.chown(folder, box.client.uid, box.client.gid)
        for name, text in STAND_INS.items():
            if name in LACKING and shutil.which(name):
                continue
            with open(f'{programs}/{name}', 'w', encoding='ascii') as file:
                file.write(text)
            os.chmod(f'{programs}/{name}', 0o755)
        with open(f'{harness.ROOT}/examples/train.py', encoding='utf-8') as source:
            self.write('train.py', source.read())
        self.environment = dict(box.client.environment(), HOME=self.home, MGPU_SOCKET=box.socket, NO_COLOR='1',
                                ASAN_OPTIONS='exitcode=99:detect_leaks=0',
                                PATH=f'{programs}:{harness.programs()}:/usr/local/bin:/usr/bin:/bin')
        self.shell = self.popen('bash', '--norc')

    def popen(self, *words):
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                cwd=self.home, env=self.environment, start_new_session=True, **self.box.client.popen_arguments())

    def write(self, name, text):
        with self.box.client.acting(), open(f'{self.home}/{name}', 'w', encoding='utf-8') as file:
            file.write(text)

    def read_until(self, process, pattern):
        """What is printed up to a match; (text, match)."""
        held, end = '', time.monotonic() + 2 * DEADLINE_S
        while not (found := re.search(pattern, held, re.M)):
            left = end - time.monotonic()
            assert left > 0 and select.select([process.stdout], [], [], left)[0], f'{pattern!r} did not come:\n{held}'
            more = os.read(process.stdout.fileno(), 65536).decode()
            assert more, held
            held += more
        return held, found

    def interrupt(self, command):
        """Ctrl-C, once it is ready."""
        with self.popen('bash', '-c', f'exec {command}') as process:
            try:
                text, _ = self.read_until(process, r'^(http://127\.0\.0\.1:\d+/\?token=|.* -> port \d+ of job )')
                process.send_signal(signal.SIGINT)
                assert process.wait(DEADLINE_S) == 0, f'$ {command}\n{text}{process.stdout.read()}'
            finally:
                process.kill()
        return text

    def type(self, command):
        """What the command prints; it must succeed."""
        if command.startswith(INTERACTIVE):
            return self.interrupt(command)
        self.shell.stdin.write(f'{{ {command}\n}} </dev/null\necho "status $?"\n')
        self.shell.stdin.flush()
        text, found = self.read_until(self.shell, r'^status (\d+)\n')
        assert found.group(1) == '0', f'$ {command}\n{text}'
        return text[:found.start()]

    def close(self):
        self.shell.kill()
        self.shell.communicate()


@pytest.fixture
def desk(make_instance):
    made = Desk(make_instance('sim:4x24G'))
    yield made
    made.close()


def steps(text):
    """[(command, the lines shown below it)]"""
    found = []
    for line in text.splitlines():
        if line.startswith('$ '):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_every_section_has_commands():
    assert len(SECTIONS) >= 10 and all(any(not file for file, _ in blocks) for blocks in SECTIONS.values())


@pytest.mark.real
@pytest.mark.xdist_group('ports of the cookbook')
@pytest.mark.parametrize('heading', SECTIONS, ids=lambda heading: heading.lower().replace(' ', '-'))
def test_the_commands_of_the_cookbook_do_what_it_says(desk, heading):
    needed = NEEDED.get(heading)
    if needed and not shutil.which(needed):
        pytest.skip(f'{needed} is not installed: tools/install-packages real')
    for file, text in SECTIONS[heading]:
        if file:
            desk.write(file, text)
            continue
        for command, shown in steps(text):
            printed = desk.type(command).splitlines()
            assert [line for line in shown if line not in printed] == [], f'$ {command}\n{printed}'
