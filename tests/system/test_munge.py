# SPDX-License-Identifier: MIT
"""MUNGE in the place of tokens: munged itself, without rights, with a key and a socket of its own."""

import base64
import grp
import http.client
import os
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

import harness

MUNGED = shutil.which('munged') or shutil.which('munged', path='/usr/sbin')
MUNGE = shutil.which('munge')
pytestmark = [pytest.mark.real,
              pytest.mark.skipif(not (MUNGED and MUNGE), reason='munge is not installed: tools/install-packages real')]


class Munged:
    def __init__(self, key):
        self.place = tempfile.mkdtemp(prefix='mgpu-mu-', dir='/tmp')
        os.chmod(self.place, 0o755)
        self.socket = f'{self.place}/socket'
        descriptor = os.open(f'{self.place}/key', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, 'wb') as out:
            out.write(key)
        files = {'key-file': 'key', 'socket': 'socket', 'pid-file': 'pid', 'log-file': 'log', 'seed-file': 'seed'}
        self.process = subprocess.Popen(
            [MUNGED, '--foreground', '--force', *(f'--{option}={self.place}/{name}' for option, name in files.items())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.await_socket()

    def await_socket(self):
        """munged tells nobody that it listens: its socket is tried until it does."""
        end = time.monotonic() + harness.DEADLINE_S
        while time.monotonic() < end:
            assert self.process.poll() is None, 'munged ended'
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(self.socket) == 0:
                    return
            self.pause()
        raise AssertionError('munged does not listen')

    def pause(self):
        try:
            self.process.wait(0.02)
        except subprocess.TimeoutExpired:
            pass

    def credential(self, payload, *arguments):
        return subprocess.run([MUNGE, '--socket', self.socket, '--string', payload, *arguments], check=True,
                              capture_output=True, text=True).stdout.strip()

    def close(self):
        self.process.kill()
        self.process.wait(harness.DEADLINE_S)
        shutil.rmtree(self.place, ignore_errors=True)


@pytest.fixture(scope='module')
def munged():
    made = Munged(b'k' * 64)
    yield made
    made.close()


class Served:
    """An instance on loopback TCP, and requests with a header that a test makes."""

    def __init__(self, make_instance, *arguments):
        self.port = harness.free_port()
        self.box = make_instance(gpus='sim:1x8G', listen=f'127.0.0.1:{self.port}', arguments=list(arguments))
        self.instance = self.box.api('GET', '/version').json['instance']

    def payload(self, method='GET', target='/api/v1/tokens', instance=None):
        return f'mgpu-1 {instance or self.instance} {method} {target}'

    def ask(self, credential, method='GET', target='/api/v1/tokens'):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=harness.DEADLINE_S)
        connection.request(method, target, headers={'Authorization': f'MUNGE {credential}'})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text


@pytest.fixture
def served(make_instance, munged):
    return Served(make_instance, '--munge', 'on', '--munge-socket', munged.socket)


def test_a_credential_is_good_once(served, munged):
    credential = munged.credential(served.payload())
    assert served.ask(credential)[0] == 200
    status, text = served.ask(credential)
    assert status == 401 and 'eplayed' in text, text


@pytest.mark.root
def test_the_user_is_the_one_who_made_the_credential(served, munged, ana):
    made = subprocess.run([MUNGE, '--socket', munged.socket, '--string', served.payload('POST', '/api/v1/jobs')], check=True,
                          capture_output=True, text=True, **ana.popen_arguments())
    connection = http.client.HTTPConnection('127.0.0.1', served.port, timeout=harness.DEADLINE_S)
    connection.request('POST', '/api/v1/jobs', '{"command": ["true"]}', {
        'Authorization': f'MUNGE {made.stdout.strip()}', 'Content-Type': 'application/json'})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 201 and f'"user":"{ana.name}"' in text, text
    connection.close()


@pytest.mark.root
def test_a_credential_does_not_say_which_group_of_its_user_counts(make_instance, munged, ana, place):
    with open(f'{place}/mgpu.yaml', 'w', encoding='utf-8') as out:
        out.write(f'groups: {{ {grp.getgrgid(ana.gid).gr_name}: {{ max-gpus: 1 }} }}\n')
    served = Served(lambda gpus, **options: make_instance(gpus='sim:2x8G', **options), '--munge', 'on', '--munge-socket', munged.socket,
                    '--config', f'{place}/mgpu.yaml')
    supplementary = next(group for group in ana.groups if group != ana.gid)
    made = subprocess.run([MUNGE, '--socket', munged.socket, '--string', served.payload('POST', '/api/v1/jobs')], check=True,
                          capture_output=True, text=True, **{**ana.popen_arguments(), 'group': supplementary})
    connection = http.client.HTTPConnection('127.0.0.1', served.port, timeout=harness.DEADLINE_S)
    connection.request('POST', '/api/v1/jobs', '{"command": ["true"], "gpus": 2}', {
        'Authorization': f'MUNGE {made.stdout.strip()}', 'Content-Type': 'application/json'})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 400 and 'the limit of its group is 1' in text, (answer.status, text)
    connection.close()


@pytest.mark.parametrize('change', [
    {'method': 'DELETE'}, {'target': '/api/v1/tokens?all=1'}, {'target': '/api/v1/token'}, {'instance': '0' * 32}])
def test_a_credential_is_good_for_its_request_alone(served, munged, change):
    status, text = served.ask(munged.credential(served.payload(**change)))
    assert status == 401 and 'another request' in text, text


def test_an_expired_credential_is_refused(served, munged):
    credential = munged.credential(served.payload(), '--ttl', '1')
    end = time.monotonic() + harness.DEADLINE_S
    # Expired goes before replayed: the answer changes when its second is over.
    while (answer := served.ask(credential)) and 'xpired' not in answer[1]:
        assert time.monotonic() < end, answer
    assert answer[0] == 401


@pytest.mark.parametrize('credential', ['', 'x', 'MUNGE:AwQDAAAA:', 'x' * 4000, base64.b64encode(b'\0' * 100).decode()])
def test_what_is_no_credential_is_nobody(served, credential):
    assert served.ask(credential)[0] == 401


def test_a_credential_with_another_key_is_refused(served):
    other = Munged(b'o' * 64)
    try:
        assert served.ask(other.credential(served.payload()))[0] == 401
    finally:
        other.close()


def test_it_is_off_unless_asked_for(make_instance, munged):
    served = Served(make_instance)
    status, text = served.ask(munged.credential(served.payload()))
    assert status == 401 and '--munge on' in text, text


def test_a_munged_that_hangs_stalls_nobody(make_instance, place):
    path = f'{place}/silent'
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        os.chmod(path, 0o777)
        silent.listen(16)
        served = Served(make_instance, '--munge', 'on', '--munge-socket', path)
        begin = time.monotonic()
        waiting = http.client.HTTPConnection('127.0.0.1', served.port, timeout=harness.DEADLINE_S)
        waiting.request('GET', '/api/v1/jobs', headers={'Authorization': 'MUNGE x'})
        assert served.box.api('GET', '/version').status == 200
        answer = waiting.getresponse()
        assert answer.status == 503 and b'munged' in answer.read()
        assert time.monotonic() - begin < 5
        waiting.close()
        late = http.client.HTTPConnection('127.0.0.1', served.port, timeout=harness.DEADLINE_S)
        late.request('GET', '/api/v1/jobs', headers={'Authorization': 'MUNGE x'})
        served.box.stop()  # with a question open
        late.close()


@pytest.fixture
def far(make_instance, munged, place):
    """An instance that other machines reach, and the environment of a client there that has no token."""
    port = harness.free_port()
    box = make_instance(gpus='sim:1x8G', listen=f'0.0.0.0:{port}',
                        arguments=['--munge', 'on', '--munge-socket', munged.socket])
    api = box.mgpu('token', 'create', '--host', '127.0.0.1', '--json', check=True).json['api']
    return box, {'MGPU_SOCKET': '', 'MGPU_HOST': api, 'MGPU_TOKEN': '', 'HOME': place, 'XDG_CONFIG_HOME': '',
                 'MGPU_AUTH': 'munge', 'MGPU_MUNGE_SOCKET': munged.socket}


def test_a_client_of_another_machine_needs_no_token(far):
    box, env = far
    done = box.mgpu('run', '--', 'sh', '-c', 'id -u; exit 6', env=env)
    assert (done.code, done.out) == (6, f'{box.client.uid}\n'), done
    assert len(box.mgpu('ps', '-a', '--json', env=env, check=True).json['jobs']) == 1


def test_a_client_says_what_is_wrong(far, place):
    box, env = far
    done = box.mgpu('ps', env={**env, 'MGPU_MUNGE_SOCKET': f'{place}/nothing'})
    assert done.code != 0 and 'munged does not respond' in done.err, done
    done = box.mgpu('ps', env={**env, 'MGPU_AUTH': 'kerberos'})
    assert done.code != 0 and 'kerberos' in done.err and 'use munge or token' in done.err, done
