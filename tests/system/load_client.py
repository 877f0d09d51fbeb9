#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A client of the recovery campaign, run as a user: submits and cancels without pause while the daemons die.

    load_client.py SOCKET SEED EVIDENCE WORKDIR jobs|arrays

It uses the API as a careful client does: every submit has a key and is sent again with the same key until it is
acknowledged, and it waits for an older job of its own before it submits the next. What was acknowledged goes to standard
output, one JSON object a line; that is the evidence of the client's side. It ends, after the submit under way, when its
standard input ends.
"""

import http.client
import json
import os
import random
import select
import socket
import sys

RETRY_S = 0.02      # between two tries while nobody answers
PAUSE_MAX_S = 0.15  # between two submits
AHEAD = {'jobs': 60, 'arrays': 6}  # of these have not ended: they keep every GPU busy and build no queue that takes hours to drain
ELEMENTS_MAX = 24
WAIT_S = 5          # for one answer of a wait

# The job's own evidence: O_APPEND lines that mgpu has no part in, numbered output, and a status of its own.
JOB = ('echo "start $MGPU_JOB_ID $MGPU_ATTEMPT $$" >> {evidence}; i=0; '
       'while [ $i -lt {lines} ]; do echo "{key} line $i"; i=$((i+1)); done; {work}'
       'echo "end $MGPU_JOB_ID $MGPU_ATTEMPT $$" >> {evidence}; {end}')


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    def __init__(self, path):
        self.path, self.connection = path, None

    def try_once(self, method, target, body):
        """(status, object), or None when the answer did not come whole."""
        try:
            self.connection = self.connection or Connection(self.path)
            self.connection.request(method, f'/api/v1{target}', json.dumps(body),
                                    {'Content-Type': 'application/json'})
            response = self.connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            if self.connection:
                self.connection.close()
            self.connection = None
            return None

    def call(self, method, target, body):
        """Tries until there is an answer that says what happened."""
        while True:
            answer = self.try_once(method, target, body)
            if answer and answer[0] != 503 and answer[0] != 429:
                return answer
            select.select([], [], [], RETRY_S)


def make_request(chance, key, evidence, folder):
    lines = chance.randrange(0, 40)
    kind = chance.random()
    expected = chance.randrange(0, 100)
    end = f'exit {expected}'
    if kind < 0.1:
        expected, end = 128 + 9, 'kill -9 $$'
    work = f'sleep 0.{chance.randrange(1, 60):02d}; ' if chance.random() < 0.7 else ''
    fields = {'gpus': chance.choice((0, 1, 1, 1, 2)), 'priority': chance.randrange(-4, 1)}
    if fields['gpus'] and chance.random() < 0.5:
        fields['gpu_mem'] = '6G'
    script = JOB.format(evidence=evidence, lines=lines, key=key, work=work, end=end)
    request = {'command': ['sh', '-c', script], 'env': {'PATH': '/usr/bin:/bin'}, 'cwd': folder, 'submit_key': key, **fields}
    return request, {'key': key, 'exit_code': expected, 'lines': lines}


def make_array(chance, key, evidence, folder):
    """Elements that differ in their output, duration and exit status; short enough that some begin behind others."""
    count, first, work = chance.randrange(2, ELEMENTS_MAX + 1), chance.randrange(0, 60), chance.choice((0, 1, 5, 30))
    script = JOB.format(evidence=evidence, lines='$MGPU_ARRAY_INDEX', key=f'{key}-$MGPU_ARRAY_INDEX',
                        work=f'sleep $(printf 0.%03d $((MGPU_ARRAY_INDEX * {work}))); ', end=f'exit $((MGPU_ARRAY_INDEX + {first}))')
    request = {'command': ['sh', '-c', script], 'env': {'PATH': '/usr/bin:/bin'}, 'cwd': folder, 'submit_key': key, 'array': f'0-{count - 1}',
               'gpus': chance.choice((0, 1, 1, 1, 2)), 'priority': chance.randrange(-4, 1)}
    return request, {'elements': [{'key': f'{key}-{index}', 'exit_code': first + index, 'lines': index} for index in range(count)]}


MAKERS = {'jobs': make_request, 'arrays': make_array}


def wait_for(client, job):
    """Until the job has ended, or the client is to end; then None. A kill cuts the wait, and then it is asked for again."""
    while not select.select([sys.stdin], [], [], 0)[0]:
        target = f'/jobs/{job}/wait?states=done,failed,cancelled&timeout={WAIT_S}'
        status, answer = client.call('GET', target, None)
        if status == 408:  # not yet
            continue
        if status != 200:
            return {'refused': status, 'answer': answer}
        if answer['state'] in ('done', 'failed', 'cancelled'):
            return {'told': job, 'state': answer['state'], 'ended_by': answer['ended_by'], 'exit_code': answer['exit_code']}
    return None


def main():
    path, seed, evidence, folder, kind = sys.argv[1:]
    chance, client, number, recent = random.Random(seed), Client(path), 0, []
    while not select.select([sys.stdin], [], [], 0)[0]:
        key = f'{seed}-{os.getpid()}-{number}'
        number += 1
        request, promise = MAKERS[kind](chance, key, evidence, folder)
        status, answer = client.call('POST', '/jobs', request)
        if status not in (200, 201):
            print(json.dumps({'refused': status, 'answer': answer}), flush=True)
            continue
        print(json.dumps({'id': answer['id'], **promise}), flush=True)
        recent.append(answer['id'])
        if chance.random() < 0.1:
            victim = chance.choice(recent[-5:])
            status, _ = client.call('POST', f'/jobs/{victim}/cancel', {'grace_s': 0})
            print(json.dumps({'cancel': victim, 'status': status}), flush=True)
        told = wait_for(client, recent.pop(0)) if len(recent) >= AHEAD[kind] else None
        if told:
            print(json.dumps(told), flush=True)
        select.select([sys.stdin], [], [], chance.random() * PAUSE_MAX_S)


if __name__ == '__main__':
    main()
