# SPDX-License-Identifier: MIT
"""Functions as jobs. A call is pickled (by cloudpickle where it is installed) into a directory, a job runs it by
`python .../mgpu/_call.py FILE`, however the caller has found this module, and its result comes back through a file
beside it. The directory must be one that the node sees."""

from __future__ import annotations

import concurrent.futures
import os
import pickle
import shutil
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Optional, TypeVar

from mgpu._client import Client, MgpuError
from mgpu._jobs import Job, submit

try:
    import cloudpickle  # type: ignore[import]
except ImportError:
    cloudpickle = None

T = TypeVar('T')


CALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '_call.py')


class JobFailed(Exception):
    """The job ended before its function returned or raised. `job` is the job, `output` the end of its output."""

    def __init__(self, job: Job, output: str) -> None:
        self.job, self.output = job, output
        super().__init__(f'job {job.id} {job.state} ({job.data.get("ended_by")}, exit status {job.exit_code})\n{output}')


class Executor(concurrent.futures.Executor):
    """Runs each function in a separate job. `request`: the request of each job, as in mgpu.submit(). The end of a `with`
    block waits for all jobs; shutdown(cancel_futures=True) cancels those that have not ended."""

    def __init__(self, *, gpus: int = 0, directory: Optional[str] = None, client: Optional[Client] = None, **request: Any) -> None:
        self._client = client or Client()
        self._request = {'gpus': gpus, **request}
        self._directory = tempfile.mkdtemp(prefix='.mgpu-calls-', dir=directory or os.getcwd())
        self._lock = threading.Lock()
        self._waiters: Dict['concurrent.futures.Future[Any]', threading.Thread] = {}
        self._jobs: Dict['concurrent.futures.Future[Any]', Job] = {}
        self._count = 0
        self._is_shut = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> 'concurrent.futures.Future[T]':
        if cloudpickle is None and getattr(fn, '__module__', None) == '__main__':
            raise pickle.PicklingError(f'{fn!r} is defined in the script itself, where a job cannot import it: move it to a module, '
                                       'or install cloudpickle')
        with self._lock:
            if self._is_shut:
                raise RuntimeError('cannot schedule new futures after shutdown')
            self._count += 1
            path = os.path.join(self._directory, str(self._count))
        with open(path, 'wb') as out:
            pickle.dump([os.path.abspath(folder) for folder in sys.path], out)  # where its modules are
            (cloudpickle or pickle).dump((fn, args, kwargs), out)
        request: Dict[str, Any] = {'name': getattr(fn, '__name__', 'call'), **self._request}
        job = submit([sys.executable, CALL, path], client=self._client, **request)
        future: 'concurrent.futures.Future[T]' = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        waiter = threading.Thread(target=self._finish, args=(future, job, path), name=f'mgpu-job-{job.id}', daemon=True)
        with self._lock:
            self._jobs[future] = job
            self._waiters[future] = waiter
        waiter.start()
        return future

    def job(self, future: 'concurrent.futures.Future[Any]') -> Job:
        """The job of a future that has not been shut down."""
        return self._jobs[future]

    def _finish(self, future: 'concurrent.futures.Future[Any]', job: Job, path: str) -> None:
        try:
            _wait(job)
            if not os.path.exists(f'{path}.result'):
                raise JobFailed(job, _output(job)[-4000:])
            with open(f'{path}.result', 'rb') as result:
                is_good, value = pickle.load(result)
        except BaseException as error:  # noqa: BLE001 - the future tells it
            future.set_exception(error)
            return
        if is_good:
            future.set_result(value)
        else:
            future.set_exception(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._is_shut = True
            waiters = dict(self._waiters)
        if cancel_futures:
            for future in waiters:
                if not future.done():
                    self._jobs[future].cancel()
        if wait:
            for waiter in waiters.values():
                waiter.join()
            shutil.rmtree(self._directory, ignore_errors=True)


def _output(job: Job) -> str:
    """The output of a failed job: empty if it was cancelled before it had a log."""
    try:
        return job.output()
    except MgpuError:
        return ''


def _wait(job: Job) -> None:
    """A restart of mgpud closes the connection, but ends no job."""
    pause = threading.Event()
    while True:
        try:
            job.wait()
            return
        except (OSError, EOFError) as error:
            if isinstance(error, PermissionError):
                raise
        except MgpuError as error:
            if error.status < 500:
                raise
        pause.wait(1)
