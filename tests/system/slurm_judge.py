# SPDX-License-Identifier: MIT
"""Slurm itself as the judge of mgpu's commands of that name: both get the same command lines, and what they do is compared.

Rows are in slurm_judge/*.rows. `$ LINE` is a line of bash, typed by an ordinary user in an empty folder; `! REASON` below it
says why mgpu differs there, and is then required to differ; `? WHAT` says what is yet to be mended, and is taken away when it
is. Compared are both streams, the exit status and the files left,
after `normal`. The cluster of both has nodes n[1-4] with four GPUs of type a100 each, the processors and the memory of this
machine, and partitions debug (the default one; an hour unless a job says otherwise) and short (ten minutes at most).

slurm_judge/start starts Slurm, slurm_judge/functions is what lines may call.
"""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import harness
import slurm
from cluster import Cluster

HERE = pathlib.Path(__file__).parent / 'slurm_judge'
PACKAGES = 'slurmctld slurmd slurmdbd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin munge mariadb-server'.split()
ARCHIVES = '/var/cache/apt/archives'
FIRST_ID = 301  # three digits: no other number of a row is one by chance
TYPE_S = 45     # for a line
APT_S = 600

CONFIG = """partitions:
  debug: { nodes: "n[1-4]", default: true, default-time: 1h }
  short: { nodes: "n[1-2]", max-time: 10m }
"""


class Row:
    """A line, where it stands, and why mgpu differs (None: it must not): by decision, or because that `is_open`."""

    def __init__(self, file, number, line):
        self.where, self.line, self.reason, self.is_open = f'{file}:{number}', line, None, False


def rows():
    found = []
    for path in sorted(HERE.glob('*.rows')):
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            if line.startswith('$ '):
                found.append(Row(path.stem, number, line[2:]))
            elif line.startswith(('! ', '? ')):
                assert found[-1].reason is None, f'{path}:{number}: a second reason'
                found[-1].reason, found[-1].is_open = line[2:], line[0] == '?'
            else:
                assert line == '' or line.startswith('#'), f'{path}:{number}: {line}'
    return found


NORMAL = (
    # What is replaced, by what.
    (r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d', 'TIME'),
    (r'\b(00:)?00:0\d\b', '00:0N'),           # the seconds that a short job takes
    (r'\b0:0\d\b', '0:0N'),
    (r'(?m)[ \t]+$', ''),
    (r'((?:Relinquishing job allocation \d+|Job submit/allocate failed: .*)\n)salloc: Job allocation \d+ has been revoked.\n', r'\1'),  # a race of Slurm's salloc
    (r'(?m)^salloc: (?:Waiting for resource configuration|Nodes \S+ (?:are|is) ready for job)\n', ''),  # which Slurm says unless the nodes are at once
    (r'(?m)^srun: Job \d+ step creation temporarily disabled, retrying .*\n(?:srun: Step created for job \d+\n)?', ''),  # the step before is not over yet
    (r'(?m)^\w+: note: .*\n?', ''),           # that mgpu adds to Slurm's sentence: which node has too little of what
    (r'(?m)^srun: cluster configuration lacks support for cpu binding\n', ''),  # of Slurm here
    (r'\bslurmstepd-n\d\b', 'slurmstepd'),     # the name that it has where each node has one slurmd
    (r'\bslurm-wlm 22', 'slurm 22'),           # the name of Debian's package
)


def normal(text, place, first):
    """Of what was printed by a side: folders, times, and numbers of jobs since `first`, which begin at J1."""
    text = text.replace(place, 'PLACE')
    for pattern, replacement in NORMAL:
        text = re.sub(pattern, replacement, text)
    return re.sub(r'(?<![\d.])\d{3,}(?!\d)',
                  lambda n: f'J{int(n.group()) - first + 1}' if 0 <= int(n.group()) - first < 40 else n.group(), text)


class Side:
    """One of the two: runs lines as the user and says what they did."""

    name = ''

    def __init__(self, user, place):
        self.user, self.place = user, f'{place}/{self.name}'
        os.mkdir(self.place)
        os.chown(self.place, user.uid, user.gid)
        shutil.copyfile(HERE / 'functions', f'{self.place}/functions')  # the checkout may be closed to users

    def words(self):
        """Those that precede the shell of a line."""
        raise NotImplementedError

    def environment(self):
        raise NotImplementedError

    def call(self, line, cwd):
        shell = f'. {self.place}/functions; cd {cwd}\n{line}'
        environment = {**self.environment(), 'HOME': self.place, 'USER': self.user.name, 'LOGNAME': self.user.name, 'SHELL': '/bin/bash',
                       'LC_ALL': 'C.UTF-8', 'TZ': 'UTC'}
        return subprocess.run([*self.words(), 'env', '-i', *(f'{name}={value}' for name, value in environment.items()), 'bash', '-c', shell],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TYPE_S, check=False, text=True, errors='replace')

    def next_id(self):
        """The number that the next job gets; a job takes one."""
        made = self.call('sbatch --parsable --hold -o /dev/null --wrap true', '/')
        job = int(made.stdout)
        self.call(f'scancel {job}', '/')
        return job + 1

    def type(self, line):
        """Everything that the line has done, as text."""
        folder = tempfile.mkdtemp(dir=self.place)
        os.chown(folder, self.user.uid, self.user.gid)
        first = self.next_id()
        done = self.call(line, folder)
        self.call('[ -z "$(squeue -h -u $USER)" ] || { scancel -u $USER; until [ -z "$(squeue -h -u $USER)" ]; do pause; done; }', '/')
        text = [f'status {done.returncode}', done.stdout, '-- standard error', done.stderr]
        for path in sorted(glob.glob(f'{folder}/**', recursive=True)):
            if os.path.isfile(path):
                text += [f'-- file {path[len(folder) + 1:]}', pathlib.Path(path).read_text(encoding='utf-8', errors='replace')]
        shutil.rmtree(folder)
        assert not harness.SANITIZER.search(done.stderr), done.stderr
        return normal('\n'.join(text), folder, first)


def unpack(place):
    """The packages of Slurm that this machine lacks, unpacked; or None when they cannot be had."""
    apt = ['apt-get', '-qq', '-y', '--no-install-recommends', '-o', f'DPkg::Lock::Timeout={APT_S}']
    options = {'stdin': subprocess.DEVNULL, 'capture_output': True, 'text': True, 'check': False, 'timeout': APT_S}
    listed = subprocess.run(['apt-get', '-s', '--no-install-recommends', 'install', *PACKAGES], **options)
    if listed.returncode != 0 or subprocess.run([*apt, '--download-only', 'install', *PACKAGES], **options).returncode != 0:
        return None
    folder = f'{place}/packages'
    os.makedirs(f'{folder}/usr')
    for name, version, architecture in re.findall(r'^Inst (\S+) (?:\[\S+\] )?\((\S+) .*\[(\w+)\]', listed.stdout, re.M):
        subprocess.run(['dpkg', '-x', f"{ARCHIVES}/{name}_{version.replace(':', '%3a')}_{architecture}.deb", folder], check=True)
    return folder


class Real(Side):
    """Slurm, as Debian packages it."""

    name = 'real'

    def __init__(self, user, place, packages, mib):
        super().__init__(user, place)
        self.state = f'{place}/slurm'
        os.mkdir(self.state)
        self.log = open(f'{self.place}.log', 'w+', encoding='utf-8')
        self.holder = subprocess.Popen(
            ['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', '--uts', '--ipc', HERE / 'start', packages, self.state,
             str(mib), str(FIRST_ID), user.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)
        said = self.holder.stdout.readline()
        self.log.seek(0)
        assert said == 'up\n', self.log.read()
        with open(f'/proc/{self.holder.pid}/task/{self.holder.pid}/children', encoding='ascii') as children:
            self.init = children.read().split()[0]

    def words(self):
        return ['nsenter', '-t', self.init, '-m', '-n', '-p', '-u', '-i', 'setpriv', '--reuid', str(self.user.uid), '--regid', str(self.user.gid),
                '--init-groups']

    def environment(self):
        return {'PATH': '/usr/bin:/bin', 'SLURM_CONF': f'{self.state}/etc/slurm.conf'}

    def close(self):
        self.holder.kill()
        self.holder.wait(harness.DEADLINE_S)
        self.holder.stdout.close()
        self.log.close()


class Ours(Side):
    """mgpu with its commands of Slurm."""

    name = 'mgpu'

    def __init__(self, user, other, place):
        super().__init__(user, place)
        config = f'{place}/mgpu.yaml'
        with open(config, 'w', encoding='utf-8') as out:
            out.write(CONFIG)
        self.cluster = Cluster(0, local='sim:4x40G:A100', head='n1', client=user, arguments=['--config', config])
        for name in ('n2', 'n3', 'n4'):
            self.cluster.add(name, 'sim:4x40G:A100').join()
        box = self.cluster.box
        for _ in range(FIRST_ID - 1):  # of another user, so that no list shows them
            box.post_job(['true'], user=other, gpus=0, hold=True)
        box.cancel_all()
        self.commands = slurm.Slurm(box, place)

    def words(self):
        return ['setpriv', '--reuid', str(self.user.uid), '--regid', str(self.user.gid), '--init-groups']

    def environment(self):
        return self.commands.environment(self.user)

    def close(self):
        self.cluster.close()
