# SPDX-License-Identifier: MIT
"""Ports, notebooks and ssh of jobs from a laptop: another host, which reaches mgpud over TLS with a token and nothing else."""

import contextlib
import functools
import hashlib
import os
import shutil
import types
import urllib.parse

import pytest

import harness
import hosts
from running import all_ended
from test_notebook import STAND_IN, Notebook
from test_ports import Forward, Server

DEADLINE_S = harness.DEADLINE_S


@pytest.fixture(scope='module', autouse=True)
def possible():
    if hosts.why_not():
        pytest.skip(hosts.why_not())


@pytest.fixture(scope='module')
def laptop(someone):
    """What the tests of a local instance call `box`, for the user of a laptop; `cluster` is where the jobs run."""
    with hosts.spread_cluster(['n1'], others=['laptop'], client=someone, listen='0.0.0.0:9123') as (network, cluster):
        place = f'{cluster.place}/laptop'
        os.mkdir(place)
        os.chown(place, someone.uid, someone.gid)
        made = cluster.box.mgpu('token', 'create', '--host', network['head'].address, '--json', check=True).json
        far = {'MGPU_SOCKET': '', 'MGPU_HOST': made['api'], 'MGPU_TOKEN': made['token'], 'HOME': place, 'XDG_CONFIG_HOME': ''}
        host = network['laptop']

        def popen(*words, env=None, **options):
            return host.popen(someone, 'mgpu', *words, env={**far, **(env or {})}, **options)

        yield types.SimpleNamespace(host=host, cluster=cluster, box=cluster.box, place=place, user=someone, far=far, popen=popen,
                                    head=network['head'])


def test_a_port_of_a_job_is_carried_over_tls(laptop):
    data = os.urandom(4 << 20)
    server = Server(laptop.box)
    with all_ended(functools.partial(Forward, laptop)) as forward:
        # A socket of the file system is reached from the test's own network as well.
        here = forward(server.job, f'{laptop.place}/here.sock:{server.port}')
        assert here.ask('digest', data) == hashlib.sha256(data).hexdigest().encode() + b'\n'
        with here.connect('echo') as one, here.connect('echo') as other:
            for peer, text in ((one, b'one\n'), (other, b'other\n')):
                peer.sendall(text)
                assert peer.recv(10) == text
        assert here.stop().code == 0
    laptop.box.mgpu('cancel', server.job, check=True)


def test_a_forward_over_tls_names_what_is_wrong(laptop, bo):
    server = Server(laptop.box)
    with all_ended(functools.partial(Forward, laptop)) as forward:
        here = forward(server.job, f'{laptop.place}/wrong.sock:9')
        with here.connect() as peer:
            assert peer.recv(1) == b''
        assert 'port 9' in here.line()
    other = laptop.box.post_job(['sleep', '600'], user=bo)
    laptop.box.wait(other, 'running')
    done = laptop.host.run(laptop.user, 'forward', other, '0:80', env=laptop.far)
    assert done.code == 4 and 'only its owner' in done.err, done
    laptop.box.mgpu('cancel', other, user=bo, check=True)
    laptop.box.mgpu('cancel', server.job, check=True)


def test_a_forward_over_tls_survives_a_cut_and_ends_with_its_job(laptop):
    server = Server(laptop.box)
    with all_ended(functools.partial(Forward, laptop)) as forward:
        here = forward(server.job, f'{laptop.place}/cut.sock:{server.port}')
        assert here.ask('digest', b'before')
        laptop.box.kill()
        laptop.box.start()
        assert here.ask('digest', b'after') == hashlib.sha256(b'after').hexdigest().encode() + b'\n'
        laptop.box.mgpu('cancel', server.job, check=True)
        assert here.process.wait(2 * DEADLINE_S) not in (0, 2)


FETCH = 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())'


def test_a_notebook_is_opened_on_the_laptop(laptop):
    folder = f'{laptop.place}/programs'
    os.mkdir(folder)
    with open(f'{folder}/jupyter-lab', 'w', encoding='utf-8') as file:
        file.write(STAND_IN % '')
    os.chmod(f'{folder}/jupyter-lab', 0o755)
    with all_ended(functools.partial(Notebook, laptop)) as notebook:
        here = notebook('-g', '1', env={'PATH': f'{folder}:/usr/bin:/bin'})
        address = here.address()
        done = laptop.host.popen(laptop.user, '/usr/bin/python3', '-c', FETCH, address)
        out, err = done.communicate(timeout=DEADLINE_S)
        assert urllib.parse.urlparse(address).query == f'token={out.decode().split()[0]}', err
        assert here.stop().code == 0


@pytest.mark.real
@pytest.mark.skipif(not (shutil.which('ssh') and shutil.which('sshd', path='/usr/sbin:/usr/bin')),
                    reason='OpenSSH is not installed: tools/install-packages real')
def test_ssh_from_the_laptop_lands_in_the_job(laptop):
    config = f'{laptop.place}/ssh_config'
    with open(config, 'w', encoding='utf-8') as file:
        file.write(laptop.host.run(laptop.user, 'ssh-proxy', '--config', env=laptop.far).out)
    job = laptop.box.post_job(['sleep', '600'], gpus=2)
    laptop.box.wait(job, 'running')
    with contextlib.closing(laptop.host.popen(laptop.user, '/usr/bin/ssh', '-F', config, f'{job}.mgpu', 'echo $CUDA_VISIBLE_DEVICES; id -u; exit 3',
                                              env=laptop.far).stdout) as out:
        assert out.read().decode().splitlines()[-2:] == ['0,1', str(laptop.user.uid)]
    laptop.box.mgpu('cancel', job, check=True)
