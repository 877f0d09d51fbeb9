# SPDX-License-Identifier: MIT
"""Nodes of which nothing is heard: a stopped agent stands for a machine out of reach."""

import contextlib
import os
import re
import signal

import harness
from cluster import Cluster
from slow_proxy import SlowProxy


def worker(instance):
    """The agent itself, without its keeper and helpers."""
    return next(pid for pid in instance.agents() if harness.process_name(pid) == 'mgpu-agent')


def node(instance):
    return instance.api('GET', '/nodes').json['nodes'][0]


def await_node(instance, *states):
    """The node once it is in one of these states: looked at again with every event."""
    for _ in instance.events(after=0, user=instance.user):
        if node(instance)['state'] in states:
            return node(instance)
    raise AssertionError(node(instance))


def await_running(instance, job):
    return instance.wait(job, 'running')


def test_a_stopped_agent_is_unreachable_and_comes_back(make_instance, gate):
    instance = make_instance(gpus='sim:1x8G', arguments=('--node-timeout', '2s'))
    job = instance.submit('--', *gate.command('exit 7'))
    await_running(instance, job)
    pid = worker(instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        lost = await_node(instance, 'unreachable')
        assert not lost['up'] and lost['unreachable_since'], lost
        shown = instance.job(job)
        assert shown['state'] == 'running' and shown['unreachable_since'], shown
        for verb in ('ps', 'show', 'why'):
            text = instance.mgpu(verb, *([] if verb == 'ps' else [job])).out
            assert re.search(r'node \S+ (has been )?unreachable since \d', text), (verb, text)
        assert re.search(r'unreachable since \d', instance.mgpu('nodes').out)
        assert instance.gpus()[0]['state'] == 'node_down'
        later = instance.submit('--', 'true')
        reasons = instance.api('GET', f'/jobs/{later}/why').json['reasons']
        assert 'node_down' in [reason['code'] for reason in reasons], reasons
    finally:
        os.kill(pid, signal.SIGCONT)
    await_node(instance, 'up')
    assert instance.job(job)['unreachable_since'] is None
    gate.open()
    assert instance.wait(job)['exit_code'] == 7
    assert instance.wait(later)['exit_code'] == 0


def test_logs_and_cancel_of_a_job_on_an_unreachable_node_say_what_they_wait_for(make_instance, gate):
    instance = make_instance(gpus='sim:1x8G', arguments=('--node-timeout', '2s'))
    job = instance.submit('--', *gate.command('echo output'))
    ended = instance.submit('-g', '0', '--', 'echo', 'earlier')
    await_running(instance, job)
    instance.wait(ended)
    pid = worker(instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        name = await_node(instance, 'unreachable')['name']
        readers = [instance.popen('logs', number) for number in (job, ended)]
        for reader, number in zip(readers, (job, ended)):
            said = reader.stderr.readline().decode()
            assert re.fullmatch(rf'mgpu: node {name} has been unreachable since \S+; waiting for it to return with the output of '
                                rf'job {number}\n', said), said
        said = instance.mgpu('cancel', job, check=True).err
        assert re.fullmatch(rf'  job {job} ends when its node is back or is fenced: node {name} has been unreachable since \S+\n', said), said
        assert instance.mgpu('cancel', '-q', job, check=True).err == ''
    finally:
        os.kill(pid, signal.SIGCONT)
    await_node(instance, 'up')
    assert [reader.communicate()[0] for reader in readers][1] == b'earlier\n'
    assert instance.wait(job)['state'] == 'cancelled'



def test_the_lease_of_a_job_ends_it_without_its_agent(make_instance, gate, bell):
    instance = make_instance(gpus='sim:1x8G', arguments=('--node-timeout', '1s', '--node-lease', '2s'))
    script = f'echo $MGPU_ATTEMPT > {bell.path}; read word < {gate.path}; exit 3'
    job = instance.submit('--requeue-on', 'node-lost', '--', 'sh', '-c', script)
    bell.wait()
    pid = worker(instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        lost = next(event['data'] for event in instance.events(after=0, user=instance.user)
                    if event['data']['type'] == 'requeued')
        assert lost['cause'] == 'node_lost' and 'lease' in lost['message'], lost
        assert not [line for line in harness.processes(gate.path).values() if line.startswith('sh -c')]
        assert instance.job(job)['state'] == 'queued'
    finally:
        os.kill(pid, signal.SIGCONT)
    bell.wait()
    gate.open()
    done = instance.wait(job)
    assert (done['exit_code'], done['attempt'], done['restarts']) == (3, 2, 1), done


def test_a_controller_that_starts_anew_waits_for_a_node_that_is_away(make_instance, gate):
    instance = make_instance(gpus='sim:1x8G', arguments=('--node-timeout', '2s'))
    job = instance.submit('--', *gate.command('exit 5'))
    await_running(instance, job)
    pid = worker(instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        instance.kill()
        instance.start()
        assert instance.job(job)['state'] == 'running'
        await_node(instance, 'unreachable')
        assert instance.job(job)['state'] == 'running'
    finally:
        os.kill(pid, signal.SIGCONT)
    await_node(instance, 'up')
    gate.open()
    assert instance.wait(job)['exit_code'] == 5


def test_a_fence_is_refused_while_the_node_is_up_and_ends_its_jobs_when_it_is_not(make_instance, gate):
    instance = make_instance(gpus='sim:1x8G', arguments=('--node-timeout', '1s'))
    name = node(instance)['name']
    job = instance.submit('--', *gate.command())
    await_running(instance, job)
    admin = {'user': instance.user}
    refused = instance.mgpu('node', 'fence', '-y', name, **admin)
    assert refused.code != 0 and 'is up' in refused.err, refused
    asked = instance.mgpu('node', 'fence', name, **admin)
    assert asked.code != 0 and 'use -y' in asked.err, asked
    pid = worker(instance)
    os.kill(pid, signal.SIGSTOP)
    try:
        await_node(instance, 'unreachable')
        done = instance.mgpu('node', 'fence', '-y', '--reason', 'no power', name, **admin)
        assert done.code == 0, done
        ended = instance.wait(job)
        assert ended['ended_by'] == 'node_lost' and 'no power' in ended['message'], ended
        assert node(instance)['state'] == 'fenced'
    finally:
        os.kill(pid, signal.SIGCONT)
    # It was not off: what still ran there is ended before anything new may start.
    waiting = instance.submit('--', 'true')
    assert instance.await_news(lambda: node(instance)['up'] and node(instance)['stopping'] == 0 and
                               not harness.processes(gate.path)), 'what ran there runs on'
    assert node(instance)['state'] == 'fenced' and instance.job(waiting)['state'] == 'queued'
    assert instance.mgpu('node', 'resume', name, **admin).code == 0
    assert instance.wait(waiting)['exit_code'] == 0


def test_bad_times_are_refused(make_instance):
    instance = make_instance(gpus='sim:1x8G', start=False)
    for option in ('--node-timeout', '--node-lease'):
        for value in ('0', '200ms', 'soon', '-3s', ''):
            ready = instance.spawn((option, value))
            ready.close()
            assert instance.process.wait(harness.DEADLINE_S) == 64, (option, value)


def test_a_slow_and_lossy_network_costs_time_and_nothing_else(someone, gate):
    """All that a node and mgpud tell each other, and its logs, take a second or so, and stop now and then."""
    with Cluster(0, client=someone) as cluster, contextlib.closing(SlowProxy(cluster.port, seed=1)) as proxy:
        box = cluster.box
        cluster.add('n1', 'sim:4x24G').join(f'127.0.0.1:{proxy.port}#{cluster.ticket("--node", "n1").split("#")[1]}')
        held = box.submit('-g', '1', '--', *gate.command('exit 9'))
        jobs = [box.submit('-g', '1', '--', 'sh', '-c', f'seq {number * 5000}; exit {number}') for number in range(1, 9)]
        ended = [box.wait(job) for job in jobs]
        assert [(job['exit_code'], job['attempt']) for job in ended] == [(number, 1) for number in range(1, 9)], ended
        for number, job in enumerate(jobs, 1):
            assert box.output(job) == ''.join(f'{line}\n' for line in range(1, number * 5000 + 1))
        box.mgpu('cancel', held, check=True)
        assert box.wait(held)['state'] == 'cancelled'
        print(f'{proxy.pauses} pauses')
        assert cluster.node('n1')['state'] == 'up' and proxy.pauses
