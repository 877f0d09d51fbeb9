# SPDX-License-Identifier: MIT
"""slurmrestd, as a client of Slurm's REST API (openapi v0.0.38) speaks to it."""

import http.client
import json
import os
import resource
import socket
import socketserver
import subprocess
import threading
import time

import pytest
import slurm

import harness

BASE = '/slurm/v0.0.38'


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=harness.DEADLINE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Rest:
    """A slurmrestd of the client's user, and requests to it."""

    def __init__(self, cluster):
        self.cluster, self.path = cluster, os.path.join(cluster.place, 'rest.sock')
        self.log = os.path.join(cluster.place, 'rest.log')
        user = cluster.box.client
        with open(self.log, 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen([f'{cluster.folder}/slurmrestd', '-a', 'rest_auth/local', '-s', 'openapi/v0.0.38', f'unix:{self.path}'],
                                            env=cluster.environment(), cwd=cluster.place, stdin=subprocess.DEVNULL, stderr=log,
                                            **user.popen_arguments())
        harness.until(lambda: os.path.exists(self.path) or self.process.poll() is not None, 'slurmrestd listens')
        assert self.process.poll() is None

    def close(self):
        self.process.terminate()
        self.process.wait()

    def __call__(self, method, path, body=None, headers=None, base=BASE):
        """The status and the JSON of a request by the user of this slurmrestd."""
        with self.cluster.box.client.acting():
            connection = Connection(self.path)
            connection.request(method, base + path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body),
                               {'Content-Type': 'application/json', 'X-SLURM-USER-TOKEN': 'ignored', **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
        assert answer.headers['Content-Type'] == 'application/json'
        found = json.loads(text)
        assert found['meta']['plugin']['type'] == 'openapi/v0.0.38' and isinstance(found['errors'], list)
        return answer.status, found


class Refusal:
    """A mgpud that refuses all requests."""

    def __init__(self, path):
        self.path = path
        body = b'{"status": 401, "code": "unauthenticated", "detail": "the token has been revoked"}'
        self.answer = b'HTTP/1.1 401 Unauthorized\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n' % len(body) + body

    def __enter__(self):
        refusal = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while any(line == b'\r\n' for line in iter(self.rfile.readline, b'')):
                    self.wfile.write(refusal.answer)

        self.server = socketserver.ThreadingUnixStreamServer(self.path, Handler)
        self.server.daemon_threads = True
        os.chmod(self.path, 0o666)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *ignored):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def rest(box, place):
    made = Rest(slurm.Slurm(box, place))
    yield made
    made.close()


def test_a_client_submits_a_job_and_follows_it(rest, place):
    status, found = rest('POST', '/job/submit', {
        'script': '#!/bin/sh\necho $GREETING $1 $SLURM_JOB_NAME $SLURM_NTASKS $PATH > result\n',
        'job': {'name': 'rest', 'tasks': 2, 'cpus_per_task': 1, 'time_limit': 5, 'memory_per_node': 100, 'account': 'lab', 'nodes': [1, 1],
                'current_working_directory': place, 'standard_output': 'out', 'argv': ['word'], 'requeue': False, 'partition': 'gpu',
                'environment': {'PATH': '/usr/bin:/bin', 'GREETING': 'hello'}}})
    assert status == 200 and found['errors'] == [] and found['step_id'] == 'BATCH', found
    job = found['job_id']
    assert rest.cluster.finish(job)['state'] == 'done'
    with open(os.path.join(place, 'result'), encoding='utf-8') as file:
        assert file.read().split() == ['hello', 'word', 'rest', '2', '/usr/bin:/bin']
    status, found = rest('GET', f'/job/{job}')
    shown = found['jobs'][0]
    assert status == 200 and (shown['job_id'], shown['job_state'], shown['account'], shown['time_limit'], shown['tasks'],
                              shown['memory_per_node'], shown['exit_code']) == (job, 'COMPLETED', 'lab', 5, 2, 100, 0)
    assert job in [row['job_id'] for row in rest('GET', '/jobs')[1]['jobs']]
    assert job in [row['job_id'] for row in rest('GET', '/jobs/')[1]['jobs']]


def test_a_job_is_ended_and_signalled(rest, place):
    body = {'script': '#!/bin/sh\nsleep 1000\n', 'job': {'environment': ['PATH=/usr/bin:/bin'], 'current_working_directory': place,
                                                        'begin_time': int(time.time()) + 3600, 'standard_output': '/dev/null'}}
    job = rest('POST', '/job/submit', body)[1]['job_id']
    shown = rest('GET', f'/job/{job}')[1]['jobs'][0]
    assert shown['job_state'] == 'PENDING' and shown['state_reason'] == 'BeginTime', shown
    assert rest('DELETE', f'/job/{job}?signal=NOSUCH')[1]['errors'][0]['description'].startswith('Unknown job signal')
    status, found = rest('DELETE', f'/job/{job}')
    assert status == 200 and found['errors'] == [], found
    assert rest('GET', f'/job/{job}')[1]['jobs'][0]['job_state'] == 'CANCELLED'


def test_a_job_is_changed(rest, place):
    body = {'script': '#!/bin/sh\ntrue\n', 'job': {'environment': {'PATH': '/usr/bin'}, 'current_working_directory': place, 'hold': True}}
    job = rest('POST', '/job/submit', body)[1]['job_id']
    status, found = rest('POST', f'/job/{job}', {'time_limit': 7, 'name': 'other', 'comment': 'it is', 'nice': 5, 'partition': 'gpu'})
    assert status == 200 and found['errors'] == [], found
    shown = rest('GET', f'/job/{job}')[1]['jobs'][0]
    assert (shown['time_limit'], shown['name'], shown['comment']) == (7, 'other', 'it is')
    assert rest.cluster.out('squeue', '-h', '-j', job, '-o', '%y').strip() == '5'
    rest('DELETE', f'/job/{job}')
    status, found = rest('POST', f'/job/{job}', {'time_limit': 9})
    assert status == 500 and found['errors'], found


def test_nodes_partitions_and_the_controller_are_shown(rest):
    assert [row['ping'] for row in rest('GET', '/ping')[1]['pings']] == ['UP']
    node = rest('GET', '/nodes')[1]['nodes'][0]
    assert node['state'] == 'idle' and node['partitions'] == ['gpu'] and node['gres'] == 'gpu:simulated_gpu:8'
    assert rest('GET', f'/node/{node["name"]}')[1]['nodes'] == [node]
    partition = rest('GET', '/partitions')[1]['partitions'][0]
    assert (partition['name'], partition['flags'], partition['max_time_limit'], partition['nodes']) == ('gpu', ['default'], -1, node['name'])
    assert rest('GET', '/partition/gpu')[1]['partitions'] == [partition]
    assert rest('GET', '/reservations')[1]['reservations'] == [] == rest('GET', '/licenses')[1]['licenses']
    assert rest('GET', '/diag')[1]['statistics']['jobs_running'] == 0


@pytest.mark.parametrize('method, path, body, status, number, words', [
    ('GET', '/job/99999', None, 500, 2017, 'Unable to find JobId=99999'),
    ('GET', '/job/x%0a', None, 500, 2017, 'Unable to find JobId'),
    ('DELETE', '/job/99999', None, 500, 2017, 'Unable to find JobId=99999'),
    ('POST', '/job/99999', '{"nice": 1}', 500, 2017, 'Unable to find JobId=99999'),
    ('GET', '/node/nosuch', None, 500, 2018, 'no such node'),
    ('GET', '/partition/nosuch', None, 500, 2000, 'no such partition'),
    ('GET', '/nosuch', None, 404, 9200, 'no such path'),
    ('POST', '/jobs', '{}', 405, 9200, 'GET is required'),
    ('GET', '/job/submit', None, 405, 9200, 'POST is required'),
    ('POST', '/job/submit', 'nonsense', 400, 9201, 'not JSON'),
    ('POST', '/job/submit', '', 400, 9201, 'not JSON'),
    ('POST', '/job/submit', b'{"script": "\x00"}', 400, 9200, 'not HTTP'),
    ('POST', '/job/submit', {'script': 'x'}, 500, 9202, 'one job'),
    ('POST', '/job/submit', {'job': {'environment': {}}}, 500, 2009, 'script'),
    ('POST', '/job/submit', {'job': {}, 'script': '#!/bin/sh\n'}, 500, 9205, 'environment'),
    ('POST', '/job/submit', {'job': {'environment': {}, 'nosuch': 1}, 'script': '#!/bin/sh\n'}, 500, 9201, 'Unknown key "nosuch"'),
    ('POST', '/job/submit', {'job': {'environment': {}, 'wrap': 'x'}, 'script': '#!/bin/sh\n'}, 500, 9201, 'Unknown key "wrap"'),
    ('POST', '/job/submit', {'job': {'environment': {}, 'name': {}}, 'script': '#!/bin/sh\n'}, 500, 9201, 'no such value'),
    ('POST', '/job/submit', {'job': {'environment': {}, 'tasks': 'x'}, 'script': '#!/bin/sh\n'}, 500, -1, 'Invalid numeric value "x"'),
    ('POST', '/job/submit', {'job': {'environment': {}, 'partition': 'nosuch'}, 'script': '#!/bin/sh\n'}, 500, -1, 'nosuch'),
    ('POST', '/job/submit', {'job': {'environment': {}}, 'script': 'echo'}, 500, -1, 'does not look like a batch script')])
def test_errors_have_slurms_form_and_leave_no_job(rest, method, path, body, status, number, words):
    before = len(rest('GET', '/jobs')[1]['jobs'])
    got, found = rest(method, path, body)
    assert got == status and found['errors'][0]['error_number'] == number and words in found['errors'][0]['description'], found
    assert len(rest('GET', '/jobs')[1]['jobs']) == before


def test_other_users_are_refused(rest, bo):
    status, found = rest('GET', '/ping', headers={'X-SLURM-USER-NAME': 'nosuchuser'})
    assert status == 401 and 'another user' in found['errors'][0]['description'], found
    assert rest('GET', '/ping', headers={'X-SLURM-USER-NAME': rest.cluster.box.client.name})[0] == 200
    if os.geteuid() == 0:  # neither the mode of the socket nor the identity of the peer lets another user in
        with bo.acting(), pytest.raises(PermissionError):
            Connection(rest.path).connect()
        connection = Connection(rest.path)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            connection.request('GET', f'{BASE}/ping')
            connection.getresponse()


def test_a_request_on_standard_input_is_answered_on_standard_output(rest):
    done = rest.cluster.run('slurmrestd', input=f'GET {BASE}/ping HTTP/1.1\r\nHost: x\r\n\r\n')
    assert done.code == 0 and done.out.startswith('HTTP/1.1 200 OK\r\n') or done.out.startswith('HTTP/1.1 200 OK\n'), done
    assert '"UP"' in done.out
    done = rest.cluster.run('slurmrestd', 'localhost:6820')
    assert done.code == 1 and 'unix:/path/to/socket' in done.err, done


def test_a_line_of_the_body_is_no_header(rest):
    body = '{"nice": 1,\nexpect: 100-continue\n}'
    done = rest.cluster.run('slurmrestd', input=f'POST {BASE}/job/1 HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}')
    assert done.out.startswith('HTTP/1.1 400 '), done


def test_a_refusal_of_mgpud_is_no_empty_list(rest):
    """The server refuses every request, as with a token that has been revoked."""
    with Refusal(os.path.join(rest.cluster.place, 'refusal.sock')) as refusal:
        for path in ('/jobs', '/job/7'):
            done = rest.cluster.run('slurmrestd', input=f'GET {BASE}{path} HTTP/1.1\r\n\r\n', env={'MGPU_SOCKET': refusal.path})
            assert done.out.startswith('HTTP/1.1 500 ') and 'the token has been revoked' in done.out, done


def limit(rest, descriptors):
    subprocess.run(['prlimit', f'--pid={rest.process.pid}', f'--nofile={descriptors}:'], check=True, **rest.cluster.box.client.popen_arguments())


def test_connections_are_accepted_again_when_there_are_descriptors(rest):
    used = max(int(name) for name in os.listdir(f'/proc/{rest.process.pid}/fd')) + 1
    before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]  # slurmrestd has inherited it
    limit(rest, used)
    connection = Connection(rest.path)
    with rest.cluster.box.client.acting():
        connection.request('GET', f'{BASE}/ping')
    harness.await_text(rest.log, 'cannot accept a connection: Too many open files; trying again every 100 ms')
    limit(rest, before)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_request_that_is_too_large_is_refused(rest):
    status, found = rest('POST', '/job/submit', {'script': '#!/bin/sh\n' + 'x' * (3 << 20), 'job': {'environment': {}}})
    assert status == 413 and found['errors'], found


@pytest.mark.parametrize(('head', 'status'), [
    ('Transfer-Encoding: chunked', 411), ('Content-Length: -1', 400), ('Content-Length: 2x', 400),
    ('Content-Length: 2\r\nContent-Length: 3', 400), ('X: \0', 400), ('Content-Length: 99999999999999999999', 413)])
def test_a_head_that_does_not_say_where_the_body_ends_is_refused(rest, head, status):
    with rest.cluster.box.client.acting(), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(harness.DEADLINE_S)
        connection.connect(rest.path)
        connection.sendall(f'POST {BASE}/job/submit HTTP/1.1\r\n{head}\r\n\r\n{{}}'.encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile('rb') as answer:
            assert answer.readline().split()[1] == str(status).encode()


def test_a_body_that_came_with_its_head_is_not_asked_for(rest):
    with rest.cluster.box.client.acting(), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(harness.DEADLINE_S)
        connection.connect(rest.path)
        connection.sendall(f'POST {BASE}/job/submit HTTP/1.1\r\nContent-Length: 11\r\n\r\n\nExpect: no'.encode())
        with connection.makefile('rb') as answer:
            assert answer.readline().startswith(b'HTTP/1.1 400 ')
