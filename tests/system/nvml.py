# SPDX-License-Identifier: MIT
"""A machine with NVIDIA GPUs that are made up: the stand-in library (tests/standin/nvml.c) and its state file.

    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    make_instance(gpus='auto', arguments=nvml.arguments)

The agent reads the library's answers once a second, so a test waits for what it wrote last to be seen.
"""

import os
import shutil

import harness

LIBRARY = 'tests/unit/agent/nvml_current/libnvidia-ml.so.1'


class Nvml:
    """The library in a folder of its own, and the lines of the state file beside it."""

    def __init__(self, folder):
        self.library = f'{folder}/libnvidia-ml.so.1'
        self.state = f'{folder}/nvml.state'
        shutil.copy(os.path.join(harness.build_folder(), LIBRARY), self.library)
        os.chmod(self.library, 0o755)
        self.gpus, self.lines = [], []
        self.arguments = ('--nvml-library', self.library)

    def add(self, bus, uuid, memory_mib=24576, used_mib=0, utilization=0, celsius=40, milliwatts=50000, domain=0,
            model='NVIDIA Stand-in'):
        """A GPU at the end of NVML's own order; its number there."""
        self.gpus.append(f'gpu {domain:x} {bus:x} {memory_mib} {used_mib} {utilization} {celsius} {milliwatts} '
                         f'{uuid} {model}')
        return len(self.gpus) - 1

    def say(self, line):
        """Adds a line such as 'lost 0' or 'process 0 compute 4711 512'; see the stand-in."""
        self.lines.append(line)

    def unsay(self, line):
        self.lines.remove(line)

    def write(self):
        """Makes it so, at once: the library sees the old machine or the new one, never half of it."""
        with open(f'{self.state}.new', 'w', encoding='ascii') as out:
            out.write('\n'.join([*self.gpus, *self.lines]) + '\n')
        os.chmod(f'{self.state}.new', 0o644)
        os.rename(f'{self.state}.new', self.state)
