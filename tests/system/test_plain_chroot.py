# SPDX-License-Identifier: MIT
"""In a plain chroot, as one that debootstrap leaves, / is no mount point, and unshare(1) and mount(8) are refused: the tests get
a / that is one."""

import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.root, pytest.mark.skipif(not shutil.which('chroot'), reason='needs chroot')]

CHROOT = r'''
set -e
for name in usr proc dev etc tmp "${1#/}"; do
    mkdir -p "$2/$name"
    mount --rbind "/$name" "$2/$name"
done
for name in bin sbin lib lib64; do
    [ ! -L "/$name" ] || ln -s "$(readlink "/$name")" "$2/$name"
done
exec chroot "$2" /usr/bin/python3 -c "$3" "$1/tests/system"
'''
BOUND = '''
import subprocess, sys
sys.path.insert(0, sys.argv[1])
def words(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).returncode
before = words('unshare', '-m', 'true'), words('unshare', '-m', '--propagation', 'unchanged', 'mount', '--make-rslave', '/')
import conftest
conftest.bind_root()
after = words('unshare', '-m', 'true'), words('unshare', '-m', 'sh', '-c', 'mount --make-rslave / && mount -t tmpfs none /etc && ! test -e /etc/passwd')
print(all(before), after, words('test', '-e', sys.argv[1] + '/conftest.py'), words('test', '-e', '/etc/passwd'))
'''


def test_tests_that_need_namespaces_have_them(place):
    harness.require_namespaces()
    done = subprocess.run(['unshare', '-m', 'sh', '-c', CHROOT, 'sh', harness.ROOT, place, BOUND], check=False,
                          capture_output=True, text=True, timeout=harness.DEADLINE_S, env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})
    assert done.stdout.split('\n')[0] == 'True (0, 0) 0 0', done


def test_where_none_can_be_had_a_test_is_skipped_with_the_reason(monkeypatch):
    monkeypatch.setattr(subprocess, 'run', lambda *words, **options: subprocess.CompletedProcess(words, 1, '', 'unshare: refused\n'))
    harness.namespaces_missing.cache_clear()
    try:
        with pytest.raises(pytest.skip.Exception, match='needs namespaces of its own: unshare: refused'):
            harness.require_namespaces()
    finally:
        harness.namespaces_missing.cache_clear()
