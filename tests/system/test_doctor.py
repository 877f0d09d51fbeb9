# SPDX-License-Identifier: MIT
"""`mgpu doctor`: what is on, what is off, and how to get it."""

import os
import re

import pytest

import harness
from test_scope import MOUNT as V2


def test_doctor_tells_each_promise_and_whether_it_is_kept(box):
    done = box.mgpu('doctor')
    assert done.code in (0, 1), done
    for word in ('gpu', 'cgroup', 'user'):
        assert re.search(word, done.out, re.I), f'{word} is not in:\n{done.out}'


def test_doctor_agrees_with_the_api(box):
    node = box.api('GET', '/nodes').json['nodes'][0]
    assert node['up'] is True and node['cpus'] > 0 and node['memory_bytes'] > 0
    text = box.mgpu('doctor').out
    for feature in node['features']:
        assert feature['name'] in text, feature
        assert feature['on'] or feature['fix'] or feature['text'], 'what is off says how to get it'


def test_doctor_of_a_rootless_instance_says_what_is_off(make_instance, someone):
    instance = make_instance(user=someone, client=someone)
    features = {feature['name']: feature for feature in instance.api('GET', '/nodes').json['nodes'][0]['features']}
    assert not features['users']['on'], features
    done = instance.mgpu('doctor')
    assert features['users']['text'] in done.out or 'users' in done.out, done


V2_ALONE = '''set -e
mount --bind "$1" /mnt
mount --bind /mnt /sys/fs/cgroup
mount -o remount,bind,ro /sys/fs/cgroup
shift
exec "$@"
'''


@pytest.mark.root
@pytest.mark.skipif(V2 is None, reason='no cgroup v2 here')
def test_doctor_never_advises_to_boot_with_cgroup_v2_alone_where_there_is_no_other(make_instance):
    """As in a container that may not make cgroups."""
    harness.require_namespaces()
    box = make_instance('sim:1x8G', start=False)
    box.command[:0] = ['unshare', '-m', 'sh', '-c', V2_ALONE, 'sh', V2]
    box.start()
    features = {feature['name']: feature for feature in box.api('GET', '/nodes').json['nodes'][0]['features']}
    for name in ('cgroup', 'memory', 'cpu', 'pids'):
        assert not features[name]['on'] and 'writable' in features[name]['fix'], features[name]
    assert 'unified_cgroup_hierarchy' not in box.mgpu('doctor').out


def test_doctor_without_a_daemon_says_what_to_do(box, place):
    done = box.mgpu('doctor', env={'MGPU_SOCKET': f'{place}/none.sock'})
    assert done.code in (1, 5), done
    text = done.out + done.err
    assert f'{place}/none.sock' in text and re.search('mgpud', text)


def test_doctor_speaks_json(box):
    text, done = box.mgpu('doctor'), box.mgpu('doctor', '--json')
    assert done.code == text.code and done.json['schema'] == 'mgpu/v1', done
    assert done.json['nodes'][0]['features'] == box.api('GET', '/nodes').json['nodes'][0]['features']
    shown = [line.split()[:2] for line in text.out.splitlines() if line[0] != ' ' and not line[0].isdigit()]
    assert shown == [[word.replace('bad', 'BAD') for word in (finding['verdict'], finding['name'].split()[0])]
                     for finding in done.json['findings']], (text, done)
    name = done.json['nodes'][0]['name']
    of_node = box.mgpu('doctor', '--json', name).json
    assert [node['name'] for node in of_node['nodes']] == [name]
    assert {tuple(finding['nodes']) for finding in of_node['findings']} == {(name,)}, of_node
    off = box.mgpu('doctor', '--json', env={'MGPU_SOCKET': '/nonexistent.sock'})
    assert off.code == 1 and [finding['verdict'] for finding in off.json['findings']] == ['bad'] and off.json['nodes'] == [], off


def test_simulated_gpus_are_called_simulated(make_instance):
    instance = make_instance(gpus='sim:2x8G:Pretend 9000')
    assert instance.gpus()[0]['model'] == 'Pretend 9000'
    assert instance.api('GET', '/nodes').json['nodes'][0]['gpu_backend'] == 'sim'
    assert re.search('simulated|sim', instance.mgpu('doctor').out)
    assert harness.SANITIZER.search(instance.log()) is None


@pytest.mark.xdist_group('test_private_tmp')  # whose jobs would name the file
def test_doctor_names_shared_memory_that_no_process_uses(box, someone):
    path = f'/dev/shm/mgpu-left-{os.getpid()}'
    owner = harness.make_user('mgpu-tc') if harness.IS_ROOT else someone  # jobs of others would name it
    with owner.acting(), open(path, 'wb') as out:
        out.write(bytes(3 << 20))
    try:
        for user in {owner, box.user}:  # root is told of all users
            text = box.mgpu('doctor', user=user).out
            assert re.search(r'off +shared memory .*no process uses: .*' + owner.name, text), text
        with open(path, 'rb'):
            text = box.mgpu('doctor', user=box.user).out
            assert os.path.basename(path) not in text, text
    finally:
        os.unlink(path)
