# SPDX-License-Identifier: MIT
"""The store under bad conditions: a second daemon, damage, a newer format, a full disk."""

import contextlib
import fcntl
import glob
import json
import os
import re
import select
import sqlite3
import subprocess
import time

import pytest

import harness
from cluster import Cluster
from test_metrics import scrape

LIMIT_S = 30


def refuse_to_start(instance):
    """Starts mgpud, expects it to leave by itself with an error; its log."""
    ready = instance.spawn()
    try:
        code = instance.process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        instance.kill()
        raise AssertionError(f'mgpud runs:\n{instance.log()}') from None
    finally:
        ready.close()
    assert code not in (0, 99) and code > 0, instance.log()
    return instance.log()


def database(instance):
    found = glob.glob(f'{instance.state_dir}/store/*.db')
    assert len(found) == 1, found
    return found[0]


def fsck(instance):
    return subprocess.run([f'{harness.programs()}/mgpud', '--state-dir', instance.state_dir, '--fsck'], text=True, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, env=instance.environment(),
                          **instance.user.popen_arguments())


def test_a_second_daemon_on_the_same_directories_is_refused(make_instance):
    first = make_instance()
    second = make_instance(start=False)
    second.command = first.command
    log = refuse_to_start(second)
    assert first.state_dir in log or first.run_dir in log, log
    assert 'hint:' in log and str(first.process.pid) in log
    assert first.run_job(['echo', 'x'])[1] == 'x\n', 'the first one is not disturbed'


def test_a_second_daemon_on_the_same_state_with_another_run_directory_is_refused(make_instance):
    first = make_instance()
    second = make_instance(start=False, state_dir=first.state_dir)
    log = refuse_to_start(second)
    assert f'{first.state_dir}' in log, log
    assert first.run_job(['echo', 'x'])[1] == 'x\n'


def test_a_second_daemon_is_refused_where_the_lock_files_were_removed(make_instance):
    first = make_instance()
    second = make_instance(start=False)
    second.command = first.command
    os.unlink(f'{first.run_dir}/mgpud.lock')
    os.unlink(f'{first.state_dir}/mgpud.lock')
    log = refuse_to_start(second)
    assert f'is already running with {first.state_dir}' in log, log
    assert first.run_job(['echo', 'x'])[1] == 'x\n', 'the first one is not disturbed'


def test_a_lock_for_reading_keeps_no_daemon_from_starting(make_instance):
    instance = make_instance()
    files = []
    instance.stop()
    for directory in (instance.run_dir, instance.state_dir):
        path = f'{directory}/mgpud.lock'
        assert os.stat(path).st_mode & 0o777 == 0o600
        files.append(open(path, encoding='ascii'))  # as a user could while it was 0644
        fcntl.lockf(files[-1], fcntl.LOCK_SH)
    instance.start()
    assert instance.run_job(['echo', 'x'])[1] == 'x\n'
    for file in files:
        file.close()


def test_instances_side_by_side_do_not_see_each_other(make_instance):
    first, second = make_instance(gpus='sim:2x8G'), make_instance(gpus='sim:3x8G')
    assert (len(first.gpus()), len(second.gpus())) == (2, 3)
    job = first.post_job(['true'])
    first.wait(job)
    assert second.api('GET', '/jobs?all=1').json['jobs'] == []
    assert first.api('GET', '/version').json['instance'] != second.api('GET', '/version').json['instance']


def test_a_clean_store_passes_fsck(make_instance):
    instance = make_instance()
    for command in (['true'], ['false'], ['no-such-program']):
        instance.wait(instance.post_job(command))
    instance.stop()
    done = fsck(instance)
    assert done.returncode == 0, done
    instance.start()


OLD_STORES = sorted(glob.glob(f'{harness.ROOT}/tests/stores/schema-*.sql'))


@pytest.mark.root
@pytest.mark.parametrize('dump', OLD_STORES, ids=os.path.basename)
def test_a_store_of_an_older_mgpud_has_all_its_jobs_and_goes_on(make_instance, dump):
    """The dumps were made by mgpud of that time; beside each is what its `mgpu ps -a` said of the jobs, which are of nobody."""
    nobody = harness.User('nobody')
    box = make_instance('sim:4x24G', start=False, client=nobody, arguments=('--node', 'n1'))
    folder = f'{box.state_dir}/store'
    os.makedirs(folder, 0o700)
    with open(dump, encoding='utf-8') as source, contextlib.closing(sqlite3.connect(f'{folder}/mgpu.db')) as db:
        db.executescript(source.read())
        version = db.execute('PRAGMA user_version').fetchone()[0]
    for path in (folder, f'{folder}/mgpu.db'):
        os.chown(path, nobody.uid, nobody.gid)
    box.start()
    with open(dump.replace('.sql', '.json'), encoding='utf-8') as source:
        for job in json.load(source):
            now = box.job(job['id'])
            assert {key: now[key] for key in job} == job
    array = box.job(5)  # its elements were counted from their events
    assert array['elements'] == {'all': 3, 'waiting': 0, 'open': 0, 'done': 3, 'failed': 0, 'cancelled': 0, 'exit_code': 0}, array
    paused = [gpu['index'] for gpu in box.api('GET', '/gpus').json['gpus'] if gpu['state'] == 'paused']
    assert paused == [3]
    held, after = 9, 10
    box.mgpu('release', held, check=True)
    assert box.wait(held)['state'] == 'done' and box.output(held) == 'held ran\n'
    assert box.wait(after)['state'] == 'done'
    assert box.submit('true') == 12  # ids go on
    box.stop()
    done = fsck(box)
    assert done.returncode == 0, done
    with contextlib.closing(sqlite3.connect(f'{folder}/mgpu.db')) as db:
        assert db.execute('PRAGMA user_version').fetchone()[0] > version
    box.start()


@pytest.mark.parametrize('part', ['store', ''])
@pytest.mark.parametrize('is_killed', [False, True], ids=['stopped', 'killed'])
def test_a_copy_that_is_put_back_starts_nothing_and_gives_no_id_again(make_instance, gate, part, is_killed):
    instance = make_instance()
    state = os.path.join(instance.state_dir, part).rstrip('/')
    leave = instance.kill if is_killed else instance.stop
    instance.wait(instance.post_job(['true']))
    queued = instance.post_job(['true'], begin='2100-01-01T00:00:00Z')
    leave()
    subprocess.run(['cp', '-a', state, f'{instance.place}/copy'], check=True)
    instance.start()
    for _ in range(2):
        instance.wait(instance.post_job(['true']))
    running = instance.post_job(gate.command())
    instance.wait(running, 'running')
    leave()
    subprocess.run(['rm', '-rf', state], check=True)
    subprocess.run(['mv', f'{instance.place}/copy', state], check=True)
    instance.start()
    assert 'the store is an older copy' in instance.log(), instance.log()
    node = instance.api('GET', '/nodes').json['nodes'][0]
    assert node['state'] == 'drained' and 'restored' in node['reason'], node
    job = instance.post_job(['true'])
    assert job > running + 1000, 'ids that were given out are not given again'
    shepherds = instance.shepherds()
    assert shepherds, 'what the copy does not know is not stopped yet'
    assert instance.job(job)['state'] == 'queued' and instance.job(queued)['state'] == 'queued'
    instance.mgpu('node', 'resume', node['name'], user=instance.user, check=True)
    assert all(harness.wait_process(pid) for pid in shepherds), 'the copy does not know this job'
    assert instance.wait(job)['exit_code'] == 0
    assert instance.restart().log().count('the store is an older copy') == 1
    assert fsck(instance).returncode == 0


def test_the_drill_a_lost_disk_comes_back_from_a_backup(make_instance, place, gate, bo):
    """The steps of docs/store.md, after the loss of everything below the state directory."""
    settings = f'{place}/mgpu.yaml'
    with open(settings, 'w', encoding='ascii') as out:
        out.write('half-life: 3d\n')
    box = make_instance(arguments=['--config', settings, '--nodes-listen', f'127.0.0.1:{harness.free_port()}'])
    box.mgpu('node', 'token', user=box.user, check=True)  # the cluster gets its keys
    with open(f'{box.state_dir}/store/tls/authority.key', 'rb') as source:
        key = source.read()
    ended = box.post_job(['true'])
    box.wait(ended)
    running = box.post_job(gate.command())
    box.wait(running, 'running')
    held = box.post_job(['true'], hold=True)
    path = f'{place}/mgpu.backup'
    box.mgpu('backup', path, user=box.user, check=True)
    assert os.stat(path).st_mode & 0o777 == 0o600
    if harness.IS_ROOT:
        refused = box.mgpu('backup', f'{place}/other', user=bo)
        assert refused.code == 4 and re.fullmatch(r'mgpu backup: only root( and the user \S+)? can make a backup\n', refused.err), refused
    again = box.mgpu('backup', path, user=box.user)
    assert again.code != 0 and 'File exists' in again.err and 'use a new name' in again.err, again
    later = box.post_job(['true'])
    box.wait(later)
    refused = box.restore(path)
    assert refused.returncode != 0 and 'mgpud is running' in refused.stderr, refused
    box.stop()
    subprocess.run(['rm', '-rf', box.state_dir], check=True)
    with open(settings, 'w', encoding='ascii') as out:
        out.write('half-life: 9d\n')

    done = box.restore(path)
    assert done.returncode == 0 and '3 jobs' in done.stdout, done
    with open(f'{box.state_dir}/store/tls/authority.key', 'rb') as source:
        assert source.read() == key, 'nodes need not join again'
    differing = glob.glob(f'{box.state_dir}/store/restored-settings/*')
    assert len(differing) == 1, done
    with open(differing[0], encoding='ascii') as source:
        assert source.read() == 'half-life: 3d\n'
    assert fsck(box).returncode == 0
    box.start()
    assert [box.job(job)['state'] for job in (ended, running, held)] == ['done', 'running', 'queued']
    node = box.api('GET', '/nodes').json['nodes'][0]
    assert node['state'] == 'drained' and 'restored' in node['reason'], node
    fresh = box.post_job(['true'])
    assert fresh > later, 'ids that were given out are not given again'
    box.wait(fresh, 'queued')
    listed = [job['id'] for job in box.api('GET', '/jobs?all=1').json['jobs']]
    assert listed == [ended, running, held, fresh], 'the numbers between are of no jobs, and hide none'
    box.mgpu('node', 'resume', node['name'], user=box.user, check=True)
    box.mgpu('release', held, check=True)
    assert box.wait(held)['exit_code'] == 0 and box.wait(fresh)['exit_code'] == 0
    gate.open()
    assert box.wait(running)['exit_code'] == 0


def test_a_machine_that_is_back_after_a_second_start_of_a_restored_mgpud_is_held_too(someone, place):
    with Cluster(1, client=someone) as cluster:
        box, node = cluster.box, cluster.nodes['n1']
        known = box.submit('-g', '1', '--', 'sleep', '1000')
        box.wait(known, 'running')
        box.mgpu('backup', f'{place}/mgpu.backup', user=box.user, check=True)
        unknown = box.submit('-g', '1', '--', 'sleep', '1000')
        box.wait(unknown, 'running')
        node.stop()
        box.stop()
        assert box.restore(f'{place}/mgpu.backup').returncode == 0
        box.start()
        box.restart()
        node.start()
        found = cluster.node('n1')
        assert found['state'] == 'drained' and 'restored' in found['reason'], found
        assert 'warning: mgpud refused this node: node n1 is drained first' in node.log(), 'its drain was durable first'
        shepherds = [pid for pid, line in harness.processes(node.place).items() if f'spool/{unknown}.' in line]
        assert shepherds, 'what the backup does not know is not stopped yet'
        box.mgpu('node', 'resume', 'n1', user=box.user, check=True)
        assert all(harness.wait_process(pid) for pid in shepherds)
        assert box.job(known)['state'] == 'running'


def test_only_a_sound_backup_is_restored_and_the_store_stays_else(make_instance, place):
    box = make_instance()
    job = box.post_job(['true'], hold=True)
    good = f'{place}/good'
    box.mgpu('backup', good, user=box.user, check=True)
    box.stop()
    with open(good, 'rb') as source:
        whole = source.read()
    middle = len(whole) // 2
    for name, content, words in (
            ('text', b'not a backup\n' * 100, f"'{place}/text' is not a backup of mgpu\n"),
            ('empty', b'', f"'{place}/empty' is not a backup of mgpu\n"),
            ('cut', whole[:middle], ''),
            ('flipped', whole[:8192] + bytes(byte ^ 0xff for byte in whole[8192:16384]) + whole[16384:], ''),
    ):
        bad = f'{place}/{name}'
        with open(bad, 'wb') as out:
            out.write(content)
        os.chmod(bad, 0o644)
        done = box.restore(bad)
        assert done.returncode not in (0, 99), (name, done)
        assert words in done.stderr and done.stderr.startswith(('mgpud', '20')), (name, done)
    plain = f'{place}/plain'
    subprocess.run(['cp', database(box), plain], check=True)
    os.chmod(plain, 0o644)
    done = box.restore(plain)
    assert done.returncode != 0 and 'not a backup made by mgpu backup' in done.stderr, done
    assert glob.glob(f'{box.state_dir}/store/replaced.*') == []
    box.start()
    assert box.job(job)['state'] == 'queued'


def test_a_look_at_a_store_after_a_kill_does_not_make_it_an_older_copy(make_instance):
    instance = make_instance()
    job = instance.post_job(['true'])
    instance.wait(job)
    instance.kill()
    assert fsck(instance).returncode == 0
    instance.start()
    assert 'older copy' not in instance.log(), instance.log()
    after = instance.post_job(['true'])
    assert after == job + 1
    instance.wait(after)


def test_fsck_finds_a_table_that_does_not_follow_from_the_events(make_instance):
    instance = make_instance()
    job = instance.post_job(['true'])
    instance.wait(job)
    instance.stop()
    with sqlite3.connect(database(instance)) as connection:
        assert connection.execute('UPDATE jobs SET exit_code = 5 WHERE id = ?', (job,)).rowcount == 1
    connection.close()
    done = fsck(instance)
    assert done.returncode == 1 and str(job) in done.stdout, done


def damage(instance, sql):
    """Changes the tables of a stopped mgpud without it."""
    with contextlib.closing(sqlite3.connect(database(instance))) as connection:
        connection.executescript(sql)


def wait_check(instance):
    """The result of the check of the whole store, which begins some seconds after a start."""
    return harness.until(lambda: instance.api('GET', '/version').json['store_check'], 'the check of the store')


def test_damage_of_ended_jobs_is_reported_while_mgpud_runs(make_instance):
    instance = make_instance()
    ended = instance.post_job(['true'])
    instance.wait(ended)
    instance.stop()
    damage(instance, f"UPDATE jobs SET text = 'other' WHERE id = {ended}")
    instance.start()
    check = wait_check(instance)
    assert check['findings'] == 1 and not check['is_damaged'] and f'job {ended}' in check['finding'], check
    told = instance.mgpu('doctor')
    assert told.code == 1 and re.search(rf'BAD +store +damaged, 1 finding: job {ended}', told.out), told
    assert f'the store is damaged (1 finding): job {ended}' in instance.log()
    assert scrape(instance)['mgpu_store_findings'] == 1
    assert os.listdir(f'{instance.state_dir}/store/backup') == [], 'a damaged copy is no snapshot'
    assert instance.run_job(['echo', 'x'])[1] == 'x\n', 'other jobs are not affected'


def test_damage_of_the_file_refuses_new_jobs_and_stores_the_ends_of_others(make_instance, gate):
    instance = make_instance()
    ended = instance.submit('true')  # with a submit key
    instance.wait(ended)
    running = instance.post_job(gate.command('exit 8'))
    instance.wait(running, 'running')
    instance.stop()
    damage(instance, 'DROP INDEX submit_keys_job;'
           'CREATE INDEX submit_keys_job ON submit_keys (job) WHERE job < 0; PRAGMA writable_schema = ON;'
           "UPDATE sqlite_schema SET sql = 'CREATE INDEX submit_keys_job ON submit_keys (job)' WHERE name = 'submit_keys_job'")
    instance.start()
    check = wait_check(instance)
    assert check['is_damaged'] and 'submit_keys_job' in check['finding'], check
    for path in ('/jobs', f'/jobs/{ended}/retry'):
        answer = instance.api('POST', path, {'command': ['true']} if path == '/jobs' else {})
        assert (answer.status, answer.json['code']) == (507, 'store_damaged') and 'mgpu doctor' in answer.json['hint'], answer
    refused = instance.mgpu('submit', 'true')
    assert refused.code != 0 and 'the file of the store is damaged' in refused.err, refused
    gate.open()
    assert instance.wait(running)['exit_code'] == 8


@pytest.mark.parametrize('spoil', ['header', 'middle', 'empty', 'garbage'])
def test_a_corrupt_store_is_refused_and_left_as_it_is(make_instance, spoil):
    instance = make_instance()
    for _ in range(20):
        instance.post_job(['true'], env={'A': 'x' * 2000})
    for job in instance.open_jobs():
        instance.wait(job)
    instance.stop()
    path = database(instance)
    size = os.path.getsize(path)
    with open(path, 'r+b') as store:
        if spoil == 'header':
            store.write(b'\0' * 100)
        elif spoil == 'middle':
            store.seek(4096)
            store.write(b'\xa5' * (size - 8192))
        elif spoil == 'empty':
            store.truncate(0)
        else:
            store.seek(0)
            store.write(os.urandom(size))
    with open(path, 'rb') as store:
        before = store.read()
    log = refuse_to_start(instance)
    assert path in log or f'{instance.state_dir}/store' in log, log
    assert 'hint:' in log, log
    with open(path, 'rb') as store:
        assert store.read() == before, 'nothing was written over the damage'


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(make_instance):
    instance = make_instance()
    instance.wait(instance.post_job(['true']))
    instance.stop()
    connection = sqlite3.connect(database(instance))
    connection.execute('PRAGMA user_version = 9999')
    connection.commit()
    connection.close()
    log = refuse_to_start(instance)
    assert '9999' in log or 'newer' in log, log
    connection = sqlite3.connect(database(instance))
    assert connection.execute('PRAGMA user_version').fetchone() == (9999,)
    connection.close()


def test_the_database_itself_refuses_a_gpu_given_out_twice(make_instance, gate):
    instance = make_instance()
    job = instance.post_job(gate.command())
    instance.wait(job, 'running')
    instance.stop()
    connection = sqlite3.connect(database(instance))
    columns = [row[1] for row in connection.execute('PRAGMA table_info(gpu_alloc)')]
    row = connection.execute('SELECT * FROM gpu_alloc').fetchone()
    assert row is not None
    marks = ','.join('?' * len(columns))
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f'INSERT INTO gpu_alloc VALUES ({marks})', row)
    connection.close()
    instance.start()
    gate.open()
    assert instance.wait(job)['state'] == 'done'


def test_a_state_directory_that_cannot_be_made_is_told(make_instance, place):
    with open(f'{place}/file', 'w', encoding='ascii'):
        pass
    instance = make_instance(start=False, state_dir=f'{place}/file/state')
    assert f'{place}/file' in refuse_to_start(instance)


def test_a_state_directory_that_others_may_write_is_refused(make_instance, place):
    folder = f'{place}/open'
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    instance = make_instance(start=False, state_dir=folder)
    assert folder in refuse_to_start(instance)


@pytest.mark.root
def test_a_full_disk_refuses_submits_and_loses_nothing(make_instance, place, gate):
    """State on a tiny tmpfs: submits are refused with a reason, jobs end with their status, and all heals by itself."""
    small = f'{place}/small'
    os.mkdir(small)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=80m,mode=755', 'tmpfs', small], check=True)
    try:
        instance = make_instance(state_dir=f'{small}/state')
        running = instance.post_job(gate.command('exit 8'))
        instance.wait(running, 'running')
        acked, refused = [], None
        hog = f'{small}/hog'
        with open(hog, 'wb') as out:
            try:
                while True:
                    out.write(b'\0' * (1 << 20))
                    out.flush()
            except OSError:
                pass
        for _ in range(20000):
            answer = instance.api('POST', '/jobs', {'command': ['true'], 'gpus': 8, 'env': {'A': 'x' * 100000}})
            if answer.status != 201:
                refused = answer
                break
            acked.append(answer.json['id'])
        assert refused is not None and refused.status == 507, refused
        assert refused.json['code'] == 'store_full' and refused.json['detail']
        told = instance.mgpu('doctor')
        assert told.code == 1 and re.search(r'BAD +store +no space left', told.out), told
        assert instance.process.poll() is None, instance.log()
        gate.open()
        assert instance.wait(running)['exit_code'] == 8, 'the end of a running job is stored all the same'
        os.unlink(hog)
        # It looks again by itself, if not at every request.
        end = time.monotonic() + LIMIT_S
        while (answer := instance.api('POST', '/jobs', {'command': ['true'], 'gpus': 0})).status == 507:
            assert time.monotonic() < end, 'submits are still refused though there is space again'
            select.select([], [], [], 0.1)
        assert instance.wait(answer.json['id'])['state'] == 'done'
        for number in acked:
            assert instance.wait(number)['state'] == 'done'
        instance.stop()
        done = fsck(instance)
        assert done.returncode == 0, done
    finally:
        for pid in harness.processes(small):
            os.kill(pid, 9)
            harness.wait_process(pid)
        subprocess.run(['umount', '-l', small], check=True)


def test_a_snapshot_directory_does_not_grow_without_bound(make_instance):
    instance = make_instance()
    for _ in range(5):
        instance.restart()
    assert len(os.listdir(f'{instance.state_dir}/store/backup')) <= 3 \
        if os.path.isdir(f'{instance.state_dir}/store/backup') else True
