# SPDX-License-Identifier: MIT
"""submitit's use of Slurm, from the file for sbatch to checkpoints that requeue themselves (submitit_client.py), five at a time."""

import os
import pathlib
import shutil
import subprocess
import sys

import harness
import pytest
import slurm
import submitit_client

AT_ONCE = 5


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def start(cluster, scenario, number):
    program = f'{cluster.place}/submitit_client.py'
    if not os.path.exists(program):
        shutil.copyfile(submitit_client.__file__, program)  # the checkout may be closed to users
        os.chmod(program, 0o644)
    return subprocess.Popen([sys.executable, program, scenario, f'{cluster.place}/{number}'], cwd=cluster.place, env=cluster.environment(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **cluster.box.client.popen_arguments())


def finish(clients):
    said = [client.communicate(timeout=2 * submitit_client.DEADLINE_S)[0] for client in clients]
    failed = [text for client, text in zip(clients, said) if client.returncode != 0]
    assert not failed, f'{len(failed)} of {len(clients)}:\n' + '\n'.join(failed)


@pytest.mark.parametrize('scenario', [name for name in submitit_client.SCENARIOS if name != 'a_restart'])
def test_submitit_gets_its_results(cluster, scenario):
    finish([start(cluster, scenario, number) for number in range(AT_ONCE)])


def test_submitit_loses_nothing_in_a_restart_of_mgpud(cluster):
    """One client: its last job runs until the restart, and two of these would have both processors of a small machine."""
    client = start(cluster, 'a_restart', 0)
    cluster.box.await_news(lambda: os.path.exists(f'{cluster.place}/0/restart'))
    cluster.box.restart()
    with cluster.box.client.acting():
        pathlib.Path(f'{cluster.place}/0/restarted').touch()
    finish([client])


@pytest.mark.parametrize('program', ['scontrol', 'mgpu'])
def test_a_job_that_requeues_itself_learns_that_it_has_and_goes_back(cluster, program):
    command = {'scontrol': 'scontrol', 'mgpu': f'{harness.programs()}/mgpu'}[program] + ' requeue $MGPU_JOB_ID'
    line = f'[ -n "$SLURM_RESTART_COUNT" ] && exit 0; trap : TERM; {command}; echo $? > status-$SLURM_JOB_ID; exit 1'
    jobs = [cluster.wrap(line, '-o', '/dev/null') for _ in range(6)]
    assert [(cluster.finish(job)['state'], cluster.read(f'status-{job}')) for job in jobs] == [('done', '0\n')] * 6
