# SPDX-License-Identifier: MIT
"""A debugger through mgpu forward, as the cookbook has it: debugpy in the job, and here what an editor says to it."""

import functools
import json

import pytest

import harness
from running import all_ended
from test_ports import Forward

pytestmark = [pytest.mark.real,
              pytest.mark.skipif(not harness.has_module('debugpy'),
                                 reason='debugpy is not installed: tools/install-packages real')]

PROGRAM = '''import sys
answer = 41
answer += 1
sys.exit(answer)
'''


class Editor:
    """A client of the Debug Adapter Protocol."""

    def __init__(self, peer):
        self.peer, self.stream, self.number = peer, peer.makefile('rb'), 0

    def send(self, command, **arguments):
        self.number += 1
        body = json.dumps({'seq': self.number, 'type': 'request', 'command': command, 'arguments': arguments}).encode()
        self.peer.sendall(b'Content-Length: %d\r\n\r\n%s' % (len(body), body))

    def await_message(self, kind, name):
        """The next event or response of that name."""
        while True:
            length = None
            while line := self.stream.readline().strip():
                length = int(line.partition(b':')[2])
            assert length is not None, 'the debugger has left'
            message = json.loads(self.stream.read(length))
            if message['type'] == kind and message.get('event', message.get('command')) == name:
                assert message.get('success', True), message
                return message.get('body')


def test_a_debugger_stops_in_a_job_reads_a_variable_and_lets_it_go_on(make_instance, place):
    box = make_instance('sim:1x8G')
    program, port = f'{place}/program.py', harness.free_port()
    with open(program, 'w', encoding='ascii') as file:
        file.write(PROGRAM)
    job = box.post_job(['/usr/bin/python3', '-m', 'debugpy', '--listen', str(port), '--wait-for-client', program], gpus=1, env={'PATH': '/usr/bin:/bin', 'HOME': place})
    box.wait(job, 'running')
    with all_ended(functools.partial(Forward, box)) as forward:
        here = forward(job, f'0:{port}')

        def greet():
            """debugpy listens a moment after its start; a connection before that ends."""
            editor = Editor(here.connect())
            editor.send('initialize', adapterID='test')
            try:
                editor.await_message('response', 'initialize')
            except (AssertionError, ConnectionError):
                return None
            return editor
        editor = harness.until(greet, 'debugpy')
        editor.send('attach', justMyCode=False)
        editor.await_message('event', 'initialized')
        editor.send('setBreakpoints', source={'path': program}, breakpoints=[{'line': 4}])
        editor.await_message('response', 'setBreakpoints')
        editor.send('configurationDone')
        thread = editor.await_message('event', 'stopped')['threadId']
        editor.send('stackTrace', threadId=thread)
        frame = editor.await_message('response', 'stackTrace')['stackFrames'][0]
        assert (frame['line'], frame['source']['path']) == (4, program)
        editor.send('evaluate', expression='answer', frameId=frame['id'])
        assert editor.await_message('response', 'evaluate')['result'] == '42'
        editor.send('continue', threadId=thread)
        assert box.wait(job)['exit_code'] == 42
