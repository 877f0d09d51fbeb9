# SPDX-License-Identifier: MIT
"""The web page: its files, who the caller is, and what other sites, other users and old addresses can do: nothing."""

import gzip
import http.client
import json
import os
import pathlib
import re
import socket
import sqlite3
import ssl
import stat
import subprocess

import pytest

import harness

PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'
GPUS = 'sim:2x8G'

PAGE_BYTES_MAX = 150 * 1024
FROM_PAGE = {'Mgpu-Page': '1', 'Content-Type': 'application/json', 'Accept-Encoding': 'gzip, deflate, br'}


class Browser:
    """Requests over TCP as a user, with the cookies that mgpud sets."""

    def __init__(self, user, port=PORT, tls=False):
        self.user, self.port, self.tls, self.cookies = user, port, tls, {}
        self.set_cookie = None  # the latest, whole

    def connect(self):
        connection = http.client.HTTPConnection('localhost', self.port, timeout=harness.DEADLINE_S)
        with self.user.acting():
            connection.sock = socket.create_connection(('127.0.0.1', self.port), harness.DEADLINE_S)
        if self.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection.sock = context.wrap_socket(connection.sock)
        return connection

    def request(self, method, path, body=None, headers=None, connection=None):
        sent = dict(FROM_PAGE if headers is None else headers)
        if self.cookies:
            sent['Cookie'] = '; '.join(f'{name}={value}' for name, value in self.cookies.items())
        connection = connection or self.connect()
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=sent)
        answer = harness.Answer(connection.getresponse())
        self.set_cookie = answer.headers.get('set-cookie')
        if self.set_cookie:
            name, value = self.set_cookie.split(';')[0].split('=')
            self.cookies[name] = value
        return answer

    def get(self, path, **options):
        return self.request('GET', path, **options)

    def post(self, path, body=None, **options):
        return self.request('POST', path, body if body is not None else {}, **options)

    def whoami(self):
        answer = self.get('/api/v1/whoami').json
        return answer['user'], answer['role'], answer['by']

    def log_in(self, secret):
        return self.post('/api/v1/sessions', {'login': secret})


def new_login(box, user, *arguments):
    """The secret of a fresh one-time address."""
    made = harness.until(lambda: allowed(box.mgpu('web', '--no-browser', '--json', *arguments, user=user)), 'a one-time address')
    return made.json['address'].split('#login=')[1]


def allowed(done):
    """The answer, or None if there were too many requests within this second: the number of tokens that a user creates and revokes is limited."""
    if 'too many requests' in done.err:
        return None
    assert done.code == 0, done
    return done


def logged_in(box, user, as_user=None, **options):
    """A browser of `user` with a session of `as_user`."""
    browser = Browser(user, **options)
    answer = browser.log_in(new_login(box, as_user or user, '--browser-user', user.name))
    assert answer.status == 201, answer
    return browser


def expire_tokens(box):
    """Lets a day pass for everything that expires, while mgpud is away."""
    box.stop()
    with sqlite3.connect(f'{box.state_dir}/store/mgpu.db') as store:
        assert store.execute('UPDATE tokens SET expires_ms = expires_ms - 86400000').rowcount > 0
    store.close()
    box.start()


@pytest.fixture(autouse=True)
def no_tokens(box):
    for token in box.mgpu('token', 'list', '--all', '--json', user=box.user, check=True).json['tokens']:
        revoke(box, token['id'])


def revoke(box, token):
    harness.until(lambda: allowed(box.mgpu('token', 'revoke', str(token), user=box.user)), f'token {token} is revoked')


# --- the files ---

def page_files(browser):
    """The page and all files that it names, by path."""
    files, todo = {}, ['/']
    while todo:
        path = todo.pop()
        if path in files:
            continue
        answer = browser.get(path)
        assert answer.status == 200, (path, answer)
        files[path] = answer
        text = gzip.decompress(answer.body).decode()
        todo += [f'/page/{name}' for name in re.findall(r"""(?:"page/|from '\./)([\w.]+)['"]""", text)]
    return files


def test_page_is_complete_small_and_from_no_other_host(box):
    files = page_files(Browser(box.client))
    assert set(files) == {'/', '/page/main.js', '/page/style.css', '/page/icon.svg'}
    assert sum(len(answer.body) for answer in files.values()) < PAGE_BYTES_MAX
    for path, answer in files.items():
        text = gzip.decompress(answer.body).decode()
        hosts = set(re.findall(r'https?://([\w.-]+)', text))
        assert hosts <= {'www.w3.org'}, (path, hosts)  # the name of SVG, which is not fetched
        assert 'innerHTML' not in text and 'eval(' not in text, path


@pytest.mark.parametrize('accepted, is_packed', [
    (None, False), ('', False), ('identity', False), ('br', False), ('gzipped', False), ('gzip;q=0', False), ('gzip; Q=0.000', False),
    ('*;q=0', False), ('gzip;q=0, *', False), ('*, gzip;q=0', False), (',;,', False), ('gzip', True), ('GZIP', True), ('x-gzip', True),
    ('gzip;q=0.5', True), ('br;q=1.0, gzip;q=0.8, *;q=0.1', True), ('*', True), ('deflate,gzip', True), ('*;q=0, gzip', True),
])
def test_a_file_is_compressed_only_for_who_accepts_it(box, accepted, is_packed):
    browser = Browser(box.client)
    connection = browser.connect()
    connection.putrequest('GET', '/page/main.js', skip_accept_encoding=True)
    if accepted is not None:
        connection.putheader('Accept-Encoding', accepted)
    connection.endheaders()
    answer = harness.Answer(connection.getresponse())
    assert (answer.status, answer.headers.get('content-encoding')) == (200, 'gzip' if is_packed else None)
    assert answer.headers['vary'] == 'Accept-Encoding'
    packed = browser.get('/page/main.js')
    assert (gzip.decompress(answer.body) if is_packed else answer.body) == gzip.decompress(packed.body)
    assert (answer.headers['etag'] == packed.headers['etag']) == is_packed
    again = browser.get('/page/main.js', headers={'If-None-Match': answer.headers['etag'], 'Accept-Encoding': accepted or 'identity'})
    assert (again.status, again.body) == (304, b'')


def embed(place, **modules):
    """What tools/embed-web makes of these modules."""
    for name, text in modules.items():
        pathlib.Path(place, f'{name}.js').write_text(text, encoding='ascii')
    return subprocess.run([f'{harness.ROOT}/tools/embed-web', f'{place}/out.c', *(f'{place}/{name}.js' for name in modules)],
                          capture_output=True, text=True, check=False)


def test_modules_become_one_file_in_the_order_of_their_imports(place):
    assert embed(place, main="import * as a from './a.js';\nimport { two } from './b.js';\na.one(two);\n",
                 a="import { two } from './b.js';\nexport function one() { return two; }\n", b='export const two = 2;\n').returncode == 0
    made = pathlib.Path(place, 'out.c').read_text(encoding='ascii')
    assert re.findall(r'\{ "([\w.]+)"', made) == ['a.js', 'b.js', 'main.js']
    packed = re.search(r'file_2\[\] = \{(.*?)\};', made, re.S)
    text = gzip.decompress(bytes(int(number) for number in re.findall(r'\d+', packed[1]))).decode()
    assert text == ('const module_b = (() => {\nconst two = 2;\nreturn { two };\n})();\n'
                    'const module_a = (() => {\nconst { two } = module_b;\nfunction one() { return two; }\nreturn { one };\n})();\n'
                    'const a = module_a;\nconst { two } = module_b;\na.one(two);\n')


@pytest.mark.parametrize('modules, words', [
    ({'main': "import a from './a.js';\n", 'a': 'export const b = 1;\n'}, 'is not understood'),
    ({'main': "import { b } from './a.js';\n", 'a': 'export default 1;\n'}, 'is not understood'),
    ({'main': 'true;\n', 'a': 'export const b = 1;\n'}, 'no module imports a.js'),
])
def test_a_module_that_cannot_be_joined_fails_the_build(place, modules, words):
    done = embed(place, **modules)
    assert done.returncode != 0 and words in done.stderr, done


def test_page_may_be_neither_framed_nor_extended(box):
    answer = Browser(box.client).get('/')
    policy = answer.headers['content-security-policy']
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and 'unsafe' not in policy
    assert answer.headers['x-frame-options'] == 'DENY'
    assert answer.headers['referrer-policy'] == 'no-referrer'
    assert answer.headers['x-content-type-options'] == 'nosniff'
    assert 'access-control-allow-origin' not in answer.headers


def test_unchanged_file_is_not_sent_again(box):
    browser = Browser(box.client)
    tag = browser.get('/page/main.js').headers['etag']
    again = browser.get('/page/main.js', headers={'If-None-Match': tag, 'Accept-Encoding': 'gzip'})
    assert (again.status, again.body, again.headers['etag']) == (304, b'', tag)
    assert browser.get('/page/main.js', headers={'If-None-Match': '"other"', 'Accept-Encoding': 'gzip'}).status == 200


@pytest.mark.parametrize('path', ['/page/nosuch.js', '/page/', '/page/../index.html', '/page/%2e%2e', '/index.html'])
def test_no_other_file_is_served(box, path):
    assert Browser(box.client).get(path).status == 404


def test_keep_alive_connection_survives_an_unchanged_file(box):
    browser = Browser(box.client)
    connection = browser.connect()
    tag = browser.get('/', connection=connection).headers['etag']
    assert browser.get('/', connection=connection, headers={'If-None-Match': tag, 'Accept-Encoding': 'gzip'}).status == 304
    assert browser.get('/api/v1/whoami', connection=connection).status == 200


# --- who asks ---

def test_kernel_identifies_a_browser_on_this_machine_as_an_ordinary_user(box):
    assert Browser(box.client).whoami() == (box.client.name, 'user', 'kernel')
    assert Browser(box.user).whoami() == (box.user.name, 'user', 'kernel')


def test_one_time_address_gives_all_rights_of_its_user(box):
    browser = logged_in(box, box.user)
    assert browser.whoami() == (box.user.name, 'admin', 'session')
    assert browser.post('/api/v1/gpus/pause', {'gpus': ['0']}).status == 200
    assert browser.post('/api/v1/gpus/resume', {'gpus': ['0']}).status == 200


def test_cookie_of_a_session_is_kept_from_scripts_and_other_sites(box):
    browser = Browser(box.client)
    browser.log_in(new_login(box, box.client))
    attributes = {part.strip() for part in browser.set_cookie.split(';')[1:]}
    assert {'HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=43200'} <= attributes


def test_one_time_address_is_good_once(box):
    secret = new_login(box, box.client)
    assert Browser(box.client).log_in(secret).status == 201
    second = Browser(box.client).log_in(secret)
    assert second.status == 401 and 'used before' in second.json['detail'], second
    assert second.headers.get('set-cookie') is None


def test_one_time_address_used_by_many_at_once_is_good_once(box):
    secret = new_login(box, box.client)
    connections = [Browser(box.client).connect() for _ in range(20)]
    for connection in connections:
        connection.request('POST', '/api/v1/sessions', body=json.dumps({'login': secret}), headers=FROM_PAGE)
    statuses = sorted(connection.getresponse().status for connection in connections)
    assert statuses == [201] + [401] * 19


def test_expired_one_time_address_is_refused(box):
    secret = new_login(box, box.client)
    expire_tokens(box)
    assert Browser(box.client).log_in(secret).status == 401


def test_expired_session_leaves_what_the_kernel_says(box):
    browser = logged_in(box, box.user)
    assert browser.whoami()[1:] == ('admin', 'session')
    expire_tokens(box)
    assert browser.whoami()[1:] == ('user', 'kernel')


def test_session_survives_a_restart_of_mgpud(box):
    browser = logged_in(box, box.user)
    box.restart()
    assert browser.whoami()[1:] == ('admin', 'session')


@pytest.mark.parametrize('secret', ['', 'mgpu_', 'mgpu_' + 64 * '0', 'x' * 100])
def test_made_up_secret_is_refused(box, secret):
    assert Browser(box.client).log_in(secret).status == 401


def test_secrets_of_one_kind_do_not_pass_as_another(box):
    login = new_login(box, box.client)
    browser = Browser(box.client)
    assert browser.get('/api/v1/jobs', headers={'Authorization': f'Bearer {login}'}).status == 401
    browser.log_in(login)
    session = next(iter(browser.cookies.values()))
    assert Browser(box.client).get('/api/v1/jobs', headers={'Authorization': f'Bearer {session}'}).status == 401
    assert Browser(box.client).log_in(session).status == 401
    token = box.mgpu('token', 'create', '--json', check=True).json['token']
    thief = Browser(box.client)
    thief.cookies = {name: token for name in browser.cookies}
    assert thief.whoami()[2] == 'kernel'
    assert Browser(box.client).log_in(token).status == 401


@pytest.mark.root
def test_stolen_cookie_is_worthless_to_another_user(box, bo):
    browser = logged_in(box, box.user)
    thief = Browser(bo)
    thief.cookies = dict(browser.cookies)
    assert thief.whoami() == (bo.name, 'user', 'kernel')
    assert thief.post('/api/v1/gpus/pause', {'gpus': ['0']}).status == 403


@pytest.mark.root
def test_session_belongs_to_the_user_of_the_address_whoever_forwards_it(box, bo):
    """An administrator's browser may come through `ssh -L` of another account, if `mgpu web` is told so."""
    browser = logged_in(box, bo, as_user=box.user)
    assert browser.whoami() == (box.user.name, 'admin', 'session')


def test_one_time_address_is_made_on_the_unix_socket_only(box):
    answer = Browser(box.client).post('/api/v1/logins', {})
    assert answer.status == 403 and 'mgpu web' in answer.json['hint'], answer


# --- revoking ---

def test_revoked_session_ends_at_once_with_its_streams(box):
    browser = logged_in(box, box.client)
    connection = browser.connect()
    connection.request('GET', '/api/v1/events', headers={'Cookie': '; '.join(f'{k}={v}' for k, v in browser.cookies.items())})
    stream = connection.getresponse()
    assert stream.status == 200
    listed = box.mgpu('token', 'list', '--json', check=True).json['tokens']
    assert [row['name'] for row in listed] == ['web, logged in']
    box.mgpu('token', 'revoke', str(listed[0]['id']), check=True)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        stream.read()
    assert browser.whoami()[2] == 'kernel'


def test_logout_ends_the_session(box):
    browser = logged_in(box, box.client)
    kept = dict(browser.cookies)
    assert browser.request('DELETE', '/api/v1/sessions').status == 200
    assert 'Max-Age=0' in browser.set_cookie
    browser.cookies = kept
    assert browser.whoami()[2] == 'kernel'
    assert box.mgpu('token', 'list', '--json', check=True).json['tokens'] == []


# --- other sites ---

OTHER_SITES = [
    {'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Origin': f'http://localhost:{PORT + 1}'}, {'Origin': f'https://localhost:{PORT}'},
    {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'}, {'Host': f'evil.example:{PORT}'},
    {'Host': f'localhost.evil.example:{PORT}'}, {'Host': '127.0.0.1.evil.example'}]


@pytest.mark.parametrize('headers', OTHER_SITES, ids=lambda headers: ' '.join(next(iter(headers.items()))).replace(str(PORT + 1), 'OTHER').replace(str(PORT), 'PORT'))
@pytest.mark.parametrize('is_logged_in', [False, True], ids=['kernel', 'session'])
def test_pages_of_other_sites_change_nothing_and_read_nothing(box, headers, is_logged_in):
    browser = logged_in(box, box.client) if is_logged_in else Browser(box.client)
    for method, path, body in (('POST', '/api/v1/jobs', {'command': ['true']}), ('GET', '/api/v1/jobs', None), ('GET', '/', None),
                               ('POST', '/api/v1/sessions', {'login': new_login(box, box.client)})):
        answer = browser.request(method, path, body, headers={**FROM_PAGE, **headers})
        assert answer.status == 403, (method, path, answer)
    assert not [job for job in browser.get('/api/v1/jobs').json['jobs'] if job['name'] == 'true']


def test_own_page_is_served(box):
    browser = logged_in(box, box.client)
    for host in (f'localhost:{PORT}', f'127.0.0.1:{PORT}'):
        headers = {**FROM_PAGE, 'Host': host, 'Origin': f'http://{host}', 'Sec-Fetch-Site': 'same-origin'}
        assert browser.request('POST', '/api/v1/jobs?dry_run=1', {'command': ['true']}, headers=headers).status == 200


def test_link_from_another_site_opens_the_page_in_a_window_only(box):
    """What is opened so has no data yet; a frame or a script of another site gets nothing."""
    link = {'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document'}
    browser = Browser(box.client)
    assert browser.get('/', headers=link).status == 200
    assert browser.get('/', headers={**link, 'Sec-Fetch-Dest': 'iframe'}).status == 403
    assert browser.get('/page/main.js', headers={**link, 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'script'}).status == 403
    assert browser.get('/api/v1/jobs', headers=link).status == 403
    assert browser.request('POST', '/', headers=link).status == 403


def test_cookie_alone_changes_nothing(box):
    """A form of a page without Origin and Sec-Fetch headers, as an old browser would send it."""
    browser = logged_in(box, box.user)
    answer = browser.request('POST', '/api/v1/gpus/pause', {'gpus': ['0']}, headers={'Content-Type': 'application/x-www-form-urlencoded'})
    assert answer.status == 403 and 'Mgpu-Page' in answer.json['detail'], answer


# --- TLS ---

@pytest.fixture
def tls_box(make_instance):
    port = harness.free_port()
    return make_instance(GPUS, listen=f'0.0.0.0:{port}'), port


def test_session_over_tls(tls_box):
    box, port = tls_box
    address = box.mgpu('web', '--json', '--host', 'gpubox.example', check=True).json['address']
    assert address.startswith(f'https://gpubox.example:{port}/#login=')
    browser = Browser(box.client, port=port, tls=True)
    assert browser.get('/').status == 200
    assert browser.whoami() == (None, None, None)
    assert browser.get('/api/v1/jobs').status == 401
    assert browser.log_in(address.split('#login=')[1]).status == 201
    assert browser.set_cookie.startswith('__Host-') and '; Secure' in browser.set_cookie
    assert browser.whoami() == (box.client.name, 'user', 'session')
    assert browser.get('/api/v1/jobs').status == 200
    own = {**FROM_PAGE, 'Host': f'gpubox.example:{port}', 'Origin': f'https://gpubox.example:{port}'}
    assert browser.request('POST', '/api/v1/jobs?dry_run=1', {'command': ['true']}, headers=own).status == 200
    for headers in ({'Origin': 'https://evil.example'}, {'Origin': f'http://gpubox.example:{port}'}, {'Sec-Fetch-Site': 'cross-site'}):
        assert browser.request('POST', '/api/v1/jobs?dry_run=1', {'command': ['true']}, headers={**own, **headers}).status == 403, headers


# --- mgpu web ---

def test_web_over_ssh_prints_the_tunnel(box):
    done = box.mgpu('web', check=True, env={'SSH_CONNECTION': '10.0.0.9 51234 10.0.0.5 22', 'DISPLAY': ':0'})
    assert done.out.startswith(f'http://127.0.0.1:{PORT}/#login=mgpu_')
    assert f'ssh -L {PORT}:127.0.0.1:{PORT} {box.client.name}@10.0.0.5' in done.err


def test_web_opens_a_browser_without_showing_the_address_to_others(box, place):
    """Every user can read the words of a command: the browser gets a file, which only its user can read."""
    programs, runtime = f'{place}/bin', f'{place}/runtime'
    for folder in (programs, runtime):
        os.mkdir(folder)
        os.chown(folder, box.client.uid, box.client.gid)
    with open(f'{programs}/xdg-open', 'w', encoding='ascii') as script:
        script.write('#!/bin/sh\necho "opened $*"\n')
    os.chmod(f'{programs}/xdg-open', 0o755)
    done = box.mgpu('web', check=True, env={'DISPLAY': ':0', 'XDG_RUNTIME_DIR': runtime, 'PATH': f'{programs}:/usr/bin:/bin'})
    address, opened = done.out.splitlines()
    assert opened == f'opened {runtime}/mgpu-web.html'
    with open(f'{runtime}/mgpu-web.html', encoding='utf-8') as page:
        assert address in page.read()
    assert stat.S_IMODE(os.stat(f'{runtime}/mgpu-web.html').st_mode) == 0o600


def test_web_without_a_listener_explains_itself(make_instance):
    box = make_instance(GPUS)
    done = box.mgpu('web')
    assert done.code != 0 and 'does not listen on TCP' in done.err and '--listen' in done.err, done


# --- addresses that others see ---

def test_a_secret_in_an_address_is_no_login_and_in_no_log(make_instance, someone):
    """Proxies, histories and logs keep addresses: nothing in one is ever taken for a secret, and mgpud keeps none."""
    port = harness.free_port()
    box = make_instance(GPUS, listen=f'127.0.0.1:{port}', arguments=('--verbose',))
    token = box.mgpu('token', 'create', '--json', check=True).json['token']
    login = new_login(box, box.user)
    browser = Browser(box.client, port=port)
    for secret in (token, login):
        for path in (f'/?login={secret}', f'/?token={secret}', f'/page/main.js?{secret}', f'/api/v1/jobs?token={secret}', f'/api/v1/{secret}', f'/{secret}'):
            answer = browser.get(path, headers={'Referer': f'http://localhost:{port}/#login={secret}'})
            assert answer.headers.get('set-cookie') is None, (path, answer)
        assert browser.whoami()[2] == 'kernel'
        assert secret not in box.log()
    assert Browser(box.user, port=port).log_in(login).status == 201, 'none of this has used it up'
