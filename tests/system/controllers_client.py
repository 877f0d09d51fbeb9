# SPDX-License-Identifier: MIT
"""Submits jobs one after the other to whichever of several controllers answers, until its input ends.

    controllers_client.py WORD COMMAND PAUSE_S SOCKET...

PAUSE_S is between two jobs, so that a long campaign does not submit more than its nodes can run. A request whose outcome is unknown is repeated with its key, as programs should. Prints `KEY JOB` for each that was
acknowledged, and fails on an answer other than success, 503 and 507.
"""

import http.client
import json
import select
import socket
import sys


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def submit(path, body):
    """The job, or None if it is to be tried again."""
    connection = Connection(path)
    try:
        connection.request('POST', '/api/v1/jobs', body, {'Content-Type': 'application/json'})
        response = connection.getresponse()
        text = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if response.status in (200, 201):
        return json.loads(text)['id']
    if response.status not in (503, 507):  # nobody leads, or the leader's disk is full
        sys.exit(f'{response.status} {text}')
    return None


def main():
    word, command, pause_s, *sockets = sys.argv[1:]
    number = 0
    while True:
        number += 1
        key = f'{word}-{number}'
        body = json.dumps({'command': ['sh', '-c', command], 'submit_key': key})
        job = None
        while job is None:
            job = next(filter(None, (submit(path, body) for path in sockets)), None)
            if select.select([sys.stdin], [], [], float(pause_s) if job else 0.05)[0]:
                if job:
                    print(key, job, flush=True)
                return
        print(key, job, flush=True)


main()
