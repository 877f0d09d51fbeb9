# SPDX-License-Identifier: MIT
"""The dashboard of the terminal, as somebody sees it who sits in front of it (tmux)."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import termios
import time

import harness
import pytest
import test_terminal

pytestmark = [pytest.mark.skipif(shutil.which('tmux') is None, reason='no tmux here'),
              pytest.mark.skipif(not harness.HAS_TERMINALS, reason='no pseudoterminals here (devpts)')]
GPUS = 'sim:8x24G'


class Top(test_terminal.Screen):
    """`mgpu top` in a window of tmux, with preferences of its own."""

    def __init__(self, box, place, columns=80, rows=24, client=None, lang=None, **exports):
        super().__init__(box, place, columns, rows)
        self.client_user, self.exports = client or box.client, exports
        self.environment.update({'XDG_STATE_HOME': place, 'LANG': lang or 'C.UTF-8'})

    def run(self, *arguments):
        """Runs `mgpu top ARGUMENTS`; "over N" with its status N appears after it."""
        script = f'{self.socket}.sh'
        exports = {'MGPU_SOCKET': self.box.socket, 'ASAN_OPTIONS': 'exitcode=99', **self.exports}
        with open(script, 'w', encoding='utf-8') as file:
            file.write(''.join(f"export {name}='{value}'\n" for name, value in exports.items()) + 'cd /tmp; trap : INT\n' +
                       ' '.join(f"'{word}'" for word in [f'{harness.programs()}/mgpu', 'top', *map(str, arguments)]) +
                       '\necho "over $?"; read forever\n')
        os.chmod(script, 0o755)
        out = self.tmux('new-session', '-d', *self.size, 'sh', script)
        assert out == '', out
        return self

    def tmux(self, *arguments):
        if self.client_user is self.box.client:
            return super().tmux(*arguments)
        kept, self.box.client = self.box.client, self.client_user
        try:
            return super().tmux(*arguments)
        finally:
            self.box.client = kept

    def keys(self, *keys):
        """Keys, one after the other, as tmux names them."""
        for key in keys:
            self.tmux('send-keys', key)

    def type_text(self, text):
        self.tmux('send-keys', '-l', '--', text)

    def wait_gone(self, pattern):
        while re.search(pattern, self.text(), re.M):
            self.next_change()

    def resize(self, columns, rows):
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))


@pytest.fixture
def top(box, place):
    made = []

    def make(*arguments, instance=None, **options):
        made.append(Top(instance or box, place, **options))
        return made[-1].run(*arguments)

    yield make
    for one in made:
        one.close()


def gated(box, gate, name, *options):
    """A job that waits at the gate, started."""
    job = box.submit('-J', name, *options, '--', *gate.command())
    box.wait(job, 'running,queued')
    return job


def test_it_shows_gpus_jobs_and_output_and_q_leaves_the_terminal_as_it_was(box, top, gate, bell):
    job = box.submit('-g', 2, '-t', '1h', '-J', 'train', '--', 'sh', '-c', f'echo "epoch 1"; echo up > {bell.path}; read x < {gate.path}')
    bell.wait()
    one = top()
    one.wait(r'^ mgpu \S+ · 8 GPUs: 2 used 6 free')
    one.wait(rf'^│ 0 {job} ')
    one.wait(rf'^│●\s+{job} you +train +running +:0,1 .*59m')
    one.wait(r'^│ epoch 1')
    one.wait(r'^ Enter details .* \? keys  q quit')
    assert one.tmux('display', '-p', '#{alternate_on}').strip() == '1'
    one.keys('q')
    one.wait(r'^over 0')
    assert one.tmux('display', '-p', '#{alternate_on} #{cursor_flag}').strip() == '0 1'
    assert 'mgpu' not in one.text().replace('mgpu-t', ''), 'nothing is left on the screen'


@pytest.mark.smoke
def test_what_changes_is_shown_without_a_key(box, top, gate):
    one = top()
    one.wait('no jobs|^│[✓✗⊘]')
    job = gated(box, gate, 'fresh', '-g', 1)
    one.wait(rf'^│●\s+{job} you +fresh +running')
    gate.open()
    one.wait(rf'^│✓\s+{job} you +fresh +done')


def test_every_size_has_a_picture_of_its_own_and_resizing_changes_it(box, top, gate):
    job = gated(box, gate, 'wide', '-g', 1)
    one = top(columns=60, rows=15)
    one.wait(rf'^│●\s+{job} you')
    assert re.search(r'^ 1 GPUs   2 Jobs   3 Log', one.text(), re.M), one.text()
    assert '3 Log' in one.text() and '┌1 GPUs' not in one.text()
    one.keys('1')
    one.wait(r'^┌1 GPUs')
    one.resize(200, 50)
    one.wait(r'^┌1 GPUs.*\[last 10 min\]')
    one.wait(r'^│ 0 .*  4 (free|\d)')  # two columns of GPUs
    one.wait(r'^┌3 Log')
    one.resize(10, 3)
    one.wait(r'^too small')
    one.resize(80, 24)
    one.wait(rf'^│●\s+{job} you')
    assert len([line for line in one.text().splitlines() if line.startswith('┌')]) == 3


def test_it_lives_through_a_restart_of_mgpud(make_instance, top, gate):
    box = make_instance(GPUS)
    job = gated(box, gate, 'steady', '-g', 1)
    one = top(instance=box)
    one.wait(rf'^│●\s+{job} you +steady')
    client = one.client()
    box.stop()
    one.wait(r'reconnecting \d+s')
    assert 'steady' in one.text(), 'the last state stays'
    box.start()
    one.wait_gone('reconnecting')
    other = gated(box, gate, 'after', '-g', 1)
    one.wait(rf'^│●\s+{other} you +after')
    assert one.client() == client


def test_it_waits_for_a_mgpud_that_is_not_there(make_instance, top):
    box = make_instance(GPUS)
    box.stop()
    one = top(instance=box)
    one.wait('mgpud does not respond')
    one.wait('mgpud --detach|administrator starts|systemctl status mgpud')  # the hint depends on the machine
    box.start()
    one.wait('8 GPUs: 0 used 8 free')


def test_filter_and_sort(box, top, gate):
    for name in ('alpha', 'beta', 'gamma'):
        gated(box, gate, name, '-g', 1)
    one = top('jobs', rows=40)
    one.wait('gamma')
    one.type_text('/n:beta')
    one.wait(r'2 Jobs 1 \[all\] /n:beta')
    assert 'gamma +running' not in one.text()
    one.keys('Enter')
    one.wait(r'^ Enter details')
    one.keys('Escape')
    one.wait(r'^│.*gamma +running')
    one.keys('s')
    one.wait('Sort by')
    one.keys('j', 'j', 'j', 'j', 'Enter')
    one.wait(r'\[sort: name,state\]')
    one.keys('s', 'Enter')
    one.wait(r'\[sort: -name,state\]')
    names = re.findall(r'^│●.* (alpha|beta|gamma) ', one.text(), re.M)
    assert names == ['gamma', 'beta', 'alpha'], one.text()


def test_cancel_asks_and_the_default_is_no(box, top, gate):
    job = gated(box, gate, 'victim', '-g', 1)
    one = top('jobs')
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter', 'c')
    one.wait(rf'^ cancel job {job} \(victim\)\? y/N')
    one.keys('Enter')
    one.wait('nothing changed')
    assert box.job(job)['state'] == 'running'
    one.keys('c', 'y')
    assert box.wait(job)['state'] == 'cancelled'
    one.wait(rf'^│⊘\s+{job} .*cancelled')


def test_marked_jobs_are_cancelled_together(box, top, gate):
    jobs = [gated(box, gate, 'many', '-g', 1) for _ in range(3)]
    one = top('jobs')
    one.type_text('/n:many s:run')
    one.wait('2 Jobs 3 ')
    one.keys('Enter', 'Space', 'Space', 'c')
    one.wait(rf'^ cancel jobs {jobs[0]}, {jobs[1]}\? y/N')
    one.keys('y')
    assert [box.wait(job)['state'] for job in jobs[:2]] == ['cancelled'] * 2
    assert box.job(jobs[2])['state'] == 'running'


def test_hold_release_and_priority(box, top, gate):
    for _ in range(8):
        gated(box, gate, 'full', '-g', 1)
    job = gated(box, gate, 'waits', '-g', 1)
    one = top('jobs')
    one.type_text('/n:waits')
    one.wait(rf'^│◌\s+{job} ')
    one.keys('Enter', 'H')
    one.wait(rf'^│‖\s+{job} .*held')
    one.keys('H')
    one.wait(rf'^│◌\s+{job} .*queued')
    one.keys('p')
    one.wait('higher runs first: 0')
    one.keys('C-u')
    one.type_text('-5')
    one.keys('Enter')
    one.wait(f'job {job} has a new priority')
    assert box.job(job)['priority'] == -5
    one.keys('w')
    one.wait(rf'┌Why job {job} is waiting')
    one.wait(r'of 8 (is|are) free|Resources')


def test_what_is_not_allowed_is_said_and_not_done(box, top):
    one = top('gpus')
    one.wait(r'^│ 0 (free|\d)')
    one.keys('D')
    one.wait(r'^ pause GPU \S+:0; running jobs are not affected\? y/N')
    one.keys('y')
    if box.client.uid == box.user.uid:
        one.wait('is paused')
        box.mgpu('gpu', 'resume', 0, check=True)
    else:
        one.wait('this requires the role operator')
        assert box.gpus()[0]['state'] == 'free'


def test_operators_pause_gpus_and_put_them_back(box, top):
    one = top('gpus', client=box.user)
    one.wait(r'^│ 0 (free|\d)')
    one.keys('j', 'D', 'y')
    one.wait(r'^│ 1 ‖.*paused')
    assert box.gpus()[1]['state'] == 'paused'
    one.keys('D', 'y')
    one.wait(r'^│ 1 free')


def test_attach_leaves_the_screen_and_comes_back(box, top):
    job = test_terminal.job_of(box, 'echo ready; while read x; do echo "<$x>"; done')
    one = top('jobs')
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter', 'a')
    one.wait(r'^ready')
    one.type('word', 'Enter')
    one.wait(r'^<word>')
    one.type('C-]', 'd')
    one.wait(rf'detached from job {job}')
    one.wait(r'^┌2 Jobs')


def test_a_flood_of_output_is_passed_over_and_its_end_is_shown(box, top, gate):
    job = box.submit('-g', 0, '-J', 'flood', '--', 'sh', '-c', f'seq 1 2000000; echo the end; read x < {gate.path}')
    one = top('jobs')
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter')
    one.wait(r'^│ the end')
    assert re.search(r'^│ 2000000 ', one.text(), re.M), one.text()


def test_a_job_that_is_started_anew_shows_its_new_output(box, top, gate):
    job = box.submit('-g', 0, '-J', 'again', '--', 'sh', '-c', f'echo "attempt $MGPU_ATTEMPT"; exec cat {gate.path}')
    one = top('jobs')
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter')
    one.wait(r'^│ attempt 1 ')
    one.keys('r')
    one.wait(rf'^ requeue job {job} \(again\)\? y/N')
    one.keys('y')
    one.wait(r'^│ attempt 2 ')
    assert 'attempt 1' not in one.text()


def test_the_log_of_an_attempt_that_is_slow_to_start_is_not_mistaken_for_the_one_before(box, top, gate):
    job = box.submit('-g', 8, '-J', 'slow', '--', 'sh', '-c', f'echo "attempt $MGPU_ATTEMPT"; exec cat {gate.path}')
    one = top('jobs')
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter')
    one.wait(r'^│ attempt 1 ')
    helper = next(pid for pid in box.agents() if harness.process_name(pid) == 'mgpu-gpus')
    os.kill(helper, signal.SIGSTOP)  # attempt 2 waits until the GPUs were looked at, and has no output before
    try:
        box.mgpu('requeue', job, check=True, user=box.user)
        box.wait(job, 'starting')
        one.wait(r'starting')
        box.output(job)  # asked after the dashboard asked for the same
    finally:
        with contextlib.suppress(ProcessLookupError):  # the agent may have replaced it
            os.kill(helper, signal.SIGCONT)
    one.wait(r'^│ attempt 2 ')
    assert 'attempt 1' not in one.text()


def test_a_job_that_starts_under_ones_eyes_shows_its_output(box, top, gate):
    for _ in range(8):
        gated(box, gate, 'full', '-g', 1)
    job = box.submit('-g', 1, '-J', 'next', '--', 'sh', '-c', 'echo here; read x < ' + gate.path)
    one = top('jobs')
    one.type_text(f'/id:{job}')
    one.wait(rf'^┌3 Why {job} ')
    one.keys('Enter')
    gate.open()
    one.wait(rf'^┌3 Log {job} ')
    one.wait(r'^│ here')


def test_output_of_others_is_not_shown(box, top, gate):
    if box.client.uid == box.user.uid:
        pytest.skip('needs two users')
    job = gated(box, gate, 'theirs', '-g', 1)
    other = harness.make_user('mgpu-tb')
    one = top('jobs', client=other)
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter')
    one.wait(r'^┌3 Log.*\n│ .*(owner|not|others)')


def test_the_whole_log_is_shown_in_a_pager(box, top, place):
    pager = f'{place}/pager'
    with open(pager, 'w', encoding='ascii') as file:
        file.write('#!/bin/sh\nsed "s/^/paged: /"; read x < /dev/tty\n')
    os.chmod(pager, 0o755)
    job = box.submit('-g', 0, '--', 'printf', 'one\\n\\033[31mtwo\\033[0m\\n')
    box.wait(job)
    one = top('jobs', MGPU_PAGER=pager)
    one.type_text(f'/id:{job}')
    one.wait('2 Jobs 1 ')
    one.keys('Enter', 'l')
    one.wait(r'^paged: one\n+paged: two$')
    one.keys('Enter')
    one.wait(r'^┌2 Jobs')


def test_the_page_of_a_job_and_the_other_pages(box, top, gate):
    job = gated(box, gate, 'page', '-g', 2, '-t', '1h')
    one = top(job)
    one.wait(rf'^┌Job {job}  page, of ')
    one.wait(r'^│ request +2 GPUs')
    one.wait(r'^│ times +submitted .* started .* now ─ 5\dm')
    one.wait(r'─ GPUs, their mean, 10 min')
    one.keys(']')
    one.wait('1 hour')
    one.keys('4')
    one.wait(r'^┌Nodes 1')
    one.wait(r'up  \d+ CPUs')
    one.keys('5')
    one.wait(r'^│you +1 ')
    one.keys('6')
    one.wait(rf'^│GPU 1 .*(█|{job})')
    one.keys('7')
    one.wait(r'^┌Ended, 7 days')
    one.keys('Escape')
    one.wait(r'^┌2 Jobs')


def test_ended_jobs_have_pages_too_and_the_selection_comes_back(box, top, gate):
    ended = box.submit('-g', 0, '-J', 'gone', '--', 'sh', '-c', 'echo last words; exit 3')
    box.wait(ended)
    job = gated(box, gate, 'stays', '-g', 1)
    one = top('jobs')
    one.wait(rf'^┌3 Log {job} ')
    one.keys('7')
    one.wait(r'^┌Ended, 7 days')
    one.type_text(f'/id:{ended}')
    one.wait('Ended, 7 days: 1 ')
    one.keys('Enter', 'Enter')
    one.wait(rf'^┌Job {ended}  gone')
    one.wait(r'^│ state +✗ failed: exit 3')
    one.wait(r'^│ last words')
    one.keys('Escape')
    one.wait(r'^┌Ended, 7 days')
    one.keys('Escape')
    one.wait(rf'^┌3 Log {job} ')


def test_the_mouse_selects_and_sorts(box, top, gate):
    jobs = [gated(box, gate, 'mouse', '-g', 1) for _ in range(2)]
    one = top('jobs')
    one.type_text('/n:mouse s:run')
    one.wait('2 Jobs 2 ')
    one.keys('Enter')

    def line_of(pattern):
        return next(i for i, line in enumerate(one.text().splitlines()) if re.match(pattern, line))

    def click(y, x, is_at_once=False):
        """Presses the button and releases it: two inputs or, as over a slow connection, one."""
        events = ['\033[M' + chr(code) + chr(33 + x) + chr(33 + y) for code in (32, 35)]
        for text in [''.join(events)] if is_at_once else events:
            one.type_text(text)

    one.wait(rf'^│●\s+{jobs[1]} ')
    click(line_of(rf'│●\s+{jobs[1]} '), 10)
    one.wait(rf'^┌3 Log {jobs[1]} ')
    click(line_of(r'│\s+ID USER '), 6)
    one.wait(r'\[sort: user,state\]')
    click(line_of(r'│\s+ID USER '), 11, is_at_once=True)
    one.wait(r'\[sort: name,user\]')


def test_signals_leave_the_terminal_as_it_was(box, top):
    one = top()
    one.wait(r'^┌2 Jobs')
    os.kill(one.client(), signal.SIGTERM)
    one.wait(r'^over 0')
    assert one.tmux('display', '-p', '#{alternate_on} #{cursor_flag}').strip() == '0 1'


# --- terminals of other kinds, and none ---


@pytest.mark.parametrize('terminal', ['dumb', 'no-such-terminal', ''])
def test_a_terminal_that_cannot_place_text_gets_one_picture(top, terminal):
    one = top(TERM=terminal)
    one.wait(r'^over 0')
    assert 'printing one screen instead' in one.text('-J', '-S', '-50')
    assert '┌2 Jobs' in one.text('-S', '-50')


@pytest.mark.parametrize('terminal', ['vt100', 'linux', 'xterm-256color'])
def test_terminals_with_few_abilities_are_enough(top, terminal):
    one = top(TERM=terminal)
    one.wait(r'8 GPUs: \d used')
    one.keys('q')
    one.wait(r'^over 0')


@pytest.fixture
def bare(box):
    """`mgpu top` on a terminal that has not been told its size; (descriptor, process)."""
    ours, theirs = pty.openpty()
    process = box.popen('top', stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                        env={'TERM': 'xterm-256color'})
    os.close(theirs)
    seen = b''
    while b'2 Jobs' not in seen:
        assert select.select([ours], [], [], harness.DEADLINE_S)[0], seen
        seen += os.read(ours, 65536)
    yield ours, process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_a_terminal_without_a_size_is_taken_for_a_usual_one(bare):
    ours, process = bare
    os.write(ours, b'q')
    assert process.wait(harness.DEADLINE_S) == 0
    os.close(ours)


def test_a_terminal_that_goes_away_ends_it(bare):
    ours, process = bare
    os.close(ours)
    assert process.wait(harness.DEADLINE_S) == -signal.SIGHUP


def test_stops_and_new_sizes_in_the_middle_of_drawing_do_no_harm(bare):
    ours, process = bare
    for i in range(300):
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack('HHHH', 1 + i * 7 % 60, 1 + i * 31 % 200, 0, 0))
        os.kill(process.pid, signal.SIGTSTP)  # nobody is there who would let it go on, so it does at once
        if select.select([ours], [], [], 0.01)[0]:
            os.read(ours, 65536)
        assert process.poll() is None
    end = time.monotonic() + harness.DEADLINE_S
    while process.poll() is None and time.monotonic() < end:
        os.write(ours, b'q')  # keys that were typed while it stopped are thrown away
        with contextlib.suppress(OSError):  # it has left
            if select.select([ours], [], [], 0.1)[0]:
                os.read(ours, 65536)
    assert process.wait(harness.DEADLINE_S) == 0
    os.close(ours)


def test_a_locale_without_utf8_gets_ascii(box, top, gate):
    job = gated(box, gate, 'plain', '-g', 1)
    one = top(lang='C')
    one.wait(rf'^\|\*\s+{job} you')
    assert all(ord(letter) < 0x80 for letter in one.text()), one.text()


def test_in_a_pipe_it_is_the_two_lists(box, gate):
    job = gated(box, gate, 'piped', '-g', 1)
    done = box.mgpu('top', check=True)
    assert re.search(rf'^ *{job} .*piped', done.out, re.M), done
    assert re.search(r'^NODE +GPU', done.out, re.M), done
    assert '\x1b' not in done.out


def test_one_picture_as_text(make_instance, gate):
    box = make_instance(GPUS)
    jobs = [gated(box, gate, f'job-{i}', '-g', 4, '-t', '1h') for i in range(3)]
    box.wait(jobs[1], 'running')
    done = box.mgpu('tui', '--once', '--size', '80x24', check=True)
    text = re.sub(r'\d\d:\d\d(:\d\d)?', 'TIME', done.out)
    node = box.gpus()[0]['node']
    lines = text.splitlines()
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines), done
    assert re.match(rf' mgpu {node} · 8 GPUs: 8 used 0 free · 2 run 1 wait', lines[0])
    assert lines[1].startswith('┌1 GPUs Simulated GPU─')
    user = box.client.name
    for i in range(8):
        assert re.match(rf'│ {i} {jobs[i // 4]} +{user} +\d+% +0\.0/24G +\d+C +\d+W job-{i // 4} +│$', lines[2 + i]), lines[2 + i]
    assert lines[11].startswith('┌2 Jobs 3 [all]─') and lines[11].endswith('[sort: state,turn]┐')
    assert re.match(r'│ +ID USER NAME +STATE +GPUS TIME +LEFT +WHY +│$', lines[12])
    assert re.match(rf'│● +{jobs[0]} you +job-0 running +:0-3 ', lines[13]), lines[13]
    assert re.match(rf'│◌ +{jobs[2]} you +job-2 queued #1 +×4 +\d', lines[15]), lines[15]
    assert lines[19].startswith(f'┌3 Log {jobs[0]} job-0─')
    assert lines[23].endswith('? keys  q quit')
    wide = box.mgpu('top', '--once', '--size', '120x40', '--graph', 'ascii', 'users', check=True)
    assert re.search(r'^│you +2 +1 +8 ', wide.out, re.M), wide


def test_the_log_of_a_job_shows_standard_error_too_where_that_has_a_log_of_its_own(make_instance, gate):
    box = make_instance(GPUS)
    job = box.submit('--split-log', '-g', 0, '--', 'sh', '-c', f'printf "half a line"; echo "why it fails" >&2; read x < {gate.path}')
    box.wait(job, 'running')

    def shown():
        text = box.mgpu('top', '--once', '--size', '100x30', check=True).out
        return re.findall(r'^│ (half a line|why it fails) +│$', text, re.M)

    harness.until(lambda: sorted(shown()) == ['half a line', 'why it fails'], 'both in the log')
    gate.open()
    box.wait(job)
    assert sorted(shown()) == ['half a line', 'why it fails'], 'each on a line of its own'


def test_one_picture_needs_a_mgpud(box, place):
    done = box.mgpu('--socket', f'{place}/none', 'top', '--once')
    assert done.code == 5 and 'hint' in done.err, done


@pytest.mark.parametrize('arguments', [['--once', '--size', '80'], ['--once', '--size', '5x5'], ['--size', '80x24'],
                                       ['--refresh', '0'], ['--refresh', '61'], ['--graph', 'dots'], ['--theme', 'pink'],
                                       ['moon'], ['jobs', 'gpus']])
def test_a_usage_error_is_exit_2(box, arguments):
    done = box.mgpu('top', *arguments)
    assert done.code == 2 and done.err.startswith('mgpu top: '), done
