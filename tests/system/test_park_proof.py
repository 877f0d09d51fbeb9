# SPDX-License-Identifier: MIT
"""Whether parking was tested on a node: kept by mgpud, and worth something only with the driver that was tested."""

import json
import os
import re
import subprocess

import pytest

import harness
from nvml import Nvml
from proof import GIB, claims, node, prove, state


@pytest.fixture
def nvml(place):
    made = Nvml(place)
    made.add(bus=0x3b, uuid='GPU-a', model='NVIDIA One')
    made.say('driver 580.10')
    made.write()
    return made


@pytest.fixture
def box(make_instance, nvml):
    return make_instance(gpus='auto', arguments=nvml.arguments)


def finding(instance):
    """(verdict, text, fix) of doctor about it."""
    found = [(line['verdict'], line['text'], line['fix']) for line in instance.mgpu('doctor', '--json').json['findings']
             if line['name'] == 'park test']
    return found[0] if found else None


def sample(instance, name):
    connection = instance.connection()
    connection.request('GET', '/metrics')
    text = connection.getresponse().read().decode()
    connection.close()
    lines = [line for line in text.splitlines() if line.startswith(name + '{')]
    assert len(lines) == 1, lines
    return float(lines[0].rsplit(' ', 1)[1])


def test_a_node_where_nothing_can_be_parked_has_nothing_to_test(make_instance):
    instance = make_instance(gpus='sim:1x24G')
    assert state(instance) == 'none' and finding(instance) is None


def test_a_test_that_passed_is_kept_over_restarts_and_kills(box):
    assert state(box) == 'untested' and sample(box, 'mgpu_node_parking_proven') == 0
    assert prove(box).status == 200
    for again in (lambda: None, box.restart, lambda: (box.kill(), box.start())):
        again()
        parking = node(box)['parking']
        assert (parking['state'], parking['driver'], parking['models']) == ('passed', '580.10', ['NVIDIA One'])
        assert (parking['bytes'], parking['elsewhere'], parking['text']) == (40 * GIB, 'passed', None)
        assert parking['save_bytes_per_s'] == 40 * GIB * 1000 // 23000
        assert parking['load_bytes_per_s'] == 40 * GIB * 1000 // 8000 and parking['tested_at']
    assert sample(box, 'mgpu_node_parking_proven') == 1
    assert int(sample(box, 'mgpu_node_park_save_rate')) == 40 * GIB * 1000 // 23000
    assert box.mgpu('nodes', '-o', 'parking', '-H', check=True).out.strip() == 'passed'


def test_another_driver_has_to_be_tested_again_and_the_old_one_counts_when_it_is_back(box, nvml):
    def replace(old, new):
        nvml.unsay(f'driver {old}')
        nvml.say(f'driver {new}')
        nvml.write()
        box.kill_gpu_helper()

    prove(box)
    replace('580.10', '590.20')
    harness.until(lambda: state(box) == 'outdated', 'the test is outdated')
    assert sample(box, 'mgpu_node_parking_proven') == 0
    verdict, text, fix = finding(box)
    assert verdict == 'off' and '590.20' in text and '580.10' in text and fix == f'mgpu gpu test --park {node(box)["name"]}'
    late = prove(box, driver='580.10')  # measured before the driver was replaced
    assert late.status == 409 and '590.20 now' in late.json['detail'], late
    replace('590.20', '580.10')
    harness.until(lambda: state(box) == 'passed', 'the driver that was tested is back')


def test_a_gpu_of_another_model_has_to_be_tested_too(box, nvml):
    prove(box)
    nvml.add(bus=0x5b, uuid='GPU-b', model='NVIDIA Two')
    nvml.write()
    box.restart()
    box.kill_gpu_helper()
    harness.until(lambda: state(box) == 'outdated', 'the other model was not tested')
    assert prove(box).status == 200 and state(box) == 'passed'


@pytest.mark.parametrize('wrong, verdict', [(False, 'off'), (True, 'bad')], ids=['refused', 'wrong'])
def test_doctor_says_what_failed_and_what_to_type(box, wrong, verdict):
    name = node(box)['name']
    assert finding(box) == ('off', 'never tested here, so park: auto parks nothing (driver 580.10)',
                            f'mgpu gpu test --park {name}')
    assert prove(box, passed=False, wrong=wrong, text='three words were wrong').status == 200
    assert finding(box) == (verdict, 'failed with driver 580.10: three words were wrong', f'mgpu gpu test --park {name}')
    assert box.mgpu('doctor').code == (1 if wrong else 0)
    assert state(box) == 'failed' and sample(box, 'mgpu_node_parking_proven') == 0
    prove(box)
    assert finding(box)[:2] == ('on', 'passed with driver 580.10')


def test_what_cannot_be_the_result_of_a_test_is_refused_with_a_sentence(box):
    long = 'x' * 600
    for changes, words in (
            ({'driver': None}, 'driver is missing'), ({'driver': ''}, 'driver is missing'), ({'driver': 'y' * 65}, 'driver has 65 bytes'),
            ({'models': []}, 'models is missing'), ({'models': 'one'}, 'models must be an array'),
            ({'passed': 1}, 'passed must be true or false'), ({'text': 'why'}, 'a test that passed has neither text nor wrong'),
            ({'wrong': True}, 'a test that passed has neither text nor wrong'), ({'passed': False}, 'text is missing'),
            ({'passed': False, 'text': long}, 'text has 600 bytes'), ({'elsewhere': 'perhaps'}, "elsewhere: unknown value 'perhaps'"),
            ({'least_bytes': 0}, 'least_bytes is 0'), ({'least_bytes': -1}, 'least_bytes'), ({'most_bytes': 1}, 'most_bytes: 1'),
            ({'least_save_ms': -1}, 'least_save_ms: -1'), ({'most_load_ms': 86400001}, 'most_load_ms: 86400001'),
            ({'most_save_ms': 'long'}, 'most_save_ms must be'), ({'rates': 1}, 'rates')):
        answer = prove(box, **changes)
        assert answer.status in (400, 413) and words in answer.json['detail'], (changes, answer)
    assert box.api('POST', '/nodes/nowhere/parking', claims(box), user=box.user).status == 404
    assert state(box) == 'untested'


def test_only_operators_say_that_parking_works(box, someone):
    path = f'/nodes/{node(box)["name"]}/parking'
    answer = box.api('POST', path, claims(box), user=someone)
    assert answer.status == 403, answer
    assert state(box) == 'untested'


def test_a_test_is_an_event_and_the_journal_is_replayed_with_it(box, place):
    prove(box)
    path = f'{place}/journal'
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    with open(path, encoding='utf-8') as lines:
        assert any('node_parking' in line and '40 GiB saved at 1.9 GB/s and restored at 5.4 GB/s' in line for line in lines)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True, text=True,
                          check=False, timeout=harness.DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr


def settings_of(box, place):
    """The cost of parking in each record of the settings."""
    path = f'{place}/journal'
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    with open(path, encoding='utf-8') as lines:
        changes = [event['change'] for event in map(json.loads, lines) if event.get('type') == 'cluster']
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True, text=True,
                          check=False, timeout=harness.DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(re.search(r'^park_cost_ms=(\d+)$', change['text'], re.M).group(1)) for change in changes
            if change['kind'] == 'settings']


@pytest.mark.parametrize('arguments, costs', [
    (('--park', 'auto'), [0, 31000, 25000, 25000]), (('--park', 'auto', '--park-cost', '7s'), [7000, 7000]),
    (('--park', 'asked'), [0, 0])], ids=['auto', 'configured', 'asked'])
def test_the_scheduler_reckons_with_the_time_that_was_measured(make_instance, nvml, place, arguments, costs):
    box = make_instance(gpus='auto', arguments=[*nvml.arguments, *arguments])
    for answer in (prove(box), prove(box), prove(box, most_save_ms=17000)):
        assert answer.status == 200, answer
    box.restart()
    assert settings_of(box, place) == costs
