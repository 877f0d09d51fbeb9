# SPDX-License-Identifier: MIT
"""Tokens of the API: who sees them, and what is left of one that was revoked."""

import contextlib
import http.client
import json

import pytest

import harness
from test_completion import words


PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'
GPUS = 'sim:1x8G'


def create(box, name, *arguments, **options):
    """A new token: its number and its secret."""
    made = box.mgpu('token', 'create', '--name', name, '--json', *arguments, check=True, **options).json
    return made['id'], made['token']


def listed(box, *arguments, **options):
    """The names in `mgpu token list`, the newest first."""
    return [row['name'] for row in box.mgpu('token', 'list', '--json', *arguments, check=True, **options).json['tokens']]


def status(secret, connection=None):
    """What a request with that token is answered."""
    connection = connection or http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
    connection.request('GET', '/api/v1/jobs', headers={'Authorization': f'Bearer {secret}'})
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.fixture(autouse=True)
def no_tokens(box):
    """Each test begins without tokens."""
    for token in box.mgpu('token', 'list', '--all', '--json', user=box.user, check=True).json['tokens']:
        box.mgpu('token', 'revoke', str(token['id']), user=box.user, check=True)


def test_a_list_tells_what_a_token_is_for_and_no_secret(box):
    number, secret = create(box, 'laptop', '--expires', '1h')
    shown = box.mgpu('token', 'list', check=True)
    assert [str(number), 'laptop', box.client.name] == shown.out.splitlines()[1].split()[:3], shown
    assert secret not in box.mgpu('token', 'list', '--json', check=True).out


def test_a_revoked_token_is_refused_at_once_and_after_a_restart(box):
    _, lost = create(box, 'lost')
    _, kept = create(box, 'kept')
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
    assert status(lost, connection) == 200  # believed for some seconds without asking the store
    box.mgpu('token', 'revoke', 'lost', check=True)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        status(lost, connection)
    assert (status(lost), status(kept)) == (401, 200)
    box.kill()
    box.start()
    assert (status(lost), status(kept)) == (401, 200)
    assert listed(box) == ['kept']


def test_a_revoked_token_follows_no_events(box):
    number, secret = create(box, 'watcher')
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
    connection.request('GET', '/api/v1/events', headers={'Authorization': f'Bearer {secret}'})
    stream = connection.getresponse()
    assert stream.status == 200
    box.mgpu('token', 'revoke', str(number), check=True)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        stream.read()


def test_a_stream_ends_when_its_token_expires(box):
    _, secret = create(box, 'short', '--expires', '1s')
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
    connection.request('GET', '/api/v1/events', headers={'Authorization': f'Bearer {secret}'})
    stream = connection.getresponse()
    assert stream.status == 200
    beats = 0
    with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
        while line := stream.readline():
            beats += line == b':\n'
            assert beats < 3, 'the stream outlives its token'
    assert status(secret) == 401


def test_a_name_of_several_tokens_revokes_none(box):
    first, second = create(box, 'cli')[0], create(box, 'cli')[0]
    done = box.mgpu('token', 'revoke', 'cli')
    assert done.code != 0 and f'{second}, {first}' in done.err, done
    assert listed(box) == ['cli', 'cli']
    box.mgpu('token', 'revoke', str(first), str(second), check=True)
    assert listed(box) == []


@pytest.mark.parametrize('words_', [['nosuch'], ['999999'], ['0'], [''], [], ['kept', 'nosuch']])
def test_what_is_no_token_revokes_nothing(box, words_):
    create(box, 'kept')
    done = box.mgpu('token', 'revoke', *words_)
    assert done.code != 0 and 'token' in done.err, done
    assert listed(box) == ['kept']


@pytest.mark.root
def test_tokens_of_others_are_neither_listed_nor_revoked(box, bo):
    number, secret = create(box, 'mine')
    assert listed(box, user=bo) == []
    done = box.mgpu('token', 'list', '--all', user=bo)
    assert done.code == 4 and 'administrators' in done.err, done
    for word in ('mine', str(number)):
        done = box.mgpu('token', 'revoke', word, user=bo)
        assert done.code != 0 and 'mgpu token list' in done.err, done
    assert status(secret) == 200
    assert listed(box, '--all', user=box.user) == ['mine']
    box.mgpu('token', 'revoke', str(number), user=box.user, check=True)
    assert status(secret) == 401


def test_shells_complete_the_numbers_of_tokens(box):
    number, _ = create(box, 'laptop')
    assert words(box, 'token', 'revoke', '') == {str(number): 'laptop'}


def test_what_the_api_answers(box):
    answer = box.api('GET', '/tokens?all=maybe')
    assert answer.status == 400, answer
    assert box.api('DELETE', '/tokens/999999').status == 404
    number, _ = create(box, 'ci')
    rows = box.api('GET', '/tokens').json['tokens']
    assert [set(row) for row in rows] == [{'id', 'name', 'user', 'created_at', 'expires_at', 'scopes',
                                              'max_gpu_hours', 'used_gpu_hours'}], json.dumps(rows)
    assert box.api('DELETE', f'/tokens/{number}').status == 200
