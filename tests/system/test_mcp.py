# SPDX-License-Identifier: MIT
"""Assistants: `mgpu mcp` speaks the Model Context Protocol, for one's own jobs only."""

import json
import select
import subprocess

import pytest

import harness

GPUS = 'sim:2x8G'


class Assistant:
    """A client of the protocol."""

    def __init__(self, box, user=None, arguments=(), **options):
        self.process = box.popen('mcp', *arguments, user=user, stdin=subprocess.PIPE, **options)
        self.number = 0

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(harness.DEADLINE_S)
        err = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        assert (code, err) == (0, '')

    def send(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode())
        self.process.stdin.write(b'\n')
        self.process.stdin.flush()

    def receive(self):
        assert select.select([self.process.stdout], [], [], harness.DEADLINE_S)[0], 'no answer'
        answer = json.loads(self.process.stdout.readline())
        assert answer['jsonrpc'] == '2.0'
        return answer

    def request(self, method, **params):
        self.number += 1
        self.send({'jsonrpc': '2.0', 'id': self.number, 'method': method, 'params': params})
        answer = self.receive()
        assert answer['id'] == self.number
        return answer

    def call(self, tool, **arguments):
        """The text of a tool's answer, and whether it is an error."""
        result = self.request('tools/call', name=tool, arguments=arguments)['result']
        (content,) = result['content']
        assert content['type'] == 'text'
        return content['text'], result['isError']

    def get(self, tool, **arguments):
        text, is_error = self.call(tool, **arguments)
        assert not is_error, text
        return json.loads(text)


@pytest.fixture
def assistant(box):
    made = Assistant(box)
    yield made
    made.close()


@pytest.mark.parametrize('wanted, agreed', [('2025-06-18', '2025-06-18'), ('2024-11-05', '2024-11-05'), ('1999-01-01', '2025-06-18')])
def test_versions_are_agreed_upon(assistant, wanted, agreed):
    result = assistant.request('initialize', protocolVersion=wanted, capabilities={}, clientInfo={'name': 't', 'version': '1'})['result']
    assert result['protocolVersion'] == agreed
    assert result['serverInfo']['name'] == 'mgpu' and 'tools' in result['capabilities']
    assistant.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'})
    assert assistant.request('ping')['result'] == {}  # and the notification had no answer


def test_tools_describe_their_arguments(assistant):
    tools = {tool['name']: tool for tool in assistant.request('tools/list')['result']['tools']}
    assert set(tools) == {'list_gpus', 'list_jobs', 'show_job', 'explain_job', 'read_output', 'wait_job', 'submit_job', 'retry_job', 'hold_job',
                          'release_job', 'cancel_job'}
    for tool in tools.values():
        schema = tool['inputSchema']
        assert schema['type'] == 'object' and schema['additionalProperties'] is False
        assert set(schema['required']) <= set(schema['properties'])
    assert tools['submit_job']['inputSchema']['required'] == ['command']
    assert tools['cancel_job']['annotations'] == {'readOnlyHint': False, 'destructiveHint': True}


def test_job_is_checked_submitted_read_and_cancelled(box, assistant, gate):
    request = {'command': f"printf '\\033[32mone\\033[0m\\ntwo\\n'; read word < {gate.path}", 'gpus': 2, 'time_limit': '1h', 'name': 'by-assistant', 'cwd': '/tmp'}
    assert assistant.get('submit_job', dry_run=True, **request)['starts_now'] is True
    assert assistant.get('list_jobs')['jobs'] == []
    number = str(assistant.get('submit_job', **request)['id'])
    box.wait(number, 'running')
    waiting = str(assistant.get('submit_job', command='true', gpus=1)['id'])
    harness.until(lambda: assistant.call('read_output', job=number) == ('one\ntwo\n', False), 'the output')
    assert assistant.call('read_output', job=number, lines=1) == ('two\n', False)
    shown = assistant.get('show_job', job=number)
    assert (shown['name'], shown['gpus'], shown['cwd'], shown['time_limit']) == ('by-assistant', 2, '/tmp', 3600)
    assert 'env' not in shown
    assert assistant.get('explain_job', job=waiting)['reasons'][0]['code'] == 'resources'
    assert {gpu['state'] for gpu in assistant.get('list_gpus')['gpus']} == {'used'}
    assert {job['id'] for job in assistant.get('list_jobs', mine=True, state='queued,running')['jobs']} == {int(number), int(waiting)}
    assistant.get('cancel_job', job=number)
    assert box.wait(number)['state'] == 'cancelled'
    assert box.wait(waiting)['state'] == 'done'


def find_nulls(value, path=''):
    if isinstance(value, dict):
        return [found for key, member in value.items() for found in ([f'{path}.{key}'] if member is None else find_nulls(member, f'{path}.{key}'))]
    return [found for member in value for found in find_nulls(member, f'{path}[]')] if isinstance(value, list) else []


def test_no_answer_has_keys_without_a_value_and_the_schema_says_so(box, assistant):
    number = assistant.get('submit_job', command='true', gpus=1, name='sparse')['id']
    assistant.get('wait_job', job=number)
    assistant.get('submit_job', command='true', gpus=1, dry_run=True)
    for tool, arguments in (('list_gpus', {}), ('list_jobs', {}), ('show_job', {'job': number}), ('explain_job', {'job': number}),
                            ('wait_job', {'job': number}), ('submit_job', {'command': 'true', 'dry_run': True})):
        assert find_nulls(assistant.get(tool, **arguments)) == [], tool
    assert box.job(number)['error'] is None, 'the API has it with null'
    tools = {tool['name']: tool for tool in assistant.request('tools/list')['result']['tools']}
    assert 'outputSchema' not in tools.pop('read_output'), 'text'
    assert all('left out' in tool['outputSchema']['description'] for tool in tools.values())


def test_output_of_a_job_whose_log_is_split_has_both_parts(box, assistant):
    job = box.submit('--split-log', '-g', 0, '--', 'sh', '-c', 'printf out; echo err >&2; exit 3')
    box.wait(job)
    assert assistant.call('read_output', job=job) == ('--- standard output ---\nout\n--- standard error ---\nerr\n', False)
    silent = box.submit('--split-log', '-g', 0, '--', 'true')
    box.wait(silent)
    assert assistant.call('read_output', job=silent) == ('--- standard output ---\n--- standard error ---\n', False)


def test_jobs_are_named_as_answers_and_people_name_them(box, assistant):
    number = assistant.get('submit_job', command='exit 3', gpus=0, name='by-name')['id']
    assert isinstance(number, int)
    for job in (number, str(number), 'by-name', '@'):
        ended = assistant.get('wait_job', job=job)
        assert (ended['id'], ended['state'], ended['exit_code']) == (number, 'failed', 3)
    assert assistant.get('show_job', job=number)['name'] == 'by-name'
    again = assistant.get('retry_job', job=number)['id']
    assert again != number and assistant.get('wait_job', job=again)['exit_code'] == 3
    assistant.get('submit_job', command='true', gpus=0, name='by-name')
    text, is_error = assistant.call('show_job', job='by-name')
    assert not is_error or 'names' in text, text


def test_waiting_ends_in_time_and_held_jobs_wait(box, assistant):
    first = assistant.get('submit_job', command='sleep 60', gpus=2)['id']
    assert assistant.get('wait_job', job=first, seconds=1)['state'] == 'running'
    number = assistant.get('submit_job', command='true', gpus=1)['id']
    assistant.get('hold_job', job=number)
    assistant.get('cancel_job', job=first)
    assert assistant.get('wait_job', job=first)['state'] == 'cancelled'
    assert assistant.get('explain_job', job=number)['reasons'][0]['code'] == 'held_user'
    assistant.get('release_job', job=number)
    assert assistant.get('wait_job', job=number)['state'] == 'done'


def test_answers_are_data_and_text(box, assistant):
    number = assistant.get('submit_job', command='true', gpus=0)['id']
    result = assistant.request('tools/call', name='wait_job', arguments={'job': number})['result']
    assert result['structuredContent'] == json.loads(result['content'][0]['text'])
    assert '00000000' not in result['content'][0]['text'] and '99999999' not in result['content'][0]['text']
    assert 'structuredContent' not in assistant.request('tools/call', name='read_output', arguments={'job': number})['result']


def test_a_tool_that_is_not_there_is_answered_with_those_that_are(assistant):
    error = assistant.request('tools/call', name='drain_node', arguments={})['error']
    assert 'drain_node' in error['message'] and 'submit_job' in error['message']


def test_job_has_the_environment_of_the_server(box, place):
    assistant = Assistant(box, env={'FROM_SERVER': 'yes'}, cwd=place)
    number = assistant.get('submit_job', command='echo $FROM_SERVER in $PWD', gpus=0)['id']
    box.wait(number)
    assert assistant.call('read_output', job=str(number)) == (f'yes in {place}\n', False)
    assistant.close()


def test_output_that_is_no_text_arrives_as_text(box, assistant):
    number = box.submit('-g', '0', '--', 'sh', '-c', "printf 'caf\\303\\251 \\377\\376\\000 end\\n'")
    box.wait(number)
    assert assistant.call('read_output', job=str(number)) == ('café ?? end\n', False)


@pytest.mark.parametrize('tool, arguments, words', [
    ('submit_job', {}, 'needs the argument command'), ('submit_job', {'command': 7}, 'must be of type string'),
    ('submit_job', {'command': 'true', 'uid': 0}, 'no argument uid; there are command, gpus, '), ('submit_job', {'command': 'true', 'gpus': 99}, '99'),
    ('show_job', {'job': '1/cancel'}, 'not the number'), ('show_job', {'job': '999999'}, 'there is no job'),
    ('show_job', {'job': -1}, 'jobs have numbers from 1 on, and not -1'), ('list_gpus', {'node': 'a'}, 'list_gpus has no arguments, and not node'), ('show_job', {'job': True}, 'integer or string'), ('show_job', {'job': 'no-such-name'}, 'no-such-name'),
    ('wait_job', {'job': 1, 'seconds': 301}, 'between'),
    ('read_output', {'job': '1', 'lines': 0}, 'between'), ('list_jobs', {'state': 'queued&all=1'}, 'not a list of states'),
    ('list_jobs', {'limit': -1}, 'at least 1')])
def test_bad_arguments_are_explained_to_the_assistant(assistant, tool, arguments, words):
    text, is_error = assistant.call(tool, **arguments)
    assert is_error and words in text, text


@pytest.mark.parametrize('line, code', [
    (b'{', -32700), (b'nonsense', -32700), (b'[]', -32600), (b'{"id": 1, "method": "ping"}', -32600), (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "nosuch"}', -32601), (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "drain_node"}}', -32602), (b'x' * (2 << 20), -32600)],
    ids=['half', 'text', 'batch', 'version', 'id', 'method', 'no-tool', 'other-tool', 'long'])
def test_broken_messages_are_errors_and_end_nothing(assistant, line, code):
    assistant.send(line)
    assert assistant.receive()['error']['code'] == code
    assistant.send(b'')
    assert assistant.request('ping')['result'] == {}


@pytest.mark.root
def test_jobs_of_others_are_neither_read_nor_cancelled_even_by_root(box, gate, bo):
    number = str(box.submit('-g', '1', '--', *gate.command(), user=bo))
    box.wait(number, 'running')
    for user in (box.client, box.user):
        assistant = Assistant(box, user=user)
        assert not assistant.call('show_job', job=number)[1]
        for tool in ('read_output', 'cancel_job', 'hold_job', 'release_job', 'retry_job'):
            text, is_error = assistant.call(tool, job=number)
            assert is_error and f'belongs to {bo.name}' in text
        assistant.close()
    assert box.job(number)['state'] == 'running'
    gate.open()


def test_server_outlives_a_restart_of_mgpud(box):
    assistant = Assistant(box)
    assert len(assistant.get('list_gpus')['gpus']) == 2
    box.restart()
    assert len(assistant.get('list_gpus')['gpus']) == 2
    assistant.close()
