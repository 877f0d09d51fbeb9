# SPDX-License-Identifier: MIT
"""How each program of docs/leaving.md is called by test_leaving.py: a row here for each command and way of calling it."""

from leaving import LOST, Call
from test_notebook import STAND_IN

GIVEN, GIVEN_TERMINAL = 'given', 'given on a terminal'


def run(*options):
    return lambda case: ['mgpu', 'run', '-g', 1, *options, '--', *case.script()]


def of_job(*words):
    return lambda case: ['mgpu', *words, case.job]


def look(*words):
    return lambda case: ['mgpu', *words]


def of_process(*words):
    return lambda case: ['mgpu', *words, case.job, '--', *case.process_script()]


def slurm(*words):
    return lambda case: [*words, '-J', f'case-{case.number}', '--gres=gpu:1', *case.script()]


def is_kept(case):
    """Whether the program's process notes what would end it."""
    return case.way in ('SIGTERM', 'SIGHUP', LOST)


def salloc(case):
    return ['salloc', '-J', f'case-{case.number}', '--gres=gpu:1', *case.process_script(is_kept(case))]


def sbatch(case):
    script = case.write('batch', f'#!/bin/sh\nexec {" ".join(case.script())}\n')
    return ['sbatch', '--wait', '-o', '/dev/null', '-J', f'case-{case.number}', '--gres=gpu:1', script]


def shell(case):
    case.write('shell', f'#!/bin/sh\nexec {" ".join(case.script())}\n')
    return ['mgpu', 'shell', '-g', 1]


def notebook(*options):
    def words(case):
        case.write('jupyter-lab', STAND_IN % '')
        return ['mgpu', 'notebook', '--no-browser', '-g', 1, '-J', f'case-{case.number}', *options]
    return words


def scheduler(case):
    job = case.write('job.py', f'import os\nos.execvp("sh", {case.script()})\n')
    case.write('jobs.txt', f'0,{job}\n')
    return ['scheduler', 'start', '--monitor-interval', '1', '--state-interval', '1']


def mgpu_srun(*options):
    return lambda case: ['mgpu_srun', '--gpu-ids', case.number % 64 if case.state == 'runs' else 0, *options, '--', *case.script()]


def simple(*options):
    return lambda case: ['mgpu_simple_client', 'submit', '--gpus', 1, *options, f'exec {" ".join(case.script())}']


def ssh_proxy(case):
    """The job finds another sshd in its PATH."""
    case.write('sshd', f'#!/bin/sh\nexec {" ".join(case.process_script())}\n')
    return ['mgpu', 'ssh-proxy', case.job]


def in_path(case):
    return {'PATH': f'{case.place}:/usr/local/bin:/usr/bin:/bin'}


CALLS = {
    ('mgpu run', 'without a terminal'): Call(run()),
    ('mgpu run', '--ctrl-c detach, without a terminal'): Call(run('--ctrl-c', 'detach')),
    ('mgpu run', '--ctrl-c cancel, without a terminal'): Call(run('--ctrl-c', 'cancel')),
    ('mgpu run', 'on a terminal, or -i'): Call(run(), terminal='always'),
    ('mgpu run', '--ctrl-c detach, on a terminal'): Call(run('--ctrl-c', 'detach'), terminal='always'),
    ('mgpu shell', ''): Call(shell, terminal='always', env=lambda case: {'SHELL': f'{case.place}/shell'}),
    ('mgpu submit', ''): Call(lambda case: ['mgpu', 'submit', '-g', 1, '--', *case.script()], ends=True),
    ('mgpu attach', 'to a job without a terminal'): Call(of_job('attach'), job=GIVEN),
    ('mgpu attach', 'to a terminal'): Call(of_job('attach'), job=GIVEN_TERMINAL, terminal='always'),
    ('mgpu attach', '-r'): Call(of_job('attach', '-r'), job=GIVEN_TERMINAL, terminal='always'),
    ('mgpu logs', '-f'): Call(of_job('logs', '-f'), job=GIVEN),
    ('mgpu follow', ''): Call(of_job('follow'), job=GIVEN),
    ('mgpu wait', ''): Call(of_job('wait'), job=GIVEN, ready=None),
    ('mgpu exec', 'without a terminal'): Call(of_process('exec'), job=GIVEN, folder='process'),
    ('mgpu exec', 'on a terminal'): Call(of_process('exec'), job=GIVEN, folder='process', terminal='always'),
    ('mgpu ssh-proxy', ''): Call(ssh_proxy, job=GIVEN, folder='process', has_input=True, env=in_path),
    ('mgpu forward', ''): Call(lambda case: ['mgpu', 'forward', case.job, '0:1'], job=GIVEN, ready='->'),
    ('mgpu notebook', ''): Call(notebook(), ready='http://', is_script=False, env=in_path),
    ('mgpu notebook', '--keep or --connect'): Call(notebook('--keep'), ready='http://', is_script=False, env=in_path),
    ('mgpu ps', '-w'): Call(look('ps', '-w1'), job=GIVEN, ready='NAME'),
    ('mgpu gpus', '-w'): Call(look('gpus', '-w1'), job=GIVEN, ready='GPU'),
    ('mgpu nodes', '-w'): Call(look('nodes', '-w1'), job=GIVEN, ready='NODE'),
    ('mgpu top', ''): Call(look('top'), job=GIVEN, ready='\x1b', terminal='always'),
    ('mgpu web', ''): Call(look('web', '--no-browser'), job=GIVEN, ends=True),
    ('mgpu mcp', ''): Call(look('mcp'), ready='"result"', has_input=True),
    ('srun', 'as a job'): Call(slurm('srun')),
    ('srun', 'as a job, -X'): Call(slurm('srun', '-X')),
    ('srun', 'as a job, --pty'): Call(slurm('srun', '--pty'), terminal='always'),
    ('srun', 'as a step'): Call(lambda case: ['srun', f'--jobid={case.job}', *case.process_script(is_kept(case))], job=GIVEN,
                                folder='process', terminal='keys', refuses=('HUP',)),
    ('salloc', ''): Call(salloc, folder='process', terminal='keys'),
    ('sbatch', '--wait'): Call(sbatch, ready='Submitted'),
    ('sattach', ''): Call(lambda case: ['sattach', f'{case.job}.0'], job=GIVEN),
    ('mgpu_srun', ''): Call(mgpu_srun(), ends=True),
    ('mgpu_srun', '--interactive'): Call(mgpu_srun('--interactive')),
    ('mgpu_queue', ''): Call(lambda case: ['mgpu_queue'], job=GIVEN, ends=True),
    ('mgpu_simple_client submit', ''): Call(simple(), ends=True),
    ('mgpu_simple_client submit', '--interactive'): Call(simple('--interactive')),
    ('mgpu_simple_client monitor', ''): Call(lambda case: ['mgpu_simple_client', 'monitor', case.job], job=GIVEN),
    ('tgpu', 'submit'): Call(lambda case: ['tgpu', 'submit', '--gpus', 1, '--', *case.script()], ends=True),
    ('srun', 'of mgpu-compat'): Call(lambda case: ['compat srun', '-n', 1, *case.process_script(is_kept(case))], folder='process',
                                     terminal='keys'),
    ('scheduler start', ''): Call(scheduler, ready='started'),
    ('tui', ''): Call(lambda case: ['tui'], job=GIVEN, ready='\x1b', terminal='always'),
}
