# SPDX-License-Identifier: MIT
"""Short elements of arrays, whose start is reported with their end: each is told in full, and executed once."""

import time

import pytest

import harness

GPUS = 'sim:2x8G'
KINDS = (  # what the element does, its exit code, its state
    ('exit 0', 0, 'done'),
    ('exit 3', 3, 'failed'),
    ('kill -KILL $$', 137, 'failed'),
    ('sleep 0.005', 0, 'done'),  # about as long as the report of a start is put off
    ('sleep 0.05', 0, 'done'),
)
EACH = 6
KILLED = 80


@pytest.fixture(scope='module', params=['0', '400ms'])
def box(someone, request):
    """Without and with elements that are committed behind others."""
    box = harness.Instance(GPUS, client=someone, arguments=('--elements-ahead', request.param))
    box.start()
    yield box
    box.close()


def told_of(element):
    """Its events, less those of its place behind another one."""
    returned = sum(event['type'] == 'returned' for event in element['events'])
    kinds = [event['type'] for event in element['events'] if event['type'] not in ('inherits', 'returned')]
    return kinds[:1] + kinds[1 + returned:]


def moment(text):
    return time.mktime(time.strptime(text.split('.')[0], '%Y-%m-%dT%H:%M:%S')) + float('0.' + text.split('.')[1].rstrip('Z'))


def test_each_element_has_a_start_before_its_end_whatever_it_does(box):
    cases = '; '.join(f'{i}) {command} ;' for i, (command, _, _) in enumerate(KINDS))
    array = box.submit('-a', f'0-{EACH * len(KINDS) - 1}', '-o', '/dev/null', '--',
                       f'case $((MGPU_ARRAY_INDEX % {len(KINDS)})) in {cases}; esac')
    box.wait(array)
    for index in range(EACH * len(KINDS)):
        command, code, state = KINDS[index % len(KINDS)]
        element = box.job(f'{array}.{index}')
        events = {event['type']: moment(event['at']) for event in element['events']}
        assert (element['exit_code'], element['state']) == (code, state), (command, element)
        assert told_of(element) == ['submitted', 'allocated', 'started', 'ended'], (command, element['events'])
        assert events['allocated'] <= events['started'] <= events['ended'], (command, element['events'])


def test_an_element_that_runs_on_is_seen_to_run(box):
    gate = harness.Gate(box.place)
    array = box.submit('-a', '0', '-o', '/dev/null', '--', *gate.command())
    assert box.await_news(lambda: box.job(f'{array}.0').get('state') == 'running')
    gate.close()
    box.wait(array)


def test_elements_are_executed_once_while_the_agent_is_killed(box, tmp_path):
    path = tmp_path / 'executed'
    path.touch()
    path.chmod(0o666)
    array = box.submit('-g', '0', '-c', '0.1', '-a', f'0-{KILLED - 1}', '-o', '/dev/null', '--', f'echo $MGPU_ARRAY_INDEX >> {path}')
    for seen in range(KILLED // 8, KILLED, KILLED // 8):
        harness.until(lambda: len(path.read_text().split()) >= seen, f'{seen} elements')
        box.kill_agent()
    box.wait(array)
    assert sorted(map(int, path.read_text().split())) == list(range(KILLED))
    for index in range(KILLED):
        element = box.job(f'{array}.{index}')
        assert (element['state'], element['attempt']) == ('done', 1), element
        assert told_of(element) == ['submitted', 'allocated', 'started', 'ended'], element
