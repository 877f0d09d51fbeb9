# SPDX-License-Identifier: MIT
"""The configuration file: optional, checked if present, and overridden by the command line."""

import ctypes.util
import grp
import os
import pty
import pwd
import re
import signal
import subprocess
import time

import pytest

import harness

LIMIT_S = 60


def refuse(place, text):
    """The error message of mgpud for an invalid file."""
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)
    done = subprocess.run([f'{harness.programs()}/mgpud', '--config', path], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 64, done
    return done.stderr.replace(place, '')


@pytest.mark.parametrize(('text', 'where', 'what'), [
    ('gpus: sim:2x8G\nlisen: none\n', '/mgpu.yaml:2', 'did you mean listen?'),
    ('gpus: [1,\n', '/mgpu.yaml:', 'expected'),
    ('users:\n\tada: {}\n', '/mgpu.yaml:2', 'YAML is indented with spaces'),
    ('gpus: lots\n', '/mgpu.yaml:1', 'lots'),
    ('cgroup: jobs\n', '/mgpu.yaml:1', 'does not begin with'),
    ('- gpus\n', '/mgpu.yaml:1', 'mapping'),
    ('foreign: kill\n', '/mgpu.yaml:1', 'one of avoid, fit-around, ignore'),
    ('foreign-load: 120%\n', '/mgpu.yaml:1', 'neither a fraction from 0 to 1'),
    ('share-max-memory: 1.5\n', '/mgpu.yaml:1', 'neither a fraction from 0 to 1'),
    ('gpus:\n  - none\n', '/mgpu.yaml:1', 'single value'),
    ('departments:\n  physics: { max-jobs: 2 }\n', '/mgpu.yaml:2', "unknown key 'max-jobs' of a department"),
    ('users:\n  root: { department: physics }\n', '/mgpu.yaml:2', "unknown key 'department' of a user"),
])
def test_a_mistake_in_the_file_is_told_with_its_line(place, text, where, what):
    said = refuse(place, text)
    assert where in said and what in said, said


@pytest.mark.smoke
def test_the_file_sets_what_the_command_line_leaves_open(make_instance, place):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8') as out:
        out.write('# all of it\nnode: here\ngpus: sim:5x8G\n')
    instance = make_instance(gpus='sim:2x8G', arguments=['--config', path])
    assert [gpu['node'] for gpu in instance.gpus()] == ['here', 'here'], 'the command line wins for the GPUs'


def test_an_empty_file_is_a_good_file(make_instance, place):
    path = f'{place}/mgpu.yaml'
    with open(path, 'w', encoding='utf-8'):
        pass
    instance = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    assert len(instance.gpus()) == 1


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as out:
        out.write(text)
    os.chmod(path, 0o644)


def settings(box, **options):
    answer = box.mgpu('config', 'list', '--json', check=True, **options).json
    return {row['key']: (row['value'], row['origin']) for row in answer['settings']}


def reload(box):
    """SIGHUP, and what mgpud said about it."""
    before = len(box.log())
    box.process.send_signal(signal.SIGHUP)
    said = ''
    deadline = time.monotonic() + LIMIT_S
    while 'settings were reloaded' not in said and 'settings were not changed' not in said:
        assert time.monotonic() < deadline, said
        box.mgpu('version', check=True)  # a turn of mgpud's loop
        said = box.log()[before:]
    return said


@pytest.mark.parametrize('is_detached', [True, False], ids=['detached', 'served'])
def test_reload_reads_the_files_again(make_instance, place, is_detached):
    """Also when mgpud left a terminal behind: its hangup is then no hangup."""
    path = f'{place}/mgpu.yaml'
    write(path, 'half-life: 1d\n')
    box = make_instance(gpus='sim:1x8G', arguments=['--config', path], start=not is_detached)
    main, side = pty.openpty()
    where = {'stdin': side, 'env': box.environment(), 'capture_output': True, 'text': True, 'check': False, 'cwd': '/'}
    try:
        if is_detached:
            assert subprocess.run([*box.command, '--detach'], **where).returncode == 0
        write(path, 'half-life: 2d\nuser-max-jobs: many\n')
        done = subprocess.run([*box.command, '--reload'], **where)
        assert (done.returncode, f'{path}:2' in done.stderr) == (64, True), done
        write(path, 'half-life: 2d\nusers:\n  no-such-user: { max-gpus: 1 }\n')
        done = subprocess.run([*box.command, '--reload'], **where)
        assert done.returncode == 0 and f"{path}:3: there is no user 'no-such-user'" in done.stderr, 'to who reloads, too'
        deadline = time.monotonic() + LIMIT_S
        while box.mgpu('config', 'get', 'half-life', check=True).out != '2d\n':
            assert time.monotonic() < deadline
    finally:
        os.close(main)
        os.close(side)
        if is_detached:
            assert subprocess.run([*box.command, '--stop'], **{**where, 'stdin': subprocess.DEVNULL}).returncode == 0


def test_drop_ins_and_where_each_setting_is_from(make_instance, place):
    path = f'{place}/mgpu.yaml'
    write(path, 'half-life: 1d\nuser-max-jobs: 7\n')
    write(f'{path}.d/10-site.yaml', '# site\nhalf-life: 2d\n')
    box = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    known = settings(box)
    assert known['half-life'] == ('2d', f'{path}.d/10-site.yaml:2')
    assert known['user-max-jobs'] == ('7', f'{path}:2')
    assert known['gpus'] == ('sim:1x8G', 'command line')
    assert known['age-cap'] == ('60d', 'default')
    assert box.mgpu('config', 'get', 'half-life', check=True).out == '2d\n'
    assert box.mgpu('config', 'get', '--origin', 'age-cap', check=True).out == '60d  (default)\n'
    done = box.mgpu('config', 'get', 'half-live')
    assert done.code == 3 and 'did you mean half-life?' in done.err, done
    assert box.mgpu('config', 'get').code == 2
    table = box.mgpu('config', 'list', '--origin', check=True).out
    assert 'ORIGIN' in table and '10-site.yaml:2' in table


def test_check_config_says_what_is_set_and_starts_nothing(place):
    path = f'{place}/mgpu.yaml'
    write(path, 'half-life: 1d\n')
    words = [f'{harness.programs()}/mgpud', '--config', path, '--check-config']
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (0, f'{path} is valid\nhalf-life: 1d ({path}:1)\n'), done
    write(path, 'half-life: long\n')
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 64 and f'{path}:1' in done.stderr and 'long' in done.stderr, done


@pytest.mark.smoke
def test_a_reload_takes_up_what_it_can_and_says_the_rest(make_instance, place):
    path = f'{place}/mgpu.yaml'
    write(path, 'user-max-gpus: 1\nnode: one\n')
    box = make_instance(gpus='sim:4x8G', arguments=['--config', path])
    assert 'limit of its owner is 1' in box.mgpu('submit', '-g', '2', 'true').err
    write(path, 'user-max-gpus: 2\nnode: two\npolicy: fifo\n')
    said = reload(box)
    assert 'user-max-gpus: 1 is now 2' in said and 'policy: default is now fifo' in said, said
    assert 'node: one is now two' in said and 'takes effect after a restart' in said and '3 changed' in said, said
    assert box.mgpu('run', '-g', '2', 'true').code == 0
    known = settings(box)
    assert known['node'][0] == 'one' and 'after a restart: two' in known['node'][1]
    assert known['policy'] == ('fifo', f'{path}:3')
    write(path, 'user-max-gpus: many\n')
    said = reload(box)
    assert f'{path}:1' in said and 'were not changed' in said
    assert settings(box)['user-max-gpus'][0] == '2'
    write(path, '')
    assert 'user-max-gpus: 2 is now 0' in reload(box)
    assert box.mgpu('run', '-g', '4', 'true').code == 0
    box.restart()
    export = box.mgpu('journal', 'export', user=box.user, check=True).out
    with open(f'{place}/journal', 'w', encoding='utf-8') as out:
        out.write(export)
    done = subprocess.run([os.path.join(harness.build_folder(), 'mgpu-sim'), 'journal', f'{place}/journal'], check=False,
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done


# --- roles ---

ROLES = ('viewer', 'user', 'operator', 'admin')

# what each route needs, by the least role that has it with another's job, and with one's own
ROUTES = [
    ('GET', '/jobs', None, 'viewer', 'viewer'),
    ('GET', '/jobs/{job}', None, 'viewer', 'viewer'),
    ('GET', '/jobs/{job}/wait?states=queued', None, 'viewer', 'viewer'),
    ('GET', '/jobs/{job}/why', None, 'viewer', 'viewer'),
    ('GET', '/gpus', None, 'viewer', 'viewer'),
    ('GET', '/nodes', None, 'viewer', 'viewer'),
    ('GET', '/users', None, 'viewer', 'viewer'),
    ('GET', '/config', None, 'viewer', 'viewer'),
    ('GET', '/reservations', None, 'viewer', 'viewer'),
    ('GET', '/version', None, 'viewer', 'viewer'),
    ('POST', '/jobs', {'command': 'true', 'hold': True}, 'user', 'user'),
    ('POST', '/jobs/{job}/hold', {}, 'operator', 'viewer'),
    ('POST', '/jobs/{job}/edit', {'name': 'other'}, 'operator', 'viewer'),
    ('POST', '/jobs/{job}/release', {}, 'operator', 'viewer'),
    ('GET', '/jobs/{job}/log', None, 'admin', 'viewer'),
    ('POST', '/gpus/pause', {'gpus': ['0']}, 'operator', 'operator'),
    ('POST', '/gpus/resume', {'gpus': ['0']}, 'operator', 'operator'),
    ('POST', '/gpus/policy', {'gpus': ['0'], 'policy': 'default'}, 'operator', 'operator'),
    ('POST', '/nodes/here/drain', {}, 'operator', 'operator'),
    ('POST', '/nodes/here/resume', {}, 'operator', 'operator'),
    ('POST', '/jobs', {'command': 'true', 'hold': True, 'priority': 5}, 'user', 'user'),
    ('GET', '/journal', None, 'admin', 'admin'),
    ('GET', '/tokens', None, 'viewer', 'viewer'),
    ('GET', '/tokens?all=1', None, 'admin', 'admin'),
    ('DELETE', '/tokens/999', None, 'viewer', 'viewer'),
    ('POST', '/jobs/{job}/cancel', {}, 'operator', 'viewer'),
]


@pytest.mark.root
@pytest.mark.parametrize('role', ROLES)
def test_each_route_for_each_role_and_owner(make_instance, place, ana, bo, role):
    path = f'{place}/mgpu.yaml'
    write(path, 'node: here\n')
    box = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    jobs = {'own': box.post_job('true', user=ana, hold=True), 'other': box.post_job('true', user=bo, hold=True)}
    write(path, f'node: here\nroles:\n  {role}: [{ana.name}]\n')
    reload(box)
    for method, route, body, least, least_own in ROUTES:
        for whose, job in jobs.items():
            answer = box.api(method, route.format(job=job), body, user=ana)
            allowed = ROLES.index(role) >= ROLES.index(least_own if whose == 'own' else least)
            assert (answer.status != 403) == allowed, (role, method, route, whose, answer)
            assert answer.status < 500 and answer.status != 401, (role, method, route, whose, answer)


@pytest.mark.root
def test_roles_of_groups_and_others(make_instance, place, ana, bo):
    path = f'{place}/mgpu.yaml'
    write(path, 'roles:\n  operator: "group:mgpu-tg"\n  others: viewer\n')
    box = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    box.mgpu('gpu', 'pause', '0', user=ana, check=True)
    box.mgpu('gpu', 'resume', '0', user=ana, check=True)
    done = box.mgpu('submit', 'true', user=bo)
    assert done.code == 4 and 'viewer' in done.err and 'roles' in done.err, done
    assert box.mgpu('ps', user=bo).code == 0


# --- one's own defaults ---

def test_ones_own_defaults_are_weaker_than_the_command_line(make_instance, place):
    box = make_instance(gpus='sim:4x8G')
    env = {'XDG_CONFIG_HOME': place}
    path = f'{place}/mgpu/client.yaml'
    write(path, 'submit:\n  gpus: 2\n  time: 1h\n  env: [A=1, B=2]\nps:\n  output: id,state\n'
                'all: { utc: true, color: never }\n')
    os.chmod(os.path.dirname(path), 0o755)
    assert box.mgpu('run', 'echo $MGPU_NUM_GPUS $A $B', env=env, check=True).out == '2 1 2\n'
    job = box.submit('-g', '1', '--', 'true', env=env)
    shown = box.job(job)
    assert shown['time_limit_s'] == 3600
    assert box.mgpu('ps', '-a', env=env, check=True).out.split()[:2] == ['ID', 'STATE']
    assert settings(box, env=env)['submit.time'] == ('1h', f'{path}:3')


@pytest.mark.parametrize(('text', 'where', 'what'), [
    ('submit:\n  tme: 4h\n', 'client.yaml:2', 'did you mean time?'),
    ('sumbit:\n  time: 4h\n', 'client.yaml:1', 'neither a command of mgpu'),
    ('submit: 4h\n', 'client.yaml:1', 'mapping'),
    ('submit:\n  time: 4 hours\n', 'client.yaml:2', 'not a duration'),
    ('submit:\n  hold: maybe\n', 'client.yaml:2', 'true or false'),
    ('submit:\n  time: { a: b }\n', 'client.yaml:2', 'a value or a list'),
    ('submit: [\n', 'client.yaml:', ''),
    ('- a\n', 'client.yaml:1', 'mapping'),
])
def test_a_mistake_in_ones_own_defaults(make_instance, place, text, where, what):
    box = make_instance(gpus='sim:1x8G')
    write(f'{place}/mgpu/client.yaml', text)
    os.chmod(f'{place}/mgpu', 0o755)
    done = box.mgpu('submit', 'true', env={'XDG_CONFIG_HOME': place})
    assert done.code == 2 and where in done.err and what in done.err and done.out == '', done


@pytest.mark.parametrize('value, words', [
    ('maybe', "--munge: invalid value 'maybe'"),
    pytest.param('on', 'libmunge.so.2 is not installed', marks=pytest.mark.skipif(
        ctypes.util.find_library('munge') is not None, reason='libmunge is installed')),
])
def test_munge_that_cannot_be_had_is_refused(make_instance, value, words):
    box = make_instance(gpus='none', start=False, arguments=['--munge', value])
    done = subprocess.run(box.command, stdin=subprocess.DEVNULL, check=False, capture_output=True, text=True,
                          env=box.environment(), timeout=LIMIT_S)
    assert done.returncode != 0 and words in done.stderr, done


def test_the_grace_of_the_site_is_that_of_a_cancel_without_one(make_instance, place):
    path = f'{place}/mgpu.yaml'
    write(path, 'grace: 1s\n')
    box = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    bell = harness.Bell(place)
    try:
        job = box.post_job(['sh', '-c', f'trap "" TERM; echo ready >{bell.path}; while :; do sleep 1; done'])
        bell.wait()
        box.mgpu('cancel', job, check=True)
        ended = box.wait(job, timeout_s=15)  # less than the default
    finally:
        bell.close()
    assert ended['state'] == 'cancelled' and ended['signal'] == signal.SIGKILL, ended


def test_the_default_grace_is_the_same_everywhere_it_is_written(make_instance):
    box = make_instance(gpus='none')
    shown, origin = settings(box)['grace']
    assert origin == 'default' and re.fullmatch(r'\d+s', shown), (shown, origin)
    for verb in ('cancel', 'submit', 'requeue'):
        text = ' '.join(box.mgpu(verb, '--help', check=True).out.split())
        assert re.search(rf'SIGKILL.*\b{shown}\b', text), text
    for name in ('docs/api.md', 'man/verbs/cancel.scd', 'man/verbs/job-options.scd', 'man/mgpud.8.scd'):
        with open(f'{harness.ROOT}/{name}', encoding='utf-8') as source:
            text = source.read()
        assert re.search(rf'SIGKILL[^\n]*\b{shown[:-1]} ?s\b|the two;[^\n]*\b{shown[:-1]} s\b', text), name


def test_a_user_who_is_gone_does_not_keep_mgpud_from_starting(make_instance, place):
    path = f'{place}/mgpu.yaml'
    write(path, 'user-max-jobs: 7\nusers:\n  gone-user: {max-jobs: 1}\nroles:\n  operator: [group:gone-group]\n')
    box = make_instance(gpus='sim:1x8G', arguments=['--config', path])
    assert settings(box)['user-max-jobs'][0] == '7'
    for where, who in ((3, "there is no user 'gone-user'"), (5, "there is no group 'gone-group'")):
        assert f'{path}:{where}: {who}' in box.log()
        assert f'mgpu.yaml:{where}: {who}' in box.mgpu('doctor').out
    checked = subprocess.run([f'{harness.programs()}/mgpud', '--config', path, '--check-config'], check=False,
                             capture_output=True, text=True, timeout=LIMIT_S)
    assert checked.returncode == 0 and f"warning: {path}:3: there is no user 'gone-user'" in checked.stdout, checked


def test_the_page_of_the_file_has_every_setting():
    with open(f'{harness.build_folder()}/man/mgpu.yaml.5.scd', encoding='utf-8') as page:
        described = set(re.findall(r'^\*([a-z-]+)\*: _', page.read(), re.M))
    done = subprocess.run([f'{harness.programs()}/mgpud', '--example-config'], capture_output=True, text=True, check=True)
    assert described == set(re.findall(r'^#([a-z-]+): ', done.stdout, re.M))


def test_the_example_has_every_setting_and_its_defaults_are_those_in_force(place):
    mgpud = f'{harness.programs()}/mgpud'

    def ask(*arguments):
        return subprocess.run([mgpud, *arguments], stdin=subprocess.DEVNULL, check=True, capture_output=True, text=True,
                              timeout=LIMIT_S).stdout

    text = ask('--example-config')
    assert not [line for line in text.splitlines() if line and not line.startswith('#')]
    keys = set(re.findall(r'^#([a-z-]+): ', text, re.M))
    shown = set(re.findall(r'^ +(?:-\w, )?--([a-z-]+)', ask('--help'), re.M))
    assert shown - keys == {'config', 'backup', 'restore', 'check-config', 'example-config', 'create-user', 'need-listen', 'detach', 'stop', 'reload', 'migrate', 'leave-cluster', 'fsck', 'help', 'version'}
    # Settings without a default of their own show what can be given, in capitals.
    lines = [line[1:] for line in text.splitlines() if re.match(r'#[a-z-]+: (?![A-Z]+$)', line)]
    with open(f'{place}/all.yaml', 'w', encoding='utf-8') as out:
        out.write('\n'.join(lines) + '\n')
    with open(f'{place}/none.yaml', 'w', encoding='utf-8') as out:
        out.write('')

    def values(name):
        found = re.findall(r'^(\S+) +(\S+)', ask('--config', f'{place}/{name}.yaml', '--check-config'), re.M)
        return {key: value for key, value in found if key in keys}

    assert len(lines) > 40 and values('all') == values('none')


def test_groups_share_what_their_department_has(make_instance, place, gate):
    """The configuration, GET /users and `mgpu users` agree on the tree, also after a restart and a reload."""
    path = f'{place}/mgpu.yaml'
    write(path, '')
    box = make_instance(gpus='sim:2x8G', arguments=['--config', path])
    job = box.post_job(gate.command(), gpus=1)
    box.wait(job, 'running')
    uid = box.job(job)['uid']
    own = grp.getgrgid(pwd.getpwuid(uid).pw_gid).gr_name
    write(path, f'groups:\n  {own}: {{ department: physics }}\n  daemon: {{ department: biology }}\ndepartments:\n  physics: {{ shares: 3 }}\n')
    reload(box)  # while its job runs

    def look():
        rows = box.api('GET', '/users').json['users']
        department = [row for row in rows if row['department'] == 'physics' and row['group'] is None and row['user'] is None]
        return next(row for row in rows if row['uid'] == uid), next(row for row in rows if row['group'] == own), department

    for _ in range(2):
        user, group, (department,) = look()
        assert group['department'] == user['department'] == 'physics'
        assert (department['running'], department['gpus'], group['running']) == (1, 1, 1)
        assert department['share'] == group['share'] == user['share'] == 1  # biology has no jobs: its share is lent
        shown = [line.split() for line in box.mgpu('users', '-o', 'user,group,department,running', check=True).out.splitlines()]
        assert ['-', '-', 'physics', '1'] in shown, shown
        box.restart()
    write(path, f'groups:\n  {own}: {{ department: none }}\n')
    reload(box)
    user, group, departments = look()
    assert user['department'] == group['department'] == 'none' and departments == []
    gate.open()
