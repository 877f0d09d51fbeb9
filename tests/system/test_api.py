# SPDX-License-Identifier: MIT
"""The HTTP API: objects, identity, byte ranges, following, event streams with resume, and everything malformed."""

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time

import pytest

import harness

pytestmark = pytest.mark.smoke

LIMIT_S = 30


PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'

JOB_KEYS = {'id', 'user', 'uid', 'name', 'state', 'attempt', 'priority', 'gpus', 'gpu_ids', 'gpu_mem', 'command', 'node',
            'granted', 'submitted_at', 'started_at', 'ended_at', 'wait_seconds', 'run_seconds', 'exit_code', 'signal',
            'ended_by', 'message', 'log', 'log_bytes', 'cpu_seconds', 'max_rss_bytes', 'position', 'reason', 'stopped_by'}


def curl(box, *arguments, user=None):
    """curl as a user; (exit code, output)."""
    user = user or box.client
    done = subprocess.run(['curl', '-s', '-S', '--max-time', str(LIMIT_S), *arguments], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, env=user.environment(), cwd='/', **user.popen_arguments())
    return done.returncode, done.stdout.decode(errors='replace') or done.stderr.decode(errors='replace')


def raw(box, data, timeout_s=LIMIT_S, shutdown=False):
    """Sends bytes on a fresh connection; everything that comes back until the server closes or is done."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout_s)
        with box.client.acting():
            sock.connect(box.socket)
        received = b''
        try:
            sock.sendall(data)
            if shutdown:
                sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before all was sent: the answer is what counts
        try:
            while True:
                part = sock.recv(65536)
                if not part:
                    break
                received += part
                head, _, body = received.partition(b'\r\n\r\n')
                length = re.search(rb'content-length: (\d+)', head, re.I)
                if length and len(body) >= int(length.group(1)):
                    break
        except (ConnectionResetError, socket.timeout):
            pass
        return received


def status_of(answer):
    match = re.match(rb'HTTP/1\.[01] (\d{3}) ', answer)
    return int(match.group(1)) if match else None


def is_problem(answer, status, code=None):
    assert answer.status == status, answer
    assert answer.headers['content-type'].startswith('application/problem+json'), answer
    problem = answer.json
    assert problem['status'] == status and problem['detail'] and problem['title'], problem
    if code:
        assert problem['code'] == code, problem
    return True


# --- objects ---

def test_curl_submits_a_job_and_reads_it(box):
    code, out = curl(box, '--unix-socket', box.socket, 'http://localhost/api/v1/jobs', '-d',
                     '{"command": ["echo", "by curl"], "gpus": 1, "name": "c"}', '-H', 'Content-Type: application/json')
    assert code == 0, out
    job = json.loads(out)
    assert job['schema'] == 'mgpu/v1' and job['name'] == 'c' and job['user'] == box.client.name
    box.wait(job['id'])
    code, out = curl(box, '--unix-socket', box.socket, f'http://localhost/api/v1/jobs/{job["id"]}/log')
    assert out == 'by curl\n'


def test_a_job_has_every_key_of_the_schema(box):
    job = box.run_job(['true'])[0]
    assert JOB_KEYS <= set(job), JOB_KEYS - set(job)
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z', job['submitted_at'])
    assert job['state'] == 'done' and job['exit_code'] == 0 and job['ended_by'] == 'exit' and job['signal'] is None
    assert job['run_seconds'] >= 0 and job['cpu_seconds'] >= 0 and job['max_rss_bytes'] > 0


def test_a_caller_who_prefers_a_minimal_answer_to_a_submit_gets_what_has_a_value(box, gate):
    body = {'command': gate.command(), 'gpus': 1}
    whole, short = (box.api('POST', '/jobs', body, headers=headers).json for headers in ({}, {'Prefer': 'return=minimal'}))
    assert short['id'] == whole['id'] + 1
    assert None not in short.values() and not any(value is False for value in short.values())
    assert {key for key, value in whole.items() if value} <= set(short) <= set(whole)


def test_a_queued_job_knows_its_place_and_why(box, gate):
    blocker = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(blocker, 'running')
    job = box.job(box.post_job(['true']))
    assert job['position'] == 1 and job['reason'] and job['started_at'] is None and job['granted'] == []
    assert set(job) >= JOB_KEYS
    gate.open()


def test_a_command_may_be_one_shell_string_and_the_directory_is_then_the_home(box):
    job = box.post_job('echo a | tr a b; pwd')
    box.wait(job)
    assert box.output(job) == f'b\n{box.client.home}\n'


def test_a_repeated_key_gives_the_same_job_and_another_request_a_conflict(box):
    key = f'key-{time.monotonic_ns()}'
    first = box.api('POST', '/jobs', {'command': ['true'], 'submit_key': key})
    again = box.api('POST', '/jobs', {'command': ['true'], 'submit_key': key})
    assert (first.status, again.status) == (201, 200) and first.json['id'] == again.json['id']
    other = box.api('POST', '/jobs', {'command': ['false'], 'submit_key': key})
    is_problem(other, 409, 'key_conflict')
    assert other.json['job'] == first.json['id']


def test_lists_filter(box, gate):
    running = box.post_job(gate.command(), name='api-list-1')
    ended = box.wait(box.post_job(['true'], name='api-list-2'))['id']
    box.wait(running, 'running')

    def ids(query):
        answer = box.api('GET', f'/jobs?{query}')
        assert answer.status == 200 and answer.json['schema'] == 'mgpu/v1', answer
        return [job['id'] for job in answer.json['jobs']]
    assert {running, ended} <= set(ids('')) and ids('') == sorted(ids(''))
    assert ids('state=running') == [running]
    assert ids('name=api-list-*') == [running, ended]
    assert ids(f'ids={ended},{running}') == [running, ended]
    assert ids('user=nobody') == []
    assert ended in ids('all=1')
    gate.open()


def test_lists_name_elements_of_arrays(box, gate):
    array = box.post_job(gate.command(), array='0-3%1')
    box.await_news(lambda: box.api('GET', f'/jobs/{array}.0').json.get('state') == 'running')
    first = box.job(f'{array}.0')['id']

    def ids(text):
        answer = box.api('GET', f'/jobs?ids={text}')
        assert answer.status == 200, answer
        return [job['id'] for job in answer.json['jobs']]
    assert ids(f'{array}.0') == [first]
    assert ids(f'{array}.2') == [array]  # it waits in its array
    assert ids(f'{array}.0,{array}.9,{array},99999.1') == [array, first]
    gate.open(4)
    box.wait(array)
    assert ids(f'{array}.0,{array}.3') == sorted(box.job(f'{array}.{index}')['id'] for index in (0, 3))
    for text in ('1.', '.1', '1.x', '1.2.3', '1.-1'):
        assert box.api('GET', f'/jobs?ids={text}').status == 400, text


def test_lists_leave_out_what_is_not_asked_for(box, gate):
    running = box.post_job(gate.command(), gpus=8)
    waiting = box.post_job(['true'], gpus=1)
    box.wait(running, 'running')

    def job(query):
        return box.api('GET', f'/jobs?ids={waiting}{query}').json['jobs'][0]
    whole, quick, sparse = job(''), job('&quick=1'), job('&sparse=1')
    looks = 'reason', 'reason_text', 'eta', 'eta_from', 'eta_until', 'eta_latest', 'expected_end'
    assert whole['reason'] == 'resources' and all(quick[name] is None for name in looks), quick
    assert quick['position'] == whole['position'] == 1 and quick.keys() == whole.keys()
    assert sparse['reason'] == 'resources' and not any(value is None or value is False for value in sparse.values())
    assert sparse.keys() == {name for name, value in whole.items() if value is not None and value is not False}
    is_problem(box.api('GET', '/jobs?sparse=yes'), 400, 'invalid')
    gate.open()


def test_health_and_version(box):
    answer = box.api('GET', '/healthz')
    assert (answer.status, answer.body) == (200, b'ok\n')
    version = box.api('GET', '/version').json
    assert version['schema'] == 'mgpu/v1' and version['version'] and version['instance'] and version['epoch'] >= 1


def test_waiting_ends_with_the_state_or_with_its_time(box, gate):
    job = box.post_job(gate.command())
    assert box.api('GET', f'/jobs/{job}/wait?states=running&timeout={LIMIT_S}').json['state'] == 'running'
    is_problem(box.api('GET', f'/jobs/{job}/wait?states=done&timeout=0.05'), 408, 'timeout')
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_a_connection_serves_many_requests_and_keeps_their_order(box):
    request = b'GET /api/v1/version HTTP/1.1\r\nHost: x\r\n\r\n'
    last = b'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    answer = b''
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LIMIT_S)
        with box.client.acting():
            sock.connect(box.socket)
        sock.sendall(request * 20 + last)
        while part := sock.recv(65536):
            answer += part
    assert answer.count(b'HTTP/1.1 200') == 21 and answer.endswith(b'ok\n')


# --- logs ---

def test_byte_ranges_of_a_log(box):
    job = box.wait(box.post_job(['printf', '0123456789']))['id']

    def part(value):
        answer = box.api('GET', f'/jobs/{job}/log', headers={'Range': value})
        return answer.status, answer.body, answer.headers.get('content-range')
    assert part('bytes=2-4') == (206, b'234', 'bytes 2-4/10')
    assert part('bytes=7-') == (206, b'789', 'bytes 7-9/10')
    assert part('bytes=-3') == (206, b'789', 'bytes 7-9/10')
    assert part('bytes=0-99')[:2] == (206, b'0123456789')
    assert part('bytes=10-')[0] == 416
    whole = box.api('GET', f'/jobs/{job}/log')
    assert (whole.status, whole.body) == (200, b'0123456789')
    assert whole.headers['content-type'] == 'application/octet-stream'


def test_a_followed_log_comes_as_it_is_written_and_ends_with_the_job(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo one; echo up > {bell.path}; read x < {gate.path}; echo two'])
    bell.wait()
    connection = box.connection()
    connection.request('GET', f'/api/v1/jobs/{job}/log?follow=1')
    response = connection.getresponse()
    assert response.status == 200
    assert response.readline() == b'one\n'
    gate.open()
    assert response.read() == b'two\n'
    connection.close()


def test_a_log_that_does_not_exist_yet_is_404_and_can_be_waited_for(box, gate):
    blocker = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(blocker, 'running')
    job = box.post_job(['echo', 'late'])
    is_problem(box.api('GET', f'/jobs/{job}/log'), 404)
    connection = box.connection()
    connection.request('GET', f'/api/v1/jobs/{job}/log?follow=1')
    gate.open()
    assert connection.getresponse().read() == b'late\n'
    connection.close()


def test_many_followers_read_the_same_log(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo up > {bell.path}; read x < {gate.path}; seq 20000'])
    bell.wait()
    connections = [box.connection() for _ in range(20)]
    for connection in connections:
        connection.request('GET', f'/api/v1/jobs/{job}/log?follow=1')
    gate.open()
    expected = ''.join(f'{i}\n' for i in range(1, 20001)).encode()
    for connection in connections:
        assert connection.getresponse().read() == expected
        connection.close()


def test_a_follower_that_goes_away_leaves_nothing_open(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo x; echo up > {bell.path}; read x < {gate.path}'])
    bell.wait()
    for _ in range(10):
        connection = box.connection()
        connection.request('GET', f'/api/v1/jobs/{job}/log?follow=1')
        response = connection.getresponse()
        assert response.readline() == b'x\n'
        connection.sock.shutdown(socket.SHUT_RDWR) if connection.sock else None
        response.close()
        connection.close()
    gate.open()
    box.wait(job)
    assert box.api('GET', '/healthz').status == 200
    if harness.IS_ROOT:
        assert len(os.listdir(f'/proc/{box.process.pid}/fd')) < 60


# --- events ---

def test_events_tell_the_life_of_a_job_in_order(box):
    last = box.run_job(['true'])[0]
    after = max(event['seq'] for event in box.job(last['id'])['events'])
    job = box.post_job(['true'])
    seen = []
    for event in box.events(after=after):
        if event['data']['job'] != job:
            continue
        assert event['id'] == str(event['data']['seq']) and event['event'] == event['data']['type']
        seen.append(event['event'])
        if event['event'] == 'ended':
            break
    assert seen == ['submitted', 'allocated', 'started', 'ended']


def test_a_stream_resumes_after_the_last_event_seen(box):
    jobs = [box.run_job(['true'])[0]['id'] for _ in range(3)]
    first = box.job(jobs[0])['events'][0]['seq']
    stream = box.events(after=first - 1)
    whole = []
    for event in stream:
        whole.append(event['id'])
        if event['data']['job'] == jobs[2] and event['event'] == 'ended':
            break
    connection = box.connection()
    connection.request('GET', '/api/v1/events', headers={'Last-Event-ID': whole[4]})
    response = connection.getresponse()
    resumed = []
    assert len(whole) >= 9  # a job may be over before it was seen running
    while len(resumed) < len(whole) - 5:
        line = response.readline().decode()
        if line.startswith('id: '):
            resumed.append(line[4:].strip())
    connection.close()
    assert resumed == whole[5:]


def test_a_stream_survives_a_restart_by_resuming(box):
    job = box.run_job(['true'])[0]['id']
    seq = box.job(job)['events'][-1]['seq']
    box.restart()
    later = box.run_job(['true'])[0]['id']
    for event in box.events(after=seq):
        assert int(event['id']) > seq
        if event['data']['job'] == later:
            break


# --- identity ---

def test_on_loopback_the_kernel_says_who_asks(box):
    code, out = curl(box, f'http://{LISTEN}/api/v1/jobs', '-d', '{"command": ["id", "-un"]}', '-H',
                     'Content-Type: application/json')
    job = json.loads(out)
    assert code == 0 and job.get('user') == box.client.name, out
    box.wait(job['id'])
    assert box.output(job['id']) == f'{box.client.name}\n'


@pytest.mark.root
def test_on_loopback_another_user_is_another_user(box, bo, gate):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    _, out = curl(box, '-X', 'POST', f'http://{LISTEN}/api/v1/jobs/{job}/cancel', user=bo)
    assert json.loads(out)['status'] == 403, out
    gate.open()


def test_a_token_stands_for_its_user(box):
    made = box.api('POST', '/tokens', {'name': 'ci', 'expires_s': 3600})
    assert made.status in (200, 201), made
    token = made.json['token']
    assert token.startswith('mgpu_')
    _, out = curl(box, f'http://{LISTEN}/api/v1/jobs', '-H', f'Authorization: Bearer {token}', '-d',
                  '{"command": ["true"]}', '-H', 'Content-Type: application/json')
    assert json.loads(out)['user'] == box.client.name, out
    box.wait(json.loads(out)['id'])


@pytest.mark.parametrize('token', ['mgpu_' + '0' * 64, 'mgpu_', '', 'x' * 5000])
def test_a_wrong_token_is_nobody(box, token):
    _, out = curl(box, '-i', f'http://{LISTEN}/api/v1/jobs', '-H', f'Authorization: Bearer {token}')
    assert re.match(r'HTTP/1.1 401', out), out


def test_tokens_are_not_given_out_over_tcp(box):
    _, out = curl(box, '-i', f'http://{LISTEN}/api/v1/tokens', '-d', '{"name": "x"}', '-H', 'Content-Type: application/json')
    assert re.match(r'HTTP/1.1 40[134]', out), out


def test_a_page_of_another_site_cannot_use_the_browser_of_a_user(box):
    """A browser on this machine has the user's identity on loopback: only plain API requests may use it."""
    body = ['-d', '{"command": ["true"]}']
    for headers in (['-H', 'Origin: http://evil.example', '-H', 'Content-Type: application/json'],
                    ['-H', 'Origin: http://evil.example', '-H', 'Content-Type: text/plain'],
                    ['-H', 'Origin: null', '-H', 'Content-Type: text/plain'],
                    ['-H', 'Host: evil.example', '-H', 'Content-Type: application/json']):
        _, out = curl(box, '-i', f'http://{LISTEN}/api/v1/jobs', *body, *headers)
        assert re.match(r'HTTP/1.1 4\d\d', out), (headers, out)
    assert box.open_jobs() == []


# --- what does not exist or may not be ---

@pytest.mark.parametrize('method, path, status', [
    ('GET', '/jobs/99999999', 404), ('GET', '/jobs/0', 404), ('GET', '/jobs/-1', (400, 404)), ('GET', '/jobs/abc', (400, 404)),
    ('GET', '/jobs/1.5', (400, 404)), ('GET', '/jobs/99999999999999999999999', (400, 404)), ('GET', '/nothing', 404),
    ('POST', '/jobs/99999999/cancel', 404), ('GET', '/jobs/99999999/log', 404), ('GET', '/jobs/99999999/wait', 404),
    ('DELETE', '/jobs', 405), ('PUT', '/jobs', 405), ('POST', '/gpus', 405), ('GET', '/jobs?state=sleeping', 400),
    ('GET', '/jobs?ids=a', 400), ('GET', '/jobs?nonsense=1', 400), ('GET', '/events?after=x', 400),
    ('GET', '/../../etc/passwd', (400, 404)), ('GET', '/jobs/%00', (400, 404)),
])
def test_what_is_not_there_is_said_so(box, method, path, status):
    answer = box.api(method, path, {} if method != 'GET' else None)
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    assert answer.json['detail']


def test_the_end_of_a_job_is_final(box):
    job = box.wait(box.post_job(['true']))['id']
    is_problem(box.api('POST', f'/jobs/{job}/cancel'), 409, 'already_done')


@pytest.mark.parametrize('body, word', [
    (b'', ''), (b'{', ''), (b'[]', ''), (b'null', ''), (b'{"command": ["true"]} x', ''), (b'\xff\xfe', ''),
    (b'{"command": ["true"], "command": ["false"]}', 'command'), (b'{"command": []}', 'command'),
    (b'{"command": [1]}', 'command'), (b'{"command": ""}', 'command'), (b'{"command": ["a\\u0000b"]}', ''), (b'{}', 'command'),
    (b'{"command": ["true"], "priorty": 1}', 'priorty'), (b'{"command": ["true"], "priority": 1001}', 'priority'),
    (b'{"command": ["true"], "priority": "high"}', 'priority'), (b'{"command": ["true"], "env": ["A=1"]}', 'env'),
    (b'{"command": ["true"], "env": {"A=B": "1"}}', ''), (b'{"command": ["true"], "env": {"": "1"}}', ''),
    (b'{"command": ["true"], "cwd": "relative"}', 'cwd'), (b'{"command": ["true"], "umask": 4096}', 'umask'),
    (b'{"command": ["true"], "name": "a\\u001bb"}', 'name'), (b'{"command": ["true"], "gpus": 1e99}', 'gpus'),
    (b'{"command": ["true"], "gpus": true}', 'gpus'), (b'{"command": ["true"], "gpus": null, "name": 5}', 'name'),
    (b'[' * 100000, ''), (b'{"a":' * 1000 + b'1' + b'}' * 1000, ''),
], ids=lambda value: repr(value)[:60])
def test_a_malformed_submit_is_400_with_a_sentence(box, body, word):
    answer = box.api('POST', '/jobs', body, headers={'Content-Type': 'application/json'})
    assert answer.status == 400, answer
    assert word in answer.json['detail'], answer
    assert box.open_jobs() == []


def test_a_mistyped_field_gets_a_suggestion(box):
    problem = box.api('POST', '/jobs', {'command': ['true'], 'priorty': 1}).json
    assert 'priority' in problem.get('hint', '') + problem['detail'], problem


# --- limits ---

def test_a_body_over_the_limit_is_413_and_is_not_read(box):
    assert status_of(raw(box, b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
                              b'Content-Length: 99999999999\r\n\r\n')) == 413
    big = json.dumps({'command': ['true'], 'env': {'A': 'x' * (3 << 20)}}).encode()
    assert box.api('POST', '/jobs', big, headers={'Content-Type': 'application/json'}).status == 413


def test_texts_over_their_limits_are_refused_by_name(box):
    for fields, word in (({'name': 'x' * 129}, 'name'), ({'setup': 'x' * (65 << 10)}, 'setup'),
                         ({'cwd': '/' + 'x' * 4097}, 'cwd'), ({'command': ['x' * (257 << 10)]}, 'command'),
                         ({'env': {'A': 'x' * (1100 << 10)}}, 'env')):
        answer = box.api('POST', '/jobs', {'command': ['true'], **fields})
        assert answer.status in (400, 413), answer
        assert word in answer.json['detail'], answer.json['detail'][:200]


@pytest.mark.parametrize('data, statuses', [
    (b'\r\n\r\n', (400, None)), (b'GET\r\n\r\n', (400,)), (b'NONSENSE /x HTTP/1.1\r\n\r\n', (400, 405, 501)),
    (b'GET / HTTP/9.9\r\n\r\n', (400, 505)), (b'GET /api/v1/jobs HTTP/1.1\r\nBad Header\r\n\r\n', (400,)),
    (b'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', (400,)),
    (b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello', (400,)),
    (b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', (400,)),
    (b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', (400,)),
    (b'GET /' + b'x' * 9000 + b' HTTP/1.1\r\nHost: x\r\n\r\n', (400, 414)),
    (b'GET / HTTP/1.1\r\nHost: x\r\nA: ' + b'x' * 40000 + b'\r\n\r\n', (400, 431)),
    (b'GET / HTTP/1.1\r\n' + b'A: b\r\n' * 200 + b'\r\n', (400, 431)),
    (b'\x00\x01\x02\x03' * 100 + b'\r\n\r\n', (400, None)), (b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' * 20, (400, None)),
    (b'GET /nosuch HTTP/1.1\r\nHost: x\r\n a folded: line\r\n\r\n', (400, 404)),
], ids=lambda value: repr(value)[:40])
def test_malformed_http_is_refused_and_does_no_harm(box, data, statuses):
    assert status_of(raw(box, data, timeout_s=5, shutdown=True)) in statuses
    assert box.api('GET', '/healthz').status == 200


def test_requests_cut_anywhere_do_no_harm(box):
    whole = (b'POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n'
             b'{"command": ["true"]}')
    for length in range(0, len(whole), 3):
        with socket.socket(socket.AF_UNIX) as sock:
            with box.client.acting():
                sock.connect(box.socket)
            sock.sendall(whole[:length])
    assert box.api('GET', '/healthz').status == 200
    assert box.open_jobs() == []


def test_a_request_that_comes_byte_by_byte_is_understood(box):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(LIMIT_S)
        with box.client.acting():
            sock.connect(box.socket)
        for byte in b'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n':
            sock.send(bytes([byte]))
        assert status_of(sock.recv(65536)) == 200


def test_many_silent_connections_do_not_keep_others_out(box):
    silent = []
    try:
        for _ in range(300):
            sock = socket.socket(socket.AF_UNIX)
            with box.client.acting():
                sock.connect(box.socket)
            silent.append(sock)
        assert box.api('GET', '/healthz').status == 200
        assert box.run_job(['true'])[0]['state'] == 'done'
    finally:
        for sock in silent:
            sock.close()


def test_a_reader_that_does_not_read_does_not_stop_the_others(box):
    job = box.wait(box.post_job(['/usr/bin/python3', '-c', 'import sys; sys.stdout.write("x" * 20_000_000)']))['id']
    slow = box.connection()
    slow.request('GET', f'/api/v1/jobs/{job}/log')
    assert len(box.api('GET', f'/jobs/{job}/log').body) == 20_000_000
    assert len(slow.getresponse().read()) == 20_000_000
    slow.close()


def test_many_clients_at_once_each_get_their_own_job(box):
    results, errors = [], []

    def submit():
        connection = harness.UnixConnection(box.socket, None, LIMIT_S)
        try:
            for _ in range(10):
                connection.request('POST', '/api/v1/jobs', json.dumps({'command': ['true'], 'gpus': 0}),
                                   {'Content-Type': 'application/json'})
                response = connection.getresponse()
                results.append((response.status, json.loads(response.read()).get('id')))
        except (OSError, http.client.HTTPException, ValueError) as error:
            errors.append(error)
        finally:
            connection.close()
    # Threads share one identity, so it is changed once around all of them.
    with box.client.acting():
        threads = [threading.Thread(target=submit) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors and len(results) == 80
    assert all(status == 201 for status, _ in results) and len({job for _, job in results}) == 80
    for _, job in results:
        assert box.wait(job)['state'] == 'done'


def test_an_idle_event_stream_is_kept_alive_by_comments(box):
    """Not waited for here (15 s): the stream just stays open and silent until something happens."""
    connection = box.connection()
    connection.request('GET', '/api/v1/events')
    response = connection.getresponse()
    assert response.headers['content-type'].startswith('text/event-stream')
    connection.sock and select.select([connection.sock], [], [], 0)
    job = box.post_job(['true'])
    while True:
        line = response.readline().decode()
        if line.startswith('data: ') and json.loads(line[6:])['job'] == job:
            break
    connection.close()


def test_mgpud_leaves_nothing_behind_of_requests_that_wait_for_the_store(make_instance, someone):
    # Rootless, where leaks are looked for. While it is stopped requests arrive before the signal does.
    box = make_instance(user=someone, client=someone)
    connections = [box.connection() for _ in range(20)]
    for connection in connections:
        connection.request('GET', '/healthz')
        assert harness.Answer(connection.getresponse()).status == 200
    os.kill(box.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, box.process.pid, os.WSTOPPED)
    for connection in connections:
        connection.request('GET', f'/api/v1/jobs/4711')  # not in memory: the store is asked
    box.process.terminate()
    os.kill(box.process.pid, signal.SIGCONT)
    assert box.process.wait(harness.DEADLINE_S) == 0, box.log()[-6000:]
