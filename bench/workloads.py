# SPDX-License-Identifier: MIT
"""Workloads on which a scheduling policy is chosen, and others on which it is judged.

Both sets are made from traces and from a generator of users, always the same. No workload of one set shares a source with one of
the other: what is made from the four cuts on which parameters were tuned in the past, and from odd seeds of the generator, is for
choosing; what is made from later weeks and other virtual clusters, and from even seeds, is for judging.

The variants of a trace: all virtual clusters together, the larger ones each on its own cluster, other loads (times between
submissions stretched), wider jobs, durations that grow during the trace, and users whose time limits are what people type.
"""

import csv
import math
import os
import random

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRACES = os.path.join(ROOT, 'tests', 'traces')

SOURCES = {  # trace: nodes of 8 GPUs, whether it is for choosing
    'philly_w1': (64, True), 'philly_6c71a0': (7, True), 'philly_ee9e8c': (22, True),
    'cut_w6': (54, False), 'cut_w8': (33, False), 'cut_ee9e8c_nov': (16, False), 'cut_103959_nov': (4, False),
}
NODE = 8          # GPUs
LEAST_JOBS = 250  # of a virtual cluster that becomes a workload
MOST_JOBS = 6000  # of the generator
LEAST_LOAD = 0.5  # below that nobody waits
SEEDS = range(1, 21)
LIMITS = [1, 2, 4, 8, 12, 24, 48, 72, 168]  # hours that people type as time limits

MEDIAN_DEVIATION = 0.6745  # of a normal distribution: half of it is within so many standard deviations
TENTH_DEVIATION = 1.6449   # nine tenths
MOST_WRONG = 15.0          # in natural logarithms
LONGEST = 1e8              # seconds, of a prediction

COLUMNS = ('submit', 'user', 'vc', 'command', 'gpus', 'duration', 'walltime_req')


class Workload:
    """Jobs as (submit, user, vc, command, gpus, duration, time limit or 0), and the cluster they are for."""

    def __init__(self, name, jobs, nodes, is_for_choosing, users='user'):
        start = min(job[0] for job in jobs)
        self.name, self.nodes, self.is_for_choosing, self.users = name, nodes, is_for_choosing, users
        self.jobs = sorted((job[0] - start, *job[1:]) for job in jobs if job[4] <= nodes * NODE)

    def load(self):
        span = self.jobs[-1][0] or 1
        return sum(job[4] * job[5] for job in self.jobs) / span / (self.nodes * NODE)

    def write(self, folder, errors=None):
        """With `errors`, durations are also predicted, wrong by these factors in the median and in the worst tenth, each independently
        of all others."""
        path = os.path.join(folder, self.name + ('.csv' if errors is None else '-predicted.csv'))
        draw, wrong = random.Random(self.name), None if errors is None else error_of(*errors)
        with open(path, 'w', newline='', encoding='utf-8') as out:
            writer = csv.writer(out)
            writer.writerow(COLUMNS + (() if errors is None else ('pred_duration',)))
            for job in self.jobs:
                predicted = None if errors is None else min(LONGEST, max(1.0, job[5] * wrong(draw.gauss(0, 1))))
                writer.writerow(job[:6] + (job[6] or '',) + (() if errors is None else (f'{predicted:.3f}',)))
        return path


def error_of(median, worst_tenth):
    """A factor for a normal deviation. The logarithm is a power of the deviation, so that median and worst tenth are met: learnt errors are
    mostly small, but a tenth of them are far larger than those of a normal distribution with the same median."""
    usual, large = (max(least, math.log(max(1, factor))) for factor, least in ((median, 0.01), (worst_tenth, 0.02)))
    power = max(1, math.log(large / usual) / math.log(TENTH_DEVIATION / MEDIAN_DEVIATION))
    return lambda deviation: math.exp(math.copysign(min(MOST_WRONG, usual * (abs(deviation) / MEDIAN_DEVIATION) ** power), deviation))


def read(trace):
    with open(os.path.join(TRACES, trace + '.csv'), encoding='utf-8') as source:
        return [(float(row['submit']), row['user'], row['vc'], '-', int(row['gpus']), float(row['duration']), 0)
                for row in csv.DictReader(source)]


def read_hpc2n():
    """128 processors as a pool: here 16 nodes of 8, jobs up to 128 wide."""
    with open(os.path.join(TRACES, 'hpc2n_cut.csv'), encoding='utf-8') as source:
        return [(float(row['submit']), row['user'], '-', '-', int(row['procs']), float(row['duration']), float(row['walltime_req']))
                for row in csv.DictReader(source)]


# --- variants of a trace ---


def nodes_for(jobs, load):
    """The cluster on which these jobs are that load."""
    span = max(job[0] for job in jobs) - min(job[0] for job in jobs) or 1
    widest = max(job[4] for job in jobs)
    return max(1, math.ceil(widest / NODE), round(sum(job[4] * job[5] for job in jobs) / span / load / NODE))


def virtual_clusters(jobs):
    """The jobs of each virtual cluster that has many."""
    found = {}
    for job in jobs:
        found.setdefault(job[2], []).append(job)
    return {name: those for name, those in sorted(found.items()) if len(those) >= LEAST_JOBS}


def stretched(jobs, factor):
    return [(job[0] * factor, *job[1:]) for job in jobs]


def widened(jobs, most):
    return [(*job[:4], min(most, job[4] * 2), *job[5:]) for job in jobs]


def drifting(jobs):
    """Durations that grow fourfold from the first job to the last, with the same work in all."""
    last = max(job[0] for job in jobs) or 1
    factors = [4 ** (job[0] / last) for job in jobs]
    scale = sum(job[4] * job[5] for job in jobs) / sum(job[4] * job[5] * factor for job, factor in zip(jobs, factors))
    return [(*job[:5], max(1.0, job[5] * factor * scale), job[6]) for job, factor in zip(jobs, factors)]


def limited(jobs, draw):
    """Time limits as people type them: a round number, mostly much more than the job takes, sometimes the largest."""
    typed = []
    for job in jobs:
        hours = job[5] / 3600 * draw.lognormvariate(1.0, 0.8)
        limit = next((one for one in LIMITS if one >= max(hours, job[5] / 3600) and draw.random() > 0.15), LIMITS[-1])
        typed.append((*job[:6], max(limit * 3600.0, job[5])))
    return typed


# --- a generator of users ---


def synthetic(seed):
    """Users with sessions: bursts of alike jobs (arrays), work that is tried shortly and then run for long, and habits that change.

    Some of its parameters are drawn for each seed, so that no two of these workloads are alike in kind.
    """
    draw = random.Random(seed)
    users = draw.choice([4, 8, 15, 30])
    nodes = draw.choice([1, 2, 4, 8, 16])
    load = draw.uniform(0.75, 1.25)
    span = draw.uniform(7, 28) * 86400
    spread = draw.uniform(1.0, 2.2)  # of durations, in natural logarithms
    is_limited = draw.random() < 0.4
    widths = [width for width in (1, 2, 4, 8, 16) if width <= nodes * NODE]
    jobs = []
    for user in range(users):
        activity = draw.paretovariate(1.2)
        commands = [(f'u{user}c{i}', draw.lognormvariate(math.log(3600), 1.4),
                     draw.choices(widths, [8 / width for width in widths])[0]) for i in range(draw.randint(1, 5))]
        time = draw.uniform(0, span / 4)
        while time < span:
            name, typical, width = draw.choice(commands)
            if draw.random() < 0.2:  # its habits change
                commands = [(name, typical * draw.lognormvariate(0, 1), width) for name, typical, width in commands]
            for _ in range(draw.choice([1, 1, 2, 3])):  # tried first
                jobs.append((time, f'u{user}', '-', name, min(width, NODE), draw.uniform(5, 300), 0))
                time += draw.uniform(30, 900)
            for _ in range(draw.choice([1, 2, 4, 10, 30, 60])):
                duration = typical * draw.lognormvariate(0, spread / 2)
                fails = draw.random() < 0.15
                jobs.append((time + draw.uniform(0, 20), f'u{user}', '-', name, width, duration * (draw.random() if fails else 1), 0))
            time += draw.expovariate(1 / (86400 / activity))
    jobs = sorted(job for job in jobs if job[0] < span)[:MOST_JOBS]
    span = jobs[-1][0]
    work = sum(job[4] * job[5] for job in jobs)
    scale = load * nodes * NODE * span / work
    jobs = [(*job[:5], min(max(1.0, job[5] * scale), 14 * 86400.0), job[6]) for job in jobs]
    if is_limited:
        jobs = limited(jobs, draw)
    return Workload(f'users-{seed}', jobs, nodes, seed % 2 == 1)


# --- both sets ---


def variants(trace, nodes, is_for_choosing):
    jobs = read(trace)
    draw = random.Random(trace)
    is_mixed = len({job[2] for job in jobs}) > 1

    def made(what, those, on):
        return Workload(f'{trace}-{what}', those, on, is_for_choosing, 'vc' if is_mixed else 'user')

    yield made('all', jobs, nodes)
    yield made('load-80', stretched(jobs, 1.25), nodes)
    yield made('load-120', stretched(jobs, 1 / 1.2), nodes)
    yield made('wide', widened(jobs, nodes * NODE), nodes * 2)
    yield made('drift', drifting(jobs), nodes)
    yield made('limits', limited(jobs, draw), nodes)
    if is_mixed:
        for name, those in virtual_clusters(jobs).items():
            yield made(f'vc-{name}', those, nodes_for(those, draw.uniform(0.8, 1.1)))


def workloads():
    """All of them, those for choosing first."""
    found = [one for trace, (nodes, is_for_choosing) in SOURCES.items() for one in variants(trace, nodes, is_for_choosing)]
    found.append(Workload('hpc2n', read_hpc2n(), 16, True))
    found += [synthetic(seed) for seed in SEEDS]
    return sorted((one for one in found if one.load() >= LEAST_LOAD), key=lambda one: (not one.is_for_choosing, one.name))


# --- small machines, where parking is most useful ---

BOXES = ((1, 8), (2, 8), (1, 4))  # nodes, GPUs of each
BOX_SOURCES = {'philly_w1': True, 'philly_6c71a0': True, 'cut_w6': False, 'cut_w8': False}  # trace: whether it is for choosing
BOX_LOAD = 0.95                   # aimed at; whole bursts are kept or left out, so loads are 0.4 to 2
BOX_LONGEST = 3 * 86400           # seconds; longer jobs end then
BURST_GAP = 30                    # seconds between jobs of one burst at most
SEVERAL = ((2, 8), (3, 8), (2, 4))  # small clusters: nodes, GPUs of each
COPIES = 3                        # of a workload on them, because one job in another place changes the average of a small one
MOVED = 120                       # seconds by which the bursts of a copy are later at most


class Box:
    """A part of a trace, as much as `nodes` of `gpus` GPUs can run: jobs submitted together stay together. In a copy after the first, each
    burst is a little later."""

    def __init__(self, source, seed, nodes, gpus, copy=0):
        self.name, self.cluster = f'{source}-{seed}-{nodes}x{gpus}', f'{nodes}x{gpus}'
        self.file, self.copy = self.name + (f'-{copy}' if copy else ''), copy
        self.shape, self.is_for_choosing = (nodes, gpus), BOX_SOURCES[source]
        self.path, self.seed = os.path.join(TRACES, source + '.csv'), seed

    def jobs(self):
        nodes, gpus = self.shape
        with open(self.path, encoding='utf-8') as file:
            rows = [row for row in csv.DictReader(file) if int(row['gpus']) <= gpus]
        for row in rows:
            row['duration'] = str(min(int(float(row['duration'])), BOX_LONGEST))
        rows.sort(key=lambda row: int(row['submit']))
        span = int(rows[-1]['submit']) - int(rows[0]['submit'])
        part = BOX_LOAD * nodes * gpus * span / sum(int(row['gpus']) * int(row['duration']) for row in rows)
        draw, kept, last, is_kept = random.Random(self.seed), [], None, False
        for row in rows:
            if last is None or int(row['submit']) - last > BURST_GAP:
                is_kept = draw.random() < part
            last = int(row['submit'])
            if is_kept:
                kept.append(row)
        return self.moved(kept) if self.copy else kept

    def moved(self, rows):
        draw, last, later = random.Random(self.file), None, 0
        for row in rows:
            submit = int(row['submit'])
            if last is None or submit - last > BURST_GAP:
                later = draw.randint(0, MOVED)
            last = submit
            row['submit'] = str(submit + later)
        return sorted(rows, key=lambda row: int(row['submit']))

    def write(self, folder):
        jobs, path = self.jobs(), os.path.join(folder, self.file + '.csv')
        with open(path, 'w', newline='', encoding='utf-8') as out:
            writer = csv.DictWriter(out, jobs[0].keys())
            writer.writeheader()
            writer.writerows(jobs)
        return path


def boxes():
    return [Box(source, seed, *shape) for shape in BOXES for source in BOX_SOURCES for seed in (1, 2)]


def copies(shape):
    """Of each workload for small clusters of this shape."""
    return [Box(source, seed, *shape, copy) for source in BOX_SOURCES for seed in (1, 2) for copy in range(COPIES)]
