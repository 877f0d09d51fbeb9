# SPDX-License-Identifier: MIT
"""The commands of Slurm for tests: links to mgpu-slurm, and an instance called through them."""

import os
import subprocess

import harness


class Slurm:
    """Slurm's commands of an instance, as its client."""

    def __init__(self, box, place):
        self.box, self.place = box, str(place)
        self.folder = os.path.join(self.place, 'bin')
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o755)
        done = subprocess.run([f'{harness.programs()}/mgpu', 'compat', 'install', '--slurm', self.folder],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def environment(self, user=None, program='shell'):
        user = user or self.box.client
        return {**user.environment(), 'MGPU_SOCKET': self.box.socket, 'ASAN_OPTIONS': harness.client_sanitizer(program),
                'SLURM_MSG_TIMEOUT': '60', 'PATH': f'{self.folder}:/usr/local/bin:/usr/bin:/bin'}

    def run(self, *words, input=None, user=None, env=None, timeout_s=harness.DEADLINE_S, cwd=None):
        """Runs a command; what it did."""
        user = user or self.box.client
        done = subprocess.run(user.command(*map(str, words)), input=input, capture_output=True, text=True, check=False,
                              cwd=cwd or self.place, env={**self.environment(user, words[0]), **(env or {})}, timeout=timeout_s,
                              stdin=None if input is not None else subprocess.DEVNULL)
        assert not harness.SANITIZER.search(done.stderr), done.stderr
        return harness.Done(done.returncode, done.stdout, done.stderr)

    def shell(self, line, **options):
        return self.run('/bin/bash', '-c', line, **options)

    def out(self, *words, **options):
        """What a command prints that must succeed and say nothing else."""
        done = self.run(*words, **options)
        assert done.code == 0 and done.err == '', done
        return done.out

    def script(self, text, name='job.sh'):
        path = os.path.join(self.place, name)
        with self.box.client.acting(), open(path, 'w', encoding='utf-8', newline='') as file:
            file.write(text)
        return path

    def submit(self, *words, **options):
        """The number of a job submitted with --parsable."""
        return int(self.out('sbatch', '--parsable', *words, **options))

    def wrap(self, line, *words, **options):
        return self.submit(*words, '--wrap', line, **options)

    def read(self, name):
        with open(os.path.join(self.place, name), encoding='utf-8') as file:
            return file.read()

    def finish(self, job):
        return self.box.wait(job)
