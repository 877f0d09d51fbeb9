# SPDX-License-Identifier: MIT
"""Steps of jobs: their numbers, tasks and shares, how they wait for each other, and what is recorded of them."""

import os
import re
import select
import shlex
import signal
import subprocess

import harness
import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def rows(cluster, job, fields):
    """Lines of sacct for a job: its fields by JobID."""
    out = cluster.out('sacct', '-n', '-P', '-j', job, '-o', f'JobID,{fields}')
    return dict(line.split('|', 1) for line in out.splitlines())


def steps(cluster, job):
    answer = cluster.box.api('GET', f'/jobs/{job}/steps')
    assert answer.status == 200, answer
    return answer.json['steps']


def test_steps_are_numbered_and_recorded_with_their_status(cluster):
    job = cluster.wrap('srun true; srun bash -c "exit 3"; srun bash -c "kill -9 \\$\\$"; true', '-n', 2, '-o', 'out')
    cluster.finish(job)
    assert rows(cluster, job, 'JobName,State,ExitCode,NTasks') == {
        f'{job}': 'wrap|COMPLETED|0:0|', f'{job}.batch': 'batch|COMPLETED|0:0|1',
        f'{job}.extern': 'extern|COMPLETED|0:0|1', f'{job}.0': 'true|COMPLETED|0:0|2',
        f'{job}.1': 'bash|FAILED|3:0|2', f'{job}.2': 'bash|CANCELLED|0:9|2'}
    assert [(step['id'], step['state'], step['exit_code'], step['signal']) for step in steps(cluster, job)] == [
        (0, 'done', 0, None), (1, 'failed', 3, None), (2, 'failed', 0, 9)]


def test_srun_in_a_job_that_no_command_of_slurm_submitted_is_a_step_of_it(cluster):
    """It gets the job's GPUs, and no separate allocation."""
    before = cluster.box.submit('--hold', '--', 'true')
    done = cluster.run(f'{harness.programs()}/mgpu', 'run', '-q', '-g', 2, '--', 'sh', '-c',
                       'echo $MGPU_JOB_ID; srun -n 2 sh -c \'echo "$SLURM_JOB_ID $SLURM_PROCID $SLURM_STEP_ID"\'; srun sh -c \'echo $CUDA_VISIBLE_DEVICES\'')
    job, *lines, gpus = done.out.splitlines()
    assert int(job) == before + 1 and sorted(lines) == [f'{job} 0 0', f'{job} 1 0'] and len(gpus.split(',')) == 2, done
    assert [step['id'] for step in steps(cluster, job)] == [0, 1]
    assert cluster.box.submit('--hold', '--', 'true') == before + 2  # srun has made no job


def test_show_lists_the_steps(cluster):
    job = cluster.wrap('srun true; srun bash -c "exit 3"; true', '-n', 2, '-o', 'out')
    node = cluster.finish(job)['node']
    page = cluster.box.mgpu('show', job, check=True).out
    assert f'{job}.0 true: 2 tasks on {node}, done; at most ' in page and f'{job}.1 bash: 2 tasks on {node}, failed (exit status 3); at' in page
    assert 'step_started' not in page


def test_tasks_know_the_number_of_their_step(cluster):
    job = cluster.wrap('for i in 1 2; do srun -o "%j.%s.%t" bash -c "echo \\$SLURM_STEP_ID \\$SLURM_STEPID"; done', '-n', 2)
    cluster.finish(job)
    for step in (0, 1):
        for task in (0, 1):
            assert cluster.read(f'{job}.{step}.{task}') == f'{step} {step}\n'


def test_a_running_step_is_listed_and_a_step_without_exact_waits_for_it(cluster, gate, bell):
    line = (f'srun -J first {shlex.join(gate.command())} & '
            f'until squeue -h -s -j $SLURM_JOB_ID -o %i | grep -q "[.]0"; do :; done; '
            f'srun -J second bash -c "echo second > {bell.path}" & wait')
    job = cluster.wrap(line, '-n', 1, '-o', 'out')
    harness.await_text(os.path.join(cluster.place, 'out'), 'temporarily disabled')
    assert cluster.out('squeue', '-h', f'--steps={job}.0', '-o', '%i %j %u') == f'{job}.0 first {cluster.box.client.name}\n'
    assert cluster.out('squeue', '-h', '-s', '-j', job, '-o', '%i').split() == [f'{job}.batch', f'{job}.0']
    assert f'StepId={job}.0 ' in cluster.out('scontrol', 'show', 'step', f'{job}.0')
    assert 'State=RUNNING' in cluster.out('scontrol', '-o', 'show', 'step', job)
    assert [step['name'] for step in steps(cluster, job)] == ['first']
    gate.open()
    assert bell.wait() == 'second'
    cluster.finish(job)
    assert [step['name'] for step in steps(cluster, job)] == ['first', 'second']
    assert f'Step created for StepId={job}.1' in cluster.read('out')


def test_exact_steps_share_the_gpus_of_their_job(cluster):
    script = ('#!/bin/bash\nfor i in 0 1; do srun --exact -n1 --gpus-per-task=1 -o gpu.$i '
              'bash -c "echo \\$CUDA_VISIBLE_DEVICES; touch up.$i; until [ -e up.0 -a -e up.1 ]; do :; done" & done; wait\n')
    job = cluster.submit('-n', 2, '--gres=gpu:2', cluster.script(script))
    assert cluster.finish(job)['state'] == 'done'
    assert sorted([cluster.read('gpu.0'), cluster.read('gpu.1')]) == ['0\n', '1\n']


def test_overlapping_steps_run_together(cluster):
    script = ('#!/bin/bash\nfor i in 0 1; do srun --overlap bash -c "touch up.$i; until [ -e up.0 -a -e up.1 ]; do :; done" & '
              'done; wait\n')
    assert cluster.finish(cluster.submit('-n', 1, cluster.script(script)))['state'] == 'done'


def test_a_step_larger_than_its_job_is_refused(cluster):
    job = cluster.wrap('srun --exact -n 3 true', '-n', 2, '-o', 'out')
    assert cluster.finish(job)['exit_code'] == 1
    assert 'Unable to create step for job' in cluster.read('out')
    assert 'More processors requested than permitted' in cluster.read('out')
    assert not steps(cluster, job)


def test_the_tasks_of_a_step_run_different_programs(cluster):
    cluster.script('# a comment\n0  echo  first "of %t" %o\n2-3 \\\n  echo other %t %o\n\n* bash -c "echo rest $0" %o\n', 'programs')
    job = cluster.wrap('srun -l --multi-prog programs', '-n', 5, '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert sorted(cluster.read('out').splitlines()) == [
        '0: first of 0 0', '1: rest 1', '2: other 2 0', '3: other 3 1', '4: rest 4']
    alone = cluster.run('srun', '-n', 4, '-l', '--multi-prog', 'programs')
    assert alone.code == 0 and sorted(alone.out.splitlines()) == [
        '0: first of 0 0', '1: rest 1', '2: other 2 0', '3: other 3 1'], alone


def test_the_last_line_of_programs_may_end_with_a_backslash(cluster):
    cluster.script('0 echo first\n1 echo last \\\n', 'programs')
    job = cluster.wrap('srun -l --multi-prog programs', '-n', 2, '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert sorted(cluster.read('out').splitlines()) == ['0: first', '1: last']


@pytest.mark.parametrize(('text', 'sentence'), [
    ('0 true\n', 'Configuration file programs invalid, no record for task id 1'), ('0 true\n1\n', 'programs: line 2: the program is missing'),
    ('0 true\n2 true\n', 'programs: line 2: tasks'), ('x true\n', 'programs: line 1: tasks'),
    ('0-1 echo "open\n', 'programs: line 1: '), (None, 'Could not open multi_prog config file programs')],
    ids=['missing', 'empty', 'range', 'word', 'quote', 'nofile'])
def test_a_wrong_file_of_programs_is_refused(cluster, text, sentence):
    if text is not None:
        cluster.script(text, 'programs')
    job = cluster.wrap('srun --multi-prog programs', '-n', 2, '-o', 'out')
    assert cluster.finish(job)['exit_code'] == 1 and sentence in cluster.read('out'), cluster.read('out')


def test_tasks_do_not_outlive_the_first_by_more_than_wait(cluster, gate):
    program = f'[ $SLURM_PROCID = 0 ] || exec {shlex.join(gate.command())}'
    job = cluster.wrap(f'srun --wait=1 bash -c {shlex.quote(program)}', '-n', 2, '-o', 'out')
    done = cluster.finish(job)
    said = cluster.read('out')
    assert done['exit_code'] == 137 and 'srun: First task exited 1s ago\n' in said, said
    assert f'srun: launch/slurm: _step_signal: Terminating StepId={job}.0\n' in said


def test_steps_end_with_their_job(cluster, bell):
    job = cluster.wrap(f'srun -n 1 bash -c "echo up > {bell.path}; sleep 600"', '-n', 1)
    bell.wait()
    cluster.out('scancel', job)
    cluster.finish(job)
    assert [step['state'] for step in steps(cluster, job)] == ['cancelled']
    assert rows(cluster, job, 'State')[f'{job}.0'] == 'CANCELLED'


def test_a_step_outlives_a_restart_of_mgpud_and_the_next_one_has_the_next_number(cluster, gate, bell):
    line = f'srun bash -c "echo up > {bell.path}; {gate.command()[2]}; exit 4"; srun true'
    job = cluster.wrap(line, '-n', 1, '-o', 'out')
    bell.wait()
    cluster.box.kill()
    cluster.box.start()
    assert [step['state'] for step in steps(cluster, job)] == ['running']
    gate.open()
    cluster.finish(job)
    assert [(step['id'], step['state'], step['exit_code']) for step in steps(cluster, job)] == [(0, 'failed', 4), (1, 'done', 0)]


def test_a_step_whose_client_was_killed_ends_as_unknown_and_its_share_is_free(cluster, bell):
    line = (f'srun bash -c "echo \\$PPID > {bell.path}; exec sleep 600" & wait; '
            f'srun bash -c "echo second > {bell.path}"')
    job = cluster.wrap(line, '-n', 1, '-o', 'out')
    os.kill(int(bell.wait()), signal.SIGKILL)
    assert bell.wait() == 'second'
    cluster.finish(job)
    assert [step['ended_by'] for step in steps(cluster, job)] == ['unknown', 'exit']


def test_requests_for_steps_are_checked(cluster, gate):
    job = cluster.wrap(gate.command()[2], '-n', 1)
    cluster.box.wait(job, 'running')
    path = f'/jobs/{job}/steps'
    for body in ({}, {'nodes': []}, {'nodes': [{'node': 'nosuch', 'tasks': 1}]}, {'nodes': 'x'}, {'unknown': 1}):
        answer = cluster.box.api('POST', path, body)
        assert answer.status == 400, (body, answer)
    assert cluster.box.api('POST', f'{path}/end', {'step': 7}).status == 409
    assert not steps(cluster, job)
    gate.open()


def test_a_step_is_signalled_and_cancelled_by_its_number(cluster, bell):
    script = ('#!/bin/bash\nsrun bash -c \'trap "echo usr1 > {0}" USR1; echo up > {0}; while :; do read -t 1 < {1}; done\'\n'
              'echo after > {0}\n').format(bell.path, os.path.join(cluster.place, 'silent'))
    os.mkfifo(os.path.join(cluster.place, 'silent'))
    os.chmod(os.path.join(cluster.place, 'silent'), 0o666)
    job = cluster.submit('-n', 1, '-o', 'out', cluster.script(script))
    assert bell.wait() == 'up'
    assert cluster.out('scancel', '-s', 'USR1', f'{job}.0') == ''
    assert bell.wait() == 'usr1'
    asked = cluster.run('scancel', '-i', f'{job}.0', input='n\n')
    assert (asked.code, asked.out) == (0, f'Cancel step_id={job}.0 name=job.sh partition=gpu [y/n]? '), asked
    done = cluster.run('scancel', '-v', f'{job}.0')
    assert (done.code, done.err) == (0, f'scancel: Terminating step {job}.0\n'), done
    assert bell.wait() == 'after'
    assert cluster.finish(job)['state'] == 'done'
    out = cluster.read('out')
    assert re.search(rf'STEP {job}\.0 ON \S+ CANCELLED AT .*\n.*task 0: Killed', out), out
    assert [step['state'] for step in steps(cluster, job)] == ['cancelled']
    assert cluster.out('scancel', f'{job}.7') == ''


def test_scancel_batch_without_a_signal_ends_the_job(cluster, gate):
    job = cluster.wrap(gate.command()[2], '-n', 1)
    assert cluster.out('scancel', '--batch', job) == ''
    assert cluster.finish(job)['state'] == 'cancelled'


def test_steps_and_dependencies_replay_to_the_same_decisions_and_pass_fsck(cluster, gate, place):
    job = cluster.wrap('srun true; for i in 1 2 3; do srun --overlap true & done; wait', '-n', 2, '--gres=gpu:1', '-o', 'out')
    first = cluster.wrap(gate.command()[2], '--gres=gpu:1')
    started = cluster.wrap('true', '-d', f'after:{first}', '--gres=gpu:1')
    failed = cluster.wrap('exit 1')
    cluster.finish(failed)
    one = cluster.wrap('true', '-d', f'afterok:{failed}?afterok:{first}', '--gres=gpu:1')
    cluster.finish(job)
    cluster.finish(started)
    gate.open()
    assert cluster.finish(one)['state'] == 'done'
    box, path = cluster.box, os.path.join(place, 'journal')
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    with open(path, encoding='utf-8') as journal:
        assert journal.read().count('"step_ended"') >= 4
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0 and 'all identical' in done.stdout, done
    box.stop()
    done = subprocess.run([f'{harness.programs()}/mgpud', '--fsck', '--state-dir', box.state_dir], capture_output=True, text=True,
                          timeout=120, check=False)
    box.start()
    assert done.returncode == 0 and 'match' in done.stdout, done


# --- usage and limits ---

GREEDY = 'import time; held = bytearray({mib} << 20); {then}'


def kib(text):
    return int(text.removesuffix('K'))


def test_the_usage_of_a_step_is_recorded(cluster):
    program = GREEDY.format(mib=64, then='sum(range(3000000))')
    job = cluster.wrap(f'srun bash -c "[ \\$SLURM_PROCID = 0 ] || exec /usr/bin/python3 -c \\"{program}\\""; true', '-n', 2)
    cluster.finish(job)
    most, average, task, node, cpu = rows(cluster, job, 'MaxRSS,AveRSS,MaxRSSTask,MaxRSSNode,TotalCPU')[f'{job}.0'].split('|')
    assert 64 << 10 < kib(most) < 400 << 10 and kib(average) < kib(most) and (task, node) == ('1', cluster.box.job(job)['node'])
    assert cpu != '00:00.000' and cpu.startswith('00:0')
    step, = steps(cluster, job)
    assert step['max_rss_bytes'] >> 10 == kib(most) and abs(step['cpu_seconds'] - step['user_cpu_seconds'] - step['system_cpu_seconds']) < 0.0005


def test_the_usage_of_a_running_step_is_shown(cluster, gate):
    program = f'{GREEDY.format(mib=48, then="")}import os; os.execvp("sh", {gate.command()!r})'
    job = cluster.wrap(f'srun /usr/bin/python3 -c {shlex.quote(program)}', '-n', 1, '-o', 'out')

    def look():
        lines = cluster.run('sstat', '-n', '-P', '-j', f'{job}.0', '-o', 'JobID,MaxRSS,NTasks').out.split()
        fields = lines[0].split('|') if lines else ['', '', '']
        return fields if fields[1] else None

    fields = harness.until(look, 'the usage of the step', 30)
    assert fields[0] == f'{job}.0' and kib(fields[1]) > 1024 and fields[2] == '1', fields
    gate.open()
    cluster.finish(job)


def test_a_step_has_the_cpus_that_it_requests(cluster):
    if not os.access('/sys/fs/cgroup/cpuset/cgroup.procs', os.W_OK) and not os.path.exists('/sys/fs/cgroup/cpuset.cpus.effective'):
        pytest.skip('no cpuset can be limited here')
    count = 'import os; print(len(os.sched_getaffinity(0)))'
    job = cluster.wrap(f"srun -n1 --exact -c1 /usr/bin/python3 -c '{count}'; srun -n1 /usr/bin/python3 -c '{count}'",
                       '-n', 1, '-c', min(2, len(os.sched_getaffinity(0))), '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert cluster.read('out').split() == ['1', str(min(2, len(os.sched_getaffinity(0))))]


def test_a_step_does_not_exceed_the_memory_that_it_requests(cluster):
    if not os.access('/sys/fs/cgroup/memory/cgroup.procs', os.W_OK):
        pytest.skip('no memory can be limited here')
    program = GREEDY.format(mib=300, then='print("held", flush=True)')
    job = cluster.wrap(f"srun -n1 --mem=100M /usr/bin/python3 -c '{program}'; echo status $?; srun -n1 /usr/bin/python3 -c '{program}'",
                       '-n', 1, '--mem=800M', '-o', 'out')
    cluster.finish(job)
    said = cluster.read('out')
    assert said.splitlines()[-2:] == ['status 137', 'held'], said
    assert 'task 0: Out Of Memory' in said and f'Detected 1 oom_kill event in StepId={job}.0.' in said
    assert [(step['signal'], step['ended_by']) for step in steps(cluster, job)] == [(9, 'oom'), (None, 'exit')]
    assert rows(cluster, job, 'State,ExitCode')[f'{job}.0'] == 'OUT_OF_MEMORY|0:125'
    job = cluster.wrap(f"/usr/bin/python3 -c '{program}'", '-n', 1, '--mem=100M')
    assert cluster.finish(job)['ended_by'] == 'oom'
    assert rows(cluster, job, 'State,ExitCode')[f'{job}.batch'] == 'OUT_OF_MEMORY|0:125'


# --- environment, programs before and after ---

def test_a_step_has_the_variables_that_are_exported(cluster):
    job = cluster.wrap('export ONE=1 TWO=2; srun -n1 --export=TWO,THREE=3 env > named; srun -n1 --export=NONE /usr/bin/env > none; '
                       'SLURM_EXPORT_ENV=ONE srun -n1 env > variable; srun -n1 env > all', '-n', 2, '--gres=gpu:1')
    assert cluster.finish(job)['state'] == 'done'

    def found(name):
        return {line for line in cluster.read(name).splitlines() if line.split('=')[0] in ('ONE', 'TWO', 'THREE')}
    assert found('named') == {'TWO=2', 'THREE=3'} and found('none') == set()
    assert found('variable') == {'ONE=1'} and found('all') == {'ONE=1', 'TWO=2'}
    none = cluster.read('none')
    assert f'SLURM_JOB_ID={job}\n' in none and 'CUDA_VISIBLE_DEVICES=0\n' in none


def test_labels_keep_standard_output_and_error_apart(cluster):
    job = cluster.wrap('srun -l bash -c "echo out; echo err >&2" > out 2> err', '-n', 2)
    assert cluster.finish(job)['state'] == 'done'
    assert sorted(cluster.read('out').splitlines()) == ['0: out', '1: out']
    assert sorted(cluster.read('err').splitlines()) == ['0: err', '1: err']


def test_labels_are_in_the_files_of_tasks(cluster):
    done = cluster.run('srun', '-n2', '-O', '-l', '-o', 'out.%t', '-e', 'all-errors', 'bash', '-c', 'echo out; echo err >&2; printf rest')
    assert (done.code, done.out, done.err) == (0, '', ''), done
    assert [cluster.read(f'out.{task}') for task in range(2)] == [f'{task}: out\n{task}: rest\n' for task in range(2)]
    assert sorted(cluster.read('all-errors').splitlines()) == ['0: err', '1: err']


def test_options_of_a_step_are_taken_from_variables(cluster):
    job = cluster.wrap('SLURM_LABELIO=1 srun echo a; SLURM_STDOUTMODE=step_%t srun echo b; SLURM_REMOTE_CWD=/ srun -n1 pwd; '
                       'SLURM_LABELIO=1 SLURM_STDINMODE=1 srun cat < out', '-n', 2, '-o', 'out')
    assert cluster.finish(job)['state'] == 'done'
    lines = cluster.read('out').splitlines()
    assert sorted(lines[:2]) == ['0: a', '1: a'] and lines[2] == '/' and cluster.read('step_1') == 'b\n'
    assert all(line.startswith('1: ') for line in lines[3:]), lines


def test_programs_run_before_and_after_a_step(cluster):
    for name in ('before', 'after'):
        os.chmod(cluster.script(f'#!/bin/sh\necho {name}\n', name), 0o755)
    job = cluster.wrap('srun -n1 --prolog=./before --epilog=./after echo step; srun -E -n1 bash -c "echo \\$SLURM_NTASKS"; '
                       'srun -n1 bash -c "echo \\$SLURM_NTASKS"', '-n', 2, '-o', 'out')
    assert cluster.finish(job)['state'] == 'done'
    assert cluster.read('out').split() == ['before', 'step', 'after', '2', '1']


# --- input, GPUs of tasks, ends ---

def test_input_reaches_all_tasks_or_one(cluster):
    job = cluster.wrap('printf "one\\ntwo\\n" | srun -l cat; printf "x\\n" | srun -l --input=1 cat; printf "file\\n" > in; srun -l -i in cat; '
                       'srun -l -i none cat', '-n', 2, '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    lines = cluster.read('out').splitlines()
    assert sorted(lines[:4]) == ['0: one', '0: two', '1: one', '1: two']
    assert lines[4:5] == ['1: x'] and sorted(lines[5:]) == ['0: file', '1: file'], lines


def test_much_input_reaches_a_slow_task_whole(cluster):
    job = cluster.wrap('head -c 5000000 /dev/zero | srun bash -c "[ \\$SLURM_PROCID = 0 ] || { read -t 1 < /dev/null; }; wc -c"', '-n', 2,
                       '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert cluster.read('out').split() == ['5000000', '5000000']


@pytest.mark.parametrize(('words', 'seen'), [
    ('--gpus-per-task=1', ['0: 0', '1: 1']), ('--gres=gpu:2', ['0: 0,1', '1: 0,1']), ('--gpu-bind=single:1', ['0: 0', '1: 1']),
    ('--gres=gpu:2 --gpu-bind=map_gpu:1,0', ['0: 1', '1: 0']), ('--gres=gpu:2 --gpu-bind=mask_gpu:0x3,0x2', ['0: 0,1', '1: 1']),
    ('--gpus-per-task=1 --gpu-bind=none', ['0: 0,1', '1: 0,1']), ('--gres=gpu:2 --gpu-bind=verbose,closest', ['0: 0,1', '1: 0,1'])])
def test_tasks_see_the_gpus_that_they_are_bound_to(cluster, words, seen):
    job = cluster.wrap(f'srun -l {words} bash -c "echo \\$CUDA_VISIBLE_DEVICES"', '-n', 2, '--gres=gpu:2', '-o', 'out')
    assert cluster.finish(job)['state'] == 'done', cluster.read('out')
    assert sorted(cluster.read('out').splitlines()) == seen


@pytest.mark.parametrize('bind,code', [('map_gpu:7', 1), ('single:x', 1), ('mask_gpu:0', 1), ('nosuch', 255)])
def test_a_binding_to_gpus_that_are_not_there_is_refused(cluster, bind, code):
    job = cluster.wrap(f'srun --gres=gpu:1 --gpu-bind={bind} true', '-n', 1, '--gres=gpu:1', '-o', 'out')
    assert cluster.finish(job)['exit_code'] == code
    assert re.search(f'Invalid --gpu-bind argument: (gpu:)?{bind}', cluster.read('out')) and not steps(cluster, job)


def test_a_failed_task_ends_the_others_with_kill_on_bad_exit(cluster):
    ready = f'{cluster.place}/ready'
    os.mkfifo(ready)
    os.chmod(ready, 0o666)
    program = f'[ $SLURM_PROCID = 0 ] && {{ read x; read x; }} <> {ready} && exit 3; echo > {ready}; exec sleep 600'
    job = cluster.wrap(f'srun -K bash -c {shlex.quote(program)}', '-n', 3, '-o', 'out')
    ended = cluster.finish(job)
    said = cluster.read('out')
    assert ended['exit_code'] == 143 and f'srun: launch/slurm: _step_signal: Terminating StepId={job}.0' in said, said
    assert 'task 0: Exited with exit code 3' in said and 'task 1: Terminated' in said, said


def test_a_signal_of_a_process_that_has_ended_meanwhile_reaches_the_tasks(cluster):
    task = 'trap "echo signalled; exit 3" USR1; echo > up; while :; do :; done'
    script = f'#!/bin/bash\nsrun bash -c {shlex.quote(task)} & until [ -e up ]; do :; done\n' \
             'kill -STOP $!; /bin/kill -USR1 $!; kill -CONT $!; wait $!; echo "status $?"\n'
    job = cluster.submit('-n', 1, '-o', 'out', cluster.script(script))
    cluster.finish(job)
    assert 'signalled' in cluster.read('out') and cluster.read('out').endswith('status 3\n'), cluster.read('out')


def test_tasks_end_with_a_killed_srun(cluster, bell):
    job = cluster.wrap(f'srun bash -c "echo \\$PPID \\$\\$ > {bell.path}; exec sleep 600"; true', '-n', 1)
    parent, task = bell.wait().split()
    os.kill(int(parent), signal.SIGKILL)
    harness.until(lambda: not os.path.exists(f'/proc/{task}'), 'the end of the task')
    cluster.finish(job)


class Terminal:
    """A command in the foreground of a terminal of its own."""

    def __init__(self, cluster, *words):
        self.side, inner = os.openpty()
        self.process = subprocess.Popen(['setsid', '-c', '-w', *words], stdin=inner, stdout=inner, stderr=inner, cwd=cluster.place,
                                        env=cluster.environment(), **cluster.box.client.popen_arguments())
        os.close(inner)
        self.said = b''

    def reads(self, text):
        """Waits until it has printed this."""
        while text.encode() not in self.said:
            assert select.select([self.side], [], [], harness.DEADLINE_S)[0], self.said
            self.said += os.read(self.side, 4096)

    def press(self, keys):
        os.write(self.side, keys)

    def end(self):
        status = self.process.wait(harness.DEADLINE_S)
        os.close(self.side)
        return status


def test_ctrl_c_shows_the_tasks_and_a_second_one_ends_the_step(cluster, bell):
    job = cluster.submit('-n', 2, cluster.script('#!/bin/sh\nsleep 600\n'))
    cluster.box.wait(job, 'running')
    program = f'echo up > {bell.path}; exec sleep 600'
    terminal = Terminal(cluster, 'srun', f'--jobid={job}', '-n', '2', '--overlap', 'bash', '-c', program)
    assert bell.wait() == 'up' and bell.wait() == 'up'
    terminal.press(b'\x03')
    terminal.reads('srun: interrupt (one more within 1 sec to abort)')
    terminal.reads(f'srun: StepId={job}.0 tasks 0-1: running')
    assert [step['state'] for step in steps(cluster, job)] == ['running']
    terminal.press(b'\x03\x03')
    terminal.reads(f'srun: sending Ctrl-C to StepId={job}.0')
    assert terminal.end() == 130
    assert [step['state'] for step in steps(cluster, job)] == ['failed']
    cluster.out('scancel', job)
    cluster.finish(job)


def test_ctrl_c_of_srun_outside_a_job_is_the_same(cluster, bell):
    terminal = Terminal(cluster, 'srun', '-n', '2', 'bash', '-c', f'echo up > {bell.path}; exec sleep 600')
    assert bell.wait() == 'up' and bell.wait() == 'up'
    terminal.press(b'\x03')
    terminal.reads('srun: interrupt (one more within 1 sec to abort)')
    terminal.reads('.0 tasks 0-1: running')
    job, = cluster.out('squeue', '-h', '-o', '%i', '-n', 'bash').split()
    terminal.press(b'\x03\x03')
    assert terminal.end() != 0
    assert cluster.finish(job)['state'] == 'cancelled'


# --- from outside ---

def test_a_step_is_started_in_another_job(cluster, gate):
    job = cluster.wrap(gate.command()[2], '-n', 2, '--gres=gpu:2')
    cluster.box.wait(job, 'running')
    words = ('bash', '-c', 'echo $SLURM_JOB_ID.$SLURM_STEP_ID $SLURM_NTASKS $MINE $(echo $CUDA_VISIBLE_DEVICES | wc -w)')
    done = cluster.run('srun', f'--jobid={job}', '-n', 2, '-l', '--overlap', '--gpus-per-task=1', *words, env={'MINE': 'mine'})
    assert done.code == 0 and sorted(done.out.splitlines()) == [f'{task}: {job}.0 2 mine 1' for task in (0, 1)], done
    done = cluster.box.mgpu('exec', '--step', '-n', 2, '--overlap', '-e', 'MINE=mine', job, '--', *words)
    assert done.code == 0 and done.out.splitlines() == [f'{job}.1 2 mine 1'] * 2, done
    assert [(step['id'], step['tasks'], step['state']) for step in steps(cluster, job)] == [(0, 2, 'done'), (1, 2, 'done')]
    done = cluster.box.mgpu('exec', '-n', 2, job, '--', 'true')
    assert done.code == 2 and 'need --step' in done.err, done
    gate.open()
    cluster.finish(job)
    done = cluster.run('srun', f'--jobid={job}', 'true')
    assert done.code == 1 and f'Job {job} is not running' in done.err, done
    assert cluster.run('srun', '--jobid=999999', 'true').code == 1


@pytest.mark.parametrize('command, job, step', [
    ('kill -9 $$', 'FAILED|0:9', 'CANCELLED|0:9'),
    ('kill -TERM $$', 'FAILED|0:15', 'CANCELLED|0:15'),
    ('exit 200', 'FAILED|72:0', 'FAILED|72:0'),
    ('exit 137', 'FAILED|9:0', 'FAILED|9:0'),
    ('exit 3', 'FAILED|3:0', 'FAILED|3:0'),
], ids=['killed', 'terminated', 'high', 'as-if-killed', 'low'])
def test_sacct_tells_a_signal_from_a_code(cluster, command, job, step):
    cluster.run('srun', 'bash', '-c', command)
    number = max(listed['id'] for listed in cluster.box.api('GET', '/jobs?all=1').json['jobs'])
    cluster.finish(number)
    ends = dict(line.split('|', 1) for line in cluster.out('sacct', '-n', '-P', '-j', number, '-o', 'JobID,State,ExitCode').splitlines())
    assert (ends[f'{number}'], ends[f'{number}.0']) == (job, step), ends


def test_a_step_with_limits_of_its_own_has_those_of_the_shell(cluster):
    assert cluster.out('salloc', '-Q', 'bash', '-c', 'ulimit -Ss 4096; srun --exact -n1 bash -c "ulimit -Ss"') == '4096\n'
