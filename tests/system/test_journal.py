# SPDX-License-Identifier: MIT
"""`mgpu journal export` of a box on which much happened, and `mgpu-sim journal`, which must decide all of it again."""

import json
import os
import random
import re
import subprocess

import pytest

import harness


def replay(path, status=0):
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', path], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert not harness.SANITIZER.search(done.stderr), done.stderr
    return done.stdout, done.stderr


def export(box, path):
    box.mgpu('journal', 'export', '-o', path, user=box.user, check=True)
    with open(path, encoding='utf-8') as source:
        return [json.loads(line) for line in source]


def submit_much(box, users, dice, place):
    """A few dozen jobs of every kind; ids of those that were made."""
    jobs = []
    for number in range(60):
        words = ['-g', dice.choice(['1', '1', '2', '4', '0.5', '0'])]
        if number % 5 == 0:
            words += ['--preemptible']
        if number % 6 == 1:
            words += ['-t', dice.choice(['200ms', '5s'])]
        if number % 7 == 2 and jobs:
            words += ['-A', f'{dice.choice(jobs)}:{dice.choice(["ok", "any", "fail"])}']
        if number % 8 == 3:
            words += ['-a', '0-5%2']
        if number % 9 == 4:
            words += ['-b', '+1s']
        if number % 10 == 5:
            words += ['-c', '1', '-M', '64M']
        if number % 11 == 6:
            words = ['-G', '5,2']
        if number % 12 == 7:
            words = ['-g', '1', '-m', '8G']
        if number % 13 == 8:
            words += ['--hold']
        if number % 14 == 9:
            words = ['-g', '1', '--gpu-allow', '0-3', '--deadline', '+2s']
        if number % 15 == 10:
            words += ['-p', '-3']
        command = dice.choice(['sleep 0.1', 'sleep 0.3', 'sleep 1', 'false', 'true'])
        jobs.append(box.submit(*words, '--', 'sh', '-c', command, user=dice.choice(users), cwd=place))
    return jobs


def disturb(box, jobs, dice):
    """Commands of administrators while the jobs run; refusals (the job has ended, or is already running) are allowed."""
    admin = box.user
    harness.until(box.gpus, 'the node is up')  # it may be started again just now
    box.mgpu('gpu', 'pause', '1', user=admin, check=True)
    box.mgpu('reserve', 'add', '--gpus', '2', '--users', box.client.name, '--for', '1500ms', user=admin, check=True)
    for job in dice.sample(jobs, 15):
        box.mgpu(dice.choice(['cancel', 'hold', 'release']), job, user=admin)
    waiting = box.submit('--hold', '-g', '2', '--', 'true')
    box.mgpu('edit', waiting, 'gpus=1', 'priority=-1', check=True)
    box.mgpu('release', waiting, check=True)
    for job in dice.sample(jobs, 10):
        box.mgpu('edit', job, 'gpus=1', 'priority=-1', user=admin)
    box.mgpu('gpu', 'resume', '1', user=admin, check=True)
    box.mgpu('gpu', 'policy', '2', dice.choice(['ignore', 'fit-around']), user=admin, check=True)
    box.mgpu('gpu', 'policy', '2', 'default', user=admin, check=True)
    for job in jobs:
        box.mgpu('release', job, user=admin)
    node = box.gpus()[0]['node']
    box.mgpu('node', 'drain', node, user=admin, check=True)
    box.submit('-g', '8', '-p', '5', '--', 'sleep', '0.2', user=admin if not box.is_root else box.user)
    box.mgpu('node', 'resume', node, user=admin, check=True)


def test_ids_that_a_killed_mgpud_had_reserved_are_skipped(make_instance, place, tmp_path):
    """The first id after a start goes to an element of an array, which a pass gives out and not a submit. A log that was torn makes
    mgpud skip the ids that it had reserved, and a restored backup skips a million of them: here they are moved in the journal, farther."""
    box = make_instance(arguments=['--allow-root-jobs'] if harness.IS_ROOT else [])
    before = box.submit('-g', '8', '--', 'sleep', '600', user=box.user, cwd=place)
    array = box.submit('-g', '1', '-a', '1-3', '--', 'true', user=box.user, cwd=place)
    box.kill()
    box.start()
    box.mgpu('cancel', str(before), user=box.user, check=True)
    box.wait(array)
    lines = export(box, str(tmp_path / 'journal.ndjson'))
    far = 10 ** 15
    for line in lines[1:]:
        for key in ('job', 'element'):
            line[key] = line[key] + far if (line.get(key) or 0) > array else line.get(key)
    path = tmp_path / 'skipped.ndjson'
    path.write_text(''.join(json.dumps({key: value for key, value in line.items() if value is not None}) + '\n' for line in lines))
    assert any((line.get('element') or 0) > array + far for line in lines[1:])  # more, if the kill tore the log for real
    out, _ = replay(str(path))
    assert 'all identical' in out and '2 starts' in out


@pytest.fixture
def lively(make_instance, place, tmp_path, request):
    """An instance after a few lively seconds, with its mgpud stopped, killed and started in between."""
    users = [request.getfixturevalue('someone')]
    path = tmp_path / 'mgpu.yaml'
    text = 'half-life: 1h\nuser-max-jobs: 12\n'
    if harness.IS_ROOT:
        users.append(request.getfixturevalue('bo'))
        text += f'users:\n  {users[1].name}:\n    max-gpus: 4\n    shares: 2\n'
    path.write_text(text)
    os.chmod(tmp_path, 0o755)
    arguments = ['--config', str(path)] + (['--allow-root-jobs'] if harness.IS_ROOT else [])
    box = make_instance(arguments=arguments)
    dice = random.Random(3)
    jobs = submit_much(box, users, dice, place)
    disturb(box, jobs, dice)
    box.restart()
    jobs = submit_much(box, users, dice, place)
    box.kill()
    box.start()
    disturb(box, jobs, dice)
    box.wait(jobs[-1])
    return box


def test_the_journal_of_a_lively_box_replays_to_the_same_decisions(lively, tmp_path):
    path = str(tmp_path / 'journal.ndjson')
    lines = export(lively, path)
    out, _ = replay(path)
    kinds = {line['type'] for line in lines[1:]}
    assert kinds >= {'submitted', 'allocated', 'started', 'ended', 'stop', 'edited', 'held', 'released', 'split',
                     'member', 'cluster'}, kinds
    changes = {line['change']['kind'] for line in lines[1:] if line['type'] == 'cluster'}
    assert changes >= {'settings', 'node_up', 'gpu_pause', 'gpu_resume', 'gpu_policy', 'reserve',
                       'node_drain', 'node_resume'}
    allocated = sum(line['type'] == 'allocated' for line in lines[1:])
    found = re.match(r'(\d+) decisions, all identical \((\d+) events, 3 starts of mgpud\)\n', out)
    assert found and int(found[1]) >= allocated > 60 and int(found[2]) == len(lines) - 1, out

    # One GPU of one allocation is another: that decision is named, with what would have been decided. No pass decides where an
    # element behind another begins, or which job starts early.
    victim = [line for line in lines[1:] if line['type'] == 'allocated' and len(line['gpus']) == 1 and not line.get('early')
              and not line.get('behind')][20]
    was = victim['gpus'][0]['index']
    victim['gpus'][0]['index'] = (was + 1) % 8
    tampered = tmp_path / 'tampered.ndjson'
    tampered.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    out, err = replay(str(tampered), status=1)
    node = victim['gpus'][0]['node']
    assert f'seq {victim["seq"]}, ' in err and f'job {victim["job"]}' in err, err
    there, here = err.split('; here ')
    assert f'{node}:{(was + 1) % 8}' in there and f'{node}:{was}' in here, err
    assert 'identical decisions; the next one differs' in out

    # Parts of it are refused with the reason.
    part = tmp_path / 'part.ndjson'
    part.write_text(''.join(json.dumps(line) + '\n' for line in lines[:1] + lines[10:]))
    assert 'a replay requires all of it' in replay(str(part), status=1)[1]
    part.write_text(''.join(json.dumps(line) + '\n' for line in lines[:10] + lines[11:]))
    assert 'entries are missing' in replay(str(part), status=1)[1]

    # The same file is a workload.
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'run', path, '--cluster', '1x8',
                           '--json'], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    ran = len({line['job'] for line in lines[1:] if line['type'] == 'started'})
    assert 0 < json.loads(done.stdout)['jobs'] <= ran
