# SPDX-License-Identifier: MIT
"""A home that is a FUSE file system of its user's, as sshfs makes it: root may not even look into it."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest

import harness

MISSING = [name for name in ('bindfs', 'fusermount3') if not shutil.which(name)]
pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)}: not installed: tools/install-packages real')]

# The device as it is where udev runs: for everybody.
START = '''set -e
mount -t tmpfs none /mnt
mknod -m 666 /mnt/fuse c 10 229
mount --bind /mnt/fuse /dev/fuse
echo ready
exec sleep 100000
'''


class Home:
    """A directory of the user that bindfs shows at `path`, to the user alone."""

    def __init__(self, place, user):
        self.path, self.source = f'{place}/home', f'{place}/source'
        for path in (self.path, self.source):
            os.mkdir(path, 0o700)
            os.chown(path, user.uid, user.gid)
        self.holder = subprocess.Popen(['unshare', '-m', 'sh', '-c', START], stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != 'ready\n':
            pytest.skip('there can be no mount namespace with a FUSE device here')
        self.enter = ['nsenter', '-t', str(self.holder.pid), '-m']
        as_user = ['setpriv', f'--reuid={user.uid}', f'--regid={user.gid}', '--init-groups']
        self.server = subprocess.Popen([*self.enter, *as_user, 'bindfs', '-f', '--no-allow-other', self.source, self.path], stdin=subprocess.DEVNULL)
        harness.until(lambda: self.look().returncode != 0, 'the file system is there')

    def look(self):
        """What root sees of it."""
        return subprocess.run([*self.enter, 'ls', self.path], capture_output=True, text=True, check=False)

    def close(self):
        self.server.send_signal(signal.SIGCONT)
        self.server.terminate()
        self.server.wait(harness.DEADLINE_S)
        self.holder.kill()
        self.holder.wait()


@pytest.fixture
def home(place, ana):
    made = Home(place, ana)
    yield made
    with contextlib.suppress(ProcessLookupError):
        made.close()


@pytest.fixture
def box(make_instance, home):
    made = make_instance('sim:4x24G', start=False)
    made.command = [*home.enter, *made.command]
    return made.start()


def test_a_job_runs_and_logs_in_a_home_that_root_cannot_enter(box, home, ana):
    assert 'Permission denied' in home.look().stderr
    job = box.submit('-g', '1', '-o', f'{home.path}/%j.log', '--', 'sh', '-c', 'pwd; echo kept > result; exit 4', cwd=home.path)
    assert box.wait(job)['exit_code'] == 4
    assert box.mgpu('logs', job, check=True).out == f'{home.path}\n'
    with open(f'{home.source}/result', encoding='ascii') as result:
        assert result.read() == 'kept\n'
    assert os.stat(f'{home.source}/{job}.log').st_uid == ana.uid


def test_a_home_that_hangs_holds_up_its_user_alone(box, home, bo, place):
    """The file system stops answering; jobs of others start, requests are answered, and the job that waits for it can be ended."""
    home.server.send_signal(signal.SIGSTOP)
    stuck = box.submit('-g', '1', '-o', f'{home.path}/log', '--', 'sleep', '1000', cwd=home.path)
    other = int(box.mgpu('submit', '-g', '1', '--', 'echo', 'alive', user=bo, cwd=place, check=True).out)
    assert box.wait(other)['state'] == 'done'
    assert box.job(stuck)['state'] in ('starting', 'running')
    box.mgpu('cancel', stuck, check=True)
    home.server.send_signal(signal.SIGCONT)
    assert box.wait(stuck)['state'] == 'cancelled'
