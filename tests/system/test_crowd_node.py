# SPDX-License-Identifier: MIT
"""What one user can take of a node: processes that serve a user run as that user, who can stop them for ever."""

import contextlib
import os
import signal
import socket

import pytest

import harness

STREAMS = 60  # less than mgpud gives to one user at a time
ROUNDS = 2
OF_USER = 64  # LOG_STREAMS_USER_MAX of the agent

pytestmark = pytest.mark.skipif(not harness.IS_ROOT, reason='needs two users')


def readers(user):
    """The processes that read logs as this user."""
    found = []
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{entry}/comm', encoding='ascii') as comm, open(f'/proc/{entry}/status', encoding='ascii') as status:
                if comm.read() == 'mgpu-log\n' and f'\nUid:\t{user.uid}\t' in status.read():
                    found.append(int(entry))
        except OSError:
            pass  # it has ended
    return found


def follow(box, user, job):
    """A connection on which the head of the log's answer has come."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(harness.DEADLINE_S)
    with user.acting():
        sock.connect(box.socket)
    sock.sendall(f'GET /api/v1/jobs/{job}/log?follow=1 HTTP/1.1\r\nHost: mgpu\r\n\r\n'.encode())
    return sock, sock.recv(64).split(b' ')[1]


def test_a_user_who_stops_the_processes_that_read_logs_leaves_places_to_others(make_instance, ana, bo):
    box = make_instance(client=ana)
    job = box.post_job(['sleep', '1000'], user=ana)
    other = box.post_job(['sh', '-c', 'echo hello; sleep 1000'], user=bo)
    for one in (job, other):
        box.wait(one, 'running')
    try:
        for _ in range(ROUNDS):
            opened = [follow(box, ana, job) for _ in range(STREAMS)]
            for pid in readers(ana):
                os.kill(pid, signal.SIGSTOP)
            for sock, _ in opened:
                sock.close()
        assert len(opened) == STREAMS and {status for _, status in opened} == {b'200', b'503'}
        assert STREAMS < len(readers(ana)) <= 2 * OF_USER
        harness.until(lambda: box.api('GET', f'/jobs/{other}/log', user=bo).body == b'hello\n', 'the other user reads a log')
    finally:
        for pid in readers(ana):
            with contextlib.suppress(ProcessLookupError):  # it ends as well when its place is needed
                os.kill(pid, signal.SIGKILL)
