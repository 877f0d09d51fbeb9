# SPDX-License-Identifier: MIT
"""Jobs in containers: what the runtimes are told, with stand-ins for podman and apptainer on PATH."""

import os
import shutil
import subprocess

import harness
import pytest

GPUS = 'sim:4x24G'
STANDINS = f'{harness.ROOT}/tests/standin'


@pytest.fixture
def box(shared_box):
    yield shared_box
    shared_box.cancel_all()


class Node:
    """A PATH with the runtimes of a node, and what these were told."""

    def __init__(self, place, runtimes):
        self.folder = f'{place}/bin'
        self.note = f'{self.folder}/NOTE'
        os.mkdir(self.folder)
        for runtime in runtimes:
            shutil.copy(f'{STANDINS}/{runtime}', self.folder)
        for tool in ('sh', 'env', 'sed', 'dirname'):
            os.symlink(shutil.which(tool), f'{self.folder}/{tool}')
        os.chmod(self.folder, 0o1777)

    def submit(self, box, place, *arguments):
        done = box.mgpu('submit', '-e', f'PATH={self.folder}', *arguments, cwd=place, check=True)
        return int(done.out)

    def words(self):
        with open(self.note, encoding='utf-8') as note:
            return note.read().split('\0')[:-1]


@pytest.fixture
def node(place):
    return Node(place, ['podman', 'apptainer'])


def test_the_words_of_a_command_reach_the_program_in_the_image_as_they_are(box, place, node):
    words = ['/bin/sh', '-c', 'for word; do printf "<%s>\\n" "$word"; done; exit 7', 'sh', 'a  b', '', "it's", '"$HOME"', 'two\nlines',
             '--rm', '*']
    job = node.submit(box, place, '-g', '0', '--image', 'docker://lab/net:1', '--', *words)
    assert box.wait(job)['exit_code'] == 7
    assert box.output(job) == ''.join(f'<{word}>\n' for word in words[4:])
    told = node.words()
    at = told.index('--')
    assert told[at + 1:] == ['docker://lab/net:1', *words]


def test_podman_is_told_what_a_user_of_a_cluster_expects(box, place, node):
    os.mkdir(f'{place}/set', 0o777)
    job = node.submit(box, place, '-g', '2', '-e', 'MINE=a b', '--image', 'net', '--image-mount', f'{place}/set:/data:ro', '--',
                      '/bin/sh', '-c', 'echo $MGPU_JOB_ID $MGPU_NUM_GPUS "$MINE" "$CUDA_VISIBLE_DEVICES" $PWD')
    assert box.wait(job)['state'] == 'done', box.output(job)
    told = node.words()
    visible = box.job(job)['granted']
    assert box.output(job).split()[:4] == [str(job), '2', 'a', 'b']
    assert len(box.output(job).split()[4].split(',')) == len(visible) == 2
    for word in ('run', '--rm', '--cgroups=disabled', '--network=host', f'--workdir={place}', f'--volume={place}:{place}:rslave',
                 f'--volume={place}/set:/data:ro', '--env=MINE', '--env=MGPU_JOB_ID', '--env=CUDA_VISIBLE_DEVICES',
                 f'--label=mgpu.job={job}'):
        assert word in told, (word, told)
    assert '--env=PATH' not in told and '--tty' not in told
    assert ('--userns=keep-id' in told) == (box.client.uid != 0)
    shown = box.mgpu('show', str(job)).out
    assert 'net' in shown and f'{place}/set:/data:ro' in shown


def test_apptainer_runs_image_files_and_what_asks_for_it(box, place, node):
    with open(f'{place}/net.sif', 'w', encoding='utf-8') as image:
        image.write('image')
    job = node.submit(box, place, '-g', '0', '--image', 'net.sif', '--image-mount', '/usr/share', '--', '/bin/sh', '-c',
                      'echo $APPTAINERENV_MGPU_JOB_ID; exit 3')
    assert box.wait(job)['exit_code'] == 3
    told = node.words()
    assert told[0].endswith('/apptainer') and told[1] == 'exec'
    assert f'--pwd={place}' in told and '--bind=/usr/share' in told
    assert told[told.index('--') + 1] == f'{os.path.realpath(place)}/net.sif'
    assert box.output(job) == f'{job}\n'
    job = node.submit(box, place, '-g', '0', '--image', 'lab/net:1', '--image-runtime', 'apptainer', '--', '/bin/true')
    box.wait(job)
    assert 'docker://lab/net:1' in node.words()


@pytest.mark.parametrize(('runtimes', 'options', 'said'), [
    ([], ['--image', 'net'], 'neither podman nor apptainer is installed on'),
    (['apptainer'], ['--image', 'net', '--image-runtime', 'podman'], 'podman is not installed on'),
    (['podman'], ['--image', 'net.sif'], 'apptainer is not installed on'),
])
def test_a_node_without_a_runtime_says_so(box, place, runtimes, options, said):
    job = Node(place, runtimes).submit(box, place, '-g', '0', *options, '--', 'true')
    ended = box.wait(job)
    assert (ended['state'], ended['ended_by'], ended['exit_code']) == ('failed', 'start_failed', 125), ended
    assert said in ended['message'] and 'omit --image' in ended['message']


def test_the_setup_runs_on_the_node_and_may_bring_the_runtime(box, place):
    node = Node(place, ['podman'])
    job = int(box.mgpu('submit', '-g', '0', '-e', f'PATH={place}', '-E', f'PATH={node.folder}; WORD=set; export WORD', '--image', 'net',
                       '--', '/bin/sh', '-c', 'echo $WORD', cwd=place, check=True).out)
    assert box.wait(job)['state'] == 'done', (box.job(job), box.output(job))
    assert box.output(job) == 'set\n'


@pytest.mark.parametrize(('status', 'is_noted'), [(125, True), (255, True), (1, False)])
def test_a_status_that_may_be_the_runtimes_is_noted(box, place, node, status, is_noted):
    job = node.submit(box, place, '-g', '0', '--image', 'net', '--', '/bin/sh', '-c', f'exit {status}')
    ended = box.wait(job)
    assert (ended['ended_by'], ended['exit_code']) == ('exit', status)
    assert ('container runtime' in (ended['message'] or '')) == is_noted, ended


def test_a_submitted_script_is_seen_in_the_container(box, place, node):
    path = f'{place}/job.sh'
    with open(path, 'w', encoding='utf-8') as script:
        script.write('#!/bin/sh\n#MGPU -g 0 --image lab/net:2\necho in $1\n')
    os.chown(path, box.client.uid, box.client.gid)
    job = node.submit(box, place, path, 'it')
    assert box.wait(job)['state'] == 'done' and box.output(job) == 'in it\n'
    folder = f'{box.run_dir}/scripts/{job}.1.0.0'
    assert f'--volume={folder}:{folder}:ro' in node.words()
    assert node.words()[-3:] == ['/bin/sh', f'{folder}/job.sh', 'it']


def test_a_signal_and_a_cancel_reach_the_program(box, place, node, bell):
    job = node.submit(box, place, '-g', '0', '--image', 'net', '--', '/bin/sh', '-c',
                      f'trap "echo stopped; exit 9" TERM; echo here > {bell.path}; while :; do /bin/sleep 0.1; done')
    bell.wait()
    box.mgpu('cancel', str(job), check=True)
    assert box.wait(job)['state'] == 'cancelled'
    assert 'stopped' in box.output(job)


def test_a_process_beside_the_container_is_not_in_it(box, place, node, bell, gate):
    job = node.submit(box, place, '-g', '0', '--image', 'net', '--', '/bin/sh', '-c',
                      f'echo here > {bell.path}; read word < {gate.path}')
    bell.wait()
    os.unlink(node.note)
    done = box.mgpu('exec', str(job), '--', '/bin/sh', '-c', 'echo beside $MGPU_JOB_ID')
    assert (done.code, done.out) == (0, f'beside {job}\n'), done
    assert not os.path.exists(node.note)
    gate.open()
    box.wait(job)


def test_job_files_and_lines_for_slurm_ask_for_images(box, place, node):
    with open(f'{place}/jobs.yaml', 'w', encoding='utf-8') as file:
        file.write(f'name: a\ncommand: [/bin/true]\ngpus: 0\nimage: lab/net:3\nimage_mount: ["/usr/share:/a", "/usr/lib:/b:ro"]\n'
                   f'env: {{ PATH: {node.folder} }}\n')
    job = int(box.mgpu('submit', 'jobs.yaml', cwd=place, check=True).out)
    assert box.wait(job)['state'] == 'done'
    assert (box.job(job)['image'], box.job(job)['image_mounts']) == ('lab/net:3', ['/usr/share:/a', '/usr/lib:/b:ro'])
    with open(f'{place}/slurm.sh', 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\n#SBATCH --container-image=docker://nvcr.io#nvidia/pytorch:24.05-py3\n'
                   '#SBATCH --container-mounts=/usr/share:/a,/usr/lib:/b:ro\n#MGPU -g 0 --hold\ntrue\n')
    job = int(box.mgpu('submit', 'slurm.sh', cwd=place, check=True).out)
    assert box.job(job)['image'] == 'docker://nvcr.io/nvidia/pytorch:24.05-py3'
    assert box.job(job)['image_mounts'] == ['/usr/share:/a', '/usr/lib:/b:ro']


@pytest.mark.parametrize('body', [
    {'image': '--privileged'}, {'image': ''}, {'image': 'a b'}, {'image': 'a\nb'}, {'image': 'x' * 1025},
    {'image': 'net', 'image_runtime': 'docker'}, {'image': 'net', 'image_mounts': ['data:/data']},
    {'image': 'net', 'image_mounts': ['/a:/b:ro:x']}, {'image': 'net', 'image_mounts': ['/a:/']},
    {'image': 'net', 'image_mounts': ['/a,type=tmpfs:/b']}, {'image_mounts': ['/a']},
])
def test_hostile_names_and_mounts_are_refused(box, body):
    answer = box.api('POST', '/jobs', {'command': ['true'], 'gpus': 0, 'cwd': '/', **body})
    assert answer.status in (400, 413), answer


def test_doctor_says_whether_there_are_containers(box):
    features = {one['name']: one for one in box.api('GET', '/nodes').json['nodes'][0]['features']}
    feature = features['containers']
    has_any = any(shutil.which(name, path='/usr/local/bin:/usr/bin:/bin') for name in ('podman', 'apptainer', 'singularity'))
    assert feature['on'] == has_any and (has_any or 'install' in feature['fix']), feature


def test_the_standins_are_shell_scripts_that_parse():
    for name in ('podman', 'apptainer'):
        subprocess.run(['sh', '-n', f'{STANDINS}/{name}'], check=True)
