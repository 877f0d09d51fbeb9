# SPDX-License-Identifier: MIT
"""Shares of a GPU that are enforced: --share. The GPUs are those of the stand-in for NVML, which reports the memory of each process; no job here computes anything."""

import time

import pytest

import harness
from nvml import Nvml

GIB_MIB = 1024


@pytest.fixture
def nvml(place):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    return nvml


@pytest.fixture
def box(make_instance, nvml):
    return make_instance(gpus='auto', arguments=nvml.arguments)


def use(nvml, pid, mib, kind='compute'):
    """From the next sample on, this process uses so much of the GPU, and no other process any."""
    nvml.lines = [line for line in nvml.lines if not line.startswith('process ')]
    nvml.say(f'process 0 {kind} {pid} {mib}')
    nvml.write()


def start(box, gate, bell, *options, then='true'):
    """A job that has its pid written and waits; its id and that pid."""
    job = box.submit(*options, '--', 'sh', '-c', f'echo $$ >{bell.path}; read word <{gate.path}; {then}')
    return job, bell.wait()


def test_a_job_that_stays_above_its_share_is_warned_and_then_ended(box, nvml, gate, bell):
    job, pid = start(box, gate, bell, '-m', '8G', '--share', 'time')
    use(nvml, pid, 8 * GIB_MIB)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_cap_bytes') == 8 << 30, 'a sample')
    assert not box.job(job)['usage']['gpu_memory_over_bytes']
    use(nvml, pid, 8 * GIB_MIB + 1)
    began = time.monotonic()
    harness.until(lambda: box.job(job)['usage']['gpu_memory_over_bytes'], 'the excess')
    found_s = time.monotonic() - began
    page = box.mgpu('show', job, check=True).out
    assert '8 GiB of GPU memory, enforced by time (requested)' in page, page
    assert 'its share is 8 GiB; it will be ended' in page, page
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by'], ended['exit_code']) == ('failed', 'gpu_mem', 137), ended
    assert 'and its share is 8 GiB' in ended['message'], ended
    assert 'request more with -m' in box.mgpu('postmortem', job, check=True).out
    assert 'and its share is 8 GiB; it is ended if this lasts longer than 5s' in box.log()
    assert found_s < 10, found_s  # two seconds on an idle machine


def test_a_job_reads_its_notices_and_is_spared_when_it_frees_memory(box, nvml, gate, bell):
    job, pid = start(box, gate, bell, '-g', '0.5', '--share', 'auto', then='cat $MGPU_NOTICES')
    use(nvml, pid, 12 * GIB_MIB + 1)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_over_bytes'), 'the excess')
    use(nvml, pid, 12 * GIB_MIB)
    harness.until(lambda: not box.job(job)['usage']['gpu_memory_over_bytes'], 'the end of the excess')
    gate.open()
    ended = box.wait(job)
    assert ended['ended_by'] == 'exit' and ended['exit_code'] == 0, ended
    lines = box.output(job).splitlines()
    assert len(lines) == 1 and ' gpu_mem it uses ' in lines[0] and 'its share is 12 GiB' in lines[0], lines
    assert ended['usage']['share'] == 'time', ended['usage']
    assert 'no dmem: ' in ended['usage']['share_why'] and 'no mps: ' in ended['usage']['share_why']


def test_the_memory_of_others_is_not_held_against_a_job(box, nvml, gate, bell):
    job, pid = start(box, gate, bell, '-m', '1G', '--share', 'time')
    nvml.say(f'process 0 compute {pid} 100')
    nvml.say('process 0 compute 1 20000')
    nvml.write()
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_peak_bytes') == 100 << 20, 'a sample')
    assert not box.job(job)['usage']['gpu_memory_over_bytes']
    gate.open()
    assert box.wait(job)['ended_by'] == 'exit'


def test_without_an_option_a_share_is_not_enforced(box, nvml, gate, bell):
    job, pid = start(box, gate, bell, '-m', '8G', then='ls "$MGPU_NOTICES" 2>/dev/null; echo none')
    use(nvml, pid, 20 * GIB_MIB)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_peak_bytes') == 20 << 30, 'a sample')
    assert box.job(job)['usage']['share'] is None and not box.job(job)['usage']['gpu_memory_over_bytes']
    gate.open()
    assert box.wait(job)['ended_by'] == 'exit'
    assert box.output(job) == 'none\n'  # nobody has told it anything


def test_an_excess_survives_a_restart_of_the_agent(box, nvml, gate, bell):
    job, pid = start(box, gate, bell, '-m', '8G', '--share', 'time')
    use(nvml, pid, 9 * GIB_MIB)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_over_bytes'), 'the excess')
    box.kill_agent()
    assert box.wait(job)['ended_by'] == 'gpu_mem'


def test_a_share_that_cannot_be_enforced_does_not_start(box):
    refused = box.mgpu('submit', '-m', '8G', '--share', 'dmem', '--', 'true')
    assert refused.code != 0 and 'no node can enforce shares of GPUs by dmem' in refused.err, refused


@pytest.mark.parametrize('options, words', [
    (['-g', '1', '--share', 'mps'], 'share requires a share of a GPU'),
    (['-g', '0.5', '--share', 'fast'], "'fast' is not auto, dmem, mps, time or none"),
    (['-g', '0.5', '--share', 'mig'], 'a MIG instance counts as a GPU'),
    (['-g', '1.5', '--share', 'auto'], '1.5'),
    (['-g', '0.0001', '--share', 'auto'], '0.0001'),
    (['-g', '-0.5', '--share', 'auto'], '-0.5'),
    (['-g', 'nan', '--share', 'auto'], 'nan'),
    (['-g', '0', '--share', 'auto'], 'share requires a share of a GPU'),
], ids=['whole', 'kind', 'mig', 'one-and-a-half', 'tiny', 'negative', 'nan', 'zero'])
def test_a_bad_share_is_refused_with_the_reason(box, options, words):
    answer = box.mgpu('submit', *options, '--', 'true')
    assert answer.code == 2 and words in answer.err, answer


def test_doctor_tells_how_shares_are_enforced(box):
    assert '--share auto uses time: a job that stays above its share is ended; no dmem: ' in box.mgpu('doctor').out


# --- what earlier jobs used ---

def test_submit_tells_what_earlier_jobs_used_and_can_request_it(box, nvml, gate, bell):
    command = ['sh', '-c', f'echo $$ >{bell.path}; read word <{gate.path}']
    first = box.mgpu('submit', '-m', 'auto', '--', *command)
    assert first.code != 0 and 'no earlier job of yours with this command has a known peak' in first.err, first
    job = box.submit('-m', '8G', '--', *command)
    use(nvml, bell.wait(), 3 * GIB_MIB)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_peak_bytes') == 3 << 30, 'a sample')
    gate.open()
    assert box.wait(job)['state'] == 'done'
    more = box.mgpu('submit', '--hold', '-m', '20G', '--', *command)
    assert '1 earlier job with this command used at most 3 GiB of GPU memory; this one requests 20 GiB' in more.err, more
    enough = box.mgpu('submit', '--hold', '-m', '4G', '--', *command)
    assert enough.code == 0 and 'earlier' not in enough.err, enough
    other = box.mgpu('submit', '--hold', '-m', '20G', '--', 'true')
    assert other.code == 0 and 'earlier' not in other.err, other
    auto = box.submit('--hold', '-m', 'auto', '--', *command)
    assert box.job(auto)['gpu_mem'] == 3380 << 20  # 3 GiB and a tenth


def test_other_arguments_of_a_script_count_where_no_job_had_the_same(box, nvml, gate, bell, place):
    script = f'{place}/train.sh'
    with open(script, 'w', encoding='ascii') as out:
        out.write(f'echo $$ >{bell.path}; read word <{gate.path}\n')
    job = box.submit('-m', '8G', '--', 'sh', script, '--lr', '1')
    use(nvml, bell.wait(), 3 * GIB_MIB)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('gpu_memory_peak_bytes') == 3 << 30, 'a sample')
    gate.open()
    assert box.wait(job)['state'] == 'done'
    more = box.mgpu('submit', '--hold', '-m', '20G', '--', 'sh', script, '--lr', '2')
    assert '1 earlier job of this program with other arguments used at most 3 GiB of GPU memory; ' in more.err, more
    auto = box.mgpu('submit', '--hold', '-m', 'auto', '--', 'sh', script, check=True)
    assert '-m auto: requests 3.30 GiB' in auto.err or '-m auto: requests 3.3 GiB' in auto.err, auto
    other = box.mgpu('submit', '--hold', '-m', 'auto', '--', 'sh', f'{script}x', '--lr', '1')
    assert other.code != 0 and 'has a known peak' in other.err, other
