# SPDX-License-Identifier: MIT
"""What the processors did while something was measured: a figure during which they were all busy says more about them than about mgpu.

Pressure is the share of the time in which a program that could run waited for a processor (the kernel's /proc/pressure/cpu)."""

import atexit
import os
import time

LIMIT = 0.9  # busy for this part of the time, they are what decides


class Watch:
    """Of the time since it was made."""

    def __init__(self):
        self.begin = read()

    def seconds(self):
        return read()[0] - self.begin[0]

    def busy(self):
        """Part of the processors' time, of all programs."""
        taken, now = read(), self.begin
        return min(1.0, (taken[1] - now[1]) / max(1e-9, (taken[0] - now[0]) * os.cpu_count()))

    def pressure(self):
        """Part of the time; None: this kernel does not tell."""
        taken, now = read(), self.begin
        return None if now[2] is None else min(1.0, (taken[2] - now[2]) / max(1e-9, taken[0] - now[0]))

    def text(self):
        """Short enough for a column of a table."""
        pressure = self.pressure()
        waited = '' if pressure is None else f', pressure {pressure:.0%}'
        return f'{self.busy():.0%} busy{waited}{" (limit)" if self.busy() >= LIMIT else ""}'


def read():
    """Seconds: of the clock, of all processors that were busy, of pressure."""
    with open('/proc/stat', encoding='ascii') as lines:
        values = [int(word) for word in lines.readline().split()[1:9]]
    try:
        with open('/proc/pressure/cpu', encoding='ascii') as lines:
            pressure = int(lines.readline().rsplit('total=', 1)[1]) / 1e6
    except (OSError, IndexError):
        pressure = None
    return time.monotonic(), (sum(values) - values[3] - values[4]) / os.sysconf('SC_CLK_TCK'), pressure


def model():
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as lines:
        names = [line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else 'of a model that the kernel does not name'


def tell_at_the_end():
    """Below the table of a benchmark."""
    watch, load = Watch(), os.getloadavg()[0]
    atexit.register(lambda: print(f'\n{os.cpu_count()} processors ({model()}), {watch.text()} in all; load {load:.1f} before. What was measured '
                                  f'while they were busy for {LIMIT:.0%} of the time ("limit") would be better with more of them.'))
