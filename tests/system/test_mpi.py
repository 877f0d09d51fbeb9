# SPDX-License-Identifier: MIT
"""MPI over the nodes of a job, as docs/cluster.md writes it, with Open MPI itself."""

import os
import re
import shutil
import subprocess

import pytest

import harness
import hosts

SSHD = shutil.which('sshd', path='/usr/sbin')
pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not shutil.which('mpirun'), reason='openmpi-bin is not installed: tools/install-packages real'),
              pytest.mark.skipif(not SSHD, reason='openssh-server is not installed: tools/install-packages real')]

RANK = 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE at $(hostname -I)'
SSHD_CONFIG = '''
HostKey {place}/key
AuthorizedKeysFile {place}/key.pub
PidFile none
StrictModes no
UsePAM yes
'''


@pytest.fixture(scope='module')
def ssh(ana, tmp_path_factory):
    """A folder with a key with which ana comes from each host to each other one."""
    place = tmp_path_factory.mktemp('ssh')
    harness.open_folder(place)
    subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', f'{place}/key'], check=True)
    shutil.copy(f'{place}/key', f'{place}/own')
    os.chown(f'{place}/own', ana.uid, ana.gid)
    (place / 'sshd_config').write_text(SSHD_CONFIG.format(place=place))
    return place


@pytest.fixture(scope='module')
def cluster(ana, ssh):
    """Two hosts with four GPUs and an sshd each."""
    if hosts.why_not():
        pytest.skip(hosts.why_not())
    made_run = not os.path.exists('/run/sshd')
    os.makedirs('/run/sshd', mode=0o755, exist_ok=True)
    servers = []
    try:
        with hosts.spread_cluster(client=ana) as (network, cluster):
            for name in ('n1', 'n2'):
                servers.append(subprocess.Popen([*network[name].prefix, SSHD, '-D', '-e', '-f', f'{ssh}/sshd_config'],
                                                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            try:
                yield cluster
            finally:
                for server in servers:
                    server.terminate()
                    server.wait(harness.DEADLINE_S)
    finally:
        if made_run:
            os.rmdir('/run/sshd')


@pytest.fixture
def solve(cluster, ssh, place):
    """Runs the script of the manual with a program of shell words; (job, log)."""
    def run(program, gpus):
        path = os.path.join(place, 'solver.sh')
        with open(path, 'w', encoding='ascii') as out:
            out.write(documented(f"sh -c '{program}'"))
        box = cluster.box
        words = f'-i {ssh}/own -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
        job = box.submit('-N', '2', '-g', gpus, '-e', f'OMPI_MCA_plm_rsh_args={words}', '--', 'sh', path)
        ended = box.wait(job, timeout_s=2 * harness.DEADLINE_S)
        return ended, box.mgpu('logs', job, check=True).out

    return run


def documented(program):
    """The lines of docs/cluster.md for Open MPI, with another program than ./solver."""
    with open(f'{harness.ROOT}/docs/cluster.md', encoding='utf-8') as source:
        script, = re.findall(r'^```\n(#!/bin/sh\n[^`]*mpirun --hostfile[^`]*)^```$', source.read(), re.M)
    assert './solver' in script, script
    return script.replace('./solver', program)


def test_mpirun_starts_a_process_for_each_gpu_of_all_nodes(solve):
    ended, text = solve(RANK, 6)
    assert ended['exit_code'] == 0, text
    ranks = re.findall(r'rank (\d+) of (\d+) at (\S+)', text)
    assert sorted((rank, size) for rank, size, _ in ranks) == [(str(rank), '6') for rank in range(6)], text
    assert sorted(address for _, _, address in ranks) == ['10.213.7.2'] * 3 + ['10.213.7.3'] * 3, text


def test_a_rank_that_fails_is_the_status_of_the_job(solve):
    ended, text = solve('test $OMPI_COMM_WORLD_RANK != 3 || exit 7', 4)
    assert (ended['state'], ended['exit_code']) == ('failed', 7), text
