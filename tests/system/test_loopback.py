# SPDX-License-Identifier: MIT
"""Other users' programs on the port of the API: none may answer in mgpud's name, to a browser or to `ssh -L`.

The name `localhost` leads to 127.0.0.1 and to ::1, and every user may listen on either. Each test has a network of its own, so
that the port is that of the defaults.
"""

import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest

import harness
import hosts
from test_web import FROM_PAGE, Browser, new_login

PORT = 9123
GPUS = 'sim:2x8G'
CLONE_NEWNET = 0x40000000
SIX_OFF = '/proc/sys/net/ipv6/conf/all/disable_ipv6'

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(hosts.why_not()), reason=str(hosts.why_not()))]

STRANGER = """
import http.server, socket, sys

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_worker = self.path == '/worker.js'
        page = sys.argv[4 if is_worker else 3].encode()
        self.send_response(200)
        self.send_header('Content-Type', 'text/javascript' if is_worker else 'text/html')
        self.send_header('Content-Length', str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *words):
        pass

server = Server((sys.argv[1], int(sys.argv[2])), Handler)
print('listening', flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def entered(host):
    """Inside the block this thread, and what it starts, are on that host."""
    libc = ctypes.CDLL(None, use_errno=True)
    here, there = os.open('/proc/thread-self/ns/net', os.O_RDONLY), os.open(f'/run/netns/{host.namespace}', os.O_RDONLY)
    try:
        assert libc.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(here, CLONE_NEWNET) == 0
    finally:
        os.close(here)
        os.close(there)


@pytest.fixture
def net():
    """An empty network in which the test runs."""
    with hosts.Network(['box']).made() as made, entered(made['box']):
        yield made['box']


@contextlib.contextmanager
def stranger(user, address, port=PORT, page='<title>stranger</title>', worker=''):
    """A web server of that user, for the block."""
    process = subprocess.Popen(['/usr/bin/python3', '-c', STRANGER, address, str(port), page, worker], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, env=user.environment(), **user.popen_arguments())
    try:
        assert process.stdout.readline() == b'listening\n', f'{user.name} got no {address}'
        yield process
    finally:
        process.kill()
        process.wait(harness.DEADLINE_S)
        process.stdout.close()


def may_listen(user, address, port=PORT, **options):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    with user.acting(), socket.socket(family) as probe:
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError:
            return False
        return True


def version(address, port=PORT, headers=None):
    """The status of an answer of mgpud at this address; None: nobody listens there, or somebody else."""
    connection = http.client.HTTPConnection(address, port, timeout=harness.DEADLINE_S)
    with contextlib.closing(connection):
        try:
            connection.request('GET', '/api/v1/version', headers=headers or {})
            answer = connection.getresponse()
            return answer.status if answer.getheader('Content-Type') in ('application/json', 'application/problem+json') else None
        except OSError:
            return None


AS_BROWSER = {'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty'}


# --- both addresses ---

@pytest.mark.parametrize('listen', ['127.0.0.1', 'localhost', '[::1]'])
def test_nobody_else_can_answer_to_the_name_localhost(net, make_instance, bo, listen):
    box = make_instance(GPUS, listen=f'{listen}:{PORT}')
    assert version('127.0.0.1') == version('::1') == version('localhost', headers=AS_BROWSER) == 200
    assert not [address for address in ('127.0.0.1', '::1', '0.0.0.0', '::') if may_listen(bo, address)]
    address = box.mgpu('web', '--no-browser', check=True).out
    assert address.startswith(f'http://{"[::1]" if "::1" in listen else "127.0.0.1"}:{PORT}/#login='), address


@pytest.mark.parametrize('address', ['127.0.0.1', '::1', '0.0.0.0', '::'])
def test_a_stranger_on_one_loopback_address_means_no_page_and_no_stop(net, make_instance, bo, address):
    """The API on the unix socket is not affected; mgpu web and doctor name the stranger."""
    with stranger(bo, address):
        box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
        assert version('127.0.0.1') is None and version('::1') is None
        done = box.mgpu('web', '--no-browser')
        assert done.code != 0 and f'is in use by a program of {bo.name}' in done.err, done
        assert f'is in use by a program of {bo.name}' in box.mgpu('doctor').out
        assert box.wait(box.submit('-g', '1', '--', 'true'))['exit_code'] == 0


def test_a_stranger_keeps_no_mgpud_from_being_restarted(net, make_instance, bo):
    box = make_instance(GPUS, listen=f'0.0.0.0:{PORT}')
    box.kill()
    harness.until(lambda: not box.agents(), 'the agent has left')
    with stranger(bo, '127.0.0.1'):
        box.start()
        assert box.mgpu('ps').code == 0
    harness.until(lambda: re.search(r'the API is now at 0\.0\.0\.0', box.log()), 'mgpud takes the port')


def test_the_port_is_taken_later_but_a_browser_is_never_shown_a_page_that_a_stranger_may_have_begun(net, make_instance, bo):
    """The stranger's page, or its service worker, has the same origin as mgpud's from then on."""
    with stranger(bo, '::1'):
        box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
    harness.until(lambda: version('127.0.0.1') == version('::1') == 200, 'mgpud takes both addresses')
    for headers in (AS_BROWSER, {'Origin': f'http://127.0.0.1:{PORT}'}, {'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64)'}):
        assert version('127.0.0.1', headers=headers) == 403, headers
    browser = Browser(box.client, port=PORT)
    answer = browser.post('/api/v1/jobs', {'command': ['true']}, headers={**FROM_PAGE, **AS_BROWSER})
    assert answer.status == 403 and 'another user' in answer.json['detail'], answer
    assert 'storage' in answer.headers['clear-site-data']
    assert 'had its port' in box.mgpu('web', '--no-browser').err
    box.restart()
    assert version('localhost', headers=AS_BROWSER) == 200


def test_a_program_of_root_is_no_stranger(net, make_instance):
    with stranger(harness.User('root'), '::1'):
        make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
        assert version('127.0.0.1') is None
    harness.until(lambda: version('::1', headers=AS_BROWSER) == 200, 'mgpud takes the port and shows its page')


def test_another_loopback_address_is_not_localhost(net, make_instance, bo):
    """The others of the port are free to all, so a browser that comes by that name may have a page of somebody else."""
    box = make_instance(GPUS, listen=f'127.0.0.5:{PORT}')
    assert box.mgpu('web', '--no-browser', check=True).out.startswith(f'http://127.0.0.5:{PORT}/#login=')
    by_name = {'Host': f'localhost:{PORT}', **AS_BROWSER}
    assert version('127.0.0.5', headers=by_name) == 403
    assert version('127.0.0.5', headers={'Host': f'localhost:{PORT}'}) == 200, 'programs name it so'
    assert version('127.0.0.5', headers=AS_BROWSER) == 200


# --- without IPv6 ---

@pytest.fixture
def without_six(net):
    path = pathlib.Path(SIX_OFF)
    if not os.access(path, os.W_OK):
        pytest.skip(f'{SIX_OFF} is read-only')
    path.write_text('1', encoding='ascii')
    return path


def test_a_machine_without_ipv6_has_its_page(without_six, make_instance):
    box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
    assert version('127.0.0.1', headers=AS_BROWSER) == version('127.0.0.1', headers={'Host': f'localhost:{PORT}', **AS_BROWSER}) == 200
    assert box.mgpu('web', '--no-browser', check=True).out.startswith(f'http://127.0.0.1:{PORT}/#login=')
    without_six.write_text('0', encoding='ascii')
    harness.until(lambda: version('::1', headers=AS_BROWSER) == 200, 'mgpud listens at ::1 as soon as there is one')


def test_a_stranger_who_takes_ipv6_before_mgpud_ends_the_page(without_six, make_instance, bo):
    make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
    assert version('127.0.0.1', headers=AS_BROWSER) == 200
    without_six.write_text('0', encoding='ascii')
    with stranger(bo, '::1'):
        harness.until(lambda: version('127.0.0.1', headers=AS_BROWSER) == 403, 'mgpud refuses browsers')
        assert version('127.0.0.1') == 200


# --- logins ---

def test_a_login_is_worth_nothing_to_another_user(net, make_instance, ana, bo):
    box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}', client=ana)
    for owner in (ana, box.user):
        secret = new_login(box, owner)
        thief = Browser(bo, port=PORT)
        answer = thief.log_in(secret)
        assert answer.status == 401 and 'another user' in answer.json['detail'] and bo.name in answer.json['hint'], answer
        assert thief.whoami() == (bo.name, 'user', 'kernel')
        assert Browser(owner, port=PORT).log_in(secret).status == 201, 'the thief has not used it up'


@pytest.mark.parametrize('way', ['sudo', 'option'])
def test_an_administrator_names_whose_browser_it_is(net, make_instance, ana, bo, way):
    box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}', client=ana)
    if pathlib.Path('/proc/self/loginuid').read_text(encoding='ascii') != '4294967295' and way == 'sudo':
        pytest.skip('the tests themselves belong to a login')
    words, env = ((), {'SUDO_UID': str(ana.uid)}) if way == 'sudo' else (('--browser-user', ana.name), {})
    made = box.mgpu('web', '--no-browser', '--json', *words, user=box.user, env=env, check=True).json
    secret = made['address'].split('#login=')[1]
    assert Browser(bo, port=PORT).log_in(secret).status == 401
    browser = Browser(ana, port=PORT)
    assert browser.log_in(secret).status == 201
    assert browser.whoami() == (box.user.name, 'admin', 'session')


def test_an_unknown_browser_user_is_refused(net, make_instance):
    box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
    done = box.mgpu('web', '--browser-user', 'nobody-of-that-name')
    assert done.code != 0 and 'nobody-of-that-name' in done.err, done
