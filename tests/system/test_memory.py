# SPDX-License-Identifier: MIT
"""An allocation that fails, by tests/standin/memory.c: the program ends by its own decision, is started again, and nothing
that was acknowledged is lost or done twice. MGPU_FAILURES and MGPU_SEED: how many, and which."""

import http.client
import mmap
import os
import random
import shutil
import signal
import struct

import pytest

import harness

FAILURES = int(os.environ.get('MGPU_FAILURES', '16'))
SEED = os.environ.get('MGPU_SEED', '1')

# In a mount namespace of its own, with the few files of /etc that are needed and one that loads the stand-in.
ENTER = """set -e
mount --bind "$1/mnt" /mnt
mount --bind "$1/etc" /etc
shift
exec "$@"
"""
ENDS = (-signal.SIGABRT, os.EX_TEMPFAIL, 1)  # by its own decision
FILES = ('passwd', 'group', 'ld.so.cache', 'nsswitch.conf', 'hosts')


class Allocations:
    """The numbers that the stand-in shares with the processes of one program."""

    def __init__(self, folder, program):
        with open(f'{folder}/memory-{program}', 'w+b') as file:
            file.write(bytes(16))
            file.flush()
            self.map = mmap.mmap(file.fileno(), 16)

    def fail(self, number):
        """The allocation of that number from now on fails; 0: none does."""
        self.map[:8] = struct.pack('q', number)

    def seen(self):
        return struct.unpack('q', self.map[8:])[0]


@pytest.fixture
def box(make_instance, ana):
    harness.require_namespaces()
    made = make_instance(gpus='sim:2x8G', client=ana, start=False)
    for name in ('mnt', 'etc'):
        os.mkdir(f'{made.place}/{name}')
    for name in FILES:
        if os.path.exists(f'/etc/{name}'):
            shutil.copy(f'/etc/{name}', f'{made.place}/etc')
    shutil.copy(f'{harness.build_folder()}/tests/unit/agent/libmemory.so', f'{made.place}/mnt')
    with open(f'{made.place}/etc/ld.so.preload', 'w', encoding='ascii') as target:
        target.write('/mnt/libmemory.so\n')
    made.command[:0] = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', made.place]
    made.of = {program: Allocations(f'{made.place}/mnt', program) for program in ('mgpud', 'mgpu-agent')}
    return made.start()


def per_job(box, program):
    """How many allocations one job takes."""
    box.run_job(['true'])
    before = box.of[program].seen()
    box.run_job(['true'])
    count = box.of[program].seen() - before
    if not count:
        pytest.skip('this build has its own allocator in the program, before the stand-in')
    return count


def numbers(box, program):
    """Which allocations fail: spread over those of a job, and the seed moves them."""
    chance = random.Random(SEED)
    step = max(1, per_job(box, program) // FAILURES)
    return [1, *(i * step + chance.randrange(step) + 1 for i in range(FAILURES))]


def submit(box, key, place):
    """The job of that key; None when mgpud does not say. Nothing else may be wrong with it."""
    try:
        answer = box.api('POST', '/jobs', {'command': ['sh', '-c', f'echo {key} >> {place}/ran; exit 3'], 'submit_key': key})
    except (OSError, http.client.HTTPException):
        return None
    assert answer.status in (200, 201, 500, 503), answer
    return answer.json['id'] if answer.status < 300 else None


def each_ran_once(box, jobs, place):
    for job in jobs.values():
        ended = box.wait(job)
        assert (ended['exit_code'], ended['ended_by']) == (3, 'exit'), ended
    with open(f'{place}/ran', encoding='ascii') as source:
        ran = source.read().split()
    assert sorted(ran) == sorted(jobs), (ran, jobs)


@pytest.mark.root
def test_mgpud_that_gets_no_memory_ends_and_loses_nothing(box, place):
    memory, jobs, deaths = box.of['mgpud'], {}, 0
    for number in numbers(box, 'mgpud'):
        key = f'n{number}'
        memory.fail(number)
        told = submit(box, key, place)
        memory.fail(0)
        while (job := submit(box, key, place)) is None:
            code = box.process.wait(harness.DEADLINE_S)
            assert code in ENDS, (number, code, box.log()[-2000:])
            deaths += 1
            box.start()
        assert told in (None, job), (number, told, job)
        jobs[key] = job
    print(f'{len(jobs)} failures, mgpud ended {deaths} times')
    assert deaths
    each_ran_once(box, jobs, place)


@pytest.mark.root
def test_an_agent_that_gets_no_memory_is_started_again_and_jobs_run_once(box, place):
    memory, jobs = box.of['mgpu-agent'], {}
    for number in numbers(box, 'mgpu-agent'):
        key = f'n{number}'
        memory.fail(number)
        jobs[key] = submit(box, key, place)
        box.wait(jobs[key])
        memory.fail(0)
    deaths = box.log().count('mgpu: out of memory')
    print(f'{len(jobs)} failures; processes of the agent ended {deaths} times')
    assert deaths
    each_ran_once(box, jobs, place)
