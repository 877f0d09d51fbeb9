# SPDX-License-Identifier: MIT
"""mgpu logs -n of logs that are long, sparse or no text."""

import os
import subprocess

import pytest


GPUS = 'sim:1x8G'
MIB = 1 << 20
LINE_MAX = 16 * MIB


@pytest.fixture
def write_log(box):
    """Ends a job, and lets its user replace what is in its log."""
    def write(change):
        job = box.submit('-g', '0', '--', 'echo', 'first')
        path = box.wait(job)['log']
        with box.client.acting(), open(path, 'r+b') as log:
            change(log)
        return job
    return write


def tail(box, job, lines):
    """The output, and the most memory that the command has used."""
    process = box.popen('logs', '--raw', '-n', lines, job, stderr=subprocess.DEVNULL)
    with process.stdout as stream:
        text = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return text, usage.ru_maxrss * 1024


def test_a_sparse_log_is_not_read_whole(box, write_log):
    def change(log):
        log.truncate(4 << 40)
        log.seek(0, os.SEEK_END)
        log.write(b'\nlast\n')
    job = write_log(change)
    assert tail(box, job, 1)[0] == b'last\n'
    text, memory = tail(box, job, 2)
    assert text.endswith(b'\0\nlast\n') and LINE_MAX <= len(text) < LINE_MAX + 3 * MIB, len(text)
    assert memory < 400 * MIB, memory


@pytest.mark.parametrize('lines', [1, 2, 7, 5000, 200000, 300000])
def test_lines_are_counted_over_the_windows(box, write_log, lines):
    text = b''.join(b'%d %s\n' % (i, b'x' * (i % 37)) for i in range(200000))
    job = write_log(lambda log: (log.truncate(), log.write(text)))
    assert tail(box, job, lines)[0] == b''.join(text.splitlines(keepends=True)[-lines:])


def test_a_long_line_below_the_limit_is_whole(box, write_log):
    text = b'one\n' + b'y' * (9 * MIB) + b'\nthree'
    job = write_log(lambda log: (log.truncate(), log.write(text)))
    assert tail(box, job, 1)[0] == b'three'
    assert tail(box, job, 2)[0] == text[4:]
    assert tail(box, job, 3)[0] == text


@pytest.mark.parametrize('make', [os.mkfifo, os.mkdir], ids=['pipe', 'directory'])
def test_a_log_that_was_replaced_by_something_else_is_refused_at_once(box, make):
    job = box.submit('-g', '0', '--', 'echo', 'first')
    path = box.wait(job)['log']
    with box.client.acting():
        os.unlink(path)
        make(path)
    answer = box.api('GET', f'/jobs/{job}/log')
    assert answer.status == 403 and 'is not a regular file' in answer.json['detail'], answer
    done = box.mgpu('logs', job)
    assert done.code != 0 and 'is not a regular file' in done.err and 'waited' not in done.err, done
