# SPDX-License-Identifier: MIT
"""For the tests in this folder: a private mgpud with two simulated GPUs, and the commands that this folder has.

Nothing of it touches the mgpud of the machine, and no GPU is needed.
"""

import os
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
DEADLINE_S = 60


def find(name):
    """The path of `NAME.py`, here or in src."""
    for path in (f'{FOLDER}/{name}.py', f'{FOLDER}/src/{name}.py'):
        if os.path.exists(path):
            return path
    raise FileNotFoundError(name)


class PrivateMgpud:
    """`with PrivateMgpud() as server: server.run('mgpu_srun', '--gpu-ids', '0', '--', 'true')`"""

    def __enter__(self):
        self.place = tempfile.mkdtemp(prefix='mgpu-test-')
        os.chmod(self.place, 0o755)  # mgpud gives root up
        self.mgpud = os.path.join(os.path.dirname(self.program()), 'mgpud')
        self.run_dir = f'{self.place}/run'
        self.environment = dict(os.environ, MGPU_SOCKET=f'{self.run_dir}/mgpud.sock')
        root = ['--allow-root-jobs', '--user', 'nobody'] if os.geteuid() == 0 else []
        self.check([self.mgpud, '--gpus', 'sim:2x24G', '--listen', 'none', '--run-dir', self.run_dir,
                    '--state-dir', f'{self.place}/state', *root, '--detach'])
        return self

    def __exit__(self, *error):
        self.run('mgpu_cancel', '--all')
        self.check([self.mgpud, '--stop', '--run-dir', self.run_dir])
        shutil.rmtree(self.place, ignore_errors=True)

    @staticmethod
    def program():
        """What the commands execute."""
        with open(find('mgpu_srun'), encoding='utf-8') as source:
            line = next(line for line in source if line.startswith('PROGRAM = '))
        return line.split("'")[1]

    def check(self, words):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f'{words[0]}: {done.stderr}')

    def command(self, name, *words):
        return [sys.executable, find(name), *words]

    def start(self, name, *words):
        """A command in progress; its output is read from stdout."""
        return subprocess.Popen(self.command(name, *words), env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, name, *words):
        """A command that has ended."""
        return subprocess.run(self.command(name, *words), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=DEADLINE_S, check=False)
