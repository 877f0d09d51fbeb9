# SPDX-License-Identifier: MIT
"""Which GPU device nodes a job may open. The nodes are real ones of the NVIDIA driver's major number, which is not
there: opening one that the filter allows fails with ENXIO, one that it denies with EPERM."""

import json
import os
import re
import select
import shlex
import signal
import time

import pytest

import device_programs
import harness
from nvml import Nvml
from test_park import UUIDS, Cuda, await_phase, park

pytestmark = pytest.mark.root

NVIDIA_MAJOR, N_GPUS, CTL = 195, 8, 255

# Tries each node in each way; says which minors were not refused by EPERM, and whether the ways agree.
TRY = r'''
import errno, json, os, sys
def is_open(path, flags):
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK))
    except PermissionError as error:
        assert error.errno == errno.EPERM, error
        return False
    except OSError:
        pass
    return True
def attempt(folder):
    found = []
    for name in sorted(os.listdir(folder)):
        path = f"{folder}/{name}"
        ways = {is_open(path, flags) for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)}
        handle = os.open(path, os.O_PATH)
        ways.add(is_open(f"/proc/self/fd/{handle}", os.O_RDWR))
        ways.add(is_open(f"/proc/self/root{path}", os.O_RDWR))
        os.close(handle)
        assert len(ways) == 1, (name, ways)
        if ways == {True}:
            found.append(os.minor(os.stat(path).st_rdev))
    return sorted(found)
'''


@pytest.fixture(scope='module')
def nodes(tmp_path_factory):
    folder = tmp_path_factory.mktemp('devices')
    harness.open_folder(folder)
    for name, minor in [(f'nvidia{n}', n) for n in range(N_GPUS)] + [('nvidiactl', CTL)]:
        os.mknod(folder / name, 0o20666, os.makedev(NVIDIA_MAJOR, minor))
        os.chmod(folder / name, 0o666)
    return str(folder)


def feature(instance, name='devices'):
    features = instance.api('GET', '/nodes').json['nodes'][0]['features']
    return next(feature for feature in features if feature['name'] == name)


@pytest.fixture
def guarded(make_instance, nodes):
    """Makes instances with a node for each simulated GPU."""
    def make(*arguments):
        instance = make_instance(arguments=['--device-dir', nodes, *arguments])
        found = feature(instance)
        if not found['on']:
            pytest.skip(found['text'])
        return instance
    return make


def attempt(nodes, before=''):
    """A command that prints what opens, after `before`."""
    return ['/usr/bin/python3', '-c', f'{TRY}\n{before}\nprint(json.dumps(attempt({nodes!r})))']


def attempt_text(nodes):
    """The same for a shell."""
    return shlex.join(attempt(nodes))


def opened(instance, job):
    """Minors that the job could open."""
    ended = instance.wait(job)
    assert ended['state'] == 'done', (ended, instance.output(job))
    return json.loads(instance.output(job).splitlines()[-1])


def instance_cgroup(instance):
    with open(f'{instance.run_dir}/cgroup', encoding='ascii') as source:
        return source.read()


# --- what a job opens ---

def test_a_job_opens_its_gpus_and_no_others(guarded, nodes):
    instance = guarded()
    first = instance.post_job(attempt(nodes), gpu_ids='2,5')
    assert opened(instance, first) == [2, 5, CTL]
    assert opened(instance, instance.post_job(attempt(nodes), gpu_ids='0-7')) == [*range(8), CTL]
    share = instance.post_job(attempt(nodes), gpu_ids='3', gpu_mem='2G')
    assert opened(instance, share) == [3, CTL]


def test_a_job_without_gpus_opens_none(guarded, nodes):
    instance = guarded()
    assert opened(instance, instance.post_job(attempt(nodes), gpus=0)) == []


def test_a_command_that_a_job_tells_opens_no_gpu(guarded, nodes, place, bell):
    instance = guarded()
    script = os.path.join(place, 'look.py')
    with open(script, 'w', encoding='utf-8') as out:
        out.write(f'{TRY}\nprint(json.dumps(attempt({nodes!r})))')
    tell = f'out=$(/usr/bin/python3 {script} 2>&1 | tail -n 1); echo "$out" > {bell.path}'
    job = instance.post_job(attempt(nodes), gpu_ids='2', notify=[tell])
    assert opened(instance, job) == [2, CTL]
    assert json.loads(bell.wait()) == []


def test_other_devices_are_as_ever(guarded):
    instance = guarded()
    job, said = instance.run_job(['sh', '-c', 'head -c 3 /dev/zero | wc -c; echo word >/dev/null; ls -lL /dev/stdout'])
    assert job['state'] == 'done' and said.startswith('3\n'), (job, said)


def test_the_setup_command_is_confined_too(guarded, nodes, place):
    instance = guarded()
    with open(f'{place}/try.py', 'w', encoding='ascii') as script:
        script.write(f'{TRY}\nprint(json.dumps(attempt({nodes!r})), file=sys.stderr)')
    job = instance.submit('-G', '4', '-E', f'/usr/bin/python3 {place}/try.py', '--', 'true')
    assert opened(instance, job) == [4, CTL]


def test_a_changed_environment_opens_no_other_gpu(guarded, nodes):
    instance = guarded()
    job = instance.post_job(attempt(nodes, 'os.environ.update(CUDA_VISIBLE_DEVICES="0,1", MGPU_GPUS="0,1")'), gpu_ids='6')
    assert opened(instance, job) == [6, CTL]


def test_gpus_are_numbered_as_the_job_sees_them(guarded):
    """The driver hides GPUs that cannot be opened and numbers the others from 0 on."""
    instance = guarded()
    for asked, visible in (('5', '0'), ('5,2,7', '1,0,2'), ('0-7', '0,1,2,3,4,5,6,7')):
        _, said = instance.run_job(['sh', '-c', 'echo $CUDA_VISIBLE_DEVICES; echo $MGPU_GPUS'], gpu_ids=asked)
        assert said.splitlines() == [visible, asked.replace('0-7', '0,1,2,3,4,5,6,7')]


# --- ways around it ---

def make_own(place):
    """Python that tries to make nodes of GPUs 1 and 3 in `place` and prints how that went."""
    return f'''
for minor in (1, 3):
    try:
        os.mknod(f"{place}/own{{minor}}", 0o20666, os.makedev({NVIDIA_MAJOR}, minor))
        print("made", minor)
    except OSError as error:
        print(errno.errorcode[error.errno], minor)
'''


MOVE = r'''
def move(folder):
    try:
        with open(f"{folder}/cgroup.procs", "w") as procs:
            procs.write("0")
        return True
    except OSError:
        return False
mount, own = "/sys/fs/cgroup", open("/proc/self/cgroup").read().split("0::")[1].split()[0]
mount += "/unified" if os.path.exists(mount + "/unified") else ""
'''

MOVE_ANYWHERE = MOVE + r'''
moved = [folder for folder, _, _ in os.walk(mount) if folder != mount + own and move(folder)]
assert not moved, moved
'''

# Into cgroups that root makes below its step and beside it; afterwards they are taken away again.
MOVE_ABOUT = MOVE + r'''
below, beside = f"{mount}{own}/below", f"{mount}{os.path.dirname(own)}/step9.9"
for folder in (below, beside):
    os.mkdir(folder)
    assert move(folder)
    print(json.dumps(attempt(sys.argv[1])))
assert move(mount + own)
os.rmdir(below)
os.rmdir(beside)
'''


def test_a_user_makes_no_node_and_leaves_for_no_other_cgroup(guarded, nodes, place, gate):
    instance = guarded()
    neighbour = instance.post_job(gate.command(), gpu_ids='1')
    instance.wait(neighbour, 'running')
    job = instance.post_job(attempt(nodes, make_own(place) + MOVE_ANYWHERE), gpu_ids='3')
    assert opened(instance, job) == [3, CTL]
    assert instance.output(job).splitlines()[:2] == ['EPERM 1', 'EPERM 3']
    gate.open()


def test_a_job_of_root_makes_no_node_of_others_and_keeps_its_filter_in_every_step(guarded, nodes, place):
    instance = guarded('--allow-root-jobs')
    root = harness.User('root')
    job = instance.post_job(attempt(nodes, make_own(place)), user=root, gpu_ids='3')
    assert opened(instance, job) == [3, CTL]
    assert instance.output(job).splitlines()[:2] == ['EPERM 1', 'made 3']
    job = instance.post_job([*attempt(nodes, MOVE_ABOUT), nodes], user=root, gpu_ids='3')
    assert opened(instance, job) == [3, CTL]
    assert instance.output(job) == '[3, 255]\n' * 3
    assert 'root could undo' in feature(instance)['text']


def test_a_filter_outlives_the_kill_of_everything(guarded, nodes, gate):
    instance = guarded()
    python, _, script = attempt(nodes)
    job = instance.post_job([python, '-c', f'open({gate.path!r}).readline()\n{script}'], gpu_ids='7')
    instance.wait(job, 'running')
    for agent in instance.agents():
        os.kill(agent, signal.SIGKILL)
    instance.kill()
    instance.start()
    for agent in instance.agents():
        os.kill(agent, signal.SIGKILL)
        assert harness.wait_process(agent)
    assert instance.process.wait(harness.DEADLINE_S) == 75  # its keeper died
    instance.start()
    gate.open()
    assert opened(instance, job) == [7, CTL]


def test_a_filter_that_was_taken_away_is_put_back_by_the_next_agent(guarded, nodes, gate):
    instance = guarded()
    python, _, script = attempt(nodes)
    job = instance.post_job([python, '-c', f'open({gate.path!r}).readline()\n{script}'], gpu_ids='7')
    instance.wait(job, 'running')
    cell = f'{instance_cgroup(instance)}/j{job}.1'
    assert len(device_programs.attached(cell)) == 1
    device_programs.detach_all(cell)
    instance.restart()
    instance.wait(job, 'running')
    assert len(device_programs.attached(cell)) == 1
    instance.restart()
    assert len(device_programs.attached(cell)) == 1, 'a second filter was added'
    gate.open()
    assert opened(instance, job) == [7, CTL]
    assert instance.log().count('device filter was missing') == 1


# --- seen elsewhere all the same ---

def test_a_job_on_a_gpu_of_others_is_told_everywhere_and_logged_once(make_instance, place, gate, bell):
    nvml = Nvml(place)
    nvml.add(bus=0x3b, uuid='GPU-own')
    nvml.add(bus=0x81, uuid='GPU-other')
    nvml.write()
    instance = make_instance(gpus='auto', arguments=nvml.arguments)
    job = instance.post_job(['sh', '-c', f'echo $$ >{bell.path}; read word <{gate.path}'], gpu_ids='0')
    nvml.say(f'process 1 compute {bell.wait()} 512')
    nvml.write()
    # Every report is told to nobody but the agent, so that only asking again shows it.
    end = time.monotonic() + harness.DEADLINE_S
    while not (instance.job(job)['usage'] or {}).get('stray_gpus'):
        assert time.monotonic() < end, instance.job(job)
        select.select([], [], [], 0.05)
    words = 'uses GPU 1, which is not allocated to it'
    assert words in instance.mgpu('ps').out
    assert words in instance.mgpu('show', job).out
    assert f'of job {job}' in instance.mgpu('gpus', '-o', 'wide').out
    for agent in instance.agents():
        os.kill(agent, signal.SIGTERM)
    instance.process.wait(harness.DEADLINE_S)
    instance.start()
    gate.open()
    assert instance.wait(job)['usage']['stray_gpus'] == '1'
    assert instance.log().count('uses GPU 1, which is not allocated to it') == 1


# --- when it cannot be ---

def test_a_job_waits_while_its_filter_cannot_be_put_on(guarded, nodes):
    instance = guarded()
    cgroup = instance_cgroup(instance)
    with device_programs.only_this_one(cgroup):
        job = instance.post_job(attempt(nodes), gpu_ids='1')
        returned = next(event['data'] for event in instance.events(after=0) if event['event'] == 'returned')
    assert returned['job'] == job and 'cannot attach the device filter' in instance.log(), returned
    assert opened(instance, job) == [1, CTL]
    assert instance.job(job)['attempt'] > 1
    assert not os.path.exists(f'{cgroup}/j{job}.1')


def test_without_root_doctor_says_that_gpus_are_only_advised(make_instance, someone, nodes):
    instance = make_instance(user=someone, client=someone, arguments=['--device-dir', nodes])
    found = feature(instance)
    assert not found['on'] and 'only set in CUDA_VISIBLE_DEVICES' in found['text'] and 'root' in found['fix'], found
    job, _ = instance.run_job(['true'], gpus=1)
    assert job['state'] == 'done', job


def test_root_that_may_not_use_bpf_runs_jobs_without(make_instance, nodes):
    instance = make_instance(start=False, arguments=['--device-dir', nodes])
    instance.command = ['/usr/bin/setpriv', '--bounding-set', '-sys_admin,-bpf', '--', *instance.command]
    instance.start()
    found = feature(instance)
    assert not found['on'] and 'the kernel does not allow device filters' in found['text'], found
    assert 'CAP_SYS_ADMIN' in found['fix'], found
    assert 'jobs are not confined to their GPUs' in instance.log()
    assert opened(instance, instance.post_job(attempt(nodes), gpu_ids='1')) == [*range(N_GPUS), CTL]
    job, said = instance.run_job(['sh', '-c', 'echo $CUDA_VISIBLE_DEVICES'], gpu_ids='5,2')
    assert said == '5,2\n', job


def test_doctor_says_that_it_holds(guarded):
    instance = guarded()
    assert re.search('on +devices +a job can only open its own GPUs', instance.mgpu('doctor').out)


def test_the_directory_can_come_from_the_configuration(make_instance, nodes, tmp_path):
    settings = tmp_path / 'mgpu.yaml'
    settings.write_text(f'device-dir: {nodes}\n')
    instance = make_instance(arguments=['--config', str(settings)])
    if not feature(instance)['on']:
        pytest.skip(feature(instance)['text'])
    assert opened(instance, instance.post_job(attempt(nodes), gpu_ids='0')) == [0, CTL]


# --- a job that is parked, and returns on another GPU ---

PROBE = TRY + '''
import time
folder, nodes = sys.argv[1:]
while True:
    if os.path.exists(f"{folder}/ask"):
        os.unlink(f"{folder}/ask")
        with open(f"{folder}/answer.new", "w") as out:
            json.dump(attempt(nodes), out)
        os.rename(f"{folder}/answer.new", f"{folder}/answer")
    time.sleep(0.02)
'''


class Prober:
    """A process of a job that tries all nodes when it is asked to."""

    def __init__(self, folder, nodes):
        self.folder = folder
        self.script = f'{folder}/probe.py'
        with open(self.script, 'w', encoding='ascii') as out:
            out.write(PROBE)
        self.command = f'/usr/bin/python3 {self.script} {folder} {nodes}'

    def opened(self):
        with open(f'{self.folder}/ask', 'w', encoding='ascii'):
            pass
        harness.until(lambda: os.path.exists(f'{self.folder}/answer'), 'what the job can open')
        with open(f'{self.folder}/answer', encoding='ascii') as source:
            found = json.load(source)
        os.unlink(f'{self.folder}/answer')
        return found


def test_a_job_that_returns_on_another_gpu_opens_its_node_and_the_old_one_no_more(make_instance, nodes, place):
    harness.open_folder(place)
    cuda, nvml = Cuda(f'{place}/driver'), Nvml(place)
    for number, uuid in enumerate(UUIDS):
        nvml.add(bus=0x1b + 16 * number, uuid=uuid)
    nvml.write()
    instance = make_instance(gpus='auto', arguments=['--device-dir', nodes, *nvml.arguments, *cuda.arguments])
    if not feature(instance)['on']:
        pytest.skip(feature(instance)['text'])
    prober = Prober(cuda.folder, nodes)
    job = instance.submit('--gpu-ids', '0', '--park-anywhere', '--', 'sh', '-c',
                          f'{prober.command} & exec {" ".join(cuda.work())}')
    harness.until(cuda.steps, 'the job works on its GPU')
    assert prober.opened() == [0, CTL]
    cell = f'{instance_cgroup(instance)}/j{job}.1'
    before = device_programs.attached(cell)
    park(instance, job)
    other = instance.submit('--gpu-ids', '0', '--', 'sh', '-c', f"{attempt_text(nodes)}; exec sleep 1000")
    instance.wait(other, 'running')
    harness.until(lambda: instance.output(other).endswith(']\n'), 'what the other job can open')
    assert json.loads(instance.output(other)) == [0, CTL]
    instance.mgpu('unpark', job, check=True)
    await_phase(instance, job, None)
    index = instance.job(job)['granted'][0]['index']
    assert index in (1, 2)
    assert prober.opened() == [index, CTL]
    after = device_programs.attached(cell)
    assert len(after) == len(before) == 1 and after != before, 'one program replaces the other'
    instance.kill_agent()
    instance.await_gpus(lambda gpus: len(gpus) == len(UUIDS))
    assert prober.opened() == [index, CTL]
    for each in (job, other):
        instance.mgpu('cancel', each, check=True)
