# SPDX-License-Identifier: MIT
"""The kit for new hardware: which checks run in the time that there is, and in which order."""

import json
import os
import re
import subprocess

import pytest

import harness
from test_gpu_kit import ASKED, kit, names_of_checks, results  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')


def listed(*arguments):
    """(name, its usual seconds, the seconds until its end) of each line of --list"""
    out = subprocess.run([f'{harness.build_folder()}/mgpu-gpu-kit', '--list', *arguments], capture_output=True, text=True,
                         check=True, env={'ASAN_OPTIONS': 'detect_leaks=0'}, timeout=harness.DEADLINE_S).stdout
    found = [re.fullmatch(r'(\S+) +([\d.]+) s +(\d+) s  \S.*', line) for line in out.splitlines()]
    assert all(found), out
    return [(match[1], float(match[2]), int(match[3])) for match in found]


def test_the_list_has_every_check_with_a_time_and_what_others_need_first():
    rows = listed()
    last = len(rows) - len(ASKED)
    assert sorted(name for name, _, _ in rows) == sorted(set(names_of_checks())) and {name for name, _, _ in rows[last:]} == ASKED
    assert [name for name, _, _ in rows[:7]] == ['machine', 'driver', 'nvml', 'samples', 'numbers', 'amd', 'agent']
    total = sum(seconds for _, seconds, _ in rows[:last])
    assert abs(rows[-1][2] - total) <= 1 and total < 570, 'ten minutes suffice for all'


def test_parking_and_what_jobs_are_given_come_before_what_lasts_long():
    order = [name for name, _, _ in listed()]
    for first in ('job-one', 'job-none', 'oom-first', 'limits', 'park', 'park-8', 'park-40'):
        assert all(order.index(first) < order.index(later) for later in ('storm', 'gpu-test', 'park-most', 'park-auto')), first


def test_no_check_is_listed_as_if_it_took_no_time_that_takes_some():
    seen = {}
    for name in sorted(os.listdir(f'{harness.ROOT}/docs/hardware')):
        with open(f'{harness.ROOT}/docs/hardware/{name}', encoding='utf-8') as report:
            for check in json.load(report)['checks']:
                if check['result'] == 'passed' and check['seconds'] >= 0.1:
                    seen.setdefault(check['name'], []).append(check['seconds'])
    for name, seconds, _ in listed():
        if name in seen:
            assert seconds >= min(1, min(seen[name]) / 3), f'{name} took {min(seen[name])} s'


def test_only_names_choose_from_the_list():
    assert [name for name, _, _ in listed('--only', 'storm,lock')] == [
        'machine', 'driver', 'nvml', 'samples', 'numbers', 'amd', 'agent', 'storm', 'lock']


def test_a_check_that_does_not_fit_leaves_its_time_to_a_shorter_one(kit):  # noqa: F811
    kit.install()
    status, checks = kit.run('-t', 25, '--only', 'storm,gpu-test')
    assert (status, checks['storm']['text'], checks['gpu-test']['result']) == (0, 'no time is left', 'passed'), results(checks)


def test_a_check_that_the_end_of_the_time_cuts_short_does_not_fail(kit):  # noqa: F811
    kit.install(cuda=('hang cuDevicePrimaryCtxRetain',))
    status, checks = kit.run('-t', 8, '--only', 'job-cancel')
    found = checks['job-cancel']
    assert (status, found['result']) == (0, 'skipped') and found['text'].startswith('the time was up before it ended: '), checks
