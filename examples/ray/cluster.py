#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs a program on a Ray cluster that has the GPUs of this job on all its nodes, and ends with it: cluster.py COMMAND [ARGUMENT...]

    mgpu submit -N 2 -g 8 -J ray -- python3 cluster.py python3 work.py

mgpu starts this on each node of the job. The first starts Ray's head and then the program, which finds the head in RAY_ADDRESS; the
others start workers, and end when the head has ended. What Ray leaves running is ended by mgpu with the job, so `ray stop`,
which would end Ray of your other jobs on the node as well, is not needed.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time

RANK = int(os.environ.get('MGPU_NODE_RANK', 0))
NODES = int(os.environ.get('MGPU_NNODES', 1))
START_S = 120  # for the head and the workers
LOOK_S = 1
LOOKS = 5      # without an answer, after which the head has ended


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


HOST = os.environ.get('MASTER_ADDR', '127.0.0.1')  # both are set for jobs on several nodes
PORT = int(os.environ.get('MASTER_PORT', 0)) or free_port()


def has_head():
    try:
        with socket.create_connection((HOST, PORT), timeout=LOOK_S):
            return True
    except OSError:
        return False


def start(*words):
    """Ray on this node: in the foreground, so that it ends with its process; on ports that other jobs do not have."""
    gpus = os.environ.get('MGPU_NUM_GPUS', '0')
    return subprocess.Popen(['ray', 'start', '--block', '--num-gpus', gpus, '--min-worker-port', '0', '--max-worker-port', '0',
                             '--dashboard-agent-listen-port', str(free_port()), '--disable-usage-stats', *words])


def await_head(ray):
    end = time.monotonic() + START_S
    while not has_head():
        if ray.poll() is not None or time.monotonic() > end:
            sys.exit(f'cluster.py: no head of Ray at {HOST}:{PORT} within {START_S} s')
        time.sleep(LOOK_S)


def run_head(command):
    with tempfile.TemporaryDirectory(prefix='ray-', dir='/tmp', ignore_cleanup_errors=True) as folder:  # short: Ray has sockets there
        ray = start('--head', '--node-ip-address', HOST, '--port', str(PORT), '--include-dashboard', 'false', '--ray-client-server-port',
                    str(free_port()), '--temp-dir', folder)
        await_head(ray)
        status = subprocess.call(command, env=dict(os.environ, RAY_ADDRESS=f'{HOST}:{PORT}', RAY_NODES=str(NODES)))
        ray.terminate()
        ray.wait()
    return status if status >= 0 else 128 - status


def run_worker():
    end = time.monotonic() + START_S
    while not has_head() and time.monotonic() < end:
        time.sleep(LOOK_S)
    ray, missed = start('--address', f'{HOST}:{PORT}'), 0
    while missed < LOOKS:
        time.sleep(LOOK_S)
        missed = 0 if has_head() else missed + 1
        if ray.poll() is not None and missed == 0:
            return 1  # the worker has failed: mgpu ends the job
    ray.terminate()
    ray.wait()
    return 0


if __name__ == '__main__':
    sys.exit(run_head(sys.argv[1:]) if RANK == 0 else run_worker())
