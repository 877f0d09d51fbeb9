# SPDX-License-Identifier: MIT
"""An mgpud that is typed in a session of systemd: its agent moves to a scope of its own. systemd-run is a stand-in here, which makes
the cgroup and executes the rest, as the real one does; tests/vm has the real one."""

import os
import pathlib
import shutil
import subprocess

import pytest

import harness

MOUNT = next((place for place in ('/sys/fs/cgroup/unified', '/sys/fs/cgroup') if os.path.exists(f'{place}/cgroup.procs')), None)
pytestmark = [pytest.mark.root, pytest.mark.skipif(MOUNT is None, reason='no cgroup v2 here'),
              pytest.mark.skipif(not shutil.which('unshare'), reason='needs unshare')]

STAND_IN = f'''#!/bin/sh
echo "$*" >>"${{0%/*}}/calls"
unit=
for word; do shift; case $word in --unit=*) unit=${{word#--unit=}} ;; --) break ;; esac; done
[ ! -e "${{0%/*}}/refuses" ] || exit 1
mkdir -p "{MOUNT}/$unit" && echo $$ >"{MOUNT}/$unit/cgroup.procs" && exec "$@"
'''
SESSION = '''set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system
mount --bind "$1/systemd-run" /usr/bin/systemd-run
mount --bind "$1" /mnt
mkdir -p "$2" && echo $$ >"$2/cgroup.procs"
shift 2
exec "$@"
'''


@pytest.fixture
def session(place):
    """A cgroup as that of a session, and the calls of systemd-run."""
    harness.require_namespaces()
    if not os.path.exists('/usr/bin/systemd-run'):
        pytest.skip('there is no /usr/bin/systemd-run that could be replaced')
    stand_in = pathlib.Path(place, 'systemd-run')
    stand_in.write_text(STAND_IN.replace('${0%/*}', '/mnt'))
    stand_in.chmod(0o755)
    group = pathlib.Path(MOUNT, f'session-{os.getpid()}.scope')
    yield place, group
    for made in (group, *pathlib.Path(MOUNT).glob('mgpu-agent-*.scope')):
        if str(made) == str(group) or made.name in open(f'{place}/calls', encoding='utf-8').read():
            subprocess.run(['find', made, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'], stderr=subprocess.DEVNULL, check=False)


def start(make_instance, session):
    place, group = session
    box = make_instance('sim:2x8G', start=False)
    box.command[:0] = ['unshare', '-m', 'sh', '-c', SESSION, 'sh', place, group]
    return box.start()


def cgroup_of_a_job(box):
    return box.run_job(['sed', '-n', 's/^0:://p', '/proc/self/cgroup'])[1].strip()


def test_the_agent_and_its_jobs_are_in_a_scope_of_their_own(session, make_instance):
    box = start(make_instance, session)
    where = cgroup_of_a_job(box)
    assert where.startswith('/mgpu-agent-') and '.scope/mgpu.' in where, where
    scope = where.split('/')[1]
    calls = pathlib.Path(session[0], 'calls').read_text(encoding='utf-8').splitlines()
    assert len(calls) == 2 and all('--scope' in call and '--property=Delegate=yes' in call for call in calls), calls
    assert calls[0].endswith(' -- /bin/true') and f'--unit={scope} ' in calls[1] and '/mgpu-agent --keep' in calls[1], calls
    box.kill_agent()  # the next one is where its keeper is
    assert cgroup_of_a_job(box).split('/')[1] == scope
    assert len(pathlib.Path(session[0], 'calls').read_text(encoding='utf-8').splitlines()) == 2


def test_where_systemd_refuses_jobs_run_all_the_same(session, make_instance):
    pathlib.Path(session[0], 'refuses').touch()
    box = start(make_instance, session)
    assert cgroup_of_a_job(box).startswith(f'/{session[1].name}/mgpu.')
    assert len(pathlib.Path(session[0], 'calls').read_text(encoding='utf-8').splitlines()) == 1
