# SPDX-License-Identifier: MIT
"""The history of the page in a real Chromium: its axis and numbers, what a click on a bar narrows, and the period before."""

import contextlib
import datetime
import re
import sqlite3

import pytest

import harness
import test_web_browser

chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
pytestmark = test_web_browser.pytestmark
LISTEN = test_web_browser.LISTEN
GPUS = 'sim:2x24G'

HOUR_MS, DAY_MS = 3600000, 86400000
# Of each job: GPU, days ago, hour of the day at which it ended, hours that it ran, the used part of its GPU time.
PAST = [(0, 1, 12, 2, 1), (0, 1, 20, 4, 0.5), (1, 2, 10, 8, 0.25), (1, 4, 9, 1, 0), (0, 9, 12, 10, 1), (1, 11, 6, 5, 1)]


def day(ago):
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=ago)).strftime('%m-%d')


def settle(box):
    """Jobs that ended days ago: the store is told so while mgpud is away."""
    jobs = [box.submit('-q', '-J', f'past-{number}', '--gpu-ids', str(gpu), '--', 'true') for number, (gpu, *_) in enumerate(PAST)]
    for job in jobs:
        box.wait(job)
    box.stop()
    today = int(datetime.datetime.now(datetime.timezone.utc).timestamp()) // 86400 * DAY_MS
    with contextlib.closing(sqlite3.connect(f'{box.state_dir}/store/mgpu.db')) as store, store:
        for job, (_, ago, hour, hours, used) in zip(jobs, PAST):
            ended, held = today - ago * DAY_MS + hour * HOUR_MS, hours * HOUR_MS
            assert store.execute('UPDATE jobs SET started_ms = ?, submitted_ms = ?, ended_ms = ?, run_ms = ? WHERE id = ?',
                                 (ended - held, ended - held - 60000, ended, held, job)).rowcount == 1
            assert store.execute('UPDATE ended SET ended_ms = ?, held_ms = ?, measured_ms = ?, used_ms = ? WHERE job = ?',
                                 (ended, held, held, int(held * used), job)).rowcount == 1
    box.start()


@pytest.fixture(scope='module')
def past(shared_box):
    settle(shared_box)


@pytest.fixture
def history(web, past):
    web.show('history')
    web.page.refresh()
    web.until_text('GPU-hours by day')
    yield web


def bars(web):
    """{label: the name of the bar} of those with a height."""
    names = web.page.execute_script('''return [...document.querySelectorAll('.stack')].filter((one) => [...one.querySelectorAll('.piece-used, .piece-wasted')].some((piece) => piece.getBoundingClientRect().height > 1))
        .map((one) => one.getAttribute('aria-label'))''')
    return dict(name.split(': ', 1) for name in names)


def hours(web):
    return {label: float(re.match(r'[\d.]+', text)[0]) for label, text in bars(web).items()}


def press_bar(web, label):
    next(one for one in web.all('.stack') if one.get_attribute('aria-label').startswith(f'{label}: ')).click()


@pytest.mark.parametrize('width', [360, 1280, 3840])
@pytest.mark.parametrize('is_dark', [False, True], ids=['light', 'dark'])
def test_bars_have_an_axis_and_numbers(history, width, is_dark):
    web = history
    web.use_dark(is_dark)
    web.resize(width)
    harness.until(lambda: hours(web) == {day(4): 1, day(2): 8, day(1): 6}, 'bars')
    assert bars(web)[day(1)] == '6 GPU-hours, 2 of them unused, 2 jobs; 0 GPU-hours in the previous period'
    scale = [float(text) for text in web.text('.plot.tall .scale').split()]
    assert scale == [10, 5, 0], scale
    heights = web.page.execute_script('''const top = document.querySelector('.columns').getBoundingClientRect();
        return [...document.querySelectorAll('.stack')].map((one) => [one.getAttribute('aria-label').slice(0, 5), [...one.querySelectorAll('.piece-used, .piece-wasted')].reduce((sum, piece) => sum + piece.getBoundingClientRect().height, 0) / one.getBoundingClientRect().height])''')
    found = dict(heights)
    assert len(heights) == 7, 'days without a job are there as well'
    assert found[day(2)] == pytest.approx(0.8, abs=0.02) and found[day(1)] == pytest.approx(0.6, abs=0.02), found
    if width > 1000:
        assert '8' in [one.text for one in web.all('.stack .number')]
    labels = web.page.execute_script('''return [...document.querySelectorAll('.column small')].filter((one) => one.textContent).map((one) => { const range = document.createRange(); range.selectNodeContents(one); const r = range.getBoundingClientRect(); return [r.left, r.right]; })''')
    assert labels and all(left[1] <= right[0] for left, right in zip(labels, labels[1:])), labels
    web.picture(f'history-{width}-{"dark" if is_dark else "light"}')
    web.use_dark(False)


def test_a_period_is_compared_with_the_one_before(history):
    web = history
    web.until_text('GPU-hours (', '.tiles')
    text = web.text('.tiles')
    assert re.search(r'15\s*GPU-hours \(unchanged; 15 in the previous 7 days\)', text), text
    assert re.search(r'4\s*jobs ended \(\+100 %; 2 in the previous 7 days\)', text), text
    web.button('30 days')
    web.until_text('GPU-hours (0 in the previous', '.tiles')
    web.picture('history-30')


def test_a_bar_narrows_the_view_to_its_day_hour_gpu_and_user(history, box):
    web = history
    harness.until(lambda: day(1) in hours(web), 'bars')
    press_bar(web, day(1))
    web.until_text('GPU-hours by hour')
    assert hours(web) == {'10:00': 1, '11:00': 1, '16:00': 1, '17:00': 1, '18:00': 1, '19:00': 1}
    names = web.text('[aria-label="Ended jobs"]')
    assert 'past-0' in names and 'past-1' in names and 'past-2' not in names
    press_bar(web, '17:00')
    web.until_text('GPU-hours by GPU')
    (gpu, value), = hours(web).items()
    assert gpu.endswith(':0') and value == 1
    assert 'past-1' in web.text('[aria-label="Ended jobs"]') and 'past-0' not in web.text('[aria-label="Ended jobs"]')
    chips = [one for one in web.all('.chip')]
    assert len(chips) == 2
    chips[0].click()
    web.until_text('GPU-hours by day')
    web.button('GPU')
    harness.until(lambda: sorted(hours(web).values()) == [6, 9], 'both GPUs')
    press_bar(web, gpu)
    web.until_text('GPU-hours by day')
    assert hours(web) == {day(1): 6}
    web.one('.chip').click()
    web.button('user')
    web.until_text('GPU-hours by user')
    press_bar(web, box.client.name)
    web.until_text(f'{box.client.name} ×', '.bar')
    web.until_text('GPU-hours by day')


def test_hours_are_those_in_which_the_jobs_ran(web, past):
    shown = web.page.execute_async_script('''const [done] = arguments;
        import('/page/sums.js').then(({ sumsByStep, sumsBy, HOUR, gpuName }) => {
            const at = (text) => Date.parse(`2026-01-01T${text}:00Z`), iso = (text) => `2026-01-01T${text}:00Z`;
            const jobs = [{ node: 'n', started_at: iso('00:30'), ended_at: iso('02:15'), granted: [{ index: 0 }, { index: 1, share: 500 }], gpu_seconds_measured: 4, gpu_seconds_wasted: 1 },
                { node: 'n', started_at: null, ended_at: iso('01:00'), granted: [] }];
            done([sumsByStep(jobs, at('00:00'), at('04:00'), HOUR).map((sum) => [sum.gpu_seconds, sum.gpu_seconds_wasted, sum.jobs]), sumsBy(jobs, at('01:00'), at('02:00'), gpuName).map((sum) => [sum.key, sum.gpu_seconds])]);
        });''')
    assert shown == [[[2700, 675, 1], [5400, 1350, 1], [1350, 337.5, 1], [0, 0, 0]], [['n:0', 3600], ['n:1', 1800]]]


def test_a_history_without_jobs_says_so(chromium, make_instance):
    port = harness.free_port()
    make_instance(GPUS, listen=f'127.0.0.1:{port}')
    chromium.page.get(f'http://127.0.0.1:{port}/#/history')
    chromium.until_text('No jobs ended in the last 7 days.')
    chromium.button('1 day')
    chromium.until_text('No jobs ended in the last day.')
    chromium.button('mine only')
    chromium.until_text('No jobs ended in the last day with this selection.')
