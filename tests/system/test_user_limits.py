# SPDX-License-Identifier: MIT
"""Limits for each user: who has reached one is told which, keeps nobody else from anything, and administrators have room."""

import contextlib
import json
import os
import signal
import socket
import threading

import pytest

import harness

pytestmark = pytest.mark.root

NAME = 'x' * 120  # so that a list is long with few jobs


def connect(box, user, request, more=''):
    """A connection on which this has been asked."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(harness.DEADLINE_S)
    with user.acting():
        sock.connect(box.socket)
    sock.sendall(f'{request} HTTP/1.1\r\nHost: mgpu\r\n{more}\r\n'.encode())
    return sock


def status_of(sock):
    """With the head of the answer, of which the rest stays unread."""
    return int(sock.recv(64).split(b' ')[1])


# --- what is stored ---

@pytest.fixture
def small(make_instance, ana):
    """Each user may store little in a day."""
    return make_instance(client=ana, arguments=['--user-max-stored', '64K', '--allow-root-jobs'])


def fill_store(box, user):
    """Submits until that is refused; the last job, and the refusal."""
    job = None
    while True:
        answer = box.api('POST', '/jobs', {'command': ['true'], 'cwd': '/', 'hold': True, 'env': {'A': 'x' * 5000}}, user=user)
        if answer.status != 201:
            return job, answer
        job = answer.json['id']


def test_administrators_submit_edit_and_cancel_when_users_have_stored_all_they_may(small, ana, bo):
    jobs = {}
    for user in (ana, bo):
        jobs[user], refused = fill_store(small, user)
        assert refused.status == 429 and 'your jobs have stored' in refused.json['detail'], refused
    root = small.user
    own = [small.api('POST', '/jobs', {'command': ['true'], 'cwd': '/', 'hold': True, 'env': {'A': 'x' * 5000}}, user=root)
           for _ in range(30)]
    assert {answer.status for answer in own} == {201}, own
    for job in (jobs[bo], own[0].json['id']):
        edited = small.api('POST', f'/jobs/{job}/edit', {'name': 'edited'}, user=root)
        assert (edited.status, edited.json['name']) == (200, 'edited'), edited
        assert small.api('POST', f'/jobs/{job}/cancel', {}, user=root).status in (200, 202)
        assert small.wait(job)['state'] == 'cancelled'
    assert small.api('POST', f'/jobs/{jobs[ana]}/cancel', {}, user=ana).status in (200, 202), 'a cancel is never refused'


# --- long lists ---

LISTS = 64  # user_lists of GET /limits
JOBS = 1000


def submit_many(box, user, count):
    """In one connection."""
    body = json.dumps({'command': ['true'], 'cwd': '/', 'hold': True, 'name': NAME}).encode()
    one = (b'POST /api/v1/jobs HTTP/1.1\r\nHost: mgpu\r\nPrefer: return=minimal\r\nContent-Type: application/json\r\n'
           b'Content-Length: %d\r\n\r\n%s' % (len(body), body))
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(harness.DEADLINE_S)
    with user.acting():
        sock.connect(box.socket)
    sender = threading.Thread(target=sock.sendall, args=[one * count])
    sender.start()
    answers = b''
    while answers.count(b'HTTP/1.1 201') < count:
        part = sock.recv(65536)
        assert part, answers[-1000:]
        answers += part
    sender.join()
    sock.close()


def test_a_user_has_so_many_long_lists_being_sent_and_others_have_theirs(make_instance, ana, bo):
    box = make_instance(client=ana)
    submit_many(box, ana, JOBS)
    held = [connect(box, bo, 'GET /api/v1/jobs') for _ in range(LISTS)]
    assert [status_of(sock) for sock in held] == [200] * LISTS
    refused = box.api('GET', '/jobs', user=bo)
    assert refused.status == 429 and f'limit of {LISTS} long lists per user' in refused.json['detail'], refused
    assert box.api('GET', '/jobs?limit=10', user=bo).status == 200, 'a short one'
    assert len(box.api('GET', '/jobs', user=ana).json['jobs']) == JOBS
    for sock in held:
        sock.close()
    harness.until(lambda: box.api('GET', '/jobs', user=bo).status == 200, 'the places are given back')


# --- ports ---

PORTS = 256  # user_port_connections of GET /limits
UPGRADE = 'Connection: Upgrade\r\nUpgrade: mgpu-terminal\r\n'
SERVER = '''
import socket, sys
server = socket.create_server(('127.0.0.1', 0), backlog=64)
with open(sys.argv[1], 'w') as bell:
    bell.write(f'{server.getsockname()[1]}\\n')
kept = []
while True:
    kept.append(server.accept())
    kept[-1][0].sendall(b'hello')
'''


def serve(box, user):
    """A job of this user that says hello on a port: its id, and the port."""
    with contextlib.closing(harness.Bell(box.place)) as bell:
        job = box.post_job(['/usr/bin/python3', '-c', SERVER, bell.path], user=user)
        return job, int(bell.wait())


def dial(box, user, job, port):
    return connect(box, user, f'GET /api/v1/jobs/{job}/port?port={port}', UPGRADE)


def processes(box, name, user):
    """Those of this instance and name that run as this user, who can stop them."""
    found = []
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{entry}/status', encoding='ascii') as status, \
                open(f'/proc/{entry}/cmdline', encoding='utf-8', errors='replace') as words:
            text = status.read()
            if text.startswith(f'Name:\t{name}\n') and f'\nUid:\t{user.uid}\t' in text and box.place in words.read():
                found.append(int(entry))
    return found


def test_a_user_has_so_many_connections_to_ports_and_others_have_theirs(make_instance, ana, bo):
    box = make_instance(client=ana)
    (job, port), (other, other_port) = serve(box, bo), serve(box, ana)
    held = []
    for _ in range(PORTS):
        held.append(dial(box, bo, job, port))
        assert status_of(held[-1]) == 101
    refused = box.api('GET', f'/jobs/{job}/port?port={port}', user=bo,
                      headers={'Connection': 'Upgrade', 'Upgrade': 'mgpu-terminal'})
    assert refused.status == 429, refused
    assert f'limit of {PORTS} connections to ports of jobs per user' in refused.json['detail'], refused
    with dial(box, ana, other, other_port) as sock:
        assert status_of(sock) == 101
    for sock in held:
        sock.close()
    box.cancel_all()


def test_a_user_who_stops_the_processes_that_carry_connections_leaves_places_to_others(make_instance, ana, bo):
    """They run as the user; those of all his jobs on a node count together."""
    box = make_instance(client=ana)
    jobs, (other, other_port) = [serve(box, bo) for _ in range(3)], serve(box, ana)
    statuses = []
    try:
        for job, port in jobs:
            held = [dial(box, bo, job, port) for _ in range(PORTS - 6)]
            statuses.append([status_of(sock) for sock in held])
            carried = sum(row.count(101) for row in statuses)
            for pid in harness.until(lambda n=carried: len(found := processes(box, 'mgpu-port', bo)) >= n and found, 'all processes have their name'):
                os.kill(pid, signal.SIGSTOP)
            for sock in held:
                sock.close()
        assert set(statuses[0]) == {101} and 101 not in statuses[2][6:], statuses
        assert len(processes(box, 'mgpu-port', bo)) <= PORTS
        with dial(box, ana, other, other_port) as sock:
            assert status_of(sock) == 101
    finally:
        for pid in processes(box, 'mgpu-port', bo):
            os.kill(pid, signal.SIGKILL)
    box.cancel_all()


# --- additional processes ---

EXECS = 64  # user_terminals of GET /limits, and EXEC_STEPS_USER_MAX of the agent


def run_beside(box, user, job):
    """A process in the job, which stays until its connection ends."""
    body = json.dumps({'command': ['sleep', '1000']})
    more = f'{UPGRADE}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}'
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(harness.DEADLINE_S)
    with user.acting():
        sock.connect(box.socket)
    sock.sendall(f'POST /api/v1/jobs/{job}/exec HTTP/1.1\r\nHost: mgpu\r\n{more}'.encode())
    return sock


def test_a_user_has_so_many_additional_processes_and_others_have_theirs(make_instance, ana, bo):
    box = make_instance(client=ana)
    job, other = (box.post_job(['sleep', '1000'], user=user) for user in (bo, ana))
    for one in (job, other):
        box.wait(one, 'running')
    held = []
    for _ in range(EXECS):
        held.append(run_beside(box, bo, job))
        assert status_of(held[-1]) == 101
    with run_beside(box, bo, job) as sock:
        answer = sock.recv(65536)
        assert answer.startswith(b'HTTP/1.1 429'), answer
        assert f'limit of {EXECS} terminals per user'.encode() in answer, answer
    with run_beside(box, ana, other) as sock:
        assert status_of(sock) == 101
    try:
        for pid in processes(box, 'mgpu-terminal', bo):
            os.kill(pid, signal.SIGSTOP)
        for sock in held:
            sock.close()
        answer = b'terminals per user'
        while b'terminals per user' in answer:  # until mgpud knows that they are closed
            with run_beside(box, bo, job) as sock:
                answer = sock.recv(65536)
        assert f'you have {EXECS} additional processes on this node, the limit of one user'.encode() in answer, answer
        with run_beside(box, ana, other) as sock:
            assert status_of(sock) == 101
    finally:
        for pid in processes(box, 'mgpu-terminal', bo):
            os.kill(pid, signal.SIGKILL)
    box.cancel_all()


# --- signals to a step ---

BATCH = 50
SIGNALS_MAX = 60000


def signal_step(sock, job):
    """Many times in one write; the answers."""
    body = b'{"step":0,"signal":"USR1"}'
    sock.sendall(b'POST /api/v1/jobs/%d/steps/signal HTTP/1.1\r\nHost: mgpu\r\nContent-Type: application/json\r\n'
                 b'Content-Length: %d\r\n\r\n%s' % (job, len(body), body) * BATCH)
    answers = b''
    while answers.count(b'HTTP/1.1 ') < BATCH or not answers.endswith(b'}\n'):
        part = sock.recv(65536)
        assert part, answers
        answers += part
    return answers


def test_a_step_whose_client_reads_no_signals_gets_no_more_of_them(make_instance, ana):
    box = make_instance(client=ana)
    job = box.post_job(['sleep', '1000'], user=ana)
    node = box.wait(job, 'running')['node']
    body = json.dumps({'key': 'one', 'nodes': [{'node': node, 'tasks': 1}]})
    step, sender = (connect(box, ana, 'GET /api/v1/healthz') for _ in range(2))
    for sock in (step, sender):
        assert status_of(sock) == 200
        sock.settimeout(harness.DEADLINE_S)
    while b'ok' not in sender.recv(65536):
        pass
    step.sendall(f'POST /api/v1/jobs/{job}/steps HTTP/1.1\r\nHost: mgpu\r\nContent-Type: application/json\r\n'
                 f'Content-Length: {len(body)}\r\n\r\n{body}'.encode())
    harness.until(lambda: box.api('GET', f'/jobs/{job}/steps').json['steps'], 'the step runs')
    sent, answers = 0, b''
    while b'does not read its signals: too many are waiting' not in answers:
        assert sent < SIGNALS_MAX
        answers = signal_step(sender, job)
        sent += BATCH
    assert b'HTTP/1.1 429' in answers, answers
    harness.until(lambda: box.api('GET', f'/jobs/{job}', user=ana).status == 200, 'in another second she is answered')
    step.close()
    harness.until(lambda: box.api('POST', f'/jobs/{job}/steps/signal', {'step': 0, 'signal': 'USR1'}).status == 409,
                  'the step has ended with its client')
    box.cancel_all()
