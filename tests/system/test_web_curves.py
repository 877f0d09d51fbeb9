# SPDX-License-Identifier: MIT
"""The page of a job in a real Chromium: its curves below each other on one time axis, with a line for each of its events."""


import pytest

import harness
import test_park
import test_web_browser

chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
cuda = test_park.cuda
pytestmark = test_web_browser.pytestmark
LISTEN, GPUS = test_web_browser.LISTEN, test_web_browser.GPUS

TITLES = ['GPU load', 'GPU memory', 'Power']
MARKS = '''return [...document.querySelectorAll('.lane .event i')].map((one) => { const r = one.getBoundingClientRect(); return [one.parentElement.title.split(' ')[0], (r.left + r.right) / 2]; })'''
EDGES = '''return [...document.querySelectorAll('.track svg')].map((one) => { const r = one.getBoundingClientRect(); return [r.left, r.right]; })'''
LINES = '''return [...document.querySelectorAll('.track svg')].map((one) => [...one.querySelectorAll('.eventline')].map((line) => line.getBoundingClientRect().left))'''
TEXTS = '''return [...document.querySelectorAll('.lane')].map((lane) => [...lane.querySelectorAll('.event')].filter((one) => one.textContent).map((one) => { const r = one.getBoundingClientRect(); return [r.left, r.right]; }))'''


@pytest.mark.parametrize('width', [360, 1280, 3840])
@pytest.mark.parametrize('is_dark', [False, True], ids=['light', 'dark'])
def test_curves_and_events_share_one_time_axis(web, box, gate, width, is_dark):
    web.use_dark(is_dark)
    web.resize(width)
    job = box.submit('-q', '-J', 'measured', '-g', '2', '-t', '1h', '--', *gate.command())
    web.show(f'job/{job}')
    harness.until(lambda: [title.text for title in web.all('.track strong')] == TITLES, 'three curves')
    assert box.api('POST', f'/jobs/{job}/edit', {'time_limit': '50m'}).status == 200
    marks = harness.until(lambda: len(found := dict(web.page.execute_script(MARKS))) == 2 and found, 'the marks of started and edited')
    edges = web.page.execute_script(EDGES)
    assert len({(round(left), round(right)) for left, right in edges}) == 1, edges
    left, right = edges[0]
    assert marks['started'] == pytest.approx(left, abs=3) and left < marks['edited'] <= right + 4, (marks, edges)
    for lines in web.page.execute_script(LINES):
        assert sorted(lines) == pytest.approx(sorted(marks.values()), abs=4), (lines, marks)
    for texts in web.page.execute_script(TEXTS):
        assert all(a[1] <= b[0] + 1 for a, b in zip(texts, texts[1:])), texts
    assert web.page.execute_script('return document.documentElement.scrollWidth <= innerWidth')
    web.picture(f'curves-{width}-{"dark" if is_dark else "light"}')
    gate.open()
    box.wait(job)
    web.until_text('Over its run')
    harness.until(lambda: {name for name, _ in web.page.execute_script(MARKS)} == {'started', 'edited', 'ended'}, 'the end')
    web.use_dark(False)


def test_a_parked_stretch_is_shaded_and_has_no_curve(chromium, make_instance, cuda):
    port = harness.free_port()
    instance = make_instance(gpus='sim:1x24G', listen=f'127.0.0.1:{port}', arguments=cuda.arguments)
    job = test_park.start_work(instance, cuda)
    chromium.resize(1280)
    chromium.page.get(f'http://127.0.0.1:{port}/#/job/{job}')
    harness.until(lambda: chromium.all('.track'), 'curves')
    test_park.park(instance, job)
    harness.until(lambda: chromium.all('.parkedspan'), 'a shaded stretch')
    instance.mgpu('unpark', job, check=True)
    test_park.assert_runs(instance, cuda, job)
    wanted = {'started', 'park', 'parked', 'unpark', 'restoring', 'unparked'}
    marks = harness.until(lambda: wanted <= (found := dict(chromium.page.execute_script(MARKS))).keys() and found, 'its events')
    rect = chromium.page.execute_script("const r = document.querySelector('.parkedspan').getBoundingClientRect(); return [r.left, r.right]")
    assert rect == pytest.approx([marks['parked'], marks['restoring']], abs=6), (rect, marks)
    at = {event['type']: harness.seconds(event['at']) for event in instance.api('GET', f'/jobs/{job}').json['events']}
    left, right = chromium.page.execute_script(EDGES)[0]
    scale = (marks['unparked'] - marks['started']) / (at['unparked'] - at['started'])
    assert marks['park'] == pytest.approx(left + scale * (at['park'] - at['started']), abs=6) and marks['unparked'] <= right + 4


def test_samples_lie_where_the_job_ran(web, box):
    found = web.page.execute_async_script('''const [done] = arguments;
        import('/page/spans.js').then(({ spansOf, momentOf }) => {
            const at = (s) => new Date(s * 1000).toISOString(), event = (type, s, granted) => ({ type, at: at(s), granted });
            const job = { state: 'done', started_at: at(0), ended_at: at(100), granted: [{ uuid: 'a' }],
                events: [event('allocated', 0, [{ uuid: 'a' }]), event('parked', 10), event('unpark', 30), event('restoring', 40, [{ uuid: 'b' }]), event('unparked', 41), event('ended', 100)] };
            const spans = spansOf(job, 0);
            done([spans.map((span) => [span.kind, span.from / 1000, span.to / 1000, span.granted[0].uuid]), [5, 10, 11, 70].map((s) => momentOf(spans, s * 1000) / 1000)]);
        });''')
    assert found == [[['ran', 0, 10, 'a'], ['parked', 10, 40, 'a'], ['ran', 40, 100, 'b']], [5, 10, 41, 100]]
