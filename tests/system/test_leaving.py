# SPDX-License-Identifier: MIT
"""What happens to a job when the program that shows it, or waits for it, goes away."""

import concurrent.futures
import glob
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import tempfile

import pytest

import harness
import leaving
from leaving_calls import CALLS
from slurm import Slurm

# The folder of the logs of `scheduler start` is one for the machine.
pytestmark = pytest.mark.xdist_group('test_s2')
GPUS, ARGUMENTS = 'sim:8x24G', ('--allow-root-jobs',) if harness.IS_ROOT else ()
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def read_line(process):
    assert select.select([process.stdout], [], [], harness.DEADLINE_S)[0], 'nothing on standard output'
    return process.stdout.readline()


def talking_job(box, gate):
    """Prints a line, and two more when the gate opens."""
    job = box.submit('--', 'sh', '-c', f'echo one; read x <{gate.path}; echo two; read x <{gate.path}; echo three')
    box.wait(job, 'running')
    return job


@pytest.mark.parametrize('words', [('attach',), ('attach', '-r')], ids=' '.join)
@pytest.mark.parametrize('number', SIGNALS, ids=lambda number: number.name)
def test_a_signal_for_attach_leaves_the_job(box, gate, words, number):
    job = talking_job(box, gate)
    viewer = box.popen(*words, job)
    assert read_line(viewer) == b'one\n'
    viewer.send_signal(number)
    assert viewer.wait(harness.DEADLINE_S) == 0 and 'which continues' in viewer.communicate()[1].decode()
    assert box.job(job)['state'] == 'running'
    gate.open(2)
    assert box.wait(job)['state'] == 'done' and box.output(job) == 'one\ntwo\nthree\n'


@pytest.mark.parametrize('words', [('attach',), ('attach', '-r')], ids=' '.join)
def test_a_reader_of_attach_that_goes_leaves_the_job(box, gate, words):
    job = talking_job(box, gate)
    viewer = box.popen(*words, job)
    assert read_line(viewer) == b'one\n'
    viewer.stdout.close()
    gate.open()
    assert viewer.wait(harness.DEADLINE_S) == 0, viewer.stderr.read()
    assert box.job(job)['state'] == 'running'
    gate.open()
    assert box.wait(job)['state'] == 'done'


def ignore(*numbers):
    """For preexec_fn: as nohup, and shells that start something in the background, do it."""
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers]


@pytest.mark.parametrize('number', SIGNALS, ids=lambda number: number.name)
def test_a_signal_ignored_from_the_start_does_not_end_a_run(box, gate, number):
    run = box.popen('run', '--', 'sh', '-c', f'echo one; read x <{gate.path}; echo two', preexec_fn=ignore(number))
    assert read_line(run) == b'one\n'
    run.send_signal(number)
    gate.open()
    out, err = run.communicate(timeout=harness.DEADLINE_S)
    assert (run.returncode, out) == (0, b'two\n'), err


@pytest.mark.parametrize('number', SIGNALS, ids=lambda number: number.name)
def test_a_signal_ignored_from_the_start_does_not_withdraw_a_run(box, gate, number):
    blocker = box.post_job(gate.command(), gpus=8)
    box.wait(blocker, 'running')
    run = box.popen('run', '-g', '1', '--', 'echo', 'ran', preexec_fn=ignore(number))
    box.await_news(lambda: [job for job in box.open_jobs() if job > blocker], run)
    run.send_signal(number)
    gate.open()
    out, err = run.communicate(timeout=harness.DEADLINE_S)
    assert (run.returncode, out) == (0, b'ran\n'), err


def test_a_run_under_nohup_survives_the_terminal_that_its_shell_loses(box, place):
    """As people do it: an interactive shell, which sends SIGHUP to what it has started, too."""
    folder = leaving.Folder(f'{place}/job')
    with open(f'{place}/script', 'w', encoding='utf-8') as file:
        file.write(leaving.SCRIPT)
    user = harness.User(pwd.getpwuid(os.geteuid()).pw_name)
    env = {**user.environment(), 'MGPU_SOCKET': box.socket, 'ASAN_OPTIONS': 'exitcode=99', 'PS1': '$ ', 'HISTFILE': ''}
    shell = leaving.Program(['/bin/bash', '--norc', '-i'], env, place, has_terminal=True, is_on_it=True)
    shell.type(f'nohup {harness.programs()}/mgpu run -- sh {place}/script {place}/job >out 2>&1 & echo $! >pid\n'.encode())
    harness.await_text(f'{place}/out', 'one')
    with open(f'{place}/pid', encoding='utf-8') as file:
        run = int(file.read())
    shell.close_terminal()
    shell.await_end()
    shell.close()
    folder.open(2)
    assert harness.wait_process(run)
    with open(f'{place}/out', encoding='utf-8') as file:
        assert [line for line in file.read().split('\n') if ':' not in line] == ['one', 'two', 'three', '']
    folder.close()


def test_a_terminal_that_sends_two_hangups_leaves_the_job_its_grace_period(box, place, gate):
    """The kernel sends one, and the shell another; and what read the output has gone, too."""
    text = f'trap "read word < {gate.path}; echo saved > {place}/saved; exit 3" TERM; echo one; sleep 1000 & wait'
    run = box.popen('run', '--', 'sh', '-c', text)
    assert read_line(run) == b'one\n'
    run.send_signal(signal.SIGHUP)
    run.stdout.close()
    job = max(box.open_jobs())
    box.wait(job, 'stopping')
    run.send_signal(signal.SIGHUP)
    run.send_signal(signal.SIGTERM)
    assert box.job(job)['state'] == 'stopping'
    gate.open()
    assert run.wait(harness.DEADLINE_S) == 128 + signal.SIGHUP
    with open(f'{place}/saved', encoding='utf-8') as file:
        assert file.read() == 'saved\n'


def test_a_run_that_ignores_the_loss_of_its_reader_goes_on(box, gate):
    text = f'echo one; read word < {gate.path}; echo two; read word < {gate.path}; echo three'
    run = box.popen('run', '--', 'sh', '-c', text, preexec_fn=ignore(signal.SIGPIPE))
    assert read_line(run) == b'one\n'
    job = max(box.open_jobs())
    run.stdout.close()
    gate.open(2)
    assert run.wait(harness.DEADLINE_S) == 125
    assert 'Broken pipe; it is still available: mgpu logs' in run.stderr.read().decode()
    assert box.job(job)['state'] == 'done' and box.output(job) == 'one\ntwo\nthree\n'


def test_a_step_from_outside_takes_signals_of_everybody(box, place, gate):
    """A supervisor of the system is in no session of the user."""
    job = box.submit('-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    slurm = Slurm(box, place)
    step = subprocess.Popen(
        [f'{slurm.folder}/srun', f'--jobid={job}', 'sh', '-c', 'trap "echo two; exit 3" TERM; echo one; sleep 1000 & wait'],
        cwd=place, env=slurm.environment(), stdout=subprocess.PIPE, start_new_session=True, **box.client.popen_arguments())
    assert read_line(step) == b'one\n'
    step.send_signal(signal.SIGTERM)
    assert read_line(step) == b'two\n' and step.wait(harness.DEADLINE_S) == 3
    assert box.job(job)['state'] == 'running'
    gate.open()


@pytest.mark.parametrize('words', [('srun', 'true'), ('salloc', 'true')], ids=lambda words: words[0])
def test_ctrl_c_while_an_immediate_job_waits_withdraws_it(box, gate, place, words):
    blocker = box.post_job(gate.command(), gpus=8)
    box.wait(blocker, 'running')
    name, *command = words
    slurm = Slurm(box, place)
    process = subprocess.Popen([f'{slurm.folder}/{name}', '--immediate=600', '--gres=gpu:1', *command], cwd=place,
                               env=slurm.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               **box.client.popen_arguments())
    job = box.await_news(lambda: [job for job in box.open_jobs() if job > blocker], process)[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(harness.DEADLINE_S) != 0
    assert box.wait(job)['state'] == 'cancelled', process.communicate()
    gate.open()


# --- the sources ---

# Files of the programs (src/cli and compat) that may wait for signals, and those that may cancel a job: by the table, or because
# somebody has said so.
WAITING = {'src/cli/api/leaving.c', 'src/cli/api/leaving_signals.c', 'src/cli/follow/input_sender.c', 'src/cli/ports/notebook.c',
           'compat/slurm/salloc.c', 'compat/step/step_peer.c', 'compat/step/step_run.c', 'compat/stepd/stepd.c', 'src/cli/top/run.c'}
CANCELLING = {
    'src/cli/follow/going.c': 'by the table', 'src/cli/ports/notebook.c': 'by the table', 'compat/slurm/salloc.c': 'by the table',
    'src/cli/follow/input_sender.c': 'a job whose input is lost', 'src/cli/follow/session_keys.c': 'Ctrl-] k, with a question',
    'src/cli/submit/plan.c': 'jobs of a submission that failed', 'src/cli/verbs/cancel.c': 'mgpu cancel'}


def sources_with(pattern):
    """The files of the programs with code, not comments, that matches."""
    found = set()
    for room in ('src/cli', 'compat'):
        for path in glob.glob(f'{harness.ROOT}/{room}/**/*.c', recursive=True):
            with open(path, encoding='utf-8') as file:
                text = re.sub(r'^ */\*.*?\*/', '', file.read(), flags=re.S | re.M)
            if re.search(pattern, text):
                found.add(os.path.relpath(path, harness.ROOT))
    return {path for path in found if not path.startswith('compat/tests/')}


def test_no_other_source_waits_for_signals():
    assert sources_with(r'\b(signalfd|sigwait\w*|sigtimedwait)\(|\{[^}]*\bSIGHUP,') <= WAITING


def test_each_command_that_refreshes_has_a_row():
    watching = {path for path in sources_with(r'\bwatch_run\(call') if path != 'src/cli/follow/watch.c'}
    assert watching, 'no source calls watch_run any more'
    missing = {path for path in watching
               if not {(f'mgpu {os.path.basename(path)[:-2]}', '-w'), (os.path.basename(path)[:-2], '')} & set(CALLS)}
    assert not missing, f'no row in src/cli/api/leaving.c: {missing}'


def test_no_other_source_cancels_a_job():
    assert sources_with(r'/cancel["?]') == set(CANCELLING)


# --- the table ---

ROWS = leaving.read_table()
SIDE_BY_SIDE = 12
SLURM = ('srun', 'salloc', 'sbatch', 'sattach')


def is_walked(row, way):
    """Not what cannot be: a terminal has no reader that could go alone, and one who has gone gets no second signal."""
    terminal = CALLS[row[:2]].terminal
    if way == 'no reader':
        return terminal != 'always'
    if way == leaving.LOST:
        return terminal != 'always' and row[0] not in ('mgpu run', 'mgpu exec') and not CALLS[row[:2]].has_input
    return way != 'again' or ROWS[row]['Ctrl-C'] not in ('nothing', 'ends')


def effect_of(row, way):
    return ROWS[row].get('SIGHUP' if way == leaving.LOST else way, 'nothing')


CASES = [(row, way) for row in ROWS for way in (*leaving.WAYS, leaving.LOST, leaving.IGNORED) if is_walked(row, way)]


class Walk:
    """All cases, side by side, at two instances: in one, GPUs are free, in the other every job with a GPU waits."""

    rows, calls = ROWS, CALLS

    def __init__(self, place):
        self.place, self.boxes = place, []
        self.script = f'{place}/script'
        with open(self.script, 'w', encoding='utf-8') as file:
            file.write(leaving.SCRIPT)
        os.mkdir(f'{place}/slurm')
        self.free, self.full = self.make_box('sim:64x24G'), self.make_box('sim:1x24G')
        os.mkdir(f'{place}/compat')
        self.free.mgpu('compat', 'install', f'{place}/compat', check=True)
        self.slurm = Slurm(self.free, f'{place}/slurm').folder
        self.full.wait(self.full.post_job(['sleep', '1000000'], gpus=1), 'running')

    def make_box(self, gpus):
        arguments = ('--allow-root-jobs',) if harness.IS_ROOT else ()
        box = harness.Instance(gpus, listen=f'127.0.0.1:{harness.free_port()}', arguments=arguments)
        self.boxes.append(box)
        return box.start()

    def find(self, name):
        """The program of that name: srun is one of Slurm's, or that of mgpu-compat."""
        folder = self.slurm if name in SLURM else harness.programs() if name == 'mgpu' else f'{self.place}/compat'
        return f'{folder}/{name.removeprefix("compat ")}'

    def is_deaf(self, case):
        """Whether it stays, as it has no interest in what comes."""
        is_typed_into_nothing = case.called == '-r' and case.is_typed()
        is_step_unread = case.called == 'as a step' and case.way == 'no reader'
        return is_typed_into_nothing or is_step_unread

    def run(self):
        cases = [leaving.Case(self, row, way, effect_of(row, way), number)
                 for number, (row, way) in enumerate(CASES)]
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return dict(zip(CASES, pool.map(leaving.Case.run, cases), strict=True))

    def close(self):
        for box in self.boxes:
            box.close()


@pytest.fixture(scope='module')
def walked():
    place = tempfile.mkdtemp(prefix='mgpu-p-', dir='/tmp')
    os.chmod(place, 0o755)
    walk = Walk(place)
    results = walk.run()
    walk.close()
    shutil.rmtree(place, ignore_errors=True)
    return results


def test_each_row_of_the_table_can_be_called():
    assert {row[:2] for row in ROWS} == set(CALLS)


def test_a_second_ctrl_c_does_no_less_than_the_first():
    for row, effects in ROWS.items():
        assert effects['again'] == effects['Ctrl-C'] or effects['Ctrl-C'] in ('SIGINT', 'is shown'), row


@pytest.mark.parametrize('row, way', CASES, ids=lambda word: word if isinstance(word, str) else ', '.join(filter(None, word)))
def test_a_program_that_goes_away_does_to_its_job_what_the_table_says(walked, row, way):
    failure = walked[row, way]
    assert failure is None, f'{row}, {way}: expected {effect_of(row, way)}: {failure}'
