# SPDX-License-Identifier: MIT
"""A program started without options does what its help, its pages and `mgpu config list` show.

The rows come from the help that the programs print, so a new setting is covered without a change here. Not started: mgpu-tls and
mgpu-shepherd, which have no defaults, and mgpu-compat and mgpu-slurm, whose options are those of other programs.
"""

import datetime
import json
import os
import re
import subprocess

import pytest

import harness
from cluster import Cluster

LIMIT_S = 60
INTERNAL = {'keep', 'link-fd'}  # of mgpu-agent: given by one of its processes to another
UNITS_MS = {'s': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}

def help_of(program, *words):
    """The page with each option on one line, however wide it is shown."""
    done = subprocess.run([f'{harness.build_folder()}/{program}', *words, '--help'], check=True, capture_output=True, text=True,
                          timeout=LIMIT_S)
    return re.sub(r'\n {10,}', ' ', done.stdout)


def rows_of(program):
    """The long options of a program with the default that its help shows, or None."""
    rows = {}
    name = None
    for line in help_of(program).splitlines():
        option = re.match(r'\s+(?:-\w, )?--([\w-]+)', line)
        name = option[1] if option else name
        if name:
            shown = re.search(r' \(default ([^;)]*)\)$', line)
            rows[name] = shown[1] if shown else rows.get(name)
    return rows


def paragraphs_of(page):
    """Of each option of a page the paragraph that describes it, without its marks."""
    with open(f'{harness.ROOT}/man/{page}', encoding='utf-8') as source:
        text = source.read()
    found = {}
    for paragraph in re.findall(r'^\*-[^\t]*?\n(?:\t.*\n|\n(?=\t))+', text, re.MULTILINE):
        heading = paragraph.split('\t', 1)[0]
        for name in re.findall(r'--([a-z][\w-]*)', heading):
            found[name] = re.sub(r'[*_\\]', '', paragraph)
    return found


@pytest.mark.parametrize(('program', 'page'), [('mgpud', 'mgpud.8.scd'), ('mgpu-agent', 'mgpu-agent.8.scd')])
def test_the_page_of_a_daemon_has_the_defaults_of_its_help(program, page):
    rows, paragraphs = rows_of(program), paragraphs_of(page)
    assert len(rows) > 20, rows
    missing, wrong = set(rows) - set(paragraphs) - INTERNAL, []
    assert not missing, f'{page} does not describe {missing}'
    for name, shown in rows.items():
        if shown in (None, 'false') or name in INTERNAL:
            continue
        text = paragraphs[name]
        if 'As in mgpud(8)' in text:
            continue  # the next test compares the two programs
        words = {word.strip('.,;:()') for word in text.split()} | {word.strip('.,;()') for word in text.split()}
        if 'default' not in text.lower() or shown not in words:
            wrong.append(f'--{name}: the default that the help shows, {shown}, is not in the page')
    for name, text in paragraphs.items():
        known = {rows[other] for other, same in paragraphs.items() if same == text and other in rows}
        for stated in re.findall(r'[Dd]efault:? (\d\S*)', text):
            if stated.rstrip('.,;)') not in known:
                wrong.append(f'--{name}: the page says {stated}, the help {known}')
    assert not wrong, '\n'.join(wrong)


def test_the_agent_and_mgpud_agree_on_what_both_have():
    daemon, agent = rows_of('mgpud'), rows_of('mgpu-agent')
    both = {name for name in daemon if agent.get(name) is not None}
    assert both, agent
    assert {name: daemon[name] for name in both} == {name: agent[name] for name in both}


def milliseconds(text):
    if text in ('none', 'never', '0'):
        return 0
    return sum(int(number) * UNITS_MS[unit] for number, unit in re.findall(r'(\d+)([smhd])', text))


def in_force(record, name):
    """What the journal's record of the settings in force has for this setting, and as which form; or None."""
    key = name.replace('-', '_')
    for suffix, form in (('', str), ('_ms', milliseconds), ('_milli', lambda text: int(text) * 1000),
                         ('_seconds', lambda text: float(text) * 3600)):
        for stem in (key, key.removesuffix('s'), key.removesuffix('_hours')):
            if stem + suffix in record:
                return record[stem + suffix], form
    return None


def as_text(value):
    return format(float(value), 'g') if re.fullmatch(r'-?[\d.]+', str(value)) else str(value)


@pytest.fixture(name='bare')
def started_without_options(someone):
    """An mgpud without a single option, in a home and a network of its own, where the usual ports are free."""
    if not harness.IS_ROOT or subprocess.run(['unshare', '-n', 'true'], check=False).returncode != 0:
        pytest.skip('there can be no network namespace here')
    box = harness.Instance(gpus='none', user=someone)
    home = f'{box.place}/home'
    os.makedirs(f'{home}/run')
    for folder in (home, f'{home}/run'):
        os.chown(folder, someone.uid, someone.gid)
        os.chmod(folder, 0o700)
    environment = dict(box.environment(), HOME=home, XDG_RUNTIME_DIR=f'{home}/run')
    box.environment = lambda: environment
    box.user = harness.User('root')  # who makes the network; mgpud is somebody's
    box.command = ['unshare', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', 'setpriv',
                   f'--reuid={someone.uid}', f'--regid={someone.gid}', '--init-groups', f'{harness.programs()}/mgpud']
    box.run_dir, box.state_dir = f'{home}/run/mgpu', f'{home}/.local/state/mgpu'
    box.socket = f'{box.run_dir}/mgpud.sock'
    box.start()
    yield box
    box.close()


def test_a_start_without_options_obeys_what_config_list_and_the_help_show(bare):
    listed = bare.mgpu('config', 'list', '--json', check=True).json['settings']
    assert {row['origin'] for row in listed} == {'default'}, listed
    shown = {name: value for name, value in rows_of('mgpud').items() if value is not None}
    values = {row['key']: row['value'] for row in listed}
    assert {name: values.get(name) for name in shown if name in values} == \
        {name: value for name, value in shown.items() if name in values}
    assert set(shown) - set(values) == {'config'}, 'every setting of the help is listed'
    journal = bare.mgpu('journal', 'export', check=True).out.splitlines()
    record = json.loads(journal[0])['settings']
    record = record if isinstance(record, dict) else dict(line.split('=', 1) for line in record.splitlines())
    compared = []
    for name, value in values.items():
        found = in_force(record, name)
        if found:
            text, form = found
            assert as_text(text) == as_text(form(value)), f'{name}: {value} is shown, {text} is in force'
            compared.append(name)
    assert len(compared) >= 10, (compared, record)


def test_a_start_without_options_listens_where_the_help_says(bare):
    shown = rows_of('mgpud')
    sockets = subprocess.run(['nsenter', '-t', str(bare.process.pid), '-n', 'ss', '-Hltn'], check=True,
                             capture_output=True, text=True, timeout=LIMIT_S).stdout
    assert shown['listen'] in sockets, sockets
    assert shown['nodes-listen'] not in sockets, 'no node was ever invited'
    bare.mgpu('node', 'token', check=True)
    port = shown['nodes-listen'].rsplit(':', 1)[1]

    def are_nodes_awaited():
        with open(f'/proc/{bare.process.pid}/net/tcp6', encoding='ascii') as table:
            return f':{int(port):04X} ' in table.read()
    assert harness.until(are_nodes_awaited, f'mgpud listens on port {port}')


# --- a joined machine ---

BARE_ROOT = """set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
hostname bare
exec "$@"
"""


def inside(node, path):
    """A path as the agent sees it, which has a /run and a /var/lib of its own."""
    return f'/proc/{node.process.pid}/root{path}'


def processes_of(node, text):
    """Those of this machine alone: another one, such as that of a test beside this, may have the same directories and commands."""
    def mounts(pid):
        try:
            return os.readlink(f'/proc/{pid}/ns/mnt')
        except OSError:
            return None  # it has ended
    return {pid: line for pid, line in harness.processes(text).items() if mounts(pid) == mounts(node.process.pid)}


@pytest.fixture(name='joined', scope='module')
def joined_without_options():
    """mgpu-agent of root that has joined, and was then started without a single option."""
    if not harness.IS_ROOT or subprocess.run(['unshare', '-mu', 'true'], check=False).returncode != 0:
        pytest.skip('there can be no namespaces here')
    ana = harness.make_user('mgpu-ta', 'mgpu-tg')
    with Cluster(count=0, client=ana, arguments=('--min-uid', '1')) as cluster:
        node = cluster.add('bare', prefix=['unshare', '-mu', 'sh', '-c', BARE_ROOT, 'sh'])
        agent = f'{harness.programs()}/mgpu-agent'
        node.command = [*node.command[:node.command.index(agent)], 'sh', '-c',
                        f'{agent} --join-only --join {cluster.ticket()} && exec {agent}']
        node.spawn()
        node.await_up()
        cluster.box.mgpu('node', 'drain', 'head', check=True, user=cluster.box.user)
        yield cluster


def folder_of_root(option):
    """The default of root in the page of mgpud, to which the page of mgpu-agent refers."""
    assert f'--{option}' in paragraphs_of('mgpu-agent.8.scd')[option] and \
        'default directories are those of mgpud' in ' '.join(paragraphs_of('mgpu-agent.8.scd')[option].split())
    return re.search(r'Default: (/\S+?),', paragraphs_of('mgpud.8.scd')[option])[1]


def test_a_joined_machine_without_options_uses_the_documented_directories(joined):
    node = joined.nodes['bare']
    assert node.process.args[-1].endswith(f'exec {harness.programs()}/mgpu-agent'), 'it has no options'
    assert os.path.exists(inside(node, f'{folder_of_root("run-dir")}/link.sock'))
    assert os.path.isdir(inside(node, f'{folder_of_root("state-dir")}/node/tls'))
    assert joined.node('bare')['up'], 'it has the name of its host'


def test_a_joined_machine_without_options_obeys_what_its_help_shows(joined):
    node, box, shown = joined.nodes['bare'], joined.box, rows_of('mgpu-agent')
    features = {row['name']: row['text'] for row in joined.node('bare')['features']}
    assert shown['sendmail'] in json.dumps(features), features
    job = box.post_job(['sleep', '60012'], gpus=0)
    box.wait(job, 'running')
    [pid] = harness.until(lambda: [one for one, line in processes_of(node, 'sleep 60012').items() if line == 'sleep 60012'], 'it runs')
    try:
        with open(f'/proc/{pid}/cgroup', encoding='ascii') as lines:
            groups = [line.rstrip('\n').split(':', 2) for line in lines]
        with open(f'/proc/{node.process.pid}/cgroup', encoding='ascii') as lines:
            own = {line.rstrip('\n').split(':', 2)[1]: line.rstrip('\n').split(':', 2)[2] for line in lines}
        for _, controllers, group in groups:
            assert os.path.commonpath([group, own[controllers]]) == own[controllers], \
                f'--cgroup: {group} is not below the agent\'s own, {own[controllers]}'
        limits = [f'/sys/fs/cgroup/{controllers}{group}/pids.max' for _, controllers, group in groups if controllers in ('pids', '')]
        limits = [path for path in limits if os.path.exists(path)]
        for path in limits[:1]:
            with open(path, encoding='ascii') as source:
                assert 0 < int(source.read()) <= 32768, f'--pids-max {shown["pids-max"]}: {path}'
        exes = {os.readlink(f'/proc/{one}/exe') for one in processes_of(node, f' {folder_of_root("run-dir")}/spool/')}
        assert exes == {f'{harness.programs()}/mgpu-shepherd'}, '--shepherd: the one beside the agent'
    finally:
        box.api('POST', f'/jobs/{job}/cancel', {'grace_s': 0})
        box.wait(job)


def test_a_joined_machine_without_options_refuses_system_accounts(joined):
    """mgpud would let them run; the node's own default of --min-uid does not."""
    with open('/etc/login.defs', encoding='utf-8') as source:
        lowest = int(re.search(r'^UID_MIN\s+(\d+)', source.read(), re.MULTILINE)[1])
    daemon = harness.User('daemon')
    assert daemon.uid < lowest
    job = joined.box.post_job(['true'], user=daemon, gpus=0, cwd='/')
    harness.until(lambda: f'of uid {lowest} and above' in (joined.box.job(job, user=daemon)['message'] or ''), 'a refusal by the node')
    joined.box.mgpu('cancel', job, check=True, user=daemon)


# --- the command line ---

def option_paragraph(page, option):
    """Of a page of a verb, which is joined to those of the options that verbs share."""
    for name in (page, 'job-options.scd'):
        found = paragraphs_of(f'verbs/{name}')
        if option in found:
            return ' '.join(found[option].split())
    raise AssertionError(f'{page} does not describe --{option}')


def days(text):
    return (datetime.datetime.fromisoformat(text) - datetime.datetime.now(datetime.timezone.utc)).total_seconds() / 86400


def test_a_submit_without_options_requests_what_the_pages_say(bare):
    refused = bare.mgpu('submit', '--', 'true', user=bare.client)
    assert 'requested 1 GPU;' in refused.err and 'Default: 1,' in option_paragraph('submit.scd', 'gpus'), refused
    job = bare.job(bare.submit('--hold', '-g', 0, '--', '/bin/true', user=bare.client), user=bare.client)
    grace = rows_of('mgpud')['grace']
    grace = f'Default: that of mgpud(8), {milliseconds(grace) // 1000} s'
    for option, words, key, value in (('priority', 'Default: 0.', 'priority', 0), ('name', 'Default: the name of the command', 'name', 'true'),
                                      ('nodes', 'Default: as few nodes as possible', 'nodes', None),
                                      ('input', 'otherwise, /dev/null', 'input', None), ('grace', grace, 'grace_s', None)):
        assert words in option_paragraph('submit.scd', option), option
        assert job.get(key) == value, (option, {name: text for name, text in job.items() if option in name})


def test_tokens_without_options_last_as_long_as_the_pages_say(bare):
    shown = help_of('mgpu', 'token', 'create')
    assert 'Default: 30 days' in option_paragraph('token.scd', 'expires') and re.search(r'--expires TIME .*\(30d\)', shown)
    assert 'Default: cli' in option_paragraph('token.scd', 'name') and re.search(r'--name NAME .*\(cli\)', shown)
    bare.mgpu('token', 'create', check=True, user=bare.client)
    [token] = bare.mgpu('token', 'list', '--json', check=True, user=bare.client).json['tokens']
    assert token['name'] == 'cli' and 29.9 < days(token['expires_at']) <= 30, token


def test_history_without_options_has_as_many_jobs_as_the_help_says(bare):
    shown = re.search(r'--limit N .*\((\d+);', help_of('mgpu', 'history'))[1]
    assert f'Default: {shown}.' in option_paragraph('history.scd', 'limit')
    array = bare.submit('-g', 0, '--array', f'1-{int(shown) + 5}', '--', 'true', user=bare.client)
    bare.mgpu('wait', array, check=True, user=bare.client)
    assert len(bare.mgpu('history', '-H', check=True, user=bare.client).out.splitlines()) == int(shown)


def test_a_screen_without_options_has_the_size_that_the_help_says(bare):
    shown = re.search(r'--size COLUMNSxROWS .*\(default (\S+)\)', help_of('mgpu', 'top'))[1]
    screens = [bare.mgpu('top', '--once', *words, check=True, user=bare.client).out for words in ((), ('--size', shown))]
    lines = [[re.sub(r'\d', '0', line) for line in screen.splitlines()] for screen in screens]
    assert lines[0] == lines[1]
    assert f'Default: {shown}.' in option_paragraph('top.scd', 'size')


# --- mgpu-sim and the programs of GPUs ---

TRACES = f'{harness.ROOT}/tests/traces'
# Of each command a short run, which prints the same whenever it is the same.
SIM = {'run': ('synthetic:300', '--cluster', '2x8', '--no-timing', '--no-progress', '--node-failures', '7d'),
       'check': ('--runs', '3'),
       'pack': (f'{TRACES}/openb_pod_list_default.csv', '--nodes', f'{TRACES}/openb_node_list_gpu_node.csv', '--order',
                f'{TRACES}/openb_order_default_x1.3.txt', '--rank', f'{TRACES}/openb_noderank_default_x1.3.txt', '--json')}
LONG = {('check', 'runs')}  # 1000 workloads take minutes


def sim_rows(command):
    """The options of which the help of a command of mgpu-sim ends with one value in parentheses."""
    return {found[1]: found[2] for found in re.finditer(r'^ .*--([\w-]+) .*\((\w+)(?:; [^)]*)?\)$',
                                                        help_of('mgpu-sim', command), re.MULTILINE)}


@pytest.mark.parametrize('command', sorted(SIM))
def test_a_simulation_without_an_option_is_that_with_the_value_of_the_help(command):
    def run(*words):
        return subprocess.run([f'{harness.build_folder()}/mgpu-sim', command, *SIM[command], *words], check=True, capture_output=True,
                              text=True, timeout=LIMIT_S).stdout
    rows = {name: value for name, value in sim_rows(command).items() if (command, name) not in LONG}
    assert rows, help_of('mgpu-sim', command)
    bare = {(): run(), **({('--park-auto',): run('--park-auto')} if command == 'run' else {})}
    for name, value in rows.items():
        needed = ('--park-auto',) if name.startswith('park-') else ()  # without which they mean nothing
        assert run(*needed, f'--{name}', value) == bare[needed], f'--{name}: the help of mgpu-sim {command} shows {value}'


@pytest.mark.parametrize('command', ['check', 'bench', 'pack', 'run', 'tune'])
def test_the_page_of_the_simulator_has_the_defaults_of_its_help(command):
    with open(f'{harness.ROOT}/man/mgpu-sim.1.scd', encoding='utf-8') as source:
        chapter = re.search(rf'^# {command.upper()}\n(.*?)(?=^# |\Z)', source.read(), re.MULTILINE | re.DOTALL)[1]
    for name, value in sim_rows(command).items():
        stated = re.findall(rf'\*--{name}\* (?:_\w+_ )?\((\w+)\)', chapter)
        assert set(stated) <= {value}, f'--{name}: the page says {stated}, the help {value}'


def test_the_programs_of_gpus_have_the_defaults_of_their_help_and_document():
    with open(f'{harness.ROOT}/docs/hardware.md', encoding='utf-8') as source:
        document = source.read()
    seconds = re.search(r'--time TIME [^(]*\(default\s+(\d+)\)', help_of('mgpu-gpu-kit'))[1]
    minutes = re.search(r'ends within (\d+) minutes', document)[1]
    assert 0 < int(minutes) * 60 - int(seconds) <= 60, 'stopping mgpud takes the rest'
    probes = [subprocess.run([f'{harness.build_folder()}/mgpu-gpu-test', '--cuda-library', f'{harness.ROOT}/README.md', *words, 'list'],
                             check=False, capture_output=True, text=True, timeout=LIMIT_S) for words in
              ((), *((f'--{name}', value) for name, value in rows_of('mgpu-gpu-test').items()
                     if value not in (None, 'auto')))]
    assert len({(probe.returncode, probe.stdout, probe.stderr) for probe in probes}) == 1, probes
