# SPDX-License-Identifier: MIT
"""A machine on which nothing is configured, and on which users type commands."""

import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

import harness

TRAIN = 'import os; print("training on", os.environ["CUDA_VISIBLE_DEVICES"])\n'


# Of what is in /tmp the machine has only the directories that are its arguments.
START = '''set -e
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /var/lib
mount -t tmpfs -o mode=1777 none /mnt
for folder; do
    mkdir "/mnt/${folder##*/}"
    mount --bind "$folder" "/mnt/${folder##*/}"
done
mount --rbind /mnt /tmp
ip link set lo up
echo ready
exec sleep 100000
'''


class Machine:
    """A machine of its own, as far as its network, /run, /tmp and /var/lib go. Everybody's home is below `place`."""

    def __init__(self, place, names):
        self.place, self.names, self.servers = place, names, []
        self.holder = subprocess.Popen(['unshare', '-mn', 'sh', '-c', START, 'sh', place, names], stdout=subprocess.PIPE,
                                       text=True)
        if self.holder.stdout.readline() != 'ready\n':
            self.holder.wait(harness.DEADLINE_S)
            pytest.skip('there can be no namespaces here')

    def home(self, user):
        path = f'{self.place}/home-{user.name}'
        if not os.path.exists(path):
            os.mkdir(path, 0o755)
            with open(f'{path}/train.py', 'w', encoding='ascii') as out:
                out.write(TRAIN)
            os.chown(path, user.uid, user.gid)
        return path

    def spawn(self, user, line, prefix=None, **options):
        """On another host of a network when its prefix is given."""
        home = self.home(user)
        env = {'PATH': f'{self.names}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': home, 'USER': user.name,
               'ASAN_OPTIONS': 'detect_leaks=0'}
        as_user = ['setpriv', f'--reuid={user.uid}', f'--regid={user.gid}', '--init-groups'] if user.uid != 0 else []
        where = [*prefix, 'nsenter', '-t', str(self.holder.pid), '-m'] if prefix else ['nsenter', '-t', str(self.holder.pid),
                                                                                      '-m', '-n']
        return subprocess.Popen([*where, *as_user, 'sh', '-c', f'cd {home}; {line}'],
                                env=env, text=True, start_new_session=True, **{'stdin': subprocess.DEVNULL, **options})

    def type(self, user, line, prefix=None):
        """What the command did."""
        process = self.spawn(user, line, prefix, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=harness.DEADLINE_S)
        assert not harness.SANITIZER.search(err), err
        return harness.Done(process.returncode, out, err)

    def serve(self, user, line, ready, prefix=None):
        """Starts a server in the foreground and returns what it said until the line with `ready`."""
        process = self.spawn(user, f'exec {line}', prefix, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.servers.append(process)
        return self.hear(process, ready)

    @staticmethod
    def hear(process, ready):
        """What a server says until the line with `ready`."""
        said = ''
        for text in process.stdout:
            said += text
            if ready in text:
                return said
        raise AssertionError(said)

    def log(self, user, number):
        """The text of the job's log, which lies in its owner's home, by the user database."""
        path = json.loads(self.type(user, f'mgpu show {number} --json').out)['log']
        assert os.path.dirname(path) == f'{user.home}/.local/state/mgpu/logs', path
        assert re.fullmatch(rf'{number}(-[0-9a-f]{{8}})?\.log', os.path.basename(path)), path
        assert os.stat(path).st_uid == user.uid
        with open(path, encoding='ascii') as source:
            text = source.read()
        os.unlink(path)
        return text

    def stop(self):
        """Ctrl-C for the server that was started last."""
        process = self.servers.pop()
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(harness.DEADLINE_S) == 0, rest

    def close(self):
        for process in self.servers:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(harness.DEADLINE_S)
        self.holder.kill()
        self.holder.wait()
