# SPDX-License-Identifier: MIT
"""Jobs whose command fails because GPU memory is used up: how they end, and how --retry-oom tries them again.

The commands print what PyTorch prints; the GPUs are simulated, so no driver takes part.
"""

import os
import subprocess

import pytest

import harness

GPUS = 'sim:2x24G'
REPORT = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB'
GIB = 1 << 30


def failing(times):
    """A command that runs out of GPU memory in its first attempts."""
    return ['sh', '-c', f'[ $MGPU_ATTEMPT -gt {times} ] || {{ echo "{REPORT}" >&2; exit 1; }}']


def test_it_ends_as_gpu_oom_with_the_line_of_its_output(box):
    job = box.submit('-g', '1', '--', *failing(9))
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by'], ended['exit_code']) == ('failed', 'gpu_oom', 1), ended
    assert REPORT in ended['message'], ended
    assert 'ran out of GPU memory' in box.mgpu('show', job, check=True).out
    page = box.mgpu('postmortem', job, check=True).out
    assert page.count('Tried to allocate') == 2 and 'smaller batches' in page, page  # its message, and its output
    assert box.mgpu('run', '-g', '1', '--', *failing(9)).code == 1


def test_a_failure_without_that_line_is_none(box):
    ended = box.wait(box.submit('-m', '8G', '--retry-oom', 'x2', '--', 'sh', '-c', 'echo out of memory; exit 1'))
    assert ended['ended_by'] == 'exit' and ended['attempt'] == 1, ended
    ended = box.wait(box.submit('-m', '8G', '--retry-oom', 'x2', '--', 'sh', '-c', f'echo "{REPORT}"'))
    assert ended['state'] == 'done' and ended['attempt'] == 1, ended


def test_a_share_is_tried_again_with_more_until_it_has_enough(box):
    job = box.submit('-m', '4G', '--retry-oom', 'x2', '--', *failing(2))
    ended = box.wait(job)
    assert ended['state'] == 'done' and ended['attempt'] == 3, ended
    assert ended['gpu_mem'] == 16 * GIB, ended
    events = box.job(job)['events']
    assert [event['cause'] for event in events if event['type'] == 'requeued'] == ['gpu_oom', 'gpu_oom']
    assert sum(event['type'] == 'edited' for event in events) == 2, events


def test_in_the_end_it_gets_the_whole_gpu_and_no_more(box):
    job = box.submit('-m', '10G', '--retry-oom', 'x2', '--', *failing(9))
    ended = box.wait(job)
    assert ended['ended_by'] == 'gpu_oom' and ended['gpu_mem'] in (None, 0) and ended['gpus'] == 1, ended
    assert ended['attempt'] == 3, ended  # 20 GiB of the 24, then all of it
    bounded = box.wait(box.submit('-m', '10G', '--retry-oom', 'x1.5,max=80G', '--', *failing(3)))
    assert bounded['state'] == 'done' and bounded['attempt'] == 4 and not bounded['gpu_mem'], bounded  # 15, 22.5, all
    half = box.wait(box.submit('-g', '0.5', '--retry-oom', 'x1.5', '--', *failing(2)))
    assert half['state'] == 'done' and half['attempt'] == 3 and not half['gpu_share'], half


def test_the_bound_is_kept(box):
    job = box.submit('-m', '4G', '--retry-oom', 'x1.5,max=6G', '--', *failing(9))
    ended = box.wait(job)
    assert ended['ended_by'] == 'gpu_oom' and ended['attempt'] == 2 and ended['gpu_mem'] == 6 * GIB, ended
    half = box.wait(box.submit('-g', '0.5', '--retry-oom', 'x1.5,max=13G', '--', *failing(9)))
    assert half['ended_by'] == 'gpu_oom' and half['attempt'] == 1, half  # 0.75 of 24 GiB


def test_it_waits_for_the_larger_share_also_over_a_kill_of_mgpud(make_instance, gate):
    box = make_instance(gpus='sim:1x24G')
    job = box.submit('-m', '10G', '--retry-oom', 'x2', '--', 'sh', '-c',
                     f'[ $MGPU_ATTEMPT -gt 1 ] || {{ read word < {gate.path}; echo "{REPORT}"; exit 1; }}')
    other = box.submit('-m', '10G', '--', 'sleep', 'infinity')
    box.wait(job, 'running')
    box.wait(other, 'running')
    box.kill()
    gate.open()
    box.restart()
    waiting = box.wait(job, 'queued')
    assert waiting['gpu_mem'] == 20 * GIB and waiting['attempt'] == 1, waiting
    box.kill()
    box.restart()
    box.mgpu('cancel', other, check=True)
    ended = box.wait(job)
    assert ended['state'] == 'done' and ended['attempt'] == 2 and ended['gpu_mem'] == 20 * GIB, ended


@pytest.mark.parametrize(('words', 'sentence'), [
    (['-g', '1', '--retry-oom', 'x2'], 'a whole GPU has no more memory'),
    (['-m', '8G', '--retry-oom', 'x1'], 'outside 1.1 to 10'),
    (['-m', '8G', '--retry-oom', 'lots'], 'is not a number'),
    (['-m', '8G', '--retry-oom', 'x2,80G'], 'is not max=SIZE'),
    (['-m', '8G', '--retry-oom', 'x2,max=4G'], 'less than the memory requested first'),
])
def test_a_wish_that_cannot_be_is_refused_at_submit(box, words, sentence):
    done = box.mgpu('submit', *words, '--', 'true')
    assert done.code == 2 and sentence in done.err, done


def test_the_journal_replays_to_the_same_decisions(make_instance, place):
    box = make_instance(gpus=GPUS)
    box.wait(box.submit('-m', '4G', '--retry-oom', 'x2', '--', *failing(1)))
    box.mgpu('journal', 'export', '-o', f'{place}/journal', user=box.user, check=True)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', f'{place}/journal'], check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and 'all identical' in done.stdout, (done.stdout, done.stderr)
