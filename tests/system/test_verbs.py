# SPDX-License-Identifier: MIT
"""Every verb and option of the command line: what goes to which stream, exit codes, and what is said on mistakes."""

import csv
import http.server
import io
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import threading

import pytest

import harness
import readme
from nvml import Nvml

pytestmark = pytest.mark.smoke

LIMIT_S = 30


def lines(text):
    return text.splitlines()


# --- in general ---

def test_help_lists_the_verbs_and_every_verb_has_help(box):
    done = box.mgpu('help', check=True)
    for verb in ('run', 'submit', 'ps', 'show', 'logs', 'wait', 'cancel', 'gpus', 'doctor', 'version', 'help'):
        assert re.search(rf'^\s+{verb}\b', done.out, re.M), f'{verb} is not in mgpu help'
        page = box.mgpu(verb, '--help')
        assert page.code == 0 and verb in page.out, page
        assert box.mgpu('help', verb).code == 0


def test_the_first_help_fits_a_terminal_and_names_every_verb(box):
    first, everything = box.mgpu('--help', check=True).out, box.mgpu('help', check=True).out
    verbs = re.findall(r'^  ([a-z][a-z-]+) +[A-Z]', everything.partition('\nOptions')[0], re.M)
    named = {word for line in re.findall(r'^  +(?:[A-Z][a-z ]+|mgpu itself)?  +(.*)$', first, re.M) for word in line.split()}
    assert len(verbs) > 40 and set(verbs) <= named, set(verbs) - named
    assert len(first.splitlines()) < 24 and max(map(len, first.splitlines())) <= 80, 'with the prompt below it'
    for line in re.findall(r'^  mgpu (?!itself).*', first, re.M):
        assert line in everything, line
        verb, option = re.match(r'  mgpu (\w+)(?: (-\w))?', line).groups()
        assert verb in verbs and (option or '') in box.mgpu(verb, '--help', check=True).out, line


def test_sentences_of_a_help_page_are_not_cut_where_the_source_ends_a_line(box):
    """A line shorter than the terminal ends a sentence, an item of a list, or the last word would not have fit."""
    for verb in re.findall(r'^  ([a-z][a-z-]+) +[A-Z]', box.mgpu('help', check=True).out.partition('\nOptions')[0], re.M):
        detail = box.mgpu(verb, '--help', check=True).out.partition('\nOptions')[0].splitlines()
        for line, after in zip(detail[2:], detail[3:]):
            if line and after and not line.startswith(' ') and not after.startswith(' ') and line[-1] not in '.:':
                assert len(line) + 1 + len(after.split()[0]) > 80, f'{verb}: {line}|{after}'


class Standby:
    """A controller that says of each request that another one leads."""

    def __init__(self, seen):
        standby = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                seen.append(self.path)
                self.rfile.read(int(self.headers.get('Content-Length', 0)))
                body = json.dumps({'status': 503, 'detail': 'this controller is a standby', 'leader': standby.leader}).encode()
                # The process that follows a referral for ever is stopped by an answer without one.
                self.send_response(503 if len(seen) < 100 else 500)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def test_show_counts_one_retry_in_the_singular(box):
    one, two = (box.post_job(['true'], hold=True, retry=retries) for retries in (1, 2))
    assert ', retried up to 1 time,' in box.mgpu('show', one, check=True).out
    assert ', retried up to 2 times,' in box.mgpu('show', two, check=True).out


def test_two_standbys_that_name_each_other_are_not_asked_for_ever(box):
    seen = []
    first, second = Standby(seen), Standby(seen)
    first.leader, second.leader = second.url, first.url
    done = box.mgpu('exec', '1', '--', 'true', env={'MGPU_SOCKET': first.url})
    first.close()
    second.close()
    assert done.code != 0 and 'this controller is a standby' in done.err and len(seen) == 2, (done, seen)


def on_terminal(box, words, environment):
    """What `mgpu WORDS` prints on a terminal, and its exit status."""
    primary, secondary = pty.openpty()
    done = box.popen(*words, env=environment, stdin=secondary, stdout=secondary, stderr=secondary)
    os.close(secondary)
    said = b''
    try:
        while chunk := os.read(primary, 65536):
            said += chunk
    except OSError:  # the last one has closed it
        pass
    os.close(primary)
    return said.decode(), done.wait(timeout=30)


def test_help_of_a_verb_opens_its_page_on_a_terminal_and_is_built_in_elsewhere(box, place):
    built_in = box.mgpu('help', 'cancel').out
    man = pathlib.Path(place, 'man')
    man.write_text('#!/bin/sh\n[ "$1" = -w ] && { echo where; exit "$MAN_MISSES"; }\necho "page $*, pager $MANPAGER"\n')
    man.chmod(0o755)
    environment = {'PATH': f'{place}:/usr/bin:/bin', 'MGPU_PAGER': 'more -s', 'MAN_MISSES': '0'}
    assert on_terminal(box, ['help', 'scancel'], environment) == ('page 1 mgpu-cancel, pager more -s\r\n', 0)
    assert box.mgpu('help', 'cancel', env=environment).out == built_in, 'in a pipe'
    missing = on_terminal(box, ['help', 'cancel'], dict(environment, MAN_MISSES='16'))
    assert missing == (built_in.replace('\n', '\r\n'), 0), 'no page is installed'
    no_man = on_terminal(box, ['help', 'cancel'], dict(environment, PATH='/nonexistent'))
    assert no_man == (built_in.replace('\n', '\r\n'), 0), 'man is not installed'


def test_help_and_version_need_no_daemon(box):
    nowhere = {'MGPU_SOCKET': '/nonexistent/mgpud.sock'}
    assert box.mgpu('help', env=nowhere).code == 0
    done = box.mgpu('version', env=nowhere)
    assert re.search(r'^mgpu +\d+\.\d+\.\d+$', done.out, re.MULTILINE)
    assert box.mgpu('--version', env=nowhere).code == 0


@pytest.mark.parametrize('typed, meant', [('sbmit', 'submit'), ('cancle', 'cancel'), ('log', 'logs'), ('que', 'queue')])
def test_a_mistyped_verb_gets_a_suggestion(box, typed, meant):
    done = box.mgpu(typed)
    assert done.code == 2 and done.out == '', done
    assert f"unknown command '{typed}'" in done.err and f"Did you mean '{meant}'?" in done.err


@pytest.mark.parametrize('typed, here', [(['sbatch', 'x.sh'], 'mgpu submit SCRIPT'), (['stop', '5'], 'mgpu cancel JOB'),
                                         (['help', 'tail'], 'mgpu logs -f JOB'), (['submit', '--wrap', 'true'], 'mgpu submit -- '),
                                         (['run', '--cpus-per-task=2', 'true'], '-c N'), (['submit', '-w', 'n', 'true'], '--nodelist')])
def test_a_word_of_another_program_is_answered_with_what_does_the_same_here(box, typed, here):
    done = box.mgpu(*typed)
    assert done.code == (125 if typed[0] == 'run' else 2) and done.out == '', done
    assert 'hint: ' in done.err and here in done.err and 'Did you mean' not in done.err, done


def test_an_unknown_verb_is_a_usage_error(box):
    done = box.mgpu('xyzzyplugh')
    assert done.code == 2 and 'mgpu help' in done.err, done


@pytest.mark.parametrize('verb, option, meant', [('submit', '--gpu', None), ('submit', '--prioritty', '--priority'),
                                                 ('ps', '--usr', '--user'), ('logs', '--folow', '--follow')])
def test_a_mistyped_option_gets_a_suggestion(box, verb, option, meant):
    done = box.mgpu(verb, option, '--', 'true')
    assert done.code == 2 and done.out == '', done
    assert option in done.err
    if meant:
        assert meant in done.err


@pytest.mark.parametrize('arguments', [
    ['submit'], ['submit', '--'], ['run'], ['show'], ['logs'], ['wait'], ['cancel'], ['show', 'x', '--bad'],
    ['submit', '-g'], ['submit', '-g', 'two', '--', 'true'], ['submit', '-g', '-1', '--', 'true'],
    ['submit', '-g', '99999999999999999999', '--', 'true'], ['submit', '-g', '1.5', '--', 'true'],
    ['submit', '-G', '0,0', '--', 'true'], ['submit', '-G', '', '--', 'true'], ['submit', '-G', '3-1', '--', 'true'],
    ['submit', '-m', '8X', '--', 'true'], ['submit', '-m', '-1', '--', 'true'], ['submit', '-m', '0', '--', 'true'],
    ['submit', '-p', '1001', '--', 'true'], ['submit', '-p', 'high', '--', 'true'], ['submit', '-e', '=x', '--', 'true'],
    ['submit', '-n', '4', '--', 'true'], ['submit', '-J', '', '--', 'true'], ['submit', '-J', 'x' * 200, '--', 'true'],
    ['ps', '-o', 'nosuchcolumn'], ['ps', '-s', 'sleeping'], ['gpus', '0', '1'], ['version', '--bad'],
], ids=' '.join)
def test_a_usage_error_is_exit_2_and_one_clear_sentence(box, arguments):
    done = box.mgpu(*arguments)
    # For the verbs that hand a job's own status on, 2 could be the job's: what is ours is 125, as with docker.
    assert done.code == (125 if arguments[0] in ('run', 'wait') else 2), done
    assert done.out == ''
    first = lines(done.err)[0]
    assert first.startswith(f'mgpu {arguments[0]}: ') or first.startswith('mgpu: '), done
    assert box.open_jobs() == []


def test_the_hint_for_n_says_what_was_meant(box):
    done = box.mgpu('run', '-n', '4', '--', 'true')
    assert done.code == 125 and '-g 4' in done.err, done


def test_requests_beyond_the_machine_are_refused_with_what_it_has(box):
    count = len(box.gpus())
    done = box.mgpu('submit', '-g', count + 1, '--', 'true')
    assert done.code == 2 and str(count + 1) in done.err and str(count) in done.err, done
    done = box.mgpu('run', '-g', count + 1, '--', 'true')
    assert done.code in (2, 125) and str(count) in done.err, done
    assert box.mgpu('submit', '-G', count, '--', 'true').code == 2
    assert box.mgpu('submit', '-m', '1000G', '--', 'true').code == 2


def test_an_unreachable_daemon_is_exit_5_with_a_hint(box, place):
    for arguments in (['ps'], ['submit', '--', 'true'], ['cancel', '1'], ['gpus'], ['show', '1']):
        done = box.mgpu(*arguments, env={'MGPU_SOCKET': f'{place}/none.sock'})
        assert done.code == 5 and f'{place}/none.sock' in done.err and 'hint:' in done.err, done
    assert box.mgpu('run', '--', 'true', env={'MGPU_SOCKET': f'{place}/none.sock'}).code == 125


def test_the_socket_option_wins_over_the_variable(box, place):
    assert box.mgpu('ps', '--socket', box.socket, env={'MGPU_SOCKET': f'{place}/none.sock'}).code == 0


def test_job_names_cannot_drive_the_terminal(box):
    job = box.post_job(['echo', '\x1b[31mred\x07'])
    box.wait(job)
    for arguments in (['ps', '-a'], ['show', job]):
        assert '\x1b' not in box.mgpu(*arguments, check=True).out
    assert '\x07' not in box.mgpu('show', job).out


# --- submit ---

def test_submit_prints_the_id_and_nothing_else(box):
    done = box.mgpu('submit', '--', 'true', check=True)
    assert re.fullmatch(r'\d+\n', done.out) and done.err == '', done


def test_ids_grow(box):
    ids = [box.submit('--', 'true') for _ in range(5)]
    assert ids == sorted(set(ids))


def test_submit_json_prints_the_job(box):
    job = box.mgpu('submit', '--json', '-g', '2', '-J', 'x', '-p', '-7', '--', 'true', check=True).json
    assert (job['name'], job['gpus'], job['priority']) == ('x', 2, -7)
    box.wait(job['id'])


def test_every_option_reaches_the_job(box, place):
    job = box.submit('--gpus=2', '--gpu-mem', '1G', '--priority', '-3', '--name', 'all', '--chdir', place, '--env', 'A=1',
                     '-e', 'B=2 3', '--setup', 'export C=4', '--output', 'out-%j.log', '--', 'sh', '-c',
                     'echo "$A|$B|$C|$PWD"')
    done = box.wait(job)
    assert done['state'] == 'done', done
    assert (done['gpus'], done['gpu_mem'], done['priority'], done['name']) == (2, 1 << 30, -3, 'all')
    with open(f'{place}/out-{job}.log', encoding='ascii') as out:
        assert out.read() == f'1|2 3|4|{place}\n'


def test_letters_may_be_joined_and_a_double_dash_is_optional(box):
    job = box.submit('-g1', '-p-5', 'echo', '-n', 'x')
    box.wait(job)
    assert box.output(job) == 'x'


def test_one_word_with_blanks_is_a_shell_command(box):
    job = box.submit('echo a; echo b | tr b c')
    box.wait(job)
    assert box.output(job) == 'a\nc\n'


def test_a_bare_memory_number_is_mebibytes(box):
    job = box.mgpu('submit', '--json', '-m', '2048', '--', 'true', check=True).json
    assert job['gpu_mem'] == 2 << 30
    box.wait(job['id'])


def test_the_directory_of_the_submission_is_the_jobs(box, place):
    job = box.submit('--', 'pwd', cwd=place)
    box.wait(job)
    assert box.output(job) == place + '\n'


# --- run ---

def test_run_shows_the_output_and_exits_with_the_status(box):
    done = box.mgpu('run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 42')
    assert done.code == 42
    assert lines(done.out) == ['out'] and 'err' in lines(done.err), done


def test_run_passes_large_output_through_unchanged(box):
    done = box.mgpu('run', '--', '/usr/bin/python3', '-c', 'import sys; [print(i) for i in range(200000)]')
    assert done.code == 0
    assert done.out == ''.join(f'{i}\n' for i in range(200000))


def test_run_quiet_says_nothing_of_its_own(box):
    done = box.mgpu('run', '-q', '--', 'echo', 'x')
    assert (done.code, done.out, done.err) == (0, 'x\n', '')


def test_run_waits_for_its_turn_and_says_so(box, gate):
    blocker = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(blocker, 'running')
    process = box.popen('run', '--', 'echo', 'my turn')
    said = process.stderr.readline().decode()
    assert re.search(r'job \d+ .*queued', said), said
    gate.open()
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0 and out == b'my turn\n'


def test_ctrl_c_while_waiting_cancels_and_is_130(box, gate):
    blocker = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(blocker, 'running')
    process = box.popen('run', '-J', 'interrupted', '--', 'true')
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    job = box.api('GET', '/jobs?all=1&name=interrupted').json['jobs'][-1]
    assert box.wait(job['id'])['state'] == 'cancelled'
    gate.open()


def test_ctrl_c_while_running_ends_the_job_and_is_130(box, gate, bell):
    process = box.popen('run', '-J', 'interrupted-2', '--', 'sh', '-c', f'echo up > {bell.path}; read x < {gate.path}')
    process.stderr.readline()  # it knows its job: the command may have begun before mgpud's answer was read
    bell.wait()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    job = box.api('GET', '/jobs?all=1&name=interrupted-2').json['jobs'][-1]
    assert box.wait(job['id'])['state'] in ('failed', 'cancelled'), 'by SIGINT, or cancelled while it waited'


def test_a_job_cancelled_by_another_command_is_143(box, gate):
    process = box.popen('run', '-J', 'victim', '--', *gate.command())
    process.stderr.readline()
    box.mgpu('cancel', 'victim', check=True)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 143


def test_the_job_outlives_a_client_that_is_killed(box, gate):
    process = box.popen('run', '-J', 'orphan', '--', *gate.command('exit 5'))
    process.stderr.readline()
    job = box.api('GET', '/jobs?name=orphan').json['jobs'][-1]['id']
    box.wait(job, 'running')
    process.kill()
    process.communicate(timeout=LIMIT_S)
    gate.open()
    assert box.wait(job)['exit_code'] == 5


# --- ps ---

def test_ps_in_a_pipe_is_a_plain_table_with_a_header(box):
    job = box.submit('-J', 'named', '--', 'echo', 'x' * 300)
    box.wait(job)
    done = box.mgpu('ps', '-a', check=True)
    assert lines(done.out)[0].split()[:2] == ['ID', 'USER']
    assert '\x1b' not in done.out and '\t' not in done.out
    assert 'x' * 100 in box.mgpu('ps', job, '-o', 'id,command', check=True).out, 'nothing is cut in a pipe'
    assert 'ID' not in lines(box.mgpu('ps', '-a', '-H', check=True).out)[0].split()


def test_ps_columns_come_in_the_order_asked(box):
    job = box.submit('-J', 'cols', '-g', '2', '--', 'true')
    box.wait(job)
    done = box.mgpu('ps', job, '-o', 'state,id,gpus', check=True)
    assert [line.split() for line in lines(done.out)] == [['STATE', 'ID', 'GPUS'], ['done', str(job), '2']]


def test_ps_formats_for_programs(box):
    job = box.submit('-J', 'a,"b"', '--', 'true')
    box.wait(job)
    whole = box.mgpu('ps', '-a', '-o', 'json', check=True).json
    assert whole['schema'] == 'mgpu/v1' and any(row['id'] == job for row in whole['jobs'])
    assert box.mgpu('ps', '-a', '--json', check=True).json['schema'] == 'mgpu/v1'
    rows = [json.loads(line) for line in lines(box.mgpu('ps', job, '-o', 'jsonl', check=True).out)]
    assert [row['id'] for row in rows] == [job]
    table = list(csv.DictReader(io.StringIO(box.mgpu('ps', job, '-o', 'csv', check=True).out)))
    assert len(table) == 1 and 'a,"b"' in table[0].values(), table


def test_ps_help_lists_the_columns_and_mistakes_get_a_suggestion(box):
    done = box.mgpu('ps', '-o', 'help', check=True)
    assert 'gpus' in done.out and 'state' in done.out
    done = box.mgpu('ps', '-o', 'stat')
    assert done.code == 2 and "Did you mean 'state'" in done.err, done


def test_ps_filters(box, gate):
    running = box.post_job(gate.command(), name='filter-a')
    ended = box.wait(box.post_job(['true'], name='filter-b'))['id']
    box.wait(running, 'running')

    def ids(*arguments):
        return [int(line) for line in box.mgpu('ps', '-H', '-o', 'id', *arguments, check=True).out.split()]
    assert running in ids() and ended in ids()
    assert ids('-s', 'running') == [running]
    assert running not in ids('-s', 'done,failed') and ended in ids('-s', 'done,failed')
    assert ids('-n', 'filter-*', '-s', 'running,done')[-2:] == [running, ended]
    assert ids('-u', 'nobody') == []
    assert ids(f'{running}-{ended}') == [running, ended]
    gate.open()


def test_ps_sorts(box):
    jobs = [box.submit('-p', p, '--', 'true') for p in (-3, -1, -2)]
    for job in jobs:
        box.wait(job)
    done = box.mgpu('ps', '-H', '-o', 'id', '--sort', '-priority', *jobs, check=True)
    assert [int(word) for word in done.out.split()] == [jobs[1], jobs[2], jobs[0]]


@pytest.mark.parametrize('alias', ['queue', 'list', 'ls', 'squeue'])
def test_ps_answers_to_its_other_names(box, alias):
    assert box.mgpu(alias, '-a', check=True).out.startswith('ID')


# --- show ---

def test_show_tells_everything_about_a_job(box):
    job = box.submit('-J', 'shown', '-E', 'true', '-e', 'A=1', '--', 'sh', '-c', 'exit 6')
    box.wait(job)
    done = box.mgpu('show', job, check=True)
    for word in (str(job), 'shown', 'failed', 'sh -c', '6'):
        assert word in done.out, word
    whole = box.mgpu('show', job, '--json', check=True).json
    whole = whole['jobs'][0] if 'jobs' in whole else whole
    assert whole['argv'] == ['sh', '-c', 'exit 6'] and whole['env']['A'] == '1' and whole['setup'] == 'true'
    assert [event['type'] for event in whole['events']][0] == 'submitted'
    assert [event['type'] for event in whole['events']][-1] == 'ended'


def test_postmortem_tells_how_a_job_ended(box):
    job = box.submit('sh', '-c', 'echo nearly there; exit 3')
    box.wait(job)
    page = box.mgpu('postmortem', job, check=True).out
    assert f'job {job}' in page and 'exit 3' in page and f'mgpu logs {job}' in page


def test_postmortem_as_json_has_the_job_and_what_is_made_of_its_end(box):
    job = box.submit('sh', '-c', 'exit 3')
    box.wait(job)
    page = box.mgpu('postmortem', job, '--json', check=True).json
    assert (page['id'], page['exit_code'], page['outcome'], page['cause']) == (job, 3, 'exit 3', None), page


@pytest.mark.parametrize(('script', 'sentences'), [
    ('echo begin; echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"; echo bye; exit 1',
     ['ran out of GPU memory: ', 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n']),
    ('echo "CUDA is fine"; exit 1', [])])
def test_postmortem_knows_a_gpu_that_was_out_of_memory(box, script, sentences):
    """Between them is how much it used, if a sample saw it."""
    job = box.submit('sh', '-c', script)
    box.wait(job)
    page = box.mgpu('postmortem', job, check=True).out
    assert all(sentence in page for sentence in sentences), page
    assert ('ran out of GPU memory' in page) == bool(sentences), page


def test_postmortem_says_what_a_failed_setup_reported(box):
    job = box.submit('-E', 'echo "no environment called foo"; false', 'true')
    assert box.wait(job)['ended_by'] == 'setup_failed'
    assert 'Its setup reported: no environment called foo\n' in box.mgpu('postmortem', job, check=True).out


def test_csv_has_one_unit_in_each_column(box):
    job = box.submit('-t', '1h', '--', 'true')
    box.wait(job)
    for verb in (['ps', '-a'], ['history', '-a'], ['gpus'], ['users'], ['nodes']):
        for row in csv.DictReader(io.StringIO(box.mgpu(*verb, '-o', 'csv', check=True).out)):
            assert '-' not in row.values(), (verb, row, 'what is missing is empty')
            assert re.fullmatch(r'(\w+=[\d.]+;?)*', row.get('limits') or ''), (verb, row)
            for column in ('time', 'left', 'wait', 'run', 'mem', 'memory', 'gpu_peak', 'used', 'gpu_hours'):
                assert re.fullmatch(r'[\d.]*', row.get(column) or ''), (verb, column, row[column])


def test_postmortem_of_a_job_that_is_not_over_is_exit_6(box, gate):
    job = box.post_job(gate.command(), gpus=1)
    answer = box.mgpu('postmortem', job)
    assert answer.code == 6 and 'has not ended' in answer.err
    gate.open()


def test_a_job_that_does_not_exist_is_exit_3(box):
    for verb in ('show', 'logs', 'cancel', 'wait'):
        done = box.mgpu(verb, '99999999')
        assert done.code == 3 or (verb == 'wait' and done.code == 125), done
        assert '99999999' in done.err
    assert box.mgpu('show', 'no-such-name').code == 3


def test_a_job_goes_by_number_range_name_and_at(box):
    first = box.submit('-J', 'by-name', '--', 'echo', 'one')
    second = box.submit('-J', 'by-name', '--', 'echo', 'two')
    for job in (first, second):
        box.wait(job)
    assert box.mgpu('logs', 'by-name', check=True).out == 'two\n', 'the newest of that name'
    assert box.mgpu('logs', '@', check=True).out == 'two\n'
    assert box.mgpu('wait', f'{first}-{second}').code == 0
    shown = box.mgpu('show', first, second, check=True).out
    assert str(first) in shown and str(second) in shown


# --- logs ---

def test_logs_prints_the_output_so_far(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo first; echo up > {bell.path}; read x < {gate.path}; echo second'])
    bell.wait()
    box.wait(job, 'running')  # the word of its start may be on its way when it rings
    assert box.mgpu('logs', job, check=True).out == 'first\n'
    gate.open()
    box.wait(job)
    assert box.mgpu('logs', job, check=True).out == 'first\nsecond\n'


def test_logs_of_an_array_are_those_of_its_elements(box, gate):
    array = box.submit('-g', '0', '-a', '1-4:3%1', '-J', 'spoken', '--', 'sh', '-c', f'echo is $MGPU_ARRAY_INDEX; read x < {gate.path}')
    harness.until(lambda: box.mgpu('logs', 'spoken').out == f'{array}.1: is 1\n', 'the output of the first element')
    following = box.popen('logs', '-f', 'spoken')
    gate.open(2)
    out, err = following.communicate(timeout=LIMIT_S)
    assert sorted(out.decode().splitlines()) == [f'{array}.1: is 1', f'{array}.4: is 4'], (out, err)
    assert box.mgpu('logs', array, check=True).out == f'{array}.1: is 1\n{array}.4: is 4\n'
    held = box.submit('-g', '0', '-a', '0-1', '--hold', '--', 'true')
    done = box.mgpu('logs', held)
    assert done.code != 0 and 'none of its elements has started' in done.err and f'mgpu why {held}' in done.err, done


def test_an_array_is_told_by_the_elements_that_ran(box, gate):
    script = f'echo is $MGPU_ARRAY_INDEX; read x < {gate.path}; exit $MGPU_ARRAY_INDEX'
    array = box.submit('-g', '0', '-a', '0-3%2', '--', 'sh', '-c', script)
    harness.until(lambda: box.mgpu('logs', array).out.count('is') == 2, 'the output of the first two elements')
    box.mgpu('cancel', f'{array}.2', f'{array}.3', check=True)
    gate.open(2)
    box.wait(array)
    again = box.mgpu('cancel', f'{array}.1')
    assert f'job {array}.1 has already ended' in again.err, again
    assert box.mgpu('logs', array, check=True).out == f'{array}.0: is 0\n{array}.1: is 1\n'
    story = box.mgpu('postmortem', array, check=True).out
    assert '4 elements ended: 1 done, 1 failed, 2 cancelled.' in story and 'some of its elements failed' in story, story
    assert 'exit 1' not in box.mgpu('ps', array, check=True).out
    alone = box.submit('-g', '0', '--', 'true')
    box.wait(alone)
    no_array = box.mgpu('show', f'{alone}.1')
    assert f'job {alone} is not an array' in no_array.err and 'shows the array' not in no_array.err, no_array


def test_logs_follow_ends_with_its_reader_though_nothing_is_printed(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo up; echo > {bell.path}; read x < {gate.path}'])
    bell.wait()
    process = box.popen('logs', '-f', job)
    assert process.stdout.readline() == b'up\n'
    process.stdout.close()
    assert process.wait(LIMIT_S) == -signal.SIGPIPE
    assert process.stderr.read() == b''
    gate.open()


def test_logs_follow_ends_with_the_job(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo first; echo up > {bell.path}; read x < {gate.path}; echo second; exit 9'])
    bell.wait()
    process = box.popen('logs', '-f', job)
    assert process.stdout.readline() == b'first\n'
    gate.open()
    out, err = process.communicate(timeout=LIMIT_S)
    assert out == b'second\n', (out, err)
    assert process.returncode == 0


def test_follow_waits_for_a_job_that_has_not_started(box, gate):
    blocker = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(blocker, 'running')
    job = box.post_job(['echo', 'at last'])
    process = box.popen('follow', job)
    gate.open()
    out, err = process.communicate(timeout=LIMIT_S)
    assert out == b'at last\n', err


def test_logs_follow_is_130_on_ctrl_c_and_leaves_the_job(box, gate, bell):
    job = box.post_job(['sh', '-c', f'echo x; echo up > {bell.path}; read x < {gate.path}'])
    bell.wait()
    process = box.popen('logs', '-f', job)
    assert process.stdout.readline() == b'x\n'
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode in (130, -signal.SIGINT), 'a shell shows both as 130'
    assert box.job(job)['state'] == 'running'
    gate.open()


def test_logs_keep_every_byte(box):
    job = box.post_job(['/usr/bin/python3', '-c', 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)'])
    box.wait(job)
    process = box.popen('logs', job)
    out, _ = process.communicate(timeout=LIMIT_S)
    assert out == bytes(range(256)) * 1000


def test_a_reader_that_goes_away_is_no_error_of_ours(box):
    job = box.post_job(['seq', '100000'])
    box.wait(job)
    process = box.popen('logs', job)
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b''
    assert process.wait(LIMIT_S) != 99


# --- wait ---

def test_wait_exits_like_the_last_job_that_failed(box):
    good, bad = box.submit('--', 'true'), box.submit('--', 'sh', '-c', 'exit 17')
    assert box.mgpu('wait', good).code == 0
    assert box.mgpu('wait', good, bad).code == 17
    assert box.mgpu('wait', bad, good).code == 17


def test_wait_with_a_time_limit_is_124(box, gate):
    job = box.post_job(gate.command())
    assert box.mgpu('wait', '--timeout', '50ms', job).code == 124
    gate.open()
    assert box.mgpu('wait', job).code == 0


# --- cancel ---

def test_cancel_of_a_queued_job_and_of_a_running_one(box, gate):
    running = box.post_job(gate.command(), gpus=len(box.gpus()))
    box.wait(running, 'running')
    queued = box.post_job(['true'])
    done = box.mgpu('cancel', queued)
    assert done.code == 0, done
    assert box.wait(queued)['state'] == 'cancelled'
    assert box.mgpu('cancel', running).code == 0
    assert box.wait(running)['state'] == 'cancelled'


def test_cancel_of_an_ended_job_is_exit_6(box):
    job = box.submit('--', 'true')
    box.wait(job)
    done = box.mgpu('cancel', job)
    assert done.code == 6 and str(job) in done.err, done


def test_cancel_that_fails_in_part_is_exit_1(box, gate):
    ended = box.wait(box.post_job(['true']))['id']
    running = box.post_job(gate.command())
    box.wait(running, 'running')
    done = box.mgpu('cancel', running, ended)
    assert done.code == 1 and str(ended) in done.err, done
    assert box.wait(running)['state'] == 'cancelled'


@pytest.mark.parametrize('alias', ['kill', 'rm', 'scancel'])
def test_cancel_answers_to_its_other_names(box, gate, alias):
    job = box.post_job(gate.command())
    assert box.mgpu(alias, job).code == 0
    assert box.wait(job)['state'] == 'cancelled'


# --- gpus ---

def test_gpus_shows_one_line_for_each(box):
    count = len(box.gpus())
    assert len(lines(box.mgpu('gpus', check=True).out)) == count + 1
    assert len(box.mgpu('gpus', '--json', check=True).json['gpus']) == count
    table = list(csv.DictReader(io.StringIO(box.mgpu('gpus', '-o', 'csv', check=True).out)))
    assert len(table) == count


def test_gpus_shows_who_has_them(box, gate):
    job = box.post_job(gate.command())
    box.wait(job, 'running')
    assert re.search(rf'\b{job}\b.*{box.client.name}', box.mgpu('gpus', check=True).out)
    gate.open()


# --- the daemon's own command line ---

@pytest.mark.parametrize('arguments, word', [
    (['--gpus', 'sim:-1x24G'], '-1'), (['--gpus', 'sim:99999999x24G'], '99999999'), (['--gpus', 'sim:8x'], 'sim:8x'), (['--gpus', 'many'], 'many'),
    (['--listen', 'nowhere'], 'HOST:PORT'), (['--no-such'], '--no-such'), (['extra'], 'extra'),
    (['--config', '/nonexistent.yaml'], '/nonexistent.yaml'), (['--state-dir'], '--state-dir'),
], ids=str)
def test_the_daemon_refuses_bad_options_with_a_sentence(place, arguments, word):
    import subprocess
    done = subprocess.run([f'{harness.programs()}/mgpud', '--state-dir', f'{place}/s', '--run-dir', f'{place}/r',
                           '--user', 'nobody', *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode not in (0, 99) and done.returncode > 0, done
    assert word in done.stderr, done


def test_the_daemon_explains_itself():
    import subprocess
    done = subprocess.run([f'{harness.programs()}/mgpud', '--help'], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    assert done.returncode == 0
    for option in ('--config', '--state-dir', '--run-dir', '--listen', '--gpus', '--detach', '--verbose', '--fsck'):
        assert option in done.stdout


@pytest.mark.parametrize('words, said', [
    (['-g', '2', '-G', '1'], '-G names 1 GPU, but -g requests 2'),
    (['-g', '1', '-G', '0,1'], '-G names 2 GPUs, but -g requests 1'),
    (['-g', '1:h200', '-G', '0'], 'a model cannot be combined with -G'),
    (['-N', '1', '-G', '0'], '-N cannot be combined with -G'),
], ids=' '.join)
def test_contradictions_are_told_in_options(box, words, said):
    done = box.mgpu('submit', *words, '--', 'true')
    assert done.code == 2 and said in done.err and 'gpu_ids' not in done.err, done


def test_an_array_of_which_nothing_waits_is_shown_by_its_elements(box, gate):
    array = box.submit('-g', '0', '-a', '0-1', '-J', 'partly', '--', 'sh', '-c', f'[ $MGPU_ARRAY_INDEX = 1 ] || {" ".join(gate.command()[2:])}')
    for index, state in enumerate(('running', 'done')):
        harness.until(lambda index=index, state=state: box.job(f'{array}.{index}')['state'] == state, f'element {index} is {state}')
    rows = [row.split()[:3] for row in box.mgpu('ps', '-n', 'partly', check=True).out.splitlines() if 'partly' in row]
    assert sorted(rows) == [[f'{array}', 'partly', 'done'], [f'{array}.0', 'partly', 'running']], rows
    assert 'partly' not in box.mgpu('ps', '-n', 'partly', '-s', 'queued', check=True).out
    why = box.mgpu('why', array, check=True).out
    assert 'is not waiting: all its elements are separate jobs' in why, why
    assert box.api('GET', f'/jobs/{array}/why').json['starts_now'] is False
    gate.open()
    box.wait(array)


@pytest.mark.root
def test_a_user_counts_more_than_all_users(make_instance, ana, bo):
    box = make_instance(client=ana)
    for user in (ana, bo):
        box.wait(box.submit('-g', '0', '-J', f'of-{user.name}', '--', 'true', user=user))
    for verb in ('ps', 'history'):
        shown = box.mgpu(verb, '-a', '-u', bo.name, check=True).out
        assert f'of-{bo.name}' in shown and f'of-{ana.name}' not in shown, (verb, shown)
        assert f'of-{ana.name}' in box.mgpu(verb, '-a', check=True).out


def test_a_line_without_utf8_has_no_byte_of_it(box):
    for words in (('run', '-g', '0', '--', 'true'), ('submit', '-g', '0', '--', 'true')):
        shown, _ = on_terminal(box, [*words], {'LC_ALL': 'C'})
        assert shown.isascii() and ' - ' in shown, shown


@pytest.mark.parametrize('states, left', [('queued', ['running'] * 2), ('queued,suspended', ['running'] * 2), ('held', ['queued'] + ['running'] * 2),
                                          ('running', ['queued'] + ['running'] * 2), ('queued,running', [])])
def test_cancel_by_state_spares_elements_in_other_states(box, states, left):
    array = box.submit('-g', '0', '-a', '0-4%2', '--', 'sleep', '1000')

    def found():
        jobs = [job for job in box.api('GET', '/jobs?state=queued,starting,running').json['jobs'] if int(array) in (job['id'], job['array_job'])]
        return sorted(job['state'] for job in jobs if job['array_left'] != '')
    assert box.await_news(lambda: found() == ['queued', 'running', 'running'])
    box.mgpu('cancel', '-y', '-s', states, check=True)
    assert box.await_news(lambda: found() == left), found()
    if left:
        box.mgpu('cancel', array, check=True)


def test_the_ended_elements_of_an_array_are_one_line(box):
    array = box.submit('-g', '0', '-a', '0-3', '-J', 'swept', '--', 'sh', '-c', 'exit $((MGPU_ARRAY_INDEX == 2))')
    box.wait(array)
    rows = [row for row in box.mgpu('ps', '-n', 'swept', check=True).out.splitlines() if 'swept' in row]
    assert len(rows) == 1 and '4 elements ended: 3 done, 1 failed' in rows[0], rows
    rows = box.mgpu('ps', '-n', 'swept', '--elements', check=True).out
    assert all(f'{array}.{index}' in rows for index in range(4)), rows
    assert len(box.mgpu('ps', '-n', 'swept', '-o', 'json', check=True).json['jobs']) == 5
    failed = [row for row in box.mgpu('ps', '-n', 'swept', '-s', 'failed', check=True).out.splitlines() if 'swept' in row]
    assert len(failed) == 1, failed


def test_limits_are_shown_in_hours(make_instance):
    box = make_instance(arguments=['--user-max-gpu-hours', '10', '--user-max-gpus', '4'])
    box.wait(box.submit('--', 'true'))
    shown = box.mgpu('users', check=True).out
    assert '10 GPU-hours' in shown and '4 GPUs' in shown and 'gpu_seconds' not in shown, shown


def test_a_users_own_group_has_no_row_of_its_own(make_instance, bo):
    box = make_instance(user=bo, client=bo)
    box.wait(box.submit('-g', '0', '--', 'true'))
    rows = box.mgpu('users', '-H', check=True).out.splitlines()
    assert [row.split()[0] for row in rows] == [bo.name], rows
    assert any(row['group'] == bo.name for row in box.mgpu('users', '--json', check=True).json['users'])


def test_an_option_of_exec_behind_the_job_is_no_command(box):
    done = box.mgpu('exec', '1', '--rank', '1', '--', 'true')
    assert done.code == 2 and '--rank follows the job' in done.err and 'options come first' in done.err, done


def shown_on_terminal(box, command, columns=readme.WIDTH):
    """What a command shows on a terminal so wide."""
    environment = {**box.client.environment(), 'PATH': f'{harness.programs()}:/usr/bin:/bin', 'MGPU_SOCKET': box.socket,
                   'TERM': 'xterm', 'ASAN_OPTIONS': 'exitcode=99'}
    return readme.Terminal((), box.client, lambda user: environment, '/tmp').type(f'stty cols {columns}; {command}')


def test_ps_of_a_job_that_does_not_exist_is_an_error(box):
    job = box.submit('-g', '0', '--', 'true')
    done = box.mgpu('ps', '99999999')
    assert done.code == 3 and 'there is no job 99999999' in done.err and done.out == '', done
    done = box.mgpu('ps', job, '99999999')
    assert done.code == 1 and 'there is no job 99999999' in done.err and f'{job} ' in done.out, done


def test_ended_jobs_do_not_push_others_off_the_screen(make_instance, gate):
    box = make_instance()
    running = box.submit('-J', 'runs', '--', *gate.command())
    ended = [box.submit('-g', '0', '-J', 'over', '--', 'true') for _ in range(25)]
    for job in ended:
        box.wait(job)
    shown = shown_on_terminal(box, 'mgpu ps')
    assert shown.count(' over ') == 20 and 'runs' in shown and '; 5 more ended in the last hour' in shown, shown
    assert f' {ended[-1]} ' in shown and f' {ended[0]} ' not in shown, 'the newest stay'
    assert shown_on_terminal(box, 'mgpu ps -s done').count(' over ') == 25
    assert box.mgpu('ps', check=True).out.count(' over ') == 25, 'a pipe has them all'
    assert running in [job['id'] for job in box.mgpu('ps', '--json', check=True).json['jobs']]
    gate.open()


def test_jobs_that_wait_do_not_push_running_ones_off_the_screen(make_instance, gate):
    box = make_instance()
    for _ in range(30):
        box.submit('--hold', '-J', 'waits', '--', 'true')
    running = box.submit('-J', 'runs', '--', *gate.command())
    box.wait(running, 'running')
    for command, most in (('mgpu ps', 21), ('mgpu', 10)):
        shown = shown_on_terminal(box, f'stty rows 24; {command}')
        assert f' {running}  runs ' in shown and 0 < shown.count(' waits ') <= most, shown
        assert f'{30 - shown.count(" waits ")} more held' in shown, shown
    assert shown_on_terminal(box, 'mgpu ps --limit 0').count(' waits ') == 30
    gate.open()


def test_an_empty_ps_says_whose_jobs_it_shows(make_instance, someone):
    box = make_instance()
    assert f'no jobs of {someone.name}; mgpu ps -a shows all users' in shown_on_terminal(box, 'mgpu ps')
    assert box.mgpu('ps', check=True).err == ''


def test_ps_on_a_terminal_shows_the_next_in_line_and_counts_the_others(make_instance):
    box = make_instance('sim:1x8G')
    box.post_job(['sleep', '100'], gpus=1)
    for number in range(5):
        box.post_job(['true'], gpus=1, name=f'next-{number}')
    shown = shown_on_terminal(box, 'mgpu ps --limit 2')
    assert 'next-1' in shown and 'next-2' not in shown and '3 more queued: mgpu ps --limit 0' in shown, shown
    assert 'next-4' in shown_on_terminal(box, 'mgpu ps') and 'next-4' in box.mgpu('ps', check=True).out
    piped = box.mgpu('ps', '--limit', '2', check=True).out
    assert 'next-1' in piped and 'next-2' not in piped, 'also without a terminal if it was given'
    first = box.api('GET', '/jobs?after=0&limit=4').json
    rest = box.api('GET', f'/jobs?after={first["next"]}&limit=4').json
    assert [job['id'] for job in first['jobs'] + rest['jobs']] == [1, 2, 3, 4, 5, 6] and rest['next'] is None


def test_a_wide_list_leaves_columns_out_instead_of_wrapping(box):
    lines = [line for line in shown_on_terminal(box, 'mgpu gpus -o wide').splitlines() if line.strip()]
    assert all(len(line) <= readme.WIDTH for line in lines) and 'STATE' in lines[0], lines
    assert 'UUID' in box.mgpu('gpus', '-o', 'wide', check=True).out


@pytest.mark.parametrize('columns', [60, 80, 100, 120, 200])
def test_lists_fit_terminals_of_all_widths_and_name_the_model_whole(make_instance, place, gate, columns):
    nvml = Nvml(place)
    for number in range(4):
        nvml.add(0x10 + number, f'GPU-{number:08x}-1234-4567-89ab-0123456789ab', used_mib=22000 if number == 3 else 3,
                 utilization=90 if number == 3 else 0, model='NVIDIA GeForce RTX 4090')
    nvml.write()
    box = make_instance('auto', arguments=nvml.arguments)
    box.await_gpus(lambda gpus: gpus[3]['state'] == 'unclean')
    for name, words in (('a-rather-long-name-for-a-training-run', ['-g', '2', '-t', '4h']), ('eval', ['-g', '1'])):
        box.wait(box.submit('-J', name, *words, '--', *gate.command()), 'running')
    box.submit('-J', 'waits', '-g', '3', '--', 'true')
    box.submit('-J', 'later', '-g', '1', '--begin', '+3d', '--', 'true')
    box.wait(box.submit('-g', '0', '--', 'sh', '-c', 'exit 3'))
    for verb in ('ps', 'ps -a', 'gpus', 'nodes', 'users', 'history', 'reserve list', 'token list', 'partitions'):
        for kind in ('', ' -o wide'):
            lines = [line for line in shown_on_terminal(box, f'mgpu {verb}{kind}', columns).splitlines() if line.strip() and not line.startswith('mgpu: ')]
            assert all(len(line) <= columns for line in lines), (verb + kind, lines)
            assert verb != 'gpus' or 'STATE' in lines[0] and (columns == 60 or all('RTX 4090' in line for line in lines[1:5])) or (kind and columns <= 80), lines
            assert not verb.startswith('ps') or 'WHY' in lines[0] or (kind and columns <= 80), lines
    gate.open()


@pytest.mark.parametrize(('words', 'sentence'), [
    (['--', '  '], 'the command is blank'),
    (['-J', '42', 'true'], "'42' is not a valid name: it looks like a job number"),
    (['-J', '1-3', 'true'], "'1-3' is not a valid name"),
    (['-J', '@', 'true'], "'@' is not a valid name"),
])
def test_what_could_not_be_run_or_named_is_refused(box, words, sentence):
    done = box.mgpu('submit', '--hold', *words)
    assert done.code == 2 and sentence in done.err and done.out == '', done


def test_output_that_nobody_can_read_is_no_success(box):
    job = box.submit('-g', '0', '--', 'echo', 'x')
    box.wait(job)
    for command in ('logs', 'ps', 'show'):
        done = subprocess.run(['sh', '-c', f'exec {harness.programs()}/mgpu {command} {job} >&-'], capture_output=True, check=False,
                              env={**box.client.environment(), 'MGPU_SOCKET': box.socket, 'ASAN_OPTIONS': 'exitcode=99'},
                              **box.client.popen_arguments())
        assert done.returncode not in (0, 99), (command, done)


@pytest.mark.parametrize(('words', 'sentence', 'hint'), [
    (['--foo'], "unknown option '--foo'", 'mgpud --help'),
    (['--listen', '127.0.0.1:99999'], "'127.0.0.1:99999' is not HOST:PORT with a port from 1 to 65535", 'use 127.0.0.1:9123'),
])
def test_a_wrong_option_of_mgpud_comes_with_a_hint(box, words, sentence, hint):
    done = box.mgpu(*words, program='mgpud')
    assert done.code == 64 and sentence in done.err and f'hint: {hint}' in done.err, done


def test_a_port_in_use_is_told_with_its_owner(make_instance, someone):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        box = make_instance('none', listen=f'127.0.0.1:{port}')
        owner = 'root' if harness.IS_ROOT else someone.name
        assert f'port {port} of 127.0.0.1 is in use by a program of {owner}' in box.log()
        done = box.mgpu('web')
        assert done.code != 0 and f'is in use by a program of {owner}' in done.err, done


def test_show_of_an_array_sums_up_the_events_of_its_elements(box):
    array = box.submit('-g', '0', '-a', '0-4', '--', 'true')
    box.wait(array)
    shown = box.mgpu('show', array, check=True).out
    assert 'submitted' in shown and not re.search(r'^  \S+  (split|member)', shown, re.M), shown
    assert re.search(rf'and 10 events of its elements: mgpu show {array}\.INDEX', shown), shown
    assert any(event['type'] == 'split' for event in box.mgpu('show', array, '--json', check=True).json['events'])


def test_doctor_fits_a_narrow_terminal(box):
    lines = shown_on_terminal(box, 'mgpu doctor', 60).splitlines()
    words = max((word for line in lines for word in line.split()), key=len)
    assert all(len(line) <= max(60, 25 + len(words)) for line in lines), lines
    assert sum(len(line) <= 60 for line in lines) > len(lines) / 2


@pytest.mark.parametrize(('words', 'sentence', 'hint'), [
    (['signal', 'USR1', '7'], "you have no job named 'USR1'", 'the signal comes last: mgpu signal 7 USR1'),
    (['gpu', 'list'], "'list' is not pause, resume, drain", 'the list: mgpu gpus'),
    (['node', 'ls'], "'ls' is not drain, resume, fence", 'the list: mgpu nodes'),
    (['logs', '--json', '7'], 'the output of a job is not JSON: --json cannot be used here', 'for the job itself: mgpu show --json 7'),
])
def test_what_was_probably_meant_is_said(box, words, sentence, hint):
    done = box.mgpu(*words)
    assert done.code in (2, 3) and sentence in done.err and f'hint: {hint}' in done.err and done.out == '', done


@pytest.mark.parametrize('options, is_late', [(('-t', '30s', '--signal', 'USR1'), True), (('-t', '90s', '--signal', 'USR1'), False),
                                              (('-t', '10s', '--signal', 'USR1@10'), True), (('-t', '10s', '--signal', 'USR1@9'), False)])
def test_a_signal_that_is_due_before_its_job_begins_is_warned_of(box, options, is_late):
    done = box.mgpu('submit', '--hold', *options, '--', 'true', check=True)
    assert ('before the time limit of' in done.err) == is_late, done


@pytest.mark.parametrize('option', ['--nodelist', '--exclude'])
def test_a_node_that_is_not_there_is_warned_of(box, option):
    """One to be avoided whose name is misspelt would be taken."""
    here = box.api('GET', '/nodes').json['nodes'][0]['name']
    names = f'{here},gpuu7' if option == '--nodelist' else 'gpuu7'
    warning = f'warning: {option}: there is no node gpuu7 now'
    done = box.mgpu('submit', '--hold', option, names, '--', 'true', check=True)
    assert warning in done.err and f'no node {here}' not in done.err, done
    assert warning in box.mgpu('edit', done.out.strip(), f"{option.strip('-')}={names}", check=True).err
    assert 'gpuu7' not in box.mgpu('submit', '--hold', '-q', option, names, '--', 'true', check=True).err


def test_a_begin_time_that_has_passed_is_said(box):
    past = '2020-01-01T00:00:00Z'
    done = box.mgpu('submit', '-g', '0', '--begin', past, '--', 'true', check=True)
    assert done.err == 'mgpu: the begin time has passed: the job can start at once\n', done
    box.wait(done.out.strip())
    assert box.mgpu('submit', '-q', '-g', '0', '--begin', past, '--', 'true', check=True).err == ''
    held = box.submit('-g', '0', '--hold', '--begin', 'now', '--', 'true')
    assert 'the begin time has passed' in box.mgpu('edit', held, f'begin={past}', check=True).err
    assert 'passed' not in box.mgpu('edit', held, 'begin=+1h', check=True).err


@pytest.mark.parametrize('size, said', [('8', '8 MiB'), ('255M', '255 MiB'), ('1K', '1 KiB'), ('256', None), ('8G', None)])
def test_gpu_memory_that_no_program_can_begin_with_is_said(box, size, said):
    done = box.mgpu('submit', '--hold', '-m', size, '--', 'true', check=True)
    quiet = box.mgpu('submit', '-q', '--hold', '-m', size, '--', 'true', check=True)
    edited = box.mgpu('edit', quiet.out.strip(), 'gpu_mem=1G', check=True), box.mgpu('edit', quiet.out.strip(), f'gpu_mem={size}', check=True)
    assert quiet.err == '' and 'less than' not in edited[0].err
    for told in (done, edited[1]):
        assert ('less than a CUDA program needs' in told.err) == (said is not None), told
        assert said is None or f'{said} of GPU memory' in told.err, told
    assert ('did you mean 8G?' in done.err) == (size == '8')
    for job in (done, quiet):
        box.mgpu('cancel', job.out.strip(), check=True)


def test_a_directory_whose_name_is_not_utf_8_is_named(box, place):
    strange = os.fsencode(place) + b'/caf\xe9'
    os.mkdir(strange)
    done = box.mgpu('submit', '-g', '0', '--hold', 'true', cwd=strange, env={'PWD': ''})
    assert done.code == 2 and f'the name of the current directory is not UTF-8 text: {place}/caf\\xe9' in done.err, done
    assert 'hint: submit from another directory, or name one for the job: -C DIR' in done.err, done
    box.mgpu('submit', '-g', '0', '--hold', '-C', '/tmp', 'true', cwd=strange, check=True)


@pytest.mark.root
def test_who_a_job_belongs_to_is_named(box, bo):
    job = box.submit('-g', '0', '--', 'true')
    box.wait(job)
    done = box.mgpu('retry', job, user=bo)
    assert done.code == 4 and f'job {job} belongs to user {box.client.name}' in done.err, done


def test_a_suspended_job_keeps_its_gpus(box, gate):
    job = box.submit('-g', '1', '--', *gate.command())
    box.wait(job, 'running')
    said = box.mgpu('suspend', job, check=True).err
    assert 'mgpu: a suspended job keeps its GPUs and the contents of their memory, and its time limit is not extended' in said, said
    box.mgpu('continue', job, check=True)
    gate.open()
    box.wait(job)


def columns_of_texts(block):
    """Where the texts of the lines of a table of options begin."""
    return {len(line) - len(re.sub(r'^(  \S.*?|    +--.*?)  +|^ +', '', line)) for line in block.splitlines()
            if re.match(r'(  \S.*?|    +--.*?)  +|^ {10,}', line)}


def test_texts_of_help_stand_in_one_column(box):
    verbs = re.findall(r'^  (\S+) ', box.mgpu('help', check=True).out.split('\nOptions')[0], re.M)
    assert {'ps', 'logs', 'run', 'edit'} <= set(verbs), verbs
    for verb in verbs:
        for block in box.mgpu('help', verb, check=True).out.split('\n\n'):
            title, _, rows = block.partition('\n')
            if title in ('Options:', 'Keys:', 'Options of every command:'):
                assert len(columns_of_texts(rows)) == 1, (verb, block)
    daemon = box.mgpu('--help', program='mgpud', check=True).out
    assert len(columns_of_texts(daemon[daemon.index('      --state-dir'):])) == 1, daemon


def test_many_jobs_are_changed_side_by_side_and_each_failure_counts(box, place):
    """More than the processes that do it have turns; one is somebody's who has ended already."""
    with open(f'{place}/commands', 'w', encoding='ascii') as out:
        out.write('true\n' * 100)
    ended = box.submit('-q', '-g', '0', '--', 'true')
    box.wait(ended)
    done = box.mgpu('submit', '-q', '-g', '0', '--hold', '--file', f'{place}/commands', check=True)
    jobs = done.out.split()
    assert len(jobs) == 100, done
    done = box.mgpu('release', *jobs, str(ended))
    assert done.code == 1 and 'ended' in done.err, done
    for job in jobs:
        assert box.wait(job)['state'] == 'done'
    jobs = box.mgpu('submit', '-q', '-g', '0', '--hold', '-J', 'many', '--file', f'{place}/commands', check=True).out.split()
    assert box.mgpu('cancel', '-y', '-n', 'many', check=True).code == 0
    assert {box.job(job)['state'] for job in jobs} == {'cancelled'}
