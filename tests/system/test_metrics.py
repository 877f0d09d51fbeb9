# SPDX-License-Identifier: MIT
"""GET /metrics of an instance with jobs."""

import re

import harness

GPUS = 'sim:4x24G'


def text(box, user=None):
    connection = box.connection(user)
    connection.request('GET', '/metrics')
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 200, body
    return body


def scrape(box, user=None):
    """All samples: name with labels to value."""
    samples = [line.rsplit(' ', 1) for line in text(box, user).splitlines() if not line.startswith('#')]
    assert len({name for name, _ in samples}) == len(samples), 'a sample is there twice'
    return {name: float(value) for name, value in samples}


def one(samples, pattern):
    found = [value for name, value in samples.items() if re.fullmatch(pattern, name)]
    assert len(found) == 1, (pattern, found)
    return found[0]


def test_jobs_gpus_and_users_are_counted(box):
    user = box.client.name
    before = scrape(box)
    job = box.submit('-g', '2', '--', 'sleep', '300')
    box.wait(job, 'running')
    waiting = box.submit('-g', '4', '--', 'true')
    now = scrape(box)
    assert now['mgpu_jobs{state="running"}'] == 1
    assert now['mgpu_jobs{state="queued"}'] == 1
    assert sum(value for name, value in now.items() if name.startswith('mgpu_gpu_allocated_ratio')) == 2
    assert now[f'mgpu_user_gpus{{user="{user}"}}'] == 2
    assert now['mgpu_job_wait_seconds_count'] == before['mgpu_job_wait_seconds_count'] + 1
    assert one(now, r'mgpu_node_up\{node="[^"]+"\}') == 1
    box.mgpu('cancel', job, check=True)
    box.wait(waiting)
    end = harness.until(lambda: (s := scrape(box))['mgpu_jobs{state="running"}'] == 0 and s, 'the end of both jobs')
    assert end['mgpu_jobs_ended_total{result="cancelled",reason="cancelled"}'] == 1
    assert end['mgpu_jobs_ended_total{result="done",reason="exit"}'] == 1
    spent = end[f'mgpu_user_gpu_seconds_total{{user="{user}"}}']
    assert spent > now[f'mgpu_user_gpu_seconds_total{{user="{user}"}}'] > 0
    assert scrape(box)[f'mgpu_user_gpu_seconds_total{{user="{user}"}}'] >= spent


def test_no_job_has_a_label(box):
    box.wait(box.submit('-g', '1', '-J', 'a-very-special-name', '--', 'true'))
    assert 'a-very-special-name' not in text(box)


def test_a_restart_begins_anew_and_keeps_what_runs(make_instance):
    box = make_instance('sim:2x8G')
    job = box.submit('-g', '1', '--', 'sleep', '300')
    box.wait(job, 'running')
    box.restart()
    harness.until(lambda: one(scrape(box), r'mgpu_node_up\{.*') == 1, 'the node')
    now = scrape(box)
    assert now['mgpu_jobs{state="running"}'] == 1
    assert now['mgpu_job_wait_seconds_count'] == 0
    assert sum(value for name, value in now.items() if name.startswith('mgpu_gpu_allocated_ratio')) == 1
