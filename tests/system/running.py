# SPDX-License-Identifier: MIT
"""A command of mgpu that goes on until it is stopped: forward, notebook."""

import contextlib
import os
import select
import signal
import time

import harness


class Running:
    """Its process, what it prints, and its end."""

    def __init__(self, process):
        self.process = process

    def first_line(self):
        """Of standard output."""
        assert select.select([self.process.stdout], [], [], 2 * harness.DEADLINE_S)[0], 'nothing on standard output'
        return self.process.stdout.readline().decode().rstrip('\n')

    def line(self):
        """The next line on standard error."""
        assert select.select([self.process.stderr], [], [], harness.DEADLINE_S)[0], 'nothing on standard error'
        return self.process.stderr.readline().decode()

    def await_line(self, text):
        """Until standard error has a line with it."""
        held, end = b'', time.monotonic() + harness.DEADLINE_S
        while text.encode() not in held:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.process.stderr], [], [], left)[0], f'{text!r} did not come: {held}'
            held += os.read(self.process.stderr.fileno(), 4096)

    def stop(self, sign=signal.SIGINT):
        self.process.send_signal(sign)
        out, err = self.process.communicate(timeout=harness.DEADLINE_S)
        return harness.Done(self.process.returncode, out.decode(), err.decode())


@contextlib.contextmanager
def all_ended(kind):
    """A function that makes one, and the end of all that it made."""
    made = []

    def make(*arguments, **options):
        made.append(kind(*arguments, **options))
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            if one.process.poll() is None:
                one.process.kill()
            one.process.communicate()
