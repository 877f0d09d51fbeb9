# SPDX-License-Identifier: MIT
"""The commands of the five READMEs as they are typed, in order, by the users who type them: on a machine where nothing is
configured, with its own network and its own /run, as root where root starts the server and as a user where nobody is root.

What cannot be as on their machine: the GPUs are simulated (`-- --gpus sim:4x24G` behind the server's options), and `python`
is called python3.
"""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess

import pytest

import harness
import hosts
from machine import Machine

pytestmark = pytest.mark.root

GPUS = '--gpus sim:4x24G --user nobody'
OWN_GPUS = '--gpus sim:4x24G'


@pytest.fixture
def machine(place, names):
    made = Machine(place, names)
    yield made
    made.close()


@pytest.fixture
def root():
    return harness.User('root')


def job_of(done):
    found = re.search(r'Job ([A-F0-9]{8}) submitted \(number (\d+)\)', done.out)
    assert done.code == 0 and found, done
    return found[1], int(found[2])


def test_S0_1_S0_5_S0_20_S0_24_S0_28_S0_40_S0_42_S0_45_typed(machine, root, ana, bo):
    """Root starts the server; two users and root queue jobs, list them, find their logs at home, and cancel."""
    said = machine.serve(root, f'mgpu_scheduler_server --max-job-time 3600 -- --listen none {GPUS}', 'is ready')
    try:
        assert 'jobs submitted by root run as root' in said, said
        for user, ids in ((ana, '0'), (bo, '1,3'), (root, '2')):
            _, number = job_of(machine.type(user, f'mgpu_srun --gpu-ids {ids} -- python3 train.py'))
            assert machine.type(user, f'mgpu wait {number}').code == 0
            assert machine.log(user, number) == f'training on {ids}\n'
        done = machine.type(ana, 'mgpu_srun --gpu-ids 0,1 --mem 8000 --time-limit 7200 --interactive -- python3 train.py')
        assert (done.code, done.out) == (0, 'training on 0,1\n') and 'the job gets 1h' in done.err, done
        _, number = job_of(machine.type(bo, 'mgpu_srun --gpu-ids 0 --priority 10 --env-setup-cmd "export WORD=set" -- '
                                            "sh -c 'echo $WORD on $CUDA_VISIBLE_DEVICES'"))
        assert machine.type(bo, f'mgpu wait {number}').code == 0 and machine.log(bo, number) == 'set on 0\n'
        alias, _ = job_of(machine.type(bo, 'mgpu_srun --gpu-ids 0 -- sleep 1000'))
        shown = machine.type(ana, 'mgpu_queue').out
        assert alias in shown and bo.name in shown and 'sleep 1000' in shown, shown
        assert machine.type(ana, f'mgpu_cancel {alias}').code == 4
        assert machine.type(bo, f'mgpu_cancel {alias}').code == 0
        assert machine.type(bo, f'mgpu wait {alias}').code != 0 and alias not in machine.type(ana, 'mgpu_queue').out
        done = machine.type(ana, 'mgpu_cancel ABCD1234')
        assert done.code != 0 and 'no job' in done.err and 'another' not in done.err, done  # /tmp/mgpu_scheduler.sock is a link
        number = job_of(machine.type(ana, 'mgpu_srun --gpu-ids 0 -- no-such-program'))[1]
        machine.type(ana, f'mgpu wait {number}')
        assert 'cannot execute no-such-program' in machine.log(ana, number)
    finally:
        machine.stop()


def test_S1_1_S1_9_S1_18_S1_22_S1_24_S1_25_S1_31_S1_34_typed_by_root(machine, root):
    """All on one machine, by root, as in a container."""
    machine.serve(root, f'mgpu_simple_master --host 127.0.0.1 --port 8080 --node-id node001 -- {GPUS}', '4 GPU(s) detected')
    try:
        done = machine.type(root, 'mgpu_simple_client --host 127.0.0.1 --port 8080 submit --gpus 2 --interactive "python3 train.py"')
        assert done.code == 0 and re.match(r"Job submission: \{'status': 'ok', 'job_id': '[A-F0-9]{8}', 'message': 'Job submitted'\}\n"
                                           r'Starting interactive session\.\.\.\n={50}\n', done.out), done
        assert re.search(r'^training on \d,\d$', done.out, re.M), done
        done = machine.type(root, 'mgpu_simple_client submit --gpus 4 "sleep 1000"')
        number = re.fullmatch(r"Job submission: \{'status': 'ok', 'job_id': '([A-F0-9]{8})', 'message': 'Job submitted'\}\n",
                              done.out)
        assert number, done
        assert f'{number[1]}: running on node001' in machine.type(root, 'mgpu_simple_client queue').out
        assert machine.type(root, f'mgpu_simple_client cancel {number[1]}').code == 0
        done = machine.type(root, 'mgpu_simple_client submit --node-gpu-ids "node001:1,3" --session-timeout 600 '
                                  '--connection-timeout 15 "python3 train.py"')
        alias = re.search(r"'job_id': '(\w+)'", done.out)[1]
        done = machine.type(root, f'mgpu_simple_client monitor {alias} --max-wait-time 60')
        assert done.code == 0 and 'training on 1,3' in done.out, done
    finally:
        machine.stop()


def test_S1_1_S1_9_S1_10_S1_33_S1_38_typed_on_two_hosts(machine, root):
    """The master's own node comes by 127.0.0.1, the other one over the network, and a job runs on both."""
    if hosts.why_not():
        pytest.skip(hosts.why_not())
    with hosts.Network(['master', 'far']).made() as network:
        here, far = network['master'].prefix, network['far'].prefix
        address = network['master'].address
        machine.serve(root, 'mgpu_simple_master --host 0.0.0.0 --port 8080 -- --user nobody', 'is ready', here)
        try:
            joined = 'Simple Node Agent'
            machine.serve(root, 'mgpu_simple_node --node-id node001 --master-host 127.0.0.1 --master-port 8080 -- '
                          '--gpus sim:2x24G', joined, here)
            assert machine.type(root, 'mgpu node token --node node002 > node002.token', here).code == 0
            machine.serve(root, f'mgpu_simple_node --node-id node002 --master-host {address} --master-port 8080 '
                          '--join-file node002.token -- --gpus sim:2x24G', joined, far)
            machine.hear(machine.servers[0], 'Node node002 connected')
            done = machine.type(root, 'mgpu_simple_client submit --gpus 4 --interactive "echo rank $MGPU_NODE_RANK at $MASTER_ADDR"'
                                .replace('$', '\\$'), here)
            for rank in (0, 1):
                assert re.search(rf'rank {rank} at 10\.213\.7\.[12]$', done.out, re.M) and done.code == 0, done
            shown = machine.type(root, 'mgpu_simple_client queue', here).out
            assert 'node001: 2 GPUs (2 free, 0 busy)' in shown and 'node002: 2 GPUs (2 free, 0 busy)' in shown, shown
        finally:
            while machine.servers:
                machine.stop()


def test_S2_36_S2_37_a_pause_on_the_server_of_root_is_for_operators(machine, root, ana):
    """It would keep the GPU from all users; the refusal says what a user can do instead."""
    machine.serve(root, f'mgpu_scheduler_server -- --listen none {GPUS}', 'is ready')
    try:
        for verb in ('pause', 'resume'):
            done = machine.type(ana, f'scheduler {verb} 2')
            assert done.code != 0 and f'sudo scheduler {verb} 2' in done.err and 'allowed_gpus' in done.err, done
            assert ('PAUSED' in machine.type(ana, 'scheduler status').out) == (verb == 'resume')
            assert machine.type(root, f'scheduler {verb} 2').code == 0
    finally:
        machine.stop()


def test_S2_1_S2_2_S2_14_S2_24_S2_35_S2_36_S2_37_S2_39_S2_46_typed_by_root(machine, root):
    """`scheduler start` where no server runs starts one that takes the lines of whoever started it, root too."""
    home = machine.home(root)
    with open(f'{home}/jobs.txt', 'w', encoding='ascii') as out:
        out.write('# priority,script_path,conda_env,arguments,allowed_gpus\n0,train.py,,--epochs 3,0-1\n')
    said = machine.serve(root, f'scheduler start --gpus 8 -- {GPUS}', 'train.py')
    try:
        assert '--gpus 8: there are 4' in said and 'refused' not in said, said
        assert machine.type(root, 'mgpu wait 1').code == 0
        assert machine.type(root, 'mgpu logs 1').out in ('training on 0\n', 'training on 1\n')
        assert machine.type(root, 'scheduler pause 2').code == 0
        assert 'PAUSED' in machine.type(root, 'scheduler status').out
        assert machine.type(root, 'scheduler add train.py --args "--epochs 9" --priority 1 --gpus "2,3"').code == 0
        machine.hear(machine.servers[0], 'job 2: training on 3')
        assert 'no session is active' in machine.type(root, 'scheduler screens').out
        assert machine.type(root, 'scheduler resume 2').code == 0
        assert 'PAUSED' not in machine.type(root, 'scheduler status').out
        machine.type(root, "echo '0,train.py,,--epochs 4,2' >> jobs.txt")
        machine.hear(machine.servers[0], 'job 3: training on 2')
    finally:
        machine.stop()


CONDA = """#!/bin/sh
[ "$*" = "shell.posix hook" ] && echo 'conda() { export CONDA_DEFAULT_ENV="$2"; }'
[ "$1 $2" = "shell.posix activate" ] && echo "export CONDA_DEFAULT_ENV=$3"
"""
# As the lines that `conda init` writes into the files of a shell leave it.
WITH_CONDA = 'env CONDA_EXE=$HOME/miniconda3/bin/conda PATH=$HOME/miniconda3/bin:$PATH '


def install_conda(machine, user):
    """What Debian has no package of: a conda that only sets the name of the environment."""
    folder = f'{machine.home(user)}/miniconda3/bin'
    os.makedirs(folder)
    with open(f'{folder}/conda', 'w', encoding='ascii') as out:
        out.write(CONDA)
    os.chmod(f'{folder}/conda', 0o755)


def test_S0_20_S0_21_typed_with_conda_and_venv(machine, root, ana):
    """The two commands of the README that set an environment up."""
    machine.serve(root, f'mgpu_scheduler_server -- --listen none {GPUS}', 'is ready')
    try:
        install_conda(machine, ana)
        machine.type(ana, 'mkdir -p venv/bin; echo "export VIRTUAL_ENV=$HOME/venv" > venv/bin/activate')
        for setup, variable, value in (('conda activate myenv', 'CONDA_DEFAULT_ENV', 'myenv'),
                                       (f'source {machine.home(ana)}/venv/bin/activate', 'VIRTUAL_ENV', f'{machine.home(ana)}/venv')):
            _, number = job_of(machine.type(ana, f'{WITH_CONDA}mgpu_srun --gpu-ids 0 --env-setup-cmd "{setup}" -- printenv {variable}'))
            machine.type(ana, f'mgpu wait {number}')
            assert machine.log(ana, number) == f'{value}\n', setup
    finally:
        machine.stop()


def test_S0_2_S1_4_S1_15_S3_5_errors_of_a_start_name_the_options_of_the_door(machine, root, ana):
    """mgpud has other names for them, and some it has only behind the dashes."""
    machine.serve(root, f'mgpu_simple_master --port 8080 -- {GPUS}', 'is ready')
    try:
        for user, line, sentences in (
                (ana, f'run_server --port 8080 -- {OWN_GPUS}', ['is in use', 'use another (--port PORT)\n']),
                (ana, f'mgpu_simple_master --port 8080 -- {OWN_GPUS}', ['is in use', 'use another (--port PORT)\n']),
                (ana, 'mgpu_simple_master --host nowhere.invalid', ['error: --host nowhere.invalid:8080: ']),
                (ana, "mgpu_simple_master --node-id 'a b'", ["--node-id: 'a b' is not", 'mgpu_simple_master --help lists']),
                (ana, 'mgpu_scheduler_server', ['mgpu_srun ...', '-- --gpus sim:']),
                (ana, 'run_server', ['srun ...', '-- --gpus sim:']),
                (root, 'mgpu_scheduler_server -- --user nobody', ['already running', '--state-dir and --run-dir after --\n'])):
            done = machine.type(user, f'unset MGPU_SOCKET; {line}')
            assert done.code != 0, done
            for sentence in sentences:
                assert sentence in done.err, (line, done.err)
            assert not re.search(r'--(listen|node|nodes-listen)\b(?!-)', done.err), (line, done.err)
        assert machine.type(root, 'mgpu node token --node node002 > token').code == 0
        for name, sentence in (('node003', 'use that name with --node-id'), (os.uname().nodename, 'use another with --node-id')):
            done = machine.type(root, f'mgpu_simple_node --node-id {name} --master-port 8080 --join-file token')
            assert done.code != 0 and 'Registration failed' in done.err and sentence in done.err, done
    finally:
        machine.stop()


def test_S0_1_S0_2_S0_50_typed_by_root_where_nothing_was_set_up(machine, root, ana):
    """There is no user mgpu yet; the server makes it, as the commands of the README do without any preparation."""
    machine.type(root, 'mkdir etc && cp -a /etc/. etc && mount --bind etc /etc && userdel --force mgpu 2>/dev/null')
    assert machine.type(root, 'findmnt /etc && ! id mgpu 2>/dev/null').code == 0
    done = machine.type(root, 'mgpud --gpus sim:4x24G')
    assert done.code != 0 and 'useradd --system' in done.err, done
    done = machine.type(root, 'scheduler start -- --gups 4')
    assert done.code != 0 and 'scheduler start --help lists' in done.err and 'created' not in done.err, done
    said = machine.serve(root, 'mgpu_scheduler_server --max-job-time 3600 -- --gpus sim:4x24G', 'is ready')
    try:
        assert 'created the system user mgpu' in said, said
        entry = machine.type(root, 'getent passwd mgpu; ps -o user= -p $(pgrep -x mgpud --ns $$ --nslist net)').out
        assert re.fullmatch(r'mgpu:.*:/nonexistent:/usr/sbin/nologin\nmgpu\n', entry), entry
        _, number = job_of(machine.type(ana, 'mgpu_srun --gpu-ids 0 -- python3 train.py'))
        assert machine.type(ana, f'mgpu wait {number}').code == 0 and machine.log(ana, number) == 'training on 0\n'
    finally:
        machine.stop()
    said = machine.serve(root, 'mgpu_scheduler_server -- --gpus sim:4x24G', 'is ready')
    assert 'created' not in said, said
    machine.stop()


@pytest.mark.skipif(shutil.which('screen') is None, reason='no screen here')
def test_S2_6_S2_16_S2_39_S2_42_typed_with_conda_and_screen(machine, root):
    """A line with an environment runs in a session; whoever attaches and leaves does not disturb it."""
    home = machine.home(root)
    install_conda(machine, root)
    for name in ('ready', 'gate'):
        os.mkfifo(f'{home}/{name}')
    with open(f'{home}/train.py', 'w', encoding='ascii') as out:
        out.write('import os; print("in", os.environ["CONDA_DEFAULT_ENV"], flush=True)\n'
                  'open("ready", "w").close(); open("gate").read()\n')
    os.symlink(shutil.which('python3'), f'{home}/miniconda3/bin/python')
    machine.type(root, "echo '0,train.py,myenv,--mode fast,1' > jobs.txt")
    machine.serve(root, f'{WITH_CONDA}scheduler start --screen -- {GPUS}', 'train.py')
    try:
        session = 'gpujob_1_fast_1'
        assert machine.type(root, 'cat ready').code == 0
        attached = machine.spawn(root, f"export TERM=xterm; exec script -qec 'screen -r {session}' /dev/null", stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        machine.hear(attached, 'in myenv')
        assert f'screen -r {session}' in machine.type(root, 'scheduler screens').out
        attached.stdin.write('\x01d')
        attached.stdin.flush()
        machine.hear(attached, f'{session}]')
        assert attached.wait(harness.DEADLINE_S) == 0
        assert json.loads(machine.type(root, 'mgpu show 1 --json').out)['state'] == 'running'
        machine.type(root, 'echo go > gate')
        assert machine.type(root, 'mgpu wait 1').code == 0
        assert 'in myenv' in machine.type(root, 'cat /tmp/gpu_scheduler_logs/job_1_*.log').out
        assert 'no session is active' in machine.type(root, 'scheduler screens').out
    finally:
        machine.stop()


@pytest.mark.parametrize('line,ready', [
    (f'scheduler start -- {GPUS}', 'started; jobs come from'),
    (f'mgpu_simple_master --node-id node001 -- {GPUS}', '4 GPU(s) detected')], ids=['scheduler', 'mgpu_simple_master'])
def test_S2_1_a_killed_door_takes_its_mgpud_along(machine, root, line, ready):
    """mgpud is not root any more then; the kernel forgets at a change of the uid whose death it is to tell."""
    machine.serve(root, line, ready)
    pid = int(machine.type(root, 'pgrep -x mgpud --ns $$ --nslist net').out)
    door = machine.servers.pop()
    with os.fdopen(os.pidfd_open(pid)) as mgpud:
        try:
            door.kill()
            assert select.select([mgpud], [], [], harness.DEADLINE_S)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(mgpud.fileno(), signal.SIGKILL)
    door.wait(harness.DEADLINE_S)


def test_S3_2_S3_6_S3_9_S3_11_typed(machine, root, ana, bo):
    """A user's server gives GPUs to srun of all users, and says what it cannot do; root's serves all."""
    said = machine.serve(ana, f'run_server -- {OWN_GPUS}', 'is ready')
    try:
        assert f'runs jobs of {ana.name} only' in said and 'sudo run_server' in said, said
        done = machine.type(ana, 'srun -n 2 python3 train.py')
        assert done.code == 0 and re.fullmatch(r'training on \d,\d\n', done.out), done
        assert machine.type(ana, 'srun sh -c "exit 7"').code == 7
        done = machine.type(bo, 'srun -n 2 python3 train.py')
        assert done.code == 0 and re.fullmatch(r'training on \d,\d\n', done.out), done
        assert f'the server belongs to {ana.name}' in done.err, done
    finally:
        machine.stop()
    machine.serve(root, f'run_server -- {GPUS}', 'is ready')
    try:
        for user in (ana, bo, root):
            done = machine.type(user, 'srun -n 2 python3 train.py')
            assert done.code == 0 and re.fullmatch(r'training on \d,\d\n', done.out), done
        assert '"gpus_total":4' in machine.type(bo, 'curl -s http://localhost:9123/status').out.replace(' ', '')
    finally:
        machine.stop()


def test_S3_6_a_server_that_knows_other_nodes_says_what_srun_needs(machine, ana):
    """Whoever has tried the commands of several READMEs at home has a server that knows the node of another one."""
    machine.serve(ana, 'mgpu_simple_master --port 8080', 'is ready')
    machine.serve(ana, 'mgpu_simple_node --node-id node001 --master-port 8080 -- --gpus sim:1x24G', 'Simple Node Agent')
    assert machine.type(ana, 'mgpu_simple_client submit --interactive true').code == 0
    machine.stop()
    machine.stop()
    machine.serve(ana, f'run_server -- {OWN_GPUS}', 'is ready')
    try:
        done = machine.type(ana, 'srun python3 train.py')
        assert done.code != 0 and 'there are several nodes' in done.err and 'run_server -- --state-dir' in done.err, done
        assert '-G' not in done.err, done
    finally:
        machine.stop()


def test_S3_3_S3_4_S3_10_S3_21_typed_with_another_port(machine, ana):
    """A daemon on a port of its own, clients that are told of it, and a GPU for a process that nobody started here."""
    done = machine.type(ana, f'run_server --detach --port 8080 -- {OWN_GPUS}')
    assert done.code == 0, done
    try:
        done = machine.type(ana, 'export GPUSCHED_URL=http://localhost:8080; srun -n 2 python3 train.py')
        assert done.code == 0 and re.fullmatch(r'training on \d,\d\n', done.out), done
        done = machine.type(ana, 'sleep 1000 & curl -s -X POST http://localhost:8080/acquire -H "Content-Type: application/json" '
                                 '-d "{\\"pid\\": $!, \\"num_gpus\\": 2}"; curl -s http://localhost:8080/jobs; kill $!')
        granted, jobs = map(json.loads, filter(None, done.out.splitlines()))
        assert re.fullmatch(r'\d,\d', granted['gpus']) and granted['job_id'] in json.dumps(jobs), done
        assert json.loads(machine.type(ana, 'curl -s http://localhost:8080/status').out)['port'] == 8080
    finally:
        done = machine.type(ana, 'kill $(pgrep -x mgpud --ns $$ --nslist net)')
    assert done.code == 0, done


def test_S4_1_S4_2_S4_3_S4_4_typed(machine, root, ana):
    """By a user and by root, on a server that root has started without any option for it."""
    machine.serve(root, f'mgpu_scheduler_server -- --listen none {GPUS}', 'is ready')
    try:
        for user in (ana, root):
            done = machine.type(user, 'tgpu submit --gpus 2 --priority 5 -- cmd="python3 train.py"')
            assert done.code == 0 and re.fullmatch(r'\d+\n', done.out), done
            assert machine.type(user, f'mgpu wait {done.out.strip()}').code == 0
            assert re.fullmatch(r'training on \d,\d\n', machine.type(user, f'mgpu logs {done.out.strip()}').out)
            assert re.search(rf'^ *{done.out.strip()} +{user.name} +finished +2 +5 +0 +python3 train.py$',
                             machine.type(user, 'tgpu list').out, re.M)
            assert 'python3 train.py' in machine.type(user, f'tgpu status {done.out.strip()}').out
        shown = machine.type(ana, "script -qec 'tgpu submit --gpus 4 -- sleep 1000' /dev/null").out
        assert re.search(r'^  mgpu logs -f (\d+) [·-] mgpu why \1 [·-] tgpu cancel \1$', shown, re.M), shown
        number = re.match(r'\d+', shown)[0]
        assert machine.type(ana, f'tgpu cancel {number}').code == 0
    finally:
        machine.stop()
