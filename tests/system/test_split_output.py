# SPDX-License-Identifier: MIT
"""Standard output and standard error of a job that a command shows: two streams where the command itself has two.

DOORS are all commands that show a job while it runs. Each gets a job that writes to both.
"""

import os
import signal
import subprocess

import cluster
import harness
import pytest
import slurm
import test_usage
from harness import DEADLINE_S

BOTH = 'for i in 1 2 3; do echo out $i; echo err $i >&2; done'
OUT, ERR = (''.join(f'{word} {i}\n' for i in (1, 2, 3)) for word in ('out', 'err'))

DOORS = {
    'run': ['mgpu', 'run', 'sh', '-c', BOTH],
    'run with a setup': ['mgpu', 'run', '-E', 'true', 'sh', '-c', BOTH],
    'run with standard input': ['mgpu', 'run', 'sh', '-c', f'cat; {BOTH}'],
    'srun': ['srun', 'sh', '-c', BOTH],
    'srun of two tasks': ['srun', '-n2', 'sh', '-c', f'[ $SLURM_PROCID = 1 ] || {{ {BOTH}; }}'],
    'mgpu_srun': ['mgpu_srun', '--gpu-ids', '0', '--interactive', '--', 'sh', '-c', BOTH],
    'mgpu_simple_client': ['mgpu_simple_client', 'submit', '--interactive', BOTH],
    'logs -f': ['sh', '-c', f"mgpu logs -f $(mgpu submit --split-log sh -c '{BOTH}')"],
    'logs': ['sh', '-c', f"mgpu wait $(mgpu submit --split-log sh -c '{BOTH}'); mgpu logs @"],
    'logs of the last lines': ['sh', '-c', f"mgpu wait $(mgpu submit --split-log sh -c 'echo more; echo more >&2; {BOTH}'); mgpu logs -n3 @"],
}


@pytest.fixture(scope='module')
def doors(someone):
    """An instance on several nodes, with all commands as its client."""
    with cluster.Cluster(2, gpus='sim:2x24G', local='sim:2x24G', client=someone) as nodes:
        made = slurm.Slurm(nodes.box, nodes.place)
        for name in ('mgpu_srun', 'mgpu_simple_client'):
            os.symlink(f'{harness.programs()}/mgpu-compat', f'{made.folder}/{name}')
        os.symlink(f'{harness.programs()}/mgpu', f'{made.folder}/mgpu')
        made.nodes = nodes
        yield made


def split(text):
    """The lines of a job, without those of the command that shows it."""
    return ''.join(line for line in text.splitlines(True) if line.startswith(('out ', 'err ')))


@pytest.mark.parametrize('door', DOORS)
def test_the_two_streams_of_a_job_stay_two(doors, door):
    done = doors.run(*DOORS[door])
    assert (done.code, split(done.out), split(done.err)) == (0, OUT, ERR), done


def test_attach_shows_both_of_a_running_job(doors, gate):
    job = doors.box.submit('--split-log', '--', 'sh', '-c', f'{BOTH}; read x < {gate.path}')
    doors.box.wait(job, 'running')
    process = doors.box.popen('attach', job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out = ''.join(process.stdout.readline() for _ in range(3))
    gate.open()
    rest, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out + rest, split(err)) == (0, OUT, ERR)


@pytest.mark.parametrize('door', ('run', 'srun', 'mgpu_srun', 'mgpu_simple_client'))
def test_streams_that_are_one_keep_their_order(doors, door):
    done = doors.run('sh', '-c', '"$@" 2>&1', 'sh', *DOORS[door])
    assert split(done.out) == ''.join(f'out {i}\nerr {i}\n' for i in (1, 2, 3)), done


def test_standard_error_alone_can_be_discarded(doors):
    assert doors.run('sh', '-c', 'srun sh -c "echo e >&2" 2>/dev/null') .out == ''
    assert doors.run('sh', '-c', 'mgpu run sh -c "echo e >&2; echo o" 2>/dev/null').out == 'o\n'
    assert doors.run('sh', '-c', 'mgpu run -q sh -c "echo e >&2; echo o" 2>&1 >/dev/null').out == 'e\n'


def test_on_several_nodes_each_stream_has_the_lines_of_all(doors):
    done = doors.run('mgpu', 'run', '-q', '--nodes', '2', '-g', '2', 'sh', '-c', 'echo out $MGPU_NODE_RANK; echo err $MGPU_NODE_RANK >&2')
    assert sorted(done.out.splitlines()) == ['0: out 0', '1: out 1'], done
    assert sorted(done.err.splitlines()) == ['0: err 0', '1: err 1'], done
    again = doors.run('mgpu', 'logs', '@')
    assert (sorted(again.out.splitlines()), sorted(again.err.splitlines())) == (
        sorted(done.out.splitlines()), sorted(done.err.splitlines())), again
    one = doors.run('mgpu', 'logs', '--rank', '1', '@')
    assert (one.out, one.err) == ('out 1\n', 'err 1\n'), one


def test_each_attempt_has_both(doors):
    done = doors.run('mgpu', 'run', '-q', '--retry', '1', '--retry-on', '9', 'sh', '-c',
                     'echo out $MGPU_ATTEMPT; echo err $MGPU_ATTEMPT >&2; [ $MGPU_ATTEMPT = 2 ] || exit 9')
    assert (done.code, done.out, done.err) == (0, 'out 1\nout 2\n', 'err 1\nerr 2\n'), done


def test_both_survive_a_restart_of_mgpud_and_of_the_agent(doors, gate):
    box = doors.box
    process = box.popen('run', '-q', '--', 'sh', '-c', f'echo out 1; echo err 1 >&2; read x < {gate.path}; echo out 2; echo err 2 >&2; '
                        f'read x < {gate.path}; echo out 3; echo err 3 >&2', stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (process.stdout.readline(), process.stderr.readline()) == ('out 1\n', 'err 1\n')
    box.kill()
    box.start()
    gate.open()
    assert (process.stdout.readline(), process.stderr.readline()) == ('out 2\n', 'err 2\n')
    for pid in box.agents():
        if harness.process_name(pid) == 'mgpu-agent':
            os.kill(pid, signal.SIGKILL)
    gate.open()
    out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out, err) == (0, 'out 3\n', 'err 3\n')


def test_what_a_failed_job_wrote_last_is_from_standard_error(doors, place):
    for words in (('--split-log',), ('-o', f'{place}/%j.out', '--error', f'{place}/%j.err')):
        job = doors.box.submit(*words, '--', 'sh', '-c', 'echo progress; echo "ValueError: no such layer" >&2; exit 1')
        doors.box.wait(job)
        assert test_usage.usage(doors.box, job)[test_usage.TAIL] == 'ValueError: no such layer\n'


def test_a_split_log_is_for_jobs_without_files_and_terminals(doors):
    for words, reason in ((('-o', 'x'), 'a file for its output'), (('--error', 'x'), 'a file for its standard error'), (('-T',), 'terminal')):
        done = doors.run('mgpu', 'submit', '--split-log', *words, 'true')
        assert done.code != 0 and reason in done.err, done
    job = doors.box.submit('--hold', '--', 'true')
    assert 'split_log cannot be edited' in doors.run('mgpu', 'edit', job, 'split_log=yes').err
    doors.run('mgpu', 'cancel', job)
    plain = doors.box.submit('--', 'true')
    doors.box.wait(plain)
    missing = doors.box.api('GET', f'/jobs/{plain}/log?stream=stderr')
    assert missing.status == 404 and 'one log' in missing.json['detail'], missing
    assert doors.box.api('GET', f'/jobs/{plain}/log?stream=x').status == 400


def test_a_reader_that_leaves_standard_error_does_not_end_the_job(doors):
    done = doors.run('bash', '-c', 'mgpu run -q sh -c "for i in 1 2 3 4; do echo e >&2; done; echo last" 2> >(true)')
    assert (done.code, done.out) == (0, 'last\n'), done
