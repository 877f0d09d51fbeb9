# SPDX-License-Identifier: MIT
"""Several controllers: what one acknowledged is known to the next, and no job runs twice."""

import os
import signal
import subprocess

import pytest

import harness
from cluster import Cluster, Node
from controllers import Controller, Controllers, Etcd, check_all_ran_once, check_equal, has_etcd, has_progress, run_clients
from lossy_proxy import LossyProxy

pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not has_etcd(), reason='etcd-server is not installed')]


@pytest.fixture
def controllers(ana):
    with Controllers(ana) as made:
        yield made


def test_no_acknowledged_job_is_lost_or_runs_twice_when_leaders_are_killed(controllers, ran):
    controllers.add_node('n1')

    def upset():
        for _ in range(3):
            has_progress(controllers)
            leader = controllers.leader()
            leader.kill()
            has_progress(controllers)
            leader.start()

    acknowledged = run_clients(controllers, ran, upset)
    assert len(acknowledged) > 100, acknowledged
    check_all_ran_once(controllers, acknowledged, ran)
    check_equal(controllers)


def test_a_stopped_leader_writes_and_answers_nothing_when_it_continues(controllers, ran):
    controllers.add_node('n1')
    old = controllers.leader()

    def upset():
        has_progress(controllers)
        old.process.send_signal(signal.SIGSTOP)
        harness.until(lambda: any(member.is_leading() for member in controllers.members if member is not old),
                      'another leader')
        has_progress(controllers)
        old.process.send_signal(signal.SIGCONT)
        assert old.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL, old.log()[-2000:]
        has_progress(controllers)
        old.start()

    acknowledged = run_clients(controllers, ran, upset)
    check_all_ran_once(controllers, acknowledged, ran)
    check_equal(controllers)


def test_a_leader_without_etcd_stops_leading_and_its_jobs_continue(controllers, gate):
    node = controllers.add_node('n1')
    leader = controllers.leader()
    job = leader.submit('-g', '1', '--', *gate.command('exit 3'))
    leader.wait(job, 'running')
    controllers.etcd.signal(signal.SIGSTOP)
    assert leader.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL, leader.log()[-2000:]
    controllers.etcd.signal(signal.SIGCONT)
    new = controllers.leader()
    assert new is not leader
    leader.start()
    gate.open()
    assert new.wait(job)['exit_code'] == 3
    assert node.process.poll() is None


def test_an_entry_whose_answer_is_lost_is_neither_lost_nor_written_twice(ana):
    etcd = Etcd(1)
    proxy = LossyProxy(etcd.clients[0])
    etcd.shown = [proxy.port]
    with Controllers(ana, count=2, etcd=etcd) as controllers:
        leader = controllers.leader()
        proxy.is_losing = True
        jobs = [leader.post_job(['true']) for _ in range(40)]
        proxy.is_losing = False
        assert proxy.lost >= 10 and leader.is_leading()
        assert jobs == list(range(jobs[0], jobs[0] + 40))
        tables = controllers.await_equal()
        assert tables[0] == tables[1]
    proxy.close()


def test_a_full_etcd_refuses_submissions_and_leaves_jobs_alone(ana, gate):
    etcd = Etcd(1, arguments=('--quota-backend-bytes', str(8 << 20)))
    with Controllers(ana, count=2, etcd=etcd) as controllers:
        controllers.add_node('n1')
        leader = controllers.leader()
        job = leader.submit('-g', '1', '--', *gate.command('exit 3'))
        leader.wait(job, 'running')
        with pytest.raises(subprocess.CalledProcessError):
            for i in range(200):
                etcd.ctl('put', f'other/{i}', 'x' * 100000)
        with pytest.raises(OSError):  # it waits for etcd
            leader.api('POST', '/jobs', {'command': ['true'], 'submit_key': 'full'}, timeout_s=2)
        answer = leader.api('POST', '/jobs', {'command': ['true']})
        assert (answer.status, answer.json['code']) == (507, 'store_full'), answer
        assert leader.is_leading()
        etcd.ctl('del', '--prefix', 'other/')
        revision = etcd.ctl('get', 'nothing', '-w', 'json').split('"revision":')[1].split(',')[0].split('}')[0]
        etcd.ctl('compact', revision)
        etcd.ctl('defrag')
        etcd.ctl('alarm', 'disarm')
        again = harness.until(lambda: leader.api('POST', '/jobs', {'command': ['true'], 'submit_key': 'full'}).json.get('id'),
                              'an accepted job')
        gate.open()
        assert leader.wait(job)['exit_code'] == 3 and leader.wait(again)['state'] == 'done'


def test_a_leader_does_not_write_behind_a_gap(ana):
    etcd = Etcd(1)
    with Controllers(ana, count=2, etcd=etcd) as controllers:
        leader, standby = controllers.leader(), controllers.standbys()[0]
        for _ in range(3):
            leader.post_job(['true'])
        controllers.await_equal()
        entry = leader.state()['entry']
        etcd.ctl('del', f'mgpu/log/{entry:016x}')  # as in an older backup
        answer = leader.api('POST', '/jobs', {'command': ['true']})
        assert (answer.status, answer.json['outcome']) == (503, 'unknown'), answer
        assert leader.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL
        harness.until(lambda: 'etcd has lost data' in ((standby.state() or {}).get('trouble') or ''), 'a standby that says so')
        assert not standby.is_leading()


def test_one_controller_moves_to_etcd_and_back_without_stopping_jobs(ana, gate):
    """The agent of its own machine is not part of this: controllers of a cluster run no jobs."""
    etcd = Etcd(1)
    box = Controller('c0', etcd, ana)
    with_cluster, at = list(box.command), box.command.index('--cluster')
    alone = box.command = with_cluster[:at] + with_cluster[at + 4:]
    shim = Cluster.__new__(Cluster)
    shim.box, shim.place, shim.nodes = box, box.place, {}
    node = Node(shim, 'n1', 'sim:4x24G')

    def leave():
        box.process.terminate()
        assert box.process.wait(harness.DEADLINE_S) == 0

    def await_role(role):
        harness.until(lambda: (box.state() or {}).get('role') == role, role)
        harness.until(lambda: [one['up'] for one in box.api('GET', '/nodes').json['nodes']] == [True], 'the node')

    try:
        box.start(extra=['--no-agent'])
        node.join()
        job = box.submit('-g', '1', '--', *gate.command('exit 5'))
        box.wait(job, 'running')
        leave()
        box.command = with_cluster
        box.start(extra=['--migrate'])
        await_role('leader')
        assert box.wait(box.submit('--', 'sh', '-c', 'exit 4'))['exit_code'] == 4, 'a job of the cluster'
        held = box.submit('--hold', '--', 'true')
        assert etcd.ctl('get', '--prefix', 'mgpu/', '--keys-only').split()
        leave()
        box.start()
        await_role('leader')
        assert box.job(job)['state'] == 'running'
        leave()

        box.command = [*alone, '--no-agent']
        box.spawn().close()
        assert box.process.wait(harness.DEADLINE_S) != 0, 'a store of a cluster does not start alone'
        assert 'add --leave-cluster' in box.log()
        left = subprocess.run([*with_cluster, '--leave-cluster'], capture_output=True, text=True, check=False, cwd='/',
                              timeout=harness.DEADLINE_S)
        assert left.returncode == 0, left
        assert not etcd.ctl('get', '--prefix', 'mgpu/', '--keys-only').split(), 'etcd is empty'
        box.start()
        await_role('only')
        gate.open()
        end = box.wait(job)
        assert (end['exit_code'], end['attempt']) == (5, 1), end
        assert box.job(held)['state'] == 'queued' and box.submit('--', 'true') > held
        box.cancel_all()
        leave()
    finally:
        gate.open()
        node.stop()
        box.close()
        etcd.close()


def test_a_second_controller_of_a_name_is_refused_and_never_leads(ana):
    """Each would overwrite what the other reports, and nodes would learn the address of one of them."""
    with Controllers(ana, count=2) as controllers:
        first = controllers.leader()
        namesake = Controller(first.name, controllers.etcd, ana)
        try:
            namesake.start()
            assert namesake.process.wait(harness.DEADLINE_S) == os.EX_USAGE, namesake.log()
            assert f'another controller of this cluster is called {first.name} as well' in namesake.log()
            assert 'leads the cluster' not in namesake.log()
            shown = harness.until(lambda: (state := first.state()) and len(state['controllers']) == 2 and state, 'both reports')
            assert {one['api'] for one in shown['controllers']} == {member.listen for member in controllers.members}
        finally:
            namesake.close()
