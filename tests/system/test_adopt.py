# SPDX-License-Identifier: MIT
"""Adopted processes: their GPUs are reserved while they run, and released afterwards."""

import os
import select
import signal
import subprocess
import time

import pytest

import harness
from nvml import Nvml


class Outsider:
    """A process that mgpu knows nothing of."""

    def __init__(self, user, command=('sleep', '1000')):
        self.process = subprocess.Popen(list(command), cwd='/', stdin=subprocess.DEVNULL, **user.popen_arguments())
        self.pid = self.process.pid

    def end(self):
        self.process.kill()
        self.process.wait()

    def is_alive(self):
        return self.process.poll() is None


@pytest.fixture
def outsiders(someone):
    """Starts processes of a user; they are ended with the test."""
    made = []

    def start(user=someone, **options):
        made.append(Outsider(user, **options))
        return made[-1]

    yield start
    for outsider in made:
        outsider.end()


@pytest.fixture
def nvml(place):
    made = Nvml(place)
    made.add(bus=0x3b, uuid='GPU-a', used_mib=3)
    made.add(bus=0x5e, uuid='GPU-b', used_mib=3)
    made.write()
    return made


def use(nvml, outsider, gpu, mib=4096):
    nvml.say(f'process {gpu} compute {outsider.pid} {mib}')
    nvml.write()


def wait_gpus(box, is_so):
    """Waits until GET /gpus says so; a new sample comes every second."""
    end = time.monotonic() + harness.DEADLINE_S
    while time.monotonic() < end:
        gpus = box.gpus()
        if is_so(gpus):
            return gpus
        select.select([], [], [], 0.05)
    raise AssertionError(f'this was not seen: {box.gpus()}')


def adopt(box, *arguments, **options):
    return int(box.mgpu('adopt', *arguments, check=True, **options).out)


@pytest.mark.smoke
def test_an_adopted_process_has_its_gpus_until_it_ends(make_instance, outsiders):
    box, outsider = make_instance(), outsiders()
    job = adopt(box, outsider.pid, '-g', 2, '-J', 'mine')
    running = box.wait(job, 'running')
    assert (running['gpus'], len(running['granted']), running['adopted_pid']) == (2, 2, outsider.pid)
    shown = box.mgpu('show', job, check=True).out
    assert f'process {outsider.pid}, started outside mgpu' in shown and 'not confined' in shown
    assert f'mine (adopted pid {outsider.pid})' in box.mgpu('ps', check=True).out
    held = [gpu for gpu in box.gpus() if gpu['jobs']]
    assert [gpu['jobs'][0]['adopted_pid'] for gpu in held] == [outsider.pid] * 2
    assert f'{job} (pid {outsider.pid})' in box.mgpu('gpus', check=True).out
    outsider.end()
    done = box.wait(job)
    assert (done['state'], done['ended_by'], done['exit_code']) == ('done', 'released', None)
    assert f'process {outsider.pid} has ended' in done['message']
    assert box.mgpu('wait', job).code == 0
    assert [row['id'] for row in box.api('GET', '/jobs?state=done').json['jobs']] == [job]
    assert not any(gpu['jobs'] for gpu in box.gpus())


def test_its_gpus_are_given_to_nobody_else(make_instance, outsiders):
    box, outsider = make_instance(gpus='sim:1x24G'), outsiders()
    adopt(box, outsider.pid, '-g', 1)
    waiting = box.submit('--', 'true')
    assert box.job(waiting)['state'] == 'queued'
    outsider.end()
    assert box.wait(waiting)['state'] == 'done'


def test_a_zombie_holds_no_gpu(make_instance, outsiders):
    box, outsider = make_instance(), outsiders()
    job = adopt(box, outsider.pid, '-g', 1)
    box.wait(job, 'running')
    os.kill(outsider.pid, signal.SIGKILL)  # and nobody reaps it
    assert box.wait(job)['ended_by'] == 'released'


def test_a_cancel_lets_it_go_and_kill_ends_it(make_instance, outsiders):
    box, first, second = make_instance(), outsiders(), outsiders()
    job = adopt(box, first.pid, '-g', 1)
    box.wait(job, 'running')
    box.mgpu('cancel', job, check=True)
    done = box.wait(job)
    assert (done['state'], done['ended_by']) == ('cancelled', 'cancelled')
    assert f'process {first.pid} was left running' in done['message'] and first.is_alive()
    assert done['exit_code'] is None
    job = adopt(box, second.pid, '-g', 1)
    box.wait(job, 'running')
    box.mgpu('cancel', '--kill', job, check=True)
    assert box.wait(job)['ended_by'] == 'cancelled'
    assert second.process.wait(harness.DEADLINE_S) == -signal.SIGTERM


def test_kill_does_not_stop_at_a_process_that_ignores_sigterm(make_instance, outsiders, bell):
    box = make_instance()
    outsider = outsiders(command=['sh', '-c', f'trap "" TERM; echo > {bell.path}; while :; do sleep 1000; done'])
    bell.wait()
    job = adopt(box, outsider.pid, '-g', 1)
    box.wait(job, 'running')
    box.mgpu('cancel', '--kill', '--grace', '1', job, check=True)
    assert box.wait(job)['state'] == 'cancelled'
    assert outsider.process.wait(harness.DEADLINE_S) == -signal.SIGKILL


def test_a_time_limit_lets_it_go_too(make_instance, outsiders):
    box, outsider = make_instance(), outsiders()
    done = box.wait(adopt(box, outsider.pid, '-g', 1, '-t', '1'))
    assert done['ended_by'] == 'time_limit' and outsider.is_alive()
    assert 'was left running' in done['message']


@pytest.mark.parametrize('how', ['restart', 'agent', 'kill'])
def test_it_outlives_restarts(make_instance, outsiders, how):
    box, outsider, short = make_instance(), outsiders(), outsiders()
    job, other = adopt(box, outsider.pid, '-g', 1), adopt(box, short.pid, '-g', 1)
    box.wait(job, 'running')
    box.wait(other, 'running')
    if how == 'restart':
        box.stop()
        short.end()  # while nobody looks
        box.start()
    elif how == 'kill':
        agents = box.agents()
        box.kill()
        for pid in agents:
            assert harness.wait_process(pid)
        short.end()
        box.start()
    else:
        for pid in box.agents():
            if 'keep' not in harness.processes(box.place).get(pid, ''):
                os.kill(pid, signal.SIGKILL)
        short.end()
    assert box.wait(other)['ended_by'] == 'released'
    assert box.wait(job, 'running,done')['state'] == 'running'
    outsider.end()
    assert box.wait(job)['ended_by'] == 'released'


def test_adoption_queues_and_is_cancelled_when_its_process_ends(make_instance, outsiders):
    box, outsider, patient = make_instance(gpus='sim:1x24G'), outsiders(), outsiders()
    blocker = box.submit('--', 'sleep', '1000')
    box.wait(blocker, 'running')
    job, other = adopt(box, outsider.pid, '-g', 1), adopt(box, patient.pid, '-g', 1)
    assert box.job(job)['state'] == 'queued'
    outsider.end()
    done = box.wait(job)
    assert (done['state'], done['stopped_by']) == ('cancelled', None)
    assert f'process {outsider.pid} ended while it waited to be adopted' in done['message']
    box.restart()
    patient.end()
    assert box.wait(other)['state'] == 'cancelled'


def test_one_that_ended_while_nobody_looked_does_not_begin(make_instance, outsiders):
    box, outsider = make_instance(gpus='sim:1x24G'), outsiders()
    blocker = box.submit('--', 'sleep', '1000')
    box.wait(blocker, 'running')
    job = adopt(box, outsider.pid, '-g', 1)
    box.stop()
    outsider.end()
    box.start()
    assert box.wait(job)['state'] == 'cancelled'


def test_what_cannot_be_adopted_is_said(make_instance, outsiders):
    box, outsider = make_instance(), outsiders()
    gone = outsiders()
    gone.end()

    def refused(code, *words):
        done = box.mgpu('adopt', *words)
        assert done.code == code, done
        return done.err

    assert f'there is no process {gone.pid}' in refused(3, gone.pid, '-g', 1)
    assert 'process' in refused(2, '--', '-5')
    assert 'process' in refused(2, '0')
    assert 'no process given' in refused(2)
    assert 'one process at a time' in refused(2, '1', '2')
    assert 'process' in refused(2, 'python')
    assert 'does not use a GPU yet' in refused(2, outsider.pid)
    assert 'part of mgpu' in refused(2, box.process.pid, '-g', 1)
    job = adopt(box, outsider.pid, '-g', 1)
    assert f'belongs to job {job} already' in refused(6, outsider.pid, '-g', 1)
    assert 'cannot be changed' in box.api(
        'POST', f'/jobs/{box.submit("--hold", "--", "true")}/edit', {'adopted_pid': 7}).body.decode()
    assert 'mgpu does not collect its output' in box.mgpu('logs', '-f', job).err


def test_a_process_of_a_job_cannot_be_adopted(make_instance, bell):
    box = make_instance()
    job = box.submit('--', 'sh', '-c', f'echo $$ > {bell.path}; sleep 1000')
    pid = int(bell.wait())
    done = box.mgpu('adopt', pid, '-g', 1)
    assert done.code == 6 and f'belongs to job {job} already' in done.err, done


def test_a_number_that_is_another_process_by_now_is_refused(make_instance, outsiders):
    box, outsider = make_instance(), outsiders()
    answer = box.api('POST', '/jobs', {'adopted_pid': outsider.pid, 'adopted_start': 12345, 'gpus': 1})
    assert answer.status == 404 and "its number belongs to another process" in answer.json['detail'], answer
    with open(f'/proc/{outsider.pid}/stat', encoding='utf-8') as source:
        start = int(source.read().rsplit(')', 1)[1].split()[19])
    answer = box.api('POST', '/jobs', {'adopted_pid': outsider.pid, 'adopted_start': start, 'gpus': 1, 'submit_key': 'k'})
    assert answer.status == 201, answer
    again = box.api('POST', '/jobs', {'adopted_pid': outsider.pid, 'adopted_start': start, 'gpus': 1, 'submit_key': 'k'})
    assert (again.status, again.json['id']) == (200, answer.json['id'])


@pytest.mark.root
def test_only_its_owner_and_administrators_adopt_a_process(make_instance, outsiders, ana, bo):
    box, outsider = make_instance(), outsiders(user=bo)
    done = box.mgpu('adopt', outsider.pid, '-g', 1, user=ana)
    assert done.code == 4 and f'belongs to uid {bo.uid}, not to you' in done.err, done
    job = adopt(box, outsider.pid, '-g', 1, user=box.user)
    assert box.wait(job, 'running')['user'] == bo.name
    assert box.mgpu('adopt', 1, '-g', 1, user=ana).code in (2, 4)
    box.mgpu('cancel', job, user=bo, check=True)


def test_it_gets_the_gpus_that_it_is_on(make_instance, outsiders, nvml):
    outsider = outsiders()
    use(nvml, outsider, 1)
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    wait_gpus(box, lambda gpus: any(gpu['processes'] for gpu in gpus))
    job = adopt(box, outsider.pid)
    running = box.wait(job, 'running')
    assert [gpu['uuid'] for gpu in running['granted']] == ['GPU-b']
    gpus = wait_gpus(box, lambda gpus: gpus[1]['processes'][0]['job'] == job)
    assert gpus[1]['jobs'][0]['id'] == job
    box.mgpu('cancel', job, check=True)
    box.wait(job)
    # It lives on, on a GPU that is nobody's: that one stays closed.
    waiting = box.submit('-G', '1', '--', 'true')
    assert 'used by external processes' in box.mgpu('why', waiting).out


def test_a_process_on_the_gpu_of_a_job_is_refused(make_instance, outsiders, nvml):
    box, outsider = make_instance(gpus='auto', arguments=nvml.arguments), outsiders()
    job = box.submit('-G', '0', '--', 'sleep', '1000')
    box.wait(job, 'running')
    use(nvml, outsider, 0)
    wait_gpus(box, lambda gpus: gpus[0]['processes'])
    done = box.mgpu('adopt', outsider.pid)
    assert done.code == 2 and f'uses GPU 0, which is allocated to job {job}' in done.err, done


def test_another_external_process_delays_the_adoption(make_instance, outsiders, nvml):
    outsider, stranger = outsiders(), outsiders()
    use(nvml, outsider, 0)
    use(nvml, stranger, 0)
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    wait_gpus(box, lambda gpus: len(gpus[0]['processes'] or []) == 2)
    job = adopt(box, outsider.pid)
    assert box.job(job)['state'] == 'queued'
    nvml.unsay(f'process 0 compute {stranger.pid} 4096')
    nvml.write()
    assert box.wait(job, 'running')['state'] == 'running'


def test_external_processes_are_always_reported(make_instance, outsiders, nvml):
    small, large = outsiders(), outsiders()
    use(nvml, small, 0, mib=64)
    use(nvml, large, 1)
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    wait_gpus(box, lambda gpus: all(gpu['processes'] for gpu in gpus))
    box.mgpu('gpu', 'policy', '1', 'avoid', user=box.user, check=True)
    assert [gpu['policy'] for gpu in box.gpus()] == ['avoid', 'avoid']
    waiting = box.submit('-g', '2', '--', 'true')
    why = box.mgpu('why', waiting, '--json', check=True).json
    external = [reason['text'] for reason in why['reasons'] if reason['code'] == 'gpu_external']
    assert external and f'pid {large.pid}' in external[0] and 'policy avoid' in external[0], why
    assert [(one['gpu'].split(':')[1], one['policy']) for one in why['external']] == [('0', 'avoid')], why
    shown = box.mgpu('why', waiting, check=True).out
    assert "External processes that do not block jobs" in shown and str(small.pid) in shown, shown
    box.mgpu('gpu', 'policy', '1', 'ignore', user=box.user, check=True)
    assert box.wait(waiting)['state'] == 'done'
    row = [line for line in box.mgpu('gpus', '-o', 'wide', check=True).out.splitlines() if 'GPU-b' in line][0]
    assert 'ignore' in row and str(large.pid) in row, row


@pytest.mark.root
def test_without_root_only_its_users_processes_are_adopted(make_instance, outsiders, ana, bo):
    box = make_instance(user=ana)
    own, other = outsiders(user=ana), outsiders(user=bo)
    job = adopt(box, own.pid, '-g', 1)
    assert box.wait(job, 'running')['adopted_pid'] == own.pid
    done = box.mgpu('adopt', other.pid, '-g', 1)
    assert done.code == 4 and f'serves uid {ana.uid} only' in done.err, done
    box.mgpu('cancel', '--kill', job, check=True)
    assert own.process.wait(harness.DEADLINE_S) == -signal.SIGTERM


def test_its_decisions_can_be_made_again_from_the_journal(make_instance, outsiders, nvml, place):
    used, waiting = outsiders(), outsiders()
    use(nvml, used, 0)
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    wait_gpus(box, lambda gpus: gpus[0]['processes'])
    blocked = box.submit('-g', '2', '--', 'true')
    first = adopt(box, used.pid)
    box.wait(first, 'running')
    second = adopt(box, waiting.pid, '-G', '0')
    box.mgpu('cancel', first, check=True)
    box.wait(first)
    waiting.end()
    box.wait(second)
    nvml.unsay(f'process 0 compute {used.pid} 4096')
    nvml.write()
    assert box.wait(blocked)['state'] == 'done'
    path = f'{place}/journal'
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True,
                          text=True, timeout=harness.DEADLINE_S, check=False)
    assert done.returncode == 0, done


def test_the_parent_of_ones_shell_is_no_prey(make_instance):
    """Here that is the process of the tests: root's for somebody else, and without root the one mgpud came from."""
    box = make_instance()
    done = box.mgpu('adopt', os.getpid(), '-g', 1)
    assert done.code in (2, 4) and ("belongs to root" in done.err or 'is part of mgpu or its ancestor' in done.err), done
    assert box.open_jobs() == []


@pytest.mark.root
def test_a_process_in_a_container_has_its_number_outside(make_instance, outsiders, ana):
    """`unshare` waits for its child, which is number 1 inside; outside it is another."""
    keep = ['setpriv', f'--reuid={ana.uid}', f'--regid={ana.gid}', '--clear-groups', 'sleep', '1000']
    root = harness.User('root')
    outsider = outsiders(user=root, command=['unshare', '--pid', '--fork', *keep])
    children, end = f'/proc/{outsider.pid}/task/{outsider.pid}/children', time.monotonic() + harness.DEADLINE_S
    inner, uid = '', ''
    while time.monotonic() < end and uid != str(ana.uid):
        with open(children, encoding='ascii') as source:
            inner = source.read().strip()
        if inner and outsider.is_alive():
            with open(f'/proc/{inner}/status', encoding='ascii') as source:
                uid = source.read().split('Uid:')[1].split()[0]
        elif not outsider.is_alive():
            pytest.skip('no pid namespaces here')
        select.select([], [], [], 0.02)
    box = make_instance()
    try:
        job = adopt(box, inner, '-g', 1)
        assert box.wait(job, 'running')['command'].startswith('sleep')
    finally:
        os.kill(int(inner), signal.SIGKILL)
    assert box.wait(job)['ended_by'] == 'released'


@pytest.fixture
def operated(make_instance, place, bo):
    """An instance with an operator."""
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='ascii') as out:
        out.write(f'roles:\n  operator: [{bo.name}]\n')
    return make_instance(arguments=['--config', path])


@pytest.mark.root
def test_an_operator_lets_go_of_anothers_process_and_cannot_end_it(operated, outsiders, ana, bo):
    box, outsider = operated, outsiders(user=ana)
    job = adopt(box, outsider.pid, '-g', 1, user=bo)
    box.wait(job, 'running')
    done = box.mgpu('cancel', '--kill', '-y', job, user=bo)
    assert done.code == 4 and 'you are not allowed to end its process, only release it' in done.err, done
    assert box.job(job)['state'] == 'running' and outsider.is_alive()
    box.mgpu('cancel', '-y', job, user=bo, check=True)
    assert box.wait(job)['state'] == 'cancelled' and outsider.is_alive()


@pytest.mark.root
def test_a_process_of_root_is_adopted_by_nobody(operated, outsiders, bo):
    outsider = outsiders(user=harness.User('root'), command=['bash', '-c', 'exec -a s3cr3t sleep 1000'])
    done = operated.mgpu('adopt', '-g', 1, outsider.pid, user=bo)
    assert done.code != 0 and f"process {outsider.pid} belongs to root" in done.err and 's3cr3t' not in done.err, done
    assert operated.open_jobs() == [] and outsider.is_alive()
