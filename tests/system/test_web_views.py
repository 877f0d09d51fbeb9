# SPDX-License-Identifier: MIT
"""The views of the page in a real Chromium: what each tells, what keys alone can do, and what people with other eyes and ears get."""

import re

import pytest

import harness
import test_web_browser
from test_web import new_login

Keys = test_web_browser.Keys
chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
pytestmark = test_web_browser.pytestmark
LISTEN, GPUS, VIEWS, PAGE = test_web_browser.LISTEN, test_web_browser.GPUS, test_web_browser.VIEWS, test_web_browser.PAGE

CONTRAST_MIN = 4.5  # of WCAG AA
SHIFT_MAX = 0.1     # "good" for the Web Vitals


def log_in(web, box, user):
    web.page.get('about:blank')
    web.page.get(f'{PAGE}#login={new_login(box, user, "--browser-user", box.client.name)}')
    if user.uid != box.client.uid:
        web.button(f'Stay {user.name}', 'dialog')
    web.until_text('Log out', 'header')


# --- what is told ---

def test_an_ended_job_has_its_post_mortem(web, box):
    limited = box.submit('-q', '-J', 'too-long', '-g', '2', '-t', '1s', '--', 'sleep', '600')
    box.wait(limited)
    web.show(f'job/{limited}')
    web.until_text('request more with -t', '[aria-label=Post-mortem]')
    text = web.text('[aria-label=Post-mortem]')
    assert re.search(r'It waited \S+, then ran for \S+ on \S+:0,1\.', text) and 'time limit' in text, text
    unset = box.submit('-q', '-g', '0', '-E', 'echo no environment called foo; false', '--', 'true')
    box.wait(unset)
    web.show(f'job/{unset}')
    web.until_text('Its setup reported: no environment called foo', '[aria-label=Post-mortem]')


@pytest.mark.root
def test_lines_of_others_are_not_in_their_post_mortem(web, box, bo):
    job = box.submit('-q', '-g', '0', '-E', 'echo the secret word; false', '--', 'true', user=bo)
    box.wait(job)
    web.show(f'job/{job}')
    web.until_text('its command never ran', '[aria-label=Post-mortem]')
    assert 'secret' not in web.text('body')
    assert 'cause' not in (answer := box.api('GET', f'/jobs/{job}').json) or answer['cause'] is None
    assert box.api('GET', f'/jobs/{job}', user=bo).json['cause'] == 'Its setup reported: the secret word'


def test_a_waiting_job_says_what_would_start_it_and_a_button_does_it(web, box, gate):
    box.submit('-q', '-J', 'holder', '-g', '3', '-t', '1h', '--', *gate.command())
    waiting = box.submit('-q', '-J', 'too-wide', '-g', '2', '-t', '10m', '--', *gate.command())
    web.show(f'job/{waiting}')
    web.until_text('requested 2 GPUs; 1 of 4 is free', '[aria-label="Why it waits"]')
    web.until_text('Starts ', '[aria-label="Why it waits"]')
    web.until_text('would start now', '[aria-label="Why it waits"]')
    web.button('Apply this change', '[aria-label="Why it waits"]')
    web.until_text('running', '.jobhead')
    assert box.job(waiting)['gpus'] == 1
    gate.open()


def test_the_timeline_shows_who_has_which_gpu_until_when(web, box, gate):
    box.submit('-q', '-J', 'now', '-g', '2', '-t', '2h', '--', *gate.command())
    box.submit('-q', '-J', 'share', '-m', '2G', '-t', '1h', '--', *gate.command())
    box.submit('-q', '-J', 'later', '-g', '4', '-t', '1h', '--', 'true')
    user = box.client.name
    web.show('timeline')

    def bars(name, words):
        return [one for one in web.page.execute_script("return [...document.querySelectorAll('.timeline a')].map((one) => one.getAttribute('aria-label'))")
                if f' {user} {name}, ' in one and words in one]
    harness.until(lambda: len(bars('now', ', limit ')) == 2, 'a bar on each of two GPUs, with its end')
    harness.until(lambda: len(bars('share', ', limit ')) == 1, 'a bar on a shared GPU')
    harness.until(lambda: len(bars('later', '4 GPUs, expected ')) == 1, 'the expected start of the waiting job')
    web.one('.timeline + .legend ~ div summary').click()
    web.until_text('later', 'details')
    gate.open(2)
    harness.until(lambda: len(bars('later', 'ended ')) == 4, 'four bars of what has ended')


def test_times_of_the_timeline_do_not_touch(web, box, gate):
    box.submit('-q', '-g', '1', '-t', '2h', '--', *gate.command())
    for width in (test_web_browser.NARROW, 800, 1400):
        web.resize(width)
        web.show('timeline')
        for name in ('± 1 h', '± 6 h', '± 1 d', '± 3 d', '± 7 d'):
            web.button(name)
            boxes = harness.until(lambda: web.page.execute_script("return [...document.querySelectorAll('.tick text')].map((one) => { const r = one.getBoundingClientRect(); return [r.left, r.right]; })"),
                                  'times')
            assert all(left[1] < right[0] for left, right in zip(boxes, boxes[1:])), (width, name, boxes)
    gate.open()


def test_the_history_adds_up_what_users_had(web, box):
    jobs = [box.submit('-q', '-J', f'past-{number}', '-g', '1', '--', 'true') for number in range(3)]
    for job in jobs:
        box.wait(job)
    web.show('history')
    web.until_text('past-2', '[aria-label="Ended jobs"]')
    web.until_text(box.client.name, '[aria-label="By user"]')
    web.button('7 days')
    harness.until(lambda: any(one.text == '7 days' and one.get_attribute('aria-pressed') == 'true' for one in web.all('button')), 'seven days')


def test_operators_drain_a_node_and_pause_a_gpu(web, box):
    log_in(web, box, box.user)
    web.show('nodes')
    node = box.gpus()[0]['node']
    web.button('Drain', f'[aria-label="Node {node}"]')
    web.type('new kernel', Keys.ENTER)
    web.until_text('new kernel', f'[aria-label="Node {node}"]')
    assert box.api('GET', '/nodes').json['nodes'][0]['state'] == 'drained'
    web.button('Resume', f'[aria-label="Node {node}"] .nodehead')
    harness.until(lambda: box.api('GET', '/nodes').json['nodes'][0]['state'] == 'up', 'the node back')
    web.button('Pause', f'[aria-label="Node {node}"]')
    web.type('fan', Keys.ENTER)
    harness.until(lambda: box.gpus()[0]['state'] == 'paused', 'a paused GPU')
    web.until_text('fan', f'[aria-label="Node {node}"]')
    web.button('Resume', f'[aria-label="Node {node}"] tbody')
    harness.until(lambda: box.gpus()[0]['state'] == 'free', 'the GPU back')
    web.button('Log out', 'header')
    harness.until(lambda: 'Log out' not in web.text('header'), 'the end of the session')
    web.complaints()  # its stream of events was cut


def test_a_waiting_job_is_changed_and_an_ended_one_submitted_again(web, box, gate):
    box.submit('-q', '-J', 'full', '-g', '4', '--', *gate.command())
    job = box.submit('-q', '-J', 'changed', '-g', '1', '--', 'true')
    web.show(f'job/{job}')
    web.button('Priority', '.jobhead')
    web.one('#ask-priority').clear()
    web.one('#ask-priority').send_keys('-7', Keys.ENTER)
    harness.until(lambda: box.job(job)['priority'] == -7, 'the priority')
    web.button('Time limit', '.jobhead')
    web.type('90m', Keys.ENTER)
    harness.until(lambda: box.job(job)['time_limit_s'] == 5400, 'the time limit')
    web.button('Hold', '.jobhead')
    harness.until(lambda: box.job(job)['hold'] == 'user', 'a hold')
    web.button('Release', '.jobhead')
    harness.until(lambda: box.job(job)['hold'] is None, 'a release')
    gate.open()
    box.wait(job)
    web.button('Submit again', '.jobhead')
    harness.until(lambda: not web.page.current_url.endswith(f'/job/{job}'), 'the page of the new job')
    assert box.job(int(web.page.current_url.rpartition('/')[2]))['name'] == 'changed'


# --- without a mouse ---

def test_a_job_is_found_opened_requeued_and_cancelled_by_keys_alone(web, box, gate):
    _, job = (box.submit('-q', '-J', name, '-g', '1', '--', *gate.command()) for name in ('other', 'wanted'))
    web.until_text('wanted', '[aria-label=Running]')
    web.type('/', 'wanted', Keys.ESCAPE)
    harness.until(lambda: 'other' not in web.text('[aria-label=Running]'), 'the filter')
    web.type('j', Keys.ENTER)
    harness.until(lambda: web.page.current_url.endswith(f'/job/{job}'), 'the page of the job')
    web.until_text('running', '.jobhead')
    web.type('r', Keys.ENTER)
    harness.until(lambda: box.job(job)['attempt'] == 2, 'a second attempt')
    web.until_text('running', '.jobhead')
    web.type('c', Keys.ENTER)
    web.until_text('cancelled', '.jobhead')
    assert box.wait(job)['state'] == 'cancelled'
    web.type(Keys.ESCAPE)
    web.until_text('other', '[aria-label=Running]')
    gate.open()


def test_the_row_with_the_focus_keeps_it_when_the_one_above_leaves(web, box, gate):
    above, below = (box.submit('-q', '-J', name, '-g', '1', '--', *gate.command()) for name in ('above', 'below'))
    web.until_text('below', '[aria-label=Running]')
    web.type('j', 'j')
    focused = 'return document.activeElement.textContent'
    harness.until(lambda: web.page.execute_script(focused) == str(below), 'the focus on the second row')
    box.mgpu('cancel', above)
    harness.until(lambda: 'above' not in web.text('[aria-label=Running]'), 'the first row to leave')
    web.type(Keys.ENTER)
    harness.until(lambda: web.page.current_url.endswith(f'/job/{below}'), 'the page of the job')
    gate.open()


def test_tab_reaches_everything_and_shows_where_it_is(web, box, gate):
    box.submit('-q', '-J', 'tabbed', '-g', '1', '--', *gate.command())
    web.until_text('tabbed', '[aria-label=Running]')
    wanted = set(web.page.execute_script('''return [...document.querySelectorAll('a[href], button, input')].filter((one) => one.checkVisibility() && !one.closest('dialog'))
        .map((one, i) => one.dataset.tab = String(i))'''))
    web.page.execute_script('document.body.focus(); getSelection().removeAllRanges()')
    seen = set()
    for _ in range(2 * len(wanted)):
        web.type(Keys.TAB)
        at, outline = web.page.execute_script('''const one = document.activeElement; return [one.dataset.tab ?? null, getComputedStyle(one).outlineStyle]''')
        if at is not None:
            assert outline != 'none', at
            seen.add(at)
    assert wanted - seen == set()
    gate.open()


# --- other eyes and ears ---

CONTROLS = ('button', 'link', 'textbox', 'searchbox', 'checkbox', 'image', 'progressbar', 'table', 'dialog', 'combobox', 'spinbutton')


def test_screen_readers_get_a_name_for_everything(web, box, gate):
    job = box.submit('-q', '-J', 'heard', '-g', '1', '-t', '1h', '--', 'sh', '-c', f'echo PROGRESS=0.5 > "$MGPU_NOTIFY"; read x < {gate.path}')
    waiting = box.submit('-q', '-g', '4', '--', 'true')
    ended = box.submit('-q', '-g', '0', '--', 'true')
    box.wait(ended)
    for view in (*VIEWS, f'job/{job}', f'job/{waiting}', f'job/{ended}'):
        web.show(view)
        harness.until(lambda: len(web.text()) > 20, f'the view {view}')
        tree = web.control('Accessibility.getFullAXTree')['nodes']
        nameless = [node for node in tree if not node['ignored'] and node['role'].get('value') in CONTROLS and not node.get('name', {}).get('value')]
        assert nameless == [], (view, nameless)
        roles = {node['role'].get('value') for node in tree if not node['ignored']}
        assert {'banner', 'navigation', 'main', 'heading'} <= roles, (view, roles)
    gate.open()


# The contrast of each visible text with what is behind it; colours of the style sheet are opaque but for those of disabled elements.
CONTRAST = '''
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const parse = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (node) => { for (; node; node = node.parentElement) { const colour = parse(getComputedStyle(node).backgroundColor); if (colour[3] === 255) return colour; } return [255, 255, 255]; };
    const bad = [];
    for (const node of document.querySelectorAll('body *')) {
        if (!node.checkVisibility() || node.closest('svg') || ![...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim())) continue;
        if (node.closest('.unseen, .skip')) continue;
        const style = getComputedStyle(node), [a, b] = [light(parse(style.color)), light(behind(node))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < arguments[0]) bad.push(`${node.tagName} ${node.className} ${node.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
    }
    return bad;'''


@pytest.mark.parametrize('is_dark', [False, True], ids=['light', 'dark'])
def test_every_text_has_enough_contrast(web, box, gate, is_dark):
    job = box.submit('-q', '-J', 'seen', '-g', '3', '-t', '1h', '--', 'sh', '-c', f'printf "\\033[31mred\\033[32mgreen\\033[33myellow\\033[34mblue\\033[35mm\\033[36mc\\n"; read x < {gate.path}')
    waiting = box.submit('-q', '-g', '4', '--', 'true')
    for command in ('true', 'false'):
        box.wait(box.submit('-q', '-g', '0', '--', command))
    web.use_dark(is_dark)
    try:
        for view in (*VIEWS, f'job/{job}', f'job/{waiting}'):
            web.show(view)
            harness.until(lambda: len(web.text()) > 20, f'the view {view}')
            assert web.page.execute_script(CONTRAST, CONTRAST_MIN) == [], view
    finally:
        web.use_dark(False)
    gate.open()


def test_nothing_jumps_while_the_page_loads_and_jobs_come_and_go(web, box, gate):
    box.submit('-q', '-J', 'stays', '-g', '1', '-t', '1h', '--', *gate.command())
    for view in ('now', 'timeline', 'nodes', 'users', 'history'):
        web.page.get('about:blank')
        web.show(view)
        web.until_text('live', 'header')
        harness.until(lambda: len(web.text()) > 20, f'the view {view}')
        web.page.execute_script('''window.shifts = []; new PerformanceObserver((list) => { for (const one of list.getEntries()) window.shifts.push(one); })
            .observe({ type: 'layout-shift', buffered: true })''')
        if view == 'now':
            jobs = [box.submit('-q', '-J', f'comes-{number}', '-g', '1', '--', 'true') for number in range(3)]
            box.wait(jobs[-1])
            web.until_text('comes-2', '[aria-label=Ended]')
        shift, places = web.page.execute_script('''return [window.shifts.reduce((sum, one) => sum + one.value, 0),
            window.shifts.flatMap((one) => one.sources.map((source) => `${one.value.toFixed(3)} ${source.node?.nodeName} ${source.node?.className}`))]''')
        assert shift < SHIFT_MAX, (view, shift, places)
    gate.open()
