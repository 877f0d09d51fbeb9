# SPDX-License-Identifier: MIT
"""What people need who do not see the page as it was drawn, in a real Chromium: names that say what is shown, headings, regions, contrast; and the way to the documents and back.

With MGPU_AXE=FILE, axe.min.js of axe-core (`npm pack axe-core`) checks all views as well.
"""

import os

import pytest

import harness
import test_web_browser
from test_web_views import CONTRAST, CONTRAST_MIN

chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
pytestmark = test_web_browser.pytestmark
LISTEN, GPUS, VIEWS, PAGE = test_web_browser.LISTEN, test_web_browser.GPUS, test_web_browser.VIEWS, test_web_browser.PAGE
AXE = os.environ.get('MGPU_AXE')

# Each returns what is wrong, in words.
CHECKS = {
    'a name contains the text that is seen': '''
        const plain = (text) => text.toLowerCase().replace(/[^\\p{L}\\p{N}]+/gu, ' ').trim();
        const textOf = (node) => [...node.childNodes].map((one) => (one.nodeType === 3 ? one.data : one.nodeType === 1 && one.ariaHidden !== 'true' && !['title', 'style'].includes(one.localName) ? textOf(one) : '')).join(' ');
        return [...document.querySelectorAll('a[aria-label], button[aria-label]')].filter((one) => /\\p{L}|\\p{N}/u.test(textOf(one)) && !plain(one.ariaLabel).includes(plain(textOf(one))))
            .map((one) => `${one.ariaLabel} <> ${textOf(one)}`);''',
    'one first heading, and no level is left out': '''
        const levels = [...document.querySelectorAll('h1, h2, h3, h4')].filter((one) => one.checkVisibility()).map((one) => Number(one.localName[1]));
        return levels.filter((one) => one === 1).length === 1 && levels.every((one, i) => i === 0 || one <= levels[i - 1] + 1) ? [] : [levels.join()];''',
    'regions can be told apart': '''
        const names = [...document.querySelectorAll('section[aria-label], [role=region], nav')].filter((one) => one.checkVisibility()).map((one) => one.ariaLabel);
        return names.filter((one, i) => names.indexOf(one) !== i);''',
    'what can be moved sideways can be reached by keys': '''
        return [...document.querySelectorAll('main *')].filter((one) => one.scrollWidth > one.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX) && one.tabIndex < 0 && !one.querySelector('a, button, input')).map((one) => one.className);''',
    'links in sentences are underlined': '''
        return [...document.querySelectorAll('p a, li a')].filter((one) => one.checkVisibility() && !getComputedStyle(one).textDecorationLine.includes('underline')).map((one) => one.textContent);''',
    'cells have headers': '''
        return [...document.querySelectorAll('table')].filter((one) => one.checkVisibility() && [...one.querySelectorAll('tbody tr')].some((row) => row.cells.length !== one.querySelectorAll('thead th').length)).map((one) => one.caption?.textContent);''',
    'each id is there once': '''
        const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
        return ids.filter((one, i) => ids.indexOf(one) !== i);''',
    'each field has a label': '''
        return [...document.querySelectorAll('input, textarea, select')].filter((one) => !one.labels.length && !one.ariaLabel).map((one) => one.outerHTML);''',
}


@pytest.fixture
def everything(box, gate):
    """A running job, a waiting one, an ended one, one with two logs, and an array: the views that show all kinds of things."""
    split = box.submit('-q', '--split-log', '-g', '0', '--', 'sh', '-c', 'echo words; echo why >&2; exit 1')
    array = box.submit('-q', '-g', '0', '-a', '0-1', '--', 'sh', '-c', 'exit $MGPU_ARRAY_INDEX')
    box.wait(split)
    box.wait(array)
    ended = box.submit('-q', '-J', 'ended', '-g', '1', '--', 'sh', '-c', 'echo words; exit 1')
    box.wait(ended)
    running = box.submit('-q', '-J', 'running', '-g', '3', '-t', '1h', '--', *gate.command('echo more'))
    waiting = box.submit('-q', '-J', 'waiting', '-g', '2', '-t', '1h', '--', 'true')
    yield (*VIEWS, f'job/{running}', f'job/{waiting}', f'job/{ended}', f'job/{split}', f'job/{array}')
    gate.open()


def visit(web, view):
    web.show(view)
    web.until_text('live', 'header')
    words = {'users': 'Turn, from', 'history': 'GPU-hours by', 'timeline': 'As a table', 'submit': 'Type a command'}.get(view, 'Request and use' if view.startswith('job') else None)
    harness.until(lambda: (words or '') in web.text() and len(web.text()) > 20, f'the view {view}')


@pytest.mark.parametrize('width', [360, 1280])
def test_views_keep_the_rules(web, everything, width):
    web.resize(width)
    for view in everything:
        visit(web, view)
        wrong = {name: found for name, check in CHECKS.items() if (found := web.page.execute_script(check))}
        assert wrong == {}, (view, wrong)


@pytest.mark.skipif(not AXE, reason='MGPU_AXE names no axe.min.js')
@pytest.mark.parametrize('is_dark', [False, True], ids=['light', 'dark'])
def test_axe_finds_nothing(web, everything, is_dark):
    with open(AXE, encoding='utf-8') as source:
        axe = source.read()
    web.use_dark(is_dark)
    for width in (360, 1280, 3840):
        web.resize(width)
        for view in everything:
            visit(web, view)
            web.page.execute_script(axe)
            found = web.page.execute_async_script('''const done = arguments[0];
                axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice', 'experimental'] })
                    .then(({ violations }) => done(violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))])));''')
            assert found == [], (view, width, found)
    web.use_dark(False)


def test_the_documents_are_in_the_bar_and_lead_back(web, box):
    next(one for one in web.all('nav a') if one.text == 'Documents').click()
    web.until_text('Documents of mgpu', 'header')
    for is_dark in (False, True):
        web.use_dark(is_dark)
        assert web.page.execute_script(CONTRAST, CONTRAST_MIN) == []
    web.use_dark(False)
    links = [one for one in web.all('main a') if one.get_attribute('href').startswith(f'{PAGE}page/')]
    links[0].click()
    harness.until(lambda: not web.page.current_url.endswith('README.html'), 'another document')
    next(one for one in web.all('header a') if one.text == 'Back to the page of mgpu').click()
    web.until_text('live', 'header')
    assert web.page.current_url.startswith(PAGE) and '/page/' not in web.page.current_url
