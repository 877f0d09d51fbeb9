# SPDX-License-Identifier: MIT
"""srun, run_server and the three HTTP calls: a test for each line of checklist.tsv, named by its number."""

import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

import harness
import nvml

GPUS = 'sim:4x24G'
LISTEN = '127.0.0.1:0'

# The client that was published with this scheduler, in its words: curl and jq, nothing else.
PUBLISHED = '''#!/usr/bin/env bash
set -euo pipefail
URL="${GPUSCHED_URL:-http://localhost:9123}"
N=1
if [[ "${1:-}" == "-n" ]]; then N="$2"; shift 2; fi
RESP=$(curl -sf -X POST "$URL/acquire" -H 'Content-Type: application/json' -d "{\\"pid\\": $$, \\"num_gpus\\": $N}")
export CUDA_VISIBLE_DEVICES=$(jq -r .gpus <<<"$RESP")
echo "acquired GPU(s) $CUDA_VISIBLE_DEVICES (job=$(jq -r .job_id <<<"$RESP"))" >&2
exec "$@"
'''


@pytest.fixture(scope='module')
def served(someone):
    """An instance that also listens on a port, whose URL srun uses."""
    port = harness.free_port()
    instance = harness.Instance(GPUS, client=someone, listen=f'127.0.0.1:{port}')
    instance.start()
    instance.url = f'http://localhost:{port}'
    instance.port = port
    yield instance
    instance.close()


@pytest.fixture(autouse=True)
def nothing_left(served):
    yield
    served.cancel_all()


def srun(served, *arguments, **options):
    return served.mgpu(*arguments, program='srun', env={'GPUSCHED_URL': served.url, 'MGPU_SOCKET': ''}, **options)


def start(served, *arguments, **options):
    return served.popen(*arguments, program='srun', env={'GPUSCHED_URL': served.url, 'MGPU_SOCKET': ''}, **options)


def await_open(served, count):
    """Until so many jobs wait or run: looked at again with every event."""
    for _ in served.events(after=0):
        if len(served.open_jobs()) == count:
            return


def curl(served, method, path, body=None):
    """As the client's user, over TCP: (status, object)."""
    words = ['curl', '-s', '-X', method, '-w', '\n%{http_code}', f'{served.url}{path}']
    if body is not None:
        words += ['-d', body if isinstance(body, str) else json.dumps(body)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, **served.client.popen_arguments())
    text, status = done.stdout.rsplit('\n', 1)
    return int(status), json.loads(text)


def own_server(place, *arguments, env=None):
    """run_server of an ordinary user with nothing but a home."""
    user = harness.User('nobody') if harness.IS_ROOT else harness.User(harness.pwd.getpwuid(os.geteuid()).pw_name)
    os.makedirs(f'{place}/run', mode=0o700, exist_ok=True)
    if harness.IS_ROOT:
        os.chown(f'{place}/run', user.uid, user.gid)
    env = {'PATH': '/usr/bin:/bin', 'HOME': place, 'XDG_RUNTIME_DIR': f'{place}/run', 'XDG_STATE_HOME': f'{place}/state',
           'ASAN_OPTIONS': 'detect_leaks=0', **(env or {})}
    return subprocess.Popen([f'{harness.programs()}/run_server', *arguments], env=env, cwd=place, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            **user.popen_arguments())


# --- install and server ---

def test_S3_1_S3_2_S3_5_in_the_foreground(place):
    port = harness.free_port()
    process = own_server(place, '--port', str(port), '--', '--gpus', GPUS)
    said = harness.lines_until(process, 'is ready')
    assert f'127.0.0.1:{port}' in said, said
    process.send_signal(signal.SIGTERM)
    assert process.wait(harness.DEADLINE_S) == 0


def test_S3_3_as_a_daemon(place):
    process = own_server(place, '--detach', '--port', str(harness.free_port()), '--', '--gpus', GPUS)
    said = process.communicate(timeout=harness.DEADLINE_S)[0]
    assert process.returncode == 0, said
    found = [pid for pid, line in harness.processes('run_server').items() if 'mgpud' in line]
    found += [pid for pid, line in harness.processes('--policy=fifo').items() if 'mgpud' in line]
    assert found, said
    for pid in found:
        os.kill(pid, signal.SIGTERM)
        assert harness.wait_process(pid)


def test_S3_4_the_port_of_the_environment(place):
    port = harness.free_port()
    process = own_server(place, '--', '--gpus', GPUS, env={'GPUSCHED_PORT': str(port)})
    assert f'127.0.0.1:{port}' in harness.lines_until(process, 'is ready')
    process.send_signal(signal.SIGTERM)
    assert process.wait(harness.DEADLINE_S) == 0
    refused = own_server(place, env={'GPUSCHED_PORT': 'many'})
    said = refused.communicate(timeout=harness.DEADLINE_S)[0]
    assert refused.returncode == 2 and "GPUSCHED_PORT: 'many'" in said, said


def test_S3_5_a_port_that_is_taken(served, place):
    process = own_server(place, '--port', str(served.port))
    said = process.communicate(timeout=harness.DEADLINE_S)[0]
    assert process.returncode != 0 and str(served.port) in said and 'in use' in said, said


# --- srun ---

def test_S3_6_S3_8_S3_13_one_gpu(served):
    done = srun(served, 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES; printf "%s " "$@"', 'x', '-n', '--port')
    assert done.code == 0 and re.fullmatch(r'\d\n-n --port ', done.out), done
    assert 'requesting 1 GPU(s)...' in done.err
    assert re.search(r'acquired GPU\(s\) \d \(job=[a-f][0-9a-f]{7}\)', done.err), done


@pytest.mark.parametrize('option', ['-n', '--num-gpus'])
def test_S3_7_several_gpus(served, option):
    done = srun(served, option, '4', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES')
    assert sorted(done.out.strip().split(',')) == ['0', '1', '2', '3'], done


def test_S3_8_S3_15_S3_17_waits_its_turn(served):
    first = start(served, '-n', '4', 'sh', '-c', 'echo has; read word', stdin=subprocess.PIPE)
    assert first.stdout.readline() == b'has\n'
    second = start(served, '-n', '1', 'echo', 'second')
    await_open(served, 2)
    assert second.poll() is None
    first.kill()
    first.wait()
    out, _ = second.communicate(timeout=harness.DEADLINE_S)
    assert out == b'second\n' and second.returncode == 0


def test_S3_9_it_is_the_command(served, place):
    process = start(served, 'sh', '-c', 'echo $$; pwd; echo $MINE; exit 7', cwd='/usr')
    out, _ = process.communicate(timeout=harness.DEADLINE_S)
    pid, cwd, _ = out.decode().splitlines()
    assert int(pid) == process.pid and cwd == '/usr' and process.returncode == 7
    assert srun(served, 'sh', '-c', 'kill -TERM $$').code == -signal.SIGTERM
    assert srun(served, '/nonexistent/program').code == 127
    assert srun(served, '/etc/passwd').code == 126


def test_S3_10_S3_11_no_server(names):
    url = f'http://localhost:{harness.free_port()}'
    done = subprocess.run([f'{names}/srun', 'true'], env={'GPUSCHED_URL': url}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 5 and url in done.stderr, done
    for wrong in ('https://localhost:1', 'ftp://x', 'http://', 'http://a@b:1'):
        done = subprocess.run([f'{names}/srun', 'true'], env={'GPUSCHED_URL': wrong}, capture_output=True, text=True,
                              check=False)
        assert done.returncode != 0 and 'GPUSCHED_URL' in done.stderr, done


def test_S3_12_no_command(served):
    done = srun(served)
    assert done.code == 2 and 'no command' in done.err
    done = srun(served, '--help')
    assert done.code == 0 and 'usage: srun' in done.out
    for wrong in ('0', '-1', 'x', ''):
        assert srun(served, '-n', wrong, 'true').code == 2


def test_S3_14_ctrl_c_withdraws(served):
    first = start(served, '-n', '4', 'sh', '-c', 'echo has; read word', stdin=subprocess.PIPE)
    assert first.stdout.readline() == b'has\n'
    second = start(served, 'true')
    await_open(served, 2)
    waiting = max(served.open_jobs())
    second.send_signal(signal.SIGINT)
    second.wait(harness.DEADLINE_S)
    assert served.wait(waiting)['state'] == 'cancelled'
    first.communicate(b'\n', timeout=harness.DEADLINE_S)


# --- scheduling ---

@pytest.mark.parametrize('mib', [4096, 400])
def test_S3_16_S3_27_gpus_that_others_use_are_left_alone(make_instance, place, mib):
    """On a stand-in for the driver's library: a process of nobody's is on GPU 0. One that is too small to count keeps no job away
    for ever, but comes last."""
    machine = nvml.Nvml(place)
    machine.add(bus=1, uuid='GPU-a')
    machine.add(bus=2, uuid='GPU-b')
    stranger = subprocess.Popen(['sleep', '1000'])
    machine.say(f'process 0 compute {stranger.pid} {mib}')
    machine.write()
    box = make_instance(gpus='auto', arguments=machine.arguments)
    box.await_gpus(lambda gpus: len(gpus) == 2 and gpus[0]['processes'])
    done = box.mgpu('sh', '-c', 'echo $CUDA_VISIBLE_DEVICES', program='srun')
    assert done.out == '1\n', done
    assert [gpu['avoided'] for gpu in box.gpus()] == [mib > 512, False]
    if mib <= 512:
        assert box.mgpu('-n', '2', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES', program='srun').out == '0,1\n'
    stranger.kill()
    stranger.wait()


def test_S3_18_more_than_there_are(served):
    done = srun(served, '-n', '5', 'true')
    assert done.code not in (0, None) and '5 GPUs' in done.err, done


# --- the HTTP calls ---

def test_S3_19_status(served):
    status, body = curl(served, 'GET', '/status')
    assert status == 200 and body['gpus_total'] == 4 and body['gpus_allocated'] == 0 and body['port'] == served.port
    for key in ('service', 'version', 'uptime_s', 'jobs_running', 'jobs_queued', 'jobs_total'):
        assert key in body


def test_S3_20_jobs(served):
    process = start(served, '-n', '2', 'sh', '-c', 'echo has; read word', stdin=subprocess.PIPE)
    assert process.stdout.readline() == b'has\n'
    _, body = curl(served, 'GET', '/jobs')
    mine = [job for job in body['jobs'] if job['pid'] == process.pid]
    assert len(mine) == 1 and mine[0]['status'] == 'running' and len(mine[0]['gpus'].split(',')) == 2
    assert re.fullmatch(r'[a-f][0-9a-f]{7}', mine[0]['id'])
    process.communicate(b'\n', timeout=harness.DEADLINE_S)


def sleeper(served):
    return subprocess.Popen(['sleep', '1000'], **served.client.popen_arguments())


def test_S3_21_acquire(served):
    process = sleeper(served)
    status, body = curl(served, 'POST', '/acquire', {'pid': process.pid})
    assert status == 200 and re.fullmatch(r'\d', body['gpus']) and re.fullmatch(r'[a-f][0-9a-f]{7}', body['job_id'])
    process.kill()
    process.wait()
    assert served.wait(body['number'])['state'] == 'done'


@pytest.mark.parametrize('body', ['{', '[]', '{"pid": -1}', '{"pid": 0}', '{"pid": "x"}', '{"pid": 1.5}', '{}', '',
                                  '{"pid": 4000000000}', '{"pid": 99999999}', '{"num_gpus": 1}', '{"pid": 1, "gpus": 1}'])
def test_S3_22_wrong_bodies(served, body):
    status, answer = curl(served, 'POST', '/acquire', body)
    assert 400 <= status < 500 and answer['detail'], (status, answer)
    assert curl(served, 'GET', '/status')[0] == 200


def test_S3_22_wrong_numbers_and_paths(served):
    process = sleeper(served)
    for gpus in (0, -1, 100, 'two'):
        status, answer = curl(served, 'POST', '/acquire', {'pid': process.pid, 'num_gpus': gpus})
        assert 400 <= status < 500 and answer['detail'], (gpus, answer)
    process.kill()
    process.wait()
    status, answer = curl(served, 'GET', '/nothing')
    assert status == 404 and answer['status'] == 404


@pytest.mark.root
def test_S3_22_a_process_of_another(served, bo):
    process = subprocess.Popen(['sleep', '1000'], **bo.popen_arguments())
    status, answer = curl(served, 'POST', '/acquire', {'pid': process.pid})
    assert status == 403 and 'not to you' in answer['detail'], answer
    process.kill()
    process.wait()


def test_S3_22_the_published_client(served, place):
    if shutil.which('jq') is None:
        pytest.skip('no jq here')
    path = f'{place}/srun'
    with open(path, 'w', encoding='ascii') as out:
        out.write(PUBLISHED)
    os.chmod(path, 0o755)
    done = subprocess.run([path, '-n', '2', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES'], capture_output=True, text=True,
                          env={'PATH': '/usr/bin:/bin', 'GPUSCHED_URL': served.url}, check=False,
                          timeout=harness.DEADLINE_S, **served.client.popen_arguments())
    assert done.returncode == 0 and re.fullmatch(r'\d,\d\n', done.stdout), done


def test_S3_23_S3_24_many_that_wait(served):
    """Blocked calls keep nobody from an answer, and leave nothing behind when they are dropped."""
    first = start(served, '-n', '4', 'sh', '-c', 'echo has; read word', stdin=subprocess.PIPE)
    assert first.stdout.readline() == b'has\n'
    pids = [sleeper(served) for _ in range(40)]
    waiting = [start(served, 'true') for _ in range(3)]
    calls = []
    for process in pids:
        connection = served.connection()
        connection.request('POST', '/acquire', json.dumps({'pid': process.pid}))
        calls.append(connection)
    for _ in served.events(after=0):
        if curl(served, 'GET', '/status')[1]['jobs_queued'] == 43:
            break
    for connection in calls:
        connection.close()
    for process in waiting:
        process.kill()
        process.wait()
    for _ in served.events(after=0):
        if curl(served, 'GET', '/status')[1]['jobs_queued'] == 0:
            break
    first.communicate(b'\n', timeout=harness.DEADLINE_S)
    for process in pids:
        process.kill()
        process.wait()


# --- other ---

TALLIED = '''
import os, pytest
def test_passes(): pass
def test_fails(): assert False
@pytest.fixture
def broken(): assert False
def test_cannot_begin(broken): pass
@pytest.mark.skip(reason='not here')
def test_is_skipped(): pass
'''


@pytest.fixture
def tally(tmp_path):
    """Runs TALLIED and more by the function of tools/run-tests that `make check` counts with."""
    source = importlib.machinery.SourceFileLoader('run_tests', f'{harness.ROOT}/tools/run-tests')
    run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader('run_tests', source))
    source.exec_module(run_tests)

    def count(more):
        (tmp_path / 'test_tallied.py').write_text(TALLIED + more, encoding='ascii')
        made = run_tests.Tally()
        run_tests.run_system_tests(made, [str(tmp_path)], {}, jobs='2', report=f'{tmp_path}/report.xml')
        return made

    return count


def test_S3_28_one_command_counts_every_test(tally):
    """One that cannot begin has failed, too."""
    made = tally('')
    assert (made.passed, made.failed, made.skipped) == (1, 2, 1), made.failures


@pytest.mark.parametrize('more, failure', [('def test_kills(): os.kill(os.getpid(), 9)', 'test_kills'), ('import nothing', 'tallied')])
def test_S3_28_what_cannot_be_counted_is_a_failure(tally, more, failure):
    """A test that takes its worker along, and a file that cannot be read."""
    assert any(failure in name for name in tally(more).failures)


def test_S3_29_the_srun_of_slurm_stays(names, place):
    os.makedirs(f'{place}/slurm')
    with open(f'{place}/slurm/srun', 'w', encoding='ascii') as out:
        out.write('#!/bin/sh\n')
    os.chmod(f'{place}/slurm/srun', 0o755)
    os.makedirs(f'{place}/bin')
    call = [f'{names}/mgpu', 'compat', 'install', f'{place}/bin', 'srun']
    env = {'PATH': f'{place}/slurm:/usr/bin:/bin'}
    done = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and 'belongs to Slurm' in done.stderr and os.listdir(f'{place}/bin') == []
    done = subprocess.run([*call[:3], '--force', *call[3:]], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and os.path.islink(f'{place}/bin/srun')


@pytest.mark.parametrize('leave', ['kill', 'stop'])
def test_a_waiting_srun_keeps_its_place_while_the_server_restarts(make_instance, gate, leave):
    """Its request is found again, and not made twice."""
    box = make_instance(gpus='sim:2x24G')
    blocker = box.post_job(gate.command(), gpus=2)
    box.wait(blocker, 'running')
    waiting = box.popen('-n', '2', 'sh', '-c', 'echo ran', program='srun')
    job = box.await_news(lambda: [job for job in box.open_jobs() if job > blocker], waiting)[0]
    getattr(box, leave)()
    seen = ''
    while 'mgpud does not answer; waiting' not in seen:
        line = waiting.stderr.readline().decode()
        assert line, f'it ended: {seen}'
        seen += line
    box.start()
    gate.open()
    out, err = waiting.communicate(timeout=harness.DEADLINE_S)
    assert (waiting.returncode, out) == (0, b'ran\n'), err
    box.wait(job)
    assert [made['id'] for made in box.api('GET', '/jobs').json['jobs']] == [blocker, job]
