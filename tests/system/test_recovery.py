# SPDX-License-Identifier: MIT
"""Death of any program at any moment, and a new start: nothing acknowledged is lost, run twice or told wrongly."""

import json
import os
import random
import select
import shutil
import signal
import subprocess
import time

import pytest

import harness
import invariants

CYCLES = int(os.environ.get('MGPU_SOAK_CYCLES') or 20)
SEED = os.environ.get('MGPU_SOAK_SEED') or str(random.SystemRandom().randrange(1 << 31))
CLIENTS = 8 if CYCLES > 20 else 4
ROUND = 1000  # cycles that are judged together: a store that grows makes each start longer
SETTLE_S = 60 + min(CYCLES, ROUND)


# --- one death at a time ---

@pytest.mark.smoke
def test_a_job_goes_on_while_the_daemon_is_away(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo before; echo up > {bell.path}; read x < {gate.path}; echo after; exit 7'])
    bell.wait()
    instance.stop()
    gate.open()
    instance.start()
    done = instance.wait(job)
    assert (done['exit_code'], done['ended_by'], done['attempt']) == (7, 'exit', 1), done
    assert instance.output(job) == 'before\nafter\n'


def test_a_job_that_ended_while_all_daemons_were_away_has_its_status(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo $$ > {bell.path}; read x < {gate.path}; echo out; exit 9'])
    pid = int(bell.wait())
    agents = instance.agents()
    instance.kill()
    assert all(harness.wait_process(agent) for agent in agents), 'the agent stays without its controller'
    gate.open()
    assert harness.wait_process(pid)
    instance.start()
    done = instance.wait(job)
    assert (done['exit_code'], done['ended_by']) == (9, 'exit'), done
    assert instance.output(job) == 'out\n'


@pytest.mark.smoke
def test_a_queued_job_survives_and_keeps_its_place(make_instance, gate):
    instance = make_instance(gpus='sim:1x8G')
    blocker = instance.post_job(gate.command())
    instance.wait(blocker, 'running')
    jobs = [instance.post_job(['true'], priority=priority) for priority in (-5, 0, -5)]
    before = [instance.job(job)['position'] for job in jobs]
    instance.kill()
    instance.start()
    assert [instance.job(job)['position'] for job in jobs] == before == [2, 1, 3]
    gate.open()
    assert all(instance.wait(job)['state'] == 'done' for job in jobs)


def test_an_acknowledged_cancel_is_carried_out_after_a_crash(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'trap "" TERM; echo up > {bell.path}; while :; do read x < {gate.path}; done'])
    bell.wait()
    assert instance.api('POST', f'/jobs/{job}/cancel', {'grace_s': 2}).status == 202
    instance.kill()
    instance.start()
    assert instance.wait(job)['state'] == 'cancelled'


@pytest.mark.smoke
def test_a_dead_agent_is_started_anew_and_jobs_go_on(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo up > {bell.path}; read x < {gate.path}; exit 3'])
    bell.wait()
    for pid in worker_of(instance):
        os.kill(pid, signal.SIGKILL)
        assert harness.wait_process(pid)
    gate.open()
    assert instance.wait(job)['exit_code'] == 3
    assert instance.run_job(['echo', 'x'])[1] == 'x\n'


def test_the_daemon_leaves_for_a_new_start_when_the_keeper_dies(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo up > {bell.path}; read x < {gate.path}; exit 3'])
    bell.wait()
    for pid in keeper_of(instance):
        os.kill(pid, signal.SIGKILL)
    assert instance.process.wait(harness.DEADLINE_S) == os.EX_TEMPFAIL
    gate.open()
    instance.start()
    assert instance.wait(job)['exit_code'] == 3


def test_what_a_killed_agent_has_not_finished_making_is_removed(make_instance, place, gate):
    """An agent writes a job's script and its list of hosts next to the spool entry."""
    instance = make_instance()
    script = os.path.join(place, 'waits.sh')
    with open(script, 'w', encoding='ascii') as file:
        file.write(f'#!/bin/sh\nread word < {gate.path}\nexit 6\n')
    os.chmod(script, 0o755)
    os.chown(script, instance.client.uid, instance.client.gid)
    job = int(instance.mgpu('submit', '-g', '0', script, cwd=place, check=True).out)
    instance.wait(job, 'running')
    kept = f'{instance.run_dir}/scripts/{job}.1.0.0'
    made = [f'{instance.run_dir}/{folder}/999.1.0.0' for folder in ('scripts', 'hosts', 'notices')]
    strange = f'{instance.run_dir}/scripts/not-a-name'
    assert os.listdir(f'{instance.run_dir}/scripts') == [os.path.basename(kept)]
    instance.stop()
    for path in (*made, strange):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    os.mkdir(made[0])
    for path in (f'{made[0]}/waits.sh', *made[1:], strange):
        with open(path, 'w', encoding='ascii') as file:
            file.write('left behind')
    instance.start()
    assert not any(map(os.path.exists, made)), 'files of an attempt without an entry'
    assert os.path.exists(kept) and os.path.exists(strange)
    gate.open()
    assert instance.wait(job)['exit_code'] == 6
    harness.until(lambda: not os.path.exists(kept), 'the script of a job that has ended is removed')


def test_a_dead_shepherd_loses_no_exit_code(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo $$ > {bell.path}; read x < {gate.path}; echo out; exit 11'])
    bell.wait()
    victims = shepherds_of(instance)
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
        assert harness.wait_process(pid)
    instance.wait(job, 'running')  # it may have died before it said so
    gate.open()
    done = instance.wait(job)
    assert (done['exit_code'], done['ended_by']) == (11, 'exit'), done
    assert instance.output(job) == 'out\n'


def remove_entry(instance, job):
    shutil.rmtree(f'{instance.run_dir}/spool/{job}.1.0.0')


def test_a_job_whose_spool_entry_was_removed_keeps_its_exit_status(make_instance, gate):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'read x < {gate.path}; exit 33'])
    instance.wait(job, 'running')
    remove_entry(instance, job)
    gate.open()
    assert instance.wait(job)['exit_code'] == 33
    assert instance.run_job(['true'], gpus=1)[0]['exit_code'] == 0


def test_a_job_whose_spool_entry_was_removed_can_be_cancelled(make_instance, gate):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'read x < {gate.path}'])
    instance.wait(job, 'running')
    remove_entry(instance, job)
    instance.mgpu('cancel', str(job), check=True)
    assert instance.wait(job)['state'] == 'cancelled'
    assert instance.run_job(['true'], gpus=1)[0]['exit_code'] == 0


def test_daemon_agent_and_shepherd_together(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo up > {bell.path}; read x < {gate.path}; exit 13'])
    bell.wait()
    victims = [*shepherds_of(instance), *instance.agents()]
    instance.kill()
    for pid in victims:
        kill_quietly(pid)
    gate.open()
    instance.start()
    done = instance.wait(job)
    assert (done['exit_code'], done['ended_by']) == (13, 'exit'), done


def test_a_repeated_submit_with_the_same_key_is_the_same_job_after_a_crash(make_instance, place):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo x >> {place}/ran'], submit_key='only once')
    instance.wait(job)
    instance.kill()
    instance.start()
    answer = instance.api('POST', '/jobs', {'command': ['sh', '-c', f'echo x >> {place}/ran'], 'submit_key': 'only once'})
    assert (answer.status, answer.json['id']) == (200, job), answer
    with open(f'{place}/ran', encoding='ascii') as lines:
        assert lines.read() == 'x\n'


def test_ids_are_not_given_out_again_after_a_crash(make_instance):
    instance = make_instance()
    first = [instance.post_job(['true']) for _ in range(3)]
    instance.kill()
    instance.start()
    assert instance.post_job(['true']) > max(first)


def test_many_restarts_do_no_harm(make_instance, gate, bell):
    instance = make_instance()
    job = instance.post_job(['sh', '-c', f'echo up > {bell.path}; read x < {gate.path}; exit 5'])
    bell.wait()
    for _ in range(5):
        instance.kill()
        instance.start()
    gate.open()
    done = instance.wait(job)
    assert (done['exit_code'], done['attempt']) == (5, 1)


def test_a_rootless_instance_recovers_as_well(make_instance, someone, gate, bell):
    instance = make_instance(user=someone, client=someone)
    job = instance.post_job(['sh', '-c', f'echo up > {bell.path}; read x < {gate.path}; exit 6'])
    bell.wait()
    instance.kill()
    gate.open()
    instance.start()
    assert instance.wait(job)['exit_code'] == 6


# --- who is who ---

def parent_of(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as source:
        return int(source.read().rsplit(')', 1)[1].split()[1])


def keeper_of(instance):
    return [pid for pid, line in harness.processes(instance.place).items()
            if 'mgpu-agent' in line.split(' ')[0] and '--keep' in line]


def worker_of(instance):
    return [pid for pid, line in harness.processes(instance.place).items()
            if 'mgpu-agent' in line.split(' ')[0] and '--link-fd' in line]


def shepherds_of(instance):
    """Shepherds themselves, and not their children that are on the way to becoming a job.

    A child runs as the job's owner, which tells it apart as root also when its shepherd has died before it.
    """
    pids = instance.shepherds()
    found = []
    for pid in pids:
        try:
            if parent_of(pid) not in pids and os.stat(f'/proc/{pid}').st_uid == instance.user.uid:
                found.append(pid)
        except OSError:
            continue
    return found


def kill_quietly(pid):
    """SIGKILL, unless it is gone already."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


# --- the campaign ---

class Campaign:
    """Clients submit and cancel while programs are killed at moments that come from a seed."""

    def __init__(self, instance, users, place, seed, kind='jobs'):
        self.instance, self.users, self.place, self.kind = instance, users, place, kind
        self.chance = random.Random(seed)
        self.seed = seed
        self.clients = []
        self.kills = {}

    def evidence_path(self, user):
        return f'{self.place}/evidence-{user.name}'

    def start_clients(self, count):
        for number in range(count):
            user = self.users[number % len(self.users)]
            folder = f'{self.place}/{user.name}'
            os.makedirs(folder, exist_ok=True)
            if user.uid != os.geteuid():
                os.chown(folder, user.uid, user.gid)
            acks = open(f'{self.place}/acks-{number}', 'w+b')  # noqa: SIM115 - closed with the client
            process = self.start_client(user, number, folder, acks)
            self.clients.append((user, process, acks))

    def start_client(self, user, number, folder, acks):
        program = f'{self.place}/load_client.py'
        if not os.path.exists(program):
            with open(os.path.join(os.path.dirname(__file__), 'load_client.py'), encoding='utf-8') as source:
                text = source.read()
            with open(program, 'w', encoding='utf-8') as out:
                out.write(text)
            os.chmod(program, 0o644)
        return subprocess.Popen(
            ['/usr/bin/python3', program, self.instance.socket, f'{self.seed}-{number}', self.evidence_path(user), folder, self.kind],
            stdin=subprocess.PIPE, stdout=acks, cwd='/', env=user.environment(), **user.popen_arguments())

    def kill_once(self):
        """Kills something, and starts mgpud again when it is gone."""
        instance = self.instance
        what = self.chance.choice(('mgpud', 'mgpud', 'worker', 'keeper', 'shepherd', 'shepherd', 'mgpud+shepherds',
                                   'everything'))
        self.kills[what] = self.kills.get(what, 0) + 1
        victims = []
        if what in ('shepherd', 'mgpud+shepherds', 'everything'):
            found = shepherds_of(instance)
            victims += found if what != 'shepherd' else found[:1 + self.chance.randrange(3)]
        if what in ('worker', 'everything'):
            victims += worker_of(instance)
        if what in ('keeper', 'everything'):
            victims += keeper_of(instance)
        if what in ('mgpud', 'mgpud+shepherds', 'everything'):
            victims.append(instance.process.pid)
        self.chance.shuffle(victims)
        for pid in victims:
            kill_quietly(pid)
        if what in ('mgpud', 'mgpud+shepherds', 'everything', 'keeper'):
            instance.process.wait(harness.DEADLINE_S)
            instance.start(timeout_s=60)

    def run(self, cycles, clients):
        self.start_clients(clients)
        for _ in range(cycles):
            # A random moment, not a wait for anything.
            select.select([], [], [], self.chance.random() * 0.8)
            self.kill_once()
        for _, process, _ in self.clients:
            process.stdin.close()
        for _, process, _ in self.clients:
            assert process.wait(SETTLE_S) == 0, 'a client failed'

    def evidence(self):
        evidence = invariants.Evidence()
        for number, (user, _, acks) in enumerate(self.clients):
            acks.seek(0)
            evidence.add_client(number, user.uid, [json.loads(line) for line in acks])
            acks.close()
        return evidence

    def evidence_paths(self):
        return [self.evidence_path(user) for user in self.users]


def read_jobs(instance):
    """All jobs by id. A list covers so many ids, and each kill of mgpud leaves some unused: there are several lists."""
    jobs, after = {}, 0
    while after is not None:
        page = instance.api('GET', f'/jobs?all=1&after={after}', user=instance.user).json
        jobs.update((job['id'], job) for job in page['jobs'])
        after = page.get('next')
    return jobs


def judge(instance, evidence, paths):
    """Waits until every acknowledged job has ended; all jobs, all events and the violations."""
    broken, end = [], time.monotonic() + SETTLE_S
    for number in instance.open_jobs():
        left = max(1, int(end - time.monotonic()))
        instance.api('GET', f'/jobs/{number}/wait?states=done,failed,cancelled&timeout={left}', user=instance.user,
                     timeout_s=left + 10)
    for path in paths:
        evidence.add_file(path)
    jobs = read_jobs(instance)
    broken += evidence.add_elements(jobs)
    events = invariants.read_events(instance)
    broken += invariants.check_ends(evidence, jobs)
    broken += invariants.check_bookings(events)
    broken += invariants.check_ids(evidence, events)
    broken += invariants.check_daemon(instance)
    broken += [f'I1: a submit was refused: {row}' for row in evidence.refused]
    instance.restart()
    broken += invariants.check_left_over(instance)
    instance.stop()
    broken += invariants.fsck(instance)
    return jobs, events, broken


@pytest.mark.parametrize('kind', ['jobs', 'arrays'])
@pytest.mark.parametrize('first', range(0, CYCLES, ROUND))
def test_campaign_of_kills_under_load(make_instance, request, place, first, kind):
    cycles = min(ROUND, CYCLES - first)
    users = [request.getfixturevalue('ana'), request.getfixturevalue('bo')] if harness.IS_ROOT \
        else [request.getfixturevalue('someone')]
    instance = make_instance(client=users[0])
    campaign = Campaign(instance, users, place, f'{SEED}-{first}', kind)
    print(f'recovery campaign, {kind}: cycles {first + 1} to {first + cycles}, {CLIENTS} clients; '
          f'again with: make soak SEED={SEED} CYCLES={CYCLES}')
    try:
        campaign.run(cycles, CLIENTS)
    finally:
        for _, process, _ in campaign.clients:
            if process.poll() is None:
                process.kill()
                process.wait()
    evidence = campaign.evidence()
    jobs, events, broken = judge(instance, evidence, campaign.evidence_paths())
    ways = {}
    for job in jobs.values():
        ways[job['ended_by']] = ways.get(job['ended_by'], 0) + 1
    behind = sum(event['type'] == 'inherits' for event in events)
    print(f'{len(evidence.acks)} jobs acknowledged, {behind} had the GPUs of the one before them; the end of {len(evidence.told)} told; ended by {ways}; '
          f'kills: {campaign.kills}; {len(broken)} violations')
    assert not broken, f'seed {SEED}, cycles from {first + 1}:\n' + '\n'.join(broken[:40]) + '\n' + instance.log()[-3000:]
    assert len(evidence.acks) > cycles, 'hardly anything was submitted'
    assert kind != 'arrays' or behind > cycles, 'hardly any element was committed behind another'


# --- the checker itself finds what it is for ---

def sound():
    evidence = invariants.Evidence()
    evidence.add_client('c', os.geteuid(), [{'id': 1, 'key': 'k', 'exit_code': 0, 'lines': 0}])
    evidence.told[1] = {'state': 'done', 'ended_by': 'exit', 'exit_code': 0}
    evidence.starts[1, '1'] = 1
    job = {'id': 1, 'ended_by': 'exit', 'exit_code': 0, 'log': '/dev/null', 'log_bytes': 0, 'state': 'done',
           'message': None, 'attempt': 1}
    return evidence, {1: job}


def test_the_checker_passes_what_is_sound():
    if os.geteuid() != os.stat('/dev/null').st_uid:
        pytest.skip('the stand-in for an output is owned by root')
    assert not list(invariants.check_ends(*sound()))


@pytest.mark.parametrize('word, spoil', [
    ('I1', lambda e, j: j.clear()),
    ('I1', lambda e, j: j[1].update(ended_by=None)),
    ('I2', lambda e, j: e.starts.update({(1, '1'): 1})),
    ('I2', lambda e, j: e.starts.update({(1, '2'): 1})),
    ('I4', lambda e, j: j[1].update(exit_code=1)),
    ('I4', lambda e, j: e.starts.clear()),
    ('I4', lambda e, j: j[1].update(ended_by='unknown')),
    ('I4', lambda e, j: j[1].update(ended_by='cancelled')),
    ('I11', lambda e, j: e.told.update({1: {'state': 'done', 'ended_by': 'exit', 'exit_code': 1}})),
    ('I11', lambda e, j: e.told.update({2: {'state': 'done', 'ended_by': 'exit', 'exit_code': 0}})),
    ('I5', lambda e, j: e.acks[1].update(lines=3)),
    ('I5', lambda e, j: j[1].update(log='/nonexistent')),
])
def test_the_checker_finds_what_is_wrong(word, spoil):
    evidence, jobs = sound()
    spoil(evidence, jobs)
    assert any(sentence.startswith(word) for sentence in invariants.check_ends(evidence, jobs))


def test_the_checker_finds_an_element_that_is_missing_and_one_with_the_status_of_another():
    evidence, jobs = sound()
    evidence.add_client('d', os.geteuid(), [{'id': 2, 'elements': [{'key': f'k-{i}', 'exit_code': i, 'lines': 0} for i in (0, 1)]}])
    element = dict(jobs[1], array_job=2, array_index=0)
    evidence.starts[3, '1'] = 1
    jobs.update({2: dict(jobs[1], id=2), 3: dict(element, id=3)})
    assert [sentence[:12] for sentence in evidence.add_elements(jobs)] == ['I1: element ']
    evidence.starts[4, '1'] = 1
    jobs[4] = dict(element, id=4, array_index=1)
    assert not list(evidence.add_elements(jobs))
    assert any('I4: job 4 is shown with 0' in sentence for sentence in invariants.check_ends(evidence, jobs))
    jobs[2].update(ended_by=None)
    assert any('I1: array 2' in sentence for sentence in evidence.add_elements(jobs))


def test_the_checker_finds_a_gpu_given_out_twice():
    grant = {'index': 0, 'memory': 0}
    events = [{'seq': 1, 'type': 'allocated', 'job': 1, 'granted': [grant]},
              {'seq': 2, 'type': 'allocated', 'job': 2, 'granted': [grant]}]
    assert any('I3' in sentence for sentence in invariants.check_bookings(events))
    events.insert(1, {'seq': 3, 'type': 'ended', 'job': 1})
    events.append({'seq': 4, 'type': 'ended', 'job': 2})
    assert not list(invariants.check_bookings(events))
    shares = [{'seq': i, 'type': 'allocated', 'job': i, 'granted': [{'index': 0, 'memory': 10 << 30}]} for i in (1, 2, 3)]
    assert any('memory' in sentence for sentence in invariants.check_bookings(shares))


def test_the_checker_finds_what_a_job_leaves(make_instance, gate):
    instance = make_instance()
    instance.wait(instance.post_job(gate.command()), 'running')
    left = list(invariants.check_left_over(instance))
    assert any('shepherd' in sentence for sentence in left) and any('spool' in sentence for sentence in left), left
    if os.path.exists(f'{instance.run_dir}/cgroup-name'):
        assert any('cgroup' in sentence for sentence in left), left
    gate.open()
    harness.until(lambda: not list(invariants.check_left_over(instance)), 'something is left')


# --- instances that see the same cgroups ---

def in_a_namespace(make_instance, run_dir):
    """An instance whose run directory has that name in a mount namespace of its own, as in a container."""
    box = make_instance(start=False)
    words = ['unshare', '--mount', 'sh', '-c', f'mount --bind {box.place} {os.path.dirname(run_dir)} && exec "$@"', 'sh']
    if subprocess.run([*words, 'true'], capture_output=True, check=False).returncode != 0:
        pytest.skip('nothing can be mounted here')
    box.command = [*words, *(run_dir if word == box.run_dir else word for word in box.command)]
    return box


@pytest.mark.root
def test_instances_with_the_same_run_directory_by_name_leave_each_others_jobs_alone(make_instance, gate, tmp_path):
    first, second = (in_a_namespace(make_instance, f'{tmp_path}/run') for _ in range(2))
    first.start()
    job = first.post_job(['sh', '-c', f'read x < {gate.path}; exit 3'])
    first.wait(job, 'running')
    second.start()
    assert second.run_job(['true'])[0]['id'] == job  # it would have the same cgroup
    second.restart()
    first.restart()
    assert first.job(job)['state'] == 'running'
    gate.open()
    assert first.wait(job)['exit_code'] == 3
