# SPDX-License-Identifier: MIT
"""python test/test_output.py: an interactive job prints while it runs."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from private_mgpud import DEADLINE_S, PrivateMgpud  # noqa: E402


class TestOutput(unittest.TestCase):
    def test_lines_arrive_before_the_job_has_ended(self):
        with PrivateMgpud() as server:
            job = server.start('mgpu_srun', '--gpu-ids', '0', '--interactive', '--', 'sh', '-c', 'echo first; read line < /dev/null; sleep 1; echo last')
            while 'first' not in (line := job.stdout.readline()):
                self.assertTrue(line, 'the job has ended')
            self.assertIsNone(job.poll())
            rest = job.communicate(timeout=DEADLINE_S)[0]
            self.assertIn('last', rest)
            self.assertEqual(job.returncode, 0)


if __name__ == '__main__':
    unittest.main()
