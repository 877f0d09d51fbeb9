# SPDX-License-Identifier: MIT
"""What SECURITY.md calls hardening, looked at from outside: of processes in /proc, of mgpud by what it can change, of programs in
their files. Each is a single call or option, whose absence no other test would notice."""

import contextlib
import ctypes
import mmap
import os
import pwd
import shutil
import signal
import struct
import subprocess

import pytest

import amd
import harness
from rocm import Rocm
from test_notifications import web  # noqa: F401 - a fixture
from test_park import Cuda, start_work
from test_ports import Forward, Server

LANDLOCK_VERSION = 444, None, 0, 1  # landlock_create_ruleset
DONE_ALL = 31                       # of tests/standin/probe.c
SHEPHERD = 'mgpu-shepherd'


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as source:
        return dict(line.rstrip('\n').split(':\t', 1) for line in source if ':\t' in line)


def sandboxed(name, pids):
    """The status of a process of that name once there is one; it and all of its threads are in the sandbox."""
    pid = harness.until(lambda: next((pid for pid in pids() if harness.process_name(pid) == name), None), f'there is a {name}')
    harness.until(lambda: status_of(pid)['Seccomp'] == '2', f'{name} is in its sandbox', harness.LEAVING_S)
    status = status_of(pid)
    assert status['NoNewPrivs'] == '1', (name, status)
    return status


def await_uid(name, pids, user):
    """It enters its sandbox first."""
    pid = next(pid for pid in pids() if harness.process_name(pid) == name)
    harness.until(lambda: status_of(pid)['Uid'].split('\t') == [str(user.uid)] * 4, f'{name} is {user.name}')


# --- processes ---

@pytest.mark.root
def test_every_thread_of_mgpud_is_in_its_sandbox_without_capabilities(make_instance):
    box = make_instance('sim:2x8G')
    box.run_job(['true'])
    threads = os.listdir(f'/proc/{box.process.pid}/task')
    assert len(threads) > 1, threads
    for thread in threads:
        status = status_of(f'{box.process.pid}/task/{thread}')
        assert (status['Seccomp'], status['NoNewPrivs'], int(status['CapBnd'], 16)) == ('2', '1', 0), status
        assert int(status['CapEff'], 16) == int(status['CapPrm'], 16) == int(status['CapInh'], 16) == 0, status


@pytest.mark.root
def test_who_reads_a_log_or_carries_a_port_is_in_a_sandbox_as_its_user(make_instance, ana):
    box = make_instance('sim:2x8G')
    server = Server(box)
    sandboxed('mgpu-users', box.agents)
    with contextlib.closing(box.popen('logs', '-f', server.job).stdout):
        sandboxed('mgpu-log', box.agents)
        await_uid('mgpu-log', box.agents, ana)
    here = Forward(box, server.job, f'0:{server.port}')
    with here.connect('echo') as peer:
        peer.sendall(b'x\n')
        assert peer.recv(10) == b'x\n'
        sandboxed('mgpu-port', box.agents)
        await_uid('mgpu-port', box.agents, ana)
    here.stop()


@pytest.mark.root
def test_who_serves_the_commands_of_a_job_is_in_a_sandbox(two, bell, gate):
    connect = ('import os, socket, sys; peer = socket.socket(socket.AF_UNIX); peer.connect(os.environ["MGPU_SOCKET"]);'
               f'open("{bell.path}", "w").write(os.environ["MGPU_NODE"] + "\\n"); open("{gate.path}").readline()')
    job = two.box.submit('-g', '1', '--', 'python3', '-c', connect)
    node = two.nodes[bell.wait()]
    sandboxed('mgpu-api', node.agents)
    check_rights('mgpu-api', named('mgpu-api', node.agents))
    gate.open()
    two.box.wait(job)


# Of each helper of the agent what src/agent/host/helper_rights.c lets it have: capabilities by their numbers, no_new_privs, seccomp.
LOOK_UP = (1, 2, 10)   # DAC_OVERRIDE, DAC_READ_SEARCH, NET_BIND_SERVICE
BECOME = (6, 7)        # SETGID, SETUID
DRIVE = (0, 1, 2, 3, 4, 5, 6, 7, 14, 16, 17, 19, 21, 23, 24, 27, 34, 38, 40)  # not NET_*, SETPCAP, SYS_BOOT, SYS_TIME, AUDIT_*, MAC_*, BPF
RIGHTS = {'mgpu-users': ((0, *LOOK_UP), '1', '2'),
          'mgpu-log': ((*LOOK_UP, *BECOME), '1', '2'),
          'mgpu-port': ((*LOOK_UP, *BECOME), '1', '2'),
          'mgpu-api': ((*LOOK_UP, *BECOME), '1', '2'),
          'a POST': ((*LOOK_UP, *BECOME), '1', '2'),
          'mgpu-gpus': (DRIVE, '0', '0'),
          'mgpu-rocm': (DRIVE, '0', '0'),
          'mgpu-park': (DRIVE, '0', '0'),
          'mgpu-gpu-test': (DRIVE, '0', '0')}


def check_rights(kind, pid):
    """Against the table, as far as this process, whose parent has no more, can have any."""
    capabilities, *rest = RIGHTS[kind]
    wanted = sum(1 << number for number in capabilities) & int(status_of('self')['CapBnd'], 16)
    harness.until(lambda: int(status_of(pid)['CapBnd'], 16) == wanted, f'{kind} has no other capabilities')
    status = status_of(pid)
    assert [status['NoNewPrivs'], status['Seccomp']] == rest, (kind, status)
    for name in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb'):
        assert int(status[name], 16) & ~wanted == 0, (kind, name, status)


def named(name, pids):
    return harness.until(lambda: next((pid for pid in pids() if harness.process_name(pid) == name), None), f'there is a {name}')


@pytest.mark.root
def test_helpers_of_the_agent_have_the_capabilities_that_they_need(make_instance, place):
    card, rocm = amd.Amd(place), Rocm(place)
    card.add(0x83, 0x6b24a3d0c1f2e4b7)
    rocm.write('gpu 0 83 0 0 0')
    box = make_instance('amd', arguments=[*card.arguments, *rocm.arguments])
    server = Server(box)
    for name in ('mgpu-users', 'mgpu-gpus', 'mgpu-rocm'):
        check_rights(name, named(name, box.agents))
    with contextlib.closing(box.popen('logs', '-f', server.job).stdout):
        check_rights('mgpu-log', named('mgpu-log', box.agents))
    here = Forward(box, server.job, f'0:{server.port}')
    with here.connect('echo'):
        check_rights('mgpu-port', named('mgpu-port', box.agents))
    here.stop()


@pytest.mark.root
def test_the_helper_that_parks_has_the_capabilities_that_it_needs(make_instance, place):
    cuda = Cuda(f'{place}/driver')
    box = make_instance(gpus='sim:1x24G', arguments=(*cuda.arguments, '--park-timeout', '1s'))
    job = start_work(box, cuda)
    cuda.rule('hang cuInit')
    box.mgpu('park', job, check=True)
    check_rights('mgpu-park', named('mgpu-park', lambda: harness.processes(box.place)))
    cuda.rule()


@pytest.mark.root
def test_a_notification_to_a_url_can_gain_no_privileges_and_a_command_of_its_user_can(make_instance, gate, web):
    """sendmail and sudo are set-user-ID programs."""
    box, seen = make_instance('none'), []

    def look():
        for pid in harness.processes('--user-agent mgpu'):
            with contextlib.suppress(OSError):
                seen.append((pid, status_of(pid)))
                check_rights('a POST', pid)

    web.looks.append(look)
    box.run_job(['true'], gpus=0, notify=[web.url])
    web.wait(1)
    assert seen and all(status['NoNewPrivs'] == '1' for _, status in seen), seen
    box.run_job(['true'], gpus=0, notify=[f'read word < {gate.path}'])
    pid = harness.until(lambda: list(harness.processes(f'sh -c read word < {gate.path}')), 'the command runs')[0]
    status = status_of(pid)
    assert (status['NoNewPrivs'], status['Seccomp'], status['CapBnd']) == ('0', '0', status_of('self')['CapBnd']), status
    gate.open()


# --- files that mgpud can change ---

class Probe:
    """Tells a process to try, and what it could."""

    def __init__(self, place, inside, outside):
        self.folders = inside, outside
        with open(f'{place}/answer', 'w+b') as file:
            file.write(bytes(12))
            file.flush()
            self.map = mmap.mmap(file.fileno(), 12)
        self.environment = {'LD_PRELOAD': f'{harness.build_folder()}/tests/unit/agent/libprobe.so', 'PROBE_ANSWER': f'{place}/answer',
                            'PROBE_INSIDE': inside, 'PROBE_OUTSIDE': outside}

    def try_as(self, process):
        """(what it could change inside, and outside)."""
        user = status_of(process.pid)['Uid'].split('\t')[0]
        for folder in self.folders:
            with open(f'{folder}/probe-old', 'w', encoding='ascii'):
                os.chown(f'{folder}/probe-old', int(user), -1)
        process.send_signal(signal.SIGRTMIN)
        harness.until(lambda: struct.unpack('iii', self.map[:])[2] == 1, 'it has tried')
        return struct.unpack('iii', self.map[:])[:2]


@pytest.mark.root
def test_mgpud_changes_files_of_its_store_and_run_directory_alone(make_instance, place):
    if ctypes.CDLL(None, use_errno=True).syscall(*LANDLOCK_VERSION) < 0:
        pytest.skip(f'no Landlock in this kernel: {os.strerror(ctypes.get_errno())}')
    box = make_instance('sim:1x8G', start=False)
    outside = f'{place}/outside'
    os.mkdir(outside)
    os.chown(outside, pwd.getpwnam('nobody').pw_uid, -1)  # a file that is not mgpud's own would be closed anyway
    probe = Probe(place, f'{box.state_dir}/store', outside)
    usual = box.environment()
    box.environment = lambda: {**usual, **probe.environment}
    box.start()
    assert probe.try_as(box.process) == (DONE_ALL, 0), os.listdir(outside)
    assert os.listdir(outside) == ['probe-old']


# --- programs ---

def readelf(name, option):
    """Of the program as users get it: one with sanitizers is linked to start soon."""
    folder = f'{harness.ROOT}/build' if harness.is_sanitized() else harness.build_folder()
    if not os.path.exists(f'{folder}/{name}'):
        pytest.skip(f'there is no {folder}/{name}')
    return subprocess.run(['readelf', '-W', option, f'{folder}/{name}'], capture_output=True, text=True, check=True,
                          env={'LC_ALL': 'C', 'PATH': os.environ['PATH']}).stdout


@pytest.mark.skipif(not shutil.which('readelf'), reason='needs readelf')
@pytest.mark.parametrize('name', harness.PROGRAMS)
def test_a_program_is_at_a_random_address_and_has_nothing_to_overwrite(name):
    header, segments, dynamic = (readelf(name, option) for option in ('-h', '-l', '-d'))
    rows = [row.split() for row in segments.splitlines() if row.startswith('  ')]
    kinds = {row[0]: row for row in rows}
    assert 'DYN (' in header and 'Flags: NOW PIE' in dynamic and 'GNU_RELRO' in kinds, (header, dynamic, segments)
    assert kinds['GNU_STACK'][6] == 'RW' and not [row for row in rows if 'RWE' in row], segments
    if name == SHEPHERD:
        assert 'INTERP' not in kinds and 'NEEDED' not in dynamic, (segments, dynamic)
