# SPDX-License-Identifier: MIT
"""Where things are on the page, measured in a real Chromium at the widths of a telephone, a laptop and a large screen, in both colour schemes."""

import pytest

import harness
import test_web_browser

chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
pytestmark = test_web_browser.pytestmark
LISTEN, GPUS = test_web_browser.LISTEN, 'sim:8x24G:rtx4090'

TELEPHONE, LAPTOP, LARGE = (360, 800), (1280, 900), (3840, 2160)
ROW_MAX = 1400  # pixels: in a longer row, the eye loses it
LISTS = ('Running', 'Queue', 'Ended')

EDGES = 'return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility()).map((one) => { const r = one.getBoundingClientRect(); return [r.left, r.top + scrollY, r.right, r.bottom + scrollY]; })'


@pytest.fixture(params=[False, True], ids=['light', 'dark'])
def scheme(web, request):
    web.use_dark(request.param)
    yield web
    web.use_dark(False)


def edges(web, selector):
    """[(left, top, right, bottom)] of the visible elements, in pixels of the page."""
    return web.page.execute_script(EDGES, selector)


def fill(web, box, gate, running=8):
    """So many jobs run, some of them on all eight GPUs, and five wait. The number of jobs at the gate."""
    for number in range(running):
        box.submit('-q', '-J', f'runs-{number}', *(('-g', '1') if number < 8 else ('-g', '0', '-c', '0.01')), '-t', '1h', '--', *gate.command())
    for number in range(5):
        box.submit('-q', '-J', f'waits-{number}', '-g', '4', '-t', '1h', '--', 'true')
    web.until_text('waits-4', '[aria-label=Queue]')
    harness.until(lambda: len(web.all('article.gpu-used')) == 8, 'eight GPUs in use')
    harness.until(lambda: f'{running}' in web.text('[aria-label=Running] .count'), 'the running jobs')
    return running


@pytest.mark.parametrize('running', [8, 30])
def test_the_queue_begins_in_the_first_window_of_a_laptop(scheme, box, gate, running):
    web, (width, height) = scheme, LAPTOP
    web.resize(width, height)
    count = fill(web, box, gate, running)
    rows = harness.until(lambda: len(found := edges(web, '[aria-label=Queue] tbody tr')) == 5 and found, 'the queue')
    assert all(bottom <= height for _, _, _, bottom in rows[:3]), rows
    if running > 8:
        web.button(f'Show all {running}', '[aria-label=Running]')
        harness.until(lambda: len(edges(web, '[aria-label=Running] tbody tr')) == running, 'all running jobs')
    web.picture(f'fold-{running}-{width}')
    gate.open(count)


def test_rows_of_cards_are_as_long_as_each_other(web, box):
    for width in (1400, 1280, 1000, 800, 700):
        web.resize(width)

        def rows():
            tops = [top for _, top, _, _ in edges(web, 'article.gpu')]
            return [tops.count(top) for top in sorted(set(tops))]
        harness.until(lambda: sum(rows()) == 8 and len(set(rows())) == 1, f'rows of cards that are as long as each other at {width} pixels, not {rows()}')


def test_jobs_begin_in_the_first_window_of_a_telephone(scheme, box, gate):
    web, (width, height) = scheme, TELEPHONE
    web.resize(width, height)
    count = fill(web, box, gate)
    (_, _, _, bottom), *_ = edges(web, '[aria-label=Running] tbody tr')
    assert bottom <= height, bottom
    (_, top, _, _), = edges(web, '[aria-label=Queue]')
    assert top <= 1.5 * height, top
    assert all(right <= width for _, _, right, _ in edges(web, 'main *')), 'nothing is beyond the right edge'
    gate.open(count)


def test_lists_are_beside_each_other_on_a_large_screen(scheme, box, gate):
    web, (width, height) = scheme, LARGE
    web.resize(width, height)
    box.wait(box.submit('-q', '-J', 'has-ended', '-g', '1', '--', 'true'))
    count = fill(web, box, gate)
    web.until_text('has-ended', '[aria-label=Ended]')
    tops = {top for name in LISTS for _, top, _, _ in edges(web, f'[aria-label={name}]')}
    assert len(tops) == 1, tops
    for view in ('now', 'nodes', 'users', 'history'):
        web.show(view)
        rows = harness.until(lambda: edges(web, 'main tbody tr'), f'rows of {view}')
        assert all(right - left <= ROW_MAX for left, _, right, _ in rows), (view, rows)
    gate.open(count)


def test_all_lists_have_the_same_columns(web, box, gate):
    web.resize(*LAPTOP)
    box.wait(box.submit('-q', '-J', 'has-ended', '-g', '1', '--', 'true'))
    count = fill(web, box, gate)
    web.until_text('has-ended', '[aria-label=Ended]')
    for name in ('id', 'user', 'name', 'gpus'):
        found = {(left, right) for left, _, right, _ in edges(web, f'th.col-{name}')}
        assert len(found) == 1, (name, found)
    gate.open(count)


# The widest moment in the cell of a start, which is then as long as the text is.
OTHER_DAY = '''const [cell] = [...document.querySelectorAll('[aria-label=Queue] tbody td')].filter((one) => one.textContent.includes('≈'));
  const before = cell.textContent;
  cell.textContent = '≈ Wed, Nov 29 22:05';
  const is_whole = cell.scrollWidth <= cell.clientWidth;
  cell.textContent = before;
  return is_whole'''


@pytest.mark.parametrize('width', [1280, 3840])
def test_a_start_on_another_day_is_whole(web, box, gate, width):
    web.resize(width)
    runs = box.submit('-q', '-J', 'runs', '-g', '1', '-t', '1h', '--', *gate.command())
    waits = box.submit('-q', '-J', 'starts-then', '-g', '8', '--', 'true')
    web.until_text('≈', '[aria-label=Queue]')
    assert web.page.execute_script(OTHER_DAY)
    box.mgpu('cancel', '-y', waits, check=True)
    gate.open()
    box.wait(runs)
