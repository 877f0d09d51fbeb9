# SPDX-License-Identifier: MIT
"""The usage of jobs: seff, sreport, sshare."""

import re

import harness
import pytest
import slurm


@pytest.fixture
def cluster(box, place):
    return slurm.Slurm(box, place)


@pytest.fixture
def ended(cluster):
    """A job of two CPUs and a GPU that has used one CPU for more than a second, and failed."""
    job = cluster.wrap("timeout 1.5 sh -c 'while :; do :; done'; exit 3", '-n', 2, '-G', 1, '--mem=200M', '-o', '/dev/null')
    assert cluster.finish(job)['state'] == 'failed'
    return job


def test_seff_tells_what_a_job_has_used(cluster, ended):
    lines = cluster.out('seff', ended).splitlines()
    shown = dict(line.split(': ', 1) for line in lines)
    name = cluster.box.client.name
    assert list(shown)[:5] == ['Job ID', 'Cluster', 'User/Group', 'State', 'Cores'], lines
    assert (shown['Job ID'], shown['Cluster'], shown['State'], shown['Cores']) == (str(ended), 'mgpu', 'FAILED (exit code 3)', '2')
    assert shown['User/Group'].startswith(f'{name}/')
    assert re.fullmatch(r'00:00:0\d', shown['CPU Utilized']), shown
    part, wall = re.fullmatch(r'([\d.]+)% of 00:00:(\d\d) core-walltime', shown['CPU Efficiency']).groups()
    assert 0 < float(part) <= 100 and int(wall) % 2 == 0 and int(wall) >= 2, shown
    assert re.fullmatch(r'[\d.]+ [KM]B', shown['Memory Utilized']), shown
    assert re.fullmatch(r'[\d.]+% of 200.00 MB', shown['Memory Efficiency']), shown
    assert shown['GPUs'] == '1'


def test_seff_refuses_what_is_no_job(cluster):
    waiting = cluster.wrap('true', '-H')
    assert cluster.out('seff', waiting).endswith('State: PENDING\nEfficiency not available for jobs in the PENDING state.\n')
    done = cluster.run('seff', '999999')
    assert (done.code, done.out, done.err) == (2, '', 'Job not found.\n'), done
    for words in (['x'], [], ['1', '2']):
        assert cluster.run('seff', *words).code == 1


def used_by(cluster, *words):
    rows = cluster.out('sreport', '-n', '-P', '-t', 'Seconds', *words, 'start=today', 'end=now+1hour').splitlines()
    return {row.split('|')[1]: int(row.split('|')[4]) for row in rows}


def test_sreport_sums_up_what_users_had(cluster, ended):
    name = cluster.box.client.name
    seconds = int(cluster.out('sacct', '-X', '-n', '-P', '-j', ended, '-o', 'CPUTimeRAW'))
    first = used_by(cluster, 'user', 'top')
    assert first[name] >= seconds >= 2, (first, seconds)
    again = cluster.wrap("timeout 1.5 sh -c 'while :; do :; done'", '-n', 2, '-G', 1, '-o', '/dev/null')
    cluster.finish(again)
    more = int(cluster.out('sacct', '-X', '-n', '-P', '-j', again, '-o', 'CPUTimeRAW'))
    assert abs(used_by(cluster, 'user', 'topusage')[name] - first[name] - more) <= 2
    assert used_by(cluster, 'user', 'top', 'users=nosuch') == {}
    rows = cluster.out('sreport', '-n', '-P', '-T', 'gres/gpu', '-t', 'sec', 'cluster', 'account', 'start=today', 'end=now+1hour').splitlines()
    assert rows[0].startswith('mgpu|default|||gres/gpu|') and rows[1].startswith(f'mgpu|default|{name}|'), rows


def test_sreport_counts_the_attempts_of_a_requeued_job(cluster):
    name = cluster.box.client.name
    before = used_by(cluster, 'user', 'top').get(name, 0)
    job = cluster.wrap('test $SLURM_RESTART_COUNT || sleep 60', '--requeue')
    harness.until(lambda: (cluster.box.job(job)['run_seconds'] or 0) > 3, 'it has run for a while')
    assert cluster.run('scontrol', 'requeue', job).code == 0
    cluster.finish(job)
    assert used_by(cluster, 'user', 'top')[name] - before >= 3


def test_sreport_has_the_tables_of_slurm(cluster):
    lines = cluster.out('sreport', 'user', 'top', 'start=2026-01-01', 'end=2026-01-02').splitlines()
    assert lines[1:3] == ['Top 10 Users 2026-01-01T00:00:00 - 2026-01-01T23:59:59 (86400 secs)', 'Usage reported in CPU Minutes'], lines
    assert lines[4:] == ['  Cluster     Login     Proper Name         Account     Used   Energy ',
                         '--------- --------- --------------- --------------- -------- -------- '], lines
    lines = cluster.out('sreport', '-t', 'percent', 'cluster', 'utilization').splitlines()
    assert lines[4] == '  Cluster Allocate     Down PLND Dow     Idle  Planned Reported ' and lines[6].split()[-1] == '100.00%', lines
    for words, said in ((['user'], 'too few arguments for keyword:user'), ([], 'a report is required'), (['nosuch'], 'invalid keyword: nosuch'), (['user', 'nosuch'], 'Not valid report'), (['user', 'top', 'format=nosuch'], 'Invalid field requested'),
                        (['-t', 'days', 'user', 'top'], 'is not Seconds'), (['-T', 'energy', 'user', 'top'], 'energy is not recorded'),
                        (['user', 'top', 'start=now', 'end=yesterday'], 'ends before it begins'), (['user', 'top', 'top=0'], 'TopCount'),
                        (['user', 'top', 'colour=red'], 'Unknown condition')):
        done = cluster.run('sreport', *words)
        assert done.code == 1 and done.out == '' and said in done.err, done


def test_sshare_has_the_table_of_slurm(cluster):
    lines = cluster.out('sshare', '-a').splitlines()
    assert lines[0] == 'Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare ', lines
    assert set(lines[1]) == {'-', ' '} and lines[2].startswith('default  '), lines
    assert cluster.out('sshare', '-n', '-P', '-o', 'acc,raws').splitlines()[0] == 'default|1'
    assert {'Account', 'EffectvUsage', 'NormShares'} <= set(cluster.out('sshare', '--helpformat').split())
    assert cluster.run('sshare', '-o', 'nosuch').err == 'sshare: error: Invalid field requested: "nosuch"\n'
