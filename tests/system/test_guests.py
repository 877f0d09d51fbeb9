# SPDX-License-Identifier: MIT
"""mgpud --adopt-any-user without root: other users take GPUs for their processes, give them back, and can do nothing else."""

import http.client
import json
import re
import subprocess
import sys

import pytest

import harness

pytestmark = pytest.mark.root

MOST = 64  # requests of one guest
# Greetings, which are for everybody, and the calls of srun.
OPEN = {'/', '/page/{name}', '/healthz', '/openapi.json', '/status', '/jobs', '/acquire', '/api/v1/healthz', '/api/v1/openapi.json',
        '/api/v1/limits', '/api/v1/version', '/api/v1/cluster', '/api/v1/whoami', '/api/v1/sessions'}

# Requests of another user; each waits on a connection of its own, for a process of its own. A line of input ends them all.
CROWD = '''
import json, select, socket, subprocess, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
sleepers = [subprocess.Popen(['sleep', '1000']) for _ in range(count)]
waiting = []
for sleeper in sleepers:
    line = socket.create_connection(('127.0.0.1', port))
    body = json.dumps({'pid': sleeper.pid, 'num_gpus': 1})
    line.sendall(f'POST /acquire HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nContent-Type: application/json\\r\\n'
                 f'Content-Length: {len(body)}\\r\\n\\r\\n{body}'.encode())
    waiting.append(line)
while select.select([*waiting, sys.stdin], [], [])[0] != [sys.stdin]:
    for line in select.select(waiting, [], [], 0)[0]:
        print(json.dumps(line.recv(65536).decode()), flush=True)
        waiting.remove(line)
for sleeper in sleepers:
    sleeper.kill()
'''


@pytest.fixture
def team(make_instance, ana):
    """A server of ana for all users, and its port."""
    box = make_instance('sim:4x24G', user=ana, listen=f'127.0.0.1:{harness.free_port()}', arguments=('--adopt-any-user',))
    return box, int(box.listen.rpartition(':')[2])


def ask(user, port, method, path, body=None):
    """The status and the body of a request that a process of this user makes."""
    words = ['curl', '-sS', '-m', '10', '-w', '\n%{http_code}', '-X', method, f'http://127.0.0.1:{port}{path}']
    words += ['-H', 'Content-Type: application/json', '-d', body] if body is not None else []
    done = subprocess.run(words, cwd='/', capture_output=True, text=True, check=False, **user.popen_arguments())
    text, _, code = done.stdout.rpartition('\n')
    assert done.returncode == 0, (words, done)
    return int(code), text


def routes(port):
    """[(method, path)] of all requests."""
    line = http.client.HTTPConnection('127.0.0.1', port, timeout=harness.DEADLINE_S)
    line.request('GET', '/openapi.json')
    return [(method.upper(), path) for path, row in json.load(line.getresponse())['paths'].items() for method in row
            if method in ('get', 'post', 'delete')]


def test_a_guest_is_answered_by_no_request_but_those_of_srun(team, bo):
    box, port = team
    job = box.submit('sleep', '1000')
    box.wait(job, 'running')
    answered = {}
    for method, path in routes(port):
        typed = path.replace('{id}', str(job)).replace('{name}', 'x')
        code, text = ask(bo, port, method, typed, '{}' if method == 'POST' else None)
        if path not in OPEN and (code != 403 or 'only starts jobs of that user' not in text):
            answered[f'{method} {path}'] = code, text
    assert answered == {} and box.job(job)['state'] == 'running'
    assert len(routes(port)) > 50
    code, text = ask(bo, port, 'GET', '/jobs')
    assert code == 200 and re.search(f'"number": ?{job}\\b', text) and 'sleep' not in text and 'mgpu-ta' not in text


def test_a_guest_takes_gpus_only_for_its_own_processes(team, bo, ana):
    box, port = team
    for user, pid in ((ana, box.process.pid), (harness.User('root'), 1)):
        code, text = ask(bo, port, 'POST', '/acquire', json.dumps({'pid': pid, 'num_gpus': 1}))
        assert code in (400, 403) and '"gpus"' not in text, (user, text)
    assert re.search('"gpus_allocated": ?0', ask(bo, port, 'GET', '/status')[1])


@pytest.fixture
def crowd(team, bo):
    """Starts many requests of bo; ended with the test."""
    made = []

    def start(count):
        made.append(subprocess.Popen([sys.executable, '-c', CROWD, str(team[1]), str(count)], cwd='/', text=True, bufsize=1,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, **bo.popen_arguments()))
        return made[-1]

    yield start
    for process in made:
        if process.poll() is None:
            process.communicate('end\n', harness.DEADLINE_S)


def test_a_guest_has_no_more_requests_than_the_limit_and_hinders_no_other(team, crowd, bo, ana):
    box, port = team
    requests = crowd(MOST + 1)
    answers = [json.loads(requests.stdout.readline()) for _ in range(5)]  # four have GPUs, one is too many
    refused = [text for text in answers if ' 429 ' in text.splitlines()[0]]
    assert len(refused) == 1 and f'limit of {MOST} waiting and granted requests' in refused[0], answers
    assert sum('"gpus"' in text for text in answers) == 4
    code, text = ask(ana, port, 'GET', '/status')
    assert code == 200 and re.search(f'"jobs_queued": ?{MOST - 4}\\b', text), text
    waiting = box.submit('true')
    assert box.job(waiting)['state'] == 'queued'
    assert box.mgpu('submit', '--', 'true', user=bo).code != 0
    requests.communicate('end\n', harness.DEADLINE_S)
    assert box.wait(waiting)['state'] == 'done'


def test_a_server_of_root_and_one_without_the_option_have_no_guests(make_instance, ana, bo):
    for user, options in ((harness.User('root'), ('--adopt-any-user',)), (ana, ())):
        box = make_instance('sim:4x24G', user=user, listen=f'127.0.0.1:{harness.free_port()}', arguments=options)
        port = int(box.listen.rpartition(':')[2])
        assert ask(bo, port, 'GET', '/api/v1/jobs')[0] == 200
        code, text = ask(bo, port, 'POST', '/api/v1/jobs', json.dumps({'command': ['true'], 'gpus': 1}))
        assert code == (201 if user.uid == 0 else 403), text
