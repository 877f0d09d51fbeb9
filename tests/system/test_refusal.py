# SPDX-License-Identifier: MIT
"""A node on which the owner of a job does not exist is excluded; the job runs elsewhere, or `mgpu why` says why it cannot."""

import pytest

import harness
from cluster import Cluster

pytestmark = pytest.mark.root  # mounts another /etc/passwd


@pytest.fixture(scope='module')
def strangers(someone, tmp_path_factory):
    """Nodes n1, n2 and n3 with four GPUs each. On n1 nobody but root exists."""
    harness.require_namespaces()
    passwd = tmp_path_factory.mktemp('users') / 'passwd'
    with open('/etc/passwd', encoding='utf-8') as lines:
        passwd.write_text(''.join(line for line in lines if not line.startswith(f'{someone.name}:')))
    other_users = ('unshare', '-m', 'sh', '-c', f'mount --bind {passwd} /etc/passwd && exec "$@"', 'sh')
    with Cluster(0, client=someone, arguments=('--start-patience', '2s')) as made:
        made.add('n1', prefix=other_users).join()
        made.add('n2').join()
        made.add('n3').join()
        yield made


def test_jobs_of_users_unknown_to_a_node_run_on_the_others(strangers):
    box = strangers.box
    jobs = [box.post_job(['sh', '-c', 'echo $MGPU_NODE'], gpus=4) for _ in range(4)]
    assert {box.wait(job)['exit_code'] for job in jobs} == {0}
    assert {box.job(job)['node'] for job in jobs} <= {'n2', 'n3'}


def test_a_job_on_several_nodes_waits_for_those_that_know_its_user(strangers):
    box = strangers.box
    box.mgpu('node', 'drain', 'n3', user=box.user, check=True)
    job = box.post_job(['sh', '-c', 'echo $MGPU_NODE'], gpus=8, nodes=2)
    assert box.await_news(lambda: box.job(job)['attempt'] == 1 and box.job(job)['state'] == 'queued')
    box.mgpu('node', 'resume', 'n3', user=box.user, check=True)
    done = box.wait(job)
    assert done['exit_code'] == 0 and done['attempt'] >= 2, done
    assert sorted(part['node'] for part in done['ranks']) == ['n2', 'n3'], done


def test_a_job_that_no_other_node_can_run_says_which_user_is_missing(strangers, someone):
    job = strangers.box.post_job(['true'], gpus=12, nodes=3)
    done = strangers.box.wait(job)
    assert done['ended_by'] == 'start_failed' and f'n1: unknown user id on this node: {someone.uid}' in done['message'], done
    assert 'given up after its starts have failed for 2s' in done['message'], done
