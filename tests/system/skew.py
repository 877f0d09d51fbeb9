# SPDX-License-Identifier: MIT
"""Programs of another version of mgpu, and a controller or an agent that speaks as a newer one would."""

import contextlib
import os
import re
import select
import socket
import ssl
import struct
import subprocess
import threading

import harness

NEW_TAG, NEW_MESSAGE = 60000, 60001
HEAD, FIELD = struct.Struct('<4sHHI'), struct.Struct('<HHI')
LINK, STREAM = 'mgpu-link/1', 'mgpu-stream/1'


def version_of(folder):
    """(major, minor, patch) that the mgpud in this folder says it is."""
    said = subprocess.run([f'{folder}/mgpud', '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(map(int, re.search(r'(\d+)\.(\d+)\.(\d+)', said).groups()))


def next_minor(folder):
    """Copies of a build's programs that say, and believe, that they are one minor version further."""
    major, minor, patch = version_of(folder)
    old, new = (f'{major}.{number}.{patch}'.encode() for number in (minor, minor + 1))
    assert len(old) == len(new), 'a version of another length does not fit into the program'
    place = harness.copy_programs(
        folder, lambda program: re.sub(rb'(?<![0-9.])' + re.escape(old) + rb'(?![0-9.])', new, program))
    assert version_of(place) == (major, minor + 1, patch)
    return place


def other_builds():
    """{name: folder} of builds of other commits: MGPU_OTHER_BUILDS has NAME=FOLDER, with blanks between."""
    return dict(word.split('=', 1) for word in os.environ.get('MGPU_OTHER_BUILDS', '').split())


def entry_of(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    return byte


CRC_TABLE = [entry_of(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def frame(kind, body):
    bytes_ = HEAD.pack(b'mgR1', kind, 0, len(body)) + body
    return bytes_ + struct.pack('<I', crc32c(bytes_))


NEW_FIELD = FIELD.pack(NEW_TAG, 0, 3) + b'new'


class Newer:
    """Between a node and mgpud: each hears a newer one, with a field more in each frame and other frames between."""

    def __init__(self, cluster, node):
        self.cluster, self.node, self.frames = cluster, node, 0
        # Read here: in a thread the effective user may be another's for a moment.
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        keys = f'{cluster.box.state_dir}/store/tls'
        self.server.load_cert_chain(f'{keys}/authority.crt', f'{keys}/authority.key')
        self.server.set_alpn_protocols([LINK, STREAM])
        self.clients = {purpose: self.client(purpose) for purpose in (LINK, STREAM)}
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.place = f'127.0.0.1:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.relay, args=(self.listener.accept()[0],), daemon=True).start()

    def client(self, purpose):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(f'{self.node.state_dir}/node/tls/node.crt', f'{self.node.state_dir}/node/tls/node.key')
        context.set_alpn_protocols([purpose])
        return context

    def dial(self, purpose):
        return self.clients[purpose].wrap_socket(socket.create_connection(('127.0.0.1', self.cluster.port)))

    def renew(self, held):
        """(what is passed on of the frames in `held`, what is no whole frame yet)"""
        passed = b''
        while len(held) >= HEAD.size:
            _, kind, _, length = HEAD.unpack_from(held)
            if len(held) < HEAD.size + length + 4:
                break
            body, held = held[HEAD.size:HEAD.size + length], held[HEAD.size + length + 4:]
            passed += frame(NEW_MESSAGE, NEW_FIELD) + frame(kind, NEW_FIELD + body + NEW_FIELD)
            self.frames += 1
        return passed, held

    def relay(self, plain):
        with contextlib.suppress(OSError), self.server.wrap_socket(plain, server_side=True) as near:
            purpose = near.selected_alpn_protocol()
            with self.dial(purpose) as far:
                held, others = {near: b'', far: b''}, {near: far, far: near}
                while True:
                    ready = [side for side in others if side.pending()] or select.select(list(others), [], [])[0]
                    for side in ready:
                        more = side.recv(65536)
                        if not more:
                            return
                        if purpose == LINK:
                            more, held[side] = self.renew(held[side] + more)
                        others[side].sendall(more)

    def close(self):
        self.listener.close()
