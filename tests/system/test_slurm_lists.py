# SPDX-License-Identifier: MIT
"""The columns of squeue, sacct and sinfo, and what scontrol changes: every letter and name of Slurm 22.05."""

import os
import re
import signal

import harness
import pytest
import slurm

SQUEUE_LETTERS = 'aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ'
SQUEUE_NAMES = '''Account AccrueTime admin_comment AllocNodes AllocSID ArrayJobID ArrayTaskID AssocID BatchFlag BatchHost BoardsPerNode
    BurstBuffer BurstBufferState Cluster ClusterFeature Command Comment Contiguous Container Cores CoreSpec CPUFreq cpus-per-task
    cpus-per-tres Deadline DelayBoot Dependency DerivedEC EligibleTime EndTime ExcNodes exit_code Feature GroupID GroupName
    HetJobID HetJobIDSet HetJobOffset JobArrayID JobID LastSchedEval Licenses MaxCPUs MaxNodes MCSLabel mem-per-tres MinCPUs
    MinMemory MinTime MinTmpDisk Name Network Nice NodeList Nodes NTPerBoard NTPerCore NTPerNode NTPerSocket NumCPUs NumNodes
    NumTasks Origin OriginRaw OverSubscribe Partition PendingTime PreemptTime Prefer Priority PriorityLong Profile QOS Reason
    ReasonList Reboot ReqNodes ReqSwitch Requeue Reservation ResizeTime RestartCnt ResvPort SchedNodes SCT SiblingsActive
    SiblingsActiveRaw SiblingsViable SiblingsViableRaw Sockets SPerBoard StartTime State StateCompact STDERR STDIN STDOUT StepID
    StepName StepState SubmitTime system_comment Threads TimeLeft TimeLimit TimeUsed tres-alloc tres-bind tres-freq tres-per-job
    tres-per-node tres-per-socket tres-per-step tres-per-task UserID UserName Wait4Switch WCKey WorkDir'''.split()
SINFO_LETTERS = 'aAbBcCdDeEfFgGhHiIlLmMnNoOpPrRsStTuUvwXYzZ'
SINFO_NAMES = '''AllocMem AllocNodes Available Cluster Comment Cores CPUs CPUsLoad CPUsState DefaultTime Disk Extra Features
    features_act FreeMem Gres GresUsed Groups MaxCPUsPerNode Memory NodeAddr NodeAI NodeAIOT NodeHost NodeList Nodes OverSubscribe
    Partition PartitionName Port PreemptMode PriorityJobFactor PriorityTier Reason Root Size SocketCoreThread Sockets StateCompact
    StateLong StateComplete Threads Time TimeStamp User UserLong Version Weight'''.split()
SACCT_FIELDS = 109  # of Slurm 22.05


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


def test_squeue_knows_every_letter_and_name(cluster):
    job = cluster.wrap('true', '-H', '-J', 'cols', '--licenses', 'a:0', '--wckey', 'w', '-c', '1', '--exclusive')
    cluster.out('scontrol', 'update', f'jobid={job}', 'ExcNodeList=n7')
    ask = ['squeue', '-h', '-j', job]
    for letter in SQUEUE_LETTERS:
        assert cluster.out(*ask, '-o', f'%{letter}').count('\n') == 1, letter
    for name in SQUEUE_NAMES:
        assert cluster.out(*ask, '-O', name).count('\n') == 1, name
    assert cluster.out(*ask, '-o', '%h|%W|%w|%x|%z|%H%%').strip() == 'NO|a:0|w|n7|*:*:*|*%'
    assert cluster.out(*ask, '-O', 'cpus-per-task:3,BatchFlag:.4,Requeue:2').rstrip('\n') == '1     10 '
    assert cluster.out('squeue', '-j', job, '-o', '%.12i %G').splitlines()[0] == '       JOBID GROUP'
    done = cluster.run('squeue', '-o', '%!')
    assert done.code == 1 and 'Invalid job format specification' in done.err, done


def test_sinfo_knows_every_letter_and_name(cluster):
    for letter in SINFO_LETTERS:
        assert cluster.out('sinfo', '-h', '-o', f'%{letter}').count('\n') == 1, letter
    for name in SINFO_NAMES:
        assert cluster.out('sinfo', '-h', '-O', name).count('\n') == 1, name
    assert cluster.out('sinfo', '-h', '-o', '%A|%F').strip() == '0/1|0/1/0/1'
    assert cluster.out('sinfo', '-h', '-O', 'GresUsed').strip() == 'gpu:simulated_gpu:0('  # cut at 20 letters


def test_sacct_knows_the_fields_of_its_help(cluster):
    job = cluster.wrap('true', '--wckey', 'w')
    cluster.finish(job)
    fields = cluster.out('sacct', '--helpformat').split()
    assert len(fields) == SACCT_FIELDS and len(set(fields)) == len(fields), len(fields)
    fields.append('Planned')  # of later versions
    row = cluster.out('sacct', '-n', '-P', '-X', '-j', job, '-o', ','.join(fields)).rstrip('\n').split('|')
    values = dict(zip(fields, row, strict=True))
    assert values['WCKey'] == 'w' and values['Planned'] == values['Reserved'] and values['State'] == 'COMPLETED'


@pytest.mark.parametrize('time', ['16:00', '4:30PM', '12:00 am', 'elevenses', '123030', '12/30/30', '12/30/30-12:00', '2030-12-30T12:34'])
def test_a_begin_may_be_written_in_all_of_slurms_forms(cluster, time):
    job = cluster.wrap('true', '-b', time)
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%t %r').strip() == 'PD BeginTime'
    cluster.run('scancel', job)


def test_cpu_time_is_that_which_was_allocated(cluster, box):
    job = cluster.wrap('sleep 1.1', '-c', '2')
    box.wait(int(job))
    seconds, cpus, allocated, text = cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'ElapsedRaw,NCPUS,CPUTimeRAW,CPUTime').strip().split('|')
    assert int(seconds) >= 1 and int(cpus) == 2 and int(allocated) == 2 * int(seconds)
    assert text == f'00:00:{int(allocated):02}'


def test_scontrol_updates_what_sbatch_can_ask_for(cluster):
    first = cluster.wrap('true', '-H')
    job = cluster.wrap('true', '-H', '--comment', 'old', '-A', 'lab')
    assert cluster.out('scontrol', 'update', f'JobId={job}', 'Comment=new words', 'QOS=high', f'Dependency=after:{first}+5',
                       'ExcNodeList=other', 'Requeue=1', 'JobName=renamed') == ''
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%k|%q|%a|%E|%x|%j').strip() == (
        f'new words|high|lab|after:{first}+5(unfulfilled)|other|renamed')
    assert cluster.out('scontrol', 'update', f'JobId={job}', 'Dependency=') == ''
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%E').strip() == '(null)'
    for limit, shown in (('30', '30:00'), ('+90', '2:00:00'), ('-60', '1:00:00')):
        assert cluster.out('scontrol', 'update', f'JobId={job}', f'TimeLimit={limit}') == ''
        assert cluster.out('squeue', '-h', '-j', job, '-o', '%l').strip() == shown
    done = cluster.run('scontrol', 'update', f'JobId={job}', 'Nosuch=1')
    assert done.code == 1 and 'Update of this parameter is not supported' in done.err, done
    cluster.run('scancel', first, job)


def test_scontrol_updates_the_notes_of_a_running_job_and_says_what_only_waiting_ones_can(cluster, box):
    job = cluster.wrap('exec sleep 1000')
    box.wait(int(job), 'running')
    assert cluster.out('scontrol', 'update', f'JobId={job}', 'Comment=halfway') == ''
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%k').strip() == 'halfway'
    for change in (('update', f'JobId={job}', 'NumNodes=2'), ('hold', job)):
        done = cluster.run('scontrol', *change)
        assert done.code == 1 and done.err.startswith('Job is no longer pending execution'), done
    cluster.run('scancel', job)
    box.wait(int(job))
    done = cluster.run('scontrol', 'hold', job)
    assert done.code == 1 and done.err.startswith('Job has already finished'), done


@pytest.mark.parametrize('word', ['requeue', 'requeuehold', 'suspend'])
def test_scontrol_says_of_a_waiting_job_that_it_waits(cluster, word):
    job, array = cluster.wrap('true', '-H'), cluster.wrap('true', '-H', '-a', '0-3')
    for name in (job, f'{array}_2'):
        done = cluster.run('scontrol', word, name)
        assert (done.code, done.err) == (1, f'Job is pending execution for job {name}\n'), done
    cluster.out('scancel', job, array)


@pytest.mark.parametrize('names, in_order, as_listed', [('b,a,c', 'a,b,c', 'b,a,c'), ('n2,n10,a,n1', 'a,n[1-2,10]', 'n[2,10],a,n1'), ('x', 'x', 'x')])
def test_hostlistsorted_sorts_by_name(cluster, names, in_order, as_listed):
    assert cluster.out('scontrol', 'show', 'hostlistsorted', names) == in_order + '\n'
    assert cluster.out('scontrol', 'show', 'hostlist', names) == as_listed + '\n'


def test_elements_of_arrays_are_listed_one_by_one(cluster):
    array = cluster.wrap('true', '-H', '--array=2-4,9')
    assert cluster.out('squeue', '-h', '-o', '%i %K', '-j', array) == f'{array}_[2-4,9] 2-4,9\n'
    each = [f'{array}_{index} {index}' for index in (2, 3, 4, 9)]
    assert cluster.out('squeue', '-h', '-r', '-o', '%i %K', '-j', array).splitlines() == each
    assert cluster.out('squeue', '-h', '-o', '%i %K', '-j', array, env={'SQUEUE_ARRAY': '1'}).splitlines() == each
    assert cluster.out('squeue', '-h', '-r', '-o', '%i', '-j', f'{array}_3') == f'{array}_3\n'
    assert len(cluster.out('squeue', '--json', '-r', '--users', cluster.box.client.name).split('"job_id"')) >= 5
    assert cluster.out('squeue', '-h', '-L', 'matlab') == '' == cluster.out('squeue', '-h', '-R', 'tonight')
    cluster.out('scancel', array)


def test_long_lists_begin_with_the_date(cluster):
    for command in ('squeue', 'sinfo'):
        date, header = cluster.out(command, '-l').splitlines()[:2]
        assert re.fullmatch(r'\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}', date) and header == header.upper()
    job = cluster.wrap('true', '-H')
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%V', env={'SLURM_TIME_FORMAT': '%Yx'}) == cluster.out('date', '+%Yx')


@pytest.mark.parametrize(('begin', 'expected'), [
    ('+2 hours', r'(Tomorr \d\d:\d\d|\d\d:\d\d:\d\d)'), ('tomorrow 12:00', 'Tomorr 12:00'), ('+3 days', r'(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d|\d+ [A-Z][a-z]+ \d\d:\d\d'),
    ('+9 days', r'\d+ [A-Z][a-z]+ \d\d:\d\d'), ('+1000 days', r'\d+ [A-Z][a-z]+ \d{4}')])
def test_times_are_shown_as_they_are_near(cluster, begin, expected):
    when = cluster.out('date', '-d', begin, '+%Y-%m-%dT%H:%M:%S').strip()
    job = cluster.wrap('true', '--begin', when, '-o', '/dev/null')
    shown = cluster.out('squeue', '-h', '-j', job, '-o', '%S', env={'SLURM_TIME_FORMAT': 'relative', 'LC_ALL': 'C'}).strip()
    cluster.out('scancel', job)
    # In another year, days are counted as Slurm counts them.
    assert re.fullmatch(expected, shown) or when[:4] != cluster.out('date', '+%Y').strip(), shown
    cluster.out('scancel', job)


def test_sacct_selects_by_what_jobs_are(cluster):
    job = cluster.wrap('exit 2', '-J', 'select', '-t', '10', '--mem=2G', '--wckey', 'key')
    cluster.finish(job)
    group = cluster.out('id', '-gn').strip()
    ask = ['sacct', '-X', '-n', '-P', '-o', 'JobID', '-j', job]
    for words in (['-g', group], ['-i', '1-2'], ['-I', '1'], ['-R', 'NonZeroExitCode'], ['-k', '10'], ['-k', '5', '-K', '20'], ['-K', '5'], ['-W', 'key']):
        assert cluster.out(*ask, *words) == f'{job}\n', words
    for words in (['-g', 'root'], ['-i', '2'], ['-I', '4-9'], ['-R', 'TimeLimit'], ['-k', '20'], ['-k', '1', '-K', '5'], ['-W', 'other'], ['-C', 'a100']):
        assert cluster.out(*ask, *words) == '', words
    sizes = {unit: cluster.out('sacct', '-X', '-n', '-P', '-o', 'ReqMem', '-j', job, f'--units={unit}').strip() for unit in 'KMT'}
    assert sizes == {'K': '2097152K', 'M': '2048M', 'T': '0.00T'}
    assert 'exit 2' in cluster.out('sacct', '-B', '-j', job) and 'PATH=' in cluster.out('sacct', '--env-vars', '-j', job)
    done = cluster.run('sacct', '-T')
    assert done.code == 1 and '--truncate is not supported' in done.err


def test_scancel_ends_only_jobs_that_all_filters_select(cluster):
    jobs = [cluster.wrap('true', '-H', *words) for words in ([], ['-q', 'high'], ['--wckey', 'k'])]

    def left():
        return cluster.out('squeue', '-h', '-o', '%i', '-j', ','.join(str(job) for job in jobs)).split()
    for words in (['-q', 'nosuch'], ['-R', 'nosuch'], ['--wckey', 'nosuch'], ['-A', 'nosuch']):
        assert cluster.out('scancel', '--me', *words) == '' and len(left()) == 3, words
    assert cluster.run('scancel', '-M', 'other', '--me').code == 1 and len(left()) == 3
    cluster.out('scancel', '-q', 'high')
    cluster.out('scancel', '--wckey=k')
    assert left() == [str(jobs[0])]
    done = cluster.run('scancel', '-i', jobs[0], input='n\n')
    assert (done.code, done.out) == (0, f'Cancel job_id={jobs[0]} name=wrap partition=gpu [y/n]? ') and len(left()) == 1
    assert cluster.run('scancel', '-i', '--me', input='y\n').code == 0 and left() == []


ELEMENTS_SPARED = (  # the filters and the ids after them; what is left of an array of 0-9, of which two run at a time
    (['-t', 'PENDING', '-u', '{user}'], 'RUNNING 0 1'),
    (['-t', 'PD', '{array}'], 'RUNNING 0 1'),
    (['-t', 'PENDING', '{array}_3', '{array}_[5-6]'], 'PENDING 2 4 7-9 RUNNING 0 1'),
    (['--me', '{array}_3'], 'PENDING 2 4-9 RUNNING 0 1'),
    (['-n', 'spared', '{array}_[3-9]'], 'PENDING 2 RUNNING 0 1'),
    (['-p', 'gpu', '{array}_0', '{array}_9'], 'PENDING 3-8 RUNNING 1 2'),
    (['-t', 'RUNNING', '{array}_0', '{array}_9'], 'PENDING 3-9 RUNNING 1 2'),
    (['-t', 'SUSPENDED', '{array}'], 'PENDING 2-9 RUNNING 0 1'),
    (['-s', 'USR1', '-t', 'PENDING', '--me'], 'PENDING 2-9 RUNNING 0 1'),
    (['-n', 'spared,other'], 'PENDING 2-9 RUNNING 0 1'),
)


@pytest.mark.parametrize('words, left', ELEMENTS_SPARED, ids=lambda case: ' '.join(case) if isinstance(case, list) else '')
def test_scancel_with_filters_spares_elements_that_they_do_not_select(cluster, words, left):
    array = cluster.wrap('exec sleep 1000', '-a', '0-9%2', '-J', 'spared', '-o', '/dev/null')

    def states():
        found = {}
        for line in cluster.out('squeue', '-h', '-o', '%T %i', '-j', array).splitlines():
            state, index = re.fullmatch(rf'(\w+) {array}_\[?([-0-9,]+)(?:%2\])?', line).groups()
            found.setdefault(state, []).extend(index.split(','))
        return ' '.join(' '.join([state, *sorted(found[state], key=lambda index: int(index.split('-')[0]))]) for state in sorted(found))
    assert cluster.box.await_news(lambda: states() == 'PENDING 2-9 RUNNING 0 1')
    assert cluster.out('scancel', *(word.format(array=array, user=cluster.box.client.name) for word in words)) == ''
    assert cluster.box.await_news(lambda: states() == left), states()
    cluster.out('scancel', array)


def test_scancel_with_filters_ends_only_the_step_that_is_named(cluster):
    job = cluster.wrap('srun sleep 1000; echo ended; exec sleep 1000', '-o', 'steps.out')
    assert cluster.box.await_news(lambda: f'{job}.0' in cluster.out('squeue', '-h', '-s', '-o', '%i'))
    assert cluster.out('scancel', '--me', f'{job}.0') == ''
    assert cluster.box.await_news(lambda: 'ended' in cluster.read('steps.out'))
    assert cluster.out('squeue', '-h', '-o', '%T', '-j', job) == 'RUNNING\n'
    cluster.out('scancel', job)


NAMES = ('two words', ' lead', 'a,b', 'é', 'a%b', "it's", '*')


@pytest.mark.parametrize('name', NAMES)
def test_jobs_are_selected_by_any_name(cluster, name):
    job, other = cluster.wrap('true', '-H', '-J', name), cluster.wrap('true', '-H', '-J', 'words')
    if ',' not in name and name == name.strip():  # in a list, a comma ends a name
        assert cluster.out('squeue', '-h', '-n', f'nosuch,{name}', '-o', '%i').split() == [str(job)]
        assert cluster.out('sacct', '-X', '-n', f'--name={name}', '-j', f'{job},{other}', '-o', 'jobid').split() == [str(job)]
    assert cluster.out('scontrol', 'update', f'jobname={name}', 'comment=x') == ''
    assert cluster.out('squeue', '-h', '-o', '%k', '-j', f'{job},{other}').split() == ['x', '(null)']
    assert cluster.out('scancel', '-n', name) == ''
    assert cluster.out('squeue', '-h', '-o', '%i', '-j', f'{job},{other}').split() == [str(other)]
    cluster.out('scancel', other)


def test_scontrol_shows_a_job_among_all_as_it_shows_it_alone(cluster):
    jobs = [cluster.wrap('true', '-H'), cluster.wrap('true', '-H', '-a', '0-3'), cluster.wrap('true', '-o', '/dev/null')]
    cluster.finish(jobs[2])
    together = cluster.out('scontrol', '-o', 'show', 'job').splitlines()
    for job in jobs:
        assert cluster.out('scontrol', '-o', 'show', 'job', job).splitlines()[0] in together
    cluster.out('scancel', *jobs)


def test_squeue_gives_a_separate_element_the_reason_of_its_array(cluster):
    array = cluster.wrap('exec sleep 1000', '-a', '0-4%1', '-o', '/dev/null')
    ask = ['squeue', '-h', '-j', array, '-t', 'PENDING', '-o', '%r']
    assert cluster.box.await_news(lambda: cluster.out('squeue', '-h', '-t', 'RUNNING', '-j', array))
    cluster.out('scontrol', 'update', f'jobid={array}_3', 'comment=own')
    assert cluster.box.await_news(lambda: cluster.out(*ask).split() == ['JobArrayTaskLimit'] * 2), cluster.out(*ask)
    assert cluster.out(*ask, '-r').split() == ['JobArrayTaskLimit'] * 4
    cluster.out('scancel', array)


def test_srun_names_its_own_option_for_input_that_it_read_in_vain(cluster):
    done = cluster.run('srun', 'true', input='a\nb\n')
    assert done.code == 0
    assert done.err == 'srun: 4 bytes of standard input were read ahead and not used; --input=none leaves them to other commands\n'


@pytest.mark.parametrize('words', ['sbatch --wrap true', 'squeue', 'sinfo', 'sacct', 'scontrol show node'])
def test_a_command_that_cannot_write_names_itself(cluster, words):
    done = cluster.shell(f'{words} > /dev/full')
    assert done.code == 1 and all(line.startswith(f'{words.split()[0]}: ') for line in done.err.splitlines()), done


def test_sinfo_selects_and_sorts_nodes(cluster):
    node = cluster.out('sinfo', '-h', '-o', '%N')
    assert cluster.out('sinfo', '-h', '-r', '-S', '-P', '-o', '%N') == node and cluster.out('sinfo', '-h', '-d', '-o', '%N') == ''
    assert cluster.out('sinfo', '-T') == 'No reservations in the system\n'


@pytest.mark.root
def test_administrators_drain_and_resume_nodes(cluster, box):
    node = cluster.out('sinfo', '-h', '-o', '%n').strip()
    done = cluster.run('scontrol', 'update', f'NodeName={node}', 'State=DRAIN', 'Reason=disk')
    assert done.code == 1, done
    admin = box.user
    assert cluster.run('scontrol', 'update', f'NodeName={node}', 'State=DRAIN', user=admin).code == 1
    assert cluster.out('scontrol', 'update', f'NodeName={node}', 'State=DRAIN', 'Reason=disk', user=admin) == ''
    assert cluster.out('sinfo', '-h', '-R', '-o', '%E|%t').strip() == 'disk|drain'
    assert cluster.out('scontrol', 'update', f'NodeName={node}', 'State=RESUME', user=admin) == ''
    assert cluster.out('sinfo', '-h', '-o', '%t').strip() == 'idle'


@pytest.mark.parametrize('line, sentence', [
    ('squeue -u nosuchuser', 'squeue: error: Invalid user: nosuchuser'),
    ('sacct -u nosuchuser', 'sacct: error: Invalid user id: nosuchuser'),
    ('sacct -s nosuch', "sacct: fatal: unrecognized job state value 'nosuch'"),
    ('sacct -o nosuch', 'sacct: error: Invalid field requested: "nosuch"'),
    ('squeue --yaml', 'squeue: error: --yaml is not supported: --json prints the same as JSON'),
    ('squeue -M other', "squeue: error: No cluster 'other' known by database."),
    ('sinfo -t nosuch', 'sinfo: error: Bad state string: "nosuch"'),
    ('scancel -u nosuchuser', 'scancel: error: Invalid user name: nosuchuser'),
    ('scancel -s NOSUCH 1', 'Unknown job signal: NOSUCH'),
    ('squeue -t nosuch', 'squeue: error: Invalid job state specified: nosuch')])
def test_wrong_values_are_refused_in_slurms_words(cluster, line, sentence):
    done = cluster.run(*line.split())
    assert (done.code, done.out, done.err.splitlines()[0]) == (1, '', sentence), done


def test_help_on_the_fields_of_sacct_may_come_with_other_options(cluster):
    assert 'JobID ' in cluster.out('sacct', '-j', '1,2', '--helpformat')


def test_a_script_that_cannot_be_written_is_an_error(cluster):
    job = cluster.wrap('true', '-H')
    done = cluster.run('scontrol', 'write', 'batch_script', job, '/dev/full')
    assert done.code == 1 and 'No space left on device' in done.err and done.out == '', done
    assert 'written to' in cluster.out('scontrol', 'write', 'batch_script', job, 'copy') and cluster.read('copy').endswith('true\n')


def test_srun_of_a_missing_program_exits_with_2(cluster):
    assert cluster.run('srun', 'nosuchprogram').code == 2
    assert cluster.run('srun', 'sh', '-c', 'exit 127').code == 127


def test_sacct_lists_each_run_of_a_job_that_was_requeued(cluster):
    job = cluster.wrap('sleep 1000', '--requeue', '-o', '/dev/null')
    cluster.box.wait(job, 'running')
    cluster.out('scontrol', 'requeue', job)
    harness.until(lambda: cluster.box.job(job)['attempt'] == 2 and cluster.box.job(job)['state'] == 'running', 'it does not run again')
    cluster.out('scancel', job)
    cluster.finish(job)
    listed = cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'JobID,State', '-D').splitlines()
    assert listed[0] == f'{job}|REQUEUED' and listed[1].startswith(f'{job}|CANCELLED by ') and len(listed) == 2, listed
    start, end = cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'Start,End', '--duplicates').splitlines()[0].split('|')
    assert re.fullmatch(r'\d{4}-.*', start) and start <= end
    assert len(cluster.out('sacct', '-X', '-n', '-P', '-j', job).splitlines()) == 1


def test_sacct_has_the_times_of_each_run(cluster, gate):
    """The first run is longer than the second, and suspended for a second of it."""
    job = cluster.wrap(' '.join(gate.command()[2:]), '--requeue', '-o', '/dev/null')
    cluster.box.wait(job, 'running')
    cluster.out('scontrol', 'suspend', job)
    harness.until(lambda: seconds_of(cluster, job, 'Suspended', '-X')[-1] >= 2, 'it is suspended for two seconds')
    cluster.out('scontrol', 'resume', job)
    cluster.out('scontrol', 'requeue', job)
    harness.until(lambda: cluster.box.job(job)['attempt'] == 2 and cluster.box.job(job)['state'] == 'running', 'it does not run again')
    gate.open()
    cluster.finish(job)
    elapsed, suspended, cpu = (seconds_of(cluster, job, field, '-X', '-D') for field in ('Elapsed', 'Suspended', 'CPUTimeRAW'))
    assert elapsed[0] >= 2 > elapsed[1] and suspended[0] >= 2 and suspended[1] == 0, (elapsed, suspended)
    assert cpu[0] >= 2 > cpu[1], cpu


def seconds_of(cluster, job, field, *words):
    """What sacct says of each line, in seconds."""
    texts = cluster.out('sacct', '-n', '-P', '-j', job, '-o', field, *words).split()
    return [sum(int(part) * 60 ** i for i, part in enumerate(reversed(text.split(':')))) for text in texts]


def test_sacct_shows_running_from_the_allocation_to_the_end(cluster, gate):
    """Programs that poll sacct take a state that it never prints in Slurm for an end."""
    def shown(job):
        return cluster.out('squeue', '-h', '-j', job, '-o', '%T').strip(), cluster.out('sacct', '-X', '-n', '-P', '-j', job, '-o', 'state').strip()

    stopped = cluster.box.agents()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        job = cluster.wrap('true')
        harness.until(lambda: cluster.box.job(job)['state'] == 'starting', 'it is starting')
        assert shown(job) == ('CONFIGURING', 'RUNNING')
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    cluster.finish(job)
    job = cluster.wrap(f"trap '' TERM; {' '.join(gate.command()[2:])}", '-o', '/dev/null')
    cluster.box.wait(job, 'running')
    cluster.box.mgpu('cancel', '--grace', '1h', job, check=True)
    harness.until(lambda: cluster.box.job(job)['state'] == 'stopping', 'it is stopping')
    assert shown(job) == ('COMPLETING', 'RUNNING')
    gate.open()
    cluster.finish(job)


def test_fields_of_sacct_can_be_abbreviated(cluster):
    job = cluster.wrap('true')
    cluster.finish(job)
    assert cluster.out('sacct', '-X', '-P', '-j', job, '--format=job,elap,stat').splitlines()[0] == 'JobID|Elapsed|State'
    assert cluster.run('sacct', '-o', 'nosuch').code == 1


def test_the_directory_of_a_job_is_shown_to_its_owner(cluster, bo):
    job = cluster.wrap('true', '-H')
    for words in (('squeue', '-h', '-o', '%Z'), ('squeue', '-h', '-O', 'workdir:200'), ('sacct', '-X', '-n', '-P', '-o', 'workdir')):
        assert cluster.out(*words, '-j', job).strip() == os.path.realpath(cluster.place), words
        assert cluster.out(*words, '-j', job, user=bo).strip() == '', words
    cluster.out('scancel', job)


def test_lists_take_thousands_of_ids(cluster):
    job = cluster.wrap('true', '-H')
    ids = ','.join(str(number) for number in range(1, 5001))
    assert str(job) in cluster.out('sacct', '-X', '-n', '-P', '-j', ids, '-o', 'JobID').split()
    assert cluster.out('squeue', '-h', '-j', ids, '-o', '%i').split() == [str(job)]
    cluster.out('scancel', job)


def test_a_range_that_is_too_long_cancels_nothing(cluster):
    array = cluster.wrap('true', '-H', '-a', '0-20001')
    done = cluster.run('scancel', f'{array}_[1-20001]')
    assert done.code == 1 and 'more than 20000 job ids: name fewer, or a whole array by its number' in done.err, done
    assert cluster.box.job(array)['array_left'] == '0-20001'
    cluster.out('scancel', array)
    assert cluster.out('sacct', '-X', '-n', '-P', '-j', array, '-o', 'JobID,State').startswith(f'{array}_[0-20001]|CANCELLED by ')


def test_sacct_takes_a_time_of_day_for_todays(cluster):
    """At the first minute of a day, and after midnight between two commands, these are still true."""
    job = cluster.wrap('true')
    cluster.finish(job)
    today = cluster.out('date', '+%m/%d').strip()
    for start in ('00:00', 'today', 'midnight', '12:00am', today, today.replace('/', ''), f'{today}-00:00', 'now-1hour', '2026-01-01'):
        assert str(job) in cluster.out('sacct', '-X', '-n', '-P', '-S', start, '-o', 'JobID').split(), start
    assert str(job) not in cluster.out('sacct', '-X', '-n', '-P', '-S', '2026-01-01', '-E', '00:00', '-o', 'JobID').split()
    done = cluster.run('sacct', '-S', '2026-11-02', '-E', '2026-11-01')
    assert done.code == 1 and 'Start time (2026-11-02T00:00:00) requested is after end time (2026-11-01T00:00:00).' in done.err, done


def test_a_day_to_begin_on_is_its_midnight(cluster):
    job = cluster.wrap('true', '--begin', 'tomorrow')
    tomorrow = cluster.out('date', '-d', 'tomorrow 00:00', '+%FT%T').strip()
    assert cluster.out('squeue', '-h', '-j', job, '-o', '%S').strip() == tomorrow
    cluster.out('scontrol', 'update', f'jobid={job}', 'starttime=now-1hour')
    cluster.finish(job)
