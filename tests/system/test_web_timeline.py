# SPDX-License-Identifier: MIT
"""The timeline of the page in a real Chromium: what is drawn solid is expected and does not overlap, limits are tails, parked stretches are hatched."""

import pytest

import harness
import test_park
import test_park_auto
import test_web_browser

chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
cuda = test_park.cuda
pytestmark = test_web_browser.pytestmark
LISTEN, GPUS = test_web_browser.LISTEN, test_web_browser.GPUS

# [(class, left, right, height)] of the rectangles of the bars whose names have these words.
PIECES = '''return [...document.querySelectorAll('.timeline a')].filter((one) => one.getAttribute('aria-label').includes(arguments[0]))
    .flatMap((one) => [...one.querySelectorAll('rect')].map((rect) => { const r = rect.getBoundingClientRect(); return [rect.classList[0], r.left, r.right, r.height]; }))'''


# [(left, right)] of the intervals in which waiting jobs start.
BRACKETS = '''return [...document.querySelectorAll('.timeline .interval')].map((one) => { const r = one.getBoundingClientRect(); return [r.left, r.right]; })'''


def pieces(web, words, kind):
    return [one for one in web.page.execute_script(PIECES, words) if one[0] == kind]


@pytest.mark.parametrize('width', [360, 1280, 3840])
@pytest.mark.parametrize('is_dark', [False, True], ids=['light', 'dark'])
def test_what_is_expected_does_not_overlap_and_a_limit_is_a_thin_tail(web, box, gate, width, is_dark):
    web.resize(width)
    web.use_dark(is_dark)
    for _ in range(4):  # from which the scheduler learns
        box.wait(box.submit('-q', '-J', 'runs', '-g', '1', '-t', '2h', '--', 'true'))
    for _ in range(3):
        box.wait(box.submit('-q', '-J', 'runs', '-g', '1', '-t', '2h', '--', *gate.command()), 'running')
    box.submit('-q', '-J', 'waits', '-g', '4', '-t', '3h', '--', 'true')
    web.show('timeline')
    web.button('± 6 h')
    starts = harness.until(lambda: pieces(web, ' waits, 4 GPUs, expected ', 'forecast'), 'the expected start')
    ends = harness.until(lambda: len(found := pieces(web, ' runs, expected until ', 'expected')) == 3 and found, 'three expected ends')
    now = web.page.execute_script("return document.querySelector('.timeline .now').getBoundingClientRect().left")
    assert all(left >= now - 2 and right <= starts[0][1] + 3 for _, left, right, _ in ends), (ends, starts)
    tails = pieces(web, ' runs, expected until ', 'tail')
    assert len(tails) == 3 and all(right > starts[0][1] + 10 for _, _, right, _ in tails), 'their limits are later'
    assert all(tail[3] < solid[3] / 2 for tail, solid in zip(tails, ends)), 'and thin'
    assert pieces(web, ' waits, 4 GPUs, expected ', 'tail'), 'so is the limit of the waiting job'
    (bracket,) = web.page.execute_script(BRACKETS)
    assert bracket[0] <= starts[0][1] + 2 and bracket[0] < bracket[1], 'the interval of the start begins before what is expected'
    assert ', start between ' in (label := web.one('.timeline a[aria-label*=" waits, 4 GPUs"]').get_attribute('aria-label')), label
    web.picture(f'timeline-{width}-{"dark" if is_dark else "light"}')
    web.use_dark(False)
    gate.open(3)


def test_the_expected_end_of_a_job_is_in_the_lists(box, gate):
    running = box.submit('-q', '-g', '4', '-t', '1h', '--', *gate.command())
    box.wait(running, 'running')
    waiting = box.submit('-q', '-g', '1', '-t', '1h', '--', 'true')
    held = box.submit('-q', '-g', '1', '--hold', '--', 'true')
    jobs = {job['id']: job for job in box.api('GET', f'/jobs?ids={running},{waiting},{held}').json['jobs']}
    assert jobs[running]['started_at'] < jobs[running]['expected_end'] <= jobs[waiting]['eta'] < jobs[waiting]['expected_end']
    assert jobs[waiting]['eta_from'] <= jobs[waiting]['eta_until'] <= jobs[waiting]['eta_latest']
    why = box.api('GET', f'/jobs/{waiting}/why').json
    assert abs(harness.seconds(why['eta_from']) - harness.seconds(jobs[waiting]['eta_from'])) < 60, 'as `why` has it'
    assert jobs[held]['eta_from'] is None and jobs[held]['eta_until'] is None
    assert jobs[held]['eta'] is None and jobs[held]['expected_end'] is None
    gate.open()
    box.wait(waiting)
    assert box.job(running)['expected_end'] is None


def test_what_is_said_of_one_gpu_is_in_the_singular(web, box, gate):
    box.submit('-q', '-J', 'holds', '-g', '4', '-t', '1h', '--', *gate.command())
    box.submit('-q', '-J', 'single', '-g', '1', '-t', '1h', '--', 'true')
    web.show('timeline')
    harness.until(lambda: pieces(web, ' single, 1 GPU, expected ', 'forecast'), 'the waiting job')
    assert '1 GPUs' not in web.text('body')
    gate.open()


def test_a_parked_stretch_is_hatched_and_others_are_drawn_over_it(chromium, make_instance, cuda):
    port = harness.free_port()
    instance = make_instance(gpus='sim:1x24G', listen=f'127.0.0.1:{port}', arguments=cuda.arguments)
    job = test_park.start_work(instance, cuda, '-J', 'parks', '-t', '1h')
    test_park.park(instance, job)
    other = instance.submit('-q', '-J', 'between', '-g', '1', '-t', '1h', '--', 'sleep', '1000')
    instance.wait(other, 'running')
    chromium.resize(1280)
    chromium.page.get(f'http://127.0.0.1:{port}/#/timeline')
    chromium.until_text('live', 'header')
    (hatch,) = harness.until(lambda: pieces(chromium, ' parks, parked', 'hatch'), 'a hatched stretch')
    assert not pieces(chromium, ' parks, parked', 'expected'), 'it has no GPUs, and it is not known until when'
    names = [one.get_attribute('aria-label') for one in chromium.all('.timeline a')]
    assert [' parks, ' in name for name in names] == [True, False], names
    instance.mgpu('cancel', other, check=True)
    instance.mgpu('unpark', job, check=True)
    test_park.assert_runs(instance, cuda, job)
    harness.until(lambda: pieces(chromium, ' parks, expected until', 'expected'), 'its expected end')
    harness.until(lambda: len(pieces(chromium, ' parks, expected until', 'ran')) == 2, 'its stretches before and after')
    assert pieces(chromium, ' parks, expected until', 'hatch')[0][1] <= hatch[1] + 2
    limit = harness.until(lambda: chromium.one('.timeline a[aria-label*=" parks, "]').get_attribute('aria-label').rpartition('limit ')[2], 'its limit')
    assert limit and limit != '–'


def test_the_page_says_for_whom_a_job_is_parked_and_until_when(chromium, make_instance, cuda):
    """On the timeline, in the lists, and on the pages of both jobs."""
    port = harness.free_port()
    instance = make_instance(gpus='sim:1x24G', listen=f'127.0.0.1:{port}', arguments=('--park', 'auto', *test_park_auto.TIMES, *cuda.arguments))
    assert test_park_auto.prove(instance).status == 200
    host = test_park.start_work(instance, cuda, '-J', 'host', '-t', '2h')
    harness.until(lambda: instance.job(host)['run_seconds'] >= 6, 'it has run for long enough')
    guest = instance.submit('-q', '-J', 'guest', '-g', '1', '-t', '20s', '--', 'sleep', '1000')
    test_park.await_phase(instance, host, 'waiting')
    words = f'parked for job {guest}, back by '
    chromium.resize(1280)
    chromium.page.get(f'http://127.0.0.1:{port}/#/timeline')
    harness.until(lambda: pieces(chromium, words, 'hatch'), 'a hatched stretch with its guest')
    chromium.picture('timeline-parked')
    chromium.page.get(f'http://127.0.0.1:{port}/#/now')
    chromium.until_text(words)
    chromium.page.get(f'http://127.0.0.1:{port}/#/job/{host}')
    chromium.until_text(words)
    chromium.page.get(f'http://127.0.0.1:{port}/#/job/{guest}')
    chromium.until_text(f'job {host}, which is parked for it')
