# SPDX-License-Identifier: MIT
"""What a newcomer does in the first five minutes, in order, with nothing configured."""

import os
import re
import shutil
import signal
import subprocess

import pytest

import harness
import readme


def walk(box, user, place):
    """The first five minutes; every step is one command."""
    version = box.mgpu('version', user=user, check=True)
    assert re.search(r'\d+\.\d+', version.out)
    assert box.mgpu('doctor', user=user).code in (0, 1)

    count = len(box.gpus())
    run = box.mgpu('run', '-g', '1', '--', 'sh', '-c', 'echo "on GPU $CUDA_VISIBLE_DEVICES"; exit 3', user=user)
    assert run.code == 3
    assert re.search(r'^on GPU \d+$', run.out, re.M), run

    blocker = box.submit('-g', count, '-J', 'train', '--', 'sleep', '600', user=user)
    waiting = box.mgpu('submit', '-g', '1', '--', 'echo', 'later', user=user, check=True)
    assert re.fullmatch(r'\d+\n', waiting.out), 'standard output is the id and nothing else'
    waiting = int(waiting.out)
    box.wait(blocker, 'running')

    listing = box.mgpu('ps', user=user, check=True)
    assert re.search(rf'^\s*{blocker}\s+train\s+running', listing.out, re.M), listing
    assert re.search(rf'^\s*{waiting}\s.*queued', listing.out, re.M), listing
    assert str(blocker) in box.mgpu('gpus', user=user, check=True).out
    assert 'sleep 600' in box.mgpu('show', blocker, user=user, check=True).out

    assert box.mgpu('cancel', blocker, user=user).code == 0
    assert box.mgpu('wait', waiting, user=user).code == 0
    assert box.mgpu('logs', waiting, user=user, check=True).out == 'later\n'
    assert box.job(blocker)['state'] == 'cancelled'


@pytest.mark.root
def test_on_a_machine_with_several_users(box, ana, place):
    walk(box, ana, place)


def test_rootless(make_instance, someone, place):
    instance = make_instance(user=someone, client=someone)
    walk(instance, someone, place)


def test_rootless_needs_no_options_at_all(make_instance, someone, place):
    """The defaults of daemon and client meet without a flag, a file or a variable of ours."""
    import os
    instance = make_instance(user=someone, client=someone, start=False)
    runtime, state = f'{instance.place}/runtime', f'{instance.place}/xdg-state'
    for path in (runtime, state):
        os.mkdir(path, 0o700)
        os.chown(path, someone.uid, someone.gid)
    variables = {'XDG_RUNTIME_DIR': runtime, 'XDG_STATE_HOME': state}
    instance.command = [f'{harness.programs()}/mgpud', '--gpus', 'sim:2x8G', '--listen', 'none']
    environment = instance.environment
    instance.environment = lambda: {**environment(), **variables}
    instance.socket = f'{runtime}/mgpu/mgpud.sock'
    instance.run_dir, instance.state_dir = f'{runtime}/mgpu', f'{state}/mgpu'
    instance.start()
    done = instance.mgpu('run', '--', 'echo', 'hello', env={**variables, 'MGPU_SOCKET': ''})
    assert (done.code, done.out) == (0, 'hello\n'), done
    instance.stop()


def test_detach_returns_when_the_daemon_answers(make_instance, someone):
    import os
    import signal
    import subprocess
    instance = make_instance(user=someone, client=someone, start=False)
    command = [*instance.command, '--detach']
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False, cwd='/',
                          env=instance.environment(), **someone.popen_arguments())
    assert done.returncode == 0, done
    assert instance.api('GET', '/version').status == 200
    with open(f'{instance.run_dir}/mgpud.lock', encoding='ascii') as lock:
        pid = int(lock.read())
    agents = instance.agents()
    os.kill(pid, signal.SIGTERM)
    assert all(harness.wait_process(process) for process in [pid, *agents])


TYPED = (('README.md', 'The first five minutes'), ('docs/tour.md', 'Sharing fairly'), ('docs/tour.md', 'Over HTTP'))


@pytest.fixture
def clone(ana):
    place = readme.clone(ana)
    yield place
    shutil.rmtree(place)


@pytest.mark.root
@pytest.mark.parametrize('is_rootless', [False, True], ids=['root', 'rootless'])
def test_the_readme_can_be_typed_as_it_stands(ana, clone, is_rootless):
    root = ana if is_rootless else harness.User('root')
    names = (*readme.names_of(ana), (clone, '/home/ada/mgpu'))
    with readme.own_machine(ana, clone, root) as terminal:
        for page, heading in TYPED:
            terminal.folder = clone
            readme.type_section(terminal, heading, page, ana, root, names)


def test_the_readme_is_short():
    assert os.path.getsize(f'{harness.ROOT}/README.md') <= 7 << 10


SHOWN = 'ID  NAME  TIME\n 1  sh    8ms\n...\n 9  last  -'


@pytest.mark.parametrize('printed', [SHOWN.replace('8ms', '1m12s'), SHOWN.replace('...', ' 2  a  -\n 3  b  -')])
def test_output_that_differs_in_times_alone_is_as_shown(printed):
    readme.check_shown(SHOWN.splitlines(), printed, (), 'mgpu ps')


@pytest.mark.parametrize('printed', [SHOWN.replace('sh ', 'zsh '), SHOWN + '\none more', SHOWN.replace('last', 'first'),
                                     'ID  NAME  TIME', SHOWN.replace('NAME', 'NAME  MORE')])
def test_output_that_is_not_as_shown_is_noticed(printed):
    with pytest.raises(AssertionError):
        readme.check_shown(SHOWN.splitlines(), printed, (), 'mgpu ps')


def test_stop_ends_the_daemon_and_returns_when_it_has_left(make_instance, someone):
    instance = make_instance(user=someone, client=someone)
    job = instance.submit('-g', '0', '--', 'sleep', '600')
    instance.wait(job, 'running')
    agents = instance.agents()
    done = instance.mgpu('--stop', '--run-dir', instance.run_dir, program='mgpud')
    assert done.code == 0 and instance.process.wait(harness.LEAVING_S) == 0, done
    assert all(harness.wait_process(pid) for pid in agents)
    assert instance.shepherds(), 'the job keeps running'
    done = instance.mgpu('--stop', '--run-dir', instance.run_dir, program='mgpud')
    assert done.code == 1 and f'no mgpud is running with {instance.run_dir}' in done.err, done
    instance.start()
    assert instance.job(job)['state'] == 'running'


@pytest.mark.skipif(not harness.IS_ROOT, reason='needs a mount namespace')
def test_a_user_does_not_start_a_second_mgpud_for_the_gpus_of_the_machine(make_instance, someone, place):
    harness.require_namespaces()
    box = make_instance(gpus='sim:2x8G')  # as that of the machine, in a namespace where it lies in the usual place
    inside = f'mount -t tmpfs none /run && mkdir /run/mgpu && mount --bind {box.run_dir} /run/mgpu && exec "$@"'
    own = [f'{place}/own-state', f'{place}/runtime/mgpu']

    def start(*words):
        return subprocess.run(
            ['unshare', '--mount', 'sh', '-c', inside, 'sh', 'setpriv', f'--reuid={someone.uid}', f'--regid={someone.gid}',
             '--init-groups', *words], check=False, capture_output=True, text=True, timeout=3 * harness.DEADLINE_S,
            env=dict(someone.environment(), XDG_RUNTIME_DIR=f'{place}/runtime'), stdin=subprocess.DEVNULL)

    os.chmod(place, 0o777)
    command = [f'{harness.programs()}/mgpud', '--listen', 'none', '--state-dir', own[0], '--run-dir', own[1]]
    mgpu = f'{harness.programs()}/mgpu'
    done = start(*command)
    assert done.returncode == 1 and 'in /run/mgpu: a second one would allocate the same GPUs' in done.stderr, done
    assert 'mgpu run' in done.stderr and '--gpus' in done.stderr, done
    alone = start(mgpu, 'show', '9')
    assert alone.returncode != 0 and 'another one' not in alone.stderr, alone
    # One whose GPUs are named starts. mgpu talks to it, and says that there are two.
    try:
        assert start(*command, '--gpus', 'none', '--detach').returncode == 0
        for words in (('show', '9'), ('show', '@'), ('cancel', '8-9'), ('ps', '9')):
            missing = start(mgpu, *words)
            assert missing.returncode != 0, missing
            assert f'{own[1]}/mgpud.sock; another one answers at /run/mgpu/mgpud.sock' in missing.stderr, missing
        doctor = start(mgpu, 'doctor')
        assert re.search('off +other mgpud +another mgpud answers at /run/mgpu/mgpud.sock', doctor.stdout), doctor
    finally:
        pids = [pid for pid, line in harness.processes(own[1]).items() if 'mgpud' in line.split(' ')[0]]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        assert pids and all(harness.wait_process(pid) for pid in harness.processes(own[1]))
    # While the machine's is stopped its jobs have their GPUs: no second one starts, and no hint says to start one.
    box.stop()
    done = start(*command)
    assert done.returncode == 1 and 'in /run/mgpu (mgpud is not running)' in done.stderr, done
    away = start(mgpu, 'ps')
    assert away.returncode != 0 and 'jobs are not affected while it is down' in away.stderr, away
    assert 'mgpud --detach' not in away.stderr, away
    box.start()
