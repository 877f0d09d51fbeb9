# SPDX-License-Identifier: MIT
"""Pods drawn from the lists of openb, most of which arrive and end: on which a placement is chosen, and others on which it is judged.

The lists tell what pods request. How long they run is drawn (log-normal, an hour in the mean), as are their arrivals (Poisson), so that
they are as much work as `load` times the GPUs of a sixth of the nodes. A mix draws kinds of pods more or less often than the list has them.
"""

import csv
import math
import os
import random

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRACES = os.path.join(ROOT, 'tests', 'traces')

PODS = 12000
EVERY = 6  # node of the list
MEAN_S, SPREAD, MOST_S = 3600, 1.2, 3 * 86400

MIXES = {  # the list, and how much more often a kind is drawn
    'default': ('default', {}),
    'gpushare40': ('gpushare40', {}),
    'no shares': ('default', {'share': 0}),
    'more wide': ('default', {'wide': 6}),
    'more shares': ('gpushare40', {'share': 4}),
    'more shares and wide': ('gpushare40', {'share': 2, 'wide': 6}),
}
CHOOSING = [(mix, seed, 0.95) for mix in ('default', 'gpushare40') for seed in range(1, 7)]
JUDGING = [(mix, seed, load) for mix in MIXES for seed in (11, 12) for load in (0.9, 1.0)]


def kind(pod):
    gpus = int(pod['num_gpu'])
    return 'none' if gpus == 0 else 'wide' if gpus > 1 else 'share' if int(pod['gpu_milli']) < 1000 else 'one'


def rows(name):
    with open(os.path.join(TRACES, name), encoding='utf-8') as source:
        return list(csv.DictReader(source))


def draw_pods(draw, mix, count):
    listed, weights = MIXES[mix]
    pods = rows(f'openb_pod_list_{listed}.csv')
    return draw.choices(pods, [weights.get(kind(pod), 1) for pod in pods], k=count)


def gpus(pod):
    return int(pod['num_gpu']) * int(pod['gpu_milli'] or 0) / 1000


def write_endless(folder, mix, seed, arrived):
    """The path of a list of pods that never end and request `arrived` times all GPUs of the nodes of openb, and of these nodes."""
    draw = random.Random(f'{mix} {seed}')
    cluster = os.path.join(TRACES, 'openb_node_list_gpu_node.csv')
    left = arrived * sum(int(node['gpu']) for node in rows(os.path.basename(cluster)))
    pods = []
    while left > 0:
        pods += draw_pods(draw, mix, 1000)
        left -= sum(map(gpus, pods[-1000:]))
    path = os.path.join(folder, f'{mix}-{seed}-endless.csv'.replace(' ', '-'))
    with open(path, 'w', newline='', encoding='utf-8') as out:
        writer = csv.DictWriter(out, pods[0].keys())
        writer.writeheader()
        writer.writerows(pods)
    return path, cluster


def write(folder, mix, seed, load):
    """The paths of a trace of pods that end, and of its nodes."""
    draw = random.Random(f'{mix} {seed} {load}')
    nodes = rows('openb_node_list_gpu_node.csv')[seed % EVERY::EVERY]
    draw.shuffle(nodes)
    chosen = draw_pods(draw, mix, PODS)
    durations = [min(draw.lognormvariate(math.log(MEAN_S) - SPREAD ** 2 / 2, SPREAD), MOST_S) for _ in chosen]
    work = sum(gpus(pod) * duration for pod, duration in zip(chosen, durations))
    rate = PODS / (work / load / sum(int(node['gpu']) for node in nodes))
    trace, cluster = (os.path.join(folder, f'{mix}-{seed}-{load}-{what}.csv'.replace(' ', '-')) for what in ('pods', 'nodes'))
    with open(cluster, 'w', newline='', encoding='utf-8') as out:
        writer = csv.DictWriter(out, nodes[0].keys())
        writer.writeheader()
        writer.writerows(nodes)
    time = 0
    with open(trace, 'w', newline='', encoding='utf-8') as out:
        writer = csv.writer(out)
        writer.writerow(('submit', 'duration', 'num_gpu', 'gpu_milli', 'cpu_milli', 'memory_mib'))
        for pod, duration in zip(chosen, durations):
            time += draw.expovariate(rate)
            writer.writerow((f'{time:.0f}', f'{duration:.0f}', *(pod[name] for name in ('num_gpu', 'gpu_milli', 'cpu_milli', 'memory_mib'))))
    return trace, cluster
