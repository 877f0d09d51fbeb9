# SPDX-License-Identifier: MIT
"""mgpu_simple_master, _node and _client: a test for each line of checklist.tsv, named by its number."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

import harness
import simple

RULE = '=' * 50
DEADLINE_S = harness.DEADLINE_S


@pytest.fixture(scope='module')
def shared_master(names, someone):
    """A master, and two nodes with two GPUs each."""
    master = simple.Master(client=someone)
    try:
        master.start()
        master.node('node001').start()
        master.node('node002').start()
        yield master
    finally:
        master.close()


@pytest.fixture
def master(shared_master):
    yield shared_master
    shared_master.cancel_all()


@pytest.fixture
def make_master(names, someone):
    """Masters of one test."""
    made = []

    def make(start=True, **options):
        made.append(simple.Master(client=someone, **options))
        return made[-1].start() if start else made[-1]

    yield make
    for one in made:
        one.close()


def ended(master, alias):
    """The job of that id, once it has ended."""
    return master.wait(master.mgpu('show', alias, '--json', check=True).json['id'])


def run_as_nobody(place, *words, env=None):
    """A program of a user who has only a home."""
    user = harness.User('nobody') if harness.IS_ROOT else None
    os.makedirs(f'{place}/run', mode=0o700, exist_ok=True)
    if user:
        os.chown(f'{place}/run', user.uid, user.gid)
    env = {'PATH': '/usr/bin:/bin', 'HOME': place, 'XDG_RUNTIME_DIR': f'{place}/run', 'XDG_STATE_HOME': f'{place}/state',
           'LANG': 'C.UTF-8', 'ASAN_OPTIONS': 'detect_leaks=0', **(env or {})}
    return subprocess.Popen([f'{harness.programs()}/{words[0]}', *words[1:]], env=env, cwd=place, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            **(user.popen_arguments() if user else {}))


# --- the master ---

@pytest.mark.parametrize('name, options', [
    ('mgpu_simple_master', ('--host', '--port', '--verbose')),
    ('mgpu_simple_node', ('--node-id', '--master-host', '--master-port', '--verbose'))])
def test_S1_1_S1_9_options(names, name, options):
    done = subprocess.run([f'{names}/{name}', '--help'], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f'usage: {name}') and all(option in done.stdout for option in options), done
    for wrong in (['--prot', '1'], ['--port', '0'], ['--master-port', '65536'], ['--port', 'http'], ['word'], ['--host', '']):
        done = subprocess.run([f'{names}/{name}', *wrong], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and name in done.stderr, (wrong, done)


def test_S1_2_nothing_is_configured(names, place):
    port = simple.free_pair()
    process = run_as_nobody(place, 'mgpu_simple_master', '--port', str(port))
    said = harness.lines_until(process, 'is ready')
    assert f'127.0.0.1:{port}' in said and 'without root' in said and 'mgpu_simple_node --node-id' in said, said
    harness.end(process)


def test_S1_3_loopback_or_all_addresses(make_master):
    box = make_master(host='0.0.0.0')
    assert f'https://0.0.0.0:{box.port}' in box.log()
    with socket.create_connection(('127.0.0.1', box.port), DEADLINE_S) as plain:  # no word without TLS
        plain.sendall(b'GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n')
        with contextlib.suppress(ConnectionResetError):
            assert not plain.recv(100).startswith(b'HTTP/')
    local = make_master()
    assert f'http://127.0.0.1:{local.port}' in local.log()
    assert '0.0.0.0' in harness.read('docs/simple.md') and '127.0.0.1' in harness.read('docs/simple.md')


def test_S1_4_the_port_is_in_use(master, place):
    process = run_as_nobody(place, 'mgpu_simple_master', '--port', str(master.port))
    said = process.communicate(timeout=DEADLINE_S)[0]
    assert process.returncode != 0 and str(master.port) in said and 'in use' in said, said
    assert 'connected from' not in said, said  # those are the nodes of the other one


def test_S1_5_verbose(make_master, gate):
    box = make_master(options=('--verbose', '--node-id', 'alone'), words=('--gpus', simple.GPUS))
    quiet = make_master(options=('--node-id', 'alone'), words=('--gpus', simple.GPUS))
    for each in (box, quiet):
        ended(each, each.simple_submit('true'))
    assert len(box.log().splitlines()) > len(quiet.log().splitlines())


def test_S1_6_S1_11_a_node_is_told_of(master):
    text = master.await_log('Node node002 connected')
    tree = re.search(r'🔗 Node node001 connected from 127\.0\.0\.1:\d+\n└─ 🎮 2 GPU\(s\) detected:\n'
                     r' +├─ GPU 0: Simulated GPU \(12288 MB\)\n +└─ GPU 1: Simulated GPU \(12288 MB\)\n', text)
    assert tree, text


def test_S1_6_without_symbols_where_there_are_none(make_master, monkeypatch):
    box = make_master(start=False)
    plain = dict(box.environment(), LANG='C', LC_ALL='C')
    monkeypatch.setattr(box, 'environment', lambda: plain)
    box.start()
    box.node('node001').start()
    text = box.await_log('Node node001 connected from 127.0.0.1')
    assert 'GPU 1: Simulated GPU (12288 MB)' in box.await_log('GPU 1:') and '🔗' not in text


def test_S1_7_all_gpus_of_all_nodes(master, gate):
    ids = [master.simple_submit(gate.command()[2]) for _ in range(4)]
    for job in master.open_jobs():
        master.wait(job, 'running')
    out = master.await_queue('node002: 2 GPUs (0 free, 2 busy)')
    assert 'node001: 2 GPUs (0 free, 2 busy)' in out and all(f'{alias}: running on node00' in out for alias in ids), out
    gate.open(4)


def test_S1_8_the_master_alone(make_master, names):
    box = make_master(options=('--node-id', 'alone'), words=('--gpus', simple.GPUS))
    assert ended(box, box.simple_submit('true'))['node'] == 'alone'
    node = box.node('second').spawn()
    code, said = node.end()
    assert code != 0 and 'already offers the GPUs of this machine, as node alone' in said, said


def test_S1_8_a_master_and_a_local_agent(master):
    assert ended(master, master.simple_submit('true'))['node'] in ('node001', 'node002')


# --- nodes ---

def test_S1_10_in_any_order(make_master):
    box = make_master()
    first = box.node('node001').start()
    first.stop()
    box.stop()
    first.spawn()
    box.start()
    box.await_queue('node001: 2 GPUs (2 free')
    assert first.process.poll() is None


def test_S1_10_a_node_knows_its_master_from_then_on(make_master):
    box = make_master()
    node = box.node('node001').start()
    box.await_log('Node node001 connected')
    node.stop()
    at = node.command.index('--master-port')
    del node.command[at:at + 2]
    box.await_log('Node node001 disconnected')
    node.start()


def listening(pids):
    """The TCP ports at which these processes listen."""
    held, ports = set(), []
    for pid in pids:
        for name in os.listdir(f'/proc/{pid}/fd'):
            with contextlib.suppress(FileNotFoundError):
                held.add(os.readlink(f'/proc/{pid}/fd/{name}'))
    for table in ('tcp', 'tcp6'):
        with open(f'/proc/net/{table}', encoding='ascii') as rows:
            for row in [row.split() for row in rows][1:]:
                if row[3] == '0A' and f'socket:[{row[9]}]' in held:
                    ports.append(int(row[1].rsplit(':', 1)[1], 16))
    return ports


def test_S1_12_what_a_node_says_and_that_it_listens_at_no_port(make_master):
    box = make_master()
    node = box.node('node001', '--verbose').start()
    harness.await_text(node.out_path, 'started on')
    out, _ = node.said()
    assert out.splitlines() == ['Connected to master server', '✅ Registration successful',
                                f'Simple Node Agent node001 started on {os.uname().nodename}'], out
    harness.await_text(node.log_path, '2 GPUs found')
    assert node.agents() and not listening(node.agents())
    assert box.port in listening(harness.processes(box.place))  # it is seen where there is one
    quiet = box.node('node002').start()
    harness.await_text(quiet.out_path, 'started on')
    assert quiet.said()[0].startswith('✅ Registration successful\n')


def refused(names, *words, env=None, timeout_s=DEADLINE_S):
    done = subprocess.run([f'{names}/mgpu_simple_node', *words], capture_output=True, text=True, check=False,
                          timeout=timeout_s, env={'PATH': '/usr/bin:/bin', 'HOME': '/', **(env or {})})
    assert done.returncode != 0 and done.stdout == '', done
    return done.stderr


@pytest.fixture
def ticket(place):
    path = f'{place}/ticket'
    with open(path, 'w', encoding='ascii') as out:
        out.write('head:1#AAAAAAAAAAAA\n')
    return path


def test_S1_13_connection_refused(names, ticket):
    said = refused(names, '--node-id', 'a', '--master-port', str(simple.free_pair()), '--join-file', ticket)
    assert 'Connection refused' in said and 'hint: ' in said and '--host 0.0.0.0' in said, said


def test_S1_13_name_not_known(names, ticket):
    said = refused(names, '--node-id', 'a', '--master-host', 'no-such-host.invalid', '--join-file', ticket)
    assert re.search('Name or service not known|name resolution', said) and '/etc/hosts' in said, said


def test_S1_13_connection_timed_out(names, ticket):
    """To a listener whose backlog is full the kernel answers nothing, as a firewall does that drops."""
    with socket.socket() as full:
        full.bind(('127.0.0.1', 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(('127.0.0.1', port))
            fillers.append(filler)
        said = refused(names, '--node-id', 'a', '--master-port', str(port - 1), '--join-file', ticket)
        for filler in fillers:
            filler.close()
    assert 'Connection timed out' in said and 'firewall' in said, said


@pytest.mark.root
def test_S1_13_no_route(names, ticket):
    script = ('ip link set lo up && ip route add unreachable 10.1.1.0/24 && '
              f'exec {names}/mgpu_simple_node --node-id a --master-host 10.1.1.1 --join-file {ticket}')
    done = subprocess.run(['unshare', '-n', 'sh', '-c', script], capture_output=True, text=True, check=False,
                          timeout=DEADLINE_S, env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})
    if 'unshare' in done.stderr or 'ip:' in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode != 0 and 'No route to host' in done.stderr and 'ip route' in done.stderr, done


def test_S1_13_registration_failed(master, place):
    where = master.mgpu('node', 'token', user=master.user, check=True).out.strip().partition('#')[0]
    path = f'{place}/ticket'
    with open(path, 'w', encoding='ascii') as out:
        out.write(f'{where}#AQAAAAAAAAABZhrlecj17b9z2L9HaJcvlX1NUI13YenKrJhop1J7EX9GrD78e_DZBe-VV_zTC0Kn\n')
    code, said = master.node('stranger', '--join-file', path).spawn().end()
    assert code != 0 and said.startswith('mgpu_simple_node: Registration failed: '), said
    with open(path, 'w', encoding='ascii') as out:
        out.write('nothing\n')
    code, said = master.node('stranger2', '--join-file', path).spawn().end()
    assert code != 0 and 'HOST:PORT#TOKEN' in said and 'mgpu node token' in said, said


def test_S1_13_a_token_is_needed_elsewhere(names):
    said = refused(names, '--node-id', 'a', '--join-file', '/nonexistent/ticket')
    assert '/nonexistent/ticket' in said, said
    assert '--node-id, the name of this node, is missing' in refused(names)
    for wrong in ('', '../a', 'a b', '.', 'x' * 65):
        assert '--node-id' in refused(names, '--node-id', wrong)


def test_S1_14_a_lost_node(make_master, gate):
    box = make_master()
    node = box.node('node001').start()
    alias = box.simple_submit(gate.command('exit 5')[2])
    box.await_queue(f'{alias}: running on node001:gpu')
    box.await_log('Node node001 connected')
    for pid in [node.process.pid, *node.agents()]:
        if 'shepherd' not in harness.process_name(pid):
            os.kill(pid, signal.SIGKILL)
    node.process.wait(DEADLINE_S)
    out = box.await_queue('(not connected)')
    assert re.search(r'node001: 2 GPUs \((down|unreachable)', out), out
    box.await_log('Node node001 disconnected')
    node.spawn()
    gate.open()
    assert ended(box, alias)['exit_code'] == 5


def test_S1_15_a_name_that_is_taken(master):
    node = master.node('node001x')
    node.command[node.command.index('node001x')] = 'node001'
    code, said = node.spawn().end()
    assert code != 0 and 'Registration failed' in said and 'this node name belongs to another machine' in said, said
    assert '--replace' in said


# --- the client ---

def test_S1_16_host_and_port(master, names):
    env = {'MGPU_SOCKET': '', 'HOME': '/', 'PATH': '/usr/bin:/bin'}
    for host in ('127.0.0.1', 'localhost'):
        assert master.simple('queue', host=host).code == 0
    done = master.simple('queue', port=simple.free_pair())
    assert done.code == 5 and 'Connection refused' in done.err and 'hint' in done.err, done
    for wrong in ('0', '65536', 'http', ''):
        assert master.simple('queue', port=wrong).code == 2
    done = subprocess.run([f'{names}/mgpu_simple_client', '--host', '10.255.255.1', 'queue'], env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 4 and 'MGPU_HOST with its pin is not set' in done.stderr and 'mgpu token create' in done.stderr, done
    help_text = subprocess.run([f'{names}/mgpu_simple_client', '--help'], capture_output=True, text=True, check=True).stdout
    assert '(127.0.0.1)' in help_text and '(8080)' in help_text


def test_S1_16_from_another_machine(make_master):
    """By the address of another interface, with a token and the pin that came with it."""
    box = make_master(host='0.0.0.0')
    made = box.mgpu('token', 'create', '--host', '127.0.0.2', '--json', check=True).json
    env = {'MGPU_HOST': made['api'], 'MGPU_TOKEN': made['token'], 'MGPU_SOCKET': ''}
    done = box.mgpu('queue', program='mgpu_simple_client', env=env)
    assert done.code == 0 and done.out.startswith('Jobs:\nNodes:\n'), done
    done = box.mgpu('queue', program='mgpu_simple_client', env={**env, 'MGPU_TOKEN': 'mgpu_' + '0' * 64})
    assert done.code != 0 and 'token' in done.err, done


def test_S1_16_a_stranger_at_the_port_hears_nothing(names, someone, place):
    """Environments may hold secrets: who listens must be root, the service or oneself."""
    if not harness.IS_ROOT:
        pytest.skip('needs another user')
    with contextlib.ExitStack() as stack:
        with harness.User('nobody').acting():
            fake = stack.enter_context(socket.socket())
            fake.bind(('127.0.0.1', 0))
            fake.listen()
        process = subprocess.Popen([f'{names}/mgpu_simple_client', '--port', str(fake.getsockname()[1]), 'queue'],
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd='/',
                                   env={'PATH': '/usr/bin:/bin', 'HOME': '/'})
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 4 and 'was started by nobody and serves only that user' in err and 'sudo mgpu_simple_master' in err, err


ALL_TIMES = ('--session-timeout', '600', '--connection-timeout', '15', '--max-wait-time', '1800',
             '--max-consecutive-timeouts', '20')


def test_S1_17_S1_20_S1_21_S1_28_submit(master, gate):
    alias = master.simple_submit('--gpus', '2', *ALL_TIMES, gate.command('exit 3')[2])
    job = master.mgpu('show', alias, '--json', check=True).json
    assert job['gpus'] == 2 and job['state'] in ('queued', 'starting', 'running')
    gate.open()
    assert ended(master, alias)['exit_code'] == 3


@pytest.mark.parametrize('option', ['--session-timeout', '--connection-timeout', '--max-wait-time',
                                    '--max-consecutive-timeouts', '--gpus'])
@pytest.mark.parametrize('value', ['0', '-1', 'x', '', '1.5', '99999999999999999999'])
def test_S1_17_wrong_values(master, option, value):
    done = master.simple('submit', option, value, 'true')
    assert done.code == 2 and option in done.err, done


def test_S1_17_wrong_words(master):
    assert 'no command given' in master.simple('submit').err
    done = master.simple('submit', 'python', 'train.py')
    assert done.code == 2 and 'one string, not 2 words' in done.err
    assert 'quote the whole command' in master.simple('submit', 'python', '--lr', '3').err
    assert "'--interactiv3'" in master.simple('submit', '--interactiv3', 'true').err
    assert 'unknown command' in master.simple('sbumit', 'true').err
    assert master.simple('queue', 'x').code == 2


def test_S1_18_one_gpu(master):
    assert ended(master, master.simple_submit('true'))['gpus'] == 1


def test_S1_19_a_shell_runs_it(master):
    done = master.simple('submit', '--interactive', 'for i in 1 2; do echo "a $i"; done | tac; echo $((40 + 2)) >&2')
    assert done.out.endswith('a 2\na 1\n') and '42\n' in done.err, done


def test_S1_22_S1_23_interactive(master, gate):
    process = master.start_simple('submit', '--interactive', f'echo first; read word < {gate.path}; echo last; exit 7')
    assert [process.stdout.readline().decode().rstrip('\n') for _ in range(4)][1:] == [
        'Starting interactive session...', RULE, 'first']
    gate.open()
    out, err = process.communicate(timeout=DEADLINE_S)
    assert out == b'last\n' and process.returncode == 7, err


def lasting(master, gate, *options):
    """An interactive session that the job outlives: what it said; and the job ends as it should."""
    done = master.simple('submit', '--interactive', *options, f'echo out; read word < {gate.path}; exit 9')
    assert done.code == 124 and done.out.endswith(f'{RULE}\nout\n'), done
    alias = re.search(r'mgpu_simple_client monitor ([A-F][0-9A-F]{7})', done.err)[1]
    gate.open()
    assert ended(master, alias)['exit_code'] == 9
    return done.err


def test_S1_24_session_timeout(master, gate):
    assert 'session timeout after 2 s' in lasting(master, gate, '--session-timeout', '2')


def test_S1_25_connection_timeout(master):
    with socket.socket() as full:  # nobody accepts here, and the backlog is full
        full.bind(('127.0.0.1', 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        done = master.simple('submit', '--connection-timeout', '1', 'true', port=full.getsockname()[1])
        for filler in fillers:
            filler.close()
    assert done.code == 5 and 'Connection timed out' in done.err, done


def test_S1_26_max_wait_time(master, gate):
    assert 'no output for 2 s' in lasting(master, gate, '--max-wait-time', '2')


def test_S1_26_a_job_that_waits_is_left_in_the_queue(master, gate):
    master.simple_submit('--node-gpu-ids', 'node001:0', gate.command()[2])
    done = master.simple('submit', '--interactive', '--node-gpu-ids', 'node001:0', '--max-wait-time', '1', 'true')
    assert done.code == 124 and done.out.endswith(RULE + '\n'), done
    gate.open()


def test_S1_27_max_consecutive_timeouts(master, gate):
    assert 'no output in 1 consecutive waits of 10 s' in lasting(master, gate, '--max-consecutive-timeouts', '1')


def test_S1_29_queue(master, gate):
    first = master.simple_submit('--node-gpu-ids', 'node002:0', gate.command()[2])
    master.await_queue(f'{first}: running')
    second = master.simple_submit('--node-gpu-ids', 'node002:0,1', gate.command()[2])
    lines = [line.strip() for line in master.simple('queue', check=True).out.splitlines()]
    assert lines[0] == 'Jobs:' and lines[-3:] == ['Nodes:', 'node001: 2 GPUs (2 free, 0 busy)',
                                                  'node002: 2 GPUs (1 free, 1 busy)'], lines
    assert f'{first}: running on node002:gpu0' in lines and f'{second}: queued (waiting for 2 GPUs)' in lines, lines
    gate.open(2)
    ended(master, second)
    assert f'{second}: done (exit 0)' in master.simple('queue', check=True).out


def test_S1_30_cancel(master, gate):
    first = master.simple_submit('--node-gpu-ids', 'node002:0', gate.command()[2])
    second = master.simple_submit('--node-gpu-ids', 'node002:0', gate.command()[2])
    for alias in (second, first):
        master.simple('cancel', alias, check=True)
        assert ended(master, alias)['state'] == 'cancelled'
    done = master.simple('cancel', 'ABCDEF01')
    assert done.code == 3 and 'there is no job' in done.err, done
    assert master.simple('cancel').code == 2


def test_S1_31_monitor(master, gate):
    alias = master.simple_submit(f'echo before; read word < {gate.path}; echo after; exit 4')
    process = master.start_simple('monitor', alias.lower(), '--max-wait-time', '20')
    assert process.stdout.readline() == b'before\n'
    gate.open()
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert out == b'after\n' and process.returncode == 4
    assert master.simple('monitor', alias).out == 'before\nafter\n'
    assert master.simple('monitor', 'no-such-job').code == 3
    assert master.simple('monitor').code == 2 and master.simple('monitor', alias, alias).code == 2


def test_S1_31_ctrl_c_leaves_it_running(master, gate):
    alias = master.simple_submit(f'echo before; read word < {gate.path}; exit 4')
    process = master.start_simple('monitor', alias)
    assert process.stdout.readline() == b'before\n'
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_S) == 0
    gate.open()
    assert ended(master, alias)['exit_code'] == 4


# --- where jobs run ---

def test_S1_32_the_node_with_the_most_free_gpus(master, gate):
    master.simple_submit('--node-gpu-ids', 'node001:0', gate.command()[2])
    master.await_queue('node001: 2 GPUs (1 free, 1 busy)')
    alias = master.simple_submit(gate.command()[2])
    master.await_queue(f'{alias}: running on node002:gpu')
    gate.open(2)


@pytest.fixture
def has_parts():
    """Jobs whose nodes all run the command."""
    if '| `parts` |' not in harness.read('docs/api.md'):
        pytest.skip('jobs run on one node here')


def test_S1_33_over_several_nodes(master, has_parts):
    done = master.simple('submit', '--gpus', '4', '--interactive', 'echo $MGPU_NODE has $CUDA_VISIBLE_DEVICES')
    assert done.code == 0 and 'node001 has 0,1' in done.out and 'node002 has 0,1' in done.out, done


def test_S1_33_more_than_all_nodes_have(master):
    answer = master.api('POST', '/jobs?dry_run=1', {'command': ['true'], 'gpus': 4, 'cwd': '/tmp'})
    assert answer.status == 200 and answer.json['starts_now'] is True, answer
    done = master.simple('submit', '--gpus', '5', 'true')
    assert done.code == 2 and '5 GPUs' in done.err, done


def test_S1_38_what_the_parts_need_to_meet(master, has_parts):
    """Each dials the first one's address."""
    done = master.simple('submit', '--gpus', '4', '--interactive', 'echo $NODE_RANK of $NNODES at $MASTER_ADDR:$MASTER_PORT')
    met = re.findall(r'([01]) of 2 at (\S+):(\d+)', done.out)
    assert sorted(rank for rank, _, _ in met) == ['0', '1'] and len({where[1:] for where in met}) == 1, done


@pytest.mark.parametrize('ids, given', [('node001:1', '1'), ('node002:1,0', '1,0')])
def test_S1_34_S1_36_named_gpus(master, ids, given):
    done = master.simple('submit', '--interactive', '--node-gpu-ids', ids, 'echo $MGPU_NODE:$CUDA_VISIBLE_DEVICES')
    assert done.out.endswith(f'{RULE}\n{ids.split(":")[0]}:{given}\n'), done


def test_S1_34_of_several_nodes(master, gate):
    master.simple_submit('--node-gpu-ids', 'node001:0', gate.command()[2])
    alias = master.simple_submit('--node-gpu-ids', 'node001:0,1;node002:0,1', 'true')
    job = master.mgpu('show', alias, '--json', check=True).json
    assert job['gpus'] == 4 and job['gpu_ids'] == 'node001:0,1;node002:0,1', job
    master.simple('cancel', alias, check=True)
    gate.open()


def test_S1_35_two_counts_that_differ(master):
    done = master.simple('submit', '--gpus', '2', '--node-gpu-ids', 'node001:0', 'true')
    assert done.code == 2 and '--node-gpu-ids names 1 GPU, but --gpus requests 2' in done.err, done
    assert master.simple('submit', '--gpus', '2', '--node-gpu-ids', 'node001:0,1', 'true').code == 0


@pytest.mark.parametrize('ids, words', [
    ('node009:0', ('no node is named "node009"', 'node001, node002')), ('node001:7', ('GPU 7 does not exist on node001',)),
    ('node001', ('node001',)), ('node001:', ('not a list of ids',)), (':0', (':0',)), ('node001:0,0', ('0',)), ('', ())])
def test_S1_37_unknown_nodes_and_gpus(master, ids, words):
    done = master.simple('submit', '--node-gpu-ids', ids, 'true')
    assert done.code == 2 and done.out == '' and all(word in done.err for word in words), done


# --- promises ---

@pytest.mark.parametrize('how', ['true', 'exit 1', 'kill -9 $$', 'cancel'])
def test_S1_39_gpus_come_back(master, gate, how):
    alias = master.simple_submit('--gpus', '2', gate.command()[2] if how == 'cancel' else how)
    if how == 'cancel':
        master.simple('cancel', alias, check=True)
    ended(master, alias)
    out = master.await_queue('node002: 2 GPUs (2 free, 0 busy)')
    assert 'node001: 2 GPUs (2 free, 0 busy)' in out


def test_S1_40_a_restart_loses_nothing(make_master, gate):
    box = make_master()
    box.node('node001').start()
    alias = box.simple_submit(gate.command('exit 6')[2])
    box.await_queue(f'{alias}: running')
    box.restart()
    box.await_queue(f'{alias}: running on node001:gpu')
    box.await_queue('node001: 2 GPUs (1 free, 1 busy)')
    gate.open()
    assert ended(box, alias)['exit_code'] == 6
    assert 'failed (exit 6)' in box.simple('queue').out


def test_S1_41_relative_interpreters(master, place):
    os.makedirs(f'{place}/venv/bin')
    os.symlink('/usr/bin/python3', f'{place}/venv/bin/python')
    done = master.simple('submit', '--interactive', 'venv/bin/python -c "import os; print(os.getcwd())"', cwd=place)
    assert done.code == 0 and done.out.endswith(f'\n{place}\n'), done


def test_S1_42_logs_need_no_shared_file_system(master):
    """The log lies with the node, and the client reads it through the master."""
    alias = master.simple_submit('--node-gpu-ids', 'node002:0', 'echo there')
    job = ended(master, alias)
    assert job['log'].startswith(master.nodes['node002'].state_dir) or job['log'].startswith(master.client.home), job
    assert master.simple('monitor', alias).out == 'there\n'


def test_S1_43_a_yaml_file(make_master, place):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='ascii') as out:
        out.write('user-max-gpus: 1\n')
    box = make_master(options=('--node-id', 'alone'), words=('--gpus', simple.GPUS, '--config', path))
    done = box.simple('submit', '--gpus', '2', 'true')
    assert done.code != 0 and '1' in done.err, done


@pytest.mark.parametrize('page', ['docs/simple.md', 'docs/simple.ko.md'])
def test_S1_44_S1_46_the_guide(page):
    text = harness.read(page)
    for word in ('ss -ltn', 'ping', 'ufw', 'firewall-cmd', 'ip route', 'nc -zv', 'mgpu doctor', 'mgpu node token',
                 'mgpu token create', 'journalctl', '/etc/hosts', 'Connection refused', 'No route to host',
                 'Connection timed out', 'Registration failed', 'Name or service not known'):
        assert word in text, word


def test_S1_46_the_two_pages_have_the_same_parts():
    """Headings, paragraphs, rows, commands, and the words that are typed or printed; one language differs."""
    pages = [harness.read(page) for page in ('docs/simple.md', 'docs/simple.ko.md')]
    for pattern in (r'^(#+) [^a-z]', r'^(?:\$|#) [a-z].*$', r'^\d\. '):
        found = [re.findall(pattern, page, re.M) for page in pages]
        assert found[0] == found[1] and found[0], pattern
    assert len(pages[0].split('\n\n')) == len(pages[1].split('\n\n'))
    rows = [[line.count('|') for line in page.splitlines() if line.startswith('|')] for page in pages]
    assert rows[0] == rows[1] and len(rows[0]) > 12
    words = [set(re.findall('`([^`\n]+)`', page)) for page in pages]
    assert words[0] == words[1], words[0] ^ words[1]
    assert re.search('[가-힣]', pages[1])


def test_S1_45_torch_through_the_scheduler(master, place):
    script = shutil.copy(f'{harness.ROOT}/examples/torch_check.py', place)
    done = master.simple('submit', '--gpus', '2', '--interactive', f'/usr/bin/python3 {script}', cwd=place,
                         timeout_s=120)
    assert '2 GPU(s) given: ' in done.out, done
    has_torch = 'torch cannot be imported' not in done.out
    assert done.code == (0 if has_torch else 1) and (not has_torch or re.search(r'torch \d+\.\d+', done.out)), done
