# SPDX-License-Identifier: MIT
"""A job does what the same program does under a bare shell: the rows of oracle_programs.py, executed both ways by one user.

The bare way is `setsid nohup PROGRAM </dev/null`, which is what people type who have no scheduler. Output, errors, files and the
way it ended must be equal. What has to differ is a row of DIFFERENT with its reason, and must differ."""

import concurrent.futures
import os
import shlex
import shutil
import stat
import subprocess
import tempfile

import pytest

import oracle_programs

GPUS = 'sim:1x24G'
SIDE_BY_SIDE = 4
DEADLINE_S = 20  # of one program
OWN = {'MY_OWN_VARIABLE': "it's \"mine\" $HOME *", 'MY_EMPTY_VARIABLE': '', 'MY_LINES': 'one\ntwo\n'}

BLOCKS = {
    'sh': (oracle_programs.SH, lambda line: ['sh', '-c', line]),
    'bash': (oracle_programs.BASH, lambda line: ['bash', '-c', line]),
    'python3': (oracle_programs.PYTHON, lambda line: ['/usr/bin/python3', '-c', line]),
    'perl': (oracle_programs.PERL, lambda line: ['perl', '-e', line]),
    'words': (oracle_programs.WORDS, shlex.split),
}
ROWS = {f'{block}: {line}': words(line) for block, (lines, words) in BLOCKS.items() for line in lines.strip().split('\n')}


def contents(folder):
    """{path: what is there} of all files below a folder: type, mode, and bytes or the target of a link."""
    found = {}
    for top, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(top, name)
            kind = os.lstat(path)
            what = (stat.filemode(kind.st_mode),)
            if stat.S_ISLNK(kind.st_mode):
                what += (os.readlink(path),)
            elif stat.S_ISREG(kind.st_mode):
                with open(path, 'rb') as source:
                    what += (source.read(),)
            found[os.path.relpath(path, folder)] = what
    return found


class Way:
    """One of the two ways: a folder for each row, and what became of it."""

    def __init__(self, place, name, user):
        self.place, self.name, self.user = place, name, user

    def folder(self, row):
        """Its directory, the user's: an empty one to run in, and the files of both streams."""
        path = f'{self.place}/{self.name}-{row}'
        for folder in (path, f'{path}/here'):
            os.mkdir(folder, 0o755)
        for stream in ('out', 'err'):
            open(f'{path}/{stream}', 'xb').close()
        for made in (path, *(f'{path}/{name}' for name in os.listdir(path))):
            os.chown(made, self.user.uid, self.user.gid)
        return path

    def result(self, path, end):
        streams = {}
        for stream in ('out', 'err'):
            with open(f'{path}/{stream}', 'rb') as source:
                streams[stream] = source.read().replace(path.encode(), b'DIRECTORY')
        return {'end': end, **streams, 'files': contents(f'{path}/here')}


class Job(Way):
    def __init__(self, place, box):
        super().__init__(place, 'job', box.client)
        self.box = box

    def run(self, row, words):
        path = self.folder(row)
        job = self.box.submit('-q', '-g', '0', '-c', '0.1', '-C', f'{path}/here', '-o', f'{path}/out', '--error', f'{path}/err', '--', *words,
                              env=OWN)
        ended = self.box.wait(job, timeout_s=DEADLINE_S)
        return self.result(path, (ended['ended_by'], ended['exit_code']))


class Bare(Way):
    def run(self, row, words):
        path = self.folder(row)
        with open(f'{path}/out', 'ab') as out, open(f'{path}/err', 'ab') as err:
            code = subprocess.run(['setsid', 'nohup', *words], cwd=f'{path}/here', env={**self.user.environment(), **OWN}, check=False,
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=DEADLINE_S,
                                  **self.user.popen_arguments()).returncode
        return self.result(path, ('exit', code) if code >= 0 else ('signal', 128 - code))


@pytest.fixture(scope='module')
def results(shared_box):
    """{row: (as a job, under the bare shell)}, all of them run side by side."""
    place = tempfile.mkdtemp(prefix='mgpu-oracle-', dir='/tmp')  # another pytest closes pytest's own folder to users
    os.chmod(place, 0o1777)
    job, bare = Job(place, shared_box), Bare(place, 'bare', shared_box.client)

    def run(way, number, words):
        try:
            return way.run(number, words)
        except (AssertionError, subprocess.TimeoutExpired) as error:  # of this row alone
            return error

    def both(number, words):
        return run(job, number, words), run(bare, number, words)

    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running = {row: pool.submit(both, number, words) for number, (row, words) in enumerate(ROWS.items())}
        yield {row: future.result() for row, future in running.items()}
    shutil.rmtree(place, ignore_errors=True)


def shown(result):
    """A result, short enough to be read among others."""
    return str(result)[:400]


@pytest.mark.parametrize('block', BLOCKS)
def test_jobs_do_what_a_bare_shell_does(results, block):
    wrong = []
    for row, (as_job, bare) in results.items():
        if row.startswith(f'{block}: ') and row not in oracle_programs.DIFFERENT and (as_job != bare or not isinstance(bare, dict)):
            wrong.append(f'{row}\n  as a job: {shown(as_job)}\n  bare:     {shown(bare)}')
    assert not wrong, f'{len(wrong)} rows\n' + '\n'.join(wrong[:20])


@pytest.mark.parametrize('row', oracle_programs.DIFFERENT)
def test_what_differs_from_a_bare_shell_is_listed_with_its_reason(results, row):
    as_job, bare = results[row]
    assert oracle_programs.DIFFERENT[row] and as_job != bare
