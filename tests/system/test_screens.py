# SPDX-License-Identifier: MIT
"""What a person reads fits the terminal: the header of a list stays on the screen, jobs that have not ended come before
ended ones, and the reason begins with the fact."""
import fcntl
import os
import pty
import re
import signal
import struct
import termios

import pytest

GPUS = 'sim:8x24G'
SIZES = [(80, 24), (80, 40), (200, 60)]
ENDED = 30  # more than 24 lines have room for


def on_screen(box, words, columns, rows):
    """The lines that `mgpu WORDS` prints on a terminal of this size, without escape sequences."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
    done = box.popen(*words, env={'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'}, stdin=secondary, stdout=secondary,
                     stderr=secondary, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(secondary)
    said = b''
    try:
        while piece := os.read(primary, 65536):
            said += piece
    except OSError:  # the last one has closed it
        pass
    os.close(primary)
    assert done.wait(timeout=30) == 0, said
    return re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', said.decode()).replace('\r\n', '\n').splitlines()


@pytest.fixture(name='full')
def full_box(box, place):
    """Ended jobs, one that runs, and more that wait than a small screen has lines for."""
    missing = ENDED - box.mgpu('ps', '-s', 'done', check=True).out.count(' done ')
    for job in [box.submit('-q', '-g', '0', '--', 'true') for _ in range(missing)]:
        box.wait(job)
    os.mkdir(f'{place}/gone')
    broken = box.submit('-q', '-g', '0', '-C', f'{place}/gone', '--hold', '--', 'true')
    os.rmdir(f'{place}/gone')
    box.mgpu('release', broken, check=True)
    box.wait(broken)
    first = box.submit('-q', '-g', '4', '-t', '2h', '-J', 'first', '--', 'sleep', '600')
    box.wait(first, 'running')
    jobs = {'broken': broken, 'first': first, 'wide': box.submit('-q', '-g', '8', '-t', '1h', '-J', 'wide', '--', 'true')}
    jobs['behind'] = box.submit('-q', '-g', '2', '-t', '9h', '-J', 'behind', '--', 'sleep', '600')
    jobs['after'] = box.submit('-q', '-g', '0', '-A', first, '-J', 'after', '--', 'true')
    return box, jobs


def row_of(lines, job):
    found = [line for line in lines if re.match(rf'\S +{job} ', line)]
    assert len(found) == 1, (job, lines)
    return found[0]


@pytest.mark.parametrize('columns, rows', SIZES)
def test_a_screen_is_neither_wider_nor_higher_than_the_terminal(full, columns, rows):
    box, _ = full
    for words in [(), ('ps',), ('gpus',), ('why', 'wide'), ('history',)]:
        lines = on_screen(box, words, columns, rows)
        assert max(map(len, lines)) <= columns, (words, lines)
        assert len(lines) < rows, f'mgpu {" ".join(words)}: {len(lines)} lines and the prompt'


def test_jobs_that_have_not_ended_come_first_and_the_newest_of_the_others_next(full):
    box, jobs = full
    active = [jobs[name] for name in ('first', 'wide', 'behind', 'after')]
    for words in [(), ('ps',)]:
        lines = on_screen(box, words, 80, 24)
        order = [int(found[1]) for line in lines if (found := re.match(r'\S +(\d+) +\S', line))]
        assert order[:4] == active, lines
        assert order[4:] == sorted(order[4:], reverse=True), lines
        assert ' more ended in the last hour' in ' '.join(lines), lines


def test_the_reason_of_a_narrow_screen_begins_with_the_fact_and_that_of_a_wide_one_is_a_sentence(full, place):
    box, jobs = full
    narrow, wide = (on_screen(box, ['ps'], columns, 40) for columns in (80, 200))
    assert row_of(narrow, jobs['wide']).endswith(' 4 of 8 are free'), narrow
    assert row_of(narrow, jobs['behind']).endswith(f' behind {jobs["wide"]} (8 GPUs)'), narrow
    assert row_of(narrow, jobs['after']).endswith(f' after job {jobs["first"]} (ok)'), narrow
    assert f' no {place}'[:8] in row_of(narrow, jobs['broken']), narrow
    assert 'requested 8 GPUs; 4 of 8 are free' in row_of(wide, jobs['wide']), wide
    assert 'its resources are free, but reserved' in row_of(wide, jobs['behind']), wide


def test_the_page_of_a_job_breaks_its_lines_between_words_but_not_the_command(full):
    box, jobs = full
    lines = on_screen(box, ('show', jobs['broken']), 80, 24)
    assert [line for line in lines if len(line) > 80] == [], 'the terminal would break these in words'
    state = next(i for i, line in enumerate(lines) if line.startswith('state '))
    assert re.match(r' {11}\S', lines[state + 1]), lines
    assert any('  exit_code=125' in line for line in lines), lines
    wide = on_screen(box, ('show', jobs['broken']), 300, 24)
    assert ' '.join(' '.join(lines).split()) == ' '.join(' '.join(wide).split()), 'the same words'
    words = ['words', 'of', 'a', 'command'] * 8
    long = box.submit('-q', '--hold', '-g', '0', '--', 'echo', *words)
    assert f'command    echo {" ".join(words)}' in on_screen(box, ('show', long), 80, 24), 'one line, to be copied'
    box.mgpu('cancel', long, check=True)


def test_the_page_of_a_job_names_the_file_of_its_standard_error(box, place):
    named = box.submit('-q', '--hold', '-g', '0', '-o', f'{place}/out', '--error', f'{place}/err', '--', 'true')
    assert re.search(rf'^stderr +{place}/err$', box.mgpu('show', named, check=True).out, re.M)
    split = box.submit('-q', '--split-log', '-g', '0', '--', 'true')
    box.wait(split)
    assert re.search(r'^log +(\S+)\nstderr +\1\.err$', box.mgpu('show', split, check=True).out, re.M)
    box.mgpu('cancel', named, check=True)


def test_what_the_screen_has_no_room_for_is_counted_and_listed_on_request(full):
    box, _ = full
    for _ in range(30):
        box.submit('-q', '-g', '8', '-t', '9h', '-J', 'more', '--', 'true')
    said = on_screen(box, ['ps'], 80, 24)
    hidden = int(re.search(r'; (\d+) more queued: mgpu ps --limit 0', ' '.join(said))[1])
    listed = sum(' queued' in line for line in said if line[0] in '◌')
    assert len(said) < 24 and hidden + listed == 33, said
    assert len(on_screen(box, ['ps', '--limit', '0'], 80, 24)) > 34
    assert len(box.mgpu('ps', check=True).out.splitlines()) > 34, 'a pipe has all of them'


@pytest.mark.parametrize('words', [('wait',), ('logs', '-f')], ids=' '.join)
def test_who_waits_for_a_job_on_a_terminal_sees_what_run_shows(box, words):
    first = box.submit('-q', '-g', '8', '--', 'sleep', '600')
    box.wait(first, 'running')
    behind = box.submit('-q', '-g', '8', '--', 'echo', 'it', 'ran')
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 200, 0, 0))
    waiting = box.popen(*words, behind, env={'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'}, stdin=secondary, stdout=secondary,
                        stderr=secondary)
    os.close(secondary)
    said = b''
    while b'Ctrl-C leaves it queued' not in said:  # read(2) fails once the program has ended
        said += os.read(primary, 4096)
    assert f'job {behind} queued'.encode() in said and b'0 of 8 are free' in said, said
    box.mgpu('cancel', first, check=True)
    try:
        while piece := os.read(primary, 4096):
            said += piece
    except OSError:
        pass
    os.close(primary)
    assert waiting.wait(timeout=30) == 0 and f'job {behind} done'.encode() in said, said
    assert (b'it ran' in said) == (words[0] == 'logs'), said


def test_who_waits_for_the_first_of_several_jobs_sees_how_many_wait_and_which_ends_first(box):
    first = box.submit('-q', '-g', '8', '-t', '1h', '--', 'sleep', '600')
    box.wait(first, 'running')
    behind = box.submit('-q', '-g', '8', '-t', '1h', '--', 'true')
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 200, 0, 0))
    waiting = box.popen('wait', '--any', behind, first, env={'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'}, stdin=secondary,
                        stdout=secondary, stderr=secondary)
    os.close(secondary)
    said = b''
    while said.count(b'Ctrl-C leaves them as they are') < 2:  # read(2) fails once the program has ended
        said += os.read(primary, 4096)
    assert re.search(rf'2 jobs · 1 queued, 1 running · \d+s · first end ~\S+ \(job {first}\) · Ctrl-C', said.decode()), said
    box.mgpu('cancel', first, check=True)
    try:
        while piece := os.read(primary, 4096):
            said += piece
    except OSError:
        pass
    os.close(primary)
    box.mgpu('cancel', behind)
    assert waiting.wait(timeout=30) not in (0, 124) and said.rpartition(b'\r\x1b[K')[2].startswith(f'{first}\r\n'.encode()), said


@pytest.mark.parametrize('words', [('-q', 'wait'), ('--json', 'wait')], ids=' '.join)
def test_who_asks_for_quiet_or_for_data_sees_no_line_while_waiting_for_any(box, words):
    job = box.submit('-q', '-g', '0', '--', 'sleep', '1.5')
    said = ' '.join(on_screen(box, [*words, '--any', job], 80, 24))
    assert 'Ctrl-C' not in said and str(job) in said, said


def test_an_empty_list_is_one_line_on_a_terminal_and_a_header_elsewhere(box):
    for words, line in ((('ps',), r"mgpu: no jobs of \S+; mgpu ps -a shows all users' jobs"), (('ps', '-a', '-s', 'held'), 'no jobs'),
                        (('ps', '-s', 'held'), r'mgpu: no jobs of \S+ match; .*'), (('ps', '-n', 'none*'), r'mgpu: no jobs of \S+ match; .*'), (('history', '-u', 'nobody'), 'no jobs'),
                        (('history', '-n', 'unheard-of'), 'no jobs'), (('token', 'list'), 'no tokens'), (('reserve', 'list'), 'no reservations')):
        if words == ('ps',) and box.mgpu('ps', '-H', check=True).out:
            continue
        said = on_screen(box, words, 80, 24)
        assert len(said) == 1 and re.fullmatch(line, said[0]), (words, said)
        assert re.match(r'[A-Z ]*ID|[A-Z]+ ', box.mgpu(*words, check=True).out), (words, 'a script finds the header')


def test_columns_that_say_nothing_are_left_out_on_a_terminal_alone(box):
    job = box.submit('-q', '-g', '0', '-J', 'bare', '--', 'true')
    box.wait(job)
    header = next(line for line in on_screen(box, ['ps', '-n', 'bare'], 200, 60) if ' STATE' in line)
    assert 'LEFT' not in header and 'WHY' in header, header
    assert 'LEFT' in next(line for line in on_screen(box, ['ps', '-n', 'bare', '-o', 'id,state,left'], 200, 60) if ' STATE' in line)
    assert 'LEFT' in box.mgpu('ps', '-n', 'bare', check=True).out


def test_more_gpus_than_lines_are_counted_and_those_in_use_stay(make_instance):
    many = make_instance(gpus='sim:64x24G')
    many.wait(many.submit('-q', '-g', '3', '--', 'sleep', '600'), 'running')
    said = on_screen(many, ['gpus'], 80, 24)
    assert len(said) < 24 and sum(' used' in line for line in said) == 3, said
    listed = sum(' free' in line and 'more' not in line for line in said)
    assert listed >= 10 and said[-1].startswith(f'{61 - listed} more free: mgpu gpus NODE'), said
    assert len(on_screen(many, ['gpus', '--limit', '0'], 80, 24)) == 65
    assert len(many.mgpu('gpus', check=True).out.splitlines()) == 65


def test_run_on_a_terminal_says_once_how_to_leave(box):
    said = on_screen(box, ['run', '-g', '0', '--', 'sleep', '0.5'], 80, 24)
    assert [line for line in said if 'Ctrl-]' in line] == ['mgpu: Ctrl-] d detaches; the job continues'], said
    for words in (['-q', 'run'], ['run', '--no-tty'], ['run', '--detach-keys', 'ctrl-a']):
        quiet = [*words, '-g', '0', '--', 'sleep', '0.5']
        assert 'Ctrl-]' not in ''.join(on_screen(box, quiet, 80, 24)), quiet


@pytest.mark.parametrize('key, code', [(b'q', 0), (b'\x03', -signal.SIGINT), (b'\x1c', -signal.SIGQUIT), (None, -signal.SIGTERM)])
@pytest.mark.parametrize('verb, header', [('ps', b'NAME'), ('gpus', b'GPU'), ('nodes', b'NODE')])
def test_a_key_ends_a_list_that_is_refreshed_and_the_terminal_is_as_it_was(box, verb, header, key, code):
    primary, secondary = pty.openpty()
    before = termios.tcgetattr(secondary)
    process = box.popen(verb, '-w', env={'LC_ALL': 'C.UTF-8', 'TERM': 'xterm'}, stdin=secondary, stdout=secondary, stderr=secondary,
                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    said = b''
    while header not in said and b'no jobs' not in said:
        said += os.read(primary, 65536)
    assert not termios.tcgetattr(secondary)[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
    if key is None:
        process.terminate()  # from elsewhere
    else:
        os.write(primary, key)
    assert process.wait(timeout=30) == code, said
    assert termios.tcgetattr(secondary) == before
    os.close(primary)
    os.close(secondary)
