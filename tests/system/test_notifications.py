# SPDX-License-Identifier: MIT
"""What jobs tell people: mail, commands and URLs, as their owners, at least once, and in nobody's way."""

import glob
import http.server
import json
import os
import subprocess
import threading

import pytest

import harness

GPUS = 'sim:4x24G'


def notices(instance, job):
    return instance.job(job)['notices']


def await_state(instance, job, *states, timeout_s=harness.DEADLINE_S):
    """The notices of the job, when each is in one of these states."""
    harness.until(lambda: notices(instance, job) and all(one['state'] in states for one in notices(instance, job)),
          f'notices of {job} are {states}', timeout_s)
    return notices(instance, job)


def submit(instance, command, *options, **more):
    return instance.submit('-g', '0', *options, '--', 'sh', '-c', command, **more)


@pytest.fixture
def sendmail(place):
    """A stand-in: keeps what it is given in a file, and who it was."""
    path = os.path.join(place, 'sendmail')
    with open(path, 'w', encoding='utf-8') as out:
        out.write(f'#!/bin/sh\nid -u > {place}/mail.uid; echo "$@" > {place}/mail.args\n'
                  f'cat > {place}/mail.part && mv {place}/mail.part {place}/mail.text\n')
    os.chmod(path, 0o755)
    return path


@pytest.fixture
def web():
    """A server that keeps what is posted, and answers with the statuses it is given, then 200."""
    got, statuses, looks_at_work, come = [], [], [], threading.Condition()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers['content-length']))
            for look in looks_at_work:
                look()
            with come:
                status = statuses.pop(0) if statuses else 200
                got.append((self.path, dict(self.headers), json.loads(body)))
                come.notify_all()
            self.send_response(status)
            if status == 302:
                self.send_header('Location', '/elsewhere')
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    class Web:
        url = f'http://127.0.0.1:{server.server_port}'
        posts, answers, looks = got, statuses, looks_at_work

        @staticmethod
        def wait(count):
            with come:
                assert come.wait_for(lambda: len(got) >= count, harness.DEADLINE_S), got
    yield Web
    server.shutdown()
    thread.join()
    server.server_close()


# --- how it is told ---

def test_a_command_hears_of_the_end_as_the_owner_with_the_job_in_its_environment(box, place):
    tell = (f'cat > {place}/json; id -u > {place}/id; pwd > {place}/cwd; env > {place}/part; '
            f'mv {place}/part {place}/env')
    job = submit(box, 'exit 3', '--notify', tell, '-J', 'train')
    box.wait(job)
    assert [one['event'] for one in await_state(box, job, 'sent')] == ['fail']
    with open(f'{place}/env', encoding='utf-8') as source:
        env = dict(line.rstrip('\n').split('=', 1) for line in source if '=' in line)
    assert env['MGPU_JOB'] == str(job) and env['MGPU_EVENT'] == 'fail' and env['MGPU_STATE'] == 'failed'
    assert env['MGPU_EXIT'] == '3' and env['MGPU_NAME'] == 'train' and env['MGPU_USER'] == box.client.name
    assert env['MGPU_ENDED_BY'] == 'exit' and env['MGPU_NODE'] and env['MGPU_NOTICE']
    assert env['MGPU_TEXT'].startswith(f'job {job} (train) failed (exit 3)')
    assert 'SECRET' not in env and env['HOME'] == box.client.home
    with open(f'{place}/id', encoding='utf-8') as source:
        assert int(source.read()) == box.client.uid
    with open(f'{place}/cwd', encoding='utf-8') as source:
        assert source.read().strip() == box.client.home
    with open(f'{place}/json', encoding='utf-8') as source:
        told = json.load(source)
    assert (told['id'], told['exit_code'], told['user']) == (int(job), 3, box.client.name)


@pytest.mark.root
def test_the_group_list_and_the_limits_of_a_command_are_those_of_its_user(box, place):
    tell = f'(id -G; nice; cat /proc/self/oom_score_adj) > {place}/part; mv {place}/part {place}/out'
    job = submit(box, 'true', '--notify', tell)
    box.wait(job)
    await_state(box, job, 'sent')
    with open(f'{place}/out', encoding='utf-8') as source:
        groups, nice, score = source.read().splitlines()
    assert sorted(int(gid) for gid in groups.split()) == box.client.groups
    assert nice == '10' and int(score) >= 0, 'the agent is spared when memory is short, its children are not'


def test_mail_goes_by_sendmail_as_the_owner_and_tells_what_happened(make_instance, place, sendmail):
    box = make_instance(GPUS, arguments=('--sendmail', sendmail))
    job = submit(box, 'echo "the last words"; exit 4', '--notify', 'mail', '-J', 'train')
    box.wait(job)
    assert [one['to'] for one in await_state(box, job, 'sent')] == ['mail']
    with open(f'{place}/mail.text', encoding='utf-8') as source:
        head, _, body = source.read().partition('\n\n')
    assert f'To: {box.client.name}' in head.splitlines()
    assert f'Subject: mgpu: job {job} (train) failed (exit 4)' in head
    assert 'the last words' in body and f'mgpu show {job}' in body
    with open(f'{place}/mail.uid', encoding='utf-8') as source:
        assert int(source.read()) == box.client.uid
    with open(f'{place}/mail.args', encoding='utf-8') as source:
        assert source.read().split() == ['-t', '-oi']
    shown = box.mgpu('show', job).out
    assert 'mail (fail): sent' in shown, shown


def test_what_a_mail_program_delivers_after_its_end_arrives(make_instance, place, gate, sendmail):
    with open(sendmail, 'w', encoding='utf-8') as out:
        out.write(f'#!/bin/sh\ncat > {place}/part\n(read x < {gate.path}; mv {place}/part {place}/text) > /dev/null 2>&1 &\n')
    box = make_instance(GPUS, arguments=('--sendmail', sendmail))
    job = submit(box, 'true', '--notify', 'mail')
    await_state(box, job, 'sent')
    gate.open()
    harness.until(lambda: os.path.exists(f'{place}/text'), 'it was ended')


def test_no_line_of_a_mail_comes_from_a_name(make_instance, place, sendmail):
    box = make_instance(GPUS, arguments=('--sendmail', sendmail))
    job = box.post_job(['true'], notify=['mail:ana@lab.example'], gpus=0, name='x: é\u0085 Bcc: eve@lab')
    box.wait(job)
    await_state(box, job, 'sent')
    with open(f'{place}/mail.text', encoding='utf-8') as source:
        head = source.read().partition('\n\n')[0].splitlines()
    assert 'To: ana@lab.example' in head and not [line for line in head if line.startswith('Bcc')]
    assert all(ord(letter) < 127 for line in head for letter in line)


def test_without_sendmail_the_failure_is_said_and_tried_again(make_instance, place):
    box = make_instance(GPUS, arguments=('--sendmail', f'{place}/none'))
    job = submit(box, 'true', '--notify', 'mail')
    box.wait(job)
    harness.until(lambda: notices(box, job)[0]['tries'] == 1, 'the first try')
    one, = notices(box, job)
    assert one['state'] == 'waiting' and f'this node has no {place}/none' in one['error'] and one['next_at']
    assert 'failed 1 time: cannot send mail' in box.mgpu('show', job).out
    feature, = [row for row in box.api('GET', '/nodes').json['nodes'][0]['features'] if row['name'] == 'mail']
    assert not feature['on'] and feature['fix']


def test_a_url_gets_the_job_and_a_refusal_is_tried_again(box, web):
    web.answers[:] = [302]
    job = submit(box, 'exit 5', '--notify', f'{web.url}/hook?a=1,2&b=[x]')
    box.wait(job)
    harness.until(lambda: notices(box, job)[0]['tries'] == 1, 'the first try')
    assert 'it answered 302' in notices(box, job)[0]['error']
    web.wait(2)
    await_state(box, job, 'sent')
    assert [path for path, _, _ in web.posts] == ['/hook?a=1,2&b=[x]'] * 2, 'a redirect is not followed'
    (_, first, body), (_, second, _) = web.posts
    assert body['id'] == int(job) and body['exit_code'] == 5 and body['state'] == 'failed'
    assert first['Mgpu-Notice'] == second['Mgpu-Notice'] and first['Content-Type'] == 'application/json'


def test_the_url_is_in_no_command_line(box, web, gate):
    """It often has a secret in it, and everybody sees the command lines of a node."""
    seen = []

    def look():
        for path in glob.glob('/proc/[0-9]*/cmdline'):
            try:
                with open(path, 'rb') as source:
                    seen.append(source.read())
            except OSError:
                pass  # it has ended

    web.looks.append(look)
    job = submit(box, f'read x < {gate.path}', '--notify', f'{web.url}/hook/s3cr3t?a=[b]')
    gate.open()  # now that the command line of `mgpu submit`, which has it, is gone
    await_state(box, job, 'sent')
    assert any(b'curl' in line for line in seen), 'it was called while curl waited'
    assert not any(b's3cr3t' in line for line in seen), [line for line in seen if b's3cr3t' in line]
    assert web.posts[0][0] == '/hook/s3cr3t?a=[b]'


# --- of what ---

def test_each_event_is_told_to_those_who_asked_for_it(box, bell):
    tell = f'echo $MGPU_EVENT $MGPU_STATE > {bell.path}'
    job = submit(box, 'true', '--notify', tell, '--notify-on', 'start,end,fail')
    assert sorted((bell.wait(), bell.wait())) == ['end done', 'start running']
    await_state(box, job, 'sent')
    good = submit(box, 'true', '--notify', tell, '--notify-on', 'fail')
    box.wait(good)
    assert notices(box, good) == []
    bad = submit(box, 'false', '--notify', tell, '--notify-on', 'fail')
    assert bell.wait() == 'fail failed'
    await_state(box, bad, 'sent')


def test_a_requeue_is_told(box, bell, gate):
    job = submit(box, f'read x < {gate.path}', '--notify', f'echo $MGPU_EVENT > {bell.path}', '--notify-on', 'requeue')
    box.wait(job, 'running')
    box.mgpu('requeue', job, check=True)
    assert bell.wait() == 'requeue'
    gate.open()
    assert box.wait(job)['state'] == 'done'


def test_an_array_tells_once(box, bell):
    job = submit(box, 'test $MGPU_ARRAY_INDEX != 1', '-a', '0-3', '--notify', f'echo $MGPU_TEXT > {bell.path}')
    assert box.wait(job)['state'] == 'failed'
    assert '1 of its elements failed' in bell.wait()
    assert len(await_state(box, job, 'sent')) == 1


# --- what cannot be ---

@pytest.mark.parametrize('whom, sentence', [
    ('', 'empty'),
    ('mail:', 'is not a mail address'),
    ('mail:a@b@c', 'is not a mail address'),
    ('mail:-froot', 'is not a mail address'),
    ('mail:ana lab', 'invalid byte 0x20'),
    ('mailto:ana@lab', 'write mail:ana@lab'),
    ('ftp://lab/x', 'not an http or https URL'),
    ('file:///etc/passwd', 'not an http or https URL'),
    ('http://', 'has no host'),
    ('https://lab/a b', 'invalid byte 0x20'),
    ('echo a\nb', 'control character'),
    ('https://lab/' + 'x' * 3000, 'at most 2048'),
])
def test_a_bad_target_is_refused_at_submit(box, whom, sentence):
    done = box.mgpu('submit', '-g', '0', '--notify', whom, '--', 'true')
    assert done.code == 2 and sentence in done.err and done.out == '', done
    answer = box.api('POST', '/jobs', {'command': ['true'], 'cwd': '/', 'gpus': 0, 'notify': [whom]})
    assert answer.status in (400, 413, 422), answer


def test_a_bad_event_is_refused_at_submit(box):
    done = box.mgpu('submit', '-g', '0', '--notify', 'mail', '--notify-on', 'end,birthday', '--', 'true')
    assert done.code == 2 and "'birthday' is not an event" in done.err, done
    answer = box.api('POST', '/jobs', {'command': ['true'], 'cwd': '/', 'gpus': 0, 'notify_on': 'end'})
    assert answer.status == 400 and 'notify_on requires notify' in answer.json['detail'], answer


def test_a_list_of_addresses_is_cut_at_commas_and_a_command_is_not(box):
    job = box.submit('-g', '0', '--hold', '--notify', 'mail,mail:a@b,https://h/x', '--notify', 'echo a,b', '--', 'true')
    assert box.job(job)['notify'] == ['mail', 'mail:a@b', 'https://h/x', 'echo a,b']
    none = box.submit('-g', '0', '--hold', '--notify', 'mail', '--notify', 'none', '--', 'true')
    assert box.job(none)['notify'] == []
    box.mgpu('edit', job, 'notify=mail:x@y', 'notify_on=fail', check=True)
    assert (box.job(job)['notify'], box.job(job)['notify_on']) == (['mail:x@y'], 'fail')


@pytest.mark.root
def test_others_do_not_see_whom_a_job_tells(box, bo):
    job = box.submit('-g', '0', '--hold', '--notify', 'https://hooks.lab/secret', '--', 'true')
    assert 'secret' not in box.api('GET', f'/jobs/{job}', user=bo).body.decode()
    assert 'secret' not in box.api('GET', '/jobs', user=bo).body.decode()


@pytest.mark.root
def test_a_journal_does_not_have_whom_jobs_tell(make_instance):
    box = make_instance(GPUS)
    box.submit('-g', '0', '--hold', '--notify', 'https://hooks.lab/secret', '--', 'true')
    journal = box.mgpu('journal', 'export', user=harness.User('root'), check=True)
    assert '"submitted"' in journal.out and 'secret' not in journal.out


def test_mail_options_of_sbatch_mean_the_same(box, place):
    path = os.path.join(place, 'job.sh')
    with open(path, 'w', encoding='utf-8') as out:
        out.write('#!/bin/sh\n#SBATCH --mail-type=END,FAIL\n#SBATCH --mail-user=ana@lab\ntrue\n')
    os.chmod(path, 0o755)
    job = box.submit('-g', '0', '--hold', path)
    assert (box.job(job)['notify'], box.job(job)['notify_on']) == (['mail:ana@lab'], 'end,fail')


# --- failures and restarts ---

def test_a_command_that_hangs_is_ended_with_all_it_started(make_instance, place, gate):
    box = make_instance(GPUS, arguments=('--notice-time', '1s'))
    job = submit(box, 'true', '--notify', f'echo stuck >&2; (read x < {gate.path}) & echo $! > {place}/pid; wait')
    box.wait(job)
    harness.until(lambda: notices(box, job)[0]['tries'] == 1, 'it was ended')
    assert 'took longer than 1 s and was killed: stuck' in notices(box, job)[0]['error']
    with open(f'{place}/pid', encoding='utf-8') as source:
        pid = source.read().strip()
    harness.until(lambda: not os.path.exists(f'/proc/{pid}'), 'its child was ended too')
    assert box.run_job(['echo', 'x'])[1] == 'x\n'


def test_a_notice_outlives_a_crash_between_the_event_and_the_answer(make_instance, bell, gate):
    box = make_instance(GPUS)
    tell = f'echo $MGPU_NOTICE > {bell.path}; read x < {gate.path}'
    job = submit(box, 'true', '--notify', tell)
    first = bell.wait()
    box.kill()
    box.start()
    assert bell.wait() == first, 'the number is the same'
    gate.open(2)
    assert len(await_state(box, job, 'sent')) == 1
    box.restart()
    assert [one['state'] for one in notices(box, job)] == ['sent']


def test_a_notice_outlives_the_agent(make_instance, bell, gate):
    box = make_instance(GPUS)
    job = submit(box, 'true', '--notify', f'echo x > {bell.path}; read x < {gate.path}')
    bell.wait()
    box.kill_agent()
    bell.wait()
    gate.open(2)
    await_state(box, job, 'sent')


def test_many_ends_at_once_are_paced_and_the_rest_is_dropped(make_instance, place):
    box = make_instance(GPUS, arguments=('--notices-per-hour', '30'))
    tell = (f'mkdir {place}/in.$MGPU_JOB; ls -d {place}/in.* | wc -l > {place}/n.$MGPU_JOB; rmdir {place}/in.$MGPU_JOB')
    jobs = [box.post_job(['true'], gpus=0, notify=[tell]) for _ in range(60)]
    for job in jobs:
        box.wait(job)
    states = [await_state(box, job, 'sent', 'dropped', timeout_s=120)[0] for job in jobs]
    assert sorted(one['state'] for one in states) == ['dropped'] * 30 + ['sent'] * 30
    assert {one['error'] for one in states if one['state'] == 'dropped'} == {
        'more than 30 of this user within an hour'}
    most = 0
    for name in os.listdir(place):
        if name.startswith('n.'):
            with open(f'{place}/{name}', encoding='utf-8') as source:
                most = max(most, int(source.read()))
    assert 1 <= most <= 2, 'two of one user at a time'


def test_a_site_can_switch_it_off(make_instance, place):
    box = make_instance(GPUS, arguments=('--notices', 'off'))
    job = submit(box, 'true', '--notify', f'touch {place}/told')
    box.wait(job)
    one, = await_state(box, job, 'dropped')
    assert 'notices' in one['error'] and not os.path.exists(f'{place}/told')


@pytest.mark.root
def test_a_notice_of_a_user_who_is_gone_fails_with_a_sentence(make_instance, gate):
    gone = harness.make_user('mgpu-tgone')
    box = make_instance(GPUS)
    job = submit(box, f'read x < {gate.path}', '--notify', 'true', '-C', '/', '-o', '/dev/null', user=gone)
    box.wait(job, 'running')
    try:
        subprocess.run(['userdel', '--force', '--remove', 'mgpu-tgone'], check=True, capture_output=True)
        gate.open()
        box.wait(job)
        root = harness.User('root')
        harness.until(lambda: box.job(job, user=root)['notices'][0]['tries'] == 1, 'the first try')
        assert f'unknown user id on this node: {gone.uid}' in box.job(job, user=root)['notices'][0]['error']
    finally:
        gate.open()
