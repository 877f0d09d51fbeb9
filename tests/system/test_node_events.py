# SPDX-License-Identifier: MIT
"""What is told of nodes that come and go: /events, and the machines that are joining when mgpud leaves."""

import contextlib
import os
import select
import signal
import socket
import threading

import pytest

import harness
from cluster import Cluster

ENCRYPTED = 0x17  # type of a record of TLS 1.3
HANDSHAKE = 2     # such records of the client: that it has no certificate, and the end of its handshake


@pytest.fixture
def lone(someone):
    with Cluster(0, client=someone) as made:
        yield made


def changes(box, wanted):
    """What /events has told of nodes other than the controller's, until it ended with `wanted`."""
    found = []
    for event in box.events(after=0):
        told = event['data']
        if event['event'] == 'cluster' and told['node'] not in (None, 'head'):
            found.append((told['change'], told['node']))
        if found[-len(wanted):] == wanted:
            return found
    raise AssertionError(f'{wanted} is not the end of {found}')


def test_joining_coming_going_and_forgetting_are_events(lone):
    box, node = lone.box, lone.add('n1').join()
    assert changes(box, [('node_join', 'n1'), ('node_up', 'n1')])[0] == ('node_join', 'n1')
    node.stop()
    changes(box, [('node_down', 'n1')])
    node.start()
    changes(box, [('node_down', 'n1'), ('node_up', 'n1')])
    box.mgpu('node', 'forget', 'n1', user=box.user, check=True)
    found = changes(box, [('node_forget', 'n1')])
    assert [change for change, _ in found].count('node_join') == 1, found
    node.stop()
    del lone.nodes['n1']


def test_a_node_up_says_whether_the_node_came_and_who_forgot_it_is_told(lone):
    box, node = lone.box, lone.add('n1').join()
    node.stop()
    del lone.nodes['n1']
    box.mgpu('node', 'forget', 'n1', user=box.user, check=True)
    came, who = None, None
    for event in box.events(after=0):
        told = event['data']
        if told.get('change') == 'node_up' and told['node'] == 'n1' and came is None:
            came = told['came']
        if told.get('change') == 'node_forget':
            who = told['user']
            break
    assert came is True and who == box.user.name


def test_joining_again_for_the_same_certificate_is_no_second_join(lone):
    ticket = lone.ticket()
    node = lone.add('n1').join(ticket)
    node.stop()
    node.join(ticket)
    found = changes(lone.box, [('node_down', 'n1'), ('node_up', 'n1')])
    assert [change for change, _ in found].count('node_join') == 1, found


def test_join_only_leaves_a_node_that_has_not_come(lone):
    node = lone.add('n1')
    node.spawn('--join', lone.ticket(), '--node', 'n1', '--join-only')
    assert node.end() == 0, node.log()
    assert not lone.node('n1')['up'] and not node.agents()
    node.spawn('--join-only')
    assert node.end() == 2 and '--join-only requires --join' in node.log(), node.log()
    node.start()


def test_a_machine_that_had_an_mgpud_of_its_own_joins_and_leaves_again(lone):
    box, own, node = lone.box, harness.Instance('sim:1x8G', client=lone.box.client), lone.add('n1')
    for _ in range(2):
        own.start()
        own.stop()
    node.command = [word.replace(node.place, own.place) for word in node.command]
    node.state_dir, node.run_dir = own.state_dir, own.run_dir
    node.join()
    node.stop()
    del lone.nodes['n1']
    for _ in range(4):  # more starts than its own mgpud had
        box.restart()
    node.start()
    node.stop()
    own.start()
    assert own.run_job(['true'])[0]['exit_code'] == 0
    own.close()


# --- joining while mgpud leaves ---

class Way:
    """A way to mgpud that keeps JOIN back until it may pass. What comes from mgpud always passes."""

    def __init__(self, port):
        self.port, self.listener = port, socket.create_server(('127.0.0.1', 0))
        self.place = f'127.0.0.1:{self.listener.getsockname()[1]}'
        self.has_join, self.permission, self.held = threading.Event(), os.pipe(), b''
        self.passed, self.is_open = 0, False
        threading.Thread(target=self.run, daemon=True).start()

    def let_pass(self):
        os.write(self.permission[1], b'.')

    def hold(self, more):
        """What of it may pass: the handshake."""
        self.held += more
        passed = b''
        if self.is_open:
            passed, self.held = self.held, b''
        while len(self.held) >= 5:
            length = 5 + int.from_bytes(self.held[3:5], 'big')
            if self.held[0] == ENCRYPTED and self.passed == HANDSHAKE:
                self.has_join.set()
                break
            if len(self.held) < length:
                break
            self.passed += self.held[0] == ENCRYPTED
            passed, self.held = passed + self.held[:length], self.held[length:]
        return passed

    def run(self):
        near, _ = self.listener.accept()
        far = socket.create_connection(('127.0.0.1', self.port))
        with near, far, contextlib.suppress(OSError):
            while True:
                for side in select.select([near, far, self.permission[0]], [], [])[0]:
                    more = os.read(side, 1) if side is self.permission[0] else side.recv(65536)
                    if side is self.permission[0]:
                        self.is_open = True
                        far.sendall(self.hold(b''))
                    elif not more:
                        return
                    elif side is far:
                        near.sendall(more)
                    else:
                        far.sendall(self.hold(more))


def begin(lone):
    """A node n1 whose JOIN is on its way, behind a stopped mgpud that was told to leave."""
    way, node, ticket = Way(lone.port), lone.add('n1'), lone.ticket()
    node.spawn('--join', f'{way.place}#{ticket.partition("#")[2]}', '--node', 'n1')
    assert way.has_join.wait(harness.DEADLINE_S), node.log()
    return way, node, ticket


def test_a_join_that_is_on_its_way_when_mgpud_leaves_is_carried_out(lone):
    way, node, _ = begin(lone)
    daemon = lone.box.process
    daemon.send_signal(signal.SIGSTOP)
    way.let_pass()
    daemon.terminate()
    daemon.send_signal(signal.SIGCONT)
    assert daemon.wait(harness.DEADLINE_S) == 0
    node.await_log('this machine is now node n1 of head')
    node.stop()
    lone.box.start()
    node.start('--controller', f'127.0.0.1:{lone.port}')
    assert ('node_join', 'n1') in changes(lone.box, [('node_up', 'n1')])


def test_a_join_that_does_not_arrive_is_told_so_and_its_token_stays_good(lone):
    _, node, ticket = begin(lone)
    daemon = lone.box.process
    daemon.terminate()
    assert daemon.wait(harness.DEADLINE_S) == 0
    assert node.end() == 1 and 'mgpud is stopping' in node.log() and 'the same token' in node.log(), node.log()
    lone.box.start()
    node.join(ticket)
