# SPDX-License-Identifier: MIT
"""mgpud's lines in systemd's journal: a real journald, in a mount namespace with its own /run."""

import json
import os
import shutil
import subprocess

import pytest

import harness

JOURNALD = '/lib/systemd/systemd-journald'
pytestmark = [pytest.mark.root,
              pytest.mark.skipif(not os.path.exists(JOURNALD) or not shutil.which('systemd-cat'), reason='journald is not installed')]

SETUP = f'''set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/journal
{JOURNALD} >/dev/null 2>&1 &
trap 'kill $!' TERM EXIT
until [ -S /run/systemd/journal/stdout ] && [ -S /run/systemd/journal/socket ]; do kill -0 $!; sleep 0.05; done
echo ready
wait
'''
# systemd sets the variable for its services; systemd-cat, which connects standard error alike, does not.
SERVICE = 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"'


@pytest.fixture
def journal(place):
    """Runs a command where journald is; stops it at the end."""
    with subprocess.Popen(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', SETUP], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True) as holder:
        if holder.stdout.readline() != 'ready\n':
            pytest.skip('journald does not run here')
        yield ['nsenter', f'--target={holder.pid}', '--mount']
        holder.terminate()


def entries(journal, *words):
    done = subprocess.run([*journal, 'journalctl', '--output=json', '--no-pager', *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=harness.DEADLINE_S)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lines_of_the_journal_are_found_by_job_and_by_node(make_instance, journal):
    box = make_instance('sim:2x8G', start=False)
    box.command = [*journal, 'systemd-cat', 'sh', '-c', SERVICE, 'sh', *box.command]
    box.start()
    one, other = (box.submit('-g', '1', '-J', name, '--', 'sh', '-c', 'exit 3') for name in ('first', 'second'))
    box.wait(one), box.wait(other)
    harness.until(lambda: any('has ended' in entry['MESSAGE'] for entry in entries(journal, f'MGPU_JOB={one}')), 'the end of the job')
    found = [entry['MESSAGE'] for entry in entries(journal, f'MGPU_JOB={one}')]
    uid = box.client.uid
    assert found == [f'job {one}: first, of uid {uid}, has started, attempt 1', f'job {one}: first, of uid {uid}, has ended: exit, exit code 3']
    node = box.gpus()[0]['node']
    about = harness.until(lambda: [entry for entry in entries(journal, f'MGPU_NODE={node}', 'SYSLOG_IDENTIFIER=mgpud') if ': up: ' in entry['MESSAGE']],
                          'a line about the node')
    assert about[0]['PRIORITY'] == '6' and int(about[0]['_PID']) == box.process.pid
    # Of the agent, all lines are its node's.
    assert entries(journal, f'MGPU_NODE={node}', 'SYSLOG_IDENTIFIER=mgpu-agent')
