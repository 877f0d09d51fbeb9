# SPDX-License-Identifier: MIT
"""Output that is larger than --log-max: the file of a job stays within it, and keeps its beginning and its end."""

import os
import re

import pytest

import harness

LIMIT = 256 << 10
NOTE = re.compile(r'^mgpu: ([\d.]+ \w+) of output are not kept here: the limit is 256 KiB \(--log-max\)$', re.M)
CUT = 'until head -c 300000 {} | grep -q ^mgpu:; do sleep 0.05; done'
SOME = 'i=0; while [ $i -lt 5 ]; do i=$((i+1)); seq -w 1 200000; done'


@pytest.fixture(scope='module')
def box(ana):
    with_it = harness.Instance('sim:1x8G', client=ana).start()
    yield with_it
    with_it.close()


def text_of(path):
    with open(path, encoding='utf-8') as source:
        return source.read()


def check_cut(text, first, last):
    """The beginning, one line about the rest, and the end; whole lines all of them."""
    lines = text.splitlines()
    assert len(text) <= LIMIT + 100, len(text)
    assert len(NOTE.findall(text)) == 1, [line for line in lines if line.startswith('mgpu')]
    assert lines[0] == first and lines[-1] == last, (lines[0], lines[-1])
    assert all(re.fullmatch(r'\d{6}|last', line) or NOTE.match(line) for line in lines), text[:200]


def test_the_beginning_and_the_end_are_kept_and_the_rest_is_counted(box):
    job = box.submit('-g', '0', '--log-max', '256K', '--', 'sh', '-c', f'{SOME}; {CUT.format("/proc/$$/fd/1")}; echo last')
    done = box.wait(job)
    text = text_of(done['log'])
    check_cut(text, '000001', 'last')
    amount = NOTE.search(text)[1]
    assert amount in ('6.5 MiB', '6.4 MiB', '6.6 MiB'), amount
    assert box.job(job)['log_max'] == LIMIT


def test_output_of_errors_has_the_same_limit(box, place):
    job = box.submit('-g', '0', '--log-max', '256K', '-o', f'{place}/out', '--error', f'{place}/err', '--',
                     'sh', '-c', f'echo out; {{ {SOME}; {CUT.format("/proc/$$/fd/2")}; echo last; }} >&2')
    box.wait(job)
    assert text_of(f'{place}/out') == 'out\n'
    check_cut(text_of(f'{place}/err'), '000001', 'last')


def test_output_within_the_limit_is_as_it_was(box):
    job = box.submit('-g', '0', '--log-max', '256K', '--', 'sh', '-c', 'seq -w 1 020000; exit 3')
    done = box.wait(job)
    assert done['exit_code'] == 3 and text_of(done['log']) == ''.join(f'{n:06}\n' for n in range(1, 20001))


def test_a_terminals_log_has_the_limit(box, place):
    if not harness.HAS_TERMINALS:
        pytest.skip('no terminals here')
    job = box.submit('-g', '0', '--tty', '--log-max', '256K', '-o', f'{place}/tty', '--', 'sh', '-c',
                     f'{SOME}; {CUT.format(f"{place}/tty")}; echo last')
    text = text_of(box.wait(job)['log']).replace('\r\n', '\n')
    assert len(text) <= LIMIT + 100 and text.startswith('000001\n') and text.endswith('last\n') and NOTE.search(text)


def test_one_who_follows_sees_the_end_after_a_cut(box, gate):
    job = box.submit('-g', '0', '--log-max', '256K', '--', 'sh', '-c',
                     f'echo begin; {SOME}; while ! [ -e {gate.path}.cut ]; do sleep 0.05; done; echo after; read word < {gate.path}; echo last')
    box.wait(job, 'running')
    follower = box.popen('logs', '-f', str(job))
    path = box.job(job)['log']
    harness.until(lambda: NOTE.search(text_of(path)), 'a cut')
    with open(f'{gate.path}.cut', 'w', encoding='ascii'):
        pass
    gate.open()
    out = follower.communicate(timeout=harness.DEADLINE_S)[0].decode()
    os.unlink(f'{gate.path}.cut')
    assert out.startswith('begin\n') and 'after\n' in out and out.endswith('last\n'), out[-200:]


def test_the_site_has_the_last_word(ana):
    made = harness.Instance('sim:1x8G', client=ana, arguments=('--log-max', '256K')).start()
    try:
        for asked in ((), ('--log-max', '1G')):
            job = made.submit('-g', '0', *asked, '--', 'sh', '-c', f'{SOME}; {CUT.format("/proc/$$/fd/1")}; echo last')
            check_cut(text_of(made.wait(job)['log']), '000001', 'last')
        job = made.submit('-g', '0', '--log-max', '64K', '--hold', '--', 'true')
        assert made.job(job)['log_max'] == 64 << 10
        done = made.mgpu('edit', str(job), 'log_max=1G')
        assert done.code != 0 and 'at most 256 KiB of the output of a job are kept here' in done.err, done
    finally:
        made.close()


@pytest.mark.parametrize('value', ['1K', '0', '-1', 'much'])
def test_what_is_no_limit_is_refused(box, value):
    done = box.mgpu('submit', '--log-max', value, '--', 'true')
    assert done.code == 2 and 'log' in done.err, done
