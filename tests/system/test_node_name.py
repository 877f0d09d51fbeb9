# SPDX-License-Identifier: MIT
"""A machine whose host name changes while jobs run: DHCP, cloud-init and people do that."""

import pathlib
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.root,
              pytest.mark.skipif(subprocess.run(['unshare', '-u', 'true'], check=False, capture_output=True).returncode != 0,
                                 reason='there can be no host name of its own here')]


@pytest.fixture
def named(make_instance):
    """An instance on a machine with this host name, until the next start."""
    box = make_instance(gpus='sim:2x8G', start=False)
    command = list(box.command)

    def start(host, *options):
        box.command = ['unshare', '-u', 'sh', '-c', 'hostname "$0" && exec "$@"', host, *command, *options]
        if box.process and box.process.poll() is None:
            assert box.stop() == 0
        return box.start()
    start.box = box
    return start


def node_names(box):
    return [node['name'] for node in box.api('GET', '/nodes').json['nodes']]


def test_jobs_outlive_another_host_name(named, gate):
    box = named('first')
    job = box.submit('-g', '1', '--', *gate.command('exit 7'))
    assert box.wait(job, 'running')['node'] == 'first'
    named('second.example')
    assert node_names(box) == ['first']
    assert 'this machine is now called second.example, and its node is still first' in box.log()
    gate.open()
    assert box.wait(job)['exit_code'] == 7
    named('third')
    later = box.submit('-g', '2', '--', 'true')
    assert box.wait(later)['node'] == 'first'


def test_a_node_is_renamed_by_option_when_no_job_runs_there(named, gate):
    box = named('first')
    job = box.submit('-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    with pytest.raises(AssertionError, match='jobs run on this machine as node first, and would end if it were named other'):
        named('first', '--node', 'other')
    named('first')
    gate.open()
    assert box.wait(job)['exit_code'] == 0
    named('first', '--node', 'other')
    assert 'other' in node_names(box)
    named('first')
    assert box.wait(box.submit('-g', '2', '--', 'true'))['node'] == 'other', 'the new name is kept'


def test_a_reload_knows_that_the_name_is_kept(named):
    box = named('first')
    named('second')
    subprocess.run([*box.command[6:], '--reload'], check=True, capture_output=True)
    harness.until(lambda: 'the settings were reloaded: 0 changed' in box.log(), 'a reload without changes')
    assert box.mgpu('config', 'get', 'node', check=True).out.strip() == 'first'


@pytest.mark.parametrize('content', [b'', b'\xff\xfe', b'a' * 5000, b'no name\n'])
def test_a_damaged_name_is_replaced(named, content):
    box = named('first')
    path = pathlib.Path(box.state_dir, 'node/name')
    assert path.read_text(encoding='ascii') == 'first\n'
    path.write_bytes(content)
    named('first')
    assert node_names(box) == ['first'] and path.read_text(encoding='ascii') == 'first\n'
    assert 'cannot be read' in box.log()
