# SPDX-License-Identifier: MIT
"""Jobs that start on the CPU while the GPUs that they get next are still used. The nodes of the GPUs are real ones of the
NVIDIA driver's major number, which is not there: opening one that the filter allows fails with ENXIO, one that it denies
with EPERM; one that waits does neither."""

import os
import signal
import subprocess

import pytest

import harness
from nvml import Nvml
from test_devices import CTL, feature, nodes  # noqa: F401: a fixture

pytestmark = pytest.mark.root

# Says `begun`, tries to open the GPU in some way, and says how that ended.
TRY = r'''
import errno, os, sys, threading
print("begun", flush=True)
def look(path, flags=os.O_RDWR, **how):
    try:
        os.close(os.open(path, flags, **how))
        return "opened"
    except OSError as error:
        return errno.errorcode[error.errno]
'''


def command(nodes, *lines):
    return ['/usr/bin/python3', '-c', '\n'.join((TRY, f'gpu, ctl = "{nodes}/nvidia0", "{nodes}/nvidiactl"', *lines))]


LOOK = 'print(look(ctl), look(gpu), flush=True)'


@pytest.fixture
def early(make_instance, nodes):  # noqa: F811
    """An instance with one GPU that can start jobs early."""
    def make(*arguments, gpus='sim:1x24G'):
        instance = make_instance(gpus, arguments=['--device-dir', nodes, *arguments])
        found = feature(instance, 'early')
        if not found['on']:
            pytest.skip(found['text'])
        return instance
    return make


@pytest.fixture
def stage(early, gate):
    """(instance, the job that has its only GPU until the gate opens)"""
    instance = early()
    first = instance.post_job(gate.command(), gpus=1, time_limit='1m')
    instance.wait(first, 'running')
    return instance, first


def said(instance, job, line):
    harness.until(lambda: line in instance.output(job), f'job {job} does not say {line}')


def starts_early(instance, job):
    found = instance.wait(job, 'running')
    assert (found['state'], found['park'], found['attempt']) == ('running', 'early', 1), found
    said(instance, job, 'begun')
    return found


# --- the mechanism ---

def test_a_job_starts_on_the_cpu_and_its_first_open_waits_for_the_gpu(stage, gate, nodes):  # noqa: F811
    instance, first = stage
    job = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    found = starts_early(instance, job)
    assert instance.job(first)['state'] == 'running'
    assert [gpu['index'] for gpu in found['granted']] == [0]
    assert instance.output(job) == 'begun\n'
    gate.open()
    ended = instance.wait(job)
    assert (ended['state'], ended['attempt']) == ('done', 1), ended
    assert instance.output(job) == 'begun\nENXIO ENXIO\n'
    harness.until(lambda: not os.path.exists(f'{instance.run_dir}/spool/{job}.1.0.0'), 'its spool entry is left')


WAYS = {
    'thread': 'found = []\nt = threading.Thread(target=lambda: found.append(look(ctl)))\nt.start(); t.join()\nprint(found[0])',
    'child': 'pid = os.fork()\nif pid == 0: print(look(ctl), flush=True); os._exit(0)\nos.waitpid(pid, 0)',
    'program': 'os.execv("/usr/bin/python3", ["python3", "-c", f"import os\\ntry: os.open({ctl!r}, os.O_RDWR)\\nexcept OSError as e: '
               'print(__import__(\'errno\').errorcode[e.errno])"])',
    'handle': 'h = os.open(ctl, os.O_PATH)\nprint(look(f"/proc/self/fd/{h}"))',
    'relative': 'os.chdir(os.path.dirname(ctl))\nprint(look("nvidiactl"))',
    'second': 'look(ctl)\nprint(look(ctl))',
}


@pytest.mark.parametrize('way', WAYS)
def test_every_way_to_open_a_gpu_waits(stage, gate, nodes, way):  # noqa: F811
    instance, _ = stage
    job = instance.post_job(command(nodes, *WAYS[way].split('\n')), gpus=1, early=True)
    starts_early(instance, job)
    harness.until(lambda: has_asked(instance, job), 'nothing waits')
    assert instance.output(job) == 'begun\n'
    gate.open()
    assert instance.wait(job)['state'] == 'done', instance.output(job)
    assert instance.output(job) == 'begun\nENXIO\n'


def has_asked(instance, job):
    return os.path.getsize(f'{instance.run_dir}/spool/{job}.1.0.0/asked') > 0


@pytest.mark.parametrize('flags', ['os.O_RDONLY', 'os.O_WRONLY', 'os.O_RDWR | os.O_CREAT'])
def test_what_does_not_wait_is_refused_by_the_filter(stage, gate, nodes, flags):  # noqa: F811
    instance, _ = stage
    job = instance.post_job(command(nodes, f'print(look(ctl, {flags}), look(gpu, {flags}), flush=True)', LOOK), gpus=1,
                            early=True)
    starts_early(instance, job)
    said(instance, job, 'EPERM EPERM')
    gate.open()
    assert instance.wait(job)['state'] == 'done'
    assert instance.output(job) == 'begun\nEPERM EPERM\nENXIO ENXIO\n'


def test_other_files_are_opened_as_ever(stage, gate, nodes, place):  # noqa: F811
    instance, _ = stage
    path = os.path.join(place, 'file')
    with open(path, 'w', encoding='ascii') as file:
        file.write('x')
    os.chmod(path, 0o666)
    job = instance.post_job(
        command(nodes, f'print(look({path!r}), look("/dev/null"), look("/nowhere"), look({path!r} + ".n", os.O_RDWR | '
                'os.O_CREAT), flush=True)', LOOK), gpus=1, early=True)
    starts_early(instance, job)
    said(instance, job, 'opened opened ENOENT')
    gate.open()
    assert instance.wait(job)['state'] == 'done'


# --- what it is ---

def test_its_time_limit_and_its_charge_begin_with_its_gpus(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    last = harness.Gate(os.path.dirname(gate.path))
    job = instance.post_job(command(nodes, LOOK, f'open({last.path!r}).readline()'), gpus=1, early=True, time_limit='2s')
    starts_early(instance, job)
    harness.until(lambda: instance.job(job)['early_seconds'] > 3, 'no time passes')
    assert instance.job(job)['state'] == 'running'
    gate.open()
    ended = instance.wait(job)
    last.close()
    assert ended['ended_by'] == 'time_limit', ended
    assert 1.5 < ended['run_seconds'] < 3 and ended['early_seconds'] > 3, ended
    assert ended['parked_seconds'] is None and ended['gpus_at'] > ended['started_at'], ended
    (charged,) = instance.api('GET', '/history?by=user').json['sums']
    ran = ended['run_seconds'] + instance.wait(stage[1])['run_seconds']
    assert abs(charged['gpu_seconds'] - ran) < 1, (charged, ran)


def test_it_says_how_much_gpu_time_was_saved(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    inner = harness.Gate(os.path.dirname(gate.path))
    job = instance.post_job(command(nodes, f'open({inner.path!r}).readline()', LOOK), gpus=1, early=True)
    starts_early(instance, job)
    harness.until(lambda: instance.job(job)['early_seconds'] > 1, 'no time passes')
    inner.open()  # from now on it waits for the GPU
    harness.until(lambda: has_asked(instance, job), 'nothing waits')
    asked = instance.job(job)['early_seconds']
    harness.until(lambda: instance.job(job)['early_seconds'] > asked + 1, 'no time passes')
    gate.open()
    ended = instance.wait(job)
    inner.close()
    assert 1 <= ended['saved_seconds'] < ended['early_seconds'] - 0.9, ended


def test_what_is_left_of_its_time_limit_is_all_of_it(stage, gate, nodes, tmp_path):  # noqa: F811
    instance, _ = stage
    last = harness.Gate(str(tmp_path))
    job = instance.post_job(command(nodes, LOOK, f'open({last.path!r}).readline()'), gpus=1, early=True, time_limit='1h')
    starts_early(instance, job)
    harness.until(lambda: instance.job(job)['early_seconds'] > 1.5, 'no time passes')
    assert instance.job(job)['run_seconds'] < 0.5
    assert instance.mgpu('ps', '-o', 'left', '-H', str(job), check=True).out.split() == ['1h00m']
    gate.open()
    harness.until(lambda: instance.job(job)['park'] is None, 'it does not get its GPU')
    assert instance.job(job)['run_seconds'] < instance.job(job)['early_seconds']
    last.open()
    assert instance.wait(job)['state'] == 'done'
    last.close()


def test_it_is_shown_as_starting_early(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    instance.wait(instance.post_job(['true'], gpus=0))
    job = instance.submit('--early', '-g', '1', '--', *command(nodes, LOOK))
    starts_early(instance, job)
    assert 'starting early' in instance.mgpu('ps', check=True).out
    assert 'starting early on' in instance.mgpu('why', job, check=True).out
    shown = instance.mgpu('show', job, check=True).out
    assert 'on the CPU since' in shown, shown
    listed = instance.mgpu('top', '--once', '--size', '110x24', check=True).out.splitlines()
    order = [line for line in listed if 'running' in line or 'starting early' in line or 'done' in line]
    assert ['running' in line for line in order] == [True, False, False] and 'done' in order[2], listed
    gate.open()
    instance.wait(job)
    shown = instance.mgpu('show', job, check=True).out
    assert 'on the CPU from' in shown and 'saved' in shown, shown


def test_a_job_that_does_not_ask_starts_when_its_gpu_is_free(stage, gate, nodes):  # noqa: F811
    instance, first = stage
    plain = instance.post_job(command(nodes, LOOK), gpus=1)
    early_one = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    assert instance.job(early_one)['state'] == instance.job(plain)['state'] == 'queued'  # another one is ahead of it
    gate.open()
    instance.wait(plain)
    assert instance.wait(early_one)['state'] == 'done'
    assert instance.job(early_one)['started_at'] >= instance.job(plain)['started_at']
    assert instance.job(first)['state'] == 'done'


def test_a_shorter_job_that_comes_later_does_not_overtake_it(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    job = instance.post_job(command(nodes, LOOK), gpus=1, early=True, time_limit='1h')
    starts_early(instance, job)
    short = [instance.post_job(['true'], gpus=1, cpus=0.1, time_limit='5s') for _ in range(3)]
    gate.open()
    ends = [instance.wait(one) for one in (job, *short)]
    assert all(one['started_at'] > ends[0]['gpus_at'] for one in ends[1:]), ends


def test_only_one_job_waits_for_a_gpu(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    one = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    other = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    starts_early(instance, one)
    assert instance.job(other)['state'] == 'queued'
    gate.open()
    for job in (one, other):
        assert instance.wait(job)['state'] == 'done'
        assert instance.output(job) == 'begun\nENXIO ENXIO\n'


def test_it_does_not_start_before_its_time(early, gate, nodes):  # noqa: F811
    instance = early()
    first = instance.post_job(gate.command(), gpus=1, time_limit='3h')
    instance.wait(first, 'running')
    job = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    other = instance.post_job(['true'], gpus=0)
    instance.wait(other)
    assert instance.job(job)['state'] == 'queued'
    # What is being ended leaves its GPU soon, whatever was expected of it.
    stubborn = instance.mgpu('cancel', '--grace', '20', first)
    assert stubborn.code == 0, stubborn
    instance.wait(first)
    assert instance.wait(job)['state'] == 'done'


def test_it_needs_its_cpus_and_its_memory_beside_what_runs(early, gate, nodes):  # noqa: F811
    instance = early()
    cpus = instance.api('GET', '/nodes').json['nodes'][0]['cpus']
    first = instance.post_job(gate.command(), gpus=1, time_limit='1m', cpus=1)
    instance.wait(first, 'running')
    large = instance.post_job(command(nodes, LOOK), gpus=1, early=True, cpus=cpus)
    instance.wait(instance.post_job(['true'], gpus=0, cpus=0.1, time_limit='5s'))  # decided since
    assert instance.job(large)['state'] == 'queued'
    instance.mgpu('cancel', large, check=True)
    small = instance.post_job(command(nodes, LOOK), gpus=1, early=True, cpus=cpus - 1)
    starts_early(instance, small)
    beside = instance.post_job(['true'], gpus=0, cpus=1)  # the CPUs that it has are not free
    assert instance.job(beside)['state'] == 'queued'
    gate.open()
    for job in (small, beside):
        assert instance.wait(job)['state'] == 'done'
    whole = instance.post_job(['true'], gpus=0, cpus=cpus)  # and nothing is left of it
    assert instance.wait(whole)['state'] == 'done'


def test_a_job_of_several_gpus_has_all_of_them_at_once(early, gate, nodes, tmp_path):  # noqa: F811
    instance = early(gpus='sim:3x24G')
    other, far = harness.Gate(str(tmp_path)), harness.Gate(str(tmp_path))
    holders = [instance.post_job(one.command(), gpus=1, cpus=0.1, time_limit=limit)
               for one, limit in ((gate, '1m'), (other, '1m'), (far, '5h'))]
    for holder in holders:
        instance.wait(holder, 'running')
    job = instance.post_job(command(nodes, LOOK, 'print(os.environ["CUDA_VISIBLE_DEVICES"])'), gpus=2, early=True, cpus=0.1)
    found = starts_early(instance, job)
    taken = {gpu['index'] for holder in holders[:2] for gpu in instance.job(holder)['granted']}
    assert {gpu['index'] for gpu in found['granted']} == taken, found
    harness.until(lambda: has_asked(instance, job), 'nothing waits')
    gate.open()
    instance.wait(holders[0])
    instance.wait(instance.post_job(['true'], gpus=0, cpus=0.1))  # decided since
    assert (instance.job(job)['park'], instance.output(job)) == ('early', 'begun\n')
    other.open()
    assert instance.wait(job)['state'] == 'done'
    assert instance.output(job).startswith('begun\nENXIO ENXIO\n'), instance.output(job)
    far.open()
    assert instance.wait(holders[2])['state'] == 'done'
    other.close()
    far.close()


# --- without having asked ---

# Waits for a line in its first argument, if that is none, and then opens a GPU and ends with its second.
LATE = TRY + r'''
print(os.getpid(), flush=True)
if len(sys.argv) > 1:
    open(sys.argv[1]).readline()
print(look("{ctl}"), flush=True)
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
'''


@pytest.fixture
def late(place, nodes):  # noqa: F811
    """A program that is the same command with each argument."""
    path = os.path.join(place, 'late.py')
    with open(path, 'w', encoding='ascii') as file:
        file.write(LATE.replace('{ctl}', f'{nodes}/nvidiactl'))
    os.chmod(path, 0o755)
    return ['/usr/bin/python3', path]


def hold(instance, gate):
    """A job that has the only GPU until the gate opens."""
    job = instance.post_job(gate.command(), gpus=1, time_limit='1m')
    instance.wait(job, 'running')
    return job


def let_it_learn(instance, late, gate, inner):
    """A job of the program that is asked to start early, and says that it needs 2 s before its GPU."""
    hold(instance, gate)
    job = instance.post_job([*late, inner.path], gpus=1, early=True)
    starts_early(instance, job)
    harness.until(lambda: instance.job(job)['early_seconds'] > 2.2, 'no time passes')
    inner.open()
    harness.until(lambda: has_asked(instance, job), 'nothing waits')
    gate.open()
    assert instance.wait(job)['saved_seconds'] > 2


@pytest.fixture
def gates(tmp_path):
    """Gates in order, one for each job that holds the GPU or is held up."""
    made = [harness.Gate(str(tmp_path)) for _ in range(4)]
    yield made
    for one in made:
        one.close()


def test_a_command_that_used_its_gpu_late_starts_early_by_itself(early, gates, late):
    instance = early('--early', 'auto')
    let_it_learn(instance, late, gates[0], gates[1])
    hold(instance, gates[2])
    other = instance.post_job(['true'], gpus=1)
    assert instance.job(other)['early_start'] is None  # nothing is known of it
    instance.mgpu('cancel', other, check=True)
    refuses = instance.post_job(late, gpus=1, no_early=True)
    assert (instance.job(refuses)['state'], instance.job(refuses)['early_start']) == ('queued', None)
    instance.mgpu('cancel', refuses, check=True)
    job = instance.post_job(late, gpus=1)
    starts_early(instance, job)
    gates[2].open()
    assert instance.wait(job)['state'] == 'done'


def test_what_was_learnt_is_there_after_a_restart(early, gates, late):
    instance = early('--early', 'auto')
    let_it_learn(instance, late, gates[0], gates[1])
    instance.kill()
    instance.start()
    hold(instance, gates[2])
    held = instance.post_job(late, gpus=1, hold=True)
    assert instance.job(held)['early_start'].startswith('yes, the latest run of this command took 2'), instance.job(held)
    assert 'yes, the latest run' in instance.mgpu('show', held, check=True).out
    assert 'starts before its GPUs are free: yes' in instance.mgpu('why', held).out
    instance.mgpu('release', held, check=True)
    starts_early(instance, held)
    gates[2].open()
    assert instance.wait(held)['state'] == 'done'


def test_only_those_that_ask_start_early_where_the_site_says_so(early, gates, late):
    instance = early()
    let_it_learn(instance, late, gates[0], gates[1])
    hold(instance, gates[2])
    job = instance.post_job(late, gpus=1)
    asked = instance.post_job(late, gpus=1, early=True, priority=-1)
    assert (instance.job(job)['state'], instance.job(job)['early_start']) == ('queued', None)
    assert instance.job(asked)['early_start'] == 'yes, it was submitted with --early'
    gates[2].open()
    assert instance.wait(job)['early_seconds'] is None


@pytest.mark.parametrize('kind, request_', [
    ('the elements of arrays', {'array': '0-1', 'gpus': 1}), ('jobs that name their GPUs (-G)', {'gpu_ids': '0'}),
    ('jobs that may share a GPU', {'gpus': 1, 'gpu_mem': 1 << 30}), ('jobs that may share a GPU', {'gpu_share': 500}),
    ('jobs with exclusive nodes', {'gpus': 1, 'exclusive': True}),
], ids=['array', 'ids', 'memory', 'share', 'exclusive'])
def test_what_cannot_start_early_says_so(early, gates, kind, request_):
    instance = early()
    hold(instance, gates[2])
    job = instance.post_job(['true'], early=True, **request_)
    assert instance.job(job)['early_start'] == f'no, {kind} start as usual'


def test_a_command_that_fails_without_its_gpu_starts_as_usual_from_then_on(early, gates, late):
    instance = early('--early', 'auto')
    let_it_learn(instance, late, gates[0], gates[1])
    hold(instance, gates[2])
    job = instance.post_job([*late, '/nowhere', '7'], gpus=1)  # ends before it opens the GPU
    assert instance.wait(job)['gpus_at'] is None
    again = instance.post_job(late, gpus=1)
    assert instance.job(again)['early_start'].startswith('no, when this command was started early'), instance.job(again)
    gates[2].open()
    assert instance.wait(again)['early_seconds'] is None
    let_it_learn(instance, late, gates[3], harness.Gate(os.path.dirname(gates[0].path)))  # it is asked, and gets there
    assert instance.job(instance.post_job(late, gpus=1, hold=True))['early_start'].startswith('yes')


def test_a_first_use_is_seen_in_samples_too(early, gates, late, place):
    machine = Nvml(place)
    machine.add(bus=0x3b, uuid='GPU-a')
    machine.write()
    instance = early('--early', 'auto', *machine.arguments, gpus='auto')
    job = instance.post_job([*late, gates[0].path], gpus=1)
    instance.wait(job, 'running')
    said(instance, job, 'begun')
    harness.until(lambda: (instance.job(job)['usage'] or {'sampled_seconds': 0})['sampled_seconds'] > 2.5, 'no samples')
    assert instance.job(job)['usage']['first_use_seconds'] is None
    machine.say(f'process 0 compute {instance.output(job).split()[1]} 512')
    machine.write()
    harness.until(lambda: instance.job(job)['usage']['first_use_seconds'] is not None, 'its process is not seen')
    assert 2 < instance.job(job)['usage']['first_use_seconds'] < 60
    machine.lines.clear()
    machine.write()
    gates[0].open()
    instance.wait(job)
    held = instance.post_job(late, gpus=1, hold=True)
    assert instance.job(held)['early_start'].startswith('yes, the latest run'), instance.job(held)


# --- what can happen to it ---

def test_a_cancelled_job_is_told_and_leaves(stage, gate, nodes):  # noqa: F811
    instance, first = stage
    job = instance.post_job(command(nodes, 'import signal', 'signal.signal(signal.SIGTERM, lambda *_: (print("told", '
                                    'flush=True), sys.exit(3)))', LOOK), gpus=1, early=True)
    starts_early(instance, job)
    harness.until(lambda: has_asked(instance, job), 'nothing waits')
    instance.mgpu('cancel', job, check=True)
    ended = instance.wait(job)
    assert ended['state'] == 'cancelled' and instance.output(job) == 'begun\ntold\n', (ended, instance.output(job))
    assert instance.job(first)['state'] == 'running'
    gate.open()
    assert instance.wait(first)['state'] == 'done'


def test_it_may_end_without_its_gpu(stage, gate, nodes):  # noqa: F811
    instance, first = stage
    job = instance.post_job(command(nodes, 'sys.exit(7)'), gpus=1, early=True)
    ended = instance.wait(job)
    assert (ended['exit_code'], ended['attempt'], ended['gpus_at']) == (7, 1, None), ended
    assert instance.job(first)['state'] == 'running'
    next_one = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    starts_early(instance, next_one)
    gate.open()
    assert instance.wait(next_one)['state'] == 'done'


def test_one_that_is_overtaken_waits_on(stage, gate, nodes):  # noqa: F811
    instance, first = stage
    job = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    starts_early(instance, job)
    other = harness.Gate(os.path.dirname(gate.path))
    urgent = instance.post_job(other.command(), gpus=1, priority=100)
    gate.open()
    instance.wait(first)
    instance.wait(urgent, 'running')
    assert instance.job(job)['park'] == 'early'
    other.open()
    assert instance.wait(job)['state'] == 'done'
    other.close()


def test_its_limit_can_be_edited_while_it_waits(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    job = instance.post_job(command(nodes, LOOK), gpus=1, early=True, time_limit='1h')
    starts_early(instance, job)
    instance.mgpu('edit', job, 'time=30m', check=True)
    gate.open()
    ended = instance.wait(job)
    assert (ended['state'], ended['time_limit_s']) == ('done', 1800), ended


# --- edges ---

def test_a_set_user_id_program_in_it_works_as_ever(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    job = instance.post_job(command(nodes, 'import subprocess', 'print(subprocess.run(["/usr/bin/passwd", "-S"], stdout='
                                    'subprocess.DEVNULL, check=False).returncode, flush=True)', LOOK), gpus=1, early=True)
    starts_early(instance, job)
    said(instance, job, 'begun\n0\n')
    gate.open()
    assert instance.wait(job)['state'] == 'done'
    assert instance.output(job) == 'begun\n0\nENXIO ENXIO\n'


def test_a_step_in_it_is_refused_the_gpu_until_the_job_has_it(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    last = harness.Gate(os.path.dirname(gate.path))
    job = instance.post_job(command(nodes, LOOK, f'open({last.path!r}).readline()'), gpus=1, early=True)
    starts_early(instance, job)
    step = instance.mgpu('exec', job, '--', *command(nodes, LOOK))
    assert step.out == 'begun\nEPERM EPERM\n', step
    gate.open()
    said(instance, job, 'ENXIO ENXIO')
    step = instance.mgpu('exec', job, '--', *command(nodes, LOOK))
    assert step.out == 'begun\nENXIO ENXIO\n', step
    last.open()
    assert instance.wait(job)['state'] == 'done'
    last.close()


def test_opens_of_very_many_threads_wait_and_all_go_on(stage, gate, nodes):  # noqa: F811
    instance, _ = stage
    job = instance.post_job(command(
        nodes, 'import threading', 'found = []', 'threading.stack_size(65536)',
        'many = [threading.Thread(target=lambda: found.append(look(ctl))) for _ in range(1500)]',
        'for one in many: one.start()', 'print("all", flush=True)', 'for one in many: one.join()',
        'print(len(found), *set(found))'), gpus=1, early=True)
    starts_early(instance, job)
    said(instance, job, 'all')
    gate.open()
    assert instance.wait(job)['state'] == 'done'
    assert instance.output(job) == 'begun\nall\n1500 ENXIO\n'


def test_one_whose_own_init_is_killed_ends_and_the_next_one_runs(stage, gate, nodes):  # noqa: F811
    instance, first = stage
    job = instance.post_job(command(nodes, LOOK, 'sys.exit(7)'), gpus=1, early=True)
    starts_early(instance, job)
    harness.until(lambda: has_asked(instance, job), 'nothing waits')
    kill_init(instance, job)
    ended = instance.wait(job)
    assert (ended['exit_code'], ended['attempt'], ended['gpus_at']) == (7, 1, None), ended  # its opens have failed
    assert instance.output(job) == 'begun\nENOSYS ENOSYS\n'
    assert instance.job(first)['state'] == 'running'
    next_one = instance.post_job(command(nodes, LOOK), gpus=1, early=True)
    starts_early(instance, next_one)
    gate.open()
    assert instance.wait(next_one)['state'] == 'done'


def is_init(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as name:
        return name.read().strip() == 'mgpu-init'


def kill_shepherd(instance, job):
    for pid, line in harness.processes(instance.place).items():
        if f'/spool/{job}.' in line and 'mgpu-shepherd' in line.split('\0')[0].split(' ')[0] and not is_init(pid):
            os.kill(pid, signal.SIGKILL)


def kill_init(instance, job):
    for pid, line in harness.processes(instance.place).items():
        if f'/spool/{job}.' in line and is_init(pid):
            os.kill(pid, signal.SIGKILL)


VICTIMS = {
    'mgpud': lambda instance, job: (instance.kill(), instance.start()),
    'agent': lambda instance, job: instance.kill_agent(),
    'shepherd': kill_shepherd,
    'all': lambda instance, job: (kill_shepherd(instance, job), instance.kill(), instance.start()),
}


@pytest.mark.parametrize('victim', VICTIMS)
@pytest.mark.parametrize('waits', [True, False])
def test_it_runs_once_and_gets_its_gpu_whatever_is_killed(stage, gate, nodes, victim, waits):  # noqa: F811
    instance, _ = stage
    inner = harness.Gate(os.path.dirname(gate.path))
    hold = () if waits else (f'open({inner.path!r}).readline()',)
    job = instance.post_job(command(nodes, *hold, LOOK, 'sys.exit(5)'), gpus=1, early=True)
    starts_early(instance, job)
    if waits:
        harness.until(lambda: has_asked(instance, job), 'nothing waits')
    VICTIMS[victim](instance, job)
    gate.open()
    inner.open()
    ended = instance.wait(job)
    inner.close()
    assert (ended['exit_code'], ended['attempt']) == (5, 1), ended
    assert instance.output(job) == 'begun\nENXIO ENXIO\n'
    assert ended['gpus_at'] is not None or not waits, ended


def test_its_journal_replays_to_the_same_decisions(stage, gate, nodes, place):  # noqa: F811
    instance, _ = stage
    jobs = [instance.post_job(command(nodes, LOOK), gpus=1, early=True) for _ in range(3)]
    gate.open()
    for job in jobs:
        assert instance.wait(job)['state'] == 'done'
    path = os.path.join(place, 'journal')
    instance.mgpu('journal', 'export', '-o', path, user=instance.user, check=True)
    told = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True, text=True,
                          check=False)
    assert told.returncode == 0, told
