# SPDX-License-Identifier: MIT
"""What GPUs did: in the API and on the command line, over restarts and kills."""

import csv
import io
import json
import os
import select
import signal
import time

import pytest

import harness
from nvml import Nvml

HISTORY = 'gpu-history'


@pytest.fixture
def nvml(place):
    made = Nvml(place)
    made.add(bus=0x3b, uuid='GPU-busy', used_mib=12288, utilization=80, celsius=70, milliwatts=300000)
    made.add(bus=0x81, uuid='GPU-still', utilization=0)
    made.write()
    return made


def history(instance, query=''):
    answer = instance.api('GET', f'/gpus/history{query}')
    assert answer.status == 200, answer
    return answer.json


def await_points(instance, count, gpu=0):
    """Waits until so many seconds of the GPU are known; the answer."""
    end = time.monotonic() + harness.DEADLINE_S
    while time.monotonic() < end:
        answer = history(instance, '?since=10m&step=1')
        known = [value for value in answer['gpus'][gpu]['utilization'] if value is not None]
        if len(known) >= count:
            return answer
        select.select([], [], [], 0.2)
    raise AssertionError(f'there are not {count} points')


def known(values):
    return [value for value in values if value is not None]


def test_each_second_of_each_gpu_is_told(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    answer = await_points(box, 3)
    busy, still = answer['gpus']
    assert answer['step_s'] == 1 and (busy['uuid'], busy['index']) == ('GPU-busy', 0)
    assert 600 <= len(busy['utilization']) <= 601
    assert set(known(busy['utilization'])) == {0.8} and set(known(busy['memory'])) == {0.5}
    assert set(known(busy['power_w'])) == {300} and set(known(busy['temperature_c_max'])) == {70}
    assert set(known(still['utilization'])) == {0}
    assert busy['utilization'][0] is None, 'nobody measured then'


def test_one_gpu_can_be_asked_for_in_each_of_its_names(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    node = box.gpus()[0]['node']
    for name in ('1', f'{node}:1', 'GPU-still'):
        assert [gpu['uuid'] for gpu in history(box, f'?gpu={name}')['gpus']] == ['GPU-still']


@pytest.mark.parametrize('query, status', [
    ('?gpu=77', 404), ('?gpu=nowhere:0', 404), ('?since=yesterday', 400), ('?since=2999-01-01T00:00:00Z', 400),
    ('?since=0', 400), ('?step=0', 400), ('?step=90', 400), ('?step=x', 400), ('?since=168h&step=1', 400),
    ('?until=1', 400),
])
def test_a_question_that_makes_no_sense_is_refused(box, query, status):
    answer = box.api('GET', f'/gpus/history{query}')
    assert answer.status == status and answer.json['detail'], answer


def test_an_answer_is_bounded_however_far_it_reaches(box):
    answer = history(box, '?since=9000h')
    assert all(len(gpu['utilization']) <= 700 for gpu in answer['gpus'])
    assert answer['step_s'] * len(answer['gpus'][0]['utilization']) >= 7 * 24 * 3600 - answer['step_s']


def test_it_goes_on_after_a_restart_and_a_kill(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    first = known(await_points(box, 3)['gpus'][0]['utilization'])
    box.restart()
    again = known(await_points(box, len(first) + 1)['gpus'][0]['utilization'])
    assert len(again) > len(first)
    assert os.path.exists(f'{box.state_dir}/store/{HISTORY}')
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-busy', utilization=10)
    nvml.write()
    box.kill()
    box.start()
    kept = known(history(box, '?step=1')['gpus'][0]['utilization'])
    assert 0.8 in kept, 'what was kept at the last stop is still there'


def test_the_history_of_a_card_follows_it_to_another_slot(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    await_points(box, 2)
    box.stop()
    nvml.gpus.clear()
    nvml.add(bus=0x3b, uuid='GPU-still', utilization=0)
    nvml.add(bus=0x81, uuid='GPU-busy', utilization=80)
    nvml.write()
    box.start()
    gpu, = history(box, '?gpu=GPU-busy&step=1')['gpus']
    assert gpu['index'] == 0, 'a number is kept for a boot'
    assert 0.8 in known(gpu['utilization'])


@pytest.mark.parametrize('damage', ['', 'nonsense' * 100, None])
def test_a_damaged_file_is_told_and_mgpud_starts(make_instance, damage):
    box = make_instance()
    await_points(box, 1)
    box.stop()
    path = f'{box.state_dir}/store/{HISTORY}'
    with open(path, 'r+b') as file:
        if damage is None:
            file.seek(200)
            file.write(b'\xff')
        else:
            file.truncate(0)
            file.write(damage.encode())
    box.start()
    assert 'the GPU history is incomplete: gpu-history' in box.log()
    await_points(box, 1)


def test_the_command_line_has_it_as_table_csv_and_json(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    await_points(box, 2)
    header, *rows = box.mgpu('gpus', '--history', '10m', '--step', '1', '0', check=True).out.splitlines()
    assert header.split() == ['TIME', 'NODE', 'GPU', 'UTIL', 'MAX', 'MEM', 'W', 'TEMP']
    assert len(rows) >= 2 and all(row.split()[-5:] == ['80%', '80%', '50%', '300', '70'] for row in rows)
    table = list(csv.DictReader(io.StringIO(
        box.mgpu('gpus', '--history', '10m', '--step', '1', '-o', 'csv', check=True).out)))
    assert {float(row['util']) for row in table if row['gpu'] == '0'} == {0.8}
    points = box.mgpu('gpus', '--history', '1h', '-o', 'json', check=True).json
    assert points['step_s'] == 60 and {point['uuid'] for point in points['points']} == {'GPU-busy', 'GPU-still'}
    line = box.mgpu('gpus', '--history', '10m', '--step', '1', '-o', 'jsonl', check=True).out.splitlines()[0]
    assert json.loads(line)['utilization'] == 0.8


def test_a_wide_list_draws_the_last_minutes(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    await_points(box, 2)
    plain = box.mgpu('gpus', '-o', 'gpu,past', '-H', check=True, env={'LC_ALL': 'C'}).out.splitlines()
    assert plain[0].split()[-1].strip('+') == '' and plain[1].split()[-1].strip('_') == ''
    fine = box.mgpu('gpus', '-o', 'wide', check=True, env={'LC_ALL': 'C.UTF-8'}).out
    assert 'LAST 10 MIN' in fine and '▆' in fine and '▁' in fine


def test_a_gpu_can_be_named(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    assert box.mgpu('gpus', '1', '-o', 'uuid', '-H', check=True).out.split() == ['GPU-still']
    done = box.mgpu('gpus', '7')
    assert done.code == 3 and 'there is no GPU 7' in done.err


@pytest.mark.parametrize('arguments, sentence', [
    (('--step', '1'), '--step requires --history'), (('--history', '1h', '--line'), '--line and --history cannot be combined'),
    (('--history', 'soon'), "--history: 'soon' is not a time"), (('0', '1'), 'only one GPU or node can be given'),
    (('--history', '1h', '-o', 'idle'), "no column 'idle'"),
])
def test_options_that_make_no_sense_are_refused(box, arguments, sentence):
    done = box.mgpu('gpus', *arguments)
    assert done.code == 2 and sentence in done.err, done


def test_a_watched_history_grows(make_instance, nvml):
    box = make_instance(gpus='auto', arguments=nvml.arguments)
    process = box.popen('gpus', '-w0.3', '-o', 'gpu,past', '-H')
    try:
        lines = [process.stdout.readline().decode() for _ in range(6)]
        assert sum(line.split()[:1] == ['0'] for line in lines) >= 2, lines
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=harness.DEADLINE_S)
