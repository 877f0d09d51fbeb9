# SPDX-License-Identifier: MIT
"""mgpu gpu test --park on a driver that stands in for NVIDIA's: jobs that hold memory are parked and return, and mgpud is
told what came of it."""

import json
import subprocess

import pytest

import harness
import test_gpu_kit
from proof import node, state
from test_gpu_kit import KIT_S, kit  # noqa: F401  (a fixture)

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')
MIB = 1 << 20


@pytest.fixture
def box(kit, make_instance):  # noqa: F811
    """An instance on a driver that can park, and mgpu with mgpu-gpu-test beside it."""
    kit.install_parking()
    made = make_instance(gpus='auto', arguments=['--nvml-library', f'{kit.place}/driver/libnvidia-ml.so.1',
                                                 '--cuda-library', f'{kit.place}/driver/libcuda.so.1'])

    def test(*arguments, user=made.user):
        env = dict(user.environment(), MGPU_SOCKET=made.socket, LD_LIBRARY_PATH=f'{kit.place}/driver',
                   ASAN_OPTIONS='detect_leaks=0')
        owner = ('--as', made.client.name) if harness.IS_ROOT and user is made.user else ()
        done = subprocess.run([f'{kit.place}/bin/mgpu', 'gpu', 'test', '--json', '--park', *owner, *arguments], env=env, cwd='/tmp',
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=KIT_S, check=False,
                              **user.popen_arguments())
        return done.returncode, json.loads(done.stdout)['tests'] if done.stdout else done.stderr
    made.test = test
    return made


def rule(kit, *rules):  # noqa: F811
    kit_rules = f'{kit.place}/driver/cuda.d/rules'
    with open(kit_rules, 'w', encoding='ascii') as out:
        print('\n'.join(rules), file=out)


def no_jobs_are_left(box):
    harness.until(lambda: not box.open_jobs(), 'all jobs of the test have ended')


def test_memory_that_comes_back_as_it_was_proves_parking_on_both_gpus(box):
    status, rows = box.test()
    assert status == 0 and [row['result'] for row in rows] == ['passed'] * 3, rows
    assert [row['memory_bytes'] for row in rows] == [57 * MIB, 230 * MIB, 57 * MIB], rows
    assert [row['return'] for row in rows] == ['own', 'own', 'other'], rows
    assert all(row['save_ms'] >= 0 and row['load_ms'] >= 0 for row in rows), rows
    parking = node(box)['parking']
    assert (parking['state'], parking['driver'], parking['elsewhere']) == ('passed', '580.159.04', 'passed')
    assert (parking['bytes'], parking['models']) == (230 * MIB, ['NVIDIA Stand-in'])
    events = box.job(rows[2]['job'])['events']
    assert [event['type'] for event in events if 'park' in event['type']] == ['park', 'parked', 'unpark', 'unparked']
    no_jobs_are_left(box)


def test_the_speed_of_the_driver_is_what_mgpud_is_told(box, kit):  # noqa: F811
    rule(kit, 'rate save 100', 'rate restore 400')
    status, rows = box.test()
    assert status == 0, rows
    parking = node(box)['parking']
    assert 40e6 < parking['save_bytes_per_s'] < 110e6 and 100e6 < parking['load_bytes_per_s'] < 440e6, parking


def test_memory_that_parking_changes_fails_the_node(box, kit):  # noqa: F811
    kit.install(cuda=('version 13000', 'rot 5'))
    status, rows = box.test()
    assert status == 1 and [row['result'] for row in rows] == ['failed'], rows
    assert 'the same memory was correct without parking' in rows[0]['text']
    parking = node(box)['parking']
    assert (parking['state'], parking['wrong']) == ('failed', True) and parking['text'] == rows[0]['text']
    no_jobs_are_left(box)


def test_a_gpu_that_is_wrong_without_parking_is_told_from_it(box, kit):  # noqa: F811
    kit.install(cuda=('version 13000', 'corrupt 5'))
    status, rows = box.test()
    assert status == 1 and 'which was not parked, ended as failed' in rows[0]['text'], rows
    assert state(box) == 'failed'


def test_a_driver_that_refuses_is_kept_with_its_reason(box, kit):  # noqa: F811
    rule(kit, 'fail save 801')
    status, rows = box.test(node(box)['name'])
    assert status == 1 and [row['result'] for row in rows] == ['refused'] and rows[0]['text'], rows
    parking = node(box)['parking']
    assert (parking['state'], parking['wrong'], parking['text']) == ('failed', False, rows[0]['text'])
    assert box.job(rows[0]['job'])['state'] == 'done'  # it ran on
    no_jobs_are_left(box)


def test_what_cannot_be_tested_is_refused_before_a_job_is_submitted(box, someone):
    assert box.test('nowhere') == (3, "mgpu gpu test: there is no node 'nowhere'\nhint: all nodes: mgpu nodes\n")
    status, text = box.test(user=someone)
    assert status == 4 and 'only operators may record whether a node can park jobs' in text
    for size in ('1M', 'much'):
        status, text = box.test('--park-most', size)
        assert status == 2 and size in text, text
    assert box.api('GET', '/jobs').json['jobs'] == [] and state(box) == 'untested'


def test_a_machine_where_nothing_can_be_parked_says_so(make_instance):
    instance = make_instance(gpus='sim:1x24G')
    name = node(instance)['name']
    done = instance.mgpu('gpu', 'test', '--park', user=instance.user)
    assert done.code == 3 and 'no node where jobs can be parked' in done.err, done
    done = instance.mgpu('gpu', 'test', '--park', name, user=instance.user)
    assert done.code == 2 and f'node {name} cannot park jobs' in done.err, done


assert test_gpu_kit.GPUS  # the machine of the kit has two of one model
