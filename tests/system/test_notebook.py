# SPDX-License-Identifier: MIT
"""mgpu notebook with Debian's Jupyter, and with stand-ins that are slow or broken."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import urllib.error
import urllib.request

import harness
import pytest
from running import Running, all_ended

DEADLINE_S = harness.DEADLINE_S
needs_jupyter = [pytest.mark.real,
                 pytest.mark.skipif(not shutil.which('jupyter-notebook'),
                                    reason='jupyter-notebook is not installed: tools/install-packages real')]

# A server on the socket of --sock that answers when a line comes from the FIFO.
STAND_IN = r'''#!/usr/bin/python3
import os, socket, sys
path = next(word[7:] for word in sys.argv if word.startswith('--sock='))
print('options:', *sys.argv[1:], flush=True)
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(64)
%s
while True:
    peer = server.accept()[0]
    text = peer.recv(4096).decode()
    if not text:
        continue
    body = f'{os.environ["JUPYTER_TOKEN"]} {oct(os.stat(os.path.dirname(path)).st_mode)} {text.split()[1]}'
    try:
        peer.sendall(f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}'.encode())
    except OSError:
        pass  # who asked has left
    peer.close()
'''


class Notebook(Running):
    """mgpu notebook; the address it prints."""

    def __init__(self, box, *arguments, **options):
        super().__init__(box.popen('notebook', '--no-browser', *arguments, **options))
        self.box = box

    def address(self):
        line = self.first_line()
        assert re.fullmatch(r'http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}', line), (line, self.process.communicate())
        return line


@pytest.fixture
def notebook(box):
    with all_ended(functools.partial(Notebook, box)) as make:
        yield make


@pytest.fixture
def box(make_instance):
    return make_instance('sim:2x24G')


@pytest.fixture
def stand_in(box):
    """Writes a jupyter-lab; the PATH with it."""
    def make(then='', text=None):
        folder = f'{box.place}/programs'
        os.mkdir(folder)
        with open(f'{folder}/jupyter-lab', 'w', encoding='utf-8') as file:
            file.write(text or STAND_IN % then)
        os.chmod(f'{folder}/jupyter-lab', 0o755)
        return {'PATH': f'{folder}:/usr/bin:/bin'}
    return make


def get(address):
    with contextlib.closing(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=DEADLINE_S)) as answer:
        return answer.read().decode()


def the_job(box):
    return box.api('GET', '/jobs?state=queued,starting,running', user=box.user).json['jobs'][0]


def test_ctrl_c_ends_the_notebook_and_its_job(box, notebook, stand_in):
    here = notebook('-g', '1', '--', '--ServerApp.tornado_settings={}', env=stand_in())
    address = here.address()
    token, mode, path = get(address).split()
    assert address.endswith(token) and mode == '0o40700' and path == f'/?token={token}'
    job = the_job(box)
    assert job['name'] == 'notebook' and job['gpus'] == 1 and job['time_limit_s'] == 8 * 3600
    done = here.stop()
    assert done.code == 0 and f'ending job {job["id"]}' in done.err, done
    ended = box.wait(job['id'])
    assert ended['state'] == 'cancelled'
    assert '--ServerApp.tornado_settings={}' in box.output(job['id'])
    folder = re.search(r'--sock=(\S+)/jupyter.sock', box.output(job['id'])).group(1)
    assert not os.path.exists(folder)


def test_a_kept_notebook_is_reached_again(box, notebook, stand_in):
    here = notebook('--keep', env=stand_in())
    first = here.address()
    job = the_job(box)['id']
    done = here.stop(signal.SIGHUP)
    assert done.code == 0 and f'mgpu notebook --connect {job}' in done.err, done
    again = notebook('--connect', 'notebook')
    second = again.address()
    assert second.rpartition('=')[2] == first.rpartition('=')[2] == get(second).split()[0]
    assert again.stop().code == 0
    assert box.job(job)['state'] == 'running'


def test_a_notebook_that_is_slow_is_awaited(box, notebook, stand_in):
    with contextlib.closing(harness.Gate(box.place)) as gate:
        here = notebook(env=stand_in(f'open({gate.path!r}).readline()'))
        here.await_line('waiting until Jupyter answers')
        gate.open()
        assert get(here.address())


def test_ctrl_c_ends_the_job_also_before_jupyter_answers(box, notebook, stand_in):
    with contextlib.closing(harness.Gate(box.place)) as gate:
        here = notebook(env=stand_in(f'open({gate.path!r}).readline()'))
        here.await_line('started')
        done = here.stop()
        assert done.code == 130 and 'ending job 1' in done.err, done
        assert box.wait(1)['state'] == 'cancelled'


def test_a_jupyter_that_fails_is_reported_with_its_log(box, notebook, stand_in):
    here = notebook(env=stand_in(text='#!/bin/sh\necho no kernel >&2\nexit 3\n'))
    out, err = here.process.communicate(timeout=2 * DEADLINE_S)
    assert here.process.returncode == 3 and out == b'', (out, err)
    assert b'the output of job 1: mgpu logs 1' in err


def test_without_jupyter_the_ways_to_get_it_are_named(box, notebook):
    folder = f'{box.place}/empty'
    os.mkdir(folder)
    for program in ('sh', 'mkdir', 'rm', 'id'):
        os.symlink(shutil.which(program), f'{folder}/{program}')
    here = notebook(env={'PATH': folder})
    out, err = here.process.communicate(timeout=2 * DEADLINE_S)
    assert here.process.returncode == 127, (out, err)
    assert '--conda or --venv' in box.output(1)


def test_other_jobs_are_no_notebooks(box):
    job = box.post_job(['sleep', '600'])
    box.wait(job, 'running')
    done = box.mgpu('notebook', '--connect', job)
    assert done.code != 0 and f'job {job} was not started by mgpu notebook' in done.err, done


def test_another_port_is_taken_when_the_usual_one_is_in_use(box, notebook, stand_in):
    with contextlib.ExitStack() as kept:
        with contextlib.suppress(OSError):
            kept.enter_context(socket.create_server(('127.0.0.1', 8888)))
        here = notebook(env=stand_in())
        assert ':8888/' not in here.address()


class TestReal:
    pytestmark = needs_jupyter

    def test_jupyter_runs_cells_of_the_browser_in_the_job(self, box, notebook):
        here = notebook('-g', '1', '--keep')
        address = here.address()
        base, _, token = address.partition('/?token=')
        assert 'html' in get(address)
        started = urllib.request.Request(f'{base}/api/kernels', b'{}', {'Authorization': f'token {token}'}, method='POST')
        with urllib.request.urlopen(started, timeout=DEADLINE_S) as answer:
            kernel = json.load(answer)
        assert kernel['id']
        with pytest.raises(urllib.error.HTTPError):
            get(f'{base}/api/kernels')
        job = the_job(box)
        pids = [pid for pid, line in harness.processes('ipykernel').items()]
        uids = {os.stat(f'/proc/{pid}').st_uid for pid in pids}
        assert box.client.uid in uids
        assert here.stop().code == 0
        assert box.job(job['id'])['state'] == 'running'
