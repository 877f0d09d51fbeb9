# SPDX-License-Identifier: MIT
"""Metrics as Prometheus itself reads them; its rules, and the queries of the dashboard."""

import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

import harness

PROMETHEUS, PROMTOOL = shutil.which('prometheus'), shutil.which('promtool')
pytestmark = [pytest.mark.real,
              pytest.mark.skipif(not (PROMETHEUS and PROMTOOL), reason='prometheus is not installed: tools/install-packages real')]

CONTRIB = pathlib.Path(__file__).parents[2] / 'contrib'

class Prometheus:
    """A server that scrapes once a second, with the rules of contrib/."""

    def __init__(self, place, scrape):
        self.place, self.port = place, harness.free_port()
        rules = CONTRIB / 'prometheus' / 'mgpu.rules.yml'
        (place / 'prometheus.yml').write_text(json.dumps({
            'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'},
            'rule_files': [str(rules)],
            'scrape_configs': [{'job_name': 'mgpu', **scrape}]}))
        self.log = open(place / 'log', 'wb')
        self.process = subprocess.Popen(
            [PROMETHEUS, f'--config.file={place}/prometheus.yml', f'--storage.tsdb.path={place}/data',
             f'--web.listen-address=127.0.0.1:{self.port}'], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        harness.until(self.is_ready, 'Prometheus')

    def is_ready(self):
        assert self.process.poll() is None, (self.place / 'log').read_text()
        try:
            return self.ask('/-/ready')
        except OSError:
            return False

    def ask(self, path):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}{path}', timeout=harness.DEADLINE_S) as answer:
            return answer.read()

    def query(self, expression):
        answer = json.loads(self.ask('/api/v1/query?query=' + urllib.parse.quote(expression)))
        assert answer['status'] == 'success', answer
        return answer['data']['result']

    def target(self):
        """The only one; None before Prometheus has read its configuration."""
        targets = json.loads(self.ask('/api/v1/targets'))['data']['activeTargets']
        return targets[0] if targets else None

    def close(self):
        self.process.terminate()
        self.process.wait(harness.DEADLINE_S)
        self.log.close()


@pytest.fixture
def prometheus(tmp_path):
    made = []

    def start(**scrape):
        made.append(Prometheus(tmp_path, scrape))
        return made[-1]

    yield start
    for server in made:
        server.close()


def await_scrape(server):
    def has_been():
        target = server.target()
        if target is None:
            return False
        assert not target['lastError'], target
        return target['health'] == 'up' and server.query('mgpu_build_info')
    harness.until(has_been, 'a scrape')


def dashboard_queries():
    board = json.loads((CONTRIB / 'grafana' / 'mgpu.json').read_text())
    return [target['expr'].replace('$node', '.*') for panel in board['panels'] for target in panel['targets']]


def test_promtool_finds_nothing_to_say(make_instance):
    box = make_instance('sim:64x24G')
    box.wait(box.submit('-g', '1', '--', 'true'))
    connection = box.connection()
    connection.request('GET', '/metrics')
    text = connection.getresponse().read()
    connection.close()
    checked = subprocess.run([PROMTOOL, 'check', 'metrics'], input=text, capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stdout and not checked.stderr, checked


def test_prometheus_reads_every_metric(make_instance, prometheus):
    port = harness.free_port()
    box = make_instance('sim:4x24G', listen=f'127.0.0.1:{port}')
    job = box.submit('-g', '1', '--', 'sleep', '300')
    box.wait(job, 'running')
    server = prometheus(static_configs=[{'targets': [f'127.0.0.1:{port}']}])
    await_scrape(server)
    known = {row['metric']['__name__'] for row in server.query('{job="mgpu",__name__=~"mgpu_.*"}')}
    manual = (CONTRIB.parent / 'docs' / 'metrics.md').read_text()
    listed = re.findall(r'^\| `(mgpu_\w+)` \| (\w+)', manual, re.M)
    # Simulated GPUs have no memory errors to count, and are not tested.
    wanted = {name + ('_bucket' if kind == 'histogram' else '') for name, kind in listed} - {
        'mgpu_gpu_ecc_errors_total', 'mgpu_gpu_test_passed', 'mgpu_gpu_test_speed_ratio'}
    assert wanted <= known, wanted - known
    assert float(server.query('mgpu_jobs{state="running"}')[0]['value'][1]) == 1
    for expression in dashboard_queries():
        server.query(expression)
    # What was there before a restart goes on, and no scrape after it fails.
    box.restart()
    harness.until(lambda: server.query('resets(mgpu_job_wait_seconds_count[1m]) > 0'), 'a scrape after the restart')
    await_scrape(server)


def test_prometheus_comes_from_another_machine_with_a_token(make_instance, prometheus, tmp_path):
    port = harness.free_port()
    box = make_instance('sim:4x24G', listen=f'0.0.0.0:{port}')
    (tmp_path / 'token').write_text(box.mgpu('token', 'create', check=True).out.split()[0])
    server = prometheus(static_configs=[{'targets': [f'127.0.0.1:{port}']}], scheme='https',
                        authorization={'credentials_file': str(tmp_path / 'token')},
                        tls_config={'ca_file': f'{box.state_dir}/store/tls/authority.crt', 'server_name': 'mgpud'})
    await_scrape(server)


def test_every_query_of_the_dashboard_names_a_metric():
    listed = set(re.findall(r'^\| `(mgpu_\w+)`', (CONTRIB.parent / 'docs' / 'metrics.md').read_text(), re.M))
    for expression in dashboard_queries():
        for name in re.findall(r'mgpu_\w+', expression):
            assert re.sub(r'_bucket$', '', name) in listed, expression


def test_the_alerts_fire_when_they_should():
    rules = CONTRIB / 'prometheus'
    for command in ('check', 'rules', 'mgpu.rules.yml'), ('test', 'rules', 'mgpu.rules.test.yml'):
        done = subprocess.run([PROMTOOL, *command], cwd=rules, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
    # Each alert is tried.
    alerts = re.findall(r'- alert: (\w+)', (rules / 'mgpu.rules.yml').read_text())
    tried = (rules / 'mgpu.rules.test.yml').read_text()
    assert [name for name in alerts if f'alertname: {name}\n' not in tried] == []
