# SPDX-License-Identifier: MIT
"""The kit for new hardware: jobs for as long as its time lasts, and what grows meanwhile."""

import glob
import itertools
import threading

import pytest

from test_gpu_kit import kit, only_whole, results  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')
TIME = 75  # 25 of them are for the end


@pytest.fixture
def leak():
    """Adds a file to the spool of the kit that starts next, again and again."""
    stop, before = threading.Event(), set(glob.glob('/tmp/mgpu-kit-*'))

    def run():
        for number in itertools.count():
            if stop.wait(0.1):
                return
            for folder in set(glob.glob('/tmp/mgpu-kit-*/run*/spool')):
                if folder.split('/run')[0] not in before:
                    try:
                        with open(f'{folder}/leak-{number}', 'w', encoding='ascii'):
                            pass
                    except OSError:
                        return  # it is being removed
    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join()


@only_whole  # a minute and more: `kit_growth` judges made-up figures
def test_under_load_nothing_grows(kit):  # noqa: F811
    kit.install_parking()
    status, checks = kit.run('-t', TIME, '--only', 'load')
    load = checks['load']
    assert (status, load['result']) == (0, 'passed'), results(checks)
    assert load['text'].endswith('nothing grew') or 'KiB of memory' in load['text'], load
    facts = load['facts']
    assert facts['parked'] is True and facts['jobs'] >= 20
    first, last = facts['hours'][0], facts['hours'][-1]
    assert first['jobs'] < last['jobs'] and last['hours'] > 0
    for name in ('mgpud_kib', 'agent_kib', 'mgpud_files', 'agent_files', 'processes'):
        assert last[name] > 0 and facts['growth'][name]['grows'] in (True, False), facts
    assert facts['growth']['spool']['grows'] is False


@only_whole
def test_what_is_not_given_back_fails_with_its_growth_per_hour(kit, leak):  # noqa: F811
    kit.install()
    status, checks = kit.run('-t', TIME, '--only', 'load')
    load = checks['load']
    assert (status, load['result']) == (1, 'failed') and 'entries of the spool' in load['text'], load
    assert load['facts']['growth']['spool']['per_hour'] > 1000 and load['facts']['parked'] is False


def test_a_wrong_job_ends_the_load(kit):  # noqa: F811
    kit.install(cuda=('corrupt 5',))
    status, checks = kit.run('-t', TIME, '--only', 'load')
    assert (status, checks['load']['result']) == (1, 'failed'), checks['load']
    assert 'one ended as' in checks['load']['text'], checks['load']


@only_whole
def test_little_time_says_nothing_of_growth(kit):  # noqa: F811
    kit.install(cuda=('init_ms 3000',))
    status, checks = kit.run('-t', 45, '--only', 'load')
    assert status == 0 and checks['load']['result'] == 'skipped', checks['load']
