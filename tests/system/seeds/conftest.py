# SPDX-License-Identifier: MIT
"""The programs by the names that the small schedulers gave them."""

import subprocess

import pytest

import harness


@pytest.fixture(scope='session', autouse=True)
def names():
    """Links with every name beside the programs; a name that hides another program is meant here."""
    place = harness.programs()
    subprocess.run([f'{place}/mgpu', '-q', 'compat', 'install', '--force', place], check=True)
    return place
