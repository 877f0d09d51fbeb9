# SPDX-License-Identifier: MIT
"""Standbys answer what they have and say how old it is; clients and nodes find the leader by themselves."""

import http.client
import os
import re
import shutil
import signal
import tempfile
import threading

import pytest

import harness
import hosts
from controllers import Controllers, has_etcd
from spread_controllers import SpreadControllers
from test_terminal import Screen

pytestmark = [pytest.mark.real, pytest.mark.root, pytest.mark.xdist_group('test_standbys'),
              pytest.mark.skipif(not has_etcd(), reason='etcd-server is not installed')]


@pytest.fixture(scope='module')
def controllers(ana):
    with Controllers(ana) as made:
        yield made


def age_of(answer):
    return int(answer.headers['x-mgpu-age'])


def list_at(standby):
    return [job['id'] for job in standby.api('GET', '/jobs').json['jobs']]


def test_a_standby_lists_jobs_and_says_how_old_its_list_is(controllers):
    leader, standby = controllers.leader(), controllers.standbys()[0]
    job = leader.post_job(['true'], hold=True)
    harness.until(lambda: job in list_at(standby), 'the job at the standby')
    answer = standby.api('GET', '/jobs')
    assert answer.status == 200 and age_of(answer) < 5000, answer
    shown = standby.api('GET', f'/jobs/{job}')
    assert shown.json['state'] == 'queued' and 'x-mgpu-age' in shown.headers
    listed = standby.mgpu('ps', check=True)
    assert f'{job} ' in listed.out and re.search(r'answered by a standby, as of [0-4]\.\d s ago', listed.err), listed
    assert 'x-mgpu-age' not in leader.api('GET', '/jobs').headers and leader.mgpu('ps', check=True).err == ''
    leader.mgpu('cancel', str(job), check=True)


def test_a_standby_whose_etcd_is_away_answers_with_a_growing_age(controllers):
    leader, standby = controllers.leader(), controllers.standbys()[0]
    job = leader.post_job(['true'], hold=True)
    harness.until(lambda: job in list_at(standby), 'the job at the standby')
    controllers.etcd.signal(signal.SIGSTOP)
    try:
        harness.until(lambda: age_of(standby.api('GET', '/jobs')) > 4000, 'an old answer')
        assert job in list_at(standby)
        harness.until(lambda: 'BAD' in standby.mgpu('doctor').out, 'the doctor to say so')  # when a request has timed out
    finally:
        controllers.etcd.signal(signal.SIGCONT)
    if leader.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL:
        leader.start()
    controllers.leader()
    harness.until(lambda: age_of(standby.api('GET', '/jobs')) < 3000 if not standby.is_leading() else True, 'a new answer')


def test_many_readers_do_not_keep_a_standby_from_renewing_its_answer(controllers):
    leader, standby = controllers.leader(), controllers.standbys()[0]
    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            connection = http.client.HTTPConnection('127.0.0.1', standby.port, timeout=30)
            connection.request('GET', '/api/v1/jobs')
            assert connection.getresponse().read()
            connection.close()

    readers = [threading.Thread(target=read) for _ in range(6)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(5):
            job = leader.post_job(['true'], hold=True)
            harness.until(lambda job=job: job in list_at(standby), 'the job at the standby', 15)
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
    leader.cancel_all()


def test_writes_are_referred_to_the_leader_and_mgpu_follows(controllers):
    leader, standby = controllers.leader(), controllers.standbys()[0]
    answer = standby.api('POST', '/jobs', {'command': ['true']})
    assert (answer.status, answer.json['code']) == (503, 'standby'), answer
    assert answer.headers['x-mgpu-leader'] == f'127.0.0.1:{leader.port}'
    assert answer.json['leader'] == f'http://127.0.0.1:{leader.port}'
    done = standby.mgpu('submit', '--hold', '--', 'true', check=True)
    job = int(done.out.split()[-1])
    assert leader.api('GET', f'/jobs/{job}').json['state'] == 'queued'
    standby.mgpu('cancel', str(job), check=True)


def test_a_job_that_a_standby_does_not_know_yet_is_no_error(controllers):
    standby = controllers.standbys()[0]
    answer = standby.api('GET', '/jobs/999999')
    assert (answer.status, answer.json['code']) == (503, 'standby'), answer
    asked = standby.mgpu('show', '999999')
    assert 'there is no job 999999' in asked.err, asked  # the leader's answer


def test_cluster_and_doctor_show_all_controllers_and_members_of_etcd(controllers):
    leader, standby = controllers.leader(), controllers.standbys()[0]
    harness.until(lambda: len(standby.state()['controllers']) == 3 and len(standby.state()['etcd']) == 3, 'reports')
    shown = standby.mgpu('cluster', check=True).out
    assert 'role       standby\n' in shown and f'leader     {leader.name} 127.0.0.1:{leader.port}\n' in shown, shown
    assert f'{leader.name}, leader, 127.0.0.1:{leader.port}' in shown and shown.count(', up, ') == 3, shown
    assert '3 of 3 endpoints answer' in standby.mgpu('doctor', check=True).out
    follower = controllers.etcd.followers()[0]
    member = controllers.etcd.processes[follower]
    member.send_signal(signal.SIGSTOP)
    try:
        harness.until(lambda: any(not server['up'] for server in leader.state()['etcd']), 'a report of the dead member')
        told = leader.mgpu('doctor')
        assert told.code == 1 and f'127.0.0.1:{controllers.etcd.clients[follower]}' in told.out, told
        assert 'DOWN' in leader.mgpu('cluster', check=True).out
    finally:
        member.send_signal(signal.SIGCONT)
    gone = [one for one in controllers.standbys() if one is not standby][0]
    gone.process.terminate()
    gone.process.wait(harness.DEADLINE_S)
    harness.until(lambda: len(leader.state()['controllers']) == 2, 'a list without the controller that left')
    gone.start()


def test_a_node_that_was_given_one_address_finds_the_next_leader(controllers, gate):
    node = controllers.add_node('n7', is_told=False)
    leader = controllers.leader()
    others = [f'127.0.0.1:{member.nodes_port}' for member in controllers.members if member is not leader]
    kept = f'{node.state_dir}/node/controllers'

    def is_complete():
        if not os.path.exists(kept):
            return False
        with open(kept, encoding='ascii') as file:
            known = file.read()
        return all(address in known for address in others)

    harness.until(is_complete, 'the list of controllers')
    job = leader.submit('-g', '1', '--', *gate.command('exit 3'))
    leader.wait(job, 'running')
    leader.kill()
    new = controllers.leader()
    harness.until(lambda: any(one['name'] == 'n7' and one['up'] for one in new.api('GET', '/nodes').json['nodes']),
                  'the node at the new leader')
    gate.open()
    assert new.wait(job)['exit_code'] == 3
    leader.start()


def follow_job(leader, gate):
    """A job that writes a line for each one it reads at the gate, a hundred in all."""
    script = f'exec 3<{gate.path}; i=0; while [ $i -lt 100 ]; do read word <&3; i=$((i+1)); echo line $i; done'
    job = leader.submit('-g', '1', '--', 'sh', '-c', script)
    leader.wait(job, 'running')
    return job


def test_a_followed_log_goes_on_at_its_position_after_a_takeover(controllers, gate):
    controllers.add_node('n8')
    leader, standby = controllers.leader(), controllers.standbys()[0]
    job = follow_job(leader, gate)
    followers = [member.popen('logs', '-f', str(job)) for member in (leader, standby)]  # one is referred to the leader
    gate.open(40)
    for follower in followers:
        seen = b''
        while b'line 40\n' not in seen:
            seen += os.read(follower.stdout.fileno(), 65536)
        follower.seen = seen
    leader.kill()
    new = controllers.leader()
    leader.start()
    gate.open(60)
    assert new.wait(job)['exit_code'] == 0
    for follower in followers:
        rest, said = follower.communicate(timeout=harness.DEADLINE_S)
        assert (follower.seen + rest).decode() == ''.join(f'line {i}\n' for i in range(1, 101)), said


@pytest.mark.skipif(shutil.which('tmux') is None, reason='no tmux here')
def test_a_terminal_goes_on_after_a_takeover(controllers, place):
    controllers.add_node('n9')
    leader, standby = controllers.leader(), controllers.standbys()[0]
    job = leader.submit('-g', '1', '-T', '--', 'sh', '-c', 'echo ready; while read word; do echo "heard $word"; done')
    leader.wait(job, 'running')
    screen = Screen(standby, place).run('attach', job)
    try:
        screen.wait('ready')
        screen.type('before', 'Enter')
        screen.wait('heard before')
        leader.kill()
        controllers.leader()
        leader.start()
        screen.type('after', 'Enter')
        screen.wait('heard after')
        assert screen.text().count('heard before') == 1, screen.text()
    finally:
        screen.close()
        controllers.leader().cancel_all()


def test_a_client_elsewhere_learns_all_addresses_and_finds_the_leader(ana):
    """One address is enough, and a standby answers while nobody leads."""
    if hosts.why_not():
        pytest.skip(hosts.why_not())
    names = [f'{kind}{i}' for kind in 'ce' for i in range(3)] + ['laptop']
    with hosts.Network(names).made() as network, SpreadControllers(network, ana) as made, tempfile.TemporaryDirectory(dir='/tmp') as home:
        os.chown(home, ana.uid, ana.gid)
        leader, laptop = made.leader(), network['laptop']
        harness.until(lambda: len(leader.state()['controllers']) == 3, 'reports of all controllers')
        token = leader.api('POST', '/tokens', {'name': 'laptop'}).json
        assert all(f'{member.address}:{member.port}' in token['api'] for member in made.members), token['api']
        one = f'https://{leader.address}:{leader.port}#{token["api"].split("#")[1]}'  # the others are learnt
        env = {'MGPU_HOST': one, 'MGPU_TOKEN': token['token'], 'HOME': home}
        job = int(laptop.run(ana, 'submit', '--hold', '--', 'true', env=env).out.split()[-1])
        leader.kill()
        new = made.leader()
        harness.until(lambda: laptop.run(ana, 'show', job, env=env).err == '', 'an answer of the new leader')
        assert laptop.run(ana, 'cancel', job, env=env).code == 0
        new.kill()
        made.etcd.signal(signal.SIGSTOP)  # the last one cannot lead
        shown = laptop.run(ana, 'ps', '-a', env=env)
        assert shown.code == 0 and 'answered by a standby, as of' in shown.err and f'{job} ' in shown.out, shown
        refused = laptop.run(ana, 'submit', '--', 'true', env=env, timeout_s=90)  # it waits for one that leads as long as a restart takes
        assert refused.code != 0 and 'no controller leads at present' in refused.err and 'trying again' in refused.err, refused
        made.etcd.signal(signal.SIGCONT)
        leader.start()
        new.start()
