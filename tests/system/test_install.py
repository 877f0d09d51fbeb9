# SPDX-License-Identifier: MIT
"""`make install` and `make uninstall` of the build that is tested, into a folder."""

import os
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.skipif(not shutil.which('meson') or not shutil.which('ninja'), reason='meson or ninja is not installed'),
              pytest.mark.xdist_group('install')]  # both keep notes in the build folder


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          cwd=harness.ROOT, timeout=10 * harness.DEADLINE_S)
    assert done.returncode == 0, done.stdout
    return done.stdout


def files_below(folder):
    return {os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names}


def check_units(root, brought):
    """systemd finds nothing wrong in the units, that of users included, and what they start is there."""
    if not shutil.which('systemd-analyze'):
        return
    for path in [path for path in brought if path.endswith('.service')]:
        unit = root / path
        text = unit.read_text()
        for program in re.findall(r'^Exec\w+=(/\S+)', text, re.M):
            assert (root / program.lstrip('/')).exists() or os.path.exists(program), (path, program)
        unit.write_text(re.sub(r'^(Exec\w+=)(?=/usr/local)', rf'\1{root}', text, flags=re.M))
        kind = ['--user'] if '/user/' in path else []
        done = subprocess.run(['systemd-analyze', 'verify', *kind, '--man=no', unit], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, env={**os.environ, 'XDG_RUNTIME_DIR': str(root), 'SYSTEMD_UNIT_PATH': f'{unit.parent}:'})
        # The one that keeps a cgroup runs as nobody, and owns nothing.
        complaints = [line for line in done.stdout.splitlines() if unit.name in line and 'Special user nobody' not in line]
        assert done.returncode == 0 and complaints == [], done.stdout


def test_uninstall_removes_what_install_brought_and_nothing_else(tmp_path):
    build = harness.build_folder()
    run('meson', 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', tmp_path)
    brought = files_below(tmp_path)
    ends = ('bin/mgpu', 'bin/mgpud', 'libexec/mgpu/mgpu-shepherd', 'man1/mgpu-submit.1', 'bash-completion/completions/mgpu', 'site-functions/_mgpu',
            'vendor_completions.d/mgpu.fish', 'systemd/system/mgpud.service', 'systemd/user/mgpud.service', 'doc/mgpu/html/README.html')
    assert not [end for end in ends if not any(path.endswith(end) for path in brought)], sorted(brought)
    check_units(tmp_path, brought)
    kept = tmp_path / 'etc' / 'mgpu' / 'mgpu.yaml', tmp_path / 'var' / 'lib' / 'mgpu' / 'store' / 'mgpu.db'
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('kept')
    told = run('make', 'uninstall', f'BUILD={build}')
    assert 'Kept: /etc/mgpu, /var/lib/mgpu' in told
    assert files_below(tmp_path) == {str(path.relative_to(tmp_path)) for path in kept}
