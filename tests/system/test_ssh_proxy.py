# SPDX-License-Identifier: MIT
"""ssh into a job's allocation through mgpu ssh-proxy, with OpenSSH's ssh, scp, sftp and sshd."""

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess

import harness
import pytest

DEADLINE_S = harness.DEADLINE_S
MISSING = [program for program, path in (('ssh', None), ('ssh-keygen', None), ('sftp', None), ('sshd', '/usr/sbin:/usr/bin'))
           if not shutil.which(program, path=path)]
pytestmark = [pytest.mark.real,
              pytest.mark.skipif(bool(MISSING), reason=f'{", ".join(MISSING)}: not installed: tools/install-packages real')]


class Shell:
    """A user with mgpu's lines in an ssh configuration of its own."""

    def __init__(self, box, folder):
        self.box, self.folder = box, folder
        os.mkdir(folder)
        os.chown(folder, box.client.uid, box.client.gid)
        self.environment = dict(box.client.environment(), MGPU_SOCKET=box.socket, XDG_CONFIG_HOME=f'{folder}/config',
                                ASAN_OPTIONS='exitcode=99:detect_leaks=0', LC_TIME='C.UTF-8')
        printed = box.mgpu('ssh-proxy', '--config', env=self.environment, check=True)
        self.config = f'{folder}/ssh_config'
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write(printed.out)

    def popen(self, program, *words, **options):
        return subprocess.Popen([program, '-F', self.config, *words], env=self.environment, cwd=self.folder, text=True,
                                **{'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
                                   **options}, **self.box.client.popen_arguments())

    def run(self, program, *words, input=None):
        options = {'stdin': subprocess.PIPE} if input is not None else {}
        process = self.popen(program, *words, **options)
        try:
            out, err = process.communicate(input, timeout=DEADLINE_S)
        finally:
            process.kill()
        return harness.Done(process.returncode, out, err)


@pytest.fixture
def box(make_instance):
    return make_instance('sim:4x24G')


@pytest.fixture
def shell(box):
    return Shell(box, f'{box.place}/shell')


def test_ssh_lands_in_the_allocation_with_its_gpus_and_in_its_cgroup(box, shell):
    job = box.post_job(['sh', '-c', 'cat /proc/self/cgroup; exec sleep 600'], gpus=2, env={'COLOUR': "it's\nred", 'PATH': '/opt/x:/usr/bin:/bin'})
    box.wait(job, 'running')
    done = shell.run('ssh', f'{job}.mgpu', 'echo "$MGPU_JOB_ID|$COLOUR|$PATH|$(id -u)"; echo $CUDA_VISIBLE_DEVICES; cat /proc/self/cgroup')
    assert done.code == 0 and done.err == '', done
    ids = harness.until(lambda: box.output(job), 'the cgroup of the job')
    assert done.out.endswith(ids), (done, ids)
    head, gpus = done.out[:-len(ids)].rstrip('\n').rsplit('\n', 1)
    assert head == f"{job}|it's\nred|/opt/x:/usr/bin:/bin|{box.client.uid}"
    assert len(gpus.split(',')) == 2, done


def test_the_exit_status_and_standard_input_are_those_of_the_command(box, shell):
    job = box.post_job(['sleep', '600'], name='train')
    box.wait(job, 'running')
    text = os.urandom(200000).hex()
    done = shell.run('ssh', 'train.mgpu', 'sha256sum; exit 7', input=text)
    assert done.code == 7, done
    assert done.out.split()[0] == hashlib.sha256(text.encode()).hexdigest()


def changed(make_instance, commands):
    """An instance whose machine was changed in a mount namespace of its own."""
    harness.require_namespaces()
    box = make_instance('sim:4x24G', start=False)
    box.command = ['unshare', '--mount', 'sh', '-c', f'{commands} && exec "$@"', 'sh', *box.command]
    return box.start()


@pytest.mark.root
def test_gpu_job_is_the_newest_job_and_a_login_shell_runs_on_a_terminal(make_instance):
    # As on any machine with systemd: an sshd without root cannot change the group of a terminal.
    box = changed(make_instance, 'mount -t devpts -o newinstance,gid=5,mode=620,ptmxmode=666 devpts /dev/pts && '
                                 'mount --bind /dev/pts/ptmx /dev/ptmx')
    shell = Shell(box, f'{box.place}/shell')
    box.post_job(['sleep', '600'])
    job = box.post_job(['sleep', '600'], gpus=1)
    box.wait(job, 'running')
    done = shell.run('ssh', '-tt', 'gpu-job', input='test -t 0 && echo "job $MGPU_JOB_ID"; exit\n')
    assert f'job {job}' in done.out.replace('"job $MGPU_JOB_ID"', ''), done


def test_scp_and_sftp_copy_files(box, shell):
    job = box.post_job(['sleep', '600'])
    box.wait(job, 'running')
    with open(f'{shell.folder}/here', 'wb') as file:
        file.write(os.urandom(3 << 20))
    os.chmod(f'{shell.folder}/here', 0o644)
    done = shell.run('scp', 'here', f'{job}.mgpu:{shell.folder}/there')
    assert done.code == 0, done
    done = shell.run('sftp', '-b', '-', f'{job}.mgpu', input=f'get {shell.folder}/there {shell.folder}/back\n')
    assert done.code == 0, done
    files = [open(f'{shell.folder}/{name}', 'rb').read() for name in ('here', 'there', 'back')]
    assert files[0] == files[1] == files[2]


def test_ports_are_forwarded_into_the_job_as_editors_do(box, shell):
    """Remote-SSH of VS Code: a shell without a terminal, and a dynamic or local forward on the same connection."""
    job = box.post_job(['sleep', '600'])
    box.wait(job, 'running')
    with socket.create_server(('127.0.0.1', 0)) as server, socket.create_server(('127.0.0.1', 0)) as unused:
        port = unused.getsockname()[1]
        unused.close()
        process = shell.popen('ssh', '-T', '-o', 'ExitOnForwardFailure=yes', '-L',
                              f'127.0.0.1:{port}:127.0.0.1:{server.getsockname()[1]}', f'{job}.mgpu', 'sh',
                              stdin=subprocess.PIPE)
        try:
            process.stdin.write('echo ready\n')
            process.stdin.flush()
            assert process.stdout.readline() == 'ready\n', process.communicate(timeout=DEADLINE_S)
            with socket.create_connection(('127.0.0.1', port), DEADLINE_S) as near:
                far = server.accept()[0]
                with far:
                    far.sendall(b'through the job')
                    assert near.recv(100) == b'through the job'
            process.stdin.close()
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()
            process.stdout.close()
            process.stderr.close()


def test_nothing_is_left_when_the_connection_ends(box, shell):
    folder = f'{shell.folder}/own'  # jobs of other tests that were killed leave theirs in /tmp
    os.mkdir(folder)
    os.chown(folder, box.client.uid, -1)
    job = box.post_job(['sleep', '600'], env={'TMPDIR': folder, 'PATH': os.environ['PATH']})
    box.wait(job, 'running')
    process = shell.popen('ssh', f'{job}.mgpu', 'ls -d "$TMPDIR"/mgpu-ssh.* >/dev/null && echo "$$"; exec sleep 600')
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    assert harness.wait_process(pid)
    harness.until(lambda: not os.listdir(folder), 'the folder of sshd goes')
    assert box.job(job)['state'] == 'running'


def test_a_job_that_waits_is_awaited_and_one_that_has_ended_refused(box, shell):
    first = box.post_job(['sleep', '600'], gpus=4)
    job = box.post_job(['sleep', '600'], gpus=1)
    process = shell.popen('ssh', f'{job}.mgpu', 'echo in')
    box.mgpu('cancel', first, check=True)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert out == 'in\n', (out, err)
    box.mgpu('cancel', job, check=True)
    box.wait(job)
    done = shell.run('ssh', f'{job}.mgpu', 'true')
    assert done.code == 255 and f'job {job} has ended' in done.err, done


@pytest.mark.root
def test_the_job_of_another_user_is_refused(box, shell, bo):
    job = box.post_job(['sleep', '600'], user=bo)
    box.wait(job, 'running')
    done = shell.run('ssh', f'{job}.mgpu', 'true')
    assert done.code == 255 and 'only its owner' in done.err, done


def test_the_keys_are_made_once_by_all_who_need_them_at_the_same_time(box):
    folder = f'{box.place}/keys'
    os.mkdir(folder)
    os.chown(folder, box.client.uid, box.client.gid)
    environment = {'XDG_CONFIG_HOME': folder}
    started = [box.popen('ssh-proxy', '--config', env=environment) for _ in range(5)]
    for process in started:
        with contextlib.closing(process.stdout):
            assert process.wait(DEADLINE_S) == 0, process.stderr.read()
        process.stderr.close()
    assert os.listdir(f'{folder}/mgpu') == ['ssh']
    keys = {name: os.stat(f'{folder}/mgpu/ssh/{name}').st_mode & 0o777 for name in os.listdir(f'{folder}/mgpu/ssh')}
    assert keys.keys() == {'id_ed25519', 'id_ed25519.pub', 'host_ed25519', 'host_ed25519.pub', 'known_hosts'}
    assert keys['id_ed25519'] == keys['host_ed25519'] == 0o600


@pytest.mark.root
def test_a_node_without_sshd_says_so(make_instance):
    box = changed(make_instance, f'mount --bind /dev/null {shutil.which("sshd", path="/usr/sbin:/usr/bin")}')
    shell = Shell(box, f'{box.place}/shell')
    job = box.post_job(['sleep', '600'])
    box.wait(job, 'running')
    done = shell.run('ssh', f'{job}.mgpu', 'true')
    assert done.code == 255 and 'this node has no sshd (Debian: openssh-server)' in done.err, done
