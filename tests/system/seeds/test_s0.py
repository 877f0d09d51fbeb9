# SPDX-License-Identifier: MIT
"""mgpu_scheduler_server, mgpu_srun, mgpu_queue, mgpu_cancel: a test for each line of checklist.tsv, named by its number."""

import os
import re
import shutil
import signal
import subprocess

import pytest

import harness
import nvml

GPUS = 'sim:4x24G'
JOB = re.compile(r'Job ([A-F][0-9A-F]{7}) submitted \(number (\d+)\)\n')


def srun(box, *arguments, check=True, **options):
    """Submits; (alias, number)."""
    done = box.mgpu(*arguments, program='mgpu_srun', check=check, **options)
    found = JOB.fullmatch(done.out)
    assert found, done
    return found[1], int(found[2])


def refused(box, *arguments, **options):
    done = box.mgpu(*arguments, program='mgpu_srun', **options)
    assert done.code != 0 and done.out == '', done
    return done.err


def queue(box, *arguments):
    return box.mgpu(*arguments, program='mgpu_queue', check=True).out


def cancel(box, *arguments, **options):
    return box.mgpu(*arguments, program='mgpu_cancel', **options)


# --- commands and server ---

@pytest.mark.parametrize('name', ['mgpu_scheduler_server', 'mgpu_srun', 'mgpu_queue', 'mgpu_cancel'])
def test_S0_1_four_programs(names, name):
    done = subprocess.run([f'{names}/{name}', '--help'], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f'usage: {name}'), done


# The server leaves a link in /tmp; tests that start it take turns.
OLD_SOCKET = '/tmp/mgpu_scheduler.sock'
in_turn = pytest.mark.xdist_group(OLD_SOCKET)


def own_server(place, *arguments, name='mgpu_scheduler_server', folder=None):
    """The server of a user who has nothing configured, with a place of its own for what it writes."""
    user = harness.User('nobody') if harness.IS_ROOT else None
    env = {'PATH': '/usr/bin:/bin', 'HOME': place, 'XDG_RUNTIME_DIR': f'{place}/run', 'XDG_STATE_HOME': f'{place}/state',
           'ASAN_OPTIONS': 'detect_leaks=0'}
    os.makedirs(f'{place}/run', mode=0o700, exist_ok=True)
    if user:
        os.chown(f'{place}/run', user.uid, user.gid)
    return subprocess.Popen([f'{folder or harness.programs()}/{name}', *arguments], env=env, cwd=place, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            **(user.popen_arguments() if user else {}))


@in_turn
def test_S0_2_S0_4_S0_9_the_server_needs_nothing(place):
    process = own_server(place, '--', '--listen', 'none')
    said = harness.lines_until(process, 'is ready')
    harness.end(process)
    assert 'without root: it serves one user' in said and 'only jobs of uid' in said, said


@in_turn
def test_S0_3_S0_37_a_longest_time(place):
    process = own_server(place, '--max-job-time', '1', '--', '--listen', 'none', '--gpus', GPUS)
    harness.lines_until(process, 'is ready')
    env = {'MGPU_SOCKET': f'{place}/run/mgpu/mgpud.sock', 'HOME': place, 'PATH': '/usr/bin:/bin'}
    user = harness.User('nobody').popen_arguments() if harness.IS_ROOT else {}
    call = [f'{harness.programs()}/mgpu_srun', '--gpu-ids', '0', '--', 'sleep', '60']
    subprocess.run(call, env=env, check=True, stdout=subprocess.DEVNULL, cwd=place, **user)
    waiting = [f'{harness.programs()}/mgpu', 'show', '1', '--json']
    deadline = harness.time.monotonic() + harness.DEADLINE_S
    restarts = 0
    while restarts == 0 and harness.time.monotonic() < deadline:
        subprocess.run([f'{harness.programs()}/mgpu', 'wait', '--timeout', '2', '1'], env=env, check=False, **user,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run(waiting, env=env, check=True, capture_output=True, text=True, **user)
        restarts = harness.json.loads(done.stdout)['restarts']
    assert restarts > 0
    subprocess.run([f'{harness.programs()}/mgpu_cancel', '1'], env=env, check=True, **user)
    subprocess.run([f'{harness.programs()}/mgpu', 'wait', '1'], env=env, check=False, **user)
    harness.end(process)


def test_S0_3_nonsense_is_refused(names):
    done = subprocess.run([f'{names}/mgpu_scheduler_server', '--max-job-time', 'soon'], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and "--max-job-time: 'soon'" in done.stderr, done


@in_turn
def test_S0_5_the_old_socket(place):
    process = own_server(place, '--', '--listen', 'none', '--gpus', GPUS)
    harness.lines_until(process, 'is ready')
    try:
        assert os.readlink(OLD_SOCKET) == f'{place}/run/mgpu/mgpud.sock'
        user = harness.User('nobody').popen_arguments() if harness.IS_ROOT else {}
        done = subprocess.run([f'{harness.programs()}/mgpu_queue'], env={'PATH': '/usr/bin:/bin'}, text=True, check=False,
                              capture_output=True, **user)
        assert done.returncode == 0 and done.stdout.startswith('ALIAS'), done
    finally:
        harness.end(process)
        os.unlink(OLD_SOCKET)


@in_turn
@pytest.mark.root
def test_S0_5_the_old_socket_leads_users_to_roots_server(names, ana, bo):
    """Also where another user has left a link that leads nowhere; a second start changes nothing."""
    harness.require_namespaces()
    os.symlink('/nonexistent/socket', OLD_SOCKET)
    os.lchown(OLD_SOCKET, bo.uid, bo.gid)
    start = ('mount -t tmpfs -o mode=755 none /run && mount -t tmpfs -o mode=755 none /var/lib && '
             f'exec {names}/mgpu_scheduler_server -- --listen none --gpus {GPUS} --user nobody')
    env = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': '/root', 'ASAN_OPTIONS': 'detect_leaks=0'}
    process = subprocess.Popen(['unshare', '-m', 'sh', '-c', start], env=env, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def inside(*words, user=None):
        as_user = [] if user is None else ['setpriv', f'--reuid={user.uid}', f'--regid={user.gid}', '--init-groups']
        return subprocess.run(['nsenter', '-t', str(process.pid), '-m', *as_user, *words], capture_output=True, text=True,
                              check=False, env={**env, 'HOME': '/', 'MGPU_SOCKET': OLD_SOCKET}, timeout=harness.DEADLINE_S)

    try:
        said = harness.lines_until(process, 'is ready')
        assert os.readlink(OLD_SOCKET) == '/run/mgpu/mgpud.sock' and os.lstat(OLD_SOCKET).st_uid == 0, said
        assert 'jobs submitted by root run as root' in said
        for user in (ana, bo, None):
            done = inside(f'{names}/mgpu_srun', '--gpu-ids', '0', '--', 'true', user=user)
            assert JOB.fullmatch(done.stdout), done
        second = inside(f'{names}/mgpu_scheduler_server', '--', '--listen', 'none')
        assert second.returncode != 0 and 'is not replaced' in second.stderr, second
        assert inside(f'{names}/mgpu_queue', user=ana).returncode == 0
        assert inside(f'{names}/mgpu', 'wait', '1', '2', '3').returncode == 0
    finally:
        harness.end(process)
        os.unlink(OLD_SOCKET)


@pytest.mark.parametrize('name, words', [('mgpu_srun', ['--', 'true']), ('mgpu_queue', []), ('mgpu_cancel', ['1'])])
def test_S0_6_no_server(names, name, words):
    done = subprocess.run([f'{names}/{name}', *words], capture_output=True, text=True, check=False,
                          env={'MGPU_SOCKET': '/nonexistent/socket', 'HOME': '/'})
    assert done.returncode == 5 and f'{name}: ' in done.stderr and '/nonexistent/socket' in done.stderr, done


def test_S0_6_hints_have_the_options_of_this_door(box, names):
    """And name the server's command that belongs to it."""
    done = box.mgpu('--gpu-ids', '0', '--', 'true', program='mgpu_srun', env={'MGPU_SOCKET': '/nonexistent/socket'})
    assert 'mgpu_scheduler_server' in done.err and 'systemctl' not in done.err and 'mgpud' not in done.err.split('hint: ')[1], done
    done = box.mgpu('--gpu-ids', '0', program='mgpu_srun')
    assert 'hint: ' in done.err and 'mgpu_srun --gpu-ids 0 -- python train.py' in done.err, done
    done = box.mgpu('submit', program='tgpu')
    assert 'tgpu submit --gpus 1 -- python train.py' in done.err and ' -g ' not in done.err, done


def test_S0_7_many_at_a_time(box):
    calls = [box.popen('--gpu-ids', '0', '--', 'true', program='mgpu_srun') for _ in range(12)]
    ids = [JOB.fullmatch(call.communicate(timeout=harness.DEADLINE_S)[0].decode()) for call in calls]
    assert all(ids) and len({found[1] for found in ids}) == 12
    for found in ids:
        assert box.wait(int(found[2]))['state'] == 'done'


def test_S0_8_what_is_wrong_with_the_gpus(make_instance):
    box = make_instance('none')
    done = box.mgpu('doctor')
    assert re.search(r'gpu', done.out, re.I), done
    box.close()


# --- mgpu_srun ---

def test_S0_10_S0_42_one_gpu(box):
    alias, number = srun(box, '--gpu-ids', '1', '--', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES')
    assert box.wait(number)['state'] == 'done' and box.output(number) == '1\n'
    assert box.job(number)['alias'] == alias


def test_S0_11_S0_26_a_list_and_everything_together(box):
    _, number = srun(box, '--gpu-ids', '0,1', '--mem', '8000', '--time-limit', '600', '--', 'sh', '-c',
                     'echo $CUDA_VISIBLE_DEVICES')
    job = box.wait(number)
    assert job['state'] == 'done' and box.output(number) == '0,1\n'
    assert job['gpu_mem'] == 8000 << 20 and job['time_limit_s'] == 600


def test_S0_11_waits_for_exactly_these(box, gate):
    _, first = srun(box, '--gpu-ids', '2', '--', *gate.command())
    box.wait(first, 'running')
    _, second = srun(box, '--gpu-ids', '0,2', '--', 'true')
    assert box.job(second)['state'] == 'queued'
    gate.open()
    assert box.wait(second)['state'] == 'done' and box.wait(first)['state'] == 'done'


@pytest.mark.parametrize('ids, said', [('9', 'GPU 9 does not exist'), ('0,0', 'listed twice'), ('x', "'x'"), ('0,', ''), ('', '')])
def test_S0_12_wrong_ids(box, ids, said):
    assert said in refused(box, '--gpu-ids', ids, '--', 'true')


def test_S0_13_S0_14_S0_49_interactive(box, place):
    process = box.popen('--gpu-ids', '0', '--interactive', '--', 'sh', '-c', 'echo begun; exec sleep 1000',
                        program='mgpu_srun')
    assert process.stdout.readline() == b'begun\n'
    process.send_signal(signal.SIGINT)
    assert process.wait(harness.DEADLINE_S) == 0, process.stderr.read()
    number = box.open_jobs()[0]
    alias = box.job(number)['alias']
    assert box.job(number)['state'] == 'running' and alias in queue(box)
    assert cancel(box, alias).code == 0
    assert box.wait(number)['state'] == 'cancelled'


def test_S0_14_ctrl_c_leaves_a_job_that_waits_in_the_queue(box, gate):
    _, first = srun(box, '--gpu-ids', '0', '--', *gate.command())
    box.wait(first, 'running')
    process = box.popen('--gpu-ids', '0', '--interactive', '--', 'true', program='mgpu_srun')
    assert b'queued' in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(harness.DEADLINE_S) == 0, process.stderr.read()
    number = max(box.open_jobs())
    assert box.job(number)['state'] == 'queued'
    gate.open()
    assert box.wait(number)['state'] == 'done'


def test_S0_13_every_attempt_is_shown(box, place):
    """A job that is switched goes on here, and its waits are said."""
    script = f'echo attempt $MGPU_ATTEMPT; if [ $MGPU_ATTEMPT = 3 ]; then exit 5; fi; sleep 1000'
    done = box.mgpu('--gpu-ids', '0', '--time-limit', '1', '--interactive', '--', 'sh', '-c', script, program='mgpu_srun')
    assert (done.code, done.out) == (5, 'attempt 1\nattempt 2\nattempt 3\n'), done
    assert done.err.count('was requeued') == 2, done


def test_S0_15_in_the_background(box, gate):
    alias, number = srun(box, '--gpu-ids', '0', '--', *gate.command())
    box.wait(number, 'running')
    assert alias in queue(box)
    gate.open()
    box.wait(number)


def test_S0_16_S0_39_memory_is_shared(box, gate):
    _, first = srun(box, '--gpu-ids', '0', '--mem', '8000', '--', *gate.command())
    _, second = srun(box, '--gpu-ids', '0', '--mem', '8000', '--', *gate.command())
    box.wait(first, 'running')
    box.wait(second, 'running')
    _, third = srun(box, '--gpu-ids', '0', '--mem', '16000', '--', 'true')
    assert box.job(third)['state'] == 'queued'
    gate.open(2)
    assert [box.wait(job)['state'] for job in (first, second, third)] == ['done'] * 3


@pytest.mark.parametrize('size', ['0', '-1', '99999999', 'much'])
def test_S0_17_memory_that_no_gpu_has(box, size):
    said = refused(box, '--gpu-ids', '0', '--mem', size, '--', 'true')
    assert size != '99999999' or '24 GiB' in said


def test_S0_18_without_memory(box):
    _, number = srun(box, '--gpu-ids', '3', '--', 'true')
    assert box.wait(number)['gpu_mem'] is None


def starts(box, *jobs):
    """The jobs in the order of the starts of their attempts."""
    times = [(event['at'], job) for job in jobs for event in box.job(job)['events'] if event['type'] == 'started']
    return [job for _, job in sorted(times)]


def test_S0_19_time_is_up(box, place):
    """It runs again, under its number."""
    script = f'if [ -e {place}/again ]; then exit 0; fi; touch {place}/again; sleep 1000'
    alias, number = srun(box, '--gpu-ids', '0', '--time-limit', '1', '--', 'sh', '-c', script)
    job = box.wait(number)
    assert job['state'] == 'done' and job['restarts'] == 1 and job['alias'] == alias


@pytest.mark.root
def test_S0_36_it_goes_behind_everybody_who_waits(box, bo, gate):
    """Whatever their limits are: ten minutes of another user come before the next second of this one."""
    _, brief = srun(box, '--gpu-ids', '0', '--time-limit', '3', '--', 'sleep', '1000')  # time enough to submit two
    box.wait(brief, 'running')
    _, lengthy = srun(box, '--gpu-ids', '0', '--time-limit', '600', '--', *gate.command(), user=bo)
    _, unlimited = srun(box, '--gpu-ids', '0', '--', *gate.command())
    box.wait(lengthy, 'running')
    assert box.job(brief)['state'] == 'queued' and box.job(brief)['restarts'] == 1
    gate.open()
    box.wait(unlimited, 'running')
    gate.open()
    box.await_news(lambda: box.job(brief)['restarts'] == 2)
    assert starts(box, brief, lengthy, unlimited)[:4] == [brief, lengthy, unlimited, brief]  # then it is alone


@pytest.mark.root
def test_S0_36_jobs_with_unequal_limits_take_turns(box, bo):
    _, brief = srun(box, '--gpu-ids', '0', '--time-limit', '1', '--', 'sleep', '1000')
    _, lengthy = srun(box, '--gpu-ids', '0', '--time-limit', '2', '--', 'sleep', '1000', user=bo)
    assert box.await_news(lambda: (box.job(brief)['restarts'] or 0) >= 3)
    order = starts(box, brief, lengthy)
    assert order == [brief, lengthy] * (len(order) // 2) + [brief] * (len(order) % 2), order
    assert box.job(brief)['state'] != 'failed' and box.job(lengthy)['state'] != 'failed'


def test_S0_20_setup(box):
    _, number = srun(box, '--gpu-ids', '0', '--env-setup-cmd', 'export WORD=given', '--', 'sh', '-c', 'echo $WORD')
    box.wait(number)
    assert box.output(number) == 'given\n'


def test_S0_21_conda_in_setup(box, place):
    """The function that conda makes of itself in a shell that is not interactive."""
    root = f'{place}/conda'
    os.makedirs(f'{root}/bin')
    with open(f'{root}/bin/conda', 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\n[ "$*" = "shell.posix hook" ] && echo \'conda() { export CONDA_DEFAULT_ENV="$2"; }\'\n')
    os.chmod(f'{root}/bin/conda', 0o755)
    os.chmod(root, 0o755)
    os.chmod(f'{root}/bin', 0o755)
    _, number = srun(box, '--gpu-ids', '0', '--env-setup-cmd', 'conda activate myenv', '--', 'sh', '-c',
                     'echo $CONDA_DEFAULT_ENV', env={'PATH': f'{root}/bin:/usr/bin:/bin', 'CONDA_EXE': f'{root}/bin/conda'})
    box.wait(number)
    assert box.output(number) == 'myenv\n', box.output(number)


def test_S0_22_setup_cannot_choose_gpus(box):
    _, number = srun(box, '--gpu-ids', '2', '--env-setup-cmd', 'export CUDA_VISIBLE_DEVICES=0', '--', 'sh', '-c',
                     'echo $CUDA_VISIBLE_DEVICES')
    box.wait(number)
    assert box.output(number) == '2\n'


def test_S0_23_setup_fails(box):
    _, number = srun(box, '--gpu-ids', '0', '--env-setup-cmd', 'echo no such thing; false', '--', 'true')
    job = box.wait(number)
    assert job['state'] == 'failed' and 'setup' in (job['message'] or '') + (job['ended_by'] or '')
    assert 'no such thing' in box.output(number)


def test_S0_24_priority(box, gate):
    _, first = srun(box, '--gpu-ids', '0', '--', *gate.command())
    box.wait(first, 'running')
    _, low = srun(box, '--gpu-ids', '0', '--', 'true')
    _, high = srun(box, '--gpu-ids', '0', '--priority', '10', '--', 'true')
    assert box.job(low)['priority'] == 0
    gate.open()
    low, high = box.wait(low), box.wait(high)
    assert high['started_at'] < low['started_at'] and box.wait(first)['state'] == 'done'


def test_S0_25_everything_after_the_dashes(box):
    _, number = srun(box, '--gpu-ids', '0', '--', 'printf', '[%s]', '--nproc_per_node=2', 'a b', '--', '$x')
    box.wait(number)
    assert box.output(number) == '[--nproc_per_node=2][a b][--][$x]'


# --- queue, cancel, ids ---

def test_S0_27_ids(box):
    ids = [srun(box, '--gpu-ids', '0', '--', 'true') for _ in range(3)]
    assert len({alias for alias, _ in ids}) == 3
    for alias, number in ids:
        box.wait(number)
        assert f'job {number} ' in box.mgpu('show', alias.lower(), check=True).out


def test_S0_28_the_queue(box, gate):
    alias, number = srun(box, '--gpu-ids', '0,1', '--mem', '8000', '--', *gate.command())
    box.wait(number, 'running')
    waiting, other = srun(box, '--gpu-ids', '0', '--', 'true')
    rows = {line.split()[0]: line for line in queue(box).splitlines()}
    assert box.client.name in rows[alias] and ':0,1' in rows[alias] and rows[alias].split()[5] == '8000'
    assert 'running' in rows[alias] and 'queued' in rows[waiting] and 'true' in rows[waiting]
    gate.open()
    box.wait(number)
    box.wait(other)


def test_S0_29_what_can_never_run_says_why(box):
    assert '24 GiB' in refused(box, '--gpu-ids', '0', '--mem', '40000', '--', 'true')


def test_S0_30_cancel_what_waits(box, gate):
    _, first = srun(box, '--gpu-ids', '0', '--', *gate.command())
    box.wait(first, 'running')
    alias, number = srun(box, '--gpu-ids', '0', '--', 'true')
    assert cancel(box, alias).code == 0 and box.wait(number)['state'] == 'cancelled'
    gate.open()
    box.wait(first)


def test_S0_31_S0_49_cancel_what_runs(box):
    alias, number = srun(box, '--gpu-ids', '0', '--', 'sh', '-c', 'setsid sleep 1000 & sleep 1000')
    box.wait(number, 'running')
    assert cancel(box, alias).code == 0 and box.wait(number)['state'] == 'cancelled'
    assert box.gpus()[0]['jobs'] == []


def test_S0_32_cancel_nothing(box):
    done = cancel(box, 'ABCDEF01')
    assert done.code == 3 and 'no job' in done.err


@pytest.mark.root
def test_S0_33_whose_jobs(box, bo):
    jobs = [srun(box, '--gpu-ids', '0', '--', 'sleep', '1000') for _ in range(2)]
    done = cancel(box, jobs[0][0], user=bo)
    assert done.code == 4, done
    assert cancel(box, '--all', '-y').code == 0
    assert [box.wait(number)['state'] for _, number in jobs] == ['cancelled'] * 2
    alias, number = srun(box, '--gpu-ids', '0', '--', 'sleep', '1000')
    assert cancel(box, alias, user=box.user).code == 0 and box.wait(number)['state'] == 'cancelled'


# --- policies ---

def test_S0_34_starts_when_there_is_room(box, gate):
    _, first = srun(box, '--gpu-ids', '0', '--', *gate.command())
    box.wait(first, 'running')
    _, second = srun(box, '--gpu-ids', '0', '--', 'true')
    gate.open()
    assert box.wait(second)['state'] == 'done' and box.wait(first)['state'] == 'done'


EIGHT = '0,1,2,3,4,5,6,7'


@pytest.mark.root
@pytest.mark.parametrize('n_users', [2, 3])
@pytest.mark.parametrize('n_gpus, flood', [(1, ['0'] * 6), (8, [EIGHT] * 6), (8, EIGHT.split(',') * 3)], ids=['one', 'all', 'each'])
def test_S0_35_the_queue_shows_the_order_of_starts(make_instance, ana, bo, gate, n_gpus, flood, n_users):
    """As it is when a newcomer has submitted beside a flood; of jobs that want the same GPU, because others start together."""
    box = make_instance(f'sim:{n_gpus}x24G', arguments=('--allow-root-jobs',))
    wanted = {srun(box, '--gpu-ids', ids, '--', *gate.command(), user=ana)[1]: ids for ids in flood}
    n_first = 1 if flood[0] == flood[1] else n_gpus
    for job in list(wanted)[:n_first]:
        box.wait(job, 'running')
    newcomers = [bo, harness.User('root')][:n_users - 1]
    for user in newcomers:
        wanted[srun(box, '--gpu-ids', flood[0], '--', *gate.command(), user=user)[1]] = flood[0]
    shown = {}
    for line in queue(box).splitlines()[1:]:
        number, place = int(line.split()[1]), re.search(r'queued #(\d+)', line)
        shown[number] = int(place[1]) if place else 0
    assert sorted(place for place in shown.values() if place) == list(range(1, len(wanted) - n_first + 1)), shown
    gate.open(len(wanted))
    started = {job: box.wait(job)['started_at'] for job in wanted}
    for ids in set(flood):
        same = [job for job in wanted if wanted[job] == ids]
        assert sorted(same, key=started.get) == sorted(same, key=shown.get), (ids, shown, started)
    served = [job for job in sorted(wanted, key=started.get) if wanted[job] == flood[0]]
    assert set(served[1:n_users]) == set(list(wanted)[len(flood):]), 'a newcomer is after the first job of the flood'


@in_turn
def test_S0_a_job_with_mem_starts_where_enough_is_free_whoever_uses_the_rest(place):
    machine = nvml.Nvml(place)
    machine.add(bus=1, uuid='GPU-a', memory_mib=12288, used_mib=4096)
    stranger = subprocess.Popen(['sleep', '1000'])
    machine.say(f'process 0 compute {stranger.pid} 4096')
    machine.write()
    process = own_server(place, '--', '--listen', 'none', '--gpus', 'auto', *machine.arguments)
    harness.lines_until(process, 'is ready')
    env = {'MGPU_SOCKET': f'{place}/run/mgpu/mgpud.sock', 'HOME': place, 'PATH': '/usr/bin:/bin', 'ASAN_OPTIONS': 'detect_leaks=0'}
    user = harness.User('nobody').popen_arguments() if harness.IS_ROOT else {}

    def call(program, *words):
        return subprocess.run([f'{harness.programs()}/{program}', *words], env=env, check=True, capture_output=True, text=True,
                              cwd=place, timeout=harness.DEADLINE_S, **user).stdout
    try:
        harness.until(lambda: str(stranger.pid) in call('mgpu', 'gpus', '--json'), 'the sample')
        call('mgpu_srun', '--gpu-ids', '0', '--mem', '10000', '--', 'true')
        call('mgpu_srun', '--gpu-ids', '0', '--mem', '8000', '--', 'true')
        call('mgpu', 'wait', '--timeout', '20', '2')
        assert 'queued' in call('mgpu', 'ps', '1')
    finally:
        stranger.kill()
        stranger.wait()
        harness.end(process)


@pytest.mark.root
def test_S0_24_S0_35_a_flood_of_high_priorities_keeps_no_other_user_waiting(make_instance, gate, ana, bo):
    """A priority orders the jobs of its owner, and is said to."""
    box = make_instance('sim:1x24G', arguments=('--policy', 'easy'))
    _, first = srun(box, '--gpu-ids', '0', '--', *gate.command(), user=ana)
    box.wait(first, 'running')
    _, low = srun(box, '--gpu-ids', '0', '--', 'true', user=ana)
    _, other = srun(box, '--gpu-ids', '0', '--', 'true', user=bo)
    flood = [srun(box, '--gpu-ids', '0', '--priority', '1000', '--', 'true', user=ana)[1] for _ in range(3)]
    done = box.mgpu('--gpu-ids', '0', '--priority', '9', '--', 'true', program='mgpu_srun', user=ana, check=True)
    assert 'mgpu_srun: priority 9 orders your own jobs: your jobs with a lower priority wait for it, other users\' jobs do not\n' in done.err, done
    middle = int(JOB.fullmatch(done.out)[2])
    assert 'later submissions are ahead because their owner gave them a higher priority' in box.mgpu('why', low, user=ana).out
    gate.open()
    started = {job: box.wait(job)['started_at'] for job in (low, middle, other, *flood)}
    assert sorted(started, key=started.get) == [other, *flood, middle, low]


@pytest.mark.root
def test_S0_24_priorities_of_all_users_where_the_server_has_them(make_instance, gate, ana, bo):
    """As in the original; it gives no other right."""
    box = make_instance('sim:1x24G', arguments=('--policy', 'easy', '--priorities', 'all', '--idle-ok', 'operators'))
    _, first = srun(box, '--gpu-ids', '0', '--', *gate.command(), user=ana)
    box.wait(first, 'running')
    _, other = srun(box, '--gpu-ids', '0', '--', 'true', user=bo)
    done = box.mgpu('--gpu-ids', '0', '--priority', '9', '--', 'true', program='mgpu_srun', user=ana, check=True)
    assert 'orders your own jobs' not in done.err, done
    high = int(JOB.fullmatch(done.out)[2])
    assert 'not allowed to request idle_ok' in box.mgpu('submit', '-p', '9', '--idle-ok', '-g', '1', '--', 'true', user=ana).err
    gate.open()
    started = {job: box.wait(job)['started_at'] for job in (other, high)}
    assert started[high] < started[other], started


def test_S0_24_other_priorities_than_own_and_all_are_refused(box):
    for program in ('mgpu_scheduler_server', 'mgpud'):
        done = box.mgpu('--priorities', 'mine', program=program)
        assert done.code != 0 and "--priorities: invalid value 'mine'" in done.err and 'all users' in done.err, done


def test_S0_38_the_smaller_limit_wins(make_instance):
    """Whichever of the two it is; and it is said."""
    box = make_instance(arguments=('--max-time', '600'))
    done = box.mgpu('--gpu-ids', '0', '--time-limit', '60', '--', 'true', program='mgpu_srun', check=True)
    assert box.wait(int(JOB.fullmatch(done.out)[2]))['time_limit_s'] == 60 and '--time-limit' not in done.err, done
    done = box.mgpu('--gpu-ids', '0', '--time-limit', '6000', '--', 'true', program='mgpu_srun', check=True)
    assert box.wait(int(JOB.fullmatch(done.out)[2]))['time_limit_s'] == 600
    assert '--time-limit' in done.err and '--max-job-time' in done.err and '10m' in done.err, done


# --- running the job ---

@pytest.mark.root
def test_S0_40_as_its_user(box, ana):
    _, number = srun(box, '--gpu-ids', '0', '--', 'sh', '-c', 'id -u; id -g; id -G', user=ana)
    box.wait(number)
    uid, gid, groups = box.output(number).splitlines()
    assert (int(uid), int(gid)) == (ana.uid, ana.gid) and sorted(map(int, groups.split())) == ana.groups


def test_S0_41_at_home(box):
    _, number = srun(box, '--gpu-ids', '0', '--', 'pwd', cwd='/usr')
    box.wait(number)
    assert box.output(number).strip() == os.path.realpath(box.client.home)


def test_S0_42_S0_43_the_order_is_theirs(box):
    _, number = srun(box, '--gpu-ids', '3,1', '--', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER')
    box.wait(number)
    assert box.output(number) == '3,1 PCI_BUS_ID\n'


def test_S0_44_S0_46_torchrun(box):
    """One process for each GPU, whose number counts from 0 whichever GPUs these are, as the manual says."""
    if shutil.which('torchrun') is None:
        pytest.skip('python3-torch is not installed')
    script = ('import os; print(os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"], os.environ["CUDA_VISIBLE_DEVICES"],'
              ' flush=True)')
    path = f'{box.place}/ranks.py'
    with open(path, 'w', encoding='ascii') as out:
        out.write(script)
    os.chmod(path, 0o644)
    _, number = srun(box, '--gpu-ids', '2,3', '--', 'torchrun', '-r', '1', '-t', '1', '--nproc_per_node=2',
                     '--rdzv_backend=c10d', '--rdzv_endpoint=localhost:0', path)
    job = box.wait(number, timeout_s=60)
    lines = sorted(re.findall(r'\d 2 2,3', box.output(number)))
    assert job['state'] == 'done' and lines == ['0 2 2,3', '1 2 2,3'], box.output(number)
    for word in ('cuda:0', 'nproc_per_node'):
        assert word in harness.read('man/mgpu-compat.7.scd')


def test_S0_45_logs_at_home(make_instance):
    """A file for each job, in the home of the job's owner."""
    box = make_instance(arguments=('--log-dir', 'home'))
    done = box.mgpu('--gpu-ids', '0', '--', 'echo', 'said', program='mgpu_srun', check=True)
    job = box.wait(int(JOB.fullmatch(done.out)[2]))
    assert job['log'].startswith(box.client.home + '/'), job['log']
    with open(job['log'], encoding='ascii') as source:
        assert source.read() == 'said\n'
    os.unlink(job['log'])


# --- build, tests, packaging ---

@pytest.fixture
def dist(place):
    """What `make build` puts there."""
    done = subprocess.run(['make', 'build', f'BUILD={harness.build_folder()}', f'DIST={place}/dist'], cwd=harness.ROOT,
                          capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done
    return f'{place}/dist'


def test_S0_47_make_build_fills_dist(dist):
    """All programs, under all their names, run from there."""
    for name in ('mgpu_scheduler_server', 'mgpu_srun', 'mgpu_queue', 'mgpu_cancel', 'mgpud', 'mgpu-agent'):
        done = subprocess.run([f'{dist}/{name}', '--help'], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.lower().startswith(f'usage: {name}'), done
    assert 'make build' in harness.read('build_and_run.sh') and os.access(f'{harness.ROOT}/build_and_run.sh', os.X_OK)


def test_S0_48_make_clean_removes_what_was_built(place):
    for target in ('clean', 'clean-all'):
        os.makedirs(f'{place}/build', exist_ok=True)
        os.makedirs(f'{place}/dist', exist_ok=True)
        subprocess.run(['make', target, f'BUILD={place}/build', f'DIST={place}/dist', 'CHECKS='], cwd=harness.ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        assert not os.path.exists(f'{place}/build') and not os.path.exists(f'{place}/dist')


def test_S0_48_make_regenerate_specs_makes_the_build_folder_anew(place):
    """Nothing is compiled here: ninja is one that only tells its version."""
    ninja = shutil.which('ninja')
    os.mkdir(f'{place}/bin')
    with open(f'{place}/bin/ninja', 'w', encoding='ascii') as out:
        out.write(f'#!/bin/sh\n[ "$1" != --version ] || exec {ninja} --version\n')
    os.chmod(f'{place}/bin/ninja', 0o755)
    done = subprocess.run(['make', 'regenerate-specs', f'BUILD={place}/build'], cwd=harness.ROOT, capture_output=True, text=True,
                          check=False, env={**os.environ, 'PATH': f'{place}/bin:{os.environ["PATH"]}', 'NINJA': f'{place}/bin/ninja'})
    assert done.returncode == 0, done.stdout + done.stderr
    with open(f'{place}/build/build.ninja', encoding='utf-8') as source:
        assert 'mgpu-shepherd' in source.read()


@in_turn
def test_S0_50_without_installation(place, dist):
    """From the folder that `make build` fills."""
    server = own_server(place, '--', '--listen', 'none', '--gpus', GPUS, folder=dist)
    harness.lines_until(server, 'is ready')
    user = harness.User('nobody').popen_arguments() if harness.IS_ROOT else {}

    def call(name, *words, check=True):
        return subprocess.run([f'{dist}/{name}', *words], cwd=place, check=check, capture_output=True, text=True, **user,
                              env={'PATH': '/usr/bin:/bin', 'HOME': place, 'MGPU_SOCKET': f'{place}/run/mgpu/mgpud.sock'}).stdout

    alias = JOB.fullmatch(call('mgpu_srun', '--gpu-ids', '0', '--', 'sleep', '1000'))[1]
    assert alias in call('mgpu_queue')
    call('mgpu_cancel', alias)
    call('mgpu', 'wait', alias, check=False)
    assert alias not in call('mgpu_queue')
    harness.end(server)


def test_S0_51_licence():
    assert harness.read('LICENSE').startswith('MIT License')
