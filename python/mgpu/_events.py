# SPDX-License-Identifier: MIT
"""Changes of all jobs, in order and without gaps, also across restarts of mgpud."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from typing import Any, AsyncIterator, Dict, Iterator, Optional, Union

from mgpu._client import Client, MgpuError, Unreachable

Event = Dict[str, Any]

AGAIN_S = 1.0
SILENCE_S = 60.0  # mgpud sends a comment every 15 seconds
BEYOND = 2**63 - 1  # no event has this number: mgpud answers with that of the last one
STARTING = 503  # the status of a mgpud that is not ready yet


def _read(response: http.client.HTTPResponse) -> Iterator[Event]:
    for line in response:
        if line.startswith(b'data:'):
            event: Event = json.loads(line[5:])
            yield event


def events(after: Optional[int] = None, client: Optional[Client] = None) -> Iterator[Event]:
    """All changes from now on, or after the event with the number `after`; never ends. An event of type `reset` means
    that the store was replaced, so changes before the next event may be missing."""
    client = client or Client()
    number = BEYOND if after is None else after
    while True:
        try:
            connection, response = client.open('GET', '/events', query={'after': number}, timeout=SILENCE_S)
            try:
                for event in _read(response):
                    is_begin = number == BEYOND
                    number = event.get('seq', number)
                    if not is_begin:
                        yield {'type': 'reset', **event}
            finally:
                connection.close()
        except (ConnectionError, TimeoutError, Unreachable, http.client.HTTPException):
            pass
        except MgpuError as error:
            if error.status != STARTING:
                raise
        time.sleep(AGAIN_S)


async def follow(after: Optional[int] = None, client: Optional[Client] = None) -> AsyncIterator[Event]:
    """The same for `async for`."""
    loop = asyncio.get_running_loop()
    queue: 'asyncio.Queue[Union[Event, Exception]]' = asyncio.Queue()
    is_over = threading.Event()

    def read() -> None:
        try:
            for event in events(after, client):
                if is_over.is_set():
                    return
                loop.call_soon_threadsafe(queue.put_nowait, event)
        except Exception as error:  # whatever it is, it is for those who wait
            if not is_over.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, error)

    threading.Thread(target=read, name='mgpu-events', daemon=True).start()
    try:
        while True:
            found = await queue.get()
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        is_over.set()
