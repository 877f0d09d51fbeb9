# SPDX-License-Identifier: MIT
"""python test/test_cancellation.py: a job is cancelled while it runs, and while it waits."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from private_mgpud import PrivateMgpud  # noqa: E402


class TestCancellation(unittest.TestCase):
    def submit(self, server):
        done = server.run('mgpu_srun', '--gpu-ids', '0', '--', 'sleep', '600')
        self.assertEqual(done.returncode, 0, done.stderr)

    def jobs(self, server):
        return re.findall(r'\b[0-9A-F]{8}\b', server.run('mgpu_queue').stdout)

    def test_running_and_waiting_jobs_are_cancelled(self):
        with PrivateMgpud() as server:
            self.submit(server)
            self.submit(server)
            jobs = self.jobs(server)
            self.assertEqual(len(jobs), 2, jobs)
            for job in reversed(jobs):
                done = server.run('mgpu_cancel', job)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(self.jobs(server), [])


if __name__ == '__main__':
    unittest.main()
