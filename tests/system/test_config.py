# SPDX-License-Identifier: MIT
"""The configuration file: not needed, checked when it is there, and weaker than the command line."""

import subprocess

import pytest

import harness

LIMIT_S = 60


def refuse(place, text):
    """What mgpud says about a file that it does not accept."""
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)
    done = subprocess.run([f'{harness.programs()}/mgpud', '--config', path], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 64, done
    return done.stderr.replace(place, '')


@pytest.mark.parametrize(('text', 'where', 'what'), [
    ('gpus: sim:2x8G\nlisen: none\n', '/mgpu.yaml:2', 'did you mean listen?'),
    ('gpus: [1,\n', '/mgpu.yaml:', 'expected'),
    ('gpus: lots\n', '/mgpu.yaml:1', 'lots'),
    ('cgroup: jobs\n', '/mgpu.yaml:1', 'does not begin with'),
    ('- gpus\n', '/mgpu.yaml:1', 'mapping'),
    ('foreign: kill\n', '/mgpu.yaml:1', 'one of avoid, fit-around, ignore'),
    ('foreign-load: 120%\n', '/mgpu.yaml:1', 'not a part from 0 to 1'),
    ('share-max-memory: 1.5\n', '/mgpu.yaml:1', 'not a part from 0 to 1'),
    ('gpus:\n  - none\n', '/mgpu.yaml:1', 'single value'),
])
def test_a_mistake_in_the_file_is_told_with_its_line(place, text, where, what):
    said = refuse(place, text)
    assert where in said and what in said, said


def test_the_file_sets_what_the_command_line_leaves_open(make_instance, place):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8') as out:
        out.write('# all of it\nnode: here\ngpus: sim:5x8G\n')
    instance = make_instance(gpus='sim:2x8G', arguments=['--config', path])
    assert [gpu['node'] for gpu in instance.gpus()] == ['here', 'here'], 'the command line wins for the GPUs'


def test_an_empty_file_is_a_good_file(make_instance, place):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8'):
        pass
    instance = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    assert len(instance.gpus()) == 1
