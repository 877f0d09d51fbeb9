# SPDX-License-Identifier: MIT
"""Constant load changes nothing that stays: memory, descriptors, cgroups and files are as they were.

MGPU_SOAK_MINUTES: how long (make soak MINUTES=1440 is a day), ten jobs a second. Otherwise some hundred jobs in a row.
"""

import os
import random

import pytest
import steady

MINUTES = int(os.environ.get('MGPU_SOAK_MINUTES') or 0)
RATE = 10 if MINUTES else 20
COUNT = MINUTES * 60 * RATE or 300
WARM_UP = 6000 if MINUTES else 100  # ten minutes: 5000 ended jobs are kept in memory, and the first snapshot takes its buffers


def test_levels_stay_under_constant_load(make_instance, someone):
    box = make_instance(client=someone, gpus='sim:8x24G', arguments=['--keep-max', str(steady.KEPT_JOBS)])
    load, samples = steady.Load(box), []
    load.run(RATE, WARM_UP)
    watched = steady.daemons(box)
    before = steady.at_rest(box, watched)
    load.run(RATE, COUNT, lambda number: samples.append((number, steady.levels(box, watched))))
    assert steady.daemons(box) == watched, 'a daemon was replaced'
    # Sanitizers keep freed memory, a short run ends before mgpud has all the ended jobs that it keeps, and on a busy machine
    # more and more jobs are under way: then descriptors are counted at rest.
    rows, broken = steady.judge(samples, are_daemons_judged=MINUTES > 0)
    after = steady.at_rest(box, watched)
    print(f'{COUNT} jobs, {RATE} a second; at rest {before}, {after}')
    for what, (values, rise) in rows.items():
        print(f'{what}: {" ".join(map(str, values))}; trend over all {rise:+.0f}')
    broken += steady.left_over(before, after)
    assert not broken, '\n'.join(broken)
    assert set(watched) == set(steady.DAEMONS)


@pytest.mark.parametrize('what, a_job, is_noticed', [
    ('mgpud, bytes', 0, False), ('mgpud, bytes', 100, True),
    ('mgpud, descriptors', 0, False), ('mgpud, descriptors', 0.001, True),
    ('database, bytes', 0, False), ('database, bytes', 1000, True),
])
def test_a_leak_is_noticed_and_noise_is_not(what, a_job, is_noticed):
    chance = random.Random(7)
    noise = 200000 if 'bytes' in what else 4
    samples = [(jobs, {what: round(5000000 + chance.uniform(0, noise) + jobs * a_job)}) for jobs in range(200, 12001, 200)]
    assert bool(steady.judge(samples)[1]) == is_noticed


def test_what_is_left_at_rest_is_noticed():
    assert not steady.left_over({'cgroups': 2}, {'cgroups': 4})
    assert steady.left_over({'cgroups': 2, 'processes': 7}, {'cgroups': 300, 'processes': 7})
