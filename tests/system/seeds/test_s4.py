# SPDX-License-Identifier: MIT
"""tgpu: a test for each line of checklist.tsv, named by its number."""

import os
import re

import pytest

import harness

pytestmark = pytest.mark.smoke

GPUS = 'sim:4x24G'


def tgpu(box, *arguments, check=True, **options):
    return box.mgpu(*arguments, program='tgpu', check=check, **options)


def submit(box, *arguments, **options):
    return int(tgpu(box, 'submit', *arguments, **options).out)


def state(box, number):
    for line in tgpu(box, 'list').out.splitlines()[1:]:
        words = line.split()
        if words[0] == str(number):
            return words[2]
    raise AssertionError(f'{number} is not listed')


def test_S4_1_a_command_after_cmd(box):
    number = submit(box, '--gpus', '2', '--priority', '0', '--', 'cmd=echo "two words" $CUDA_VISIBLE_DEVICES')
    assert box.wait(number)['state'] == 'done'
    assert re.fullmatch(r'two words \d,\d\n', box.output(number))
    plain = submit(box, '--', 'printf', '[%s]', 'a b')
    box.wait(plain)
    assert box.output(plain) == '[a b]'


def test_S4_1_with_a_priority(box):
    """As the README types it, by a user without any right; the door says for whom the priority counts."""
    done = box.mgpu('submit', '--gpus', '2', '--priority', '5', '--', 'cmd=echo $CUDA_VISIBLE_DEVICES', program='tgpu',
                    check=True)
    job = box.wait(int(done.out))
    is_own = box.client.uid == box.user.uid  # who runs mgpud may do everything
    assert (job['priority'], job['own_priority'], job['gpus']) == (5, not is_own, 2) and job['state'] == 'done', job
    assert re.fullmatch(r'\d,\d\n', box.output(job['id'])) and ('orders your own jobs' in done.err) == (not is_own), done


def test_S4_2_S4_6_list_and_states(box, gate):
    running = submit(box, '--gpus', '4', '--', *gate.command())
    box.wait(running, 'running')
    queued = submit(box, '--gpus', '4', '--', 'cmd=exit 3')
    assert (state(box, running), state(box, queued)) == ('running', 'queued')
    gate.open()
    box.wait(queued)
    assert (state(box, running), state(box, queued)) == ('finished', 'failed')


def test_S4_2_the_list_has_commands_as_they_were_typed(box, gate):
    texts = ["echo 'two words' $HOME; true", 'echo "it\'s"', 'true']
    numbers = [submit(box, '--', f'cmd={text}') for text in texts]
    for number in numbers:
        box.wait(number)
    lines = {line.split()[0]: line for line in tgpu(box, 'list').out.splitlines()}
    for number, text in zip(numbers, texts):
        assert lines[str(number)].endswith(f' {text}'), lines


def test_S4_3_cancel(box):
    number = submit(box, '--', 'sleep', '1000')
    box.wait(number, 'running')
    tgpu(box, 'cancel', number)
    assert box.wait(number)['state'] == 'cancelled' and state(box, number) == 'cancelled'


def test_S4_4_status_of_one(box):
    number = submit(box, '--', 'true')
    box.wait(number)
    assert f'job {number} ' in tgpu(box, 'status', number).out
    done = tgpu(box, 'status', '99999', check=False)
    assert done.code == 3 and 'tgpu status: there is no job 99999' in done.err


@pytest.mark.parametrize('text, said', [('command: true\nnum_gpu: 2\n', 'num_gpu'), ('num_gpus: 1\n', 'command'),
                                        ('command: [\n', 'job.yaml:2')])
def test_S4_5_wrong_files(box, place, text, said):
    with open(f'{place}/job.yaml', 'w', encoding='ascii') as out:
        out.write(text)
    done = tgpu(box, 'submit', f'{place}/job.yaml', check=False)
    assert done.code == 2 and said in done.err, done


def test_S4_5_a_file(box, place):
    with open(f'{place}/job.yaml', 'w', encoding='ascii') as out:
        out.write('command: echo $CUDA_VISIBLE_DEVICES\nnum_gpus: 2\npriority: -1\n')
    number = submit(box, f'{place}/job.yaml')
    job = box.wait(number)
    assert job['state'] == 'done' and job['gpus'] == 2 and job['priority'] == -1


def test_S4_7_gpus_are_found(box):
    assert [gpu['index'] for gpu in box.gpus()] == [0, 1, 2, 3]


def test_S4_8_first_come_first_served(make_instance, gate):
    box = make_instance(GPUS, arguments=('--policy', 'fifo'))
    first = submit(box, '--gpus', '4', '--', *gate.command())
    box.wait(first, 'running')
    waiting = [submit(box, '--gpus', '4', '--', 'true') for _ in range(3)]
    gate.open()
    started = [box.wait(number)['started_at'] for number in waiting]
    assert started == sorted(started)


def test_S4_9_the_highest_that_can_run(box, gate):
    """A job of higher priority goes first; one that does not fit now does not keep a short one waiting."""
    first = submit(box, '--gpus', '3', '-t', '1h', '--', *gate.command())
    box.wait(first, 'running')
    wide = submit(box, '--gpus', '4', '--priority', '9', '-t', '1h', '--', 'true')
    narrow = submit(box, '--gpus', '1', '--priority', '1', '-t', '1m', '--', 'true')
    assert box.wait(narrow)['state'] == 'done' and box.job(wide)['state'] == 'queued'
    low = submit(box, '--gpus', '4', '--priority', '1', '-t', '1h', '--', 'true')
    gate.open()
    assert box.wait(wide)['started_at'] < box.wait(low)['started_at']


def test_S4_10_all_or_none(box, gate):
    held = submit(box, '--gpus', '3', '--', *gate.command())
    box.wait(held, 'running')
    wide = submit(box, '--gpus', '2', '--', 'true')
    assert box.job(wide)['granted'] == []
    gate.open()
    assert len(box.wait(wide)['granted']) == 2


def test_S4_11_S4_12_from_free_gpu_to_exit_status(box):
    number = submit(box, '--', 'cmd=echo $CUDA_VISIBLE_DEVICES; exit 7')
    job = box.wait(number)
    assert job['exit_code'] == 7 and job['state'] == 'failed'
    assert box.output(number).strip() == str(job['granted'][0]['index'])
    assert all(gpu['jobs'] == [] for gpu in box.gpus())


def test_S4_13_preemption(box):
    giving = submit(box, '--gpus', '4', '--preemptible', '--', 'sleep', '1000')
    box.wait(giving, 'running')
    taking = submit(box, '--gpus', '4', '--', 'true')
    assert box.wait(taking)['state'] == 'done' and box.job(giving)['preemptions'] == 1


def test_S4_14_kept_over_a_restart(make_instance, gate):
    box = make_instance(GPUS)
    running = submit(box, '--gpus', '4', '--', *gate.command())
    box.wait(running, 'running')
    queued = submit(box, '--gpus', '4', '--', 'true')
    box.kill()
    box.start()
    assert (state(box, running), state(box, queued)) == ('running', 'queued')
    gate.open()
    assert box.wait(queued)['state'] == 'done' and box.wait(running)['state'] == 'done'


def test_S4_15_statistics(make_instance):
    box = make_instance(GPUS)
    assert 'no job has started yet' in tgpu(box, 'status').out
    box.wait(submit(box, '--', 'true'))
    said = tgpu(box, 'status').out
    assert 'jobs:        0 queued, 0 running, 1 finished, 0 failed, 0 cancelled' in said
    assert re.search(r'wait time:   \S+ on average, \S+ at most, of 1 job\n', said), said
    assert 'GPUs:        0 of 4 in use' in said and 'utilization: ' in said


def test_S4_16_a_log_for_each_job(box):
    first, second = (submit(box, '--', 'echo', word) for word in ('one', 'two'))
    assert box.wait(first)['log'] != box.wait(second)['log']
    assert (box.output(first), box.output(second)) == ('one\n', 'two\n')


def test_S4_17_what_was_used(box):
    job = box.wait(submit(box, '-c', '1', '-M', '512M', '--', 'true'))
    assert job['cpus'] == 1 and job['memory'] == 512 << 20 and job['max_rss_bytes'] > 0 and job['cpu_seconds'] >= 0


def test_S4_18_a_node(box):
    assert [node['state'] for node in box.api('GET', '/nodes').json['nodes']] == ['up']


def test_S4_19_one_job_at_a_time(make_instance, gate):
    box = make_instance(GPUS, arguments=('--node-jobs', '1'))
    first = submit(box, '--gpus', '1', '--', *gate.command())
    box.wait(first, 'running')
    second = submit(box, '--gpus', '1', '--', 'true')
    assert state(box, second) == 'queued'
    gate.open()
    assert box.wait(second)['state'] == 'done'


def test_S4_20_two_gpus(box):
    number = submit(box, '--gpus', '2', '--', 'cmd=echo $CUDA_VISIBLE_DEVICES')
    granted = [gpu['index'] for gpu in box.wait(number)['granted']]
    assert len(set(granted)) == 2 and box.output(number).strip() == ','.join(map(str, granted))


@pytest.mark.parametrize('name', ['sleep.sh', 'gpus.sh', 'train.py'])
def test_S4_21_examples(name):
    assert os.access(f'{harness.ROOT}/examples/{name}', os.R_OK)


@pytest.mark.parametrize('part', ['cli', 'sched/sched.h', 'sched/queue/queue.h', 'sched/cluster/cluster.h', 'shepherd', 'store'])
def test_S4_22_parts(part):
    assert os.path.exists(f'{harness.ROOT}/src/{part}')


def test_S4_23_licence():
    with open(f'{harness.ROOT}/LICENSE', encoding='utf-8') as source:
        assert source.read().startswith('MIT License')
