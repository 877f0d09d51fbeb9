# SPDX-License-Identifier: MIT
"""python test/run_tests.py: all tests of this folder, on a private mgpud with simulated GPUs."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == '__main__':
    suite = unittest.TestSuite(unittest.defaultTestLoader.discover(folder, pattern='test_*.py', top_level_dir=folder)
                               for folder in (HERE, os.path.dirname(HERE)))
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
