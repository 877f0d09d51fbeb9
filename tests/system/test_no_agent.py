# SPDX-License-Identifier: MIT
"""A head machine that runs no jobs: mgpud without an agent, and the unit of systemd that confines it."""

import os
import shutil
import subprocess

import pytest

import harness
from cluster import Cluster

UNIT = 'mgpu-controller.service'
CAPABILITIES = ('chown', 'dac_override', 'fowner', 'setgid', 'setuid')  # of the unit
EXPOSURE_MAX = 3.0


@pytest.fixture
def head(someone):
    with Cluster(1, client=someone, arguments=['--no-agent']) as made:
        yield made


def test_jobs_run_on_the_nodes_alone(head):
    box = head.box
    assert not [line for line in harness.processes(box.place).values() if 'mgpu-agent' in line and head.nodes['n1'].place not in line]
    assert [node['name'] for node in box.api('GET', '/nodes').json['nodes']] == ['n1']
    done = box.mgpu('run', '-q', '-g', '1', '--', 'sh', '-c', 'echo on $MGPU_NODE', check=True)
    assert done.out == 'on n1\n'
    refused = box.mgpu('submit', '-g', '5', '--', 'true')
    assert refused.code != 0 and 'GPUs' in refused.err, refused


def test_a_restart_without_it_finds_jobs_that_ended_in_between(head, gate):
    box = head.box
    job = box.submit('-q', '-g', '1', '--', *gate.command('exit 4'))
    box.wait(job, 'running')
    box.kill()
    gate.open()
    box.start()
    assert box.wait(job)['exit_code'] == 4


def test_doctor_says_how_the_first_node_is_added(someone):
    with Cluster(0, client=someone, arguments=['--no-agent']) as lone:
        told = lone.box.mgpu('doctor')
        assert 'no node has connected yet' in told.out and 'mgpu node token' in told.out, told


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='systemd-analyze is not installed')
def test_systemd_confines_the_unit():
    unit = f'{os.environ["MGPU_BUILD"]}/contrib/{UNIT}'
    done = subprocess.run(['systemd-analyze', 'security', '--offline=yes', f'--threshold={EXPOSURE_MAX * 10:.0f}', unit],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.root
def test_it_starts_with_no_more_capabilities_than_the_unit_has(someone):
    """As the unit starts it: no new privileges, a narrow umask, and a bounding set of five capabilities."""
    with open(f'{os.environ["MGPU_BUILD"]}/contrib/{UNIT}', encoding='utf-8') as lines:
        line, = [line for line in lines if line.startswith('CapabilityBoundingSet=')]
    assert line.split('=')[1].split() == [f'CAP_{name.upper()}' for name in CAPABILITIES]
    prefix = ('sh', '-c', 'umask 077; exec "$@"', 'sh', 'setpriv', '--no-new-privs', '--inh-caps=-all',
              f'--bounding-set=-all,+{",+".join(CAPABILITIES)}')
    with Cluster(1, client=someone, arguments=['--no-agent'], prefix=prefix) as head:
        assert head.box.mgpu('run', '-q', '-g', '1', '--', 'id', '-un', check=True).out == f'{someone.name}\n'
