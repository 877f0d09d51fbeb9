# SPDX-License-Identifier: MIT
"""Changes of all jobs, in order and without a gap, also over restarts of mgpud."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from typing import Any, AsyncIterator, Dict, Iterator, Optional

from mgpu._client import Client, Unreachable

Event = Dict[str, Any]

AGAIN_S = 1.0
SILENCE_S = 60.0  # mgpud sends a comment every 15 seconds


def _read(response: http.client.HTTPResponse) -> Iterator[Event]:
    for line in response:
        if line.startswith(b'data:'):
            event: Event = json.loads(line[5:])
            yield event


def events(after: Optional[int] = None, client: Optional[Client] = None) -> Iterator[Event]:
    """Every change from now on, or from after that of the number `after`; it ends never."""
    client = client or Client()
    while True:
        try:
            connection, response = client.open('GET', '/events', query={'after': after}, timeout=SILENCE_S)
            try:
                for event in _read(response):
                    after = event.get('seq', after)
                    yield event
            finally:
                connection.close()
        except (ConnectionError, TimeoutError, Unreachable, http.client.HTTPException):
            pass
        time.sleep(AGAIN_S)


async def follow(after: Optional[int] = None, client: Optional[Client] = None) -> AsyncIterator[Event]:
    """The same for `async for`."""
    loop = asyncio.get_running_loop()
    queue: 'asyncio.Queue[Event]' = asyncio.Queue()
    is_over = threading.Event()

    def read() -> None:
        for event in events(after, client):
            if is_over.is_set():
                return
            loop.call_soon_threadsafe(queue.put_nowait, event)

    threading.Thread(target=read, name='mgpu-events', daemon=True).start()
    try:
        while True:
            yield await queue.get()
    finally:
        is_over.set()
