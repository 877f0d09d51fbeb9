# SPDX-License-Identifier: MIT
"""The words that shells offer: what `mgpu __complete` says, and what bash, zsh and fish make of it."""

import os
import pty
import re
import select
import shutil
import socket
import subprocess
import time

import pytest

import harness

PATIENCE_S = 30


def words(box, *typed, **options):
    """What may come last in `typed`, as a dictionary of words and their descriptions."""
    done = box.mgpu('__complete', '--', *typed, **options)
    assert done.code == 0 and done.err == '', done
    return dict((line.split('\t') + [''])[:2] for line in done.out.splitlines())


@pytest.mark.parametrize('typed, offered, kept_back', [
    ([''], ['run', 'ps', 'completion'], ['__complete', 'follow', '--json']),
    (['s'], ['submit', 'show'], ['run']),
    (['--'], ['--json', '--socket'], ['run']),
    (['ps', '--'], ['--state', '--sort', '--json'], ['--grace']),
    (['ps', '-s', ''], ['queued', 'held', 'cancelled'], ['?']),
    (['ps', '-s', 'queued,h'], ['queued,held'], ['held']),
    (['ps', '--state=r'], ['--state=running'], ['--state=queued']),
    (['ps', '-o', ''], ['json', 'wide', 'id', 'where'], []),
    (['ps', '-o', 'id,'], ['id,where'], ['id,json']),
    (['ps', '--sort', '-na'], ['-name'], ['name']),
    (['gpus', '-o', 'u'], ['util'], ['id']),
    (['reserve', 'list', '-o', 'un'], ['until'], []),
    (['nodes', '-o', 'ba'], ['backend'], []),
    (['--color', ''], ['auto', 'always', 'never'], ['run']),
    (['--color', 'never', 'gp'], ['gpu', 'gpus'], []),
    (['gpu', ''], ['pause', 'policy'], ['drained']),
    (['gpu', 'pa'], ['pause'], ['policy']),
    (['gpu', 'policy', '0', ''], ['avoid', 'fit-around', 'ignore', 'default'], []),
    (['gpu', 'drain', '--'], ['--wait', '--reason'], []),
    (['edit', '42', 'p'], ['priority=', 'preemptible='], ['gpus=']),
    (['edit', '42', 'idle_ok='], ['idle_ok=yes', 'idle_ok=no'], []),
    (['help', 're'], ['reasons', 'requests', 'release'], []),
    (['help', 'gpu', ''], ['pause', 'policy'], ['reasons']),
    (['completion', ''], ['bash', 'zsh', 'fish'], []),
    (['show', '-o', ''], ['json'], []),
    (['top', ''], ['nodes', 'timeline', 'history'], ['quit']),
    (['top', '--graph', ''], ['block', 'braille', 'ascii'], []),
    (['submit', '-A', '7:'], ['7:ok', '7:any', '7:fail'], []),
    (['submit', ''], [':commands'], []),
    (['submit', '-g', ''], [], [':commands', ':files']),
    (['run', 'python', '--', '--a'], [':files'], ['--array']),
    (['run', 'python', '--g'], [':files'], ['--gpus']),
    (['submit', '-o', ''], [':files'], []),
    (['submit', '--chdir', 'x'], [':directories'], []),
    (['submit', '--chdir-fallback', ''], ['home', 'tmp', ':directories'], []),
    (['nosuchverb', ''], [], ['run']),
    (['ps', '--nosuchoption', '--st'], ['--state'], []),
], ids=' '.join)
def test_words_follow_from_what_is_typed(box, typed, offered, kept_back):
    found = words(box, *typed)
    assert set(offered) <= set(found) and not set(kept_back) & set(found), found


def test_verbs_and_options_have_their_help(box):
    assert words(box, 'ps') == {'ps': 'List jobs: waiting, running, and ended in the last hour'}
    assert 'number of' not in words(box, 'submit', '--hold')['--hold']


def test_jobs_come_with_name_and_state_and_only_where_they_fit(box, gate):
    running = box.submit('-g', '0', '-J', 'trainer', '--', *gate.command())
    held = box.submit('-g', '0', '-J', 'later', '--hold', '--', 'true')
    box.wait(running, 'running')
    try:
        found = words(box, 'cancel', '')
        assert found[str(running)] == 'trainer  running' and found[str(held)] == 'later  held'
        assert str(held) in words(box, 'release', '') and str(running) not in words(box, 'release', '')
        assert str(running) not in words(box, 'why', '')
        assert list(words(box, 'show', ''))[:2] == [str(held), str(running)], 'the newest comes first'
        assert set(words(box, 'ps', '-n', 'tr')) == {'trainer'}
        assert f'{running}' in words(box, 'submit', '-A', '')
        assert 'priority=' not in words(box, 'edit', '') and str(held) in words(box, 'edit', '')
    finally:
        gate.open()


def test_what_mgpud_knows_is_offered(box):
    assert '0' in words(box, 'gpus', '') and words(box, 'gpus', '')['0'].endswith('free')
    assert '0,1' in words(box, 'submit', '-G', '0,')
    assert box.client.name in words(box, 'ps', '-u', '')
    assert len(words(box, 'nodes', '')) == 1
    assert 'policy' in words(box, 'config', 'get', 'pol')


def test_an_odd_name_cannot_get_into_the_command_line(box):
    job = box.submit('-g', '0', '-J', 'a$(b)', '--hold', '--', 'true')
    assert words(box, 'show', str(job))[str(job)].startswith('a$(b) ')
    assert not [word for word in words(box, 'ps', '-n', '') if '$' in word]


def test_without_mgpud_there_are_words_and_no_complaints(box, place):
    nowhere = {'MGPU_SOCKET': f'{place}/none.sock'}
    assert words(box, 'show', '', env=nowhere) == {}
    assert 'submit' in words(box, 'su', env=nowhere)
    assert words(box, '--nosuch', '-', env=nowhere) and words(box, env=nowhere) != {}


def test_a_socket_that_is_typed_is_the_one_that_is_asked(box, place):
    assert words(box, '--socket', box.socket, 'gpus', '', env={'MGPU_SOCKET': f'{place}/none.sock'})
    assert words(box, f'--socket={place}/none.sock', 'gpus', '') == {}


def test_an_mgpud_that_does_not_answer_is_not_waited_for(box, place):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f'{place}/mute.sock')
    os.chmod(f'{place}/mute.sock', 0o777)
    listener.listen(5)
    start = time.monotonic()
    assert words(box, 'show', '', env={'MGPU_SOCKET': f'{place}/mute.sock'}) == {}
    assert time.monotonic() - start < 5, 'it waited for the answer'
    listener.close()


def test_a_broken_file_of_defaults_is_no_obstacle(box, place):
    os.mkdir(f'{place}/mgpu')
    with open(f'{place}/mgpu/client.yaml', 'w', encoding='utf-8') as file:
        file.write('nosuch: [')
    assert 'submit' in words(box, 'su', env={'XDG_CONFIG_HOME': place})


# --- the shells ---

class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, box, *command):
        self.master, slave = pty.openpty()
        environment = dict(box.client.environment(), MGPU_SOCKET=box.socket, TERM='xterm', ZDOTDIR='/nonexistent',
                           PATH=f'{harness.programs()}:/usr/bin:/bin')
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd='/tmp', env=environment,
                                        start_new_session=True, **box.client.popen_arguments())
        os.close(slave)
        self.seen = ''

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern):
        """Reads until `pattern` comes, and drops all up to its end."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.seen)):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], f'no {pattern!r} in {self.seen!r}'
            self.seen += os.read(self.master, 4096).decode(errors='replace')
        self.seen = self.seen[found.end():]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


SETUP = {
    'bash': (['bash', '--norc', '--noprofile', '-i'], "source <(mgpu completion bash); PS1='go''> '\n"),
    'zsh': (['zsh', '-f', '-i'],
            "autoload -Uz compinit; compinit -u -D; source <(mgpu completion zsh); PS1='go''> '\n"),
}


@pytest.fixture(params=sorted(SETUP))
def shell(request, box):
    if shutil.which(request.param) is None:
        pytest.skip(f'{request.param} is not installed')
    command, setup = SETUP[request.param]
    made = Shell(box, *command)
    made.type(setup)
    made.expect('go> ')
    yield made
    made.close()


@pytest.mark.parametrize('typed, printed', [
    ('mgpu help exi\t\n', 'Exit statuses'),              # a topic
    ('mgpu vers\t\n', r'mgpud \d'),                       # a verb
    ('mgpu ps --no-h\t -o gpus,i\t\n', r'go> '),          # an option, and a column after a comma
    ('mgpu --color=alw\t help siz\t\n', 'write memory'),  # a value behind an equals sign
    ('mgpu help gpu pol\t\n', 'usage: mgpu gpu policy'),  # an action
], ids=lambda text: repr(text))
def test_an_interactive_shell_completes(shell, typed, printed):
    shell.type(typed)
    shell.expect(printed)


def test_an_interactive_shell_completes_a_job_and_a_key_without_a_blank(shell, box):
    job = box.submit('-g', '0', '-J', 'waiting', '--hold', '--', 'true')
    shell.type('mgpu release \t\n')
    box.wait(job)
    job = box.submit('-g', '0', '-J', 'waiting', '--hold', '--', 'true')
    shell.type(f'mgpu edit {job} nam\tfresh; echo do""ne\n')
    shell.expect('\ndone')
    assert box.job(job)['name'] == 'fresh'


def test_fish_completes(box):
    if shutil.which('fish') is None:
        pytest.skip('fish is not installed')
    job = box.submit('-g', '0', '-J', 'waiting', '--hold', '--', 'true')

    def offered(line):
        environment = dict(box.client.environment(), MGPU_SOCKET=box.socket, TERM='xterm', XDG_CONFIG_HOME='/nonexistent',
                           PATH=f'{harness.programs()}:/usr/bin:/bin')
        done = subprocess.run(['fish', '-N', '-c', f'mgpu completion fish | source; complete -C {line!r}'], cwd='/tmp',
                              env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
                              **box.client.popen_arguments())
        return done.stdout.splitlines()

    assert offered('mgpu subm') == ['submit\tQueue a command, print the job number, and return']
    assert f'{job}\twaiting  held' in offered('mgpu release ')
    assert 'id,name\t' in '\n'.join(offered('mgpu ps -o id,na'))
    assert offered('mgpu --color=alw') == ['--color=always']
    assert any(line.startswith('etc/') or line.startswith('/etc/') for line in offered('mgpu submit -C /et'))
