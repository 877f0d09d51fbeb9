# SPDX-License-Identifier: MIT
"""What another user's job writes, on the terminal of an administrator: each program that shows output of jobs. (Only its owner may
run something in a job, or reach its ports.)"""

import contextlib
import os
import pty
import threading

import pytest

import harness

pytestmark = pytest.mark.root
GPUS = 'sim:4x24G'
ARGUMENTS = ('--watch-terminals',)

HOSTILE = {
    'a title': b'\x1b]0;evil\x07', 'the clipboard': b'\x1b]52;c;ZXZpbA==\x07', 'a control character': b'\xc2\x9b',
    'an answer': b'\x1b[6n', 'a device query': b'\x1b[c', 'a change of direction': b'\xe2\x80\xae', 'a device control string': b'\x1bP$qm\x1b\\',
}
COLOUR = b'\x1b[31m'
TEXT = b'begin ' + b' '.join(HOSTILE.values()) + COLOUR + b'end'


def shell(*commands):
    return ['sh', '-c', '; '.join(commands)]


SAY = "printf '" + ''.join(f'\\{byte:03o}' for byte in TEXT) + "\\n'"


class Screen:
    """A program of a user on a terminal, and what it has written there."""

    def __init__(self, box, user, *words, program='mgpu', **options):
        self.ours, theirs = pty.openpty()
        self.text = b''
        self.process = box.popen(*words, user=user, program=program, stdin=theirs, stdout=theirs, stderr=theirs,
                                 env={'TERM': 'xterm', 'COLUMNS': '200', 'LINES': '50'}, start_new_session=True, **options)
        os.close(theirs)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(self.ours, 1 << 16):
                self.text += part

    def until(self, word):
        harness.until(lambda: word in self.text or self.process.poll() is not None, f'{word} on the terminal')
        self.reader.join(0 if word in self.text else harness.DEADLINE_S)
        assert word in self.text, self.text
        return self.text

    def close(self):
        self.process.kill()
        self.process.wait(harness.DEADLINE_S)
        self.reader.join(harness.DEADLINE_S)
        os.close(self.ours)


@pytest.fixture
def screen(box):
    made = []

    def show(user, *words, **options):
        made.append(Screen(box, user, *words, **options))
        return made[-1].until(b'end')
    yield show
    for one in made:
        one.close()


def hostile_in(text):
    return [name for name, bytes_ in HOSTILE.items() if bytes_ in text]


VIEWS = {
    'logs': lambda job: ('logs', job), 'logs -f': lambda job: ('logs', '-f', job), 'logs -n': lambda job: ('logs', '-n', '5', job),
    'attach': lambda job: ('attach', job),
}


@pytest.mark.parametrize('view', VIEWS)
def test_output_of_anothers_job_does_nothing_to_a_terminal(box, gate, screen, view):
    job = box.submit('-g', '0', '--', *shell(SAY, *gate.command()[2:]))
    box.wait(job, 'running')
    harness.until(lambda: b'end' in box.mgpu('logs', '--raw', job, check=True).out.encode(errors='surrogateescape'), 'the output')
    shown = screen(box.user, *VIEWS[view](job))
    assert b'begin' in shown and hostile_in(shown) == [] and COLOUR not in shown, shown
    assert COLOUR in screen(box.client, *VIEWS[view](job)), 'the own one is as it is'


def test_raw_shows_every_byte(box, screen):
    job = box.submit('-g', '0', '--', *shell(SAY))
    box.wait(job)
    assert hostile_in(screen(box.user, 'logs', '--raw', job)) == list(HOSTILE)
    assert hostile_in(screen(box.client, 'logs', job)) == list(HOSTILE)
    plain = box.mgpu('logs', job, user=box.user, check=True).out.encode(errors='surrogateescape')
    assert b'\x1b]52' in plain, 'a pipe or a file gets all of it'


def test_monitor_of_the_simple_client_shows_text_alone(box, place, gate, screen):
    link = f'{place}/mgpu_simple_client'
    os.symlink(f'{harness.programs()}/mgpu-compat', link)
    job = box.submit('-g', '0', '--', *shell(SAY, *gate.command()[2:]))
    box.wait(job, 'running')
    shown = screen(box.user, 'monitor', job, program=os.path.relpath(link, harness.programs()))
    assert hostile_in(shown) == [] and COLOUR not in shown, shown


def test_a_terminal_of_anothers_job_draws_and_does_nothing_else(box, gate, screen):
    job = box.submit('-g', '0', '-T', '--', *shell(SAY, *gate.command()[2:]))
    box.wait(job, 'running')
    shown = screen(box.user, 'attach', job)
    assert COLOUR in shown and hostile_in(shown) == [], shown
    assert hostile_in(screen(box.client, 'attach', job)) == list(HOSTILE)
