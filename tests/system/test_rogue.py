# SPDX-License-Identifier: MIT
"""What a compromised mgpud can do on its nodes: nothing as root, and nothing to an attempt that it does not name.

It may start jobs of any user who is not root, and so has the rights of each of them (docs/cluster.md, Trust). Everything
else must be in vain: see `Targets.check`. Each message of the link has a case here; each of its fields is then sent with
values that no honest mgpud would send.
"""

import os
import subprocess
import sys

import pytest

import harness
import rogue

pytestmark = pytest.mark.root

SECRET, PRIVATE = 'the secret of root 6f1d', 'the private words of bo 9c2e'
STOP_LEASED = 0x10000
QUESTIONS, LOGS = 5000, 600  # of each more than there may be
HOSTILE = {
    'bool': [True],
    'u32': [0, 1, 64, 65, 0x7fffffff, 0x80000000, 0xffffffff],
    'i32': [0, -1, -2**31, 2**31 - 1],
    'u64': [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1],
    'i64': [0, 1, -1, -2**63, 2**63 - 1, 2**62],
}
WORDS = ['', '/etc/shadow', '../../../../etc/shadow', 'a\nb: c\r\n', '%j%n%a%h%r%', '-x', b'\xff\xfe\x1b[2J']


def hostile_values(field):
    """What is tried in the place of an honest value."""
    if field['kind'] in HOSTILE:
        return HOSTILE[field['kind']]
    limit = field['limit']
    if field['kind'] == 'string':
        return [*WORDS, 'x' * limit, 'x' * (limit + 1)]
    if field['kind'] == 'strings':
        many = ['x'] * min(limit // 2, 20000)
        return [[], [''], ['LD_PRELOAD=/tmp/none.so', '=', 'PATH='], many, ['x' * limit]]
    return [[], [{}] * 2, [{}] * min(limit + 1, 5000), [{}] * 5000]


def hostile_messages(fields, base):
    """(name of the field, the values of a message) for each field of the table and each value."""
    for field in fields:
        for value in hostile_values(field):
            yield field['name'], {**base, field['name']: value}
        inner = base.get(field['name'])
        if field['kind'] == 'list' and inner:
            for name, item in hostile_messages(field['fields'], inner[0]):
                yield name, {**base, field['name']: [item, *inner[1:]]}


class Targets:
    """What is not to be touched: files and processes of root and of bo, and a job of bo's."""

    def __init__(self, server, ana, bo):
        self.server, self.ana, self.bo = server, ana, bo
        place = server.place
        self.ran, self.root_file, self.bo_file = f'{place}/ran', f'{place}/root', f'{place}/bo'
        os.mkdir(self.ran)
        os.chmod(self.ran, 0o1777)
        for path, text, uid in ((self.root_file, SECRET, 0), (self.bo_file, PRIVATE, bo.uid)):
            with open(path, 'w', encoding='utf-8') as out:
                out.write(text)
            os.chmod(path, 0o600)
            os.chown(path, uid, uid)
        self.link = f'{self.ran}/link'
        with ana.acting():
            os.symlink(self.bo_file, self.link)
        idle = [sys.executable, '-c', 'import signal; signal.pause()']
        self.processes = [subprocess.Popen(idle, **user.popen_arguments(), stdin=subprocess.DEVNULL)
                          for user in (harness.User('root'), bo)]
        server.launch(rogue.VICTIM, bo.uid, rogue.VICTIM_TOKEN, spec=[self.spec(['/bin/sleep', '1000'])])
        server.wait(lambda: server.came('STARTED', job=rogue.VICTIM), 'the job does not start')
        self.victim = next(numbers['init_pid'] for kind, numbers in server.messages if kind == 'STARTED')

    def spec(self, command, **more):
        return {'command': command, 'cwd': '/tmp', 'output': '/dev/null', 'name': 'x', 'umask': 0o22, **more}

    def mark(self):
        """A command that shows as whom it ran."""
        return ['/bin/sh', '-c', f': >{self.ran}/$$']

    def check(self):
        server = self.server
        assert server.process.poll() is None, server.log()[-3000:]
        assert SECRET.encode() not in server.heard and PRIVATE.encode() not in server.heard
        for path, text in ((self.root_file, SECRET), (self.bo_file, PRIVATE)):
            with open(path, encoding='utf-8') as source:
                assert source.read() == text, path
        assert all(process.poll() is None for process in self.processes)
        assert os.path.exists(f'/proc/{self.victim}') and (rogue.VICTIM, 1, 0, 0) in server.spool()
        assert not os.path.exists(f'{server.run_dir}/spool/{rogue.VICTIM}.1.0.0/exit')
        for name in os.listdir(self.ran):
            seen = os.lstat(f'{self.ran}/{name}')
            assert seen.st_uid != 0 and seen.st_gid != 0, f'{name} was written by root'
            assert seen.st_uid >= 1000, f'{name} was written by the system account {seen.st_uid}'
        found = [line for line in server.log().splitlines() if harness.SANITIZER.search(line)]
        assert not found, server.log()[-6000:]
        assert server.descriptors() < 400, server.descriptors()

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope='module')
def targets(ana, bo):
    server = rogue.Rogue()
    made = Targets(server, ana, bo)
    yield made
    made.close()
    server.close()


def of_victim(**more):
    return {'job': rogue.VICTIM, 'attempt': 1, 'step': 0, 'rank': 0, 'token': 1, **more}  # it is another's token


def launches(targets):
    """Launches as ana, as root, of a process of somebody else, and over files of others."""
    ana, mark = targets.ana.uid, targets.spec(targets.mark())
    base = {'job': 1, 'attempt': 1, 'token': 1, 'uid': ana, 'gid': ana, 'user': targets.ana.name, 'spec': [mark],
            'gpus': [{'index': 0}], 'peers': [{'name': 'rogue', 'address': '127.0.0.1', 'gpus': 1}], 'lease_ms': 600000}
    yield {**base, 'peers': []}
    yield base
    yield {**base, 'uid': 0, 'gid': 0, 'user': 'root', 'peers': []}
    yield {**base, 'gid': 0, 'peers': []}
    for account in ('daemon', 'bin', 'mail'):
        user = harness.User(account)
        yield {**base, 'uid': user.uid, 'gid': user.gid, 'user': account, 'peers': []}
    for uid in (0, ana):
        for pid in (targets.processes[0].pid, targets.processes[1].pid, targets.server.process.pid, 1):
            yield {**base, 'uid': uid, 'user': '', 'peers': [], 'spec': [{**mark, 'adopted_pid': pid}]}
    for path in (targets.root_file, targets.bo_file, targets.link, f'{targets.server.run_dir}/spool/x'):
        yield {**base, 'peers': [], 'spec': [{**mark, 'output': path}]}
        yield {**base, 'peers': [], 'spec': [targets.spec([path], script='#!/bin/sh\nexit 0\n', cwd=path)]}
    yield {**base, 'peers': [], 'spec': [{**mark, 'setup': targets.mark()[2], 'env': ['LD_PRELOAD=/x', 'IFS=/']}]}
    yield {**base, **of_victim(uid=ana, gid=ana), 'peers': []}


def logs(targets):
    paths = (targets.bo_file, targets.root_file, targets.link, '/etc/shadow', '/proc/1/environ', targets.ran,
             f'{targets.server.run_dir}/spool/{rogue.VICTIM}.1.0.0/spec', 'root', '')
    for path in paths:
        for uid in (targets.ana.uid, 0):
            yield {'stream': 7, 'uid': uid, 'gid': 0, 'path': path, 'follow': 0}
    yield {'stream': 7, 'uid': targets.bo.uid, 'path': targets.root_file}


def notifications(targets):
    for uid in (targets.ana.uid, 0):
        for way in (1, 2, 3, 0, 9):
            yield {'notification': 1, 'target': 1, 'job': 1, 'uid': uid, 'gid': 0, 'way': way, 'to': targets.mark()[2],
                   'json': '{}', 'time_ms': 2000, 'env': ['LD_PRELOAD=/x']}


def attempt_orders(**more):
    """Orders about bo's job that do not know its token, and about steps and attempts that are not there."""
    def make(targets):
        del targets
        yield of_victim(**more)
        for name, value in (('token', 0), ('attempt', 2), ('attempt', 0), ('step', 1), ('rank', 1), ('job', 0)):
            yield of_victim(**{**more, name: value})
    return make


def with_step(targets):
    for message in attempt_orders(stream=8, command=targets.mark())(targets):
        yield message


def looks(targets):
    del targets
    yield {'question': 5, 'pid': 1}
    yield {'job': 5, 'pid': 1}


def values(**more):
    return lambda targets: [more]


# The messages with which each attack begins; each value is then replaced.
CASES = {
    'LAUNCH': launches,
    'PREPARE': launches,
    'STOP': attempt_orders(signal=9, grace_ms=0),
    'RELEASE_ATTEMPT': attempt_orders(),
    'SIGNAL': attempt_orders(signal=9),
    'UPDATE': attempt_orders(time_limit_ms=1, is_suspended=1, number=99),
    'GO': attempt_orders(port=1),
    'OPEN_TERMINAL': attempt_orders(stream=8, rows=1, columns=1),
    'OPEN_STEP': with_step,
    'REJOIN_STEP': attempt_orders(stream=8, key=1, position=0, rows=1, columns=1),
    'OPEN_PORT': attempt_orders(stream=8, port=22, path=''),
    'OPEN_LOG': logs,
    'NOTIFY': notifications,
    'INSPECT': looks,
    'PARK': attempt_orders(),
    'RELEASE_GPUS': values(uuids=['/etc/shadow']),
    'WELCOME': values(epoch=1, heartbeat_ms=1, timeout_ms=1, began_ms=1, event=1),
    'HEARTBEAT_ACK': values(sent_ms=1, event=1),
    'REFUSED': values(error=1, text='\x1b[2J', hint='x'),
    # Only agents send these.
    'HELLO': values(protocol=1, node='rogue'),
    'STARTED': attempt_orders(),
    'EXITED': attempt_orders(),
    'RETURNED': attempt_orders(),
    'READY': attempt_orders(),
    'GPUS': values(gpu_backend='none'),
    'HEARTBEAT': values(sent_ms=1),
    'STREAM': values(stream=1),
    'JOB_CLIENT': attempt_orders(),
    'PROCESS_INFO': values(question=1),
    'NOTIFIED': values(notification=1),
    'PARK_RESULT': attempt_orders(),
    # And these are of machines that join.
    'JOIN': values(protocol=1, node='x'),
    'JOINED': values(certificate='x'),
    'PROBE': values(protocol=1),
    'PROBED': values(protocol=1),
}


def send_all(server, name, messages):
    """Each on a link that obeys. {attempt: token} of what the agent may have taken up."""
    tokens = {}
    for field, message in messages:
        if name in ('LAUNCH', 'PREPARE'):
            message = {'order': next(server.orders), **message}
        server.send(name, **message)
        server.settle()
        tokens[tuple(message.get(part, 0) for part in ('job', 'attempt', 'step', 'rank'))] = message.get('token', 0)
        if field == 'order':
            server.greet()  # what counts up starts anew
    return tokens


def numbered(messages):
    """Each with a job of its own, unless that is what is tried."""
    for i, (field, message) in enumerate(messages):
        is_own = field in ('job', 'attempt', 'step', 'rank') or message['job'] != 1
        yield field, message if is_own else {**message, 'job': 1000 + i}


@pytest.mark.parametrize('name', rogue.message_names())
def test_a_compromised_mgpud_does_nothing_as_root_and_nothing_to_the_attempts_of_others(targets, name):
    server = targets.server
    assert name in CASES, f'{name} has no case here: what can a compromised mgpud do with it?'
    assert name in server.tables, f'{name} has no field table'
    bases = list(CASES[name](targets))
    messages = [('', base) for base in bases] + list(hostile_messages(server.tables[name]['fields'], bases[0]))
    if name in ('LAUNCH', 'PREPARE'):
        messages = numbered(messages)
    if name == 'WELCOME':
        welcome(server, messages)
    else:
        tokens = send_all(server, name, messages)
        for id_, token in list(tokens.items()) if name in ('LAUNCH', 'PREPARE') else ():
            if id_[0] != rogue.VICTIM and id_[0] < 2**63:
                server.send('STOP', **dict(zip(('job', 'attempt', 'step', 'rank'), id_)), token=token,
                            signal=STOP_LEASED | 9, grace_ms=0)
        server.settle()
        server.clear(tokens)
    targets.check()
    if name in ('LAUNCH', 'NOTIFY'):
        assert any(os.lstat(f'{targets.ran}/{file}').st_uid == targets.ana.uid and file.isdigit()
                   for file in os.listdir(targets.ran)), 'nothing ran as ana either'
        for file in os.listdir(targets.ran):
            if file.isdigit():
                os.unlink(f'{targets.ran}/{file}')


def welcome(server, messages):
    """Each answers a HELLO. An epoch that was obeyed cannot be taken back, so that the largest comes last."""
    for field, message in sorted(messages, key=lambda pair: (pair[0] == 'epoch', pair[1].get('epoch', 0))):
        server.open_link()
        if field == 'epoch':
            server.epoch = max(server.epoch, message['epoch'])
        server.send('WELCOME', **message)
        server.settle()
    server.greet()


def test_questions_and_logs_without_end_use_no_more_than_their_share(targets):
    server, log = targets.server, f'{targets.ran}/log'
    with targets.ana.acting(), open(log, 'w', encoding='utf-8') as out:
        out.write('a line of ana')
    for job in range(1, QUESTIONS):
        server.send('INSPECT', job=job, pid=1)
    server.settle()
    for stream in range(LOGS):
        server.send('OPEN_LOG', stream=stream, uid=targets.ana.uid, path=log, follow=1)
    server.settle()
    targets.check()
    server.wait(lambda: b'a line of ana' in server.heard, 'the log of a job cannot be read')
    readers = [pid for pid in harness.processes(server.place) if harness.process_name(pid) == 'mgpu-log']
    assert 0 < len(readers) < LOGS, len(readers)
    server.hang_up()
    for job in range(1, QUESTIONS):
        server.send('INSPECT', job=job, pid=0)
    server.settle()


def test_an_order_with_the_token_of_the_attempt_is_obeyed(targets):
    """So that all the others were in vain for the right reason."""
    server = targets.server
    server.launch(50, targets.ana.uid, 5, spec=[targets.spec(['/bin/sleep', '1000'])])
    server.wait(lambda: server.came('STARTED', job=50), 'the job does not start')
    server.send('STOP', job=50, attempt=1, token=5, signal=9, grace_ms=0)
    server.wait(lambda: server.came('EXITED', job=50), 'the job does not end')
    server.clear({(50, 1, 0, 0): 5})
    targets.check()
