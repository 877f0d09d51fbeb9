# SPDX-License-Identifier: MIT
"""scheduler, whose jobs are the lines of a file: a test for each line of checklist.tsv, named by its number."""

import http.server
import json
import os
import re
import select
import shutil
import signal
import socketserver
import subprocess
import threading
import time

import pytest

import harness
import nvml
from cluster import Cluster

GPUS = 'sim:4x24G'
FOLDER = '/tmp/gpu_scheduler_logs'
QUICK = ('--monitor-interval', '1', '--state-interval', '1')

# What a job of these tests is: it says what it was given, and does as it is told.
SCRIPT = '''
import os, sys
print('given', sys.argv[1:], os.environ.get('CUDA_VISIBLE_DEVICES'), os.getcwd(), flush=True)
print('conda', os.environ.get('CONDA_DEFAULT_ENV'), flush=True)
print('tty', sys.stdout.isatty(), flush=True)
for word in sys.argv[1:]:
    if word.startswith('gate='):
        os.read(os.open(word[5:], os.O_RDONLY), 1)
    if word.startswith('exit='):
        sys.exit(int(word[5:]))
'''

CONDA = '''#!/bin/sh
[ "$3" = train ] || exit 1
echo "export CONDA_DEFAULT_ENV=$3"
'''


@pytest.fixture(scope='module', autouse=True)
def log_folder():
    """The folder of the logs is the tests' while they run."""
    kept = f'{FOLDER}.kept-{os.getpid()}'
    if os.path.lexists(FOLDER) and harness.IS_ROOT:
        os.rename(FOLDER, kept)
    yield
    if harness.IS_ROOT:
        shutil.rmtree(FOLDER, ignore_errors=True)
        if os.path.lexists(kept):
            os.rename(kept, FOLDER)


@pytest.fixture(autouse=True)
def no_logs(log_folder):
    if harness.IS_ROOT:
        shutil.rmtree(FOLDER, ignore_errors=True)


class Scheduler:
    """`scheduler start` in a folder, and what it has said."""

    def __init__(self, box, place, *options, env=None, after=()):
        self.box, self.place, self.said, self.unread = box, place, [], b''
        self.process = box.popen('start', *QUICK, *options, *after, program='scheduler', cwd=place, env=env,
                                 stderr=subprocess.STDOUT)

    def until(self, text, timeout_s=harness.DEADLINE_S):
        """The first line from here on that has it; patterns are Python's."""
        end = time.monotonic() + timeout_s
        while True:
            line = self.line(end)
            assert line is not None, f'{text!r} was not said:\n' + ''.join(self.said)
            if re.search(text, line):
                return line

    def line(self, end):
        while b'\n' not in self.unread:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return None
            self.unread += piece
        line, _, self.unread = self.unread.partition(b'\n')
        self.said.append(line.decode() + '\n')
        return self.said[-1]

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        rest = self.process.communicate(timeout=harness.DEADLINE_S)[0]
        self.said.append((self.unread + rest).decode())
        assert not harness.SANITIZER.search(''.join(self.said)), self.said
        return self.process.returncode

    def state(self):
        with open(f'{self.place}/gpu_scheduler_state.json', encoding='utf-8') as source:
            return json.load(source)


class Desk:
    """A folder of the user with a script and a jobs file."""

    def __init__(self, box, place):
        self.box, self.place, self.running = box, place, []
        self.write('job.py', SCRIPT)

    def write(self, name, text, mode='w'):
        with self.box.client.acting():
            with open(f'{self.place}/{name}', mode, encoding='utf-8') as out:
                out.write(text)

    def lines(self, *lines):
        self.write('jobs.txt', ''.join(f'{line}\n' for line in lines), 'a')

    def edit_state(self, **members):
        """As an editor does: a new file in the place of the old one."""
        path = f'{self.place}/gpu_scheduler_state.json'
        with open(path, encoding='utf-8') as source:
            state = {**json.load(source), **members}
        self.write('edited', json.dumps(state))
        with self.box.client.acting():
            os.rename(f'{self.place}/edited', path)

    def start(self, *options, **more):
        made = Scheduler(self.box, self.place, *options, **more)
        self.running.append(made)
        made.until('started; jobs come from')
        return made

    def call(self, *words, **options):
        return self.box.mgpu(*words, program='scheduler', cwd=self.place, **options)

    def close(self):
        for one in self.running:
            if one.process.poll() is None:
                assert one.stop() == 0, one.said


@pytest.fixture
def desk(box, place):
    if harness.IS_ROOT:
        box.api('POST', '/gpus/resume', {'gpus': ['0', '1', '2', '3']}, user=box.user)
    made = Desk(box, place)
    yield made
    made.close()


@pytest.fixture
def own(make_instance, place):
    """A desk of a user with his own mgpud: he may pause GPUs."""
    user = harness.User('nobody') if harness.IS_ROOT else harness.User(harness.pwd.getpwuid(os.geteuid()).pw_name)
    made = Desk(make_instance(gpus=GPUS, user=user, client=user), place)
    yield made
    made.close()


class Nowhere(harness.Instance):
    """What there is before anything is started: a user."""

    def __init__(self, user):
        self.client = self.user = user
        self.socket = ''


def lonely(place):
    """A desk of an ordinary user with nothing but a home, and his environment."""
    user = harness.User('nobody') if harness.IS_ROOT else harness.User(harness.pwd.getpwuid(os.geteuid()).pw_name)
    for name in ('run', 'home'):
        os.makedirs(f'{place}/{name}', mode=0o700)
        os.chown(f'{place}/{name}', user.uid, user.gid)
    return Desk(Nowhere(user), place), {
        'PATH': '/usr/bin:/bin', 'HOME': f'{place}/home', 'XDG_RUNTIME_DIR': f'{place}/run',
        'XDG_STATE_HOME': f'{place}/home', 'MGPU_SOCKET': '', 'ASAN_OPTIONS': 'detect_leaks=0'}


class Full(http.server.BaseHTTPRequestHandler):
    """An mgpud whose queue is full for the number of submissions that the server sets."""

    protocol_version = 'HTTP/1.1'

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if self.path.endswith('/events'):
            self.send_response(200)
            self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            self.server.closing.wait()
            return
        path = self.path.split('?')[0].rsplit('/', 1)[1]
        self.answer(200, {'id': 1, 'state': 'queued'} if path == '1' else {path: [], 'settings': []})

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.server.posts += 1
        if self.server.posts <= self.server.refusals:
            self.answer(429, {'code': 'queue_full', 'detail': 'the queue is full', 'status': 429})
        else:
            self.answer(201, {'id': 1})

    def log_message(self, *words):
        pass


def queued(scheduler):
    return int(re.search(r'job (\d+) queued', scheduler.until(r'job \d+ queued')).group(1))


def given(box, job):
    """What the script says it was given: (arguments, CUDA_VISIBLE_DEVICES, directory)."""
    box.wait(job)
    found = re.search(r"given (\[.*\]) (\S+) (\S+)", box.output(job))
    assert found, box.output(job)
    return found.groups()


# --- start ---

def test_S2_1_S2_49_alone(place):
    """Of an ordinary user with nothing but a home: its own mgpud, a job that goes on, and the next start."""
    gate = harness.Gate(place)
    desk, env = lonely(place)
    desk.lines(f'0,job.py,,gate={gate.path}')
    first = desk.start(env=env, after=('--', '--gpus', GPUS))
    assert any('mgpud was started' in line for line in first.said)
    first.until('job 1 started on GPU 0')
    assert first.stop() == 0
    assert 'the state was saved in gpu_scheduler_state.json' in first.said[-1]
    assert first.state()['jobs'] and not [
        pid for pid in harness.processes('mgpud') if f'{place}/' in harness.process_environment(pid)
        and harness.process_name(pid) == 'mgpud' and not harness.wait_process(pid)]
    second = desk.start(env=env, after=('--', '--gpus', GPUS))
    gate.open()
    second.until('job 1 done after .*exit code 0')
    assert second.stop(signal.SIGTERM) == 0
    assert not any('queued' in line for line in second.said)
    gate.close()


def test_S2_1_a_second_one_in_the_same_directory(desk):
    desk.start()
    done = desk.call('start', *QUICK)
    assert done.code != 0 and 'another scheduler is running in this directory' in done.err


def test_S2_1_it_lives_through_restarts_of_mgpud(own, place):
    scheduler = own.start()
    own.box.restart()
    own.lines('0,job.py')
    assert own.box.wait(queued(scheduler))['state'] == 'done'
    scheduler.until('job 1 done')


def has_unread(path):
    """Does a request lie in one of the socket's connections, or a connection in its queue?"""
    listed = subprocess.run(['ss', '-Hxa', 'src', path], check=True, capture_output=True, text=True).stdout
    return any(int(line.split()[2]) > 0 for line in listed.splitlines())


@pytest.mark.parametrize('is_asked', [False, True], ids=['between requests', 'while it is asked'])
def test_S2_1_its_own_mgpud_is_started_anew(place, is_asked):
    desk, env = lonely(place)
    scheduler = desk.start(env=env, after=('--', '--gpus', GPUS))
    with open(f'/proc/{scheduler.process.pid}/task/{scheduler.process.pid}/children', encoding='ascii') as children:
        children = [int(pid) for pid in children.read().split()]
    if is_asked:
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
        desk.lines('0,job.py')
        harness.until(lambda: has_unread(f'{place}/run/mgpu/mgpud.sock'), 'mgpud is not asked')
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    scheduler.until('mgpud is unavailable')
    scheduler.until('mgpud is back')
    desk.lines('0,job.py')
    scheduler.until(f'job {queued(scheduler)} done')
    assert scheduler.stop() == 0


def test_S2_2_the_first_gpus_only(desk):
    scheduler = desk.start('--gpus', '2')
    desk.lines('0,job.py', '0,job.py,,x,1-3', '0,job.py,,y,3')
    assert desk.box.job(queued(scheduler))['gpu_allow'] == '0-1'
    assert desk.box.job(queued(scheduler))['gpu_allow'] == '1'
    assert 'jobs.txt:3: allowed_gpus: none of 3 is among the first 2 GPUs' in scheduler.until('allowed_gpus')


def test_S2_3_S2_4_S2_5_other_files(desk):
    desk.write('a.csv', '0,job.py,,--llm one\n')
    desk.write('models.json', '{"models": {"one": 0.25}}')
    scheduler = desk.start('--jobs-file', 'a.csv', '--llm-config', 'models.json', '--state-file', 'state')
    assert desk.box.job(queued(scheduler))['gpu_share'] == 250
    scheduler.stop()
    assert json.load(open(f'{desk.place}/state', encoding='utf-8'))['jobs']
    desk.lines('0,job.py')
    scheduler = desk.start('--jobs-file', '', '--state-file', 'other')
    scheduler.stop()
    assert 'queued' not in ''.join(scheduler.said)


def test_S2_7_S2_8_S2_54_thresholds(desk):
    """A mgpud that is there has its own, which is said; `alone` below passes them on."""
    scheduler = desk.start('--mem-threshold', '0.5', '--load-threshold', '0.8')
    said = ''.join(scheduler.said)
    assert '--mem-threshold 0.5 has no effect' in said and '--load-threshold' not in said
    assert 'above 0.8 of its memory or 0.8 of load' in desk.call('status').out


def test_S2_7_S2_8_passed_on(place):
    desk, env = lonely(place)
    desk.start('--mem-threshold', '0.5', '--load-threshold', '0.6', env=env, after=('--', '--gpus', GPUS))
    assert 'above 0.5 of its memory or 0.6 of load' in desk.call('status', env=env).out


@pytest.mark.parametrize('option', ['--mem-threshold=1.1', '--mem-threshold=-0.1', '--load-threshold=x',
                                    '--load-threshold=nan', '--monitor-interval=0', '--monitor-interval=x',
                                    '--state-interval=-1', '--max-assign-attempts=0', '--assign-retry-wait=0',
                                    '--gpus=0', '--gpus=1000', '--inject=all', '--state-file=', '--llm-config='])
def test_S2_9_S2_10_S2_11_S2_12_S2_13_ranges(desk, option):
    done = desk.call('start', option)
    assert done.code == 2 and option.split('=')[0] in done.err, done
    assert os.listdir(desk.place) == ['job.py']


# --- the jobs file ---

def test_S2_14_S2_18_S2_19_S2_23_lines(desk):
    scheduler = desk.start()
    desk.lines('# a comment', '', '  # another', '0,job.py', '0,job.py,,a,4,5,6,7', '0,job.py,,b,0-3', 'x,job.py',
               '0,job.py,,c,0-1,3', '0,,,', '0,job.py,,d,9-1', '0,job.py,,"e, ""f""",', '0,job.py,,"g', '0,job.py,,h')
    jobs = [desk.box.job(queued(scheduler)) for _ in range(5)]
    assert [job['gpu_allow'] for job in jobs] == [None, '0-3', '0-1,3', None, None] or \
        [job['gpu_allow'] for job in jobs] == [None, '0,1,2,3', '0,1,3', None, None]
    said = ''.join(scheduler.said)
    for wrong in ("jobs.txt:7: priority: 'x'", 'jobs.txt:9: script_path is missing', 'jobs.txt:10: allowed_gpus',
                  'jobs.txt:12: arguments: the quote is not closed', 'jobs.txt:5: '):
        assert wrong in said, said
    assert given(desk.box, jobs[3]['id'])[0].startswith("['e,', 'f'")


def test_S2_15_the_lowest_number_first(desk, gate):
    scheduler = desk.start('--gpus', '1')
    desk.lines(f'0,job.py,,gate={gate.path}')
    first = queued(scheduler)
    desk.box.wait(first, 'running')
    desk.lines('5,job.py,,a', '1,job.py,,b', '1,job.py,,c', '3,job.py,,d')
    jobs = [queued(scheduler) for _ in range(4)]
    assert [desk.box.job(job)['priority'] for job in jobs] == [-5, -1, -1, -3]
    gate.open()
    ends = [desk.box.wait(job)['started_at'] for job in jobs]
    assert sorted(range(4), key=lambda i: ends[i]) == [1, 2, 3, 0]


def test_S2_16_S2_54_conda(desk):
    desk.write('conda', CONDA)
    with desk.box.client.acting():
        os.chmod(f'{desk.place}/conda', 0o755)
        os.symlink('/usr/bin/python3', f'{desk.place}/python')
    scheduler = desk.start(env={'CONDA_EXE': f'{desk.place}/conda', 'PATH': f'{desk.place}:/usr/bin:/bin'})
    desk.lines('0,job.py,train', '0,job.py,missing')
    good, bad = queued(scheduler), queued(scheduler)
    desk.box.wait(good)
    assert 'conda train' in desk.box.output(good)
    assert desk.box.wait(bad)['ended_by'] == 'setup_failed'
    scheduler.until(f'job {bad} failed')
    assert 'cannot activate the environment missing' in desk.box.output(bad)
    assert 'setup' in desk.call('status').out


def test_S2_17_S2_22_arguments(desk):
    scheduler = desk.start('--inject', 'never')
    desk.lines('''0,job.py,,--a "b  c" 'd e' f\\ g --h=$HOME #1''')
    arguments, _, where = given(desk.box, queued(scheduler))
    assert arguments == "['--a', 'b  c', 'd e', 'f g', '--h=$HOME', '#1']" and where == desk.place


def test_S2_20_three_examples(desk):
    """The lines of the README of the scheduler that this is like."""
    os.makedirs(f'{desk.place}/path/to')
    for name in ('train', 'eval', 'infer'):
        shutil.copy(f'{desk.place}/job.py', f'{desk.place}/path/to/{name}.py')
    scheduler = desk.start()
    desk.lines(f'1,{desk.place}/path/to/train.py,myenv,--epochs 10 --batch 32,0,1',
               f'2,{desk.place}/path/to/eval.py,myenv,--checkpoint best.pt,',
               f'0,{desk.place}/path/to/infer.py,,--input data.json,2,3')
    jobs = [desk.box.job(queued(scheduler), user=desk.box.client) for _ in range(3)]
    assert [job['name'] for job in jobs] == ['train.py', 'eval.py', 'infer.py']
    assert [job['gpu_allow'] for job in jobs] == ['0,1', None, '2,3']
    assert ['myenv' in (job['setup'] or '') for job in jobs] == [True, True, False]


def test_S2_21_S2_9_new_lines(desk):
    scheduler = desk.start()
    subprocess.run(['sh', '-c', 'echo 0,job.py,,one >> jobs.txt'], cwd=desk.place, check=True,
                   **desk.box.client.popen_arguments())
    queued(scheduler)
    desk.lines('0,later.py')
    scheduler.until('later.py: No such file')
    shutil.copy(f'{desk.place}/job.py', f'{desk.place}/later.py')
    scheduler.until('queued: later.py')


# --- add ---

def test_S2_24_S2_25_add(desk):
    assert desk.call('add', 'job.py', '-q').code == 0
    assert desk.call('add', 'a, b.py', '--conda', 'env', '--args', '--x "1, 2"', '--priority', '5', '--gpus', '0-1,3',
                     '--output-file', 'jobs.txt').code == 0
    with open(f'{desk.place}/jobs.txt', encoding='utf-8') as source:
        assert source.read() == '0,job.py,,,\n5,"a, b.py",env,"--x ""1, 2""",0-1,3\n'
    assert desk.call('add', 'b.py', '--output-file', '-').out == '0,b.py,,,\n'
    desk.write('open', '0,a.py')
    desk.call('add', 'b.py', '--output-file', 'open', check=True)
    with open(f'{desk.place}/open', encoding='utf-8') as source:
        assert source.read() == '0,a.py\n0,b.py,,,\n'


@pytest.mark.parametrize('words', [(), ('a.py', 'b.py'), ('a.py', '--gpus', 'x'), ('a.py', '--priority', 'x'),
                                   ('a.py', '--args', '"x'), ('a.py', '--args', 'a\nb'), ('',),
                                   ('a.py', '--output-file', ''), ('a.py', '--output-file', '/nowhere/x')])
def test_S2_24_wrong_lines(desk, words):
    done = desk.call('add', *words)
    assert done.code not in (0, None) and done.err and not os.path.exists(f'{desk.place}/jobs.txt'), done


# --- models and fractions ---

def test_S2_26_S2_27_S2_28_S2_30_S2_31_models(desk):
    desk.write('llm_config.json', json.dumps({'default_requirement': 0.75, 'models': {
        'llama': 0.5, 'whole': 1.0, 'two': 1.5, 'none': 0, 'text': 'x'}}))
    scheduler = desk.start()
    desk.lines('0,job.py,,--llm llama', '0,job.py,,--llm=llama x', '0,job.py,,--llm whole', '0,job.py,,--llm two',
               '0,job.py,,--llm other', '0,job.py')
    jobs = [desk.box.job(queued(scheduler)) for _ in range(6)]
    assert [job['gpu_share'] for job in jobs] == [500, 500, None, None, 750, 750]
    assert [job['gpus'] for job in jobs] == [1, 1, 1, 2, 1, 1]
    said = ''.join(scheduler.said)
    assert "model 'other' is not in llm_config.json" in said
    assert 'llm_config.json: none: not a number' in said and 'llm_config.json: text: ' in said


def test_S2_28_no_configuration_and_a_broken_one(desk):
    scheduler = desk.start()
    desk.lines('0,job.py,,--llm llama')
    assert desk.box.job(queued(scheduler))['gpu_share'] is None
    desk.write('llm_config.json', '{"models":\n {"llama": 0.5,}}')
    desk.lines('0,job.py,,--llm llama x')
    scheduler.until(r'llm_config.json:2: ')
    assert desk.box.job(queued(scheduler))['gpus'] == 1


def test_S2_29_cuda(desk):
    """Here nodes may keep jobs from GPUs that are not theirs: then the numbers are those that the job sees."""
    is_enforced = any(feature['name'] == 'devices' and feature['on']
                      for feature in desk.box.api('GET', '/nodes').json['nodes'][0]['features'])
    scheduler = desk.start()
    desk.write('llm_config.json', '{"models": {"two": 2}}')
    desk.lines('0,job.py,,--cuda 7 a,2', '0,job.py,,--cuda=7 b,2', '0,job.py,,--cuda --c,2', '0,job.py,,d,2',
               '0,job.py,,--llm two,2,3')
    jobs = [queued(scheduler) for _ in range(5)]
    one, two, visible = ('0', '0,1', '2') if is_enforced else ('2', '2,3', 'None')
    assert [given(desk.box, job)[0] for job in jobs] == [
        f"['--cuda', '{one}', 'a']", f"['--cuda={one}', 'b']", f"['--cuda', '{one}', '--c']",
        f"['d', '--cuda', '{one}']", f"['--llm', 'two', '--cuda', '{two}']"]
    assert given(desk.box, jobs[0])[1] == visible


def test_S2_29_numbers_of_the_machine(own):
    """Of a mgpud without root nobody keeps jobs from other GPUs."""
    scheduler = own.start()
    own.lines('0,job.py,,--cuda=7 b,2')
    assert given(own.box, queued(scheduler))[:2] == ("['--cuda=2', 'b']", 'None')


def test_S2_29_local_and_never(desk):
    scheduler = desk.start('--inject', 'local')
    desk.lines('0,job.py,,--cuda 7,2')
    assert given(desk.box, queued(scheduler))[:2] == ("['--cuda', '0']", '2')
    scheduler.stop()
    scheduler = desk.start('--inject', 'never')
    desk.lines('0,job.py,,--cuda 6,2')
    assert given(desk.box, queued(scheduler))[0] == "['--cuda', '6']"


def test_S2_30_S2_35_halves(desk, gate):
    desk.write('llm_config.json', '{"default_requirement": 0.5}')
    scheduler = desk.start('--gpus', '1')
    desk.lines(*[f'0,job.py,,gate={gate.path} {i}' for i in range(3)])
    jobs = [queued(scheduler) for _ in range(3)]
    for job in jobs[:2]:
        assert desk.box.wait(job, 'running')['granted'][0]['index'] == 0
    out = desk.call('status').out
    assert re.search(r'0 +BUSY \(100%\) +1\.00 +\d+% +\d+%', out) and re.search(r'1 +AVAILABLE +0\.00', out), out
    assert desk.box.job(jobs[2])['state'] == 'queued' and f'{jobs[2]}  queued' in out, out
    gate.open(3)
    assert desk.box.wait(jobs[2])['state'] == 'done'


def test_S2_35_half_a_gpu(desk, gate):
    desk.write('llm_config.json', '{"default_requirement": 0.5}')
    scheduler = desk.start()
    desk.lines(f'0,job.py,,gate={gate.path},3')
    desk.box.wait(queued(scheduler), 'running')
    assert re.search(r'3 +BUSY \(50%\) +0\.50', desk.call('status').out)
    both = desk.call('status', '--json').json
    assert both['gpus'][3]['allocation'] == 0.5 and 'running' in [job['state'] for job in both['jobs']]
    scheduler.until('started on GPU 3')
    scheduler.stop()
    scheduler = desk.start()  # it looks at the GPUs before anything else
    scheduler.stop()
    assert scheduler.state()['gpu_status'] == [0, 0, 0, 0.5]
    gate.open()


def test_S2_32_S2_33_busy_gpus_wait(make_instance, place, gate):
    machine = nvml.Nvml(place)
    machine.add(bus=1, uuid='GPU-a')
    machine.write()
    desk = Desk(make_instance(gpus='auto', arguments=machine.arguments), place)
    desk.write('llm_config.json', '{"default_requirement": 0.5}')
    scheduler = desk.start()
    desk.lines(f'0,job.py,,gate={gate.path}')
    desk.box.wait(queued(scheduler), 'running')
    machine.gpus.clear()
    machine.add(bus=1, uuid='GPU-a', used_mib=23000, utilization=95)
    machine.write()
    end, number, is_waiting = time.monotonic() + harness.DEADLINE_S, 0, False
    while not is_waiting and time.monotonic() < end:  # it is busy once three samples have shown it
        number += 1
        desk.lines(f'0,job.py,,try{number}')
        second = queued(scheduler)
        is_done = desk.box.api('GET', f'/jobs/{second}/wait?states=done&timeout=1').status == 200
        is_waiting = not is_done and desk.box.job(second)['state'] == 'queued'
    assert is_waiting
    assert 'queued' in desk.call('status').out
    machine.gpus.clear()
    machine.add(bus=1, uuid='GPU-a')
    machine.write()
    assert desk.box.wait(second)['state'] == 'done'
    gate.open()
    desk.close()


def test_S2_32_S2_33_thresholds_are_for_what_others_use_too(place):
    """The scheduler's own mgpud, in a run directory of its own; a GPU of which another program uses a third, and one that it fills."""
    machine = nvml.Nvml(place)
    machine.add(bus=1, uuid='GPU-a', memory_mib=12288, used_mib=4096)
    machine.add(bus=2, uuid='GPU-b', memory_mib=12288, used_mib=11800)
    stranger = subprocess.Popen(['sleep', '1000'])
    machine.say(f'process 0 compute {stranger.pid} 4096')
    machine.say(f'process 1 compute {stranger.pid} 11800')
    machine.write()
    desk, env = lonely(place)
    own = ('--run-dir', f'{place}/elsewhere', '--gpus', 'auto', *machine.arguments)
    scheduler = desk.start('--mem-threshold', '0.9', '--load-threshold', '0.9', env=env, after=('--', *own))
    try:
        assert any(f'mgpud was started, at {place}/elsewhere/mgpud.sock' in line for line in scheduler.said), scheduler.said
        there = {**env, 'MGPU_SOCKET': f'{place}/elsewhere/mgpud.sock'}
        harness.until(lambda: 'BUSY (others)' in desk.call('status', env=there).out, 'the sample')
        shown = desk.call('status', env=there).out
        assert re.search(r'(?m)^ *0 +AVAILABLE', shown) and re.search(r'(?m)^ *1 +BUSY \(others\)', shown), shown
        desk.lines('0,job.py')
        assert 'GPU 0' in scheduler.until('job 1 started on GPU')
        scheduler.until('job 1 done')
    finally:
        scheduler.stop()
        stranger.kill()
        stranger.wait()


def test_S2_34_attempts(desk, gate):
    scheduler = desk.start('--max-assign-attempts', '3', '--assign-retry-wait', '1', '--gpus', '1')
    desk.lines(f'0,job.py,,gate={gate.path}', '0,job.py,,x')
    first, second = queued(scheduler), queued(scheduler)
    assert desk.box.job(first)['retry'] == 2
    gate.open()
    assert desk.box.wait(second)['state'] == 'done'


def test_S2_34_a_job_that_cannot_be_started(own):
    """The folder of its log is missing when it starts; after the last attempt it returns to the queue."""
    scheduler = own.start('--max-assign-attempts', '1')
    own.call('pause', '1', check=True)
    own.lines('0,job.py,,,1')
    first = queued(scheduler)
    shutil.rmtree(FOLDER)
    own.call('resume', '1', check=True)
    assert own.box.wait(first)['ended_by'] == 'start_failed'
    second = queued(scheduler)
    assert own.box.wait(second)['state'] == 'done' and FOLDER in own.box.job(second)['log']


def test_S2_34_S2_11_S2_12_a_full_queue(someone, place):
    """Two attempts, and two more at the next look at the file; the line is not lost."""
    server = socketserver.ThreadingUnixStreamServer(f'{place}/full.sock', Full)
    os.chmod(f'{place}/full.sock', 0o666)
    server.posts, server.refusals, server.closing, server.daemon_threads = 0, 3, threading.Event(), True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    box = Nowhere(someone)
    box.socket = f'{place}/full.sock'
    desk = Desk(box, place)
    desk.lines('0,job.py')
    scheduler = desk.start('--max-assign-attempts', '2', '--assign-retry-wait', '1')
    for attempt in (1, 2, 1):
        scheduler.until(rf'jobs.txt:1: not queued yet \(attempt {attempt} of 2\): the queue is full')
    scheduler.until('job 1 queued')
    desk.close()
    server.closing.set()
    server.shutdown()
    server.server_close()


# --- control ---

def test_S2_36_S2_37_S2_38_S2_40_pause(own, gate):
    own.lines(f'0,job.py,,gate={gate.path},0')
    scheduler = own.start()
    first = queued(scheduler)
    own.box.wait(first, 'running')
    for _ in range(2):
        assert own.call('pause', '0').code == 0
    scheduler.until('GPU 0 is paused')
    assert re.search(r'0 +PAUSED', own.call('status').out)
    own.lines('0,job.py,,x,0')
    second = queued(scheduler)
    assert own.box.job(first)['state'] == 'running'
    gate.open()
    assert own.box.wait(first)['state'] == 'done' and own.box.job(second)['state'] == 'queued'
    assert 'paused' in own.call('status').out
    scheduler.stop()
    own.box.restart()
    scheduler = own.start()
    assert re.search(r'0 +PAUSED', own.call('status').out) and scheduler.state()['paused_gpus'] == [0]
    assert own.call('resume', '0').code == 0 and own.call('resume', '0').code == 0
    assert own.box.wait(second)['state'] == 'done'


@pytest.mark.parametrize('verb', ['pause', 'resume'])
def test_S2_38_wrong_gpus(desk, verb):
    for wrong in ('9', '-1', 'x', ''):
        done = desk.call(verb, '--', wrong)
        assert done.code == 3 and 'valid numbers are 0 to 3' in done.err, done
    assert desk.call(verb).code == 2


# --- screen ---

needs_screen = pytest.mark.skipif(shutil.which('screen') is None, reason='no screen here')


@needs_screen
def test_S2_6_S2_39_S2_41_S2_42_S2_43_S2_45_S2_46_screen(desk, gate):
    scheduler = desk.start('--screen')
    desk.lines(f'0,job.py,,--mode "tr/ain" gate={gate.path} exit=3,1')
    job = queued(scheduler)
    desk.box.wait(job, 'running')
    name = f'gpujob_1_tr-ain_{job}'
    assert f'screen -r {name}' in desk.call('screens').out
    # The log is screen's, as it is written: that the script is on a terminal stands there before it ends.
    stream = desk.box.connection()
    stream.request('GET', f'/api/v1/jobs/{job}/log?follow=1')
    answer, seen = stream.getresponse(), b''
    while b'tty True' not in seen:
        piece = answer.read1(4096)
        assert piece, seen
        seen += piece
    stream.close()
    # A user attaches on a terminal, and detaches.
    user = desk.box.client
    done = subprocess.run(['script', '-qec', f'screen -r {name} -X detach; screen -ls', '/dev/null'], text=True,
                          capture_output=True, env=dict(user.environment(), TERM='xterm'), check=False,
                          stdin=subprocess.DEVNULL, timeout=harness.DEADLINE_S, **user.popen_arguments())
    assert name in done.stdout, done
    assert desk.box.job(job)['state'] == 'running'
    gate.open()
    ended = desk.box.wait(job)
    assert ended['exit_code'] == 3 and ended['ended_by'] == 'exit'
    desk.box.await_gpus(lambda gpus: all(gpu['state'] == 'free' for gpu in gpus))
    assert 'no session is active' in desk.call('screens').out


@needs_screen
def test_S2_45_a_session_that_is_cancelled(desk, gate):
    scheduler = desk.start('--screen')
    desk.lines(f'0,job.py,,gate={gate.path}')
    job = queued(scheduler)
    desk.box.wait(job, 'running')
    assert desk.box.api('POST', f'/jobs/{job}/cancel', {'grace_s': 1}).status == 202
    assert desk.box.wait(job)['state'] == 'cancelled'
    scheduler.until(f'job {job} cancelled')


def test_S2_44_no_screen(desk, gate):
    os.makedirs(f'{desk.place}/bin')
    for name in ('sh', 'python3', 'env', 'seq', 'cat'):
        os.symlink(shutil.which(name, path='/usr/bin:/bin'), f'{desk.place}/bin/{name}')
    scheduler = desk.start('--screen', env={'PATH': f'{desk.place}/bin'})
    said = ''.join(scheduler.said)
    assert 'GNU Screen command not found' in said and 'apt-get install screen' in said
    desk.lines(f'0,job.py,,gate={gate.path}')
    job = queued(scheduler)
    desk.box.wait(job, 'running')
    assert f'mgpu attach {job}' in desk.call('screens').out
    gate.open()
    desk.box.wait(job)
    assert 'tty True' in desk.box.output(job)


def test_S2_46_the_output_of_each_job_is_shown_as_it_comes(desk, gate):
    scheduler = desk.start()
    desk.lines(f'0,job.py,,one gate={gate.path}')
    first = queued(scheduler)
    scheduler.until(f"^job {first}: given .'one'")
    assert desk.box.job(first)['state'] == 'running'
    desk.lines('0,job.py,,two')
    second = queued(scheduler)
    scheduler.until(f"^job {second}: given .'two'")
    gate.open()
    scheduler.until(f'job {first} done')
    assert scheduler.stop() == 0
    with open(f'{desk.place}/gpu_scheduler.log', encoding='utf-8') as source:
        assert 'given' not in source.read()  # each job has a log of its own
    assert "given ['one'" in desk.box.output(first)


def test_S2_46_more_jobs_than_are_shown(desk, gate):
    """All run; of those beyond the limit it is said where their output is."""
    desk.write('llm_config.json', '{"default_requirement": 0.1, "models": {}}')
    scheduler = desk.start()
    desk.lines(*(f'0,job.py,,gate={gate.path} {i}' for i in range(33)))
    line = scheduler.until('output not shown, 32 others are already: mgpu logs -f')
    assert desk.box.job(int(re.search(r'job (\d+):', line).group(1)))['state'] == 'running'
    gate.open(33)
    while sum('exit code 0' in line for line in scheduler.said) < 33:
        scheduler.until('exit code 0')
    assert scheduler.stop() == 0


# --- known lines, state, logs ---

def test_S2_47_S2_48_known_lines(desk):
    scheduler = desk.start()
    desk.lines('0,job.py,,a', '5,job.py,,a,1', '0,job.py,,exit=3')
    good, bad = queued(scheduler), queued(scheduler)
    for words in (f'job {good} done', f'job {bad} failed'):  # the first may be over before the second is queued
        if words not in ''.join(scheduler.said):
            scheduler.until(words)
    desk.lines('0,job.py,,a')
    again = queued(scheduler)  # the failed one; the other is known
    assert 'exit=3' in scheduler.said[-1] and again > bad
    scheduler.until(f'job {again} failed')
    desk.lines('0,job.py,other,a')
    assert {queued(scheduler), queued(scheduler)} == {again + 1, again + 2}
    scheduler.stop()
    assert ''.join(scheduler.said).count('queued: job.py a (line 1, priority 0)') == 1


def test_S2_48_a_cancelled_line_that_is_put_in_anew(desk, gate):
    scheduler = desk.start()
    line = f'0,job.py,,gate={gate.path}\n'
    desk.write('jobs.txt', line)
    job = queued(scheduler)
    desk.box.wait(job, 'running')
    assert desk.box.api('POST', f'/jobs/{job}/cancel', {'grace_s': 1}).status == 202
    scheduler.until(f'job {job} cancelled')
    desk.write('jobs.txt', line + '0,job.py,,other\n')
    other = queued(scheduler)  # nothing else, because that line stands there still
    assert other > job and 'job.py other' in scheduler.said[-1]
    scheduler.until(f'job {other} done')
    desk.write('jobs.txt', '0,job.py,,third\n')
    third = queued(scheduler)
    desk.write('jobs.txt', line + '0,job.py,,other\n')
    again = queued(scheduler)  # and not the one that is done
    assert again > third and f'gate={gate.path}' in scheduler.said[-1]
    gate.open()
    scheduler.until(f'job {again} done')
    assert ''.join(scheduler.said).count('queued: job.py other') == 1


def test_S2_49_a_kill_makes_no_second_job(desk, gate):
    scheduler = desk.start()
    desk.lines(f'0,job.py,,gate={gate.path}')
    job = queued(scheduler)
    state = scheduler.state()
    scheduler.process.kill()
    scheduler.process.wait()
    desk.edit_state(jobs={}, session=state['session'])  # as if it had not been noted down
    scheduler = desk.start(env={'NEW_HERE': 'yes'})  # the same line, but no more the same request
    scheduler.until(f'job {job} queued')
    gate.open()
    scheduler.until(f'job {job} done')
    assert desk.box.wait(job)['state'] == 'done' and desk.box.open_jobs() == []


def test_S2_49_a_store_that_is_another(own):
    """Its numbers of jobs are given out anew: what waited in the old one is queued again when the file changes."""
    scheduler = own.start()
    own.call('pause', '0', check=True)
    scheduler.until('GPU 0 is paused')
    own.lines('0,job.py,,,0')
    assert queued(scheduler) == 1
    own.box.kill()
    shutil.rmtree(own.box.state_dir)
    own.box.start()
    scheduler.until('job 1 is no longer known to mgpud')
    own.lines('# another line')
    assert queued(scheduler) == 1
    scheduler.until('job 1 done')


def test_S2_50_S2_10_edits_of_the_state_file(own):
    scheduler = own.start()
    own.edit_state(paused_gpus=[1, 2, 77])
    scheduler.until('gpu_scheduler_state.json: .*77')
    own.box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['free', 'paused', 'paused', 'free'])
    scheduler.until('GPU 2 is paused')
    own.edit_state(paused_gpus=[2])
    own.box.await_gpus(lambda gpus: [gpu['state'] for gpu in gpus] == ['free', 'free', 'paused', 'free'])
    own.write('gpu_scheduler_state.json', '{"paused_gpus":\n [1,}')
    scheduler.until('gpu_scheduler_state.json:2: ')
    assert scheduler.stop() == 0
    done = own.call('start', *QUICK)
    assert done.code == 2 and 'gpu_scheduler_state.json:2: ' in done.err and 'delete it' in done.err


def test_S2_51_deleting_the_state_file(own):
    own.lines('0,job.py')
    scheduler = own.start()
    scheduler.until('job 1 done')
    own.call('pause', '1', check=True)
    scheduler.until('GPU 1 is paused')
    os.unlink(f'{own.place}/gpu_scheduler_state.json')
    scheduler.until('was deleted')
    scheduler.until('job 2 done')
    own.box.await_gpus(lambda gpus: gpus[1]['state'] == 'free')
    scheduler.stop()
    own.call('pause', '1', check=True)
    os.unlink(f'{own.place}/gpu_scheduler_state.json')
    scheduler = own.start()
    scheduler.until('job 3 done')
    own.box.await_gpus(lambda gpus: gpus[1]['state'] == 'free')


def test_S2_52_S2_53_logs(desk):
    scheduler = desk.start('--inject', 'never')
    desk.lines('0,job.py,,x,2')
    job = queued(scheduler)
    scheduler.until(f'job {job} done')
    scheduler.stop()
    with open(f'{desk.place}/gpu_scheduler.log', encoding='utf-8') as source:
        log = source.read()
    path = re.search(rf'job {job} started on GPU 2: job.py, log ({FOLDER}/job_{job}_\d{{8}}_\d{{6}}\.log)', log)
    assert path and re.search(rf'job {job} queued: job.py x \(line 1, priority 0\)', log), log
    assert re.search(rf'job {job} done after \S+: job.py, exit, exit code 0', log)
    with open(path.group(1), encoding='utf-8') as source:
        assert "given ['x'] 2" in source.read()


@pytest.mark.root
def test_S2_52_a_folder_of_somebody_else(desk, place):
    shutil.rmtree(FOLDER, ignore_errors=True)
    for make in (lambda: os.mkdir(FOLDER), lambda: os.symlink(place, FOLDER)):
        make()
        scheduler = desk.start('--state-file', f'state{os.path.islink(FOLDER)}')
        assert f'{FOLDER} ' in ''.join(scheduler.said)
        desk.lines(f'0,job.py,,{os.path.islink(FOLDER)}')
        job = queued(scheduler)
        assert desk.box.wait(job)['state'] == 'done' and FOLDER not in desk.box.job(job)['log']
        scheduler.stop()
        if os.path.islink(FOLDER):
            os.unlink(FOLDER)
        else:
            os.rmdir(FOLDER)


def test_S2_52_jobs_on_other_machines_have_their_logs_there(someone, place):
    """These do not have the folder; it is said where the logs are."""
    with Cluster(1, client=someone) as cluster:
        desk = Desk(cluster.box, place)
        scheduler = desk.start()
        desk.lines('0,job.py')
        job = cluster.box.wait(queued(scheduler))
        desk.close()
        assert (job['state'], job['node']) == ('done', 'n1') and FOLDER not in job['log'], job
        assert 'logs are stored by mgpu' in ''.join(scheduler.said)


def test_S2_53_S2_54_what_is_wrong_is_said(desk):
    scheduler = desk.start()
    desk.lines('0,nowhere.py', '0,job.py,,exit=4')
    assert 'jobs.txt:1: script nowhere.py' in scheduler.until('nowhere')
    job = queued(scheduler)
    scheduler.until(f'job {job} failed .*exit code 4')
    assert re.search(rf'{job} +failed', desk.call('status').out)
