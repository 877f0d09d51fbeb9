# SPDX-License-Identifier: MIT
"""The live dashboard, which is `mgpu top`; tests/system/test_top.py tests the rest."""

import shutil

import pytest
import test_top

pytestmark = pytest.mark.skipif(shutil.which('tmux') is None, reason='no tmux here')
GPUS = 'sim:8x24G'


@pytest.fixture
def screen(place):
    made = []

    def make(box):
        made.append(test_top.Top(box, place))
        return made[-1].run()

    yield make
    for one in made:
        one.close()


def test_S3_25_gpus_jobs_and_health(box, screen, gate):
    job = box.submit('-g', 2, '-J', 'train', '--', *gate.command())
    one = screen(box)
    one.wait(r'^ mgpu \S+ · 8 GPUs: 2 used 6 free')
    one.wait(rf'^│●\s+{job} you +train +running')
    one.keys('q')
    one.wait(r'^over 0')
    gate.open()
    box.wait(job)


def test_S3_26_the_server_goes_away_and_returns(make_instance, screen):
    box = make_instance(GPUS)
    one = screen(box)
    one.wait(r'^ mgpu \S+ · 8 GPUs: ')
    box.stop()
    one.wait('reconnecting')
    box.start()
    one.wait_gone('reconnecting')
    one.keys('q')
    one.wait(r'^over 0')
    assert one.tmux('display', '-p', '#{alternate_on} #{cursor_flag}').strip() == '0 1'
