# SPDX-License-Identifier: MIT
"""The Python package against an instance, in a process of its own as a user has it."""

import os
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

import harness

GPUS = 'sim:2x8G'
PACKAGE = pathlib.Path(__file__).parents[2] / 'python'
PYTHON = '/usr/bin/python3'


@pytest.fixture
def python(box, place):
    """Runs a program as the client; what it printed."""
    shutil.copytree(PACKAGE, f'{place}/lib', ignore=shutil.ignore_patterns('__pycache__'))

    def run(text, check=True, **variables):
        (pathlib.Path(place) / 'program.py').write_text(textwrap.dedent(text))
        environment = dict(box.client.environment(), MGPU_SOCKET=box.socket, **{'PYTHONPATH': f'{place}/lib:{place}', **variables})
        done = subprocess.run([PYTHON, 'program.py'], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=harness.DEADLINE_S, **box.client.popen_arguments())
        assert not check or done.returncode == 0, done.stdout
        return done.stdout

    return run


def test_a_job_is_submitted_followed_and_read(python):
    assert python('''
        import mgpu
        job = mgpu.submit(['sh', '-c', 'echo one; echo $WORD; exit 3'], gpus=1, env={'PATH': '/usr/bin:/bin', 'WORD': 'two'}, name='py')
        print(b''.join(job.logs()).decode(), end='')
        job.wait()
        print(job.state, job.exit_code, job.name, job.has_ended, len(job.granted), job.output().split())
        print([found.id for found in mgpu.jobs(all=True)][-1] == job.id, mgpu.Job.find(job.id).state)
        print(len(mgpu.gpus()), mgpu.gpus()[0]['model'] is not None)
    ''').splitlines() == ['one', 'two', "failed 3 py True 1 ['one', 'two']", 'True failed', '2 True']


def test_a_waiting_job_says_why_and_is_cancelled(python):
    out = python('''
        import mgpu
        first = mgpu.submit('sleep 300', gpus=2).wait(state='running')
        second = mgpu.submit('true', gpus=1)
        print(second.why()['reasons'][0]['code'] if second.why().get('reasons') else second.why())
        try:
            second.wait(timeout=0.1)
        except TimeoutError as error:
            print(error)
        second.cancel(); first.cancel(grace=0)
        print(second.wait().state, first.wait().state)
        second.cancel()
    ''').splitlines()
    assert out[1].endswith('is queued') and out[2] == 'cancelled cancelled', out


def test_a_refusal_is_an_exception_with_its_code(python):
    assert python('''
        import mgpu
        try:
            mgpu.submit('true', gpus=99)
        except mgpu.MgpuError as error:
            print(error.status, error.code, '99' in error.detail)
        try:
            mgpu.jobs(client=mgpu.Client('/nonexistent/socket'))
        except mgpu.Unreachable as error:
            print('/nonexistent/socket' in str(error))
    ''').splitlines()[-1] == 'True'


def test_events_come_in_order_and_to_async_for(python):
    assert python('''
        import asyncio, mgpu
        async def main():
            before = next(iter(mgpu.events(after=0)))['seq']
            job = mgpu.submit('true')
            types = []
            async for event in mgpu.follow(after=0):
                if event['job'] == job.id:
                    types.append(event['type'])
                    if event['type'] == 'ended':
                        break
            print(*types)
        asyncio.run(main())
    ''').split() == ['submitted', 'allocated', 'started', 'ended']


def test_events_have_no_gap_although_the_connection_is_cut_before_the_first(python):
    assert python('''
        import mgpu
        class Cut(mgpu.Client):
            """The first connection ends before the first change, and a job is submitted meanwhile."""
            job = None
            def open(self, method, path, *words, **options):
                connection, response = super().open(method, path, *words, **options)
                return connection, response if self.job or path != '/events' else self.until_data(response)
            def until_data(self, response):
                for line in response:
                    yield line
                    if line.startswith(b'data:'):
                        break
                self.job = mgpu.submit('true')
                raise ConnectionResetError
        client = Cut()
        event = next(mgpu.events(client=client))
        print(event['type'], event['job'] == client.job.id)
    ''').split() == ['submitted', 'True']


def test_a_refusal_reaches_those_who_follow_and_another_store_is_told(python):
    assert python('''
        import asyncio, mgpu
        async def main():
            async for event in mgpu.follow(after=999999):
                print(event['type'], event['seq'] < 999999)
                break
            try:
                async for event in mgpu.follow(after=-1):
                    print(event)
            except mgpu.MgpuError as error:
                print(error.status)
        asyncio.run(main())
    ''').split() == ['reset', 'True', '400']


def test_a_strangers_socket_is_passed_over(python, box):
    out = python('''
        import mgpu, mgpu._client
        real = mgpu._client._check_listener
        def check(sock, path):
            if path == os.environ['XDG_RUNTIME_DIR'] + '/mgpu/mgpud.sock':
                raise PermissionError(path + ' belongs to a stranger')
            real(sock, path)
        import os, socket
        os.makedirs('run/mgpu')
        os.environ['XDG_RUNTIME_DIR'] = os.path.abspath('run')
        stranger = socket.socket(socket.AF_UNIX)
        stranger.bind('run/mgpu/mgpud.sock')
        stranger.listen()
        mgpu._client._check_listener = check
        mgpu._client.SYSTEM_SOCKET = os.environ.pop('MGPU_SOCKET')
        print(len(mgpu.gpus()))
        mgpu._client.SYSTEM_SOCKET = '/nonexistent/socket'
        try:
            mgpu.gpus()
        except PermissionError as error:
            print(str(error).endswith('belongs to a stranger'))
    ''', HOME='')
    assert out.split() == ['2', 'True'], out


def test_functions_run_as_jobs(python, place):
    (pathlib.Path(place) / 'work.py').write_text(textwrap.dedent('''
        import os
        import threading
        def square(x):
            return x * x, os.environ['MGPU_JOB_ID'], os.environ.get('CUDA_VISIBLE_DEVICES')
        def fail(word):
            raise ValueError(word)
        def die():
            os.kill(os.getpid(), 9)
        def odd():
            return threading.Lock()
    '''))
    out = python('''
        import mgpu, work
        with mgpu.Executor(gpus=1) as executor:
            results = list(executor.map(work.square, [2, 3, 4]))
            print([value for value, _, _ in results], len({job for _, job, _ in results}), {gpu is not None for _, _, gpu in results})
            for call in ((work.fail, 'bad'), (work.die,), (work.odd,)):
                try:
                    executor.submit(*call).result()
                except Exception as error:
                    print(type(error).__name__, str(error).splitlines()[0])
    ''').splitlines()
    assert out[0] == '[4, 9, 16] 3 {True}', out
    assert out[1] == 'ValueError bad', out
    assert out[2].startswith('JobFailed job '), out
    assert out[3].startswith('TypeError the result cannot be pickled'), out
    assert not [name for name in os.listdir(place) if name.startswith('.mgpu-calls')]


@pytest.mark.parametrize('find', ["sys.path.insert(0, 'lib')", "sys.path.append(os.path.abspath('lib'))", "sys.path.insert(0, ''); os.chdir('lib'); import mgpu; os.chdir('..')"])
def test_functions_run_wherever_the_caller_has_found_the_module(python, find):
    assert python(f'''
        import os, sys
        {find}
        import mgpu
        with mgpu.Executor() as executor:
            print(executor.submit(divmod, 7, 2).result())
    ''', PYTHONPATH='') == '(3, 1)\n'


def test_a_shut_executor_cancels_what_is_left(python):
    out = python('''
        import mgpu, subprocess, time
        executor = mgpu.Executor(gpus=1)
        future = executor.submit(time.sleep, 300)
        job = executor.job(future)
        executor.shutdown(cancel_futures=True)
        print(type(future.exception()).__name__, job.refresh().state)
        try:
            executor.submit(time.sleep, 1)
        except RuntimeError as error:
            print(error)
    ''').splitlines()
    assert out == ['JobFailed cancelled', 'cannot schedule new futures after shutdown'], out


def test_what_the_script_itself_defines_needs_cloudpickle(python):
    out = python('''
        import sys
        sys.modules['cloudpickle'] = None
        import mgpu
        def mine():
            return 1
        with mgpu.Executor() as executor:
            executor.submit(mine)
    ''', check=False)
    assert 'move it to a module, or install cloudpickle' in out, out


def test_the_examples_of_the_guide_can_be_run_as_they_are(python, place):
    """Those of docs/python.md, in order; their train.py and module work are made up."""
    guide = (PACKAGE.parent / 'docs' / 'python.md').read_text()
    blocks = [textwrap.dedent(block) for block in re.findall(r'(?m)^\n((?:    .*\n|\n(?=    ))+)', guide)]
    assert len(blocks) == 2 and all('import' in block for block in blocks), blocks
    (pathlib.Path(place) / 'train.py').write_text("print('trained')\n")
    (pathlib.Path(place) / 'work.py').write_text('def train(rate):\n    return rate * 2\n')
    out = python(blocks[0].replace("['python', ", f"['{PYTHON}', ").replace('gpus=2', "gpus=2, env={'PATH': '/usr/bin:/bin'}"))
    assert re.fullmatch(r'trained\ndone 0 [\d.]+\n', out), out
    assert python('import mgpu\n' + blocks[1]).split() == ['0.2', '0.02', '0.002']


@pytest.mark.skipif(not shutil.which('mypy'), reason='mypy is not installed: tools/install-packages check')
def test_types_are_strict():
    done = subprocess.run(['mypy', '--strict', '--cache-dir=/dev/null', PACKAGE / 'mgpu'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


