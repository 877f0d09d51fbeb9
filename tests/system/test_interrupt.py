# SPDX-License-Identifier: MIT
"""Ctrl-C of a command that follows its job, at the moment in which mgpud has the request and the command has no answer."""

import contextlib
import os
import re
import signal
import socket
import threading

import pytest

import harness
from slurm import Slurm

LIMIT_S = 30


# What goes through the socket in between is asked by whoever runs the tests.
GPUS, ARGUMENTS = 'sim:1x24G', ('--allow-root-jobs',) if harness.IS_ROOT else ()


class Between:
    """A socket before that of mgpud. `act` is called when mgpud has answered a submission, before its answer is passed on."""

    def __init__(self, box, act, is_answered=True):
        self.act, self.is_answered, self.box = act, is_answered, box
        self.path = f'{box.place}/between.{id(self)}.sock'
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.box.socket)
                state = {'is_submission': False}
                threading.Thread(target=self.up, args=(client, server, state), daemon=True).start()
                threading.Thread(target=self.down, args=(client, server, state), daemon=True).start()

    def up(self, client, server, state):
        with contextlib.suppress(OSError):
            while piece := client.recv(65536):
                state['is_submission'] = state['is_submission'] or piece.startswith(b'POST /api/v1/jobs HTTP')
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)

    def down(self, client, server, state):
        with contextlib.suppress(OSError):
            while piece := server.recv(65536):
                if state['is_submission']:
                    state['is_submission'] = False
                    self.act(piece)
                    if not self.is_answered:
                        continue
                client.sendall(piece)
            client.close()

    def close(self):
        self.listener.close()
        os.unlink(self.path)


class Interrupted:
    """A command that gets a signal between mgpud's answer and its arrival."""

    def __init__(self, box, *words, number=signal.SIGINT, is_answered=True, **options):
        self.is_begun, self.number, self.job = threading.Event(), number, None
        between = Between(box, self.act, is_answered)
        self.process = box.popen(*words, env={'MGPU_SOCKET': between.path}, **options)
        self.is_begun.set()
        out, err = self.process.communicate(timeout=LIMIT_S)
        self.code, self.out, self.err = self.process.returncode, out.decode(), err.decode()
        between.close()

    def act(self, answer):
        self.job = int(re.search(rb'"id":(\d+)', answer)[1])
        assert self.is_begun.wait(LIMIT_S)
        self.process.send_signal(self.number)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_before_the_answer_cancels_the_job(box, number):
    done = Interrupted(box, 'run', '--', 'sleep', '1000', number=number)
    assert done.code == 128 + number, (done.code, done.err)
    assert box.wait(done.job)['state'] == 'cancelled'


def test_a_waiting_job_is_cancelled_too(box, gate):
    blocker = box.post_job(gate.command(), gpus=1)
    box.wait(blocker, 'running')
    done = Interrupted(box, 'run', '-g', '1', '--', 'true')
    assert done.code == 130 and box.wait(done.job)['state'] == 'cancelled', (done.code, done.err)
    gate.open()
    box.wait(blocker)


def test_without_an_answer_the_command_says_what_it_does_not_know(box):
    done = Interrupted(box, 'run', '--', 'true', is_answered=False)
    assert done.code == 130, (done.code, done.err)
    assert 'the job may or may not have been accepted' in done.err and 'mgpu ps' in done.err, done.err
    box.wait(done.job)


def test_a_command_that_follows_nothing_ends_at_once(box):
    done = Interrupted(box, 'submit', '--', 'true')
    assert done.code == -signal.SIGINT and box.wait(done.job)['state'] == 'done', (done.code, done.err)


def test_the_command_of_salloc_can_be_interrupted(box, place):
    out = Slurm(box, place).run('salloc', 'grep', 'SigBlk', '/proc/self/status').out
    assert re.fullmatch(r'SigBlk:\s0{16}\n', out), out
