# SPDX-License-Identifier: MIT
"""Shares of a GPU that MPS enforces: --share mps. The control daemon is a stand-in
(tests/standin/nvidia-cuda-mps-control), and so is NVML; clients of MPS are a few lines of Python."""

import contextlib
import os
import pathlib
import shutil
import signal
import stat

import pytest

import harness
from cluster import Cluster
from nvml import Nvml

STANDIN = pathlib.Path(__file__).parent.parent / 'standin' / 'nvidia-cuda-mps-control'

# Asks the daemon of its environment for memory: a line for each answer.
CLIENT = r'''
import os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/control")
def ask(text):
    link.sendall(text.encode() + b"\n")
    return link.recv(100).decode().strip()
if "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" in os.environ:
    ask("limit " + os.environ["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"])
print(*(ask("alloc " + mib) for mib in sys.argv[1:]), sep=",", flush=True)
'''


class Mps:
    """The stand-in in a folder of its own, with its state."""

    def __init__(self, folder):
        self.program = f'{folder}/nvidia-cuda-mps-control'
        self.state = f'{folder}/mps.state'
        shutil.copy(STANDIN, self.program)
        os.chmod(self.program, 0o755)

    def say(self, text):
        pathlib.Path(self.state).write_text(text, encoding='ascii')


@pytest.fixture
def mps(place):
    """Daemons outlive their agent: those that an instance leaves behind end with the test."""
    mps = Mps(place)
    yield mps
    for pid in processes(mps):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def nvml(place):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-a')
    nvml.write()
    return nvml


@pytest.fixture
def box(mps, make_instance, nvml):
    return make_instance(gpus='auto', arguments=(*nvml.arguments, '--mps-control', mps.program))


def folders(box):
    path = f'{box.run_dir}/mps'
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def processes(mps):
    """Pids of control daemons and their servers."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir('/proc'))) if is_daemon(pid, mps.program)]


def daemons(mps):
    found = processes(mps)
    return [pid for pid in found if parent(pid) not in found]


def is_daemon(pid, program):
    try:
        words = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
    except OSError:
        return False
    return program.encode() in words and b'-f' in words


def parent(pid):
    try:
        return int(pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1].split()[1])
    except OSError:
        return 0


def children(pid):
    return [int(word) for word in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text(encoding='ascii').split()]


def client(*mib):
    return ['/usr/bin/python3', '-c', CLIENT, *map(str, mib)]


def waiting(gate, *command):
    """Runs the command in a shell, then waits at the gate."""
    return ['sh', '-c', f'"$@"; read word <{gate.path}', 'sh', *command]


def await_output(box, *jobs):
    for job in jobs:
        box.wait(job, 'running')
        harness.until(lambda job=job: box.output(job), 'its output')


def test_an_allocation_above_the_share_fails_to_the_mebibyte(box, mps):
    job = box.submit('-m', '8G', '--share', 'mps', '--', *client(8192, 1))
    assert box.wait(job)['exit_code'] == 0
    assert box.output(job) == 'ok,out of memory\n'
    job = box.submit('-g', '0.25', '--share', 'mps', '--', *client(6145, 6144, 1))
    assert box.wait(job)['exit_code'] == 0
    assert box.output(job) == 'out of memory,ok,out of memory\n'
    page = box.mgpu('show', job, check=True).out
    assert 'share enforced by: mps' in page, page
    harness.until(lambda: not daemons(mps) and not folders(box), 'the end of the daemon')


def test_a_client_can_lower_its_limit_and_not_raise_it(box):
    raised = ['env', 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20000M', *client(8192, 1)]
    unset = ['env', '-u', 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT', *client(8192, 1)]
    lowered = ['env', 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=100M', *client(101, 100)]
    for command, answers in ((raised, 'ok,out of memory\n'), (unset, 'ok,out of memory\n'),
                             (lowered, 'out of memory,ok\n')):
        job = box.submit('-m', '8G', '--share', 'mps', '--', *command)
        assert box.wait(job)['exit_code'] == 0
        assert box.output(job) == answers


def test_its_processes_find_the_daemon_of_their_gpu_by_their_environment(box):
    job = box.submit('-g', '0.333', '--share', 'mps', '--', 'sh', '-c',
                     'env | grep -E "^CUDA_(MPS|VIS)" | sort; test -r $MGPU_NOTICES')
    assert box.wait(job)['exit_code'] == 0
    lines = dict(line.split('=', 1) for line in box.output(job).splitlines())
    uid = os.geteuid() if not harness.IS_ROOT else int(box.job(job)['uid'])
    assert lines.pop('CUDA_MPS_PIPE_DIRECTORY') == f'{box.run_dir}/mps/{uid}.a'
    assert lines.pop('CUDA_MPS_LOG_DIRECTORY') == f'{box.run_dir}/mps/{uid}.a/log'
    assert lines == {'CUDA_VISIBLE_DEVICES': 'GPU-a', 'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE': '34',
                     'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT': '0=8183M'}, lines


def test_jobs_of_a_user_share_a_daemon_and_it_ends_with_the_last(box, mps, gate):
    first = box.submit('-m', '4G', '--share', 'mps', '--', *waiting(gate, *client(4096, 1)))
    second = box.submit('-m', '6G', '--share', 'mps', '--', *waiting(gate, *client(6144, 1)))
    await_output(box, first, second)
    assert box.output(first) == box.output(second) == 'ok,out of memory\n'
    assert len(daemons(mps)) == 1 and len(folders(box)) == 1
    gate.open(2)
    assert box.wait(first)['exit_code'] == box.wait(second)['exit_code'] == 0
    harness.until(lambda: not daemons(mps) and not folders(box), 'the end of the daemon')


@pytest.mark.root
def test_users_have_daemons_of_their_own_that_no_other_user_can_enter(box, mps, ana, bo, gate):
    jobs = [box.submit('-m', '4G', '--share', 'mps', '--', *waiting(gate, *client(1)), user=user) for user in (ana, bo)]
    harness.until(lambda: all(box.job(job)['state'] == 'running' for job in jobs), 'both jobs')
    assert len(daemons(mps)) == 2 and len(folders(box)) == 2
    for name in folders(box):
        status = os.stat(f'{box.run_dir}/mps/{name}')
        assert status.st_uid == 0 and stat.S_IMODE(status.st_mode) & 0o007 == 0
    other = next(name for name in folders(box) if name.startswith(f'{bo.uid}.'))
    probe = box.submit('-g', '0', '--', 'ls', f'{box.run_dir}/mps/{other}', user=ana)
    assert box.wait(probe)['exit_code'] != 0
    own = next(name for name in folders(box) if name.startswith(f'{ana.uid}.'))
    probe = box.submit('-g', '0', '--', 'touch', f'{box.run_dir}/mps/{own}/x', user=ana)
    assert box.wait(probe)['exit_code'] != 0
    gate.open(2)
    for job in jobs:
        box.wait(job)


def test_a_restarted_agent_adopts_the_daemon(box, mps, gate):
    job = box.submit('-m', '4G', '--share', 'mps', '--', *waiting(gate, *client(4096, 1)))
    await_output(box, job)
    before = daemons(mps)
    assert len(before) == 1
    box.restart()
    box.wait(job, 'running')
    assert daemons(mps) == before
    second = box.submit('-m', '6G', '--share', 'mps', '--', *client(6144, 1))
    assert box.wait(second)['exit_code'] == 0
    assert box.output(second) == 'ok,out of memory\n'
    assert daemons(mps) == before
    gate.open()
    assert box.wait(job)['exit_code'] == 0
    harness.until(lambda: not daemons(mps) and not folders(box), 'the end of the daemon')


def test_the_death_of_daemon_or_server_is_told_to_its_jobs(box, mps, gate):
    job = box.submit('-m', '4G', '--share', 'mps', '--', 'sh', '-c',
                     f'"$@"; read word <{gate.path}; cat $MGPU_NOTICES', 'sh', *client(1))
    await_output(box, job)
    daemon = daemons(mps)[0]
    server = children(daemon)[0]
    harness.until(lambda: (box.job(job)['usage'] or {}).get('sampled_seconds'), 'a sample with the server')
    time_s = box.job(job)['usage']['sampled_seconds']
    harness.until(lambda: box.job(job)['usage']['sampled_seconds'] > time_s, 'another')
    os.kill(server, signal.SIGKILL)
    harness.until(lambda: 'the MPS server of its GPU has ended' in box.log(), 'the notice about the server')
    os.kill(daemon, signal.SIGKILL)
    harness.until(lambda: 'the MPS control daemon of its GPU has died' in box.log(), 'the notice about the daemon')
    gate.open()
    assert box.wait(job)['exit_code'] == 0
    notices = [line.split(' ', 2)[1:] for line in box.output(job).splitlines()[1:]]
    assert [subject for subject, _ in notices] == ['mps', 'mps'], notices
    after = box.submit('-m', '4G', '--share', 'mps', '--', *client(4096, 1))
    assert box.wait(after)['exit_code'] == 0, 'a new daemon serves new jobs'
    assert box.output(after) == 'ok,out of memory\n'


def test_the_server_of_a_dead_daemon_ends_with_its_last_job(box, mps, gate):
    job = box.submit('-m', '4G', '--share', 'mps', '--', *waiting(gate, *client(1)))
    await_output(box, job)
    daemon = daemons(mps)[0]
    server = children(daemon)[0]
    time_s = (box.job(job)['usage'] or {}).get('sampled_seconds', 0)
    harness.until(lambda: (box.job(job)['usage'] or {}).get('sampled_seconds', 0) > time_s + 1, 'two samples')
    os.kill(daemon, signal.SIGKILL)
    harness.until(lambda: 'the MPS control daemon of its GPU has died' in box.log(), 'the notice')
    other = box.wait(box.submit('-m', '4G', '--share', 'mps', '--', 'true'))
    assert other['ended_by'] == 'start_failed' and 'that has died' in other['message'], other
    gate.open()
    box.wait(job)
    assert harness.wait_process(server)
    harness.until(lambda: not folders(box), 'the end of the folder')


@pytest.mark.parametrize('state, words', [
    ('die', 'ended at its start (status'), ('refuse', 'refused: Failed to set the limit'),
    ('lie', 'refused: Failed to set the limit'), ('hang', 'did not answer within'), ('deaf 60000', 'Cannot find MPS'),
], ids=['dies', 'refuses', 'lies', 'hangs', 'deaf'])
def test_a_daemon_that_fails_ends_the_job_or_gives_way_to_the_next_kind(box, mps, state, words):
    mps.say(state)
    ended = box.wait(box.submit('-m', '4G', '--share', 'mps', '--', 'true'))
    assert ended['ended_by'] == 'start_failed' and words in ended['message'], ended
    job = box.submit('-m', '4G', '--share', 'auto', '--', 'sh', '-c', 'echo "[$CUDA_MPS_PIPE_DIRECTORY]"')
    assert box.wait(job)['exit_code'] == 0
    assert box.output(job) == '[]\n'
    harness.until(lambda: not daemons(mps) and not folders(box), 'the end of the daemon')
    mps.say('')
    job = box.submit('-m', '4G', '--share', 'auto', '--', *client(4096, 1))
    assert box.wait(job)['exit_code'] == 0
    assert box.output(job) == 'ok,out of memory\n'


def test_a_daemon_that_starts_late_is_waited_for(box, mps):
    mps.say('deaf 700')
    job = box.submit('-m', '4G', '--share', 'mps', '--', *client(4096, 1))
    assert box.wait(job)['exit_code'] == 0
    assert box.output(job) == 'ok,out of memory\n'


def test_a_daemon_that_does_not_quit_is_killed(box, mps):
    mps.say('stay')
    assert box.wait(box.submit('-m', '4G', '--share', 'mps', '--', *client(1)))['exit_code'] == 0
    harness.until(lambda: not daemons(mps) and not folders(box), 'the end of the daemon')


def test_a_process_that_leaves_mps_is_caught_by_its_memory(box, nvml, gate, bell):
    job = box.submit('-m', '4G', '--share', 'mps', '--', 'sh', '-c',
                     f'unset CUDA_MPS_PIPE_DIRECTORY; echo $$ >{bell.path}; read word <{gate.path}')
    nvml.say(f'process 0 compute {bell.wait()} 5000')
    nvml.write()
    ended = box.wait(job)
    assert ended['ended_by'] == 'gpu_mem' and ended['usage']['share'] == 'mps', ended


def test_servers_are_no_external_processes(box, mps, nvml, gate):
    job = box.submit('-m', '4G', '--share', 'mps', '--', *waiting(gate, *client(1)))
    await_output(box, job)
    server = children(daemons(mps)[0])[0]
    nvml.say(f'process 0 compute {server} 300')
    nvml.say('process 0 compute 1 7')
    nvml.write()
    harness.until(lambda: any(one['pid'] == 1 for one in box.gpus()[0]['processes']), 'a sample with both')
    assert [one['pid'] for one in box.gpus()[0]['processes']] == [1]
    gate.open()
    box.wait(job)


def test_without_the_program_mps_is_refused_and_auto_does_without(make_instance, nvml):
    instance = make_instance(gpus='auto', arguments=(*nvml.arguments, '--mps-control', '/nowhere/mps'))
    refused = instance.mgpu('submit', '-m', '4G', '--share', 'mps', '--', 'true')
    assert refused.code != 0 and 'no node can enforce shares of GPUs by mps' in refused.err, refused
    assert 'hint: --share auto uses the strongest kind of each node' in refused.err, refused
    assert instance.api('GET', '/nodes').json['nodes'][0]['shares'] == ['time']
    assert instance.wait(instance.submit('-m', '4G', '--share', 'auto', '--', 'true'))['ended_by'] == 'exit'
    assert 'no mps: there is no nvidia-cuda-mps-control' in instance.mgpu('doctor').out


def test_a_job_that_requests_mps_runs_where_it_works_and_waits_for_that(mps, place, someone, gate):
    with Cluster(0, client=someone) as cluster:
        for name, program in (('n1', '/nowhere/mps'), ('n2', mps.program)):
            os.mkdir(f'{place}/{name}')
            nvml = Nvml(f'{place}/{name}')
            nvml.add(bus=0x3b, uuid=f'GPU-{name}')
            nvml.write()
            cluster.add(name, 'auto', (*nvml.arguments, '--mps-control', program)).join()
        box = cluster.box
        busy = box.submit('-g', '1', '--nodelist', 'n2', '--', *gate.command())
        box.wait(busy, 'running')
        job = box.submit('-m', '4G', '--share', 'mps', '--', *client(4096, 1))
        why = box.mgpu('why', job, check=True).out
        assert 'on nodes that enforce shares by mps' in why, why
        assert box.job(job)['state'] == 'queued', 'n1 is free, and does not have MPS'
        other = box.submit('-m', '4G', '--share', 'time', '--', 'true')
        assert box.wait(other)['node'] == 'n1'
        gate.open()
        ended = box.wait(job)
        assert (ended['node'], ended['exit_code'], ended['attempt']) == ('n2', 0, 1), ended


def test_doctor_names_mps_as_the_strongest(box):
    assert '--share auto uses mps: allocations above the share fail; no dmem: ' in box.mgpu('doctor').out
