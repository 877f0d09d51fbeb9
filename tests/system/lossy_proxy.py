# SPDX-License-Identifier: MIT
"""A proxy of one member of etcd that loses answers: the request is executed, and its sender gets no answer."""

import socket
import threading


class LossyProxy:
    """Forwards HTTP requests; of those whose path contains `path`, every `nth` answer is lost with its connection."""

    def __init__(self, port, path='/kv/txn', nth=3):
        self.target, self.path, self.nth = port, path.encode(), nth
        self.count = self.lost = 0
        self.is_losing = False
        self.lock = threading.Lock()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def message(stream):
        """One HTTP message as bytes; None at the end."""
        head, length, is_chunked = b'', 0, False
        while not head.endswith(b'\r\n\r\n'):
            line = stream.readline()
            if not line:
                return None
            if line.lower().startswith(b'content-length:'):
                length = int(line.split(b':')[1])
            is_chunked = is_chunked or line.lower().startswith(b'transfer-encoding: chunked')
            head += line
        body = stream.read(length)
        while is_chunked:
            size = stream.readline()
            if not size:
                return None
            body += size + stream.read(int(size, 16) + 2)
            is_chunked = int(size, 16) > 0
        return head + body

    def is_lost(self, request):
        with self.lock:
            if not self.is_losing or self.path not in request.split(b'\r\n', 1)[0]:
                return False
            self.count += 1
            if self.count % self.nth:
                return False
            self.lost += 1
            return True

    def serve(self, client):
        try:
            with client, socket.create_connection(('127.0.0.1', self.target)) as server:
                from_client, from_server = client.makefile('rb'), server.makefile('rb')
                while request := self.message(from_client):
                    server.sendall(request)
                    answer = self.message(from_server)
                    if answer is None or self.is_lost(request):
                        return
                    client.sendall(answer)
        except OSError:
            pass

    def close(self):
        self.listener.close()
