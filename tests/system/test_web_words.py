# SPDX-License-Identifier: MIT
"""What the page says in a real Chromium where there is little to show: nothing yet, nothing measured, no connection; and where the way back leads."""

import re

import pytest

import harness
import test_web_browser

Keys = test_web_browser.Keys
chromium, web = test_web_browser.chromium, test_web_browser.web  # fixtures
pytestmark = test_web_browser.pytestmark
LISTEN, GPUS, PAGE = test_web_browser.LISTEN, test_web_browser.GPUS, test_web_browser.PAGE


@pytest.fixture
def empty(chromium, make_instance):
    """The page of an instance in which nothing has happened."""
    port = harness.free_port()
    make_instance('none', listen=f'127.0.0.1:{port}')
    return lambda view: chromium.page.get(f'http://127.0.0.1:{port}/#/{view}')


@pytest.mark.parametrize('view, words', [
    ('now', ['No GPUs were found', 'No jobs are running.', 'No jobs are waiting.', 'No jobs have ended']),
    ('users', ['No user has used a GPU recently.', 'No group has']), ('timeline', ['No jobs used GPUs in this period'])])
def test_an_empty_view_says_so_in_words(chromium, empty, view, words):
    empty(view)
    for text in words:
        chromium.until_text(text)


def test_a_list_that_a_filter_empties_says_that(web, box, gate):
    box.submit('-q', '-J', 'shown', '-g', '4', '--', *gate.command())
    box.submit('-q', '-J', 'queued', '-g', '4', '--', 'true')
    web.until_text('queued', '[aria-label=Queue]')
    web.one('.filter').send_keys('nosuchword')
    for name in ('Running', 'Queue', 'Ended'):
        web.until_text(f'{name}: no jobs match the filter.', f'[aria-label={name}]')
    gate.open()


def test_a_job_that_prints_nothing_says_so_instead_of_an_empty_box(web, box, gate):
    job = box.submit('-q', '-J', 'silent', '-g', '0', '--', 'sh', '-c', f'read word < {gate.path}; echo words; read word < {gate.path}')
    box.wait(job, 'running')
    web.show(f'job/{job}')
    web.until_text('No output yet.', '[aria-label=Output]')
    assert not web.one('.log').is_displayed()
    gate.open()
    web.until_text('words', '.log')
    assert 'No output' not in web.text('[aria-label=Output]')
    gate.open()
    box.wait(job)
    ended = box.submit('-q', '-g', '0', '--', 'true')
    box.wait(ended)
    web.show(f'job/{ended}')
    web.until_text('No output.', '[aria-label=Output]')
    web.complaints()  # a range of an empty file


def test_a_job_whose_log_is_split_has_a_box_for_each_part(web, box):
    job = box.submit('-q', '--split-log', '-g', '0', '--', 'sh', '-c', 'echo "words of progress"; echo "why it fails" >&2; exit 3')
    box.wait(job)
    web.show(f'job/{job}')
    web.until_text('words of progress', '[aria-label="Standard output"]')
    web.until_text('why it fails', '[aria-label="Standard error"]')
    silent = box.submit('-q', '--split-log', '-g', '0', '--', 'true')
    box.wait(silent)
    web.show(f'job/{silent}')
    web.until_text('No standard output.', '[aria-label="Standard output"]')
    web.until_text('No standard error output.', '[aria-label="Standard error"]')
    web.complaints()  # a range of an empty file


def test_an_ended_array_names_its_elements_with_links_and_ends_instead_of_saying_that_it_never_ran(web, box):
    job = box.submit('-q', '-g', '0', '-a', '0-2', '--', 'sh', '-c', 'exit $((MGPU_ARRAY_INDEX % 2))')
    box.wait(job)
    web.show(f'job/{job}')
    web.until_text(f'{job}.1 exit 1', '[aria-label=Elements]')
    assert web.text('[aria-label=Elements]').split() == ['Elements', f'{job}.0', '✓', f'{job}.1', 'exit', '1', f'{job}.2', '✓']
    text = web.text()
    assert 'Of its 3 elements, 2 done, 1 failed.' in text and 'never ran' not in text and 'after –' not in text, text
    assert [row.text.split()[1] for row in web.all('.events tbody tr')] == ['submitted'], 'their events are on their pages'
    web.all('.elements a')[1].click()
    web.until_text('exit 1')
    assert web.text('h1').startswith(f'{job}.1')


def test_what_was_not_measured_is_left_out(web, box, gate):
    for options in (('-g', '0'), ('-g', '1')):
        job = box.submit('-q', *options, '-c', '1', '--', 'true')
        box.wait(job)
        web.show(f'job/{job}')
        web.until_text('Post-mortem')
        text = web.text()
        assert not re.search(r'peak –|– on average|of –|1 CPUs|1 GPUs', text), text


def test_a_waiting_job_has_its_interval_as_in_why(web, box, gate):
    for _ in range(4):
        box.submit('-q', '-J', 'holder', '-g', '1', '-t', '9h', '--', *gate.command())
    for _ in range(3):
        box.submit('-q', '-J', 'ahead', '-g', '4', '-t', '9h', '--', 'true')
    waiting = box.submit('-q', '-J', 'last', '-g', '4', '-t', '1h', '--', 'true')
    why = box.api('GET', f'/jobs/{waiting}/why').json
    assert why['eta_from'] and why['eta_from'][:16] != why['eta_until'][:16], why
    web.show(f'job/{waiting}')
    web.until_text('(8 of 10 such jobs), about ', '[aria-label="Why it waits"]')
    assert re.search(r'Starts between .+ and .+ \(8 of 10 such jobs\), about .+ \(.+\); at the latest .+ \(.+\)\.', web.text('[aria-label="Why it waits"]'))
    web.show('submit')
    web.one('#f-command').send_keys('true')
    web.until_text('(8 of 10 such jobs), about ', '.verdict')
    gate.open(4)


def test_a_lost_connection_says_since_when_and_what_goes_on(web, box, gate):
    box.submit('-q', '-J', 'goes-on', '-g', '1', '--', *gate.command())
    web.until_text('goes-on', '[aria-label=Running]')
    box.stop()
    web.until_text('No connection to mgpud since ', '#banner')
    text = web.text('#banner')
    assert re.search(r'since \d\d:\d\d:\d\d: this page shows the state at that time\. Running jobs are not affected', text), text
    box.start()
    harness.until(lambda: not web.one('#banner').is_displayed(), 'an end of the banner')
    gate.open()
    web.complaints()


def test_the_columns_of_users_are_explained_on_the_view(web, box):
    box.wait(box.submit('-q', '-g', '1', '--', 'true'))
    web.show('users')
    web.until_text('Turn, from 1 to 0, orders waiting jobs')


def test_the_way_back_after_a_submit_skips_the_form(web, box, gate):
    web.type('4')
    web.until_text('GPUs by sim')
    web.show('submit')
    web.one('#f-command').send_keys(f'read word < {gate.path}')
    web.button('Submit')
    web.until_text('running', '.jobhead')
    web.type(Keys.ESCAPE)
    harness.until(lambda: web.page.current_url.endswith('#/nodes'), 'the view before the form')
    web.type('6')
    harness.until(lambda: web.page.current_url.endswith('#/timeline'), 'a key that is not swallowed')
    gate.open()


def test_the_way_back_never_leaves_the_page(web, box):
    job = box.submit('-q', '-g', '0', '--', 'true')
    box.wait(job)
    web.page.get('about:blank')
    web.show(f'job/{job}')
    web.until_text('Post-mortem')
    web.type(Keys.ESCAPE)
    harness.until(lambda: web.page.current_url.endswith('#/now'), 'the overview')
    web.until_text('GPUs in use', '.tiles')


def test_every_end_of_a_job_has_words():
    names = set(re.findall(r'^    \[END_\w+\] = "(\w+)",$', harness.read('src/job/state.c').partition('end_names[')[2].partition('};')[0], re.M))
    words = harness.read('web/format.js').partition('const ENDS = {')[2].partition('};')[0]
    assert len(names) > 15 and names - {'none', 'exit', 'signal'} == set(re.findall(r"(\w+): '", words))
