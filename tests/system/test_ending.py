# SPDX-License-Identifier: MIT
"""However a job is ended and whatever starts its program: the program has its grace to save its work, the rest
leaves when it has, and the job tells who was signalled and who had to be killed."""

import os
import shlex
import shutil
import signal

import harness
import pytest
import slurm

GPUS = 'sim:40x8G'
UP_S = 120  # torchrun on a busy machine

# Saves for a while when it is told to, and prints meanwhile: a save that fails with its output has failed. A second
# attempt has nothing to do.
SAVER = '''
import os, signal, sys, time
place, name = sys.argv[1:3]
done = False
def save(number, frame):
    global done
    print('saving', flush=True)
    end = time.monotonic() + float(os.environ.get('SAVE_S', '0.5'))
    while time.monotonic() < end:
        time.sleep(0.05)
    print('saved', flush=True)
    with open(f'{place}/{name}.saved', 'a') as file:
        file.write(f'{signal.Signals(number).name}\\n')
    if number == signal.SIGTERM:
        sys.exit(0)
    done = True
if os.path.exists(f'{place}/{name}.saved'):  # the next attempt; its number says less: one that never ran may have been before it
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGUSR1, save)
open(f'{place}/{name}.up', 'w').close()
while not done:
    time.sleep(0.05)
'''

LAUNCHER = '''
import subprocess, sys
sys.exit(subprocess.run(sys.argv[1:]).returncode)
'''

# As `conda run` starts its commands.
CAPTURING_LAUNCHER = '''
import subprocess, sys
with subprocess.Popen(['bash', '-c', 'exec "$@"', 'x', *sys.argv[1:]], stdout=subprocess.PIPE) as child:
    for line in child.stdout:
        print(line.decode(), end='', flush=True)
sys.exit(child.returncode)
'''

MULTIPROCESSING = '''
import multiprocessing, runpy, sys
def work(argv):
    sys.argv = argv
    runpy.run_path(argv[0])
if __name__ == '__main__':
    child = multiprocessing.get_context('fork').Process(target=work, args=(sys.argv[1:],))
    child.start()
    child.join()
    sys.exit(child.exitcode)
'''

# What starts the saver. {save} is its command line, {place} and {name} are its arguments.
SCRIPTS = {
    'bash': '#!/bin/bash\n{save}\necho "left with $?"\n',
    'sh': '#!/bin/sh\n{save}\necho "left with $?"\n',
    'bash-exec': '#!/bin/bash\nexec {save}\n',
    'sh-exec': '#!/bin/sh\nexec {save}\n',
    'background': '#!/bin/bash\n{save} &\nwait\n',
    'impatient-trap': "#!/bin/bash\ntrap 'exit 0' TERM\n{save} &\nwait\n",
    'waiting-trap': "#!/bin/bash\ntrap 'wait; exit 0' TERM\n{save} &\nwait\n",
    'exit-trap': "#!/bin/bash\ntrap 'true' EXIT\n{save}\n",
    'tee': '#!/bin/bash\n{save} | tee {place}/{name}.tee\n',
    'tee-sh': '#!/bin/sh\n{save} 2>&1 | tee {place}/{name}.tee\n',
    'two-readers': '#!/bin/bash\n{save} 2>&1 | cat | tee {place}/{name}.tee\n',
    'substitution': '#!/bin/bash\nexec > >(tee {place}/{name}.tee) 2>&1\n{save}\n',
    'nested': '#!/bin/bash\nbash -c "sh -c \'{save}; true\'; true"\ntrue\n',
    'subshell': '#!/bin/bash\n(cd / && {save}; true)\n',
    'setsid': '#!/bin/bash\n(setsid {save} &)\nuntil [ -e {place}/{name}.saved ]; do sleep 0.1; done\n',
    'xargs': '#!/bin/bash\necho {name} | xargs -n 1 python3 {place}/save.py {place}\n',
    'find': '#!/bin/bash\nfind {place}/save.py -exec python3 {{}} {place} {name} \\;\n',
    'make': '#!/bin/bash\nprintf "all:\\n\\t%s\\n" "{save}" > {place}/{name}.mk\nmake -s -f {place}/{name}.mk\n',
    'timeout': '#!/bin/bash\ntimeout 1h {save}\ntrue\n',
    'env-nice': '#!/bin/bash\nenv A=b nice -n 1 {save}\ntrue\n',
    'launcher': '#!/bin/bash\npython3 {place}/launcher.py {save}\n',
    'capturing-launcher': '#!/bin/bash\npython3 {place}/capturing.py {save}\n',
    'multiprocessing': '#!/bin/bash\npython3 {place}/processes.py {place}/save.py {place} {name}\n',
}
COMMANDS = {
    'python': ['python3', '{place}/save.py', '{place}', '{name}'],
    'one-word-sh': ['sh', '-c', '{save}; true'],
    'one-word-bash': ['bash', '-c', '{save}; true'],
}
# Slower ones: each is ended once.
SLOW = {
    'torchrun': ('torchrun', '#!/bin/bash\ntorchrun --nnodes 1 --nproc_per_node 1 -r 1 -t 1 --log_dir {place}/{name}.d {place}/save.py {place} {name}\n'),
    'mpirun': ('mpirun', '#!/bin/bash\nmpirun --oversubscribe -n 1 {save}\n'),
    'parallel': ('parallel', '#!/bin/bash\nparallel --will-cite -j 1 python3 {place}/save.py {place} ::: {name}\n'),
    'screen': ('screen', '#!/bin/bash\nscreen -D -m {save}\n'),
    'detached-screen': ('screen', '#!/bin/bash\nscreen -d -m {save}\nsleep 1000 & wait\n'),
}


class Field:
    """A folder for savers, and the jobs that start them."""

    def __init__(self, box, place):
        self.box, self.place, self.jobs = box, str(place), {}
        for name, text in (('save.py', SAVER), ('launcher.py', LAUNCHER), ('capturing.py', CAPTURING_LAUNCHER),
                           ('processes.py', MULTIPROCESSING)):
            self.write(name, text)

    def write(self, name, text):
        path = f'{self.place}/{name}'
        with self.box.client.acting(), open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def fill(self, text, name):
        save = f'python3 {self.place}/save.py {self.place} {name}'
        return text.format(save=save, place=self.place, name=name)

    def script(self, name, text):
        return [self.write(f'{name}.sh', self.fill(text, name))]

    def submit(self, *options):
        """One job for each row of the tables."""
        rows = {name: self.script(name, text) for name, text in SCRIPTS.items()}
        rows.update({name: [self.fill(word, name) for word in words] for name, words in COMMANDS.items()})
        for name, command in rows.items():
            self.start(name, '-M', '64M', *options, command=command)
        return self

    def start(self, name, *options, command):
        self.jobs[name] = self.box.submit('-c', '0.05', '--chdir', self.place, *options, '--', *command)

    def is_up(self, name):
        return os.path.exists(f'{self.place}/{name}.up')

    def await_up(self):
        for name, job in self.jobs.items():
            harness.until(lambda n=name, j=job: self.is_up(n) or self.box.job(j)['state'] in ('done', 'failed'), f'{name} is up', UP_S)
            assert self.box.wait(job, 'running,done,failed')['state'] == 'running', (self.box.job(job), self.box.output(job))
        return self

    def saved(self, name):
        try:
            with open(f'{self.place}/{name}.saved', encoding='utf-8') as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def finish(self, number='SIGTERM', **expected):
        """Waits until all have ended, and checks that each has saved its work."""
        wrong = {}
        for name, job in self.jobs.items():
            ended = self.box.wait(job)
            found = {key: ended[key] for key in expected}
            if number not in self.saved(name) or found != expected:
                wrong[name] = (self.saved(name), found, ended['message'], self.box.output(job), told(self.box.job(job)))
            elif number not in ' '.join(told(self.box.job(job))):
                wrong[name] = ('nothing tells of it', told(self.box.job(job)))
        assert not wrong, wrong


def told(job):
    """Who was signalled, in its attempts."""
    return [event['signals'] for event in job['events'] if event.get('signals')]


@pytest.fixture
def field(box, place):
    return Field(box, place)


# --- every way of ending, for every way of starting ---

def cancel(field):
    for job in field.jobs.values():
        field.box.mgpu('cancel', job, check=True)
    field.finish(state='cancelled', message=None)


def requeue(field):
    for job in field.jobs.values():
        assert field.box.api('POST', f'/jobs/{job}/requeue', {}).status == 200
    field.finish(state='done', attempt=2)


def limit_time(field):
    """Its time is over a moment from now."""
    for job in field.jobs.values():
        field.box.end_soon(job)


def end_by_limit(field):
    limit_time(field)
    field.finish(ended_by='time_limit', message=None)


def continue_after_limit(field):
    limit_time(field)
    field.finish(attempt=2)  # which has little time left


def preempt(field):
    job = field.box.submit('-g', 40, '--', 'true')
    field.box.wait(job)
    field.finish(state='done', attempt=2)


def suspend_and_cancel(field):
    for job in field.jobs.values():
        field.box.mgpu('suspend', job, check=True)
    cancel(field)


def send_signal(field):
    for job in field.jobs.values():
        field.box.mgpu('signal', job, 'USR1', check=True)
    field.finish('SIGUSR1', state='done', exit_code=0)


def warn(field):
    for job in field.jobs.values():
        field.box.end_soon(job, warning_ms=60000)
    field.finish('SIGUSR1', state='done', exit_code=0)


WAYS = {
    'cancel': (cancel, []),
    'requeue': (requeue, []),
    'checkpoint': (requeue, ['--checkpoint']),
    'time limit': (end_by_limit, ['-t', '1h']),
    'time limit that requeues': (continue_after_limit, ['-t', '1h', '--on-timeout', 'requeue', '--max-requeues', '1']),
    'preemption': (preempt, ['--preemptible', '-g', '1']),
    'suspended': (suspend_and_cancel, []),
    'signal': (send_signal, []),
    'warning': (warn, ['-t', '1h', '--signal', 'USR1@60s']),
}


@pytest.mark.parametrize('way', WAYS)
def test_the_innermost_program_saves_its_work(field, way):
    end, options = WAYS[way]
    words = options if '-g' in options else ['-g', '0', *options]
    end(field.submit(*words).await_up())


@pytest.mark.parametrize('name', SLOW)
def test_programs_that_start_others_let_them_save(field, name):
    program, text = SLOW[name]
    if not shutil.which(program):
        pytest.skip(f'{program} is not installed')
    field.start(name, '-g', '0', '-c', '1', '-e', 'SAVE_S=1.5', command=field.script(name, text))
    cancel(field.await_up())


# --- what is told ---

def test_who_had_to_be_killed_is_named(field):
    """The process that takes too long, and not the shell above it."""
    field.start('late', '-g', '0', '--grace', '100ms', '-e', 'SAVE_S=20', command=field.script('late', SCRIPTS['bash']))
    field.await_up()
    job = field.jobs['late']
    field.box.mgpu('cancel', job, check=True)
    ended = field.box.wait(job)
    assert ended['message'] == '1 process (python3) had to be killed after the grace period of 100ms', ended
    assert told(field.box.job(job)) == ['SIGTERM to 1 process (python3)']
    done = field.box.mgpu('wait', job)
    assert 'cancelled by' in done.err and '1 process (python3) had to be killed' in done.err, done


def test_what_a_script_leaves_running_is_ended_and_named(field):
    path = field.write('left.sh', '#!/bin/bash\nsleep 1000 &\nsleep 1000 &\necho started\n')
    done = field.box.mgpu('run', '-g', '0', '--', path)
    assert done.code == 0 and '2 processes (sleep) that the command left running were ended' in done.err, done
    job = field.box.submit('-g', '0', '--', path)
    assert field.box.mgpu('wait', job).err.count('left running') == 1
    assert '2 processes (sleep) that the command left running' in field.box.mgpu('show', job, check=True).out


def test_a_warning_that_nobody_handles_ends_nothing(field, gate):
    job = field.box.submit('-g', '0', '-t', '1h', '--signal', 'USR1@3599s', '--', *gate.command('sleep 1.2'))
    field.box.wait(job, 'running')
    gate.open()
    assert field.box.wait(job)['exit_code'] == 0
    assert told(field.box.job(job)) == ['SIGUSR1 to no process: none handles it']


# --- terminals, steps, suspension ---

def test_the_end_of_a_script_on_a_terminal_hangs_up_nobody(field):
    for name in ('bash', 'sh', 'tee'):
        field.start(name, '-g', '0', '--tty', command=field.script(name, SCRIPTS[name]))
    cancel(field.await_up())


def test_the_death_of_an_init_does_not_hang_up_a_suspended_job(field):
    """The kernel hangs up process groups that are stopped and lose their session."""
    field.start('bash', '-g', '0', command=field.script('bash', SCRIPTS['bash']))
    job = field.await_up().jobs['bash']
    field.box.mgpu('suspend', job, check=True)
    child = next(pid for pid, line in harness.processes(f'{field.place}/save.py').items())
    pid = int(status_of(child, 'PPid'))
    harness.until(lambda: status_of(pid, 'State').startswith('T'), 'it is stopped')
    init = int(status_of(pid, 'PPid'))
    assert harness.process_name(init) == 'mgpu-init'
    os.kill(init, signal.SIGKILL)
    assert harness.wait_process(init)
    field.box.mgpu('continue', job, check=True)
    harness.until(lambda: status_of(pid, 'State').startswith('S'), 'it goes on')
    cancel(field)


def status_of(pid, key):
    with open(f'/proc/{pid}/status', encoding='utf-8') as source:
        return next(line.split(':', 1)[1].strip() for line in source if line.startswith(f'{key}:'))


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def batch(field, cluster, name, text, *options):
    """A job of sbatch whose script is `text`."""
    path = field.write(f'{name}.sh', field.fill(text, name))
    field.jobs[name] = cluster.submit('-o', f'{field.place}/{name}.out', *options, path)
    return field.await_up().jobs[name]


def test_steps_save_their_work_when_a_batch_script_is_cancelled(field, cluster):
    batch(field, cluster, 'step', '#!/bin/bash\nsrun {save}\necho not reached\n')
    cancel(field)
    assert 'not reached' not in cluster.read('step.out')


@pytest.mark.parametrize('options, script, step', [([], 'after', 'saved'), (['-f'], '', 'saved')], ids=['steps', 'full'])
def test_scancel_signals_the_steps_and_with_full_the_script(field, cluster, options, script, step):
    job = batch(field, cluster, 'steps', '#!/bin/bash\nsrun {save}\necho after\n')
    cluster.out('scancel', '-s', 'USR1', *options, job)
    cluster.finish(job)
    if not options:
        assert field.saved('steps') == ['SIGUSR1']
        assert cluster.read('steps.out').splitlines() == ['saving', 'saved', 'after']
    else:
        assert cluster.finish(job)['signal'] == int(signal.SIGUSR1)


def test_scancel_kills_a_step_that_does_not_handle_the_signal_and_not_the_script(field, cluster, gate):
    path = field.write('plain.sh', f'#!/bin/bash\nsrun sh -c "touch {field.place}/plain.up; exec sleep 1000"\necho "status $?"\n')
    field.jobs['plain'] = cluster.submit('-o', f'{field.place}/plain.out', path)
    job = field.await_up().jobs['plain']
    harness.until(lambda: harness.processes('sleep 1000'), 'it sleeps')
    cluster.out('scancel', '-s', 'USR1', job)
    assert cluster.finish(job)['exit_code'] == 0
    assert 'status 138' in cluster.read('plain.out')


def test_scancel_batch_signals_the_script_alone(field, cluster):
    job = batch(field, cluster, 'alone', "#!/bin/bash\ntrap 'echo trapped' USR1\ntouch {place}/{name}.up\n{save} &\nwait\nkill -TERM $!\nwait\n")
    harness.until(lambda: harness.processes(f'{field.place}/save.py'), 'the program runs')
    cluster.out('scancel', '-b', '-s', 'USR1', job)
    cluster.finish(job)
    assert cluster.read('alone.out').splitlines()[0] == 'trapped'
    assert 'SIGUSR1' not in field.saved('alone')


def test_a_handler_of_sigterm_may_requeue_the_job_that_is_being_requeued(field, cluster):
    text = ("#!/bin/bash\n[ -n \"$SLURM_RESTART_COUNT\" ] && exit 0\n"
            "trap 'scontrol requeue $SLURM_JOB_ID; echo \"status $?\"; exit 0' TERM\ntouch {place}/{name}.up\nsleep 1000 &\nwait\n")
    job = batch(field, cluster, 'again', text, '--open-mode=append')
    cluster.out('scontrol', 'requeue', job)
    ended = cluster.finish(job)
    assert (ended['state'], ended['attempt']) == ('done', 2), ended
    assert 'status 0' in cluster.read('again.out')


def test_the_time_limit_of_a_step_ends_the_step(field, cluster):
    path = field.write('limit.sh', '#!/bin/bash\nsrun -t 0:01 sleep 1000\necho "status $?"\n')
    job = cluster.submit('-o', f'{field.place}/limit.out', path)
    cluster.finish(job)
    out = cluster.read('limit.out')
    assert f'STEP {job}.0 ON' in out and 'DUE TO TIME LIMIT ***' in out and 'status 143' in out, out
