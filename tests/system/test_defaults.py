# SPDX-License-Identifier: MIT
"""A program started without options does what its help, its pages and `mgpu config list` show.

The rows come from the help that the programs print, so a new setting is covered without a change here.
"""

import json
import os
import re
import subprocess

import pytest

import harness

LIMIT_S = 60
INTERNAL = {'keep', 'link-fd'}  # of mgpu-agent: given by one of its processes to another
UNITS_MS = {'s': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}

def help_of(program):
    done = subprocess.run([f'{harness.programs()}/{program}', '--help'], check=True, capture_output=True, text=True,
                          timeout=LIMIT_S)
    return done.stdout


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
