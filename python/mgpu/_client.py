# SPDX-License-Identifier: MIT
"""Requests to mgpud, over the socket that the command line uses."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import socket
import struct
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union
from urllib.parse import urlencode

SYSTEM_SOCKET = '/run/mgpu/mgpud.sock'
SERVICE_USER = 'mgpu'

Json = Dict[str, Any]
Query = Mapping[str, Union[str, int, None]]


class MgpuError(Exception):
    """A request that mgpud refused: the message, and for programs `status`, `code`, `detail` and `hint`."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get('code', ''))
        self.detail = str(problem.get('detail', ''))
        self.hint: Optional[str] = problem.get('hint')
        self.is_outcome_unknown = problem.get('outcome') == 'unknown'
        super().__init__(self.detail + (f' ({self.hint})' if self.hint else ''))


class Unreachable(OSError):
    """No mgpud answers."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__('localhost', timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.path)
            _check_listener(self.sock, self.path)
        except BaseException:
            self.sock.close()
            raise


def _check_listener(sock: socket.socket, path: str) -> None:
    """Accepts only sockets of root, this user and the user of mgpu: another user could listen on a socket in /tmp."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize('3i'))
    uid = struct.unpack('3i', credentials)[1]
    if uid in (0, os.geteuid()):
        return
    directory = os.stat(os.path.dirname(path) or '.')
    if directory.st_uid == uid and not directory.st_mode & 0o022:
        return
    try:
        if pwd.getpwnam(SERVICE_USER).pw_uid == uid:
            return
    except KeyError:
        pass
    raise PermissionError(f'{path} belongs to uid {uid}, which is neither you, root nor user {SERVICE_USER}')


def _places() -> List[str]:
    asked = os.environ.get('MGPU_SOCKET')
    if asked:
        return [asked]
    runtime, home = os.environ.get('XDG_RUNTIME_DIR'), os.environ.get('HOME')
    own = [f'{runtime}/mgpu/mgpud.sock'] if runtime else []
    own += [f'{home}/.local/state/mgpu/run/mgpud.sock'] if home else []
    return [*own, SYSTEM_SOCKET]


class Client:
    """A connection to mgpud: a unix socket, by default the one that the command `mgpu` uses. Calls are thread-safe:
    each uses its own connection."""

    def __init__(self, socket_path: Optional[str] = None) -> None:
        self._asked = socket_path

    def connect(self, timeout: Optional[float] = None) -> http.client.HTTPConnection:
        places = [self._asked] if self._asked else _places()
        stranger: Optional[PermissionError] = None  # it is said when no other place has an answer, as by the command
        for place in places:
            connection = _UnixConnection(place, timeout)
            try:
                connection.connect()
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                continue
            except PermissionError as error:
                stranger = stranger or error
        if stranger is not None:
            raise stranger
        raise Unreachable(f'no mgpud answers at {", ".join(places)}')

    def open(self, method: str, path: str, body: Optional[Json] = None, query: Optional[Query] = None,
             timeout: Optional[float] = None) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A response whose body has not been read; the caller closes the connection."""
        wanted = {name: value for name, value in (query or {}).items() if value is not None}
        target = f'/api/v1{path}' + (f'?{urlencode(wanted)}' if wanted else '')
        connection = self.connect(timeout)
        try:
            headers = {'Content-Type': 'application/json'} if body is not None else {}
            connection.request(method, target, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise MgpuError(response.status, _problem(response.read()))
            return connection, response
        except BaseException:
            connection.close()
            raise

    def request(self, method: str, path: str, body: Optional[Json] = None, query: Optional[Query] = None,
                timeout: Optional[float] = None) -> Json:
        connection, response = self.open(method, path, body, query, timeout)
        try:
            answer: Json = json.loads(response.read() or b'{}')
            return answer
        finally:
            connection.close()


def _problem(body: bytes) -> Json:
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {'detail': body.decode(errors='replace')}
