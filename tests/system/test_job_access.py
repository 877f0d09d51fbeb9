# SPDX-License-Identifier: MIT
"""Commands in jobs on machines that have joined use mgpud through their node, as the job's owner, without a token."""

import contextlib
import os
import socket
import sqlite3
import ssl
import subprocess

import harness
import pytest
import rogue
import skew
import slurm

Cluster = pytest.importorskip('cluster').Cluster  # nodes that join over TLS

ASK = b'GET /api/v1/jobs/%d HTTP/1.1\r\nHost: localhost\r\n\r\n'


@pytest.fixture
def cluster(two, place):
    made = slurm.Slurm(two.box, place)
    made.nodes = two.nodes
    os.symlink(f'{harness.programs()}/mgpu', f'{made.folder}/mgpu')
    return made


def run_in_job(cluster, line, *words):
    """(job, how it ended, what the script printed) of a job on a node."""
    job = cluster.wrap(line, '--gres=gpu:1', '-o', f'{cluster.place}/out.%j', *words)
    return job, cluster.finish(job), cluster.read(f'out.{job}')


def hold(cluster, *words, user=None):
    """A job that runs until it is cancelled."""
    job = cluster.wrap('sleep 1000', '--gres=gpu:1', '-o', '/dev/null', *words, user=user)
    cluster.box.wait(job, 'running')
    return job


def test_the_commands_of_a_job_need_no_token(cluster):
    # The word of its start may be on its way to mgpud when its first command asks.
    line = ('while [ "$(squeue -h -j $SLURM_JOB_ID -o %T)" = CONFIGURING ]; do :; done; '
            'squeue -h -j $SLURM_JOB_ID -o "%i %T"; mgpu show $MGPU_JOB_ID >/dev/null && echo shown; '
            'srun -n 2 hostname >/dev/null && echo steps; mgpu exec --step -n 2 $MGPU_JOB_ID -- true && echo more; '
            'child=$(sbatch --parsable -o /dev/null --wrap true --hold) && scancel $child && echo submitted; '
            'mgpu edit $MGPU_JOB_ID time=1h && echo changed')
    job, ended, out = run_in_job(cluster, line, '-n', 2)
    assert ended['state'] == 'done', out
    assert out.splitlines()[:5] == [f'{job} RUNNING', 'shown', 'steps', 'more', 'submitted'] and out.endswith('changed\n'), out
    assert f'{job}.1|COMPLETED' in cluster.out('sacct', '-n', '-P', '-j', job, '-o', 'JobID,State')


def test_nothing_of_a_step_on_two_nodes_stays_after_it(cluster):
    """srun says that the exit status has come, and leaves: the last of it passes the socket for jobs, too."""
    job, ended, out = run_in_job(cluster, 'for i in 1 2 3; do srun -N 2 -n 2 -l sh -c "echo $i"; done', '-N', 2)
    assert ended['state'] == 'done' and sorted(out.split('\n')[:-1]) == [f'{rank}: {i}' for rank in (0, 1) for i in (1, 2, 3)], out
    for node in cluster.nodes.values():
        harness.until(lambda node=node: not harness.processes(f'{node.run_dir}/spool/{job}.1.'), 'its processes have left')


def test_a_job_changes_no_other_job_that_it_has_not_submitted(cluster, bo):
    own, others = hold(cluster), hold(cluster, user=bo)
    line = f'for job in {own} {others}; do mgpu cancel $job; squeue -h -j $job -o %T; done; mgpu logs {others}; mgpu token list'
    job, _, out = run_in_job(cluster, line)
    assert f'commands in job {job} can change only that job and the jobs that it has submitted, not job {own}' in out, out
    assert f'job {others} belongs to {bo.name}' in out and out.count('RUNNING') == 2, out
    assert 'commands in a job on this node do not have the right to do this' in out.splitlines()[-2], out
    assert cluster.box.job(own)['state'] == cluster.box.job(others, user=bo)['state'] == 'running'
    for held in (own, others):
        cluster.box.mgpu('cancel', held, user=cluster.box.user, check=True)
        cluster.box.wait(held)


def test_a_process_outside_all_jobs_is_told_what_it_needs(cluster):
    outside = {'MGPU_SOCKET': f'{cluster.nodes["n1"].run_dir}/jobs.sock'}
    done = cluster.box.mgpu('list', env=outside)
    assert done.code != 0 and 'only commands in jobs can use mgpud through this machine without a token' in done.err, done
    assert 'MGPU_HOST and a token' in done.err, done
    done = cluster.run('squeue', env=outside)
    assert done.code == 1 and 'only commands in jobs' in done.err, done


def test_a_command_with_other_rights_than_the_job_is_not_the_job(cluster):
    if not harness.IS_ROOT:
        pytest.skip('needs another user in the cgroup of a job')
    job = hold(cluster)
    spool = f'{cluster.nodes["n1"].run_dir}/spool/{job}.1.0.0'
    node = 'n1' if os.path.exists(spool) else 'n2'
    groups = harness.until(lambda: groups_of_command(cluster.nodes[node].run_dir, job), 'the process of a job in its cgroup')
    script = 'for f in $1; do echo $$ >$f; done; shift; exec "$@"'
    files = ' '.join(find_group_files(groups))
    done = subprocess.run(['sh', '-c', script, 'sh', files, f'{harness.programs()}/mgpu', 'list'], capture_output=True, text=True,
                          check=False, env={**os.environ, 'MGPU_SOCKET': f'{cluster.nodes[node].run_dir}/jobs.sock'})
    assert done.returncode != 0 and 'only commands in jobs' in done.stderr, done
    cluster.out('scancel', job)
    cluster.finish(job)


def groups_of_command(run_dir, job):
    """/proc/PID/cgroup of the job's `sleep`, None before it is there: other tests have such jobs, too."""
    with open(f'{run_dir}/cgroup-name', encoding='ascii') as file:
        name = file.read().strip()
    for pid in harness.processes('sleep 1000'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/cgroup', encoding='ascii') as file:
            groups = file.read()
            if name in groups and f'/j{job}.1/' in groups:
                return groups
    return None


def find_group_files(groups):
    """The files by which a process enters the job's groups among these."""
    with open('/proc/self/mounts', encoding='ascii') as file:
        mounts = [line.split() for line in file]
    for line in groups.splitlines():
        _, controllers, path = line.split(':', 2)
        if '/j' not in path:
            continue
        for _, place, kind, options, *_ in mounts:
            if kind == ('cgroup' if controllers else 'cgroup2') and set(filter(None, controllers.split(','))) <= set(options.split(',')):
                yield f'{place}{path}/cgroup.procs'
                break


def test_a_connection_ends_with_its_job(cluster):
    """A process that leaves its job takes nothing with it."""
    path = f'{cluster.place}/kept.sock'
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path)
        os.chmod(path, 0o777)
        door.listen(1)
        cluster.script('''import os, socket, sys, time
own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
own.connect(os.environ['MGPU_SOCKET'])
out = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
out.connect(sys.argv[1])
socket.send_fds(out, [b'x'], [own.fileno()])
time.sleep(1000)
''', 'give.py')
        job = cluster.wrap(f'exec python3 {cluster.place}/give.py {path}', '--gres=gpu:1', '-o', '/dev/null')
        door.settimeout(harness.DEADLINE_S)
        _, fds, _, _ = socket.recv_fds(door.accept()[0], 1, 1)
    with socket.socket(fileno=fds[0]) as kept:
        kept.settimeout(harness.DEADLINE_S)
        kept.sendall(ASK % job)
        assert kept.recv(65536).startswith(b'HTTP/1.1 200'), 'the job itself gets no answer'
        cluster.out('scancel', job)
        cluster.finish(job)
        with contextlib.suppress(ConnectionError):
            kept.sendall(ASK % job)
            assert not kept.recv(65536)


# As many connections as its second argument says, which it keeps until the gate opens; the statuses of their answers.
FLOOD = '''import os, socket, sys
kept = []
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.connect(os.environ['MGPU_SOCKET'])
    one.sendall(b'GET /api/v1/version HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
    kept.append(one)
    print(one.recv(65536)[9:12].decode(), flush=True)
print('all', flush=True)
os.read(os.open(sys.argv[1], os.O_RDONLY), 1)
'''


def test_a_job_that_floods_its_node_costs_only_itself(cluster, gate):
    cluster.script(FLOOD, 'flood.py')
    job = cluster.wrap(f'exec python3 {cluster.place}/flood.py {gate.path} 40', '--gres=gpu:1', '-w', 'n1', '-o', f'{cluster.place}/flood')
    harness.await_text(f'{cluster.place}/flood', 'all\n')
    assert cluster.read('flood').split() == ['200'] * 32 + ['503'] * 8 + ['all']
    _, ended, out = run_in_job(cluster, 'squeue -h -j $SLURM_JOB_ID -o %T', '-w', 'n1')
    assert (ended['state'], out) == ('done', 'RUNNING\n'), out
    gate.open()
    cluster.finish(job)


@pytest.mark.skipif(not harness.IS_ROOT, reason='needs two users')
def test_the_jobs_of_a_user_together_leave_connections_of_their_node_to_others(cluster, bo, gate):
    """A job may have 32 of them, and a user 128."""
    cluster.script(FLOOD, 'flood.py')
    jobs = []
    for number, (gpus, count) in enumerate([(1, 32), (1, 32), (1, 32), (1, 30), (0, 4)]):
        out = f'{cluster.place}/flood.{number}'
        jobs.append(cluster.wrap(f'exec python3 {cluster.place}/flood.py {gate.path} {count}', '-w', 'n1', f'--gres=gpu:{gpus}', '-o', out))
        harness.await_text(out, 'all\n')
    assert cluster.read('flood.3').split() == ['200'] * 30 + ['all']
    assert cluster.read('flood.4').split() == ['200'] * 2 + ['503'] * 2 + ['all']
    other = cluster.wrap('squeue -h -j $SLURM_JOB_ID -o %T', '-w', 'n1', '-o', '/tmp/other.%j', user=bo)
    assert cluster.finish(other)['exit_code'] == 0
    assert harness.await_text(f'/tmp/other.{other}', 'RUNNING\n')
    gate.open(len(jobs))
    for job in jobs:
        cluster.finish(job)
    os.unlink(f'/tmp/other.{other}')


class RogueNode:
    """A node whose key somebody has: it says of its connections what it likes."""

    def __init__(self, cluster, name):
        self.port = cluster.port
        tls = f'{cluster.nodes[name].state_dir}/node/tls'
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.load_cert_chain(f'{tls}/node.crt', f'{tls}/node.key')
        self.context.set_alpn_protocols([skew.STREAM])
        self.table = rogue.load_tables()['JOB_CLIENT']

    def ask(self, first, request):
        """The answer to an HTTP request behind a JOB_CLIENT with these fields."""
        frame = skew.frame(self.table['id'], rogue.encode_fields(self.table['fields'], first))
        with self.context.wrap_socket(socket.create_connection(('127.0.0.1', self.port))) as stream:
            stream.settimeout(harness.DEADLINE_S)
            stream.sendall(frame + request)
            try:
                return stream.recv(65536).decode()
            except ConnectionError:
                return ''


def test_a_node_speaks_only_for_the_attempts_that_run_on_it(two, cluster):
    jobs = {name: hold(cluster, '-w', name) for name in ('n1', 'n2')}
    with sqlite3.connect(f'file:{cluster.box.state_dir}/store/mgpu.db?mode=ro', uri=True) as store:
        tokens = dict(store.execute('SELECT id, token FROM jobs'))
    node = RogueNode(two, 'n1')
    right = {'job': jobs['n1'], 'attempt': 1, 'token': tokens[jobs['n1']] % 2**64}
    assert node.ask(right, ASK % jobs['n1']).startswith('HTTP/1.1 200')
    elsewhere = {'job': jobs['n2'], 'attempt': 1, 'token': tokens[jobs['n2']] % 2**64}
    for wrong in (elsewhere, {**right, 'token': right['token'] ^ 1}, {**right, 'attempt': 2}, {**right, 'rank': 1},
                  {**right, 'step': 1}, {**right, 'job': 999999}, {}):
        assert 'does not run on node n1 any more' in node.ask(wrong, ASK % jobs['n1']), wrong
    as_root = b'POST /api/v1/nodes/n2/drain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
    assert node.ask(right, as_root).startswith('HTTP/1.1 403')
    cluster.out('scancel', *jobs.values())
    for job in jobs.values():
        cluster.finish(job)
    assert 'does not run on node n1 any more' in node.ask(right, ASK % jobs['n1'])


def test_commands_find_mgpud_again_after_its_restart(two, cluster, gate):
    line = f'squeue -h -j $SLURM_JOB_ID -o %T; read word < {gate.path}; squeue -h -j $SLURM_JOB_ID -o %T'
    job = cluster.wrap(line, '--gres=gpu:1', '-o', f'{cluster.place}/out')
    harness.await_text(f'{cluster.place}/out', 'RUNNING\n')
    two.box.kill()
    two.box.start()
    for name in two.nodes:
        two.await_node(name, lambda node: node['up'])
    gate.open()
    assert cluster.finish(job)['state'] == 'done'
    assert cluster.read('out') == 'RUNNING\nRUNNING\n'


@pytest.mark.parametrize(('access', 'last'), [
    ('job', 'job-access does not let jobs on joined machines submit jobs'),
    ('none', 'may not use this mgpud (job-access)')])
def test_the_administrator_decides_what_jobs_may_do(someone, place, access, last):
    with Cluster(1, client=someone, arguments=('--job-access', access)) as made:
        cluster = slurm.Slurm(made.box, place)
        _, ended, out = run_in_job(cluster, 'srun true && echo step; squeue -h -j $SLURM_JOB_ID -o %T; sbatch --wrap true')
        assert ended['exit_code'] == 1 and last in out.splitlines()[-1] + out.splitlines()[-2], out
        assert ('step\nRUNNING\n' in out) == (access == 'job'), out


def test_an_operators_job_has_the_rights_of_an_ordinary_user(someone, place):
    if not harness.IS_ROOT:
        pytest.skip('needs another user')
    path = f'{place}/mgpud.yaml'
    with open(path, 'w', encoding='ascii') as file:
        file.write(f'roles:\n  operator: [{someone.name}]\n')
    with Cluster(1, client=someone, arguments=('--config', path)) as made:
        job, out = made.box.run_job([f'{harness.programs()}/mgpu', 'node', 'drain', 'n1'], gpus=1)
        assert job['state'] == 'failed' and 'and yours is user' in out, out
        assert 'the rights of an ordinary user' in out, out
        assert made.node('n1')['state'] != 'drained'


def test_it_works_without_root(someone, place):
    with Cluster(1, user=someone, client=someone) as made:
        job, out = made.box.run_job(['sh', '-c', f'(setsid {harness.programs()}/mgpu list --json; echo) | cat'], gpus=1)
        assert job['state'] == 'done' and '"running"' in out, out
