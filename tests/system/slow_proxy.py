# SPDX-License-Identifier: MIT
"""A proxy between a node and mgpud that delivers late: each piece by a random time, and now and then after a long pause,
as TCP does over a network that loses packets. What it carries stays whole and in order."""

import random
import select
import socket
import threading
import time


class SlowProxy:
    """Forwards connections to a port of this machine. Each piece is `delay_s` late; one of `nth` stops its direction for `pause_s`."""

    def __init__(self, port, seed, delay_s=0.1, pause_s=1.5, nth=20):
        self.target, self.chance = port, random.Random(seed)
        self.delay_s, self.pause_s, self.nth = delay_s, pause_s, nth
        self.pauses = 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(('127.0.0.1', self.target))
            except OSError:
                client.close()
                continue
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def lateness_s(self):
        if self.chance.randrange(self.nth):
            return self.delay_s * self.chance.random() * 2
        self.pauses += 1
        return self.pause_s

    def carry(self, source, sink):
        """One direction: pieces on their way, with the time at which each arrives; none overtakes another."""
        under_way, is_open = [], True
        try:
            while is_open or under_way:
                wait_s = max(0, under_way[0][0] - time.monotonic()) if under_way else None
                if is_open and select.select([source], [], [], wait_s)[0]:
                    piece = source.recv(65536)
                    is_open = bool(piece)
                    after = under_way[-1][0] if under_way else 0
                    under_way.append((max(after, time.monotonic() + self.lateness_s()), piece))
                    continue
                if not is_open and wait_s:
                    select.select([], [], [], wait_s)
                piece = under_way.pop(0)[1]
                if piece:
                    sink.sendall(piece)
                else:
                    sink.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, sink):
                end.close()

    def close(self):
        self.listener.close()
