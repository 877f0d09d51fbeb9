# SPDX-License-Identifier: MIT
"""Constant load on one instance, and what its programs hold meanwhile.

A level is a number that must not rise with the count of jobs: memory and descriptors of each daemon, and bytes of the
database. Trends are slopes by Theil and Sen (median of the slopes of all pairs): single samples, such as one during a
commit, do not count. What goes with the jobs of the moment is counted while there are none, before and after: processes,
cgroups, and files of the run and the state directory.
"""

import contextlib
import itertools
import json
import os
import select
import statistics
import time

import harness
import invariants

DAEMONS = ('mgpud', 'mgpu-keeper', 'mgpu-agent', 'mgpu-gpus', 'mgpu-forks', 'mgpu-users')
SAMPLES = 60
KEPT_JOBS = 500        # in the store: it reaches its size early
KEPT_MAX = 16          # shepherds: agent/launch/fork_client.c
GROWTH_MAX = 3         # of descriptors, and of what is counted at rest
MEMORY_MAX = 512 << 10
MEMORY_A_JOB = 4
DATABASE_MAX = 4 << 20

# What the jobs are, in turn; commands by /bin/sh, and members of the request.
JOBS = (
    ('true', {'gpus': 1}),
    ('exit 3', {'gpus': 1}),
    ('i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done', {'gpus': 0.5}),
    ('true', {'gpus': 2, 'name': 'pair'}),
    ('kill -9 $$', {'gpus': 0}),
    ('sleep 30 & sleep 0.3', {'gpus': 1}),
    ('true', {'gpus': 1, 'hold': True}),  # cancelled before it starts
    ('sleep 60', {'gpus': 1, 'time_limit': 1}),
)
QUESTIONS = ('/jobs', '/gpus', '/nodes', '/users', '/history', '/openapi.json')


class Client:
    """One connection, used for one request after the other."""

    def __init__(self, instance):
        self.connection = instance.connection(instance.client)

    def call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, f'/api/v1{path}', text, {'Content-Type': 'application/json'} if text else {})
        answer = self.connection.getresponse()
        data = answer.read()
        assert answer.status in (200, 201, 202), f'{method} {path}: {answer.status} {data[:500]!r}'
        return data


class Load:
    """Submits jobs of all kinds at a rate, and asks every kind of question now and then."""

    def __init__(self, instance):
        self.client, self.count = Client(instance), 0

    def submit(self):
        script, fields = JOBS[self.count % len(JOBS)]
        body = {'command': ['/bin/sh', '-c', script], 'output': '/dev/null', **fields}
        made = json.loads(self.client.call('POST', '/jobs', body))
        if fields.get('hold'):
            self.client.call('POST', f"/jobs/{made['id']}/cancel", {})
        if self.count % 10 == 0:
            self.client.call('GET', QUESTIONS[self.count // 10 % len(QUESTIONS)])
        self.count += 1

    def run(self, rate, jobs, at_sample=None):
        """That many jobs, so many a second; the load does not wait for them."""
        begin = time.monotonic()
        wanted = {jobs * number // SAMPLES for number in range(1, SAMPLES + 1)} if at_sample else ()
        for number in range(1, jobs + 1):
            select.select([], [], [], max(0, begin + number / rate - time.monotonic()))
            self.submit()
            if number in wanted:
                at_sample(number)


def parents_of_all():
    """{pid: pid of its parent} of every process."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{entry}/stat', encoding='ascii', errors='replace') as source:
            parents[int(entry)] = int(source.read().rpartition(')')[2].split()[1])
    return parents


def daemons(instance):
    """{name: pid} of mgpud and of its descendants that stay."""
    parents = parents_of_all()
    found, family = {'mgpud': instance.process.pid}, {instance.process.pid}
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
        found.update({harness.process_name(pid): pid for pid in grown if harness.process_name(pid) in DAEMONS})
    return found


def private_bytes(pid):
    """Memory that only this process has: its anonymous pages."""
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as source:
        return next(int(line.split()[1]) << 10 for line in source if line.startswith('Anonymous:'))


def files_below(folder):
    return sum(len(names) for _, _, names in os.walk(folder))


def gone_processes(pid):
    """Of how many processes that have ended it has a pidfd."""
    count = 0
    for name in os.listdir(f'/proc/{pid}/fdinfo'):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/fdinfo/{name}', encoding='ascii') as lines:
            count += 'Pid:\t-1\n' in lines.read()
    return count


def descriptors(watched):
    """Of each daemon; without the pidfd and the socket that mgpu-agent has of each kept shepherd, of which it notices only
    with a later start that one has left."""
    kept = sum(parent == watched['mgpu-forks'] and harness.process_name(pid) == 'mgpu-idle'
               for pid, parent in parents_of_all().items())
    kept = min(kept + gone_processes(watched['mgpu-agent']), KEPT_MAX)
    found = {f'{name}, descriptors': len(os.listdir(f'/proc/{pid}/fd')) for name, pid in watched.items()}
    found['mgpu-agent, descriptors'] -= 2 * kept
    return found


def levels(instance, watched):
    """{what: how much} at this moment."""
    found = {'database, bytes': os.lstat(f'{instance.state_dir}/store/mgpu.db').st_blocks * 512}
    found.update({f'{name}, bytes': private_bytes(pid) for name, pid in watched.items()})
    return {**found, **descriptors(watched)}


def at_rest(instance, watched):
    """{what: how many} once all jobs have ended; kept shepherds are not counted, nor snapshots of the store."""
    for job in instance.open_jobs():
        instance.wait(job)
    harness.until(lambda: not list(invariants.check_left_over(instance)), 'something of a job is left')
    pids = harness.processes(instance.place)
    return {'processes': sum(harness.process_name(pid) != 'mgpu-idle' for pid in pids),
            'cgroups': len(invariants.cgroups_of(instance)), 'files of the run directory': files_below(instance.run_dir),
            'files of the state directory': files_below(instance.state_dir) - files_below(f'{instance.state_dir}/store/backup'),
            **descriptors(watched)}


def slope(points):
    """Of all pairs of points, the median."""
    return statistics.median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.combinations(points, 2))


def most(what, jobs):
    """How much a level may rise over so many jobs."""
    if what == 'database, bytes':
        return DATABASE_MAX
    return MEMORY_MAX + MEMORY_A_JOB * jobs if what.endswith('bytes') else GROWTH_MAX


def judge(samples, are_daemons_judged=True):
    """({what: (eleven of its values, its rise)}, what rises too much) of (jobs so far, levels). The first fifth is warm-up."""
    samples = samples[len(samples) // 5:]
    jobs = samples[-1][0] - samples[0][0]
    rows, broken = {}, []
    for what in samples[0][1]:
        rise, limit = slope([(count, found[what]) for count, found in samples]) * jobs, most(what, jobs)
        rows[what] = [samples[number * (len(samples) - 1) // 10][1][what] for number in range(11)], rise
        if rise > limit and (are_daemons_judged or what == 'database, bytes'):
            broken.append(f'{what}: rose by {rise:.0f} over {jobs} jobs, at most {limit:.0f}')
    return rows, broken


def left_over(before, after):
    return [f'{what}: {count} before and {after[what]} after all jobs' for what, count in before.items()
            if after[what] > count + GROWTH_MAX]
