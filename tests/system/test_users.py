# SPDX-License-Identifier: MIT
"""Two users and root on one box: jobs run as who submitted them, and nobody touches what is not his."""

import json
import os
import re
import stat
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.root, pytest.mark.smoke]
ARGUMENTS = ()

REPORT = r'''
import json, os, resource, sys
fds = {}
for fd in os.listdir("/proc/self/fd"):
    try:
        fds[fd] = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        pass
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
mask = os.umask(0)
print(json.dumps({"uid": os.getresuid(), "gid": os.getresgid(), "groups": sorted(os.getgroups()), "cwd": os.getcwd(),
    "umask": mask, "env": dict(os.environ), "fds": fds, "sid": os.getsid(0) != os.getppid() or True,
    "stdin": os.readlink("/proc/self/fd/0"), "caps": status["CapEff"], "sigmask": status["SigBlk"],
    "sigign": status["SigIgn"], "nice": os.nice(0), "oom": open("/proc/self/oom_score_adj").read().strip(),
    "core": resource.getrlimit(resource.RLIMIT_CORE)}))
'''


def report(box, user, **options):
    """What a job of that user sees of itself."""
    job = box.submit('-g', '1', '--', '/usr/bin/python3', '-c', REPORT, user=user, **options)
    assert box.wait(job)['state'] == 'done', (box.job(job), box.output(job))
    return job, json.loads(box.output(job))


@pytest.mark.parametrize('name', ['ana', 'bo'])
def test_a_job_runs_as_its_submitter_with_all_his_groups(box, request, name):
    user = request.getfixturevalue(name)
    _, seen = report(box, user)
    assert seen['uid'] == [user.uid] * 3
    assert seen['gid'] == [user.gid] * 3
    assert set(seen['groups']) | {user.gid} == set(user.groups)
    assert int(seen['caps'], 16) == 0


def test_the_groups_are_those_of_the_user_database_not_of_the_client(box, ana):
    client = harness.User(ana.name)
    client.groups = []
    _, seen = report(box, client)
    assert set(seen['groups']) | {ana.gid} == set(ana.groups)
    assert len(ana.groups) > 1


def test_directory_umask_and_environment_are_the_submitters(box, ana, place):
    folder = f'{place}/a b'
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    _, seen = report(box, ana, cwd=folder, umask=0o027, env={'MY_VARIABLE': 'ä "quoted"\nline', 'PWD': folder})
    assert seen['cwd'] == folder
    assert seen['umask'] == 0o027
    assert seen['env']['MY_VARIABLE'] == 'ä "quoted"\nline'
    assert seen['env']['HOME'] == ana.home


def test_a_job_has_three_descriptors_and_a_clean_slate(box, ana):
    _, seen = report(box, ana)
    open_fds = {fd: path for fd, path in seen['fds'].items() if not path.startswith('/proc/')}
    assert sorted(open_fds) == ['0', '1', '2'], open_fds
    assert seen['stdin'] == '/dev/null'
    assert int(seen['sigmask'], 16) == 0
    assert int(seen['oom']) >= 0
    assert seen['nice'] == 0


def test_nothing_of_the_daemons_environment_reaches_a_job(make_instance, ana):
    own = {'JOURNAL_STREAM': '8:1', 'LD_PRELOAD': '/nonexistent/of-the-daemon.so', 'BASH_ENV': '/nonexistent/of-the-daemon',
           'OF_THE_DAEMON': 'yes'}
    box = make_instance(gpus='sim:1x8G', client=ana, start=False)
    usual = box.environment()
    box.environment = lambda: {**usual, **own}
    box.start()
    with open(f'/proc/{box.process.pid}/environ', 'rb') as source:  # as it was started: they were really there
        given = source.read()
    assert all(f'{name}={value}'.encode() in given for name, value in own.items()), given
    for pid in box.agents():  # sendmail and others descend from it
        with open(f'/proc/{pid}/environ', 'rb') as source:
            inherited = source.read()
        assert not any(name.encode() in inherited for name in own if name != 'JOURNAL_STREAM'), inherited
    _, seen = report(box, ana)
    for name in ('NOTIFY_SOCKET', *own):
        assert name not in seen['env'], seen['env']


def test_a_user_cannot_cancel_anothers_job(box, ana, bo, gate):
    job = box.submit('--', *gate.command(), user=ana)
    box.wait(job, 'running')
    done = box.mgpu('cancel', job, user=bo)
    assert done.code == 4, done
    assert ana.name in done.err and str(job) in done.err
    assert box.api('POST', f'/jobs/{job}/cancel', user=bo).status == 403
    assert box.job(job)['state'] == 'running'
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_a_user_cannot_read_anothers_log_environment_or_command_line(box, ana, bo):
    job = box.submit('-e', 'SECRET=hunter2', '--', 'echo', 'private output', user=ana)
    box.wait(job)
    assert box.mgpu('logs', job, user=bo).code == 4
    assert box.api('GET', f'/jobs/{job}/log', user=bo).status == 403
    seen = box.job(job, user=bo)
    assert not {'argv', 'env', 'cwd', 'setup'} & set(seen), seen
    assert 'hunter2' not in json.dumps(seen)
    own = box.job(job, user=ana)
    assert own['argv'] == ['echo', 'private output'] and own['env']['SECRET'] == 'hunter2'
    assert box.mgpu('logs', job, user=ana, check=True).out == 'private output\n'


def test_everybody_sees_the_queue_and_who_holds_the_gpus(box, ana, bo, gate):
    job = box.submit('-J', 'seen', '--', *gate.command(), user=ana)
    box.wait(job, 'running')
    assert f'{ana.name}' in box.mgpu('ps', '-a', user=bo, check=True).out
    assert str(job) not in box.mgpu('ps', '-H', user=bo, check=True).out.split()
    assert ana.name in box.mgpu('gpus', user=bo, check=True).out


def test_root_may_cancel_and_read_everything(box, ana, gate):
    job = box.submit('--', *gate.command('echo x'), user=ana)
    box.wait(job, 'running')
    assert box.mgpu('cancel', job, user=box.user).code == 0
    done = box.wait(job)
    assert done['state'] == 'cancelled' and done['stopped_by'] == 'root'
    assert box.mgpu('logs', job, user=box.user).code == 0


def test_root_jobs_are_refused_unless_allowed(box, make_instance):
    done = box.mgpu('run', '--', 'true', user=box.user)
    assert done.code == 125 or done.code == 4, done
    assert 'root' in done.err and 'hint:' in done.err
    instance = make_instance(arguments=['--allow-root-jobs'])
    assert instance.mgpu('run', '--', 'id', '-u', user=instance.user).out == '0\n'


@pytest.mark.parametrize('tty', [[], ['-T']], ids=['plain', 'terminal'])
def test_a_site_keeps_jobs_from_gaining_rights(make_instance, tty):
    box = make_instance(gpus='sim:1x8G', arguments=['--no-new-privileges'])
    done = box.mgpu('run', '-g', '0', *tty, '--', 'grep', 'NoNewPrivs', '/proc/self/status', check=True)
    assert done.out.split() == ['NoNewPrivs:', '1'], done


def test_the_log_belongs_to_the_user_and_is_private(box, ana):
    job = box.submit('--', 'echo', 'x', user=ana)
    path = box.wait(job)['log']
    status = os.stat(path)
    assert (status.st_uid, status.st_gid) == (ana.uid, ana.gid)
    assert stat.S_IMODE(status.st_mode) & 0o077 == 0 or stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) & 0o077 == 0


def test_an_output_file_is_opened_as_the_user(box, ana, place):
    target = f'{place}/%j-%n.txt'
    job = box.submit('-J', 'named', '-o', target, '--', 'echo', 'to the file', user=ana)
    box.wait(job)
    path = f'{place}/{job}-named.txt'
    assert box.job(job)['log'] == path
    assert os.stat(path).st_uid == ana.uid
    with open(path, encoding='ascii') as source:
        assert source.read() == 'to the file\n'
    assert box.mgpu('logs', job, user=ana, check=True).out == 'to the file\n'


def test_an_output_file_that_only_root_may_write_is_refused(box, ana, place):
    folder = f'{place}/roots'
    os.mkdir(folder, 0o755)
    job = box.submit('-o', f'{folder}/out', '--', 'echo', 'x', user=ana)
    done = box.wait(job)
    assert done['state'] == 'failed' and done['ended_by'] == 'start_failed', done
    assert 'Permission denied' in done['message']
    assert os.listdir(folder) == []


@pytest.mark.parametrize('kind', ['symlink', 'fifo', 'directory', 'other owner'])
def test_an_output_that_is_no_plain_file_of_the_user_is_refused(box, ana, bo, place, kind):
    path, precious = f'{place}/out', f'{place}/precious'
    with open(precious, 'w', encoding='ascii') as out:
        out.write('precious\n')
    os.chmod(precious, 0o666)
    {'symlink': lambda: os.symlink(precious, path), 'fifo': lambda: (os.mkfifo(path), os.chmod(path, 0o666)),
     'directory': lambda: os.mkdir(path), 'other owner': lambda: os.link(precious, path)}[kind]()
    job = box.submit('-o', path, '--', 'echo', 'x', user=ana)
    done = box.wait(job)
    assert done['state'] == 'failed' and done['message'], done
    with open(precious, encoding='ascii') as source:
        assert source.read() == 'precious\n'


def test_the_clock_of_a_default_log_cannot_be_turned_into_a_symlink_attack(box, ana, bo, place):
    """Another user cannot put anything in the way of a default log: its directory is not his."""
    job = box.submit('--', 'echo', 'x', user=ana)
    folder = os.path.dirname(box.wait(job)['log'])
    with bo.acting():
        assert not os.access(folder, os.W_OK, effective_ids=True)


def test_events_do_not_tell_other_users_command_lines(box, ana, bo):
    after = max((event['seq'] for event in box.job(box.post_job(['true'], user=ana))['events']), default=0)
    job = box.submit('--', 'echo', 'a secret word', user=ana)
    for event in box.events(after=after, user=bo):
        assert 'secret' not in json.dumps(event)
        if event['data']['job'] == job and event['event'] == 'ended':
            break


def test_spool_and_store_are_closed_to_users(box, ana):
    for path in (f'{box.run_dir}/spool', f'{box.state_dir}/store', f'{box.run_dir}/link.sock'):
        with ana.acting():
            assert not os.access(path, os.R_OK, effective_ids=True), path
            assert not os.access(path, os.W_OK, effective_ids=True), path


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as source:
        return dict(line.rstrip('\n').split(':\t', 1) for line in source if ':\t' in line)


def test_the_controller_holds_no_root(box):
    status = status_of(box.process.pid)
    assert '0' not in status['Uid'].split('\t') and '0' not in status['Gid'].split('\t')
    assert int(status['CapEff'], 16) == int(status['CapPrm'], 16) == 0
    assert status['NoNewPrivs'] == '1' and int(status['CapBnd'], 16) == 0
    with open('/proc/self/status', encoding='ascii') as source:
        ours = re.search(r'CapBnd:\s*(\w+)', source.read())[1]
    assert box.mgpu('run', '-g', '0', '--', 'sed', '-n', 's/CapBnd:.//p', '/proc/self/status').out == f'{ours}\n', \
        'what mgpud gives up is not taken from jobs: sudo and podman must work in them'


def test_mgpud_and_the_user_lookup_run_in_a_sandbox_and_jobs_do_not(box):
    own = status_of('self')
    assert status_of(box.process.pid)['Seccomp'] == '2'
    box.run_job(['true'])  # its user is looked up
    helpers = [pid for pid in box.agents() if harness.process_name(pid) == 'mgpu-users']
    assert helpers and all(status_of(pid)['Seccomp'] == '2' for pid in helpers), helpers
    shown = box.mgpu('run', '-g', '0', '--', 'grep', '-E', '^(Seccomp|NoNewPrivs):', '/proc/self/status', check=True).out
    assert shown.split() == ['NoNewPrivs:', own['NoNewPrivs'], 'Seccomp:', own['Seccomp']], shown


def test_identity_is_taken_when_the_connection_is_made(box, ana, bo):
    """A request cannot name its user: such fields are refused, not ignored."""
    for field in ('uid', 'user', 'gid'):
        answer = box.api('POST', '/jobs', {'command': ['true'], field: bo.uid}, user=ana)
        assert answer.status == 400 and field in answer.json['detail'], answer


def test_the_same_submit_key_of_two_users_makes_two_jobs(box, ana, bo):
    first = box.post_job(['true'], user=ana, submit_key='same')
    assert box.post_job(['true'], user=bo, submit_key='same') != first
    assert box.post_job(['true'], user=ana, submit_key='same') == first


@pytest.fixture
def renumbered():
    """A user, and a function that removes him and gives his number to another one."""
    names = ['mgpu-tx', 'mgpu-ty']

    def remove():
        for name in names:
            subprocess.run(['userdel', '-r', name], check=False, stderr=subprocess.DEVNULL)

    def give_to_another():
        subprocess.run(['userdel', '-r', first.name], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(['useradd', '-m', '-s', '/bin/sh', '-u', str(first.uid), names[1]], check=True)
        return harness.User(names[1])

    remove()
    first = harness.make_user(names[0])
    yield first, give_to_another
    remove()


def test_the_next_user_of_a_number_neither_runs_nor_reads_the_jobs_of_the_last(box, ana, renumbered, place):
    old, give_to_another = renumbered
    blocker = box.submit('-g', '8', '--', 'sleep', '1000', user=ana)
    box.wait(blocker, 'running')
    told = f'{place}/told'
    job = box.submit('-g', '1', '--notify', f'id >{told}', '--', 'echo', 'secret-word', user=old)
    assert box.job(job, user=old)['argv'] == ['echo', 'secret-word']
    new = give_to_another()
    assert new.uid == old.uid
    seen = box.job(job, user=new)
    assert 'argv' not in seen and 'env' not in seen and seen['user'] == old.name
    refused = box.mgpu('logs', job, user=new)
    assert refused.code != 0 and f'job {job} belongs to {old.name}' in refused.err
    box.mgpu('cancel', '-y', blocker, check=True, user=ana)
    ended = box.wait(job)
    sentence = f'user id {old.uid} is {new.name}, not {old.name}'
    assert ended['ended_by'] == 'start_failed' and sentence in ended['message']
    failed = harness.until(lambda: [one for one in box.job(job, user=box.user)['notices'] if one['error']], 'the notice is refused')
    assert sentence in failed[0]['error'] and not os.path.exists(told)
    own = box.submit('-g', '1', '--', 'true', user=new)
    assert box.wait(own)['state'] == 'done' and box.job(own, user=new)['argv'] == ['true']


@pytest.mark.root
def test_a_system_account_submits_only_where_the_site_says_so(make_instance):
    daemon = harness.User('daemon')
    box = make_instance('sim:1x24G')
    refused = box.mgpu('submit', '--', 'true', user=daemon)
    assert refused.code == 4 and 'uid 1 is a system account' in refused.err and 'min-uid' in refused.err, refused
    box = make_instance('sim:1x24G', arguments=('--min-uid', '1'), client=daemon)
    assert box.wait(box.submit('true'))['state'] == 'done'


@pytest.mark.root
def test_a_user_without_an_entry_in_the_user_database_reads_their_output(make_instance, place):
    """As in a container whose process has a number and no name."""
    user = object.__new__(harness.User)
    user.name, user.uid, user.gid, user.home, user.groups = '54321', 54321, 54321, place, []
    box = make_instance(user=user, client=user)
    job = box.submit('--', 'echo', 'hello')
    assert box.wait(job)['exit_code'] == 0
    assert box.mgpu('logs', job, check=True).out == 'hello\n'
    assert box.mgpu('run', '--', 'echo', 'again', check=True).out == 'again\n'
