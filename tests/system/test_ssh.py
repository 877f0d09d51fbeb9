# SPDX-License-Identifier: MIT
"""A node that is started over ssh as the manual writes it, with an sshd of OpenSSH itself."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

import harness
import hosts

SSHD = shutil.which('sshd', path='/usr/sbin')
pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.xdist_group('test_mpi'),
              pytest.mark.skipif(not SSHD, reason='openssh-server is not installed: tools/install-packages real')]

CONFIG = '''
HostKey {place}/key
AuthorizedKeysFile {place}/key.pub
PidFile none
StrictModes no
PermitRootLogin yes
UsePAM no
'''


@pytest.fixture
def far(place):
    """(network, ssh): hosts `head` and `gpu1`, and the words with which root of `head` calls gpu1."""
    if hosts.why_not():
        pytest.skip(hosts.why_not())
    subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', f'{place}/key'], check=True)
    with open(f'{place}/sshd_config', 'w', encoding='ascii') as out:
        out.write(CONFIG.format(place=place))
    made_run = not os.path.exists('/run/sshd')
    os.makedirs('/run/sshd', mode=0o755, exist_ok=True)
    with hosts.Network(['head', 'gpu1']).made() as network:
        server = subprocess.Popen([*network['gpu1'].prefix, SSHD, '-D', '-e', '-f', f'{place}/sshd_config'],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield network, [*network['head'].prefix, 'ssh', '-i', f'{place}/key', '-o', 'StrictHostKeyChecking=no', '-o',
                            'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', '-o', 'ConnectionAttempts=20',
                            f'root@{network["gpu1"].address}']
        finally:
            server.terminate()
            server.wait(harness.DEADLINE_S)
            if made_run:
                os.rmdir('/run/sshd')


def documented():
    """The command of docs/cluster.md behind the host, which reads the token from standard input."""
    with open(f'{harness.ROOT}/docs/cluster.md', encoding='utf-8') as page:
        line = next(line for line in page if '`ssh root@gpu1 ' in line)
    return line.partition('`ssh root@gpu1 ')[2].partition(' < token`')[0]


def test_a_node_that_is_started_over_ssh_lets_the_shell_go(make_instance, far, place):
    """`--detach` keeps neither the connection nor a pipe behind it open."""
    network, ssh = far
    box = make_instance('none', start=False, arguments=('--nodes-listen', f'{network["head"].address}:9124', '--node', 'head'))
    box.command = [*network['head'].prefix, *box.command]
    box.start()
    token = box.mgpu('node', 'token', user=box.user, check=True).out
    words = documented()
    assert words == 'mgpu-agent --join-file - --detach'
    command = f'{harness.programs()}/{words} --node gpu1 --gpus sim:2x24G --state-dir {place}/state --run-dir {place}/run'
    piped = f'{shlex.join([*ssh, command])} 2>&1 | cat'
    try:
        done = subprocess.run(['sh', '-c', piped], input=token, capture_output=True, text=True, timeout=harness.DEADLINE_S,
                              check=False)
        assert done.returncode == 0 and not harness.SANITIZER.search(done.stdout), done
        harness.until(lambda: re.search(r'^gpu1 +up', box.mgpu('nodes', check=True).out, re.M), 'the node is up')
        job = box.submit('-g', '1', '--', 'sh', '-c', 'echo $MGPU_NODE_NAME $CUDA_VISIBLE_DEVICES', cwd='/')
        assert box.wait(job)['state'] == 'done' and box.job(job)['node'] == 'gpu1'
    finally:
        for pid in harness.processes(f'{place}/run'):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
                harness.wait_process(pid)
