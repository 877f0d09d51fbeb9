# SPDX-License-Identifier: MIT
"""The five READMEs as a ledger: `readmes/*.txt` has each command as it is printed, in order, and what a reader looks at.

A ledger is typed on a machine of its own, in the folder that `mgpu compat install --python` makes, while other users' jobs
wait. Its lines:

    # STATEMENT           what the README promises; all lines up to the next statement show it
    USER& COMMAND         starts a server, a simple command; it has printed all expectations when the next line is typed
    USER$ COMMAND         is typed and ends
    USER~ COMMAND         is typed until the expectations match
    USER^ COMMAND         is a simple command that gets Ctrl-C when its output matches the first expectation
    USER! SIGNAL          is sent to the server that was started last, which then ends
    (four spaces) REGEX   is found in the output; {NAME} is a group of an earlier match, {here} the folder of the reader, {repository}
                          and {build} those of the sources and of the programs, {conda} what `conda init` leaves in a shell, and
                          {others} the options of a server whose GPU 0 of 12 GiB another program uses with 4 GiB
    (four spaces)! REGEX  is not found in it
    (four spaces)= N      is the exit status as a shell shows it; without it 0
    differs: SENTENCE     the promise is not kept, for safety: the sentence is in mgpu-compat(7), and the line shows what is said

What cannot be as on a reader's machine: the GPUs are simulated (by a configuration file; for nodes by an option), and conda, screen and torch are not here.
"""

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import pytest

import harness
from machine import Machine
from nvml import Nvml
from test_typed import WITH_CONDA, install_conda

pytestmark = pytest.mark.root

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[2] / 'man' / 'mgpu-compat.7.scd'
LEDGERS = sorted((HERE / 'readmes').glob('*.txt'))
LINE = re.compile(r'(\w+)([&$~^!]) (.+)')
STATEMENTS = 167     # of the five READMEs
DIFFERENCES_MAX = 3  # decisions of safety, in all ledgers together


class Step:
    """A typed line with its expectations."""

    def __init__(self, where, user, kind, typed):
        self.where, self.user, self.kind, self.typed = where, user, kind, typed
        self.found, self.absent, self.code = [], [], 0

    def expect(self, text):
        if text.startswith('! '):
            self.absent.append(text[2:])
        elif re.fullmatch(r'= \d+', text):
            self.code = int(text[2:])
        else:
            self.found.append(text)


class Ledger:
    """Statements in order: [(text, [Step])], and the sentences of those that differ."""

    def __init__(self, path):
        self.name, self.statements, self.differences = path.stem, [], []
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            typed = LINE.fullmatch(line)
            if line.startswith('# '):
                self.statements.append((line[2:], []))
            elif line.startswith('differs: '):
                self.differences.append(line.removeprefix('differs: '))
            elif line.startswith('    '):
                self.statements[-1][1][-1].expect(line.strip())
            elif typed:
                self.statements[-1][1].append(Step(f'{path.name}:{number}', *typed.groups()))
            else:
                assert not line.strip(), f'{path.name}:{number}: {line!r} is no line of a ledger'


class Reader:
    """Types the steps of a ledger; the names that their expectations have found are filled in."""

    def __init__(self, machine, users, others):
        self.machine, self.users, self.others, self.known = machine, users, others, {}

    def fill(self, text, user, is_pattern=False):
        values = dict(self.known, here=self.machine.home(user), repository=harness.ROOT, build=harness.build_folder(), conda=WITH_CONDA,
                      others=self.others)

        def value(found):
            text = values.get(found[1], f'unknown {found[1]}')
            return re.escape(text) if is_pattern else text

        return re.sub(r'\{([a-z_]+)\}', value, text)

    def problems(self, step, user, output):
        """Sentences; empty when the output is what is expected."""
        missing = []
        for pattern in step.found:
            found = re.search(self.fill(pattern, user, True), output, re.M)
            if found:
                self.known.update({name: text for name, text in found.groupdict().items() if text is not None})
            else:
                missing.append(f'no {pattern!r}')
        return missing + [f'has {pattern!r}' for pattern in step.absent if re.search(self.fill(pattern, user, True), output, re.M)]

    def spawn(self, user, step):
        home = self.machine.home(user)
        gets_signals = 'exec ' if step.kind in '&^' else ''
        line = f'export PATH={home}/bin:$PATH; {gets_signals}{self.fill(step.typed, user)}'
        return self.machine.spawn(user, line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def read_until(self, process, is_enough):
        """What it prints until that is enough, or it ends, or the deadline has passed."""
        output, end = '', time.monotonic() + harness.DEADLINE_S
        while not is_enough(output) and select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]:
            data = os.read(process.stdout.fileno(), 65536).decode(errors='replace')
            if not data:
                break
            output += data
        return output

    def type(self, step):
        """Returns the problems of one line."""
        user = self.users[step.user]
        if step.kind == '!':
            server = self.machine.servers.pop()
            server.send_signal(getattr(signal, f'SIG{step.typed}'))
            output = server.communicate(timeout=harness.DEADLINE_S)[0]
            return self.told(step, user, output, server.returncode)
        process = self.spawn(user, step)
        if step.kind == '&':
            self.machine.servers.append(process)
            output = self.read_until(process, lambda text: not self.problems(step, user, text))
            return [f'{problem} in {output!r}' for problem in self.problems(step, user, output)]
        output = ''
        if step.kind == '^':
            first = self.fill(step.found[0], user, True)
            output = self.read_until(process, lambda text: re.search(first, text, re.M))
            process.send_signal(signal.SIGINT)
        try:
            output += process.communicate(timeout=harness.DEADLINE_S)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own
            output += f'{process.communicate()[0]} (and it did not end)'
        return self.told(step, user, output, process.returncode)

    def told(self, step, user, output, code):
        wrong = self.problems(step, user, output)
        code = 128 - code if code < 0 else code
        if code != step.code:
            wrong.append(f'exit status {code}, not {step.code}')
        return [f'{problem} in {output!r}' for problem in wrong]

    def type_until(self, step):
        end = time.monotonic() + harness.DEADLINE_S
        problems = self.type(step)
        while problems and step.kind == '~' and time.monotonic() < end:
            problems = self.type(step)
        return problems


def furnish(machine, root, user):
    """What a reader has in the folder of the README: the files of our folder, a python, and a script."""
    home = machine.home(user)
    done = machine.type(user, f'mgpu compat install --python --force {home}')
    assert done.code == 0, done
    for name in ('bin', 'venv/bin', '.config/mgpu'):
        os.makedirs(f'{home}/{name}', exist_ok=True)
    for name in ('bin', 'venv/bin'):
        os.symlink('/usr/bin/python3', f'{home}/{name}/python')
    with open(f'{home}/.config/mgpu/mgpu.yaml', 'w', encoding='ascii') as out:
        out.write('gpus: sim:4x24G\n')
    install_conda(machine, user)
    os.symlink('/usr/bin/python3', f'{home}/miniconda3/bin/python')
    assert machine.type(root, f'chown -R {user.name} {home}').code == 0


def share_with_others(machine):
    """Options of a server with GPUs on one of which a program runs that mgpu did not start."""
    nvml = Nvml(machine.place)
    for number in range(3):
        nvml.add(bus=0x10 + number, uuid=f'GPU-{number}', memory_mib=12288, used_mib=4096 if number == 0 else 0)
    nvml.say(f'process 0 compute {machine.holder.pid} 4096')
    nvml.write()
    return ' '.join(('--gpus', 'auto', *nvml.arguments))


def configure(machine, root):
    """The simulated GPUs of root's servers, in an /etc that only this machine has."""
    line = ('mkdir etc && cp -a /etc/. etc && mount --bind etc /etc && mkdir -p /etc/mgpu && '
            'printf "gpus: sim:4x24G\\nuser: nobody\\n" > /etc/mgpu/mgpu.yaml')
    done = machine.type(root, line)
    assert done.code == 0, done


@pytest.fixture
def reader(place, names, ana, bo):
    root = harness.User('root')
    machine = Machine(place, names)
    try:
        configure(machine, root)
        for user in (root, ana, bo):
            furnish(machine, root, user)
        yield Reader(machine, {'root': root, 'ana': ana, 'bo': bo}, share_with_others(machine))
    finally:
        machine.close()
        for pid in harness.processes(place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize('path', LEDGERS, ids=lambda path: path.stem)
def test_each_line_of_a_readme_does_what_its_reader_looks_for(reader, path):
    differing = []
    for statement, steps in Ledger(path).statements:
        for step in steps:
            for problem in reader.type_until(step):
                differing.append(f'{step.where}: {statement}\n    {step.user}{step.kind} {step.typed}\n    {problem}')
    assert not differing, '\n'.join(differing)


def test_each_statement_of_a_ledger_is_typed():
    untyped = [f'{path.name}: {text}' for path in LEDGERS for text, steps in Ledger(path).statements if not steps]
    assert not untyped and len(LEDGERS) == 5, untyped


def test_each_statement_of_the_readmes_is_shown_by_lines_of_its_ledger_or_by_a_test():
    """statements.tsv: the README, what it promises, and the statement of its ledger or the test that shows it."""
    shown = {path.stem.upper(): {text for text, _ in Ledger(path).statements} for path in LEDGERS}
    tests = set(re.findall(r'^def (test_\w+)', ''.join(path.read_text(encoding='utf-8') for path in HERE.glob('test_*.py')), re.M))
    rows = [line.split('\t') for line in (HERE / 'readmes' / 'statements.tsv').read_text(encoding='utf-8').splitlines()]
    unshown = [row for row in rows if row[2] not in shown[row[0]] | tests]
    assert not unshown and len(rows) == len({tuple(row[:2]) for row in rows}) == STATEMENTS, unshown


def test_differences_are_few_and_each_is_in_the_page():
    page = ' '.join(PAGE.read_text(encoding='utf-8').replace('*', '').replace('_', '').split())
    sentences = {sentence for path in LEDGERS for sentence in Ledger(path).differences}
    unsaid = [sentence for sentence in sentences if sentence.replace('*', '').replace('_', '') not in page]
    assert not unsaid and len(sentences) <= DIFFERENCES_MAX, (unsaid, sentences)
