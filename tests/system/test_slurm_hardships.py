# SPDX-License-Identifier: MIT
"""The commands of Slurm with long lists of jobs, while mgpud restarts, and when it does not answer."""

import os
import signal
import subprocess
import time

import pytest

import harness
import slurm

MANY, MOST = 2000, 10000
STALL = {'SLURM_MSG_TIMEOUT': '1'}
LATE = 'Socket timed out on send/recv operation'


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.fixture
def begin(cluster):
    """Starts a command of Slurm and returns its process."""
    started = []

    def start(*words, env=None):
        user = cluster.box.client
        started.append(subprocess.Popen([str(word) for word in words], cwd=cluster.place, env={**cluster.environment(user), **(env or {})},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **user.popen_arguments()))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def end(process):
    out, err = process.communicate(timeout=harness.DEADLINE_S)
    assert not harness.SANITIZER.search(err), err
    return harness.Done(process.returncode, out, err)


def test_two_thousand_ids_are_asked_for_at_once(cluster):
    array = cluster.submit('--array', f'0-{MANY - 1}', '-H', '-o', '/dev/null', '--wrap', 'true')
    ids = [f'{array}_{i}' for i in range(MANY)]
    assert sorted(cluster.out('squeue', '-h', '-r', '-o', '%i', '-j', ','.join(ids)).split()) == sorted(ids)
    unknown = ','.join(str(array + 1000 + i) for i in range(MANY))
    assert cluster.out('squeue', '-h', '-j', unknown) == '' == cluster.out('sacct', '-n', '-j', unknown)
    listed = cluster.out('sacct', '-X', '-n', '-P', '-o', 'JobID', *(word for one in ids for word in ('-j', one))).split()
    assert listed and set(listed) <= {*ids, f'{array}_[0-{MANY - 1}]'}, listed[:3]
    cluster.out('scancel', array)


def test_ten_thousand_jobs_wait_and_are_cancelled(cluster):
    array = cluster.submit('--array', f'1-{MOST}', '-H', '-o', '/dev/null', '--wrap', 'true')
    assert cluster.out('squeue', '-h', '-r', '-o', '%i').count('\n') == MOST
    other = cluster.wrap('true', '-H')
    assert cluster.out('squeue', '-h', '-o', '%i').split() == [f'{array}_[1-{MOST}]', str(other)]
    assert f'{array}_[1-{MOST}]|PENDING' in cluster.out('sacct', '-X', '-n', '-P', '-o', 'JobID,State', '-j', array)
    cluster.out('scancel', '-u', cluster.box.client.name)
    assert cluster.out('squeue', '-h', '-t', 'PD') == ''


WHILE_AWAY = [(['sbatch', '--parsable', '-H', '-o', '/dev/null', '--wrap', 'true'], r'\d+\n'), (['squeue', '-h', '-t', 'CG'], ''), (['sacct', '-n', '-j', '999999'], ''),
              (['scancel', '999999'], ''), (['sinfo', '-h', '-o', '%D'], '1\n'), (['srun', 'echo', 'ran'], 'ran\n'), (['salloc', '-Q', 'echo', 'ran'], 'ran\n'),
              (['scontrol', 'show', 'hostnames', 'n[1-2]'], 'n1\nn2\n')]


def test_commands_wait_for_an_mgpud_that_restarts(cluster, begin):
    """It is away when they begin: each does its work, once."""
    before = len(cluster.box.api('GET', '/jobs').json['jobs'])
    cluster.box.stop()
    processes = [begin(*words) for words, _ in WHILE_AWAY]
    cluster.box.start()
    for (words, expected), process in zip(WHILE_AWAY, processes, strict=True):
        done = end(process)
        assert done.code == 0 and (done.out == expected or (expected == r'\d+\n' and done.out.strip().isdigit())), (words, done)
    made = len(cluster.box.api('GET', '/jobs').json['jobs']) - before
    assert made == 3, made  # of sbatch, srun and salloc


@pytest.mark.parametrize('words', [['srun'], ['salloc', '-Q'], ['salloc', '-Q', 'srun'], ['sbatch', '--wait', '-o', 'out', '--wrap']], ids=' '.join)
def test_commands_that_run_outlive_a_restart(cluster, begin, gate, words):
    command = gate.command()
    process = begin(*words, *([' '.join(command[2:]) if command[:2] == ['sh', '-c'] else ' '.join(command)] if 'sbatch' in words else command))
    harness.until(lambda: cluster.out('squeue', '-h', '-t', 'R', '-o', '%i').count('\n') == 1, 'the job runs')
    cluster.box.restart()
    gate.open()
    done = end(process)
    assert done.code == 0, done


def test_a_list_that_is_printed_again_goes_on_after_a_restart(cluster, begin):
    cluster.wrap('true', '-H', '-J', 'listed')
    process = begin('squeue', '-h', '-i', '1', '-o', '%j')
    assert process.stdout.readline() and process.stdout.readline()  # the time, and the job
    cluster.box.restart()
    for _ in range(4):
        assert process.stdout.readline()
    process.terminate()


def stalled(cluster, action):
    """What `action` returns while mgpud is stopped."""
    os.kill(cluster.box.process.pid, signal.SIGSTOP)
    try:
        return action()
    finally:
        os.kill(cluster.box.process.pid, signal.SIGCONT)


def test_a_controller_that_does_not_answer_is_named_in_slurms_words(cluster):
    failed = {'sbatch': f'sbatch: error: Batch job submission failed: {LATE}\n', 'srun': f'srun: error: Unable to allocate resources: {LATE}\n',
              'squeue': f'slurm_load_jobs error: {LATE}\n', 'sinfo': f'slurm_load_partitions: {LATE}\n'}
    for words in (['sbatch', '-o', '/dev/null', '--wrap', 'true'], ['srun', 'true'], ['squeue'], ['sinfo'], ['sacct', '-j', '1'], ['scancel', '999999'],
                  ['scontrol', 'show', 'job', '1'], ['srun', '--msg-timeout=1', 'true']):
        env = STALL if '--msg-timeout=1' not in words else {'SLURM_MSG_TIMEOUT': ''}
        began = time.monotonic()
        done = stalled(cluster, lambda words=words, env=env: cluster.run(*words, env=env))
        assert done.code == 1 and LATE in done.err and time.monotonic() - began < 20, (words, done)
        assert words[0] not in failed or failed[words[0]] in done.err or words[0] == 'sinfo', (words, done)


def test_a_job_is_submitted_once_or_not_at_all_when_the_controller_stalls(cluster, begin):
    """It is stopped at moments of a submit, from before the connection to after the answer."""
    for turn in range(6):
        name = f'turn-{turn}'
        process = begin('sbatch', '--parsable', '-H', '-J', name, '-o', '/dev/null', '--wrap', 'true', env=STALL)
        moment = time.monotonic() + turn * 0.004
        while time.monotonic() < moment:  # the moment is what is tried
            pass
        done = stalled(cluster, lambda process=process: end(process))
        cluster.out('squeue', '-h')  # what it was sent while it was stopped has been carried out
        made = cluster.out('squeue', '-h', '-n', name, '-o', '%i').split()
        assert made == [done.out.strip()] if done.code == 0 else len(made) <= 1 and LATE in done.err, (turn, done, made)
