# SPDX-License-Identifier: MIT
"""What a job made of what it was given, and what it said last, in its record."""

import glob
import os
import select
import signal
import sqlite3
import time

import harness

SAMPLED_MS, MEMORY_PEAK, TIMELINE, TAIL = 2, 8, 15, 16  # tags of src/job/usage.c


def usage(instance, job):
    """{tag: value} of the job's durable record; empty when there is none."""
    with sqlite3.connect(f'file:{glob.glob(instance.state_dir + "/store/*.db")[0]}?mode=ro', uri=True) as store:
        blob, = store.execute('SELECT usage FROM jobs WHERE id = ?', [job]).fetchone()
    values, rest = {}, iter(blob[1:-4] if blob else b'')  # the dense form of src/base/record_dense.h

    def number(first):
        value, shift = first & 127, 7
        while first & 128:
            first = next(rest)
            value, shift = value | (first & 127) << shift, shift + 7
        return value

    for kind, byte in enumerate(rest):
        key = number(byte)  # the first is the type of the record
        if kind > 0:
            values[key // 2] = number(next(rest))
            if key % 2:
                value = bytes(next(rest) for _ in range(values[key // 2]))
                values[key // 2] = value.decode() if key // 2 in (TIMELINE, TAIL) else value
    return values


def await_kept(instance, job):
    """Waits until the agent has recorded the usage of the job."""
    path, end = f'{instance.run_dir}/spool/{job}.1.0.0/usage', time.monotonic() + harness.DEADLINE_S
    while time.monotonic() < end:
        if os.path.exists(path):
            return
        select.select([], [], [], 0.05)
    raise AssertionError(f'{path} was not written')


def test_a_failed_job_has_its_last_lines_in_its_record(box):
    job, _ = box.run_job(['sh', '-c', 'echo loading; echo "no such model" >&2; exit 3'])
    assert usage(box, job['id'])[TAIL] == 'loading\nno such model\n'
    job, _ = box.run_job(['echo', 'all is well'])
    assert TAIL not in usage(box, job['id'])


def test_a_job_is_measured_while_it_runs(box, gate):
    job = box.post_job(gate.command(), gpus=2)
    await_kept(box, job)
    gate.open()
    box.wait(job)
    seen = usage(box, job)
    assert seen[SAMPLED_MS] > 0 and seen[MEMORY_PEAK] > 0 and len(seen[TIMELINE]) >= 6, seen


def test_what_a_job_used_outlives_a_killed_agent(make_instance, gate):
    instance = make_instance()
    job = instance.post_job(gate.command())
    await_kept(instance, job)
    agents = instance.agents()
    for agent in agents:
        os.kill(agent, signal.SIGKILL)
    assert all(harness.wait_process(agent) for agent in agents)
    instance.kill()
    gate.open()
    instance.start()
    instance.wait(job)
    assert usage(instance, job)[SAMPLED_MS] > 0
