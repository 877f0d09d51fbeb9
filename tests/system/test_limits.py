# SPDX-License-Identifier: MIT
"""Limits of a job's use of its host are enforced: memory, CPUs, processes. Real processes against the real kernel; what this
machine cannot enforce (mgpu doctor says so) is skipped."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import time

import pytest

import harness

pytestmark = pytest.mark.root
GPUS = 'sim:2x24G'
ARGUMENTS = ('--pids-max', '400')
PYTHON = '/usr/bin/python3'
LIMIT = 'used more than its 64 MiB of host memory (-M)'

HOG = 'held = bytearray(200 << 20)'
BUSY = '''
import os, time
end = time.monotonic() + 1.5
for _ in range(2):
    if os.fork() == 0:
        while time.monotonic() < end:
            pass
        os._exit(0)
os.wait(), os.wait()
'''
BOMB = '''
import os, signal
while True:
    try:
        os.fork()
    except OSError:
        pass
'''
SESSIONS = '''
import os
all_there, is_last = os.pipe()
for _ in range(300):
    if os.fork() == 0:
        os.setsid()
        os.close(is_last)
        os.read(all_there, 1)
        break
else:
    os.close(is_last)
while True:
    pass
'''
COUNT_FORKS = '''
import os, signal
children = []
for number in range(1000):
    try:
        child = os.fork()
    except OSError as error:
        print(number, error.strerror)
        raise SystemExit(4)
    if child == 0:
        signal.pause()
'''


def features(instance):
    return {feature['name']: feature for feature in instance.api('GET', '/nodes').json['nodes'][0]['features']}


@pytest.fixture
def limited(box):
    """The box, where everything can be enforced."""
    off = [name for name in ('memory', 'cpu', 'pids') if not features(box)[name]['on']]
    if off:
        pytest.skip(f'this machine cannot enforce {off}')
    return box


def is_v1(instance):
    return 'cgroup v1' in features(instance)['memory']['text']


def groups_left(instance):
    """Directories of attempts, in v2 and in each v1 hierarchy."""
    found = []
    with open(f'{instance.run_dir}/cgroup', encoding='ascii') as place:
        found += glob.glob(f'{place.read()}/j*')
        place.seek(0)
        name = os.path.basename(place.read())
    if os.path.exists(f'{instance.run_dir}/cgroup-v1'):
        with open(f'{instance.run_dir}/cgroup-v1', encoding='ascii') as lines:
            for line in lines:
                found += glob.glob(f'{line.split(" ", 1)[1].strip()}/{name}.j*')
    return found


def processes_in_a_group(instance):
    """Of the attempt that has most."""
    most = 0
    for group in groups_left(instance):
        with contextlib.suppress(OSError), open(f'{group}/pids.current', encoding='ascii') as count:
            most = max(most, int(count.read()))
    return most


def await_no_groups(instance):
    end = time.monotonic() + harness.DEADLINE_S
    while groups_left(instance):
        assert time.monotonic() < end, groups_left(instance)


def worker(instance):
    """The pid of the agent that works."""
    return next(pid for pid, line in harness.processes(instance.place).items()
                if 'mgpu-agent' in line.split(' ')[0] and '--link-fd' in line)


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as source:
        return source.read().strip()


def await_new_worker(instance, old):
    end = time.monotonic() + harness.DEADLINE_S
    while time.monotonic() < end:
        node = instance.api('GET', '/nodes').json['nodes'][0]
        with_link = [pid for pid, line in harness.processes(instance.place).items()
                     if 'mgpu-agent' in line.split(' ')[0] and '--link-fd' in line]
        if node['up'] and with_link and old not in with_link:
            return
    raise AssertionError('no new agent')


# --- memory ---

@pytest.mark.smoke
def test_a_job_that_uses_more_memory_than_it_asked_for_ends_as_oom(limited):
    done = limited.mgpu('run', '-g', '0', '-M', '64M', '--', PYTHON, '-c', f'print("last words", flush=True); {HOG}')
    assert done.code == 137, done
    assert LIMIT in done.err, done
    job = limited.api('GET', '/jobs?state=failed').json['jobs'][-1]['id']
    told = limited.job(job)
    assert (told['ended_by'], told['exit_code'], told['signal']) == ('oom', 137, 9), told
    assert re.fullmatch(re.escape(LIMIT) + r', peak \d+(\.\d)? MiB', told['message']), told
    assert [event['ended_by'] for event in told['events'] if event['type'] == 'ended'] == ['oom']
    for verb in (('ps', '-a'), ('show',), ('postmortem',)):
        assert 'used more than its 64 MiB' in limited.mgpu(*verb, job).out, verb
    assert (told['usage'] or {}).get('memory_peak_bytes') in (None, 64 << 20), told['usage']
    assert 'more with -M' in limited.mgpu('postmortem', job).out
    assert 'last words' in limited.mgpu('postmortem', job).out
    assert limited.mgpu('wait', job).code == 137
    await_no_groups(limited)


def test_its_neighbour_goes_on(limited, gate):
    neighbour = limited.submit('-g', '0', '-M', '64M', '--', *gate.command('exit 9'))
    limited.wait(neighbour, 'running')
    assert limited.mgpu('run', '-g', '0', '-M', '64M', '--', PYTHON, '-c', HOG).code == 137
    assert limited.job(neighbour)['state'] == 'running'
    gate.open()
    assert limited.wait(neighbour)['exit_code'] == 9


def test_within_its_limit_a_job_is_left_alone(limited):
    assert limited.mgpu('run', '-g', '0', '-M', '512M', '--', PYTHON, '-c', HOG).code == 0


@pytest.mark.parametrize('end, ended_by, code', [('exit 0', 'exit', 0), ('exit 3', 'oom', 137)])
def test_a_child_that_is_killed_counts_when_the_command_fails_of_it(limited, end, ended_by, code):
    if not is_v1(limited):
        pytest.skip('v2 ends all of the job at once')
    job = limited.submit('-g', '0', '-M', '64M', '--', 'sh', '-c', f'{PYTHON} -c "{HOG}"; {end}')
    told = limited.wait(job)
    assert (told['ended_by'], told['exit_code']) == (ended_by, code), told
    note = 'the kernel killed 1 of its processes at its limit of 64 MiB' if code == 0 else 'ended with status 3'
    assert note in limited.mgpu('postmortem', job).out


def test_a_cancelled_job_is_cancelled_whatever_was_killed_before(limited, gate):
    if not is_v1(limited):
        pytest.skip('v2 ends all of the job at once')
    bell = f'{limited.place}/bell'
    os.mkfifo(bell)
    os.chmod(bell, 0o666)
    script = f'{PYTHON} -c "{HOG}"; echo over > {bell}; read word < {gate.path}'
    job = limited.submit('-g', '0', '-M', '64M', '--', 'sh', '-c', script)
    with open(bell, encoding='ascii') as rung:
        assert rung.read() == 'over\n'
    limited.mgpu('cancel', job, check=True)
    assert limited.wait(job)['ended_by'] == 'cancelled'


@pytest.mark.parametrize('victim', ['agent', 'shepherd', 'daemon'])
def test_the_end_is_oom_whoever_dies_meanwhile(make_instance, victim):
    instance = make_instance(gpus=GPUS)
    if not features(instance)['memory']['on']:
        pytest.skip('memory is not enforced here')
    gate = harness.Gate(instance.place)
    job = instance.submit('-g', '0', '-M', '64M', '--', *gate.command(f'exec {PYTHON} -c "{HOG}"'))
    instance.wait(job, 'running')
    if victim == 'agent':
        old = worker(instance)
        os.kill(old, signal.SIGKILL)
        await_new_worker(instance, old)
    elif victim == 'shepherd':
        for pid in instance.shepherds():
            if name_of(pid) == 'mgpu-shepherd':  # not its init, which knows the status
                os.kill(pid, signal.SIGKILL)
    else:
        instance.stop()
    gate.open()
    if victim == 'daemon':
        instance.start()
    told = instance.wait(job)
    assert (told['ended_by'], told['exit_code']) == ('oom', 137), told
    assert LIMIT in told['message']
    instance.restart()
    assert instance.job(job)['ended_by'] == 'oom'
    await_no_groups(instance)
    gate.close()


def test_too_little_memory_is_refused_with_a_sentence(box):
    done = box.mgpu('submit', '-M', '1M', '--', 'true')
    assert done.code != 0 and 'memory: 1 MiB is below the minimum of 16 MiB' in done.err, done


# --- CPUs ---

def allowed(instance, *options):
    """CPUs that a job may run on, and how many a program in it counts."""
    done = instance.mgpu('run', '-q', '-g', '0', *options, '--', 'sh', '-c',
                         "sed -n 's/Cpus_allowed_list:.//p' /proc/self/status; nproc", check=True)
    listed, count = done.out.split()
    return listed, int(count)


def test_a_job_has_as_many_cpus_as_it_asked_for(limited):
    listed, count = allowed(limited, '-c', '1')
    assert count == 1 and listed.isdigit(), listed


def test_without_c_a_job_has_all_cpus(limited):
    assert allowed(limited)[1] == len(os.sched_getaffinity(0))


@pytest.mark.skipif(os.cpu_count() < 2, reason='needs two CPUs')
def test_jobs_have_cpus_of_their_own_also_after_a_restart(make_instance):
    instance = make_instance(gpus=GPUS)
    if not features(instance)['cpu']['on']:
        pytest.skip('CPUs are not enforced here')
    gate = harness.Gate(instance.place)
    report = f"sed -n 's/Cpus_allowed_list:.//p' /proc/self/status; read word < {gate.path}"
    first = instance.submit('-g', '0', '-c', '1', '--', 'sh', '-c', report)
    instance.wait(first, 'running')
    instance.restart()
    second = instance.submit('-g', '0', '-c', '1', '--', 'sh', '-c', report)
    instance.wait(second, 'running')
    gate.open(2)
    instance.wait(first), instance.wait(second)
    assert instance.output(first) != instance.output(second)
    gate.close()


def test_parts_of_a_cpu_are_a_quota_of_time(limited):
    job = limited.wait(limited.submit('-g', '0', '-c', '0.5', '--', PYTHON, '-c', BUSY))
    # Two processes at work for 1.5 s: without a quota twice that where there are two CPUs.
    assert job['cpu_seconds'] <= 0.5 * job['run_seconds'] + 0.25, job


# --- processes ---

def test_a_job_that_forks_on_and_on_stops_at_its_limit(limited):
    job = limited.submit('-g', '0', '--', PYTHON, '-c', COUNT_FORKS)
    told = limited.wait(job)
    assert told['exit_code'] == 4, told
    number = int(limited.output(job).split()[0])
    assert 390 <= number < 400, number
    assert 'it reached its limit of 400 processes' in limited.mgpu('postmortem', job).out


def test_a_fork_bomb_leaves_the_node_usable_and_dies_at_once(limited, make_instance):
    limited = make_instance(arguments=['--pids-max', '1000'])  # as many as stall no other test
    bomb = limited.submit('-g', '1', '--', PYTHON, '-c', BOMB)
    harness.until(lambda: processes_in_a_group(limited) > 990, 'the bomb has gone off')
    assert limited.mgpu('run', '-g', '1', '--', 'true').code == 0
    began = time.monotonic()
    limited.mgpu('cancel', '--grace', '0s', bomb, check=True)
    assert limited.wait(bomb)['state'] == 'cancelled'
    assert time.monotonic() - began < 5
    await_no_groups(limited)


def test_hundreds_of_busy_sessions_of_a_job_leave_the_others_their_time(limited, make_instance):
    """The kernel gives each session a share by itself (sched(7), autogroup), unless a job is one group for it."""
    limited = make_instance(arguments=['--pids-max', '1000'])
    hog = limited.submit('-g', '1', '--', PYTHON, '-c', SESSIONS)
    harness.until(lambda: processes_in_a_group(limited) >= 300, 'all sessions')
    began = time.monotonic()
    assert limited.mgpu('run', '-g', '1', '--', PYTHON, '-c', 'sum(range(10 ** 6))').code == 0
    limited.mgpu('cancel', '--grace', '0s', hog, check=True)
    assert limited.wait(hog)['state'] == 'cancelled'
    assert time.monotonic() - began < 5
    await_no_groups(limited)


# --- what is left, and what is off ---

def test_groups_that_a_crash_left_are_swept(make_instance):
    instance = make_instance(gpus=GPUS)
    if 'cgroup v1' not in features(instance)['pids']['text']:
        pytest.skip('there is no v1 here')
    instance.stop()
    with open(f'{instance.run_dir}/cgroup', encoding='ascii') as place:
        name = os.path.basename(place.read())
    with open(f'{instance.run_dir}/cgroup-v1', encoding='ascii') as lines:
        left = [f'{line.split(" ", 1)[1].strip()}/{name}.j999.1' for line in lines]
    for path in left:
        os.mkdir(path)
    instance.start()
    await_no_groups(instance)
    assert not any(os.path.exists(path) for path in left)


def test_what_cannot_be_enforced_is_said(make_instance, someone):
    instance = make_instance(user=someone, client=someone)
    off = features(instance)
    if off['memory']['on']:
        pytest.skip('this user was given a cgroup')
    assert 'not enforced' in off['memory']['text'] and off['memory']['fix']
    assert re.search(r'off +memory', instance.mgpu('doctor').out)
    assert 'memory is off: ' in instance.log()
    job = instance.submit('-g', '0', '-M', '64M', '--', PYTHON, '-c', HOG)
    assert instance.wait(job)['exit_code'] == 0
    assert 'memory is not enforced' in instance.mgpu('show', job).out


@pytest.mark.parametrize('value', ['many', '3', '4194305'])
def test_pids_max_is_checked(make_instance, value):
    instance = make_instance(start=False, arguments=['--pids-max', value])
    done = subprocess.run(instance.command, capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)
    assert done.returncode != 0 and '--pids-max' in done.stderr, done
