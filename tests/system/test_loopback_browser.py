# SPDX-License-Identifier: MIT
"""A real Chromium on a machine where another user was at the port of the page before mgpud."""

import os

import pytest

import harness
from test_loopback import PORT, GPUS, hosts, may_listen, net, stranger, version  # noqa: F401 - net is a fixture
from test_web_browser import CHROMIUM, DRIVER, Chromium

pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not (CHROMIUM and DRIVER), reason='chromium is not installed: tools/install-packages real'),
              pytest.mark.skipif(bool(hosts.why_not()), reason=str(hosts.why_not()))]

NAMES = (f'http://localhost:{PORT}/', f'http://127.0.0.1:{PORT}/')

# It goes on asking, in the name of whoever looks at it, until mgpud answers in its place. It is not looked at again.
SCRIPT = """
window.answers = [];
window.secret = location.hash;
async function ask(path, body) {
  try {
    const answer = await fetch(path, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Mgpu-Page': '1' } });
    window.answers.push([path, answer.status]);
  } catch (error) { /* nobody is there */ }
}
setInterval(() => {
  ask('/api/v1/jobs', { command: ['true'], gpus: 0, cwd: '/tmp' });
  const login = /login=([a-z0-9_]+)/.exec(window.secret);
  if (login) ask('/api/v1/sessions', { login: login[1] });
}, 200);
"""
PAGE = f'<!doctype html><title>stranger</title><script>{SCRIPT}</script>'
INSTALL = "<script>navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => { document.title = 'installed'; })</script>"
WORKER = f"""
addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {{
  if (event.request.mode === 'navigate')
    event.respondWith(new Response({PAGE!r}, {{ headers: {{ 'Content-Type': 'text/html' }} }}));
}});
"""


@pytest.fixture
def browser(net, ana, place):  # noqa: F811
    folder = f'{place}/ana'
    os.mkdir(folder, 0o700)
    os.chown(folder, ana.uid, ana.gid)
    made = Chromium(ana, folder)
    yield made
    made.close()


def answers(browser):
    return [tuple(one) for one in browser.page.execute_script('return window.answers')]


def until_mgpud_has_answered(browser, *paths):
    """All that mgpud has answered the stranger's script (whose own server knows no POST: 501)."""
    def come():
        found = [one for one in answers(browser) if one[1] != 501]
        return found if {path for path, _ in found} >= set(paths) else None
    return harness.until(come, 'an answer of mgpud')


@pytest.mark.parametrize('name', NAMES)
def test_whoever_opens_the_page_gets_that_of_mgpud(net, browser, make_instance, bo, name):  # noqa: F811
    make_instance(GPUS, listen=f'127.0.0.1:{PORT}')
    assert not may_listen(bo, '::1') and not may_listen(bo, '127.0.0.1')
    browser.page.get(name)
    harness.until(lambda: browser.page.title.startswith('mgpu') or browser.text(), 'the page of mgpud')
    assert 'stranger' not in browser.page.title


@pytest.mark.parametrize('address', ['::1', '127.0.0.1'])
def test_a_page_that_a_stranger_served_once_does_nothing_when_mgpud_answers_in_its_place(
        net, browser, make_instance, ana, bo, address):  # noqa: F811
    name = NAMES[address == '127.0.0.1']
    with stranger(bo, address, page=PAGE):
        box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}', client=ana)
        login = box.api('POST', '/logins', {}, user=ana).json['login']
        browser.page.get(f'{name}#login={login}')
        assert browser.page.title == 'stranger'
    harness.until(lambda: version('127.0.0.1') == 200, 'mgpud has the port')
    seen = until_mgpud_has_answered(browser, '/api/v1/jobs', '/api/v1/sessions')
    assert {status for _, status in seen} == {403}, seen
    assert box.api('GET', '/jobs').json['jobs'] == []


def test_a_service_worker_of_a_stranger_does_nothing_and_is_removed(net, browser, make_instance, ana, bo):  # noqa: F811
    with stranger(bo, '::1', page=PAGE + INSTALL, worker=WORKER):
        box = make_instance(GPUS, listen=f'127.0.0.1:{PORT}', client=ana)
        browser.page.get(NAMES[0])
        harness.until(lambda: browser.page.title == 'installed', 'the worker is installed')
    harness.until(lambda: version('127.0.0.1') == 200, 'mgpud has the port')
    seen = until_mgpud_has_answered(browser, '/api/v1/jobs')
    assert {status for _, status in seen} == {403}, seen
    browser.page.get('about:blank')

    def is_away():
        browser.page.get(NAMES[0])
        return 'another user' in browser.text('body')
    harness.until(is_away, 'the answer of mgpud in place of the worker')
    assert box.api('GET', '/jobs').json['jobs'] == []
