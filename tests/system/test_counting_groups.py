# SPDX-License-Identifier: MIT
"""Which group of a user the limits, shares and statistics of groups count for, whatever group a process has."""

import copy
import grp
import os
import subprocess

import pytest

import harness
from test_config import reload

pytestmark = pytest.mark.root
SUPPLEMENTARY = 'mgpu-tg'


def name_of(user):
    return grp.getgrgid(user.gid).gr_name


def by_sg(user):
    """The user in a shell of `sg`."""
    changed = copy.copy(user)
    changed.gid = grp.getgrnam(SUPPLEMENTARY).gr_gid
    return changed


def configure(place, groups):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8') as out:
        out.write('groups:\n' + ''.join(f'  {group}: {{ max-gpus: {gpus} }}\n' for group, gpus in groups))
    return path


@pytest.fixture
def make_box(make_instance, place):
    def make(*groups):
        return make_instance(gpus='sim:8x24G', arguments=['--config', configure(place, groups)])
    return make


def running(box, jobs):
    """Those of the jobs that run; the others wait for a limit of their group."""
    states = {}
    for job in jobs:
        why = box.api('GET', f'/jobs/{job}/why', user=box.user).json
        states[job] = [reason['code'] for reason in why['reasons']]
    waiting = [job for job, codes in states.items() if codes == ['group_limit']]
    running = [job for job in jobs if job not in waiting]
    for job in running:
        box.wait(job, 'running')
    return running


def counted(box):
    """GPUs in use by group."""
    return {row['group']: row['gpus'] for row in box.api('GET', '/users', user=box.user).json['users']
            if row['user'] is None and row['group'] is not None and row['gpus']}


def submit(box, user, count):
    return [box.post_job(['sleep', '600'], user=user, gpus=1) for _ in range(count)]


def test_a_limit_of_the_primary_group_is_not_evaded_by_sg(make_box, ana):
    box = make_box((name_of(ana), 2))
    jobs = submit(box, ana, 2) + submit(box, by_sg(ana), 2)
    assert running(box, jobs) == jobs[:2]
    assert counted(box) == {name_of(ana): 2}


def test_a_supplementary_member_has_the_limit_of_the_group_also_after_a_restart(make_box, ana, bo):
    box = make_box((SUPPLEMENTARY, 2))
    jobs = submit(box, ana, 3) + submit(box, by_sg(ana), 1)
    others = submit(box, bo, 1)
    for _ in range(2):
        assert running(box, jobs) == jobs[:2] and running(box, others) == others
        assert counted(box) == {SUPPLEMENTARY: 2, name_of(bo): 1}
        box.restart()
    for job in reversed([*jobs, *others]):
        box.mgpu('cancel', job, user=box.user, check=True)
        box.wait(job)
    sums = box.api('GET', '/history?by=group', user=box.user).json['sums']
    assert {row['group']: row['jobs'] for row in sums} == {SUPPLEMENTARY: 4, name_of(bo): 1}, sums


def test_of_two_configured_groups_the_primary_one_counts(make_box, ana):
    box = make_box((SUPPLEMENTARY, 1), (name_of(ana), 3))
    jobs = submit(box, ana, 2) + submit(box, by_sg(ana), 2)
    assert running(box, jobs) == jobs[:3]
    assert counted(box) == {name_of(ana): 3}


def test_a_job_runs_with_the_group_of_its_process_and_counts_for_another(make_box, ana, place):
    box = make_box((name_of(ana), 4))
    done = box.mgpu('run', '--', 'id', '-g', user=by_sg(ana), check=True)
    assert int(done.out) == grp.getgrnam(SUPPLEMENTARY).gr_gid
    box.mgpu('journal', 'export', '-o', f'{place}/journal', user=box.user, check=True)
    with open(f'{place}/journal', encoding='utf-8') as source:
        assert any(f'"gid":{ana.gid},' in line.replace(' ', '') for line in source if '"submitted"' in line)
    simulated = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', f'{place}/journal'], capture_output=True,
                               text=True, timeout=harness.DEADLINE_S, check=False)
    assert simulated.returncode == 0, simulated


def test_a_group_that_is_configured_later_counts_for_later_jobs(make_box, place, ana):
    box = make_box((name_of(ana), 2))
    first = submit(box, ana, 2)
    configure(place, [(SUPPLEMENTARY, 1)])
    reload(box)
    later = submit(box, ana, 2)
    assert running(box, [*first, *later]) == [*first, later[0]]
    assert counted(box) == {name_of(ana): 2, SUPPLEMENTARY: 1}
