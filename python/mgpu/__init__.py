# SPDX-License-Identifier: MIT
"""Jobs of mgpu from Python.

    import mgpu
    job = mgpu.submit(['python', 'train.py'], gpus=2)
    print(job.wait().state, job.output())

    with mgpu.Executor(gpus=1) as executor:
        print(list(executor.map(train, [0.1, 0.01])))

Needs the standard library alone. Every call is a request to the HTTP API (docs/api.md), as the calling user.
"""

from mgpu._client import Client, MgpuError, Unreachable
from mgpu._events import Event, events, follow
from mgpu._executor import Executor, JobFailed
from mgpu._jobs import Job, gpus, jobs, submit
from mgpu._version import __version__

__all__ = ['Client', 'Event', 'Executor', 'Job', 'JobFailed', 'MgpuError', 'Unreachable', '__version__', 'events', 'follow', 'gpus', 'jobs',
           'submit']
