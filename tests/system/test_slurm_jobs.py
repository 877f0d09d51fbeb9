# SPDX-License-Identifier: MIT
"""What a job of sbatch, srun and salloc finds and does: directives, variables, files, steps, arrays."""

import os
import re
import shlex
import signal
import subprocess
import time

import harness
import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def variables(text):
    return dict(line.split('=', 1) for line in text.splitlines() if '=' in line)


def test_directives_are_read_and_count_less_than_variables_and_options(cluster):
    text = ('#!/bin/bash\n# a comment\n\n#SBATCH --job-name="two words" -t 1-12 # another\n#SBATCH -o out.log\n'
            '##SBATCH --nosuch\n#SBATCH --comment \'it is\' --account=lab --qos high\necho\n#SBATCH --nosuch\n')
    job = cluster.submit('--hold', cluster.script(text))
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%j|%l|%k|%a|%q').strip() == 'two words|1-12:00:00|it is|lab|high'
    job = cluster.submit('--hold', '--account=cli', cluster.script(text), env={'SBATCH_TIMELIMIT': '30', 'SBATCH_QOS': 'low'})
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%l|%a|%q').strip() == '30:00|cli|low'


def test_jobs_of_one_name_run_one_after_the_other(cluster, gate, bo):
    first = cluster.submit('-J', 'chain', '-d', 'singleton', '--wrap', shlex.join(gate.command()))
    cluster.box.wait(first, 'running')
    other = cluster.wrap('true', '-J', 'another', '-d', 'singleton')
    assert cluster.finish(other)['state'] == 'done'
    held = cluster.wrap('true', '-J', 'other', '-H')
    late = cluster.wrap('true', '-J', 'chain', '-d', f'singleton,afterany:{held}')
    last = cluster.wrap('true', '-J', 'chain', '-d', 'singleton')
    assert cluster.box.job(late)['after'] == f'{held}:any,{first}:any'
    assert cluster.box.job(last)['after'] == f'{first}:any,{late}:any'
    assert cluster.out('squeue', '-h', '-j', last, '-o', '%r').strip() == 'Dependency'
    if os.geteuid() == 0:  # the same name of another user
        assert cluster.finish(cluster.wrap('true', '-J', 'chain', '-d', 'singleton', '-o', '/dev/null', user=bo))['state'] == 'done'
    cluster.out('scontrol', 'release', held)
    gate.open()
    assert cluster.finish(last)['started_at'] >= cluster.finish(late)['ended_at'] >= cluster.finish(first)['ended_at']


def test_a_repeated_submit_of_a_singleton_is_the_same_job(box):
    body = {'command': ['true'], 'name': 'one', 'after': 'singleton', 'hold': True, 'submit_key': 'k1', 'cwd': '/tmp'}
    first = box.api('POST', '/jobs', body)
    assert first.status == 201 and first.json['after'] is None, first
    again = box.api('POST', '/jobs', body)
    assert again.status == 200 and again.json['id'] == first.json['id'], again
    done = box.mgpu('edit', first.json['id'], 'after=singleton')
    assert done.code == 2 and 'at a submit only' in done.err, done
    box.cancel_all()


def test_one_of_several_dependencies_suffices(cluster):
    good, bad, held = cluster.wrap('true'), cluster.wrap('false'), cluster.wrap('true', '-H')
    for job in (good, bad):
        cluster.finish(job)
    assert cluster.finish(cluster.wrap('true', '-d', f'afterok:{bad}:{good}?afterany:{held}'))['state'] == 'done'
    late = cluster.wrap('true', '-d', f'afterok:{held}:{bad}')
    assert cluster.out('squeue', '-h', '-j', late, '-o', '%r').strip() == 'DependencyNeverSatisfied'
    done = cluster.run('sbatch', '-d', f'singleton?afterok:{good}', '--wrap', 'true')
    assert done.code == 1 and 'cannot be mixed' in done.err, done


def test_files_of_output_have_slurms_names_and_standard_error_its_own(cluster):
    job = cluster.wrap('echo out; echo err >&2', '-J', 'na/me', '-o', '%x-%5j-%N-%u.out', '-e', 'e-%J.err')
    node = cluster.finish(job)['node']
    name = f'na_me-{job:05}-{node}-{cluster.box.client.name}.out'
    assert (cluster.read(name), cluster.read(f'e-{job}.err')) == ('out\n', 'err\n')
    job = cluster.wrap('echo out; echo err >&2')
    cluster.finish(job)
    assert cluster.read(f'slurm-{job}.out') == 'out\nerr\n'


def test_output_is_emptied_unless_it_is_to_be_appended_to(cluster):
    for mode in ('truncate', 'append'):
        for _ in range(2):
            cluster.finish(cluster.wrap('echo line', '-o', mode, f'--open-mode={mode}'))
    assert cluster.read('truncate') == 'line\n' and cluster.read('append') == 'line\nline\n'


def test_a_job_reads_the_file_of_input(cluster):
    cluster.script('given\n', 'input')
    job = cluster.wrap('cat', '-i', 'input', '-o', 'copy')
    cluster.finish(job)
    assert cluster.read('copy') == 'given\n'
    job = cluster.finish(cluster.wrap('cat', '-i', 'nosuch'))
    assert job['ended_by'] == 'start_failed' and 'standard input nosuch' in job['message']


def test_a_directory_for_the_output_is_found_that_is_made_when_the_number_is_known(cluster):
    """As clients do that name a directory after the job: it starts long before they have read the number."""
    jobs = []
    for words in (['-o', 'own/%j/out'], ['-o', '/dev/null', '-e', 'own/%j/err'], ['-a', '0-1', '-o', 'own/%A/%a.out']):
        job = cluster.submit(*words, '--wrap', 'echo here; echo there >&2')
        cluster.box.wait(job, 'starting,running,failed') if '-a' not in words else None
        os.makedirs(f'{cluster.place}/own/{job}')
        os.chmod(f'{cluster.place}/own/{job}', 0o777)
        jobs.append(job)
    assert [cluster.finish(job)['exit_code'] for job in jobs] == [0, 0, 0], [cluster.box.job(job) for job in jobs]
    assert cluster.read(f'own/{jobs[0]}/out') == 'here\nthere\n' and cluster.read(f'own/{jobs[1]}/err') == 'there\n'


def test_variables_are_those_of_sbatch(cluster):
    job = cluster.submit('-n', 2, '--ntasks-per-node=2', '-c', 1, '--gres=gpu:2', '--mem=100M', '-A', 'lab',
                         '-o', 'env', '--export=ALL,EXTRA=1', '--wrap', 'env')
    done = cluster.finish(job)
    env = variables(cluster.read('env'))
    expected = {'SLURM_JOB_ID': str(job), 'SLURM_JOBID': str(job), 'SLURM_JOB_NAME': 'wrap', 'SLURM_NTASKS': '2',
                'SLURM_NPROCS': '2', 'SLURM_NTASKS_PER_NODE': '2', 'SLURM_CPUS_PER_TASK': '1', 'SLURM_NNODES': '1',
                'SLURM_JOB_NUM_NODES': '1', 'SLURM_JOB_NODELIST': done['node'], 'SLURM_TASKS_PER_NODE': '2',
                'SLURM_CPUS_ON_NODE': '2', 'SLURM_MEM_PER_NODE': '100', 'SLURM_JOB_ACCOUNT': 'lab',
                'SLURM_JOB_PARTITION': 'gpu', 'SLURM_GPUS_ON_NODE': '2', 'SLURM_PROCID': '0', 'SLURM_LOCALID': '0',
                'SLURM_NODEID': '0', 'SLURM_SUBMIT_DIR': cluster.place, 'CUDA_VISIBLE_DEVICES': '0,1', 'EXTRA': '1'}
    assert {name: env.get(name) for name in expected} == expected
    assert env['SLURM_JOB_GPUS'].count(',') == 1
    assert not [name for name in env if name.startswith('SLURM_ARRAY') or name == 'SLURM_RESTART_COUNT']


def test_variables_appear_only_when_they_were_asked_for(cluster):
    cluster.finish(cluster.wrap('env', '-o', 'env'))
    env = variables(cluster.read('env'))
    assert env['SLURM_JOB_ID'] and not {'SLURM_NTASKS', 'SLURM_NTASKS_PER_NODE', 'SLURM_CPUS_PER_TASK', 'SLURM_JOB_GPUS',
                                        'SLURM_MEM_PER_NODE', 'SLURM_GPUS', 'SLURM_GPUS_PER_TASK', 'SLURM_CPUS_PER_GPU'} & set(env)
    cluster.finish(cluster.wrap('env', '-o', 'asked', '-G', 1, '--cpus-per-gpu=1', '--mem-per-gpu=100M', '--ntasks-per-gpu=1'))
    env = variables(cluster.read('asked'))
    assert [env[f'SLURM_{name}'] for name in ('GPUS', 'CPUS_PER_GPU', 'MEM_PER_GPU', 'NTASKS_PER_GPU', 'NTASKS')] == ['1', '1', '100', '1', '1']
    job = cluster.box.submit('-g', '0', '-o', f'{cluster.place}/plain', '--', 'env')
    cluster.finish(job)
    assert not [name for name in variables(cluster.read('plain')) if name.startswith('SLURM')]


def test_options_are_shown_to_the_job_as_variables(cluster):
    first = cluster.wrap('true')
    cluster.script('FROM_FILE=two words\0OTHER=x\0', 'variables')
    job = cluster.wrap('env; echo PID=$$', '-o', 'env', '-d', f'afterany:{first}', '-m', 'block', '--gpu-bind=none', '-G', 'simulated:1',
                       '--export=ALL', '--export-file=variables', '--profile=none', '-O', '--threads-per-core=1', env={'SLURM_UMASK': '0027'})
    assert cluster.finish(job)['state'] == 'done'
    env = variables(cluster.read('env'))
    expected = {'JOB_DEPENDENCY': f'afterany:{first}', 'DISTRIBUTION': 'block', 'GPU_BIND': 'none', 'GPUS': 'simulated:1',
                'EXPORT_ENV': 'ALL', 'PROFILE': 'none', 'OVERCOMMIT': '1', 'THREADS_PER_CORE': '1', 'UMASK': '0027', 'PRIO_PROCESS': str(os.nice(0)),
                'JOB_NODES': '1', 'TOPOLOGY_ADDR_PATTERN': 'node', 'LAUNCH_NODE_IPADDR': '127.0.0.1', 'TASK_PID': env['PID']}
    assert {name: env.get(f'SLURM_{name}') for name in expected} == expected
    assert (env['FROM_FILE'], env['OTHER']) == ('two words', 'x')
    assert os.stat(f'{cluster.place}/env').st_mode & 0o777 == 0o640


def test_a_constraint_is_a_model_of_gpus(cluster):
    features = cluster.out('sinfo', '-h', '-o', '%f').strip()
    assert features == 'simulated,gpu' and f'AvailableFeatures={features}' in cluster.out('scontrol', 'show', 'node')
    job = cluster.wrap('true', '-G', 1, '-C', 'h200|simulated')
    assert cluster.finish(job)['state'] == 'done'
    assert cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'Constraints').strip() == 'h200|simulated'
    done = cluster.run('sbatch', '-G', 1, '-C', 'h200', '--wrap', 'true')
    assert (done.code, done.out) == (1, ''), done


def test_a_job_whose_dependency_fails_ends_if_that_was_requested(cluster):
    first = cluster.wrap('exit 1')
    job = cluster.wrap('true', '-d', f'afterok:{first}', '--kill-on-invalid-dep=yes')
    assert cluster.finish(job)['ended_by'] == 'dependency'


def test_elements_of_an_array_know_their_place(cluster):
    array = cluster.wrap('env | grep SLURM_ARRAY', '--array=1-5:2', '-o', 'a-%A_%a')
    for index in (1, 3, 5):
        cluster.finish(f'{array}.{index}')
        env = variables(cluster.read(f'a-{array}_{index}'))
        assert env == {'SLURM_ARRAY_JOB_ID': str(array), 'SLURM_ARRAY_TASK_ID': str(index), 'SLURM_ARRAY_TASK_COUNT': '3',
                       'SLURM_ARRAY_TASK_MIN': '1', 'SLURM_ARRAY_TASK_MAX': '5', 'SLURM_ARRAY_TASK_STEP': '2'}


def test_elements_are_cancelled_and_listed_by_their_index(cluster):
    array = cluster.wrap('true', '--array=0-9', '--hold')
    assert cluster.out('squeue', '-h', '-j', array, '-o', '%i %F %K') == f'{array}_[0-9] {array} 0-9\n'
    assert cluster.out('scancel', f'{array}_[1-3,7]', f'{array}_9') == ''
    assert cluster.out('squeue', '-h', '-j', array, '-o', '%i') == f'{array}_[0,4-6,8]\n'
    assert 'CANCELLED' in cluster.out('sacct', '-X', '-n', '-P', '-o', 'JobID,State', '-j', f'{array}_2')


def test_a_script_on_standard_input_has_its_arguments(cluster):
    job = cluster.submit('-o', 'out', input='#!/bin/bash\necho "$@"\n')
    cluster.finish(job)
    assert cluster.read('out') == '\n'
    job = cluster.submit('-o', 'out', cluster.script('#!/bin/bash\necho "$#:$2"\n'), 'a', 'b c')
    cluster.finish(job)
    assert cluster.read('out') == '2:b c\n'


def test_wait_ends_with_the_status_of_the_job(cluster):
    assert cluster.run('sbatch', '--wait', '--wrap', 'exit 7').code == 7


def test_dependencies_and_holds_have_slurms_reasons(cluster, gate):
    first = cluster.wrap(gate.command()[2])
    second = cluster.wrap('true', '-d', f'afterok:{first}')
    third = cluster.wrap('true', '--begin=now+1hour')
    held = cluster.wrap('true', '-H')
    out = cluster.out('squeue', '-h', '-t', 'PD', '-o', '%i %r')
    assert dict(line.split() for line in out.splitlines()) == {
        str(second): 'Dependency', str(third): 'BeginTime', str(held): 'JobHeldUser'}
    assert cluster.out('scontrol', 'release', held) == ''
    assert cluster.out('scontrol', 'update', f'JobId={third}', 'StartTime=now', 'TimeLimit=5') == ''
    assert cluster.finish(held)['state'] == 'done'
    gate.open()
    assert cluster.finish(second)['state'] == 'done'
    cluster.run('scancel', third)


@pytest.mark.parametrize('line, state, code', [
    ('exit 3', 'FAILED', '3:0'), ('kill -9 $$', 'FAILED', '0:9'), ('true', 'COMPLETED', '0:0')])
def test_ends_have_slurms_states_and_codes(cluster, line, state, code):
    job = cluster.wrap(line)
    cluster.finish(job)
    assert cluster.out('sacct', '-n', '-X', '-P', '-j', job, '-o', 'State,ExitCode').strip() == f'{state}|{code}'


def test_a_time_limit_is_a_timeout(cluster):
    job = cluster.wrap('sleep 600', '-t', '0:01')
    cluster.finish(job)
    assert cluster.out('sacct', '-n', '-X', '-P', '-j', job, '-o', 'State').strip() == 'TIMEOUT'
    assert cluster.out('squeue', '-h', '-t', 'all', '-j', job, '-o', '%t %r').strip() == 'TO TimeLimit'


def test_dependencies_on_a_start_and_on_one_of_several(cluster, gate):
    first = cluster.wrap(gate.command()[2])
    started = cluster.wrap('true', '-d', f'after:{first}')
    assert cluster.finish(started)['state'] == 'done'
    failed = cluster.wrap('exit 1')
    cluster.finish(failed)
    one = cluster.wrap('true', '-d', f'afterok:{failed}?afterok:{first}')
    assert cluster.out('squeue', '-h', '-j', one, '-o', '%r %E').strip() == f'Dependency afterok:{failed}(unfulfilled)?afterok:{first}(unfulfilled)'
    either = cluster.wrap('true', '-d', f'after:{failed}?afterok:{first}')
    assert cluster.finish(either)['state'] == 'done'
    cluster.box.kill()
    cluster.box.start()
    assert cluster.box.job(one)['state'] == 'queued'
    gate.open()
    assert cluster.finish(one)['state'] == 'done'


def test_a_dependency_on_a_start_can_have_a_delay(cluster, gate):
    first = cluster.wrap('true', '-H')
    later = cluster.wrap('true', '-d', f'after:{first}+10')
    assert cluster.out('squeue', '-h', '-j', later, '-o', '%r %E').strip() == f'Dependency after:{first}+10(unfulfilled)'
    assert f'Dependency=after:{first}+10(unfulfilled)' in cluster.out('scontrol', 'show', 'job', later)
    box = cluster.box
    first = cluster.wrap(gate.command()[2])
    waits = box.submit('-g', '0', '-A', f'{first}:start+2s', 'true')
    ended = box.submit('-g', '0', '-A', f'{first}:start+2s?{later}:ok', 'true')
    assert 'dependency' in (why := box.mgpu('why', waits, check=True).out.lower()) and '2s after the start' in why, why
    box.wait(first, 'running')
    box.kill()
    box.start()
    gate.open()
    for job in (waits, ended):
        delay = harness.seconds(box.wait(job)['started_at']) - harness.seconds(box.job(first)['started_at'])
        assert 2 <= delay < 60, delay
    assert cluster.finish(cluster.wrap('true', '-d', f'after:{first}'))['state'] == 'done'
    assert box.job(box.submit('-g', '0', '-A', f'{first}:start+1h', 'true'))['state'] == 'queued'


def states(cluster, array):
    return dict(line.split('|') for line in cluster.out('squeue', '-h', '-t', 'all', '-j', array, '-o', '%i|%t %r').splitlines())


def until(ask, wanted):
    harness.until(lambda: ask() == wanted, f'{wanted}')


def test_a_dependency_on_a_waiting_element_is_on_that_one_alone(cluster):
    array = cluster.wrap('exit $((SLURM_ARRAY_TASK_ID == 2))', '-a', '0-4', '-H', '-o', '/dev/null')
    jobs = [cluster.wrap('true', '-o', '/dev/null', '-d', value.format(array))
            for value in ('afterok:{0}_1', 'afternotok:{0}_2', 'afterany:{0}_1:{0}_2', 'after:{0}_1,afterany:{0}_2', 'afterok:{0}_0?afterok:{0}_1')]
    for index in (1, 2):
        cluster.out('scontrol', 'release', f'{array}_{index}')
    assert [cluster.finish(job)['state'] for job in jobs] == ['done'] * len(jobs)
    never = cluster.wrap('true', '-d', f'afterok:{array}_*', '-o', '/dev/null')
    assert cluster.box.job(never)['after'] == f'{array}:ok'
    cluster.out('scancel', array, never)


def test_elements_of_an_array_start_after_those_of_another(cluster, gate, place):
    first = cluster.submit('--array=1-4', '--wrap', f'case $SLURM_ARRAY_TASK_ID in 2) exit 1;; 3) {gate.command()[2]};; esac')
    second = cluster.submit('--array=1-3,9', '-d', f'aftercorr:{first}', '--wrap', 'true')
    limited = cluster.submit('--array=1-3%1', '-d', f'aftercorr:{first}', '--wrap', 'true')
    done, never, waits = 'CD None', 'PD DependencyNeverSatisfied', 'PD Dependency'
    until(lambda: states(cluster, second), {f'{second}_1': done, f'{second}_2': never, f'{second}_[3,9]': waits})
    assert cluster.out('squeue', '-h', '-j', f'{second}_3', '-o', '%E').strip() == f'aftercorr:{first}(unfulfilled)'
    cluster.box.kill()
    cluster.box.start()
    assert states(cluster, second)[f'{second}_[3,9]'] == waits
    gate.open()
    until(lambda: states(cluster, second), {f'{second}_1': done, f'{second}_2': never, f'{second}_3': done, f'{second}_[9]': never})
    until(lambda: states(cluster, limited), {f'{limited}_1': done, f'{limited}_2': never, f'{limited}_3': done})
    late = cluster.submit('--array=1-3', '-d', f'aftercorr:{first}', '--wrap', 'true')
    until(lambda: states(cluster, late), {f'{late}_1': done, f'{late}_2': never, f'{late}_3': done})
    cluster.run('scancel', second, limited, late)
    check_journal(cluster, place)


def test_elements_that_wait_for_partners_obey_the_limit_of_their_array(cluster, gate):
    first = cluster.submit('--array=1-3', '--wrap', 'true')
    until(lambda: set(states(cluster, first).values()), {'CD None'})
    limited = cluster.submit('--array=1-3%1', '-d', f'aftercorr:{first}', '--wrap', gate.command()[2])
    until(lambda: sorted(row.split()[0] for row in states(cluster, limited).values()), ['PD', 'R'])
    gate.open(3)
    until(lambda: sorted(states(cluster, limited).values()), ['CD None'] * 3)


def check_journal(cluster, place):
    box, path = cluster.box, os.path.join(place, 'journal')
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0 and 'all identical' in done.stdout, done


@pytest.mark.parametrize('value, words', [
    ('singleton:1', 'dependency problem'), ('expand:1', 'is not supported'), ('after:1+x', 'dependency problem'),
    ('afterok:1+5', 'dependency problem'), ('after:+5', 'dependency problem'),
    ('afterok:1,afterok:2?afterok:3', 'dependency problem'), ('nosuch:1', 'dependency problem')])
def test_a_dependency_that_cannot_be_kept_is_refused(cluster, value, words):
    done = cluster.run('sbatch', '-d', value, '--wrap', 'true')
    assert done.code == 1 and done.out == '' and words in done.err, done


# --- steps ---


def test_srun_in_a_job_starts_its_tasks(cluster):
    job = cluster.wrap('srun -l bash -c \'echo $SLURM_PROCID/$SLURM_NTASKS@$SLURM_LOCALID\'', '-n', 3, '-o', 'out')
    cluster.finish(job)
    assert sorted(cluster.read('out').splitlines()) == ['0: 0/3@0', '1: 1/3@1', '2: 2/3@2']


def test_each_task_has_its_own_file(cluster):
    job = cluster.wrap('srun --unbuffered --output "%j_%t_log.out" --error "%j_%t_log.err" '
                       'bash -c "echo out; echo err >&2"', '-n', 2)
    cluster.finish(job)
    for task in (0, 1):
        assert cluster.read(f'{job}_{task}_log.out') == 'out\n' and cluster.read(f'{job}_{task}_log.err') == 'err\n'


@pytest.mark.parametrize('line, code', [
    ('srun bash -c "exit \\$SLURM_PROCID"', 2), ('srun nosuch', 2), ('srun bash -c "kill -9 \\$\\$"', 137)])
def test_srun_ends_with_the_highest_status(cluster, line, code):
    job = cluster.wrap(line, '-n', 3)
    assert cluster.finish(job)['exit_code'] == code


def test_srun_outside_a_job_is_one(cluster):
    done = cluster.run('srun', '--gres=gpu:1', 'bash', '-c', 'echo $SLURM_JOB_ID $SLURM_PROCID $SLURM_NTASKS; exit 5')
    assert done.code == 5 and done.out.split()[1] == '0'
    done = cluster.run('srun', '-n', 2, '-l', 'bash', '-c', 'echo $SLURM_NTASKS')
    assert done.code == 0 and sorted(done.out.splitlines()) == ['0: 2', '1: 2']


def test_host_names_are_expanded_in_and_out_of_a_job(cluster):
    assert cluster.out('scontrol', 'show', 'hostnames', 'gpu[1-3,07],x') == 'gpu1\ngpu2\ngpu3\ngpu07\nx\n'
    assert cluster.out('scontrol', 'show', 'hostlist', 'gpu1,gpu2,gpu4') == 'gpu[1-2,4]\n'
    job = cluster.wrap('scontrol show hostname; scontrol show hostnames $SLURM_JOB_NODELIST | head -n1', '-o', 'out')
    node = cluster.finish(job)['node']
    assert cluster.read('out') == f'{node}\n{node}\n'


def test_immediate_gives_up_when_the_resources_are_not_there(cluster, gate):
    harness.until(lambda: cluster.run('srun', '-I', 'echo', 'here').out == 'here\n', 'a start within the second')
    blocker = cluster.wrap(gate.command()[2], '--gres=gpu:8')
    cluster.box.wait(blocker, 'running')
    done = cluster.run('srun', '-I', '--gres=gpu:1', 'true')
    assert (done.code, done.out, done.err) == (1, '', 'srun: error: Unable to allocate resources: Requested nodes are busy\n'), done
    done = cluster.run('salloc', '--immediate=1', '--gres=gpu:1', 'true', env={'SLURM_EXIT_IMMEDIATE': '7'})
    assert done.code == 7 and 'salloc: error: Unable to allocate resources: Requested nodes are busy' in done.err, done
    assert cluster.run('srun', '-I', '--gres=gpu:1', 'true', env={'SLURM_IMMEDIATE': 'x'}).code == 1
    done = cluster.run('srun', '--immediate=x', 'true')
    assert done.code == 1 and '--immediate' in done.err, done
    assert cluster.out('squeue', '-h', '-o', '%i').split() == [str(blocker)]
    gate.open()


@pytest.mark.parametrize('program', ['srun', 'salloc'])
def test_immediate_is_over_when_the_request_arrives(cluster, program):
    """On a machine that is very busy: here mgpud does not read for longer than that."""
    begun = time.time()
    os.kill(cluster.box.process.pid, signal.SIGSTOP)
    try:
        asking = subprocess.Popen([program, '--immediate=1', 'true'], cwd=cluster.place, env=cluster.environment(), text=True,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **cluster.box.client.popen_arguments())
        harness.until(lambda: time.time() > begun + 3, 'the second is over')
    finally:
        os.kill(cluster.box.process.pid, signal.SIGCONT)
    _, err = asking.communicate(timeout=harness.DEADLINE_S)
    assert (asking.returncode, err) == (1, f'{program}: error: Unable to allocate resources: Requested nodes are busy\n')


def test_salloc_holds_a_job_while_its_command_runs(cluster):
    done = cluster.run('salloc', '-n', 2, '--gres=gpu:1', 'bash', '-c',
                       'squeue -h -j $SLURM_JOB_ID -o "%T %b"; srun -l bash -c "echo \\$SLURM_JOB_GPUS"; exit 4')
    assert done.code == 4 and 'salloc: Granted job allocation ' in done.err, done
    job = int(done.err.split('Granted job allocation ')[1].split()[0])
    lines = done.out.splitlines()
    assert lines[0] == 'RUNNING gres:gpu:1' and sorted(line[:2] for line in lines[1:]) == ['0:', '1:'], done
    assert cluster.finish(job)['state'] == 'cancelled'


def test_the_end_of_an_allocation_is_told_and_its_command_signalled(cluster):
    words = ['salloc', '-K', 'bash', '-c', 'trap "echo got; exit 3" TERM; scancel $SLURM_JOB_ID; sleep 60 > /dev/null 2>&1 & wait']
    done = cluster.run(*words)
    assert (done.code, done.out) == (3, 'got\n') and ' has been revoked.' in done.err, done
    assert 'Relinquishing' not in done.err


def test_an_allocation_ends_with_the_terminal_of_salloc(cluster, bell):
    user = cluster.box.client
    with subprocess.Popen(['salloc', '-G', '1', '--mem=100M', 'bash', '-c',
                           f'echo $SLURM_JOB_ID $SLURM_JOB_GPUS $SLURM_MEM_PER_NODE $SLURM_JOB_CPUS_PER_NODE > {bell.path}; sleep 60'],
                          cwd=cluster.place, env=cluster.environment(), stderr=subprocess.DEVNULL, **user.popen_arguments()) as salloc:
        job, *values = bell.wait().split()
        assert values == ['0', '100', '1']
        salloc.send_signal(signal.SIGHUP)
        salloc.wait(harness.DEADLINE_S)
    assert cluster.finish(int(job))['state'] == 'cancelled'


def test_the_signal_before_the_limit_is_for_the_steps_and_with_b_for_the_script(cluster):
    text = '#!/bin/bash\ntrap "echo script; exit 0" USR1\nsrun bash -c \'trap "echo step; exit 0" USR1; sleep 60 & wait\'{}\necho over\n'
    job = cluster.submit('--signal=USR1@58', '-t', '1', '-o', 'steps', cluster.script(text.format('')))
    assert cluster.finish(job)['state'] == 'done'
    assert cluster.read('steps') == 'step\nover\n'
    job = cluster.submit('--signal=B:USR1@58', '-t', '1', '-o', 'script', cluster.script(text.format(' & wait')))
    assert cluster.finish(job)['state'] == 'done'
    assert cluster.read('script') == 'script\n'


def test_a_job_requeues_itself_and_counts_its_restarts(cluster, bell):
    line = (f'echo ${{SLURM_RESTART_COUNT:-none}} > {bell.path}; [ -n "$SLURM_RESTART_COUNT" ] || '
            '{ scontrol requeue $SLURM_JOB_ID; sleep 60; }')
    job = cluster.wrap(line, '--requeue', env={'PATH': cluster.environment()['PATH']})
    assert (bell.wait(), bell.wait()) == ('none', '1')
    assert cluster.finish(job)['state'] == 'done'


def test_a_job_is_requeued_and_held(cluster, bell, gate):
    job = cluster.wrap(f'echo "${{SLURM_RESTART_COUNT:-none}}" > {bell.path}; {shlex.join(gate.command())}')
    assert bell.wait() == 'none'
    assert cluster.out('scontrol', 'requeuehold', job) == ''
    harness.until(lambda: cluster.box.job(job)['state'] == 'queued', 'the return to the queue')
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%T %r').strip() == 'PENDING JobHeldUser'
    gate.open()
    assert cluster.out('scontrol', 'release', job) == ''
    assert bell.wait() == '1'
    assert cluster.finish(job)['state'] == 'done'
    done = cluster.run('scontrol', 'requeuehold', job)
    assert done.code == 1 and 'Job has already finished' in done.err, done
    journal = os.path.join(cluster.place, 'journal')
    cluster.box.mgpu('journal', 'export', '-o', journal, user=cluster.box.user, check=True)
    replayed = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', journal], capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed


def test_small_commands_answer_truthfully(cluster):
    name = cluster.box.client.name
    assert cluster.out('sacctmgr', '-n', '-s', 'list', 'user', name, 'format=account%20').split() == ['default']
    assert cluster.run('sacctmgr', '-i', 'add', 'account', 'lab').code == 1
    held = cluster.wrap('true', '--hold')
    assert str(held) in cluster.out('sprio')
    assert 'Jobs pending:   1' in cluster.out('sdiag')
    cluster.finish(cluster.wrap('true', '--gres=gpu:1'))
    users = [row.split('|')[1] for row in cluster.out('sshare', '-n', '-P', '-a').splitlines()]
    assert users[0] == '' and name in users, users
    assert [row.split('|')[1] for row in cluster.out('sshare', '-n', '-P', '-U').splitlines()] == [name]
    assert cluster.out('sprio', '-h', '-o', '%i %u %P').split()[:2] == [str(held), name]
    cluster.script('given\n')
    job = cluster.wrap('sbcast job.sh copy && cat copy', '-o', 'out')
    cluster.script('given\n')
    cluster.finish(job)
    assert cluster.read('out') == 'given\n'


def test_a_test_of_a_job_names_the_only_node(cluster):
    done = cluster.run('sbatch', '--test-only', '--wrap', 'true')
    name = cluster.box.api('GET', '/nodes').json['nodes'][0]['name']
    assert done.code == 0 and f' using 1 processors on nodes {name} in partition gpu\n' in done.err, done


@pytest.mark.parametrize('command', ['srun', 'sbatch'])
def test_test_only_says_where_and_when_and_runs_nothing(cluster, command):
    script = cluster.script('#!/bin/sh\ntouch ran\n')
    words = ('touch', 'ran') if command == 'srun' else (script,)
    before = cluster.box.api('GET', '/jobs').json['jobs']
    done = cluster.run(command, '--test-only', '-n', 1, '--gres=gpu:1', *words)
    node = cluster.box.api('GET', '/nodes').json['nodes'][0]['name']
    partition = cluster.box.api('GET', '/partitions').json['partitions'][0]['name']
    assert done.code == 0 and done.out == '', done
    assert re.fullmatch(rf'{command}: Job \d+ to start at \d{{4}}-\S+ using 1 processors on nodes {node} in partition {partition}\n', done.err), done
    assert not os.path.exists(f'{cluster.place}/ran')
    assert cluster.box.api('GET', '/jobs').json['jobs'] == before


def test_wait_ends_with_the_highest_status_of_an_array(cluster):
    done = cluster.run('sbatch', '-W', '-a', '0-2', '-o', '/dev/null', '--wrap', 'exit $SLURM_ARRAY_TASK_ID')
    assert done.code == 2, done


@pytest.mark.parametrize('value', ['', '0'])
def test_an_empty_dependency_is_none(cluster, value):
    job = cluster.wrap('true', '-d', value)
    assert cluster.finish(job)['after'] is None


def test_a_bare_number_is_a_dependency_on_the_end(cluster):
    first = cluster.wrap('false')
    for words in (f'{first}', f'afterany:{first}:{first}', f'afterany:{first},afterany:{first}'):
        assert cluster.finish(cluster.wrap('true', '-d', words))['state'] == 'done', words


@pytest.mark.parametrize('value, kept', [
    ('afterok:{0},afterany:{0}', '{0}:ok'), ('afterany:{0}:{1},afterok:{0}', '{0}:ok,{1}:any'), ('after:{0},afterany:{0}', '{0}:any'),
    ('afternotok:{1},after:{0},after:{1}', '{1}:fail,{0}:start'), ('afterok:{0}?afterany:{0}', '{0}:any'), ('after:{0}?afterok:{0}', '{0}:start'),
    ('afterok:{0}?afterok:{0}?afterok:{1}', '{0}:ok?{1}:ok')])
def test_a_job_that_is_listed_twice_is_waited_for_as_both_demand(cluster, value, kept):
    first, second = (cluster.wrap('true', '-H') for _ in range(2))
    job = cluster.wrap('true', '-d', value.format(first, second))
    assert cluster.box.job(job)['after'] == kept.format(first, second)
    cluster.out('scancel', job, first, second)


def test_dependencies_that_exclude_each_other_are_refused(cluster):
    first = cluster.wrap('true', '-H')
    for value in (f'afterok:{first},afternotok:{first}', f'after:{first}+5,afterok:{first}'):
        done = cluster.run('sbatch', '-d', value, '--wrap', 'true')
        assert done.code == 1 and f'job {first} is listed twice' in done.err, done
    cluster.out('scancel', first)


def test_indexes_of_an_array_may_overlap_and_have_brackets(cluster):
    for text, indexes in (('[1-3]', '1-3'), ('1,1,2', '1-2'), ('1-3,2-4', '1-4'), ('4,2%1', '2,4%1')):
        job = cluster.wrap('true', '-H', '-a', text)
        assert cluster.box.job(job)['array'] == indexes, text
        cluster.out('scancel', job)


def test_other_names_of_options_mean_the_same(cluster):
    job = cluster.wrap('true', '-H', '--tasks-per-node=2', '-A', 'acct')
    assert cluster.out('squeue', '-h', '-j', job, '--partitions=gpu', '--accounts=acct', '-O', 'NumTasks').strip() == '2'
    assert cluster.out('squeue', '-h', '-j', job, '--accounts=other') == ''
    assert cluster.run('squeue', '-h', '-j', job, '--nodes=nosuch').err == 'squeue: error: Invalid node name nosuch\n'
    assert cluster.out('sacct', '-X', '-n', '-P', '-j', job, '--fields=JobID').strip() == str(job)
    assert 'JobID' in cluster.out('sacct', '--help-fields')
    cluster.out('sprio', '--users', cluster.box.client.name)
    cluster.out('scancel', job)
    assert cluster.out('srun', '--cpu_bind=none', 'echo', 'bound') == 'bound\n'
    for command in ('srun', 'salloc', 'sbatch'):
        assert '--tasks-per-node' in cluster.out(command, '--help'), command


@pytest.mark.parametrize('word', ['hetjob', 'packjob'])
def test_a_heterogeneous_job_is_refused(cluster, word):
    script = cluster.script(f'#!/bin/sh\n#SBATCH -n 1\n#SBATCH {word}\n#SBATCH -n 2\ntrue\n')
    done = cluster.run('sbatch', script)
    assert done.code == 1 and 'there are no heterogeneous jobs' in done.err and 'line 3' in done.err, done


@pytest.mark.parametrize('line', ['sbatch -n1 : -n2 job.sh', 'srun -n1 true : -n2 true', 'srun -n1 : -n2 true', 'salloc -n1 : -n2 true',
                                  'salloc true : true', 'srun --jobid=1 true : true'])
def test_components_on_the_command_line_are_refused(cluster, line):
    cluster.script('#!/bin/sh\n')
    done = cluster.shell(line)
    name = line.split()[0]
    assert (done.code, done.out) == (1, ''), done
    assert done.err.startswith(f"{name}: error: there are no heterogeneous jobs: ':' cannot separate components\n{name}: note: submit"), done
    assert cluster.out('srun', 'sh', '-c', ':') == ''


def test_the_number_of_tasks_at_a_time_is_changed_with_scontrol(cluster):
    job = cluster.submit('-a', '0-9%2', '--hold', '--wrap', 'true')
    for value, array in (('3', '0-9%3'), ('0', '0-9'), ('1', '0-9%1')):
        cluster.out('scontrol', 'update', f'jobid={job}', f'ArrayTaskThrottle={value}')
        assert cluster.box.job(job)['array'] == array
    single = cluster.submit('--hold', '--wrap', 'true')
    for words, said in (((f'jobid={single}', 'ArrayTaskThrottle=1'), f'Job {single} is not an array'),
                        ((f'jobid={job}', 'ArrayTaskThrottle=x'), "ArrayTaskThrottle: 'x' is not a whole number"),
                        (('nodename=nosuch', 'state=drain', 'reason=x'), 'slurm_update error: Invalid node name specified\n')):
        done = cluster.run('scontrol', 'update', *words, user=cluster.box.user)
        assert done.code == 1 and said in done.err, done
