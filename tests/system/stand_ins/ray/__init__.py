# SPDX-License-Identifier: MIT
"""A stand-in for Ray where it is not installed: the part of its interface that examples/ray uses. `bin/ray` here is its command.

What matters here is as in Ray: a head at an address, workers on other nodes that join it, tasks of which each has one GPU, and a daemon in a session of
its own that outlives `ray start`. It shows that the example and mgpu do their parts, not that Ray works."""

import json
import socket
import sys
import threading

HERE = {}


def ask(question):
    """The head's answer; it comes when there is one."""
    host, port = HERE['address'].rsplit(':', 1)
    with socket.create_connection((host, int(port))) as head, head.makefile('rw') as stream:
        stream.write(json.dumps(question) + '\n')
        stream.flush()
        return json.loads(stream.readline())


def init(address):
    HERE['address'] = address


def nodes():
    return [{'Alive': True, 'NodeName': name} for name in ask({'ask': 'nodes'})]


def cluster_resources():
    return {'GPU': float(ask({'ask': 'gpus'}))}


class Task:
    """A call that runs in a process of the cluster."""

    def __init__(self, function, words):
        question = {'ask': 'run', 'script': sys.modules[function.__module__].__file__, 'function': function.__name__, 'words': words}
        self.result = None
        self.thread = threading.Thread(target=lambda: setattr(self, 'result', ask(question)))
        self.thread.start()


def remote(num_gpus):
    assert num_gpus == 1

    def decorate(function):
        function.remote = lambda *words: Task(function, words)
        function.function = function
        return function

    return decorate


def get(tasks):
    for task in tasks:
        task.thread.join()
    return [tuple(task.result) for task in tasks]
