# SPDX-License-Identifier: MIT
"""Five hundred open pages of several users, and readers of metrics while mgpud restarts."""

import contextlib
import http.client
import os
import pwd
import socket
import threading
import time

import pytest

import harness
from test_web import Browser

PORT = harness.free_port()
LISTEN = f'127.0.0.1:{PORT}'
GPUS = 'sim:4x8G'
PAGES = 500
UIDS = [entry.pw_uid for entry in pwd.getpwall() if 0 < entry.pw_uid < 100][:8]  # accounts that every Debian has
STREAMS_MAX = 64  # of one user: LIMIT_USER_EVENT_CLIENTS


class OpenPage:
    """What an open page holds: the stream of events."""

    def __init__(self, uid):
        before = os.geteuid()
        os.seteuid(uid)  # the owner of the socket is who opens it
        try:
            self.socket = socket.create_connection(('127.0.0.1', PORT), harness.DEADLINE_S)
        finally:
            os.seteuid(before)
        self.socket.sendall(f'GET /api/v1/events HTTP/1.1\r\nHost: localhost:{PORT}\r\n\r\n'.encode())
        self.seen = b''

    def until(self, words):
        while words not in self.seen:
            piece = self.socket.recv(1 << 16)
            assert piece, self.seen[-400:]
            self.seen += piece


@pytest.fixture
def pages(box):
    with contextlib.ExitStack() as left:
        made = []

        def open_one(uid):
            made.append(OpenPage(uid))
            left.callback(made[-1].socket.close)
            return made[-1]

        yield open_one


@pytest.mark.root
def test_500_open_pages_see_the_same_and_no_one_waits_for_them(box, pages):
    opened = [pages(UIDS[number % len(UIDS)]) for number in range(PAGES)]
    for page in opened:
        page.until(b'200 OK')
    # None of them reads: neither the command line nor the job waits for them.
    job = box.submit('-q', '-J', 'for-all-pages', '-g', '1', '--', 'true')
    assert box.wait(job)['state'] == 'done'
    for page in opened:
        page.until(b'event: ended')
        assert page.seen.count(b'event: submitted') == 1
    assert Browser(box.client, PORT).get('/').status == 200


@pytest.mark.root
def test_the_page_too_many_of_a_user_is_told_so_and_other_users_are_not_affected(box, pages, bo):
    opened = [pages(UIDS[0]) for _ in range(STREAMS_MAX + 1)]
    for page in opened:
        page.until(b'\r\n\r\n')
    refused, = [page for page in opened if b' 200 OK' not in page.seen]
    refused.until(b'"detail"')
    assert b' 429 ' in refused.seen and b'64 event streams per user' in refused.seen, refused.seen
    pages(bo.uid).until(b'200 OK')


def read_metrics(bad, counts, over):
    """Scrapes as fast as it can: whole or not at all."""
    while not over.is_set():
        connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=harness.DEADLINE_S)
        try:
            connection.request('GET', '/metrics', headers={'Accept': 'application/openmetrics-text; version=1.0.0'})
            answer = connection.getresponse()
            text = answer.read()
            counts[answer.status] = counts.get(answer.status, 0) + 1
            if answer.status == 200 and not text.endswith(b'# EOF\n'):
                bad.append(text[-200:])
        except (ConnectionError, http.client.HTTPException):
            counts['away'] = counts.get('away', 0) + 1
            time.sleep(0.01)  # no event tells that the port is back
        finally:
            connection.close()


@pytest.mark.parametrize('end', ['stop', 'kill'])
def test_a_scrape_while_mgpud_restarts_is_whole_or_fails(box, end):
    bad, counts, over = [], {}, threading.Event()
    readers = [threading.Thread(target=read_metrics, args=[bad, counts, over]) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(3):
            before = counts.get(200, 0)
            harness.until(lambda: counts.get(200, 0) > before + 4, 'scrapes')
            getattr(box, end)()
            box.start()
    finally:
        over.set()
        for reader in readers:
            reader.join(harness.DEADLINE_S)
    assert not bad and counts.get('away', 0) > 0 and set(counts) <= {200, 503, 'away'}, (bad, counts)
