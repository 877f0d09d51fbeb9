# SPDX-License-Identifier: MIT
"""python -m unittest test_scheduler -v: jobs wait for GPUs, run on them, and give them back."""

import os
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)

from private_mgpud import DEADLINE_S, PrivateMgpud  # noqa: E402


class TestScheduler(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(PrivateMgpud()) if hasattr(self, 'enterContext') else PrivateMgpud().__enter__()
        if not hasattr(self, 'enterContext'):  # Python 3.10 and older
            self.addCleanup(self.server.__exit__)

    def srun(self, *words):
        done = self.server.run('srun', *words)
        return done.returncode, done.stdout

    def test_a_job_gets_a_gpu(self):
        code, out = self.srun('sh', '-c', 'echo gpu=$CUDA_VISIBLE_DEVICES')
        self.assertEqual(code, 0)
        self.assertRegex(out, r'gpu=[01]\b')

    def test_the_exit_status_is_that_of_the_command(self):
        self.assertEqual(self.srun('sh', '-c', 'exit 7')[0], 7)

    def test_standard_input_reaches_the_command(self):
        done = subprocess.run(self.server.command('srun', 'cat'), env=self.server.environment, input='through\n', capture_output=True,
                              text=True, timeout=DEADLINE_S, check=False)
        self.assertIn('through', done.stdout)

    def test_a_job_waits_until_a_gpu_is_free(self):
        holders = [self.server.start('srun', 'sh', '-c', 'echo has a GPU; sleep 1') for _ in range(2)]
        for holder in holders:
            while 'has a GPU' not in holder.stdout.readline():
                pass
        code, out = self.srun('echo', 'the third')
        self.assertEqual(code, 0)
        self.assertIn('the third', out)
        for holder in holders:
            holder.communicate(timeout=DEADLINE_S)
            self.assertEqual(holder.returncode, 0)


if __name__ == '__main__':
    unittest.main()
