# SPDX-License-Identifier: MIT
"""The models hold in every order of events, and each of their rules is needed."""

import os
import shutil
import subprocess

import pytest

from harness import ROOT


@pytest.mark.minutes(15)
@pytest.mark.skipif(not shutil.which('spin'), reason='no spin here')
def test_models_hold_and_no_rule_is_there_for_nothing():
    done = subprocess.run([os.path.join(ROOT, 'tools', 'check-models')], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count('ok ') >= 10, done.stdout + done.stderr
