# SPDX-License-Identifier: MIT
"""The numbers of an array's elements come from its own record: no limit of a list, no retention and no screen cuts them."""

import os
import pty

import pytest

import harness
from test_mcp import Assistant

GPUS = 'sim:2x8G'
ELEMENTS = 201  # one more of a state than a terminal shows
COUNTS = '201 elements ended: 200 done, 1 failed'


@pytest.fixture(scope='module')
def swept(someone):
    """An instance with an array whose first element fails, and one behind it that pushes its elements out of every short list."""
    box = harness.Instance(GPUS, client=someone)
    box.start()
    yield box, fill(box)
    box.close()


def fill(box):
    array = box.submit('-g', '0', '-c', '0.05', '-a', f'0-{ELEMENTS - 1}', '-J', 'first', '-o', '/dev/null', '--', '[ $MGPU_ARRAY_INDEX -ge 1 ]')
    box.wait(array)
    box.wait(box.submit('-g', '0', '-c', '0.05', '-a', '0-9', '-J', 'second', '-o', '/dev/null', '--', 'true'))
    return array


def on_terminal(box, *words):
    primary, secondary = pty.openpty()
    done = box.popen(*words, stdin=secondary, stdout=secondary, stderr=secondary, env={'COLUMNS': '200'})
    os.close(secondary)
    said = b''
    try:
        while chunk := os.read(primary, 65536):
            said += chunk
    except OSError:  # the command has closed it
        pass
    os.close(primary)
    assert done.wait(harness.DEADLINE_S) == 0, said
    return said.decode()


def row_of(text, name):
    rows = [row for row in text.splitlines() if name in row]
    assert len(rows) == 1, text
    return rows[0]


@pytest.mark.parametrize('words', [('ps',), ('ps', '-a'), ('ps', '--limit', '1'), ('ps', '--limit', '0'), ('ps', '--ended'), ('ps', '-s', 'failed'),
                                   ('ps', '-s', 'failed', '--limit', '1'), ('ps', '-n', 'fir*'), ('ps', '-s', 'done,failed'), ()], ids=' '.join)
@pytest.mark.parametrize('is_terminal', [False, True], ids=['pipe', 'terminal'])
def test_a_list_shows_an_array_with_a_failed_element_as_failed(swept, words, is_terminal):
    box, _ = swept
    if words == ('ps', '--limit', '1'):  # the newest array alone
        words = ('ps', '-n', 'first', '--limit', '1')
    shown = on_terminal(box, *words) if is_terminal else box.mgpu(*words, check=True).out
    row = row_of(shown, 'first')
    assert 'failed' in row.split(COUNTS)[0] and COUNTS in row, shown


def test_each_state_lists_an_array_that_has_such_elements(swept):
    box, _ = swept
    row = row_of(box.mgpu('ps', '-s', 'done', '-n', 'first', check=True).out, 'first')
    assert row.split()[2] == 'done' and COUNTS in row, row
    for state in ('cancelled', 'queued', 'held', 'running'):
        assert 'first' not in box.mgpu('ps', '-s', state, check=True).out, state


def test_several_arrays_have_a_row_each_on_a_terminal(swept):
    box, _ = swept
    shown = on_terminal(box, 'ps')
    assert '10 elements ended: 10 done' in row_of(shown, 'second') and COUNTS in row_of(shown, 'first'), shown


def test_what_is_said_of_one_array_has_the_same_numbers(swept):
    box, array = swept
    show = box.mgpu('show', array, check=True).out
    assert 'some of its elements failed: 200 done, 1 failed' in show and '201 of 201 ended: 200 done, 1 failed' in show, show
    assert COUNTS in box.mgpu('ps', array, check=True).out
    assert f'{COUNTS}.' in box.mgpu('postmortem', array, check=True).out
    waited = box.mgpu('wait', array)
    assert waited.code == 1, waited
    elements = {'all': 201, 'waiting': 0, 'open': 0, 'done': 200, 'failed': 1, 'cancelled': 0, 'exit_code': 1}
    assert box.job(array)['elements'] == elements
    assert box.job(f'{array}.0')['elements'] is None


def test_an_assistant_gets_the_array_in_a_short_list(swept):
    box, array = swept
    assistant = Assistant(box)
    jobs = {job['id']: job for job in assistant.get('list_jobs', limit=2)['jobs']}
    assistant.close()
    assert len(jobs) == 2 and jobs[array]['elements']['failed'] == 1, jobs


def test_an_array_that_still_runs_counts_what_has_ended(box, gate):
    script = f'case $MGPU_ARRAY_INDEX in 0) exit 4;; 1) exit 0;; *) read x < {gate.path};; esac'
    array = box.submit('-g', '0', '-c', '0.1', '-a', '0-4%3', '-J', 'partly', '--', 'sh', '-c', script)
    counts = {'all': 5, 'waiting': 0, 'open': 3, 'done': 1, 'failed': 1, 'cancelled': 0, 'exit_code': 4}
    harness.until(lambda: box.job(array)['elements'] == counts, 'two have ended and three run')
    box.mgpu('cancel', f'{array}.3', check=True)
    harness.until(lambda: box.job(array)['elements']['cancelled'] == 1, 'the cancelled one is counted')
    row = row_of(on_terminal(box, 'ps', '-s', 'failed'), 'partly')
    assert '3 elements ended: 1 done, 1 failed, 1 cancelled' in row and 'failed' in row, row
    gate.open(2)
    box.wait(array)


def test_elements_that_never_began_are_cancelled_with_their_array(box):
    array = box.submit('-g', '0', '--hold', '-a', '0-4', '-J', 'never', '--', 'true')
    box.mgpu('cancel', array, check=True)
    assert box.wait(array)['elements']['cancelled'] == 5
    assert '5 elements ended: 5 cancelled' in row_of(box.mgpu('ps', '-s', 'cancelled', check=True).out, 'never')


def test_elements_that_are_no_longer_kept_are_still_counted(make_instance):
    box = make_instance(GPUS, arguments=['--keep-max', '2'])
    array = box.submit('-g', '0', '-c', '0.05', '-a', '0-9', '-J', 'kept', '--', '[ $MGPU_ARRAY_INDEX -ge 1 ]')
    box.wait(array)
    counts = box.job(array)['elements']
    harness.until(lambda: len(box.api('GET', '/history').json['jobs']) <= 2, 'most elements are no longer kept')
    box.restart()
    assert box.job(array)['elements'] == counts and counts['done'] == 9 and counts['failed'] == 1, counts
    assert '10 elements ended: 9 done, 1 failed' in row_of(box.mgpu('ps', '--ended', check=True).out, 'kept')
