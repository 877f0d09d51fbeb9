# SPDX-License-Identifier: MIT
"""What running jobs cost their node: descriptors of the agent, and memory of the two processes beside each command."""

import os
import resource

import pytest

import harness

JOBS = 60
FOUND = 64            # open files at the start of mgpud: fewer than the agent needs for these jobs
PRIVATE_KIB = 150     # of a shepherd and its init together


@pytest.fixture
def narrow(make_instance):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    box = make_instance(start=False)
    box.command = ['prlimit', f'--nofile={FOUND}:{hard}', *box.command]
    return box.start()


def private_kib(pid):
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith('Private_Dirty:'))


def children_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as source:
        return [int(word) for word in source.read().split()]


def test_a_node_runs_more_jobs_than_it_may_open_files_and_they_keep_that_limit(narrow):
    gate = harness.Gate(narrow.place)
    ids = [narrow.post_job(gate.command(), gpus=0, cpus=0.02) for _ in range(JOBS)]
    for job in ids:
        narrow.wait(job, 'running')
    job = narrow.submit('-c', '0.02', '--', 'sh', '-c', 'ulimit -Sn')
    narrow.wait(job)
    assert narrow.output(job).strip() == str(FOUND)
    assert not [line for line in narrow.log().splitlines() if 'cannot start' in line]
    gate.open(len(ids))  # those that have not come to the gate yet will find it open
    assert {narrow.wait(one)['exit_code'] for one in ids} == {0}
    gate.close()


def test_a_running_job_takes_little_memory_of_its_node(make_instance):
    box = make_instance()
    if harness.is_sanitized():
        pytest.skip('a sanitizer needs far more memory')
    gate = harness.Gate(box.place)
    ids = [box.post_job(gate.command(), gpus=1) for _ in range(4)]
    for job in ids:
        box.wait(job, 'running')
    used = {pid: private_kib(pid) + sum(map(private_kib, children_of(pid))) for pid in box.shepherds() if children_of(pid)}
    gate.close()
    assert len(used) >= len(ids) and max(used.values()) <= PRIVATE_KIB, used
