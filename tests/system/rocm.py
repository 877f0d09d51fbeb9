# SPDX-License-Identifier: MIT
"""ROCm's library that is made up: the stand-in (tests/standin/rocm_smi.c) and its state file.

    rocm = Rocm(place)
    rocm.write('gpu 0 83 0 0 0', 'limit 0 300000000')
    make_instance(gpus='amd', arguments=[*amd.arguments, *rocm.arguments])
"""

import os
import shutil

import harness

LIBRARY = 'tests/unit/agent/rocm_current/librocm_smi64.so'


class Rocm:
    """The library in a folder of its own, and the state file beside it."""

    def __init__(self, folder):
        self.library = f'{folder}/librocm_smi64.so'
        self.state = f'{folder}/rocm.state'
        shutil.copy(os.path.join(harness.build_folder(), LIBRARY), self.library)
        os.chmod(self.library, 0o755)
        self.arguments = ('--rocm-library', self.library)

    def write(self, *lines):
        """The whole state, at once."""
        with open(f'{self.state}.new', 'w', encoding='ascii') as out:
            out.write('\n'.join(lines) + '\n')
        os.chmod(f'{self.state}.new', 0o644)
        os.rename(f'{self.state}.new', self.state)
