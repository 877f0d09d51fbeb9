# SPDX-License-Identifier: MIT
"""What controllers find in etcd and on their disks that is not as it should be: they stop and say so, and never guess."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import threading

import pytest

import harness
import skew
from controllers import Controller, Controllers, Etcd, has_etcd

pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not has_etcd(), reason='etcd-server is not installed')]

WIDE = {'BIG': 'x' * 100000, **{f'BIG{i}': 'y' * 100000 for i in range(7)}}  # an environment of 800 kB


def trouble_of(member, text):
    return harness.until(lambda: text in ((member.state() or {}).get('trouble') or ''), f'{member.name}: {text}')


def queued(leader, count, **fields):
    return [leader.post_job(['true'], hold=True, **fields) for _ in range(count)]


def are_known(leader, jobs):
    return [leader.api('GET', f'/jobs/{job}').json['state'] for job in jobs] == ['queued'] * len(jobs)


def end(*members):
    for member in members:
        if member.process and member.process.poll() is None:
            member.process.terminate()
            member.process.wait(harness.DEADLINE_S)
        shutil.rmtree(member.place, ignore_errors=True)


def test_a_store_of_another_cluster_neither_follows_nor_leads(ana):
    etcd = Etcd(1)
    with Controllers(ana, count=1, etcd=etcd) as controllers:
        etcd.prefix_shown = '/other'
        with Controllers(ana, count=1, etcd=etcd, is_own=False) as others:
            stranger, theirs = others.members[0], others.leader()
            jobs, their_jobs = queued(controllers.leader(), 3), queued(theirs, 5)
            assert are_known(controllers.leader(), jobs) and are_known(theirs, their_jobs), 'two clusters share one etcd'
            theirs.process.terminate()
            assert theirs.process.wait(harness.DEADLINE_S) == 0
            stranger.command = [word.replace('/other', '') for word in stranger.command]
            stranger.start()
            trouble_of(stranger, 'another cluster under mgpu')
            assert not stranger.is_leading() and 'BAD' in stranger.mgpu('doctor').out
            again = subprocess.run([*stranger.command, '--migrate'], capture_output=True, text=True, check=False, cwd='/')
            assert again.returncode != 0 and 'already running' in again.stderr, again
        assert are_known(controllers.leader(), jobs)
        etcd.prefix_shown = ''


def test_a_store_is_not_put_where_another_clusters_is(ana):
    with Controllers(ana, count=1) as controllers:
        stranger = Controller('cx', controllers.etcd, ana)
        done = subprocess.run([*stranger.command, '--migrate'], capture_output=True, text=True, check=False, cwd='/')
        assert done.returncode != 0 and 'etcd already contains a cluster, under mgpu' in done.stderr, done
        end(stranger)


def test_a_cluster_is_founded_while_etcd_has_no_leader(ana):
    etcd = Etcd(3)
    for process in etcd.processes[1:]:
        process.send_signal(signal.SIGSTOP)
    etcd.shown, before = etcd.clients[:1], etcd.transactions(0)

    def elect():
        harness.until(lambda: etcd.transactions(0) > before + 1, 'mgpud to ask again')
        etcd.signal(signal.SIGCONT)

    election = threading.Thread(target=elect)
    election.start()
    try:
        with Controllers(ana, count=1, etcd=etcd) as controllers:
            assert queued(controllers.leader(), 1)
    finally:
        election.join()


def test_a_controller_from_a_copied_disk_leaves_and_the_other_goes_on(ana):
    with Controllers(ana, count=2) as controllers:
        leader, standby = controllers.leader(), controllers.standbys()[0]
        jobs = queued(leader, 3)
        controllers.await_equal()
        standby.process.terminate()
        standby.process.wait(harness.DEADLINE_S)
        twin = Controller(standby.name, controllers.etcd, ana)
        shutil.copytree(standby.state_dir, twin.state_dir)
        for path, _, files in os.walk(twin.state_dir):
            for one in [path, *(f'{path}/{file}' for file in files)]:
                shutil.chown(one, 'nobody') if '/store' in one else None
        standby.start()
        twin.start()
        assert twin.process.wait(60) == os.EX_USAGE, twin.log()
        assert f'another controller of this cluster is called {standby.name} as well' in twin.log()
        end(twin)
        jobs += queued(leader, 3)
        leader.kill()
        new = controllers.leader()
        assert new is standby and are_known(new, jobs)
        leader.start()


def test_a_store_that_an_entry_does_not_fit_is_replaced_and_kept_aside(ana):
    with Controllers(ana, count=2) as controllers:
        leader, standby = controllers.leader(), controllers.standbys()[0]
        jobs = queued(leader, 3)
        controllers.await_equal()
        standby.process.terminate()
        standby.process.wait(harness.DEADLINE_S)
        with contextlib.closing(sqlite3.connect(f'{standby.state_dir}/store/mgpu.db')) as db:
            guard, text = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND sql LIKE '% BEFORE DELETE ON jobs %'").fetchone()
            db.execute(f'DROP TRIGGER {guard}')
            db.execute('DELETE FROM specs WHERE job = ?', (jobs[0],))
            db.execute('DELETE FROM jobs WHERE id = ?', (jobs[0],))
            db.execute(text)
            db.commit()
        standby.start()
        leader.mgpu('release', str(jobs[0]), user=leader.user, check=True)
        harness.until(lambda: os.path.exists(f'{standby.state_dir}/store/diverged.db'), 'the store that was kept aside')
        tables = controllers.await_equal()
        assert tables[0] == tables[1]
        assert 'does not fit' in standby.log() and 'the snapshot in etcd replaces this store' in standby.log()


def test_wide_requests_are_split_and_a_new_controller_begins_with_the_snapshot(ana):
    with Controllers(ana, count=2) as controllers:
        leader = controllers.leader()
        job = queued(leader, 1, env=WIDE)[0]
        parts = controllers.etcd.ctl('get', '--prefix', 'mgpu/part/', '--keys-only').split()
        assert len(parts) >= 3, parts
        first = controllers.etcd.ctl('get', 'mgpu/base')
        for _ in range(24):
            queued(leader, 1, env=WIDE)  # more than 16 MiB in all
        harness.until(lambda: controllers.etcd.ctl('get', 'mgpu/base') != first, 'a snapshot', 90)
        base = int(controllers.etcd.ctl('get', 'mgpu/base').split()[1])
        kept = [int(key.rsplit('/', 1)[1], 16) for key in controllers.etcd.ctl('get', '--prefix', 'mgpu/log/', '--keys-only').split()]
        assert min(kept) == base, 'the log is trimmed behind the snapshot'
        new = Controller('c9', controllers.etcd, ana)
        controllers.members.append(new)
        new.start()
        tables = controllers.await_equal()
        assert tables[0] == tables[1] == tables[2]
        assert leader.api('GET', f'/jobs/{job}').json['state'] == 'queued'


def test_a_standby_goes_on_after_etcd_was_compacted_without_it(ana):
    with Controllers(ana, count=2) as controllers:
        leader, standby = controllers.leader(), controllers.standbys()[0]
        standby.process.send_signal(signal.SIGSTOP)
        jobs = queued(leader, 10)
        revision = controllers.etcd.ctl('get', 'nothing', '-w', 'json').split('"revision":')[1].split(',')[0].split('}')[0]
        controllers.etcd.ctl('compact', '--physical', revision)
        standby.process.send_signal(signal.SIGCONT)
        tables = controllers.await_equal()
        assert tables[0] == tables[1] and are_known(leader, jobs)


def test_a_slow_etcd_delays_requests_and_ends_no_job(ana, gate):
    etcd = Etcd(1)
    with Controllers(ana, count=2, etcd=etcd, arguments=('--cluster-lease', '15s')) as controllers:
        node = controllers.add_node('n1')
        leader = controllers.leader()
        job = leader.submit('-g', '1', '--', *gate.command('exit 3'))
        leader.wait(job, 'running')
        for i in range(3):
            etcd.signal(signal.SIGSTOP)
            with pytest.raises(OSError):  # it waits, for less than the lease
                leader.api('POST', '/jobs', {'command': ['true'], 'hold': True, 'submit_key': f'slow{i}'}, timeout_s=1)
            etcd.signal(signal.SIGCONT)
            again = leader.api('POST', '/jobs', {'command': ['true'], 'hold': True, 'submit_key': f'slow{i}'})
            assert again.status in (200, 201), again
        assert leader.is_leading() and node.process.poll() is None
        assert len(leader.api('GET', '/jobs?state=queued').json['jobs']) == 3
        gate.open()
        assert leader.wait(job)['exit_code'] == 3


def test_all_members_of_etcd_lost_and_a_backup_that_is_too_old(ana):
    etcd = Etcd(1)
    with Controllers(ana, count=2, etcd=etcd) as controllers:
        leader = controllers.leader()
        jobs = queued(leader, 3)
        controllers.await_equal()
        etcd.ctl('snapshot', 'save', f'{etcd.place}/backup')
        jobs += queued(leader, 3)
        controllers.await_equal()
        etcd.processes[0].kill()
        etcd.processes[0].wait(harness.DEADLINE_S)
        assert leader.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL
        shutil.rmtree(f'{etcd.place}/m0')
        subprocess.run(['etcdctl', 'snapshot', 'restore', f'{etcd.place}/backup', '--name', 'm0', '--data-dir', f'{etcd.place}/m0',
                        '--initial-cluster', f'm0=http://127.0.0.1:{etcd.peers[0]}', '--initial-advertise-peer-urls',
                        f'http://127.0.0.1:{etcd.peers[0]}'], check=True, capture_output=True, env={'ETCDCTL_API': '3', 'PATH': '/usr/bin:/bin'})
        etcd.start(0)
        leader.start()
        for member in controllers.members:
            trouble_of(member, 'etcd has lost data')
            assert not member.is_leading()
        # What the manual says: the stores are newer than the backup.
        for member in controllers.members:
            member.process.terminate()
            member.process.wait(harness.DEADLINE_S)
        etcd.ctl('del', '--prefix', 'mgpu/')
        controllers.members[0].start(extra=['--migrate'])
        new = controllers.leader()
        assert are_known(new, jobs)
        controllers.members[1].start()
        tables = controllers.await_equal()
        assert tables[0] == tables[1]
        assert new.post_job(['true']) > max(jobs)


def test_controllers_of_two_versions_follow_and_replace_each_other(ana):
    """During a rolling update: the standby first, then the leader."""
    builds = {'next': skew.next_minor(harness.build_folder()), **skew.other_builds()}
    for name, folder in builds.items():
        with Controllers(ana, count=2) as controllers:
            leader, standby = controllers.leader(), controllers.standbys()[0]
            jobs = queued(leader, 3)
            standby.process.terminate()
            standby.process.wait(harness.DEADLINE_S)
            standby.command[0] = f'{folder}/mgpud'
            standby.start()
            jobs += queued(leader, 3)
            tables = controllers.await_equal()
            assert tables[0] == tables[1], name
            leader.process.terminate()
            leader.process.wait(harness.DEADLINE_S)
            new = controllers.leader()
            assert new is standby and are_known(new, jobs), name
            leader.start()
            jobs += queued(new, 3)
            tables = controllers.await_equal()
            assert tables[0] == tables[1], name
            new.kill()
            assert are_known(controllers.leader(), jobs), name
            new.start()
