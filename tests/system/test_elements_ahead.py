# SPDX-License-Identifier: MIT
"""Elements of arrays that are committed behind others: each is executed once, alone on its GPU, and has its own log and
status, whatever is done to the array, its node or the programs in the middle."""

import collections
import os

import pytest

import harness
import invariants
from test_recovery import read_jobs

GPUS = 8
COUNT = 100
LOOK = COUNT * 3 // 10  # executions after which something happens
ELEMENT = 'echo begin $CUDA_VISIBLE_DEVICES $MGPU_ARRAY_INDEX >> {told}; echo out $MGPU_ARRAY_INDEX; sleep 0.2; ' \
          'echo end $CUDA_VISIBLE_DEVICES $MGPU_ARRAY_INDEX >> {told}; exit $((MGPU_ARRAY_INDEX % 3))'


class Stretch:
    """An array of short elements that write in one file when they begin and end."""

    def __init__(self, instance, folder, limit='', options=()):
        self.instance, self.told = instance, os.path.join(folder, 'told')
        with open(self.told, 'w', encoding='ascii'):
            pass
        os.chmod(self.told, 0o666)
        self.array = instance.submit('-g', '1', '-c', '0.1', '-a', f'0-{COUNT - 1}{limit}', *options, '--', ELEMENT.format(told=self.told))

    def lines(self):
        """What the elements have written: (word, GPU, index)."""
        with open(self.told, encoding='ascii') as source:
            return [(word, int(gpu), int(index)) for word, gpu, index in map(str.split, source)]

    def begun(self):
        return [index for word, _, index in self.lines() if word == 'begin']

    def await_begun(self, count):
        harness.until(lambda: len(self.begun()) >= count, f'{count} elements')

    def elements(self):
        """Those that are jobs of their own, by index."""
        return {job['array_index']: job for job in read_jobs(self.instance).values() if job['array_job'] == self.array}

    def open_elements(self):
        return [job for job in self.elements().values() if job['state'] in ('starting', 'running', 'stopping')]

    def await_rest(self):
        """Until none of them has, or is committed on, a GPU."""
        self.instance.await_news(lambda: not self.open_elements())
        assert not self.open_elements()

    def check_alone(self):
        """No two were on a GPU at the same time, and each that began has ended."""
        running = {}
        for word, gpu, index in self.lines():
            assert running.get(gpu) == (None if word == 'begin' else index), (word, gpu, index, running)
            running[gpu] = index if word == 'begin' else None
        assert not any(value is not None for value in running.values()), running

    def most_at_once(self):
        count = most = 0
        for word, _, _ in self.lines():
            count += 1 if word == 'begin' else -1
            most = max(most, count)
        return most

    def check_all(self):
        """Each was executed once, and is told as it was; how many were committed behind another, and had its GPUs."""
        self.instance.wait(self.array)
        assert sorted(self.begun()) == list(range(COUNT))
        self.check_alone()
        kinds = collections.Counter()
        for index, element in self.elements().items():
            element = self.instance.job(element['id'], user=self.instance.user)
            assert (element['exit_code'], element['ended_by']) == (index % 3, 'exit'), element
            assert self.instance.output(element['id']) == f'out {index}\n', element
            kinds.update(kinds_of(element))
        return kinds

    def check_store(self):
        """No GPU was allocated twice, nothing is left, and the events fold to the tables."""
        broken = list(invariants.check_bookings(invariants.read_events(self.instance)))
        self.instance.restart()
        broken += invariants.check_left_over(self.instance)
        self.instance.stop()
        broken += invariants.fsck(self.instance)
        assert not broken, '\n'.join(broken[:20])
        self.instance.start()


def kinds_of(element):
    """allocated: at once; behind: after another one; the other words are events."""
    return ['behind' if 'behind' in event else event['type'] for event in element['events']]


@pytest.fixture
def box(make_instance):
    return make_instance(gpus=f'sim:{GPUS}x24G', arguments=('--elements-ahead', '200ms'))


@pytest.fixture
def stretch(box, place):
    return Stretch(box, place)


def test_each_element_is_executed_once_and_most_are_behind_others(stretch):
    kinds = stretch.check_all()
    print(dict(kinds))
    assert kinds['inherits'] + kinds['returned'] == kinds['behind'] > COUNT // 4, kinds
    stretch.check_store()


def test_by_default_most_are_behind_others(make_instance, place):
    kinds = Stretch(make_instance(gpus=f'sim:{GPUS}x24G'), place).check_all()
    assert kinds['behind'] > COUNT // 4, kinds


def test_with_a_limit_no_more_run_at_a_time_and_most_are_behind_others(box, place):
    stretch = Stretch(box, place, limit=f'%{GPUS // 2}')
    kinds = stretch.check_all()
    assert kinds['behind'] > COUNT // 4, kinds
    assert stretch.most_at_once() == GPUS // 2
    stretch.check_store()


def test_an_array_that_has_waited_for_a_job_is_like_others(box, place):
    gate = harness.Gate(place)
    before = box.submit('--', *gate.command())
    stretch = Stretch(box, place, options=('--after', f'{before}:ok'))
    box.wait(before, 'running')
    assert not stretch.begun()
    gate.open()
    assert stretch.check_all()['behind'] > COUNT // 4
    stretch.check_store()


def test_switched_off_no_element_is_behind_another(make_instance, place):
    kinds = Stretch(make_instance(gpus=f'sim:{GPUS}x24G', arguments=('--elements-ahead', '0')), place).check_all()
    assert kinds == {kind: COUNT for kind in ('submitted', 'allocated', 'started', 'ended')}


def test_what_has_not_begun_when_the_array_is_cancelled_never_does(stretch):
    stretch.await_begun(LOOK)
    stretch.instance.mgpu('cancel', str(stretch.array), check=True)
    assert stretch.instance.wait(stretch.array)['state'] == 'cancelled'
    assert not stretch.open_elements()
    begun = stretch.begun()
    assert len(begun) == len(set(begun)) < COUNT
    elements = stretch.elements()
    started = {index for index, element in elements.items() if element['started_at'] is not None}
    assert started >= set(begun)
    assert all(elements[index]['state'] == 'cancelled' for index in started - set(begun))  # before their first line
    stretch.check_store()
    assert stretch.begun() == begun


def test_a_held_array_goes_on_when_it_is_released(stretch):
    stretch.await_begun(LOOK)
    stretch.instance.mgpu('hold', str(stretch.array), check=True)
    begun = len(stretch.begun())
    stretch.await_rest()
    assert len(stretch.begun()) <= begun + GPUS  # those that were committed then
    stretch.check_alone()
    assert stretch.instance.job(stretch.array)['state'] == 'queued'
    stretch.instance.mgpu('release', str(stretch.array), check=True)
    assert stretch.check_all()['behind'] > 0
    stretch.check_store()


def test_a_drained_node_begins_no_more(stretch):
    root = stretch.instance.user
    stretch.await_begun(LOOK)
    name = stretch.instance.api('GET', '/nodes').json['nodes'][0]['name']
    stretch.instance.mgpu('node', 'drain', name, user=root, check=True)
    begun = len(stretch.begun())
    stretch.await_rest()
    assert len(stretch.begun()) <= begun + GPUS
    stretch.check_alone()
    stretch.instance.mgpu('node', 'resume', name, user=root, check=True)
    assert stretch.check_all()['behind'] > 0
    stretch.check_store()


def kill_mgpud(instance):
    instance.kill()
    instance.start()


VICTIMS = {'mgpud': kill_mgpud, 'agent': lambda instance: instance.kill_agent()}


@pytest.mark.parametrize('limit', ['', f'%{GPUS // 2}'])
@pytest.mark.parametrize('victim', VICTIMS)
def test_no_death_makes_an_element_run_twice_or_not_at_all(box, place, victim, limit):
    stretch = Stretch(box, place, limit)
    for seen in range(COUNT // 5, COUNT, COUNT // 5):
        stretch.await_begun(seen)
        VICTIMS[victim](stretch.instance)
    kinds = stretch.check_all()
    print(victim, dict(kinds))
    assert kinds['behind'] > 0
    assert not limit or stretch.most_at_once() == GPUS // 2
    stretch.check_store()
