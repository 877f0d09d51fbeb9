# SPDX-License-Identifier: MIT
"""The web page in a real Chromium, which runs as the user whom the kernel then names to mgpud.

With MGPU_SCREENSHOTS=FOLDER, pictures of all views are written there.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

import harness
from test_web import new_login

webdriver = pytest.importorskip('selenium.webdriver', reason='python3-selenium is not installed: tools/install-packages real')
from selenium.common.exceptions import SessionNotCreatedException, StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
pytestmark = [pytest.mark.real,
              pytest.mark.skipif(not (CHROMIUM and DRIVER), reason='chromium is not installed: tools/install-packages real')]

PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'
GPUS = 'sim:4x24G:rtx4090'
PAGE = f'http://127.0.0.1:{PORT}/'
VIEWS = ('now', 'nodes', 'users', 'timeline', 'history', 'submit')
NARROW = 360  # pixels
START_S = 240  # of Chromium; chromedriver itself gives up after 60 s


class Chromium:
    """A browser of a user, through chromedriver."""

    def __init__(self, user, place):
        self.port = harness.free_port()
        environment = dict(user.environment(), HOME=place, XDG_RUNTIME_DIR=place)
        self.driver = subprocess.Popen([DRIVER, f'--port={self.port}'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=environment, cwd=place, start_new_session=True, **user.popen_arguments())
        options = webdriver.ChromeOptions()
        for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server', '--ignore-certificate-errors',
                         f'--user-data-dir={place}/profile', '--window-size=1400,1000'):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.options = options
        self.page = harness.until(self.open_session, 'a session of chromedriver', START_S)
        self.page.command_executor._commands['cdp'] = ('POST', '/session/$sessionId/goog/cdp/execute')

    def open_session(self):
        assert self.driver.poll() is None, 'chromedriver has left'
        with contextlib.suppress(ConnectionRefusedError, SessionNotCreatedException), socket.create_connection(('127.0.0.1', self.port)):
            return webdriver.Remote(f'http://127.0.0.1:{self.port}', options=self.options)
        return None

    def close(self):
        try:
            self.page.quit()
        finally:
            os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()

    def control(self, command, **parameters):
        """The answer to a command of the DevTools protocol."""
        return self.page.execute('cdp', {'cmd': command, 'params': parameters})['value']

    def show(self, view):
        self.page.get(f'{PAGE}#/{view}')

    def all(self, selector):
        return self.page.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return harness.until(lambda: next(iter(self.all(selector)), None), f'an element {selector}')

    def text(self, selector='main'):
        return self.page.execute_script('return document.querySelector(arguments[0])?.innerText ?? ""', selector)

    def until_text(self, words, selector='main'):
        harness.until(lambda: words in self.text(selector), f'"{words}" in {selector}')

    def button(self, name, selector='main'):
        """Presses the button of that name once it is there. News may draw the view again in between."""
        def press():
            try:
                found = next((one for one in self.all(f'{selector} button') if one.text == name and one.is_displayed()), None)
                if found is not None:
                    found.click()
            except StaleElementReferenceException:
                return False
            return found is not None
        harness.until(press, f'a button {name}')

    def type(self, *keys):
        """On the keyboard: to what has the focus, which news may draw again at any time."""
        for key in keys:
            ActionChains(self.page).send_keys(key).perform()

    def resize(self, width, height=900):
        self.control('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def use_dark(self, is_dark):
        self.control('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if is_dark else 'light'}])

    def picture(self, name):
        folder = os.environ.get('MGPU_SCREENSHOTS')
        if folder:
            self.page.save_screenshot(f'{folder}/{name}.png')

    def complaints(self):
        """What the console has had since the last call: errors, and violations of the page's policy."""
        return [entry['message'] for entry in self.page.get_log('browser') if entry['level'] in ('SEVERE', 'WARNING')]


@pytest.fixture(scope='module')
def chromium(someone):
    place = tempfile.mkdtemp(prefix='mgpu-web-', dir='/tmp')
    os.chown(place, someone.uid, someone.gid)
    made = Chromium(someone, place)
    yield made
    made.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def web(chromium, box):
    """The browser with a clean console and without a login, which complains about nothing in the test."""
    chromium.resize(1400)
    chromium.page.get(PAGE)
    chromium.page.delete_all_cookies()
    chromium.show('now')
    chromium.page.refresh()
    chromium.until_text('live', 'header')
    chromium.complaints()
    yield chromium
    assert chromium.complaints() == []


def test_now_shows_gpus_jobs_and_queue(web, box, gate):
    box.submit('-q', '-J', 'train', '-g', '3', '-t', '1h', '--', *gate.command())
    box.submit('-q', '-J', 'next-one', '-g', '4', '--', 'true')
    web.until_text('train', '[aria-label=Running]')
    web.until_text('requested 4 GPUs', '[aria-label=Queue]')
    harness.until(lambda: len(web.all('article.gpu-used')) == 3, 'three GPUs in use')
    assert len(web.all('article.gpu-free')) == 1
    web.until_text('3 / 4', '.tiles')
    gate.open()
    web.until_text('next-one', '[aria-label=Ended]')
    web.until_text('0 / 4', '.tiles')


def test_elements_of_an_array_are_shown_by_their_index(web, box, gate):
    array = box.submit('-g', '2', '-a', '0-1', '-t', '1h', '-J', 'pair', '--', *gate.command())
    harness.until(lambda: [card.text for card in web.all('article.gpu .owner a')] == [
        f'{array}.0 pair', f'{array}.0 pair', f'{array}.1 pair', f'{array}.1 pair'], 'the elements')
    web.show(f'job/{array}')
    web.until_text('all elements have started', '.jobhead')
    assert not web.all('[aria-label="Why it waits"]')
    assert [link.text for link in web.all('.elements a')] == [f'{array}.0', f'{array}.1']
    more = box.submit('-g', '4', '-a', '2-5', '-J', 'sweep', '--', 'true')
    web.show('now')
    web.until_text('sweep [2-5]', '[aria-label=Queue]')
    gate.open(2)
    box.wait(array)
    box.wait(more)


def test_job_is_checked_submitted_followed_and_cancelled(web, box, gate):
    web.show('submit')
    web.one('#f-command').send_keys(f"printf 'first \\033[32mgreen\\033[0m line\\n'; read word < {gate.path}")
    web.one('#f-name').send_keys('from-page')
    web.until_text('It would start now', '.verdict')
    gpus = web.one('#f-gpus')
    gpus.clear()
    gpus.send_keys('9')
    harness.until(lambda: 'bad' in web.one('.verdict').get_attribute('class'), 'the verdict on nine GPUs')
    gpus.clear()
    gpus.send_keys('2')
    web.until_text('It would start now', '.verdict')
    assert 'mgpu submit -J from-page -g 2' in web.text('.command')
    web.complaints()  # the refused check is on the console
    web.button('Submit')
    web.until_text('first green line', '.log')
    assert web.one('.log .fore-2').text == 'green'
    web.until_text('running', '.jobhead')
    web.picture('job')
    web.button('Cancel', '.jobhead')
    web.button('Cancel the job', 'dialog')
    web.until_text('cancelled', '.jobhead')
    (job,) = [job for job in box.api('GET', '/jobs').json['jobs'] if job['name'] == 'from-page']
    assert (job['state'], job['gpus']) == ('cancelled', 2)


def test_output_arrives_while_it_is_written(web, box, gate):
    number = box.submit('-q', '-J', 'writer', '-g', '0', '--', 'sh', '-c', f'echo before; read word < {gate.path}; echo after; read word < {gate.path}')
    web.show(f'job/{number}')
    web.until_text('before', '.log')
    assert 'after' not in web.text('.log')
    gate.open()
    web.until_text('after', '.log')


@pytest.mark.parametrize('pieces, lines', [
    (['one\ntwo'], ['one', 'two']), (['10%\r20%\r100%\n'], ['100%', '']), (['12345\rab'], ['ab345']), (['12345\r\x1b[Kab'], ['ab']),
    (['a\r', '\nb'], ['a', 'b']), (['x\x1b[3', '1mred\x1b[0m'], ['x<fore-1>red']), (['\x1b]0;title\x07x\x1b]8;;http://h\x1b\\y'], ['xy']),
    (['\x1b[1;38;5;196mx\x1b[mz'], ['<bold rgb(255, 0, 0)>xz']), (['\x1b[38;2;1;2;3mx'], ['<rgb(1, 2, 3)>x']), (['\x1b[48;5;1mx'], ['<back-1>x']),
    (['\x1b[2J\x1b[10;10Hx\x1b(By'], ['xy']), (['ab\bc'], ['ac']), (['tab\there'], ['tab\there']), (['\x00\x01x\x7f'], ['x']), (['é漢😀'], ['é漢😀'])],
    ids=lambda value: ascii(value)[:40])
def test_output_looks_as_on_a_terminal(web, pieces, lines):
    shown = web.page.execute_async_script('''
        const [pieces, done] = arguments;
        import('/page/ansi.js').then(({ Terminal }) => {
            const pane = document.createElement('div'), terminal = new Terminal(pane);
            pieces.forEach((piece) => terminal.write(piece));
            done([...pane.children].map((line) => [...line.childNodes].map((node) =>
                (node.className || node.style?.color ? `<${[node.className, node.style.color].filter(Boolean).join(' ')}>` : '') + node.textContent).join('')));
        });''', pieces)
    assert shown == lines


@pytest.mark.parametrize('pieces, lines', [
    (['one\r\ntwo'], ['one', 'two']), (['\x1b[2J\x1b[3;5Hx\x1b[Hy'], ['y', '', '    x']), (['abc\x1b[2Dx\x1b[K'], ['ax']),
    (['a\r\nb\r\nc\x1b[2Ax'], ['ax', 'b', 'c']), (['50%\r\n10%\x1b[A\r60%\x1b[B\r20%'], ['60%', '20%']),
    (['before\x1b[?1049h\x1b[2J\x1b[Hvim\x1b[?1049l after'], ['before after']), (['a\x1b7\x1b[5;5Hb\x1b8c'], ['ac', '', '', '', '    b']),
    (['\x1b[1;3r1\r\n2\r\n3\r\n4\x1b[r\x1b[5;1Hfoot'], ['1', '2', '3', '4', '', 'foot']), (['a\r\nb\r\nc\x1b[2;1H\x1b[L'], ['a', '', 'b', 'c']),
    (['a\r\nb\r\nc\x1b[1;1H\x1b[M'], ['b', 'c']), (['\r\n'.join(map(str, range(30)))], list(map(str, range(30)))),
    (['\x1b[9999;9999Hx\x1b[H\x1b[2J'], ['']), (['x\x1b[3', '1mred\x1b[0m'], ['xred']), (['a\x1b[99999999Lb\x1b[99999Tc'], ['  c'])],
    ids=lambda value: ascii(value)[:40])
def test_a_terminal_looks_as_its_programs_draw_it(web, pieces, lines):
    shown = web.page.execute_async_script('''
        const [pieces, done] = arguments;
        import('/page/screen.js').then(({ Screen }) => {
            const pane = document.createElement('div'), screen = new Screen(pane);
            pieces.forEach((piece) => screen.write(piece));
            done([...pane.children].map((line) => line.textContent.trimEnd()));
        });''', pieces)
    assert shown == lines


def test_the_page_of_a_job_shows_its_terminal(web, box, gate):
    number = box.submit('-q', '-T', '-g', '1', '--', 'sh', '-c',
                        f"printf 'old\\033[2J\\033[2;3Hbelow\\033[1;1Habove'; read word < {gate.path}")
    web.show(f'job/{number}')
    web.until_text('below', '.log')
    assert web.text('.log').split() == ['above', 'below']


def test_text_of_users_stays_text(web, box, gate):
    evil = '<img src=x onerror=alert(1)><script>alert(2)</script>'
    number = box.submit('-q', '-J', evil, '-g', '1', '--', 'sh', '-c', f"echo '{evil}'; printf '\\033]0;title\\007\\033[2Jcleared\\n'; read word < {gate.path}")
    web.until_text(evil, '[aria-label=Running]')
    web.show(f'job/{number}')
    web.until_text(evil, '.log')
    web.until_text('cleared', '.log')
    assert evil in web.text('h1')
    assert web.all('main img, main script') == []


def test_page_is_right_again_after_an_outage(web, box, gate):
    waiting = box.submit('-q', '-J', 'over-outage', '-g', '4', '--', *gate.command())
    web.until_text('over-outage', '[aria-label=Running]')
    box.stop()
    web.until_text('No connection', '#banner')
    gate.open()
    box.start()
    box.wait(waiting)
    box.submit('-q', '-J', 'after-outage', '-g', '1', '--', *gate.command())
    web.until_text('after-outage', '[aria-label=Running]')
    web.until_text('over-outage', '[aria-label=Ended]')
    assert 'over-outage' not in web.text('[aria-label=Running]')
    harness.until(lambda: not web.one('#banner').is_displayed(), 'an end of the banner')
    assert all('net::ERR' in text or 'Failed to load resource' in text for text in web.complaints())


def test_page_of_another_version_asks_to_be_loaded_again(web, box):
    """The same mgpud, but for the tag of its page: what an upgrade under an open page is."""
    tag = box.api('GET', '/whoami').json['page'].encode()
    other = harness.copy_programs(harness.programs(), lambda program: program.replace(tag, tag[::-1]))
    command = box.command
    try:
        box.stop()
        box.command = [f'{other}/mgpud', *command[1:]]
        box.start()
        web.until_text('newer version of this page', '#banner')
        web.button('Reload', '#banner')
        harness.until(lambda: not web.one('#banner').is_displayed(), 'an end of the banner')
        web.until_text('live', 'header')
    finally:
        box.stop()
        box.command = command
        box.start()
        shutil.rmtree(other)
    assert all('net::ERR' in text or 'Failed to load resource' in text for text in web.complaints())


def test_one_time_address_logs_in_and_leaves_no_trace(web, box, gate):
    number = box.submit('-q', '-J', 'of-a-user', '-g', '1', '--', *gate.command())
    secret = new_login(box, box.user, '--browser-user', box.client.name)
    web.page.get('about:blank')
    web.page.get(f'{PAGE}#login={secret}')
    if box.user.uid != box.client.uid:
        web.button(f'Stay {box.user.name}', 'dialog')
    web.until_text('Log out', 'header')
    assert secret not in web.page.current_url and secret not in web.page.page_source
    assert web.page.execute_script('return document.cookie') == ''
    web.show(f'job/{number}')
    web.button('Cancel', '.jobhead')
    web.button('Cancel the job', 'dialog')
    web.until_text('cancelled', '.jobhead')
    web.button('Log out', 'header')
    harness.until(lambda: 'Log out' not in web.text('header'), 'the end of the session')
    web.page.get('about:blank')
    web.page.get(f'{PAGE}#login={secret}')
    web.until_text('used before', 'body')
    assert any('401' in text for text in web.complaints())


def test_browser_that_is_unknown_over_tls_logs_in(chromium, make_instance):
    port = harness.free_port()
    box = make_instance(GPUS, listen=f'0.0.0.0:{port}')
    chromium.page.get(f'https://localhost:{port}/')
    chromium.until_text('mgpu web', '#banner')
    harness.until(lambda: not chromium.one('main').is_displayed(), 'a page without empty lists')
    address = box.mgpu('web', '--no-browser', '--host', 'localhost', check=True).out.strip()
    chromium.page.get('about:blank')
    chromium.page.get(address)
    chromium.until_text('live', 'header')
    harness.until(lambda: len(chromium.all('article.gpu-free')) == 4, 'four GPUs')
    (cookie,) = chromium.page.get_cookies()
    assert cookie['name'].startswith('__Host-') and cookie['httpOnly'] and cookie['secure'] and cookie['sameSite'] == 'Strict'


@pytest.mark.root
def test_address_of_another_user_logs_nobody_in_unasked(web, box, bo):
    """A link with somebody else's address would have people submit as that user."""
    web.page.get('about:blank')
    web.page.get(f'{PAGE}#login={new_login(box, bo, "--browser-user", box.client.name)}')
    web.until_text(f'logged in as {bo.name}', 'dialog')
    web.button('Back', 'dialog')
    web.until_text(box.client.name, '#who')
    assert [row['name'] for row in box.mgpu('token', 'list', '--json', user=bo, check=True).json['tokens']] == []


def test_keys_move_and_act(web, box, gate):
    box.submit('-q', '-J', 'keyed', '-g', '1', '--', *gate.command())
    queued = box.submit('-q', '-J', 'held-by-key', '-g', '4', '--', 'true')
    web.until_text('held-by-key', '[aria-label=Queue]')
    web.type('j', 'j', 'H')
    harness.until(lambda: box.job(queued)['hold'] == 'user', 'a hold')
    web.type('6')
    harness.until(lambda: web.page.current_url.endswith('#/timeline'), 'the timeline')
    web.type('?')
    web.until_text('down one row', 'dialog')
    web.type(Keys.ESCAPE)
    gate.open()


@pytest.mark.parametrize('width', [NARROW, 768, 1400, 3840])
def test_every_view_fits_its_width(web, box, gate, width):
    number = box.submit('-q', '-J', 'a-name-that-is-rather-long-for-a-narrow-screen', '-g', '3', '-t', '4h', '--', 'sh', '-c', f'seq 1 200; {gate.command()[2]}')
    waiting = box.submit('-q', '-J', 'waiting', '-g', '4', '-t', '2h', '--', 'true')
    web.resize(width)
    for is_dark in (False, True):
        web.use_dark(is_dark)
        for view in (*VIEWS, f'job/{number}', f'job/{waiting}'):
            web.show(view)
            web.until_text('live', 'header')
            harness.until(lambda: len(web.text()) > 20, f'the view {view}')
            wide, inner = web.page.execute_script('return [document.documentElement.scrollWidth, innerWidth]')
            assert wide <= max(inner, width), (view, wide, inner)
            web.picture(f'{view.replace(str(number), "running").replace(str(waiting), "waiting").replace("/", "-")}-{width}-{"dark" if is_dark else "light"}')
    web.use_dark(False)
    gate.open()


def test_everything_that_acts_has_a_name(web, box, gate):
    box.submit('-q', '-J', 'named', '-g', '1', '--', *gate.command())
    for view in VIEWS:
        web.show(view)
        harness.until(lambda: len(web.text()) > 20, f'the view {view}')
        nameless = web.page.execute_script('''
            return [...document.querySelectorAll('button, a, input, textarea, [role=img]')].filter((node) =>
                !(node.innerText?.trim() || node.ariaLabel || node.labels?.length || node.title || node.closest('dialog'))).map((node) => node.outerHTML)''')
        assert nameless == [], view
