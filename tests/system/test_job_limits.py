# SPDX-License-Identifier: MIT
"""Limits of the kernel for jobs: those of the agent, or those of the site."""

import os
import re
import resource

import harness
import pytest

ROOT = harness.ROOT


def limits(box, *words):
    """(soft, hard) of the names of /proc/self/limits in a job."""
    out = box.mgpu('run', '-q', '-g', 0, *words, '--', 'cat', '/proc/self/limits', check=True).out
    found = re.findall(r'^Max (.+?)\s{2,}(\S+)\s+(\S+)', out, re.M)
    return {name: (soft, hard) for name, soft, hard in found}


@pytest.mark.root
def test_a_site_sets_the_limits_of_jobs(make_instance):
    box = make_instance(arguments=['--job-limits', 'memlock=unlimited,nofile=555:777,stack=16M,core=0'])
    found = limits(box)
    if can_raise():
        assert found['locked memory'] == ('unlimited', 'unlimited')
    assert found['open files'] == ('555', '777')
    assert found['stack size'] == (str(16 << 20), str(16 << 20))
    assert found['core file size'] == ('0', '0')


def test_without_root_a_limit_is_lowered_and_never_refused(make_instance):
    box = make_instance(user=harness_user(), arguments=['--job-limits', 'memlock=unlimited,nofile=100'])
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    found = limits(box)
    assert found['open files'] == ('100', '100')
    assert found['locked memory'][1] == ('unlimited' if hard == resource.RLIM_INFINITY else str(hard))


def can_raise():
    """Whether root here has CAP_SYS_RESOURCE."""
    with open('/proc/self/status', encoding='ascii') as file:
        return int(re.search(r'^CapEff:\s*(\S+)', file.read(), re.M)[1], 16) >> 24 & 1 == 1


def harness_user():
    return harness.make_user('mgpu-ta') if harness.IS_ROOT else None


def test_steps_and_further_processes_have_them(make_instance, gate):
    box = make_instance(user=harness_user(), arguments=['--job-limits', 'nofile=100'])
    job = box.submit('-g', 0, '--', *gate.command())
    box.wait(job, states='running,done')
    assert box.mgpu('exec', job, 'sh', '-c', 'ulimit -n', check=True).out == '100\n'


@pytest.mark.parametrize('text, sentence', [
    ('memlock', "'memlock' is not a limit"),
    ('memory=8G', "'memory=8G' is not a limit"),
    ('nofile=many', 'many'),
    ('nofile=9:5', 'the soft limit 9 of nofile is above the hard limit 5'),
    ('stack=8M,,core=0', "'' is not a limit"),
])
def test_a_value_that_is_no_limit_is_refused_at_the_start(text, sentence):
    done = os.popen(f"'{harness.programs()}/mgpud' --gpus sim:1x8G --job-limits '{text}' 2>&1").read()
    assert '--job-limits' in done and sentence in done, done


@pytest.mark.parametrize('unit', ['mgpud', 'mgpu-agent'])
def test_the_units_lift_the_limit_of_locked_memory(unit):
    with open(f'{ROOT}/contrib/systemd/{unit}.service.in', encoding='utf-8') as file:
        assert 'LimitMEMLOCK=infinity' in file.read().splitlines()
