# SPDX-License-Identifier: MIT
"""Processes that find each other: the first is at the coordinator's address, to which the others connect. See the package."""

import socket
import time
from multiprocessing.connection import Connection

DEADLINE_S = 60
HERE = {'rank': 0, 'count': 1, 'links': []}


def rank():
    return HERE['rank']


def processes():
    return HERE['count']


def initialize(coordinator_address, num_processes, process_id):
    host, port = coordinator_address.rsplit(':', 1)
    HERE.update(rank=process_id, count=num_processes)
    if process_id > 0:
        HERE['links'] = [link_to((host.strip('[]'), int(port)))]
        return
    with socket.create_server((host.strip('[]'), int(port))) as server:
        server.settimeout(DEADLINE_S)
        for _ in range(num_processes - 1):
            accepted = server.accept()[0]
            accepted.setblocking(True)
            HERE['links'].append(Connection(accepted.detach()))


def link_to(address):
    end = time.monotonic() + DEADLINE_S
    while True:
        try:
            connected = socket.create_connection(address)
            return Connection(connected.detach())
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def gather(own):
    """What each process passed, in the order of their ranks."""
    if rank() > 0:
        HERE['links'][0].send((rank(), own))
        return HERE['links'][0].recv()
    parts = dict([(0, own)] + [link.recv() for link in HERE['links']])
    ordered = [parts[i] for i in sorted(parts)]
    for link in HERE['links']:
        link.send(ordered)
    return ordered
