# SPDX-License-Identifier: MIT
"""`mgpu wait`: for all of several jobs, or for the first; names, ranges, arrays, restarts, Ctrl-C and time."""

import contextlib
import os
import signal
import time

import harness

GPUS = 'sim:4x24G'


def hold_back(box, gate, then='true'):
    return str(box.submit('-g', '0', '-c', '0.1', '--', *gate.command(then)))


def test_any_prints_the_first_that_ends_and_exits_like_it(box, place):
    gates = [harness.Gate(place) for _ in range(3)]
    jobs = [hold_back(box, gate, f'exit {code}') for code, gate in enumerate(gates, 10)]
    waiting = box.popen('wait', '--any', *jobs)
    gates[1].open()
    out, _ = waiting.communicate(timeout=harness.DEADLINE_S)
    assert (out.decode(), waiting.returncode) == (jobs[1] + '\n', 11)
    again = box.mgpu('wait', '--any', *jobs)
    assert (again.out, again.code) == (jobs[1] + '\n', 11), 'one that has ended already is the first'
    for gate in gates:
        gate.open()
    done = box.mgpu('wait', '--all', *jobs)
    assert done.code == 12, done
    for gate in gates:
        gate.close()


def test_any_takes_ranges_names_and_elements(box, gate):
    first = hold_back(box, gate)
    second = box.submit('-g', '0', '-J', 'quick', '--', 'true')
    assert box.mgpu('wait', '--any', f'{first}-{second}').out == f'{second}\n'
    assert box.mgpu('wait', '--any', first, 'quick').out == f'{second}\n'
    array = box.submit('-g', '0', '-c', '0.1', '-a', '0-1', '--', 'sh', '-c',
                       f'[ $MGPU_ARRAY_INDEX = 1 ] && exit 7; read x < {gate.path}')
    done = box.mgpu('wait', '--any', f'{array}.0', f'{array}.1')
    assert (done.out, done.code) == (f'{array}.1\n', 7), done
    gate.open(2)
    assert box.mgpu('wait', str(array)).code == 7


def test_an_element_that_has_not_begun_is_waited_for_by_itself(box, gate):
    array = box.submit('-g', '0', '-c', '0.1', '--hold', '-a', '0-1', '--', 'sh', '-c',
                       f'[ $MGPU_ARRAY_INDEX = 1 ] && exit 7; read x < {gate.path}')
    waiting = box.popen('wait', f'{array}.1')
    box.mgpu('release', str(array), check=True)
    assert waiting.wait(harness.DEADLINE_S) == 7, 'its array is not over'
    gate.open()
    never = box.submit('-g', '0', '--hold', '-a', '0-1', '--', 'true')
    waiting = box.popen('wait', f'{never}.1')
    box.mgpu('cancel', str(never), check=True)
    assert waiting.wait(harness.DEADLINE_S) != 0, 'it never was'


def test_any_gives_json_of_the_job(box):
    job = box.submit('-g', '0', '--', 'true')
    assert box.mgpu('--json', 'wait', '--any', str(job)).json['id'] == job


def test_any_ends_with_124_when_the_time_is_up(box, gate):
    jobs = [hold_back(box, gate) for _ in range(2)]
    done = box.mgpu('wait', '--any', '--timeout', '100ms', *jobs)
    assert (done.code, done.out) == (124, '') and 'none of 2 jobs' in done.err, done
    gate.open(2)


def test_any_refuses_a_job_that_is_not_there(box):
    done = box.mgpu('wait', '--any', '999999')
    assert done.code == 125 and 'no job 999999' in done.err, done


def test_any_refuses_more_jobs_than_it_can_watch(box):
    done = box.mgpu('wait', '--any', *[f'999999.{i}' for i in range(501)])
    assert done.code == 125 and 'at most 500' in done.err, done


def await_sockets(process, count):
    """Until it has so many connections: only what has been reached is waited for when it goes away."""
    folder, end = f'/proc/{process.pid}/fd', time.monotonic() + harness.DEADLINE_S
    while time.monotonic() < end:
        links = []
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                links.append(os.readlink(f'{folder}/{fd}'))
        if sum(link.startswith('socket:') for link in links) >= count:
            return
        os.sched_yield()
    raise AssertionError(f'mgpu wait did not make {count} connections')


def test_any_lives_through_a_restart_of_the_daemon(make_instance, place):
    box = make_instance(GPUS)
    gates = [harness.Gate(place) for _ in range(2)]
    jobs = [hold_back(box, gate, f'exit {code}') for code, gate in enumerate(gates, 20)]
    for job in jobs:
        box.wait(job, 'running')
    waiting = box.popen('wait', '--any', *jobs)
    await_sockets(waiting, len(jobs))
    box.kill()
    box.start()
    gates[1].open()
    out, _ = waiting.communicate(timeout=harness.DEADLINE_S)
    assert (out.decode(), waiting.returncode) == (jobs[1] + '\n', 21)
    gates[0].open()
    for gate in gates:
        gate.close()


def test_a_wait_ends_with_130_at_ctrl_c(box, gate):
    job = hold_back(box, gate)
    for option in ('--any', '--all'):
        waiting = box.popen('wait', option, job)
        box.wait(job, 'running')
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(harness.DEADLINE_S) in (130, -signal.SIGINT)
    gate.open()
