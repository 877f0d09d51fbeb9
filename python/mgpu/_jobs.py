# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import secrets
import time
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Union

from mgpu._client import Client, Json, MgpuError, Unreachable

TRIES = 5  # of a submit whose outcome is not known, or that met a restart of mgpud
CHUNK = 65536
ENDED = ('done', 'failed', 'cancelled')


class Job:
    """A job of mgpud. `data` is the job object of docs/api.md as it was last read; its keys are attributes as well."""

    def __init__(self, data: Json, client: Optional[Client] = None) -> None:
        self.client = client or Client()
        self.data = data

    @classmethod
    def find(cls, number: int, client: Optional[Client] = None) -> 'Job':
        client = client or Client()
        return cls(client.request('GET', f'/jobs/{number}'), client)

    @property
    def id(self) -> int:
        return int(self.data['id'])

    @property
    def state(self) -> str:
        return str(self.data['state'])

    @property
    def exit_code(self) -> Optional[int]:
        return self.data.get('exit_code')

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get('data', {})
        if name in data:
            return data[name]
        raise AttributeError(f'a job has no {name!r}')

    def __repr__(self) -> str:
        return f'<Job {self.id} {self.data.get("name")!r} {self.state}>'

    def refresh(self) -> 'Job':
        self.data = self.client.request('GET', f'/jobs/{self.id}')
        return self

    def wait(self, timeout: Optional[float] = None, state: str = 'done') -> 'Job':
        """Waits until the job is, or has been, in the state; 'done' is any end. TimeoutError after `timeout` seconds."""
        query = {'states': state, 'timeout': None if timeout is None else f'{timeout:.3f}'}
        try:
            self.data = self.client.request('GET', f'/jobs/{self.id}/wait', query=query)
        except MgpuError as error:
            if error.code == 'timeout':
                raise TimeoutError(f'job {self.id} is {self.refresh().state}') from None
            raise
        return self

    def logs(self, follow: bool = True) -> Iterator[bytes]:
        """Its output in pieces; with `follow`, until the job ends."""
        connection, response = self.client.open('GET', f'/jobs/{self.id}/log', query={'follow': 1 if follow else None})
        try:
            while True:
                piece = response.read1(CHUNK)
                if not piece:
                    return
                yield piece
        finally:
            connection.close()

    def output(self) -> str:
        """Its output so far."""
        return b''.join(self.logs(follow=False)).decode(errors='replace')

    def cancel(self, grace: Optional[float] = None) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds. A job that has already ended is not an error."""
        try:
            self.client.request('POST', f'/jobs/{self.id}/cancel', {} if grace is None else {'grace_s': grace})
        except MgpuError as error:
            if error.code != 'already_done':
                raise

    def why(self) -> Json:
        """Why it waits and when it is expected to start, as `mgpu why` shows it."""
        return self.client.request('GET', f'/jobs/{self.id}/why')


def submit(command: Union[str, Sequence[str]], *, gpus: int = 0, cwd: Optional[str] = None,
           env: Optional[Mapping[str, str]] = None, client: Optional[Client] = None, **request: Any) -> Job:
    """Queues a command: words, or a string for the shell. It runs in `cwd` (the current directory) with `env` (the present
    environment); `request`: other keys of the API, such as name, time_limit, gpu_model, cpus, memory, after.

    If mgpud restarts during a submit, the request is repeated, and creates one job."""
    client = client or Client()
    body: Json = {'command': command if isinstance(command, str) else list(command), 'gpus': gpus,
                  'cwd': os.getcwd() if cwd is None else os.path.abspath(cwd),
                  'env': dict(os.environ if env is None else env), 'submit_key': secrets.token_hex(16), **request}
    for remaining in reversed(range(TRIES)):
        try:
            return Job(client.request('POST', '/jobs', body), client)
        except MgpuError as error:
            if not error.is_outcome_unknown or remaining == 0:
                raise
        except (ConnectionError, Unreachable):
            if remaining == 0:
                raise
        _pause()
    raise AssertionError('not reached')


def _pause() -> None:
    time.sleep(1)


def jobs(*, state: Optional[str] = None, user: Optional[str] = None, all: bool = False,
         client: Optional[Client] = None) -> List[Job]:
    """Jobs that have not ended, or ended within the last hour; with `all`, all jobs."""
    client = client or Client()
    answer = client.request('GET', '/jobs', query={'state': state, 'user': user, 'all': 1 if all else None})
    return [Job(data, client) for data in answer['jobs']]


def gpus(client: Optional[Client] = None) -> List[Json]:
    """The GPUs of all nodes and the jobs on them."""
    found: List[Json] = (client or Client()).request('GET', '/gpus')['gpus']
    return found
