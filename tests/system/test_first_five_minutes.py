# SPDX-License-Identifier: MIT
"""What a newcomer does in the first five minutes, in order, with nothing configured."""

import re

import pytest

import harness


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
