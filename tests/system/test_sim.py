# SPDX-License-Identifier: MIT
"""mgpu-sim: the honesty gate against the reference simulators, determinism, and what it says to bad input.

The traces are those of tests/traces (README there), or of the folder in MGPU_TRACES.
"""

import csv
import json
import os
import re
import subprocess
import xml.etree.ElementTree

import pytest

import harness

TRACES = os.environ.get('MGPU_TRACES', os.path.join(harness.ROOT, 'tests', 'traces'))
CUTS = {'philly_ee9e8c': '22x8', 'philly_6c71a0': '7x8', 'philly_w1': '64x8', 'hpc2n_cut': 'pool:128'}
NAMES = {'fifo': 'fifo', 'sjf': 'sjf', 'qssf': 'qssf', 'srtf': 'srtf', 'tiresias': 'las'}
EXACTLY = ('fifo', 'sjf', 'qssf')
TENTH_S = 0.1
PREEMPTIVE_PART = 0.001
FGD_POINTS = 0.15

needs_traces = pytest.mark.skipif(not os.path.isdir(TRACES), reason=f'no traces in {TRACES}')


def sim(*words, status=0):
    """Runs mgpu-sim and returns (standard output, standard error)."""
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), *map(str, words)],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == status, done.stderr
    assert not harness.SANITIZER.search(done.stderr), done.stderr
    return done.stdout, done.stderr


def trace(name):
    return os.path.join(TRACES, name)


def references():
    """(trace, reference policy) of refsim's rows for the policies of the gate, with their figures."""
    if not os.path.isdir(TRACES):
        return
    with open(trace('reference_results.csv'), encoding='utf-8') as file:
        for row in csv.DictReader(file):
            if row['simulator'] == 'refsim' and row['policy'] in NAMES and row['estimate'] == 'exact':
                yield pytest.param(row, id=f'{row["trace"]}-{row["policy"]}')


@needs_traces
@pytest.mark.parametrize('row', list(references()))
def test_reference_modes_agree_with_the_reference_simulator(row):
    out, _ = sim('run', trace(row['trace'] + '.csv'), '--cluster', CUTS[row['trace']], '--policy', NAMES[row['policy']],
                 '--reference', '--json')
    figures = json.loads(out)
    assert figures['jobs'] == int(row['n'])
    for ours, theirs in (('avg_jct_s', 'avgJCT'), ('avg_queue_delay_s', 'avgQ')):
        wanted = float(row[theirs])
        allowed = TENTH_S if row['policy'] in EXACTLY else PREEMPTIVE_PART * wanted
        assert abs(figures[ours] - wanted) <= allowed, (ours, figures[ours], wanted)


@needs_traces
def test_oracles_say_so():
    out, _ = sim('run', trace('philly_ee9e8c.csv'), '--cluster', '22x8', '--policy', 'sjf', '--json')
    assert json.loads(out)['oracle'] is True
    out, _ = sim('run', trace('philly_ee9e8c.csv'), '--cluster', '22x8', '--policy', 'sjf')
    assert 'ORACLE' in out
    out, _ = sim('run', trace('philly_ee9e8c.csv'), '--cluster', '22x8', '--json')
    assert json.loads(out)['oracle'] is False


@needs_traces
@pytest.mark.parametrize('workload', ('openb_pod_list_default', 'openb_pod_list_gpushare40'))
def test_packing_as_published_gives_the_published_allocation(workload):
    short = workload.removeprefix('openb_pod_list_')
    with open(trace('fgd_expected.csv'), encoding='utf-8') as file:
        rows = [row for row in csv.DictReader(file) if row['workload'] == workload and 'FGD' in row['sc_policy']]
    wanted = sum(float(row['alloc_130']) for row in rows) / len(rows)
    found = []
    for seed in range(42, 47):
        out, _ = sim('pack', trace(workload + '.csv'), '--nodes', trace('openb_node_list_gpu_node.csv'),
                     '--order', trace(f'openb_order_{short}_x1.3.txt'),
                     '--rank', trace(f'openb_noderank_{short}_x1.3.txt'),
                     '--seed', seed, '--placement', 'fgd-plain', '--json')
        found.append(json.loads(out)['marks'][-1]['allocated_percent'])
    assert abs(sum(found) / len(found) - wanted) <= FGD_POINTS, (found, wanted)


def test_packing_needs_no_times(tmp_path):
    path = tmp_path / 'pods.csv'
    path.write_text('name,gpus\na,4\nb,8\n')
    out, _ = sim('pack', path, '--nodes', '2x8', '--json')
    assert json.loads(out)['marks'][-1]['allocated_percent'] == 75, out
    _, err = sim('run', path, '--cluster', '2x8', status=1)
    assert 'has no column of submit times' in err


def test_equal_seeds_give_equal_bytes():
    words = ('run', 'synthetic:2000', '--cluster', '8x8', '--json', '--no-timing', '--seed')
    first, _ = sim(*words, 7)
    again, _ = sim(*words, 7)
    other, _ = sim(*words, 8)
    assert first == again
    assert first != other


def test_what_a_failing_node_interrupts_starts_again_from_the_beginning(tmp_path):
    path, durations = tmp_path / 'trace.csv', (36000, 7200, 7200, 60)
    path.write_text('submit,gpus,duration\n' + ''.join(f'{20000 * i},1,{duration}\n' for i, duration in enumerate(durations)))
    words = ('run', path, '--cluster', '2x1', '--json', '--no-timing', '--node-failures', '2h', '--repair', '30m')
    figures, seconds = json.loads(sim(*words)[0]), sum(durations)
    assert figures['interruptions'] > 0 and figures['lost_gpu_s'] > 0 and figures['jobs'] == len(durations)
    total = len(durations) * (figures['avg_jct_s'] - figures['avg_queue_delay_s'])
    assert abs(total - seconds - figures['lost_gpu_s']) < 1, 'each run counts in full, and what was lost is run again'
    assert json.loads(sim(*words)[0]) == figures
    assert json.loads(sim(*words, '--seed', 2)[0]) != figures
    assert json.loads(sim(*words[:6])[0])['interruptions'] == 0


def parking(path, rows, policy, model, *words, cluster='1x1'):
    path.write_text('submit,duration,gpus\n' + ''.join(f'{submit},{duration},{gpus}\n' for submit, duration, gpus in rows))
    return json.loads(sim('run', path, '--cluster', cluster, '--policy', policy, '--park', model, '--json', '--no-timing', *words)[0])


def test_who_gets_the_gpus_of_a_parked_job_waits_once_until_they_are_empty(tmp_path):
    """Each may be parked 2006 s after its start. The second, which is parked itself, has then worked 1006 s."""
    figures = parking(tmp_path / 'trace.csv', [(0, 20000, 1), (1000, 3000, 1), (3006, 10, 1)], 'srtf', 'save=3s,load=1000s')
    ends = (4012 + 1000 + 10, 5022 + 3000 - 1006 + 3, 7019 + 20000 - 2006 + 3)
    assert figures['preemptions'] == 2
    assert figures['avg_jct_s'] == (ends[0] - 3006 + ends[1] - 1000 + ends[2]) / 3


@pytest.mark.parametrize('where, begin', [('any', 2000), ('node', 5000), ('gpu', 5000)])
def test_a_parked_job_returns_where_the_model_says(tmp_path, where, begin):
    """The first job of two nodes is parked for one that runs until 5000 s; the other node is free from 2000 s on."""
    rows = [(0, 10000, 1), (0, 2000, 1), (100, 4900, 1)]
    figures = parking(tmp_path / 'trace.csv', rows, 'srtf', f'where={where},save=0s,load=0s', cluster='2x1')
    assert figures['preemptions'] == 1
    assert figures['max_jct_s'] == begin - 100 + 10000


def test_a_job_of_several_nodes_and_one_for_which_there_is_no_room_are_not_parked(tmp_path):
    for gpus, model in ((2, 'room=4'), (1, 'room=0'), (1, 'refuse=100%')):
        figures = parking(tmp_path / 'trace.csv', [(0, 10000, gpus), (0, 10000, 2 - gpus), (1000, 10, 1)][::2], 'srtf', model,
                          cluster='2x1' if gpus == 2 else '1x1')
        assert figures['preemptions'] == 0, model


def test_the_error_of_an_estimate_is_that_of_what_the_scheduler_used(tmp_path):
    """Jobs that were submitted together: once one has ended, what the others take is known, although their user's other jobs were short."""
    path = tmp_path / 'trace.csv'
    path.write_text('submit,user,gpus,duration\n' + ''.join(f'{100 * i},u,1,30\n' for i in range(60))
                    + ''.join(f'{10000 + i},u,1,50000\n' for i in range(100)))
    figures = json.loads(sim('run', path, '--cluster', '1x1', '--json', '--no-timing')[0])
    assert figures['median_estimate_error'] < 1.5


def test_broken_lines_stop_the_run_unless_they_are_skipped(tmp_path):
    path = tmp_path / 'trace.csv'
    path.write_text('submit,gpus,duration\n0,1,10\n5,many,10\n9,1,10\n')
    _, err = sim('run', path, '--cluster', '1x8', status=1)
    assert f'{path}:3: number of GPUs' in err
    out, err = sim('run', path, '--cluster', '1x8', '--skip-bad', '--json')
    assert 'skipped 1 invalid line' in err
    assert json.loads(out)['jobs'] == 2 and json.loads(out)['bad_lines'] == 1


def test_an_openb_list_runs_on_its_own_models(tmp_path):
    nodes, pods = tmp_path / 'nodes.csv', tmp_path / 'pods.csv'
    nodes.write_text('sn,cpu_milli,memory_mib,gpu,model\na,8000,8192,1,T4\nb,8000,8192,1,P100\n')
    pods.write_text('name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n'
                    'p,1000,1024,1,1000,P100,0,10\nq,1000,1024,1,1000,P100,0,10\nr,1000,1024,1,500,T4,0,10\n')
    figures = json.loads(sim('run', pods, '--cluster', nodes, '--json')[0])
    assert figures['max_queue_delay_s'] == 10 and figures['makespan_s'] == 20


def test_drawings_are_valid_svg_with_a_bar_per_run(tmp_path):
    path, gantt, plot = tmp_path / 'trace.csv', tmp_path / 'gantt.svg', tmp_path / 'plot.svg'
    path.write_text('submit,gpus,duration,user\n0,2,100,<ada>\n5,1,60,bo\n7,2,50,bo\n')
    sim('run', path, '--cluster', '1x2', '--policy', 'fifo', '--gantt', gantt, '--plot', plot)
    root = xml.etree.ElementTree.parse(gantt).getroot()
    titles = [title.text for title in root.iter('{http://www.w3.org/2000/svg}title')]
    assert sum('<ada>' in title for title in titles) == 1
    assert sum(', bo: ' in title for title in titles) == 2
    lines = list(xml.etree.ElementTree.parse(plot).getroot().iter('{http://www.w3.org/2000/svg}polyline'))
    assert len(lines) == 3


def journal(*events):
    """The text of a journal: its first line, a start, a node with one GPU, and these events."""
    start = {'type': 'cluster', 'at_ms': 900, 'change': {'kind': 'settings', 'text': 'policy=fifo\n'}}
    node = {'type': 'cluster', 'at_ms': 1000, 'change': {
        'kind': 'node_up', 'node': 'box', 'cpu_milli': 8000,
        'devices': [{'index': 0, 'uuid': 'GPU-a', 'model': 'T4', 'memory_bytes': 16000000000}]}}
    lines = [{'schema': 'mgpu-journal/v1'}]
    lines += [{'seq': seq, **event} for seq, event in enumerate((start, node, *events), 1)]
    return ''.join(json.dumps(line) + '\n' for line in lines)


def submitted(job, at_ms, **ask):
    return {'type': 'submitted', 'job': job, 'at_ms': at_ms, 'uid': 7, 'gid': 7, 'ask': {'gpus': 1, **ask}}


def allocated(job, at_ms):
    return {'type': 'allocated', 'job': job, 'attempt': 1, 'at_ms': at_ms, 'node': 'box', 'gpus': [{'index': 0, 'uuid': 'GPU-a'}]}


def started(job, at_ms):
    return {'type': 'started', 'job': job, 'attempt': 1, 'at_ms': at_ms}


def ended(job, at_ms, run_ms):
    return {'type': 'ended', 'job': job, 'attempt': 1, 'at_ms': at_ms, 'ended_by': 'exit', 'exit_code': 0, 'run_ms': run_ms}


TWO_JOBS = (submitted(1, 2000), allocated(1, 2000), started(1, 2100), submitted(2, 3000), ended(1, 5100, 3000),
            allocated(2, 5100), started(2, 5200), ended(2, 6200, 1000))


def test_a_journal_replays_to_the_same_decisions(tmp_path):
    path = tmp_path / 'journal.ndjson'
    path.write_text(journal(*TWO_JOBS))
    assert sim('journal', path)[0] == '2 decisions, all identical (10 events, 1 start of mgpud)\n'
    path.write_text(journal(*TWO_JOBS[:2], submitted(2, 3000), submitted(3, 3001), ended(1, 5100, 3000), allocated(3, 5100)))
    assert 'in the journal job 3 starts on box:0; here job 2 starts on box:0' in sim('journal', path, status=1)[1]
    path.write_text(journal(submitted(1, 2000), started(1, 2100)))
    assert 'in the journal no decision; here job 1 starts on box:0' in sim('journal', path, status=1)[1]


@pytest.mark.parametrize('text, sentence', [
    ('', 'has no events'),
    ('{"schema": "mgpu-journal/v2"}\n', 'not a journal'),
    (journal({'type': 'started', 'job': 9, 'at_ms': 2000}), 'there is no job 9'),
    (journal({'type': 'exploded', 'job': 9, 'at_ms': 2000}), "unknown event 'exploded'"),
    (journal({'type': 'submitted', 'job': 1, 'at_ms': 2000}), 'without an "ask"'),
    (journal(submitted(1, 2000, gpu='many')), "no key 'gpu'"),
    (journal(submitted(1, 500)), 'earlier than the one before'),
])
def test_a_journal_that_cannot_be_is_refused_with_the_reason(tmp_path, text, sentence):
    path = tmp_path / 'journal.ndjson'
    path.write_text(text)
    assert sentence in sim('journal', path, status=1)[1]


def test_a_journal_is_a_workload_too(tmp_path):
    path = tmp_path / 'journal.ndjson'
    path.write_text(journal(*TWO_JOBS))
    figures = json.loads(sim('run', path, '--cluster', '1x1', '--json')[0])
    assert figures['jobs'] == 2 and figures['max_queue_delay_s'] == 2  # 3 s of work from 0 s on, submitted at 1 s


def trial(path, *words):
    return {variant['settings']: variant for variant in json.loads(sim('tune', path, '--json', *words)[0])['variants']}


def busy_month(tmp_path):
    """A journal of twenty days on one GPU: each day a job of an hour, and behind it ten of a minute."""
    events, number = [], 0
    for day in range(20):
        at = 10_000 + day * 86_400_000
        for job in range(11):
            run_ms = 3_600_000 if job == 0 else 60_000
            number += 1
            events.append(submitted(number, at + job))
        start = at
        for job in range(11):
            run_ms = 3_600_000 if job == 0 else 60_000
            first = number - 10 + job
            events += [allocated(first, start + 20), started(first, start + 20), ended(first, start + 20 + run_ms, run_ms)]
            start += run_ms + 20
    path = tmp_path / 'month.ndjson'
    path.write_text(journal(*events))
    return path


def test_tuning_takes_cluster_and_settings_from_the_journal_and_finds_what_is_better(tmp_path):
    path = busy_month(tmp_path)
    out, _ = sim('tune', path)
    assert '220 jobs of 1 user in 19d' in out and 'on 1 node with 1 GPU (from the journal)' in out, out
    assert re.search(r'^now: policy=fifo,', out, re.M), out
    assert not re.search(r'^policy=fifo ', out, re.M), 'what is in force is not tried again'
    variants = trial(path, '--try', 'policy=learnt', '-t', 'policy=fifo', '-t', 'reservations=0')
    now, alike, learnt = list(variants.values())[0], variants['policy=fifo'], variants['policy=learnt']
    assert alike['avg_queue_delay'] == {**now['avg_queue_delay'], 'ratio': 1.0}
    assert now['avg_queue_delay']['value'] == pytest.approx((3600 * 10 + 60 * 45) / 11, abs=1)
    assert learnt['avg_queue_delay']['verdict'] == 'better' and learnt['avg_queue_delay']['high'] < 0.5, learnt
    assert variants['reservations=0']['avg_queue_delay']['verdict'] == 'unclear'


def test_tuning_tries_parking_for_shorter_jobs_on_a_single_node_and_says_what_it_assumes(tmp_path):
    path = tmp_path / 'trace.csv'
    lines = ['submit,duration,gpus,user,command,walltime_req']
    for day in range(20):
        lines.append(f'{day * 86400},36000,1,ada,train,40000')
        lines += [f'{day * 86400 + 7200 + 600 * i},60,1,bo,evaluate,120' for i in range(10)]
    path.write_text('\n'.join(lines) + '\n')
    out, _ = sim('tune', path, '--cluster', '1x1')
    assert re.search(r'^park=auto +0\.[0-4]\d \(0\.\d+-0\.\d+\)\+', out, re.M), out
    assert 'park=auto: the replay assumes that every job can be parked' in out and 'takes 5 s, and 12 s for each of its GPUs.' in out, out
    assert 'park=auto' not in sim('tune', path, '--cluster', '2x1')[0], 'the rule is for single nodes'


def test_tuning_says_the_same_each_time_and_draws_it(tmp_path):
    path, plot = busy_month(tmp_path), tmp_path / 'tune.svg'
    words = ('tune', path, '--try', 'policy=learnt', '--try', 'policy=fifo-skip,age-cap=3d', '--plot', plot)
    assert sim(*words)[0] == sim(*words, '--jobs', '1')[0]
    circles = list(xml.etree.ElementTree.parse(plot).getroot().iter('{http://www.w3.org/2000/svg}circle'))
    assert len(circles) == 2 * 4
    assert trial(path, '--try', 'policy=learnt')['policy=learnt'] == trial(path, '--try', 'policy=learnt')['policy=learnt']


def test_tuning_compares_with_settings_that_are_named(tmp_path):
    variants = trial(busy_month(tmp_path), '--now', 'policy=learnt', '--try', 'policy=fifo')
    assert next(iter(variants)).startswith('policy=learnt,')
    assert variants['policy=fifo']['avg_queue_delay']['verdict'] == 'worse'


@pytest.mark.parametrize('words, sentence', [
    (('--try', 'policy=fofo'), "did you mean 'fifo'?"),
    (('--try', 'colour=red'), "unknown setting 'colour'"),
    (('--try', 'policy'), 'is not NAME=VALUE'),
    (('--try', 'policy=srtf'), 'needs the real durations'),
    (('--try', 'reservations=many'), 'reservations'),
    (('--try', 'park=aut'), "did you mean 'auto'?"),
    (('--jobs', '0'), 'outside 1 to 64'),
])
def test_a_variant_that_cannot_be_is_refused(tmp_path, words, sentence):
    assert sentence in sim('tune', busy_month(tmp_path), *words, status=2)[1]


def test_tuning_needs_a_cluster_for_what_is_no_journal(tmp_path):
    path = tmp_path / 'trace.csv'
    path.write_text('submit,duration,gpus\n0,10,1\n1,10,1\n')
    assert 'name it: --cluster' in sim('tune', path, status=1)[1]
    assert 'now: policy=default' in sim('tune', path, '--cluster', '1x1')[0]


def test_every_key_of_the_figures_is_in_the_manual():
    with open(os.path.join(harness.ROOT, 'man', 'mgpu-sim.1.scd'), encoding='utf-8') as source:
        manual = source.read()
    figures = json.loads(sim('run', 'synthetic:20', '--cluster', '1x4', '--json')[0])
    keys = set(figures) | set(figures['timing'])
    parts = ('avg_', 'median_', 'p90_', 'p99_', 'max_')
    unknown = [key for key in keys if key not in manual and
               not (key.startswith(parts) and key.split('_', 1)[1] in manual)]
    assert unknown == []


@pytest.mark.parametrize('words, sentence', [
    ((), 'usage: mgpu-sim COMMAND'),
    (('rnu',), "unknown command 'rnu'. Did you mean 'run'?"),
    (('run',), 'run requires a trace'),
    (('run', 'synthetic:5'), 'run requires a cluster'),
    (('run', 'synthetic:5', '--cluster', '1x8', '--policy', 'fofi'), "did you mean 'fifo'?"),
    (('run', 'synthetic:5', '--cluster', '1x8', '--estimate', 'guess'), "unknown --estimate 'guess'"),
    (('run', 'synthetic:5', '--cluster', '1x8', '--max-jobs', '0'), '--max-jobs'),
    (('check', '--runs', '0'), '--runs'),
    (('bench', '--nodes', '10', '--scale', '100'), '--scale 100 leaves no node'),
    (('pack',), 'pack requires a list of pods'),
    (('run', 'synthetic:5', '--cluster', '8by8'), "neither NODESxGPUS"),
    (('run', 'synthetic:5', '--cluster', '1x900'), 'with up to 256 GPUs each'),
])
def test_wrong_words_are_answered_by_a_sentence(words, sentence):
    assert sentence in sim(*words, status=2)[1]


@pytest.mark.parametrize('words, sentence', [
    (('run', '/nonexistent', '--cluster', '1x8'), 'cannot read /nonexistent'),
    (('run', 'synthetic:5', '--cluster', '1x8', '--policy', 'sjf', '--estimate', 'history'), 'cannot be used with'),
    (('run', 'synthetic:5', '--cluster', '1x8', '--estimate', 'trace'), 'the trace has no predictions'),
    (('check', '--replay', '/nonexistent'), 'cannot read /nonexistent'),
])
def test_what_cannot_be_done_is_said_in_a_sentence(words, sentence):
    assert sentence in sim(*words, status=1)[1]


def test_an_oracle_orders_by_the_predictions_of_the_trace_if_told_to(tmp_path):
    trace = tmp_path / 'trace.csv'
    trace.write_text('submit,user,gpus,duration,pred_duration\n0,a,1,100,100\n1,b,1,10,100\n2,c,1,50,5\n')
    waits = {}
    for estimate in ('exact', 'trace'):
        got = json.loads(sim('run', trace, '--cluster', '1x1', '--policy', 'easy-sjf', '--estimate', estimate, '--json')[0])
        assert got['oracle'] is (estimate == 'exact'), got
        waits[estimate] = got['avg_queue_delay_s']
    assert waits['exact'] == (0 + 99 + 108) / 3 and abs(waits['trace'] - (0 + 149 + 98) / 3) < 0.01, waits


def test_random_workloads_keep_the_promises():
    out, _ = sim('check', '--seed', '1', '--runs', os.environ.get('MGPU_CHECK_RUNS', '100'))
    assert 'all promises kept' in out


def test_a_cluster_that_cannot_be_read_is_wrong_usage(tmp_path):
    path = tmp_path / 'one.csv'
    path.write_text('submit_time,duration,gpus\n0,10,1\n', encoding='ascii')
    _, err = sim('run', path, '--cluster', '0x8', status=2)
    assert 'cluster' in err or '0x8' in err, err
    sim('run', path, '--cluster', 'nonsense', status=2)


def test_one_of_a_thing_is_no_plural(tmp_path):
    path = tmp_path / 'one.csv'
    path.write_text('submit_time,duration,gpus,user\n0,10,1,ana\n', encoding='ascii')
    out, _ = sim('run', path, '--cluster', '1x1')
    assert '(1 node, 1 GPU): 1 job of 1 user\n' in out, out
