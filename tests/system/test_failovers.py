# SPDX-License-Identifier: MIT
"""Leaders that fail in all ways, under clients: nothing acknowledged is lost, nothing runs twice, and all stores are equal.

A short campaign here; `make soak FAILOVERS=100` runs a long one with eight clients.
"""

import os
import random
import time

import pytest

import harness
import hosts
from controllers import check_all_ran_once, check_equal, has_etcd, has_progress, run_clients
from spread_controllers import spread_controllers

FAILOVERS = int(os.environ.get('MGPU_SOAK_FAILOVERS') or 7)
SEED = int(os.environ.get('MGPU_SOAK_SEED') or 1)
IS_LONG = FAILOVERS > 10
CLIENTS, PAUSE_S, DISK_MB = (8, 0.2, 48 + 4 * FAILOVERS) if IS_LONG else (3, 0, 48)  # a long one stores more jobs

pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not has_etcd(), reason='etcd-server is not installed'),
              pytest.mark.skipif(hosts.why_not() is not None, reason=str(hosts.why_not()))]

FAULTS = (
    ('kill -9', lambda made, _: made.kill_leader()),
    ('SIGSTOP and continue', lambda made, _: made.stop_leader()),
    ('cut from etcd', lambda made, _: made.cut_leader_from_etcd()),
    ('cut from the nodes', lambda made, _: made.cut_leader_from_nodes()),
    ('a full disk', lambda made, _: made.fill_leaders_disk()),
    ('a step of the clock', lambda made, dice: made.set_leaders_clock(dice.choice((-7200, 7200)))),
    ('a member of etcd killed', lambda made, dice: made.kill_member_of_etcd(dice.randrange(3))),
)


def test_a_campaign_of_failovers_loses_nothing_and_repeats_nothing(ana, ran):
    dice, counts, waits = random.Random(SEED), {}, []
    print(f'failover campaign: {FAILOVERS} faults, {CLIENTS} clients; again with: make soak SEED={SEED} FAILOVERS={FAILOVERS}')
    with spread_controllers(ana, DISK_MB) as made:
        def upset():
            order = []
            for _ in range(FAILOVERS):
                order = order or dice.sample(FAULTS, len(FAULTS))
                name, fault = order.pop()
                began = time.monotonic()
                fault(made, dice)
                made.start_again()
                has_progress(made)
                waits.append((name, time.monotonic() - began))
                counts[name] = counts.get(name, 0) + 1

        acknowledged = run_clients(made, ran, upset, CLIENTS, with_statuses=True, pause_s=PAUSE_S)
        for name, count in sorted(counts.items()):
            print(f'{name}: {count}, at most {max(wait for one, wait in waits if one == name):.1f} s until jobs were accepted')
        print(f'{len(acknowledged)} jobs were acknowledged')
        assert len(acknowledged) > 5 * FAILOVERS, 'hardly anything was submitted'
        check_all_ran_once(made, acknowledged, ran, with_statuses=True)
        check_equal(made)
