# SPDX-License-Identifier: MIT
"""Tokens that permit less than their user may do: scopes, and an amount of GPU time."""

import http.client
import json
import os
import re

import pytest

import harness
from test_mcp import Assistant

PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'
GPUS = 'sim:4x8G'
SCOPES = ('read', 'submit', 'control', 'manage')
TINY = '0.001'  # GPU-hours: 3.6 s of one GPU


def create(box, *arguments, **options):
    return box.mgpu('token', 'create', '--json', *arguments, check=True, **options).json['token']


def request(secret, method, path, body=None):
    """The status and the problem of a request with this token over TCP."""
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
    headers = {'Authorization': f'Bearer {secret}', 'Content-Type': 'application/json'}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    is_read = answer.status != 200 and (answer.getheader('Content-Type') or '').endswith('json')
    found = json.loads(answer.read()) if is_read else {}  # a stream of events has no end
    connection.close()
    return answer.status, found


def listed(box, name):
    return next(row for row in box.mgpu('token', 'list', '--json', check=True).json['tokens'] if row['name'] == name)


def test_each_route_needs_one_of_its_scopes_and_no_other_suffices(box):
    """Of each route that the document lists, with the rights of an administrator: only the scope can refuse it."""
    tokens = {scope: create(box, '--name', scope, '--scope', scope, user=box.user) for scope in SCOPES}
    document = box.api('GET', '/openapi.json').json
    routes = [(method.upper(), path, operation['security']) for path, methods in document['paths'].items()
              for method, operation in methods.items()]
    assert len(routes) > 60
    for method, path, security in routes:
        needed = {scope for way in security for scope in way.get('token', [])}
        assert bool(needed) == bool(security), (method, path, 'neither public nor of a scope')
        assert needed <= set(SCOPES)
        target = re.sub(r'\{name\}', 'nosuch', path.replace('{id}', '999999'))
        for scope, secret in tokens.items():
            # A body that no route accepts: what is permitted is refused for it.
            status, problem = request(secret, method, target, [] if method == 'POST' else None)
            is_refused = status == 403 and 'scope' in problem.get('detail', '')
            assert is_refused == (bool(needed) and scope not in needed), (method, path, scope, status, problem)


def test_token_without_a_limit_permits_everything(box):
    secret = create(box, '--name', 'whole')
    assert request(secret, 'GET', '/api/v1/tokens')[0] == 200
    assert listed(box, 'whole')['scopes'] == list(SCOPES)
    assert 'all' in box.mgpu('token', 'list', check=True).out


@pytest.mark.parametrize('scope, words', [('write', "'write'"), ('read,', "''"), ('Read', "'Read'")])
def test_unknown_scope_makes_no_token(box, scope, words):
    done = box.mgpu('token', 'create', '--name', 'odd', '--scope', scope)
    assert done.code == 2 and words in done.err and 'read, submit, control or manage' in done.err, done


@pytest.mark.parametrize('hours', ['0', '-1', 'ten', '1e99'])
def test_amount_of_gpu_time_has_bounds(box, hours):
    done = box.mgpu('token', 'create', f'--max-gpu-hours={hours}')
    assert done.code == 2 and '--max-gpu-hours' in done.err, done


def test_scope_submit_controls_only_the_jobs_of_the_token(box):
    secret = create(box, '--name', 'ci', '--scope', 'submit,read')
    other = box.submit('--', 'sleep', '1000')
    status, job = request(secret, 'POST', '/api/v1/jobs', {'command': 'echo out; sleep 1000', 'gpus': 1, 'cwd': '/'})
    assert status == 201
    own = job['id']
    assert box.job(own)['token'] == listed(box, 'ci')['id'] and box.job(other)['token'] is None
    box.wait(own, 'running')
    box.wait(other, 'running')
    for path, body in (('cancel', {}), ('signal', {'signal': 'USR1'}), ('suspend', {}), ('edit', {'time_limit': 5})):
        status, problem = request(secret, 'POST', f'/api/v1/jobs/{other}/{path}', body)
        assert status == 403 and 'not submitted with this token' in problem['detail'], problem
        assert '--scope control' in problem['hint']
    for path in ('port?port=80', 'terminal'):
        connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
        connection.request('GET', f'/api/v1/jobs/{other}/{path}', headers={
            'Authorization': f'Bearer {secret}', 'Connection': 'Upgrade', 'Upgrade': 'mgpu-terminal'})
        answer = connection.getresponse()
        assert (answer.status, path) in ((403, 'port?port=80'), (409, 'terminal')), answer.read()
        connection.close()
    assert request(secret, 'GET', f'/api/v1/jobs/{other}/log')[0] in (200, 206)
    assert request(secret, 'POST', f'/api/v1/jobs/{own}/cancel', {})[0] in (200, 202)
    assert box.wait(own)['state'] == 'cancelled'
    box.cancel_all()


def test_elements_of_an_array_belong_to_its_token(box):
    secret = create(box, '--name', 'sweep', '--scope', 'submit,read')
    _, job = request(secret, 'POST', '/api/v1/jobs', {'command': 'sleep 1000', 'gpus': 1, 'cwd': '/', 'array': '0-1'})
    for index in (0, 1):
        assert box.wait(f'{job["id"]}.{index}', 'running')['token'] == listed(box, 'sweep')['id']
    assert request(secret, 'POST', f'/api/v1/jobs/{job["id"]}.1/cancel', {})[0] in (200, 202)
    box.cancel_all()


def test_token_on_the_unix_socket_restricts_and_makes_no_other_token(box):
    secret = create(box, '--name', 'here', '--scope', 'read')
    bearer = {'Authorization': f'Bearer {secret}'}
    caller = box.api('GET', '/whoami', headers=bearer)
    assert caller.status == 200 and caller.json['scopes'] == ['read'], caller
    assert box.api('POST', '/jobs', {'command': 'true'}, headers=bearer).status == 403
    assert box.api('GET', '/jobs', headers={'Authorization': 'Bearer mgpu_' + '0' * 64}).status == 401
    whole = {'Authorization': f'Bearer {create(box, "--name", "whole")}'}
    for path in ('tokens', 'logins'):
        answer = box.api('POST', f'/{path}', {'name': 'more'} if path == 'tokens' else {}, headers=whole)
        assert answer.status == 403 and 'without a token' in answer.json['detail'], answer


def test_jobs_end_when_the_gpu_time_of_their_token_is_used_up(box):
    secret = create(box, '--name', 'tiny', '--scope', 'submit,read', '--max-gpu-hours', TINY)
    job = {'command': 'sleep 1000', 'gpus': 4, 'cwd': '/'}
    status, problem = request(secret, 'POST', '/api/v1/jobs', {**job, 'time_limit': '1h'})
    assert (status, problem['detail']) == (403, 'requested up to 4 GPU-hours; this token has 0.001 of 0.001 left')
    _, running = request(secret, 'POST', '/api/v1/jobs', job)
    _, waiting = request(secret, 'POST', '/api/v1/jobs', job)
    _, without = request(secret, 'POST', '/api/v1/jobs', {**job, 'gpus': 0})
    ended = box.wait(running['id'])
    assert (ended['state'], ended['ended_by'], ended['exit_code']) == ('failed', 'budget', 124)
    assert 0.9 <= ended['run_seconds'] < 3, 'four GPUs use up 3.6 s of one'
    assert box.wait(waiting['id'])['ended_by'] == 'budget'
    assert 'GPU-hours of its token' in box.mgpu('postmortem', str(running['id'])).out
    assert listed(box, 'tiny')['used_gpu_hours'] >= listed(box, 'tiny')['max_gpu_hours'] == 0.001
    assert ' of 0.001' in box.mgpu('token', 'list').out
    status, problem = request(secret, 'POST', '/api/v1/jobs', job)
    assert (status, problem['detail']) == (403, 'the jobs of this token have used its 0.001 GPU-hours')
    assert request(secret, 'POST', '/api/v1/jobs?dry_run=1', job)[0] == 403
    assert box.job(without['id'])['state'] == 'running', 'a job without GPUs uses no GPU time'
    box.cancel_all()


def test_gpu_time_counts_over_restarts(box):
    secret = create(box, '--name', 'over', '--max-gpu-hours', '0.01')
    _, first = request(secret, 'POST', '/api/v1/jobs', {'command': 'sleep 1', 'gpus': 4, 'cwd': '/'})
    box.wait(first['id'])
    used = listed(box, 'over')['used_gpu_hours']
    assert 3.9 / 3600 <= used < 12 / 3600  # mgpud may hear of the start some milliseconds after it
    _, second = request(secret, 'POST', '/api/v1/jobs', {'command': 'sleep 1000', 'gpus': 4, 'cwd': '/'})
    box.wait(second['id'], 'running')
    box.kill()
    box.start()
    assert listed(box, 'over')['used_gpu_hours'] >= used
    ended = box.wait(second['id'])
    assert ended['ended_by'] == 'budget'
    assert 0.01 * 3600 - used * 3600 - 0.5 <= 4 * ended['run_seconds'] < 0.01 * 3600 + 16


def test_assistant_is_held_to_its_token(box, tmp_path_factory):
    secret = create(box, '--name', 'agent', '--scope', 'submit,read', '--max-gpu-hours', TINY)
    folder = tmp_path_factory.mktemp('agent')
    os.chmod(folder, 0o711)
    path = folder / 'token'
    path.write_text(secret + '\n')
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, box.client.uid, box.client.gid)
        harness.open_folder(str(folder))
    other = box.submit('--', 'sleep', '1000')
    done = box.mgpu('mcp', '--token-file', '/nosuch', input='')
    assert done.code != 0 and '/nosuch' in done.err
    process = Assistant(box, arguments=('--token-file', str(path)))
    text, is_error = process.call('cancel_job', job=str(other))
    assert is_error and 'not submitted with this token' in text, text
    own = process.get('submit_job', command='sleep 1000', gpus=1)['id']
    assert not process.call('cancel_job', job=str(own))[1]
    text, is_error = process.call('submit_job', command='sleep 1000', gpus=1, time_limit='1h')
    assert is_error and 'GPU-hours' in text, text
    process.close()
    box.cancel_all()


@pytest.mark.parametrize(('restriction', 'words'), [
    ({'max_gpu_hours': 0}, 'max_gpu_hours is 0'), ({'max_gpu_hours': 0.0}, 'max_gpu_hours is 0'), ({'max_gpu_hours': 0.0001}, 'less than 0.001'),
    ({'max_gpu_hours': -1}, 'outside'), ({'scopes': []}, 'scopes is empty'), ({'scopes': ['']}, "scope ''"), ({'expires_s': 0}, 'outside'),
], ids=str)
def test_a_restriction_that_is_given_empty_makes_no_token(box, restriction, words):
    answer = box.api('POST', '/tokens', {'name': 'given-empty', **restriction})
    assert answer.status == 400 and words in answer.json['detail'], answer
    assert 'given-empty' not in box.mgpu('token', 'list', '--json', check=True).out
