# SPDX-License-Identifier: MIT
"""Bare Debians: a debootstrap that all workers of a test run share, and machines over it, each with its own mounts and
processes, in which everything is thrown away at the end.

Packages come from the cache of this machine's apt where they are there."""

import fcntl
import os
import pathlib
import shutil
import subprocess

import harness

TOOLS = ('debootstrap', 'unshare', 'nsenter')
MISSING = [name for name in TOOLS if not shutil.which(name)]
BUILD_S = 1800  # of a build or of a bare Debian on a busy machine
MIRROR = 'http://deb.debian.org/debian'
CACHE = '/var/cache/apt/archives'

built_packages = []  # the folders of those that tests have built, each in a bare Debian of its own, from the same sources


def run(*command, check=True, **options):
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=BUILD_S, **options)
    assert not check or done.returncode == 0, f'{command} ended with {done.returncode}\n{done.stdout}'
    return done


def debian(tmp_path_factory):
    """The root of a Debian 12 without any package that is not essential; nothing is to be changed in it."""
    if os.environ.get('MGPU_DEBIAN'):  # of an earlier debootstrap
        return pathlib.Path(os.environ['MGPU_DEBIAN'])
    base = tmp_path_factory.getbasetemp()
    if os.environ.get('PYTEST_XDIST_WORKER'):
        base = base.parent  # of all workers
    place = base / 'bare-debian'
    with open(base / 'bare-debian.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            cache = [f'--cache-dir={CACHE}'] if os.access(CACHE, os.W_OK) else []
            run('debootstrap', '--variant=minbase', *cache, 'bookworm', f'{place}.new', MIRROR)
            os.rename(f'{place}.new', place)
    return place


MOUNTS = r'''
set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=$1,upperdir=$2/upper,workdir=$2/work $2/root
mount -t proc proc $2/root/proc
mount --rbind /dev $2/root/dev
mount -t tmpfs tmpfs $2/root/run
mount --bind $3 $2/root/mnt
mount -t overlay overlay -o lowerdir=$4:$2/root/$4,upperdir=$2/cache,workdir=$2/cache-work $2/root/$4
[ -z "$5" ] || hostname "$5"
echo ready
exec sleep infinity
'''


class Machine:
    """A Debian over other layers; `shown` is a folder of this machine that it sees as /mnt. With `host_name` it has that
    name, which nothing there can look up."""

    def __init__(self, layers, place, shown, host_name=''):
        for name in ('upper', 'work', 'cache', 'cache-work', 'root'):
            (place / name).mkdir(parents=True)
        self.root = place / 'root'
        self.holder = subprocess.Popen(
            ['unshare', '--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', MOUNTS,
             'sh', layers, place, shown, CACHE, host_name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == 'ready\n'
        children = pathlib.Path(f'/proc/{self.holder.pid}/task/{self.holder.pid}/children').read_text().split()
        self.init = int(children[0])
        self.sh('cat > /etc/resolv.conf', input=pathlib.Path('/etc/resolv.conf').read_text())
        self.sh('printf "#!/bin/sh\nexit 101\n" > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d')

    def command(self, text, user='root'):
        words = ['nsenter', '-t', str(self.init), '-m', '-p', '-i', '-u', 'chroot', str(self.root), 'env', '-i', 'HOME=/root',
                 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'DEBIAN_FRONTEND=noninteractive', 'LC_ALL=C.UTF-8']
        return words + (['sh', '-c', text] if user == 'root' else ['su', '-', user, '-c', text])

    def sh(self, text, user='root', check=True, input=None):
        done = subprocess.run(self.command(text, user), input=input or '', stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=BUILD_S)
        assert not check or done.returncode == 0, f'{text}: ended with {done.returncode}\n{done.stdout}'
        return done

    def path(self, name):
        """Where a file of it is for this machine."""
        return f'/proc/{self.init}/root{self.root}{name}'

    def close(self):
        self.holder.kill()
        self.holder.wait(harness.DEADLINE_S)
