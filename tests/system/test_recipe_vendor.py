# SPDX-License-Identifier: MIT
"""HACKING's recipe for a vendor of GPUs is true: a made-up one, added to a copy of the sources as one file and one row, has its GPUs
listed, given to jobs, guarded, and passed to containers."""

import json
import os
import re
import shlex
import shutil
import subprocess

import harness
import pytest
from harness import ROOT

RECIPE = '**A vendor of GPUs**'
TABLE, MESON, FILE = 'src/base/gpu_vendor.h', 'src/agent/gpu/meson.build', 'src/agent/gpu/granite.c'
MAJOR = 60  # for local and experimental use, in the kernel's list
ROW = f'''\\
    VENDOR(GRANITE, 65535, granite, .name = "Granite", .monitor = "granite-top", .node = "granite",          \\
        .node_major = {MAJOR}, .control_first = 255, .control_last = 255, .control = {{ "granitectl" }},     \\
        .variables = {{ {{ "GRANITE_VISIBLE_DEVICES", GPU_VARIABLE_NUMBERS, NULL }} }}, .apptainer = "--granite")
'''
LAST = '.apptainer = "--rocm")\n'  # ends the row before it
# The objects that hold rows or words of the table, and the programs that have them. All others read rows.
OBJECTS = {'src/base/gpu_vendor.c': ('mgpu', 'mgpud', 'mgpu-agent', 'mgpu-shepherd'), 'src/wire/gpu_spec.c': ('mgpud', 'mgpu-agent'),
           'src/agent/gpu/probe.c': ('mgpu-agent',), FILE: ('mgpu-agent',)}
BUILD = harness.build_folder()


def compile_one(commands, source, folder):
    """As the build compiles it, from the copy. A new file is compiled as one of its room."""
    like = source if f'../{source}' in commands else 'src/agent/gpu/probe.c'
    words = shlex.split(commands[f'../{like}'])
    target = f'{folder}/{source.replace("/", "_")}.o'
    for option in ('-MQ', '-MF', '-o'):
        at = words.index(option)
        del words[at:at + 2]
    words = [f'-I{folder}/src' if word == '-I../src' else f'{folder}/{source}' if word == f'../{like}' else word for word in words if word != '-MD']
    done = subprocess.run([*words, '-o', target], cwd=BUILD, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def link(program, objects, target):
    """As the build links it; what is in these objects is not taken from the archives."""
    commands = subprocess.run(['ninja', '-t', 'commands', '-s', program], cwd=BUILD, capture_output=True, text=True, check=True).stdout
    words = shlex.split(commands.splitlines()[-1])
    at = words.index('-o')
    words[at:at + 2] = ['-o', target, *objects]
    done = subprocess.run(words, cwd=BUILD, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope='module')
def programs(tmp_path_factory):
    """A folder with the programs of the copy."""
    with open(f'{BUILD}/compile_commands.json', encoding='utf-8') as source:
        commands = {entry['file']: entry['command'] for entry in json.load(source)}
    folder = str(tmp_path_factory.mktemp('vendor'))
    shutil.copytree(f'{ROOT}/src', f'{folder}/src')
    shutil.copy(f'{ROOT}/tests/system/recipe_vendor.c', f'{folder}/{FILE}')
    with open(f'{folder}/{TABLE}', encoding='utf-8') as source:
        text = source.read()
    assert text.count(LAST) == 1
    with open(f'{folder}/{TABLE}', 'w', encoding='utf-8') as target:
        target.write(text.replace(LAST, LAST[:-1] + ROW))
    objects = {source: compile_one(commands, source, folder) for source in OBJECTS}
    place = harness.copy_programs(BUILD)
    for program in OBJECTS['src/base/gpu_vendor.c']:
        os.unlink(f'{place}/{program}')
        link(program, [objects[source] for source in OBJECTS if program in OBJECTS[source]], f'{place}/{program}')
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def box(make_instance, programs, place):
    for number, (uuid, pci) in enumerate((('GRN-one', '0000:03:00.0'), ('GRN-two', '0000:83:00.0'))):
        folder = f'{place}/sys/class/granite/granite{number}'
        os.makedirs(folder)
        for name, text in {'uuid': uuid, 'pci': pci, 'memory': 64 << 30, 'used': 1 << 30}.items():
            with open(f'{folder}/{name}', 'w', encoding='ascii') as out:
                out.write(f'{text}\n')
    os.mkdir(f'{place}/dev')
    for name, minor in (('granite0', 0), ('granite1', 1), ('granitectl', 255)):
        if harness.IS_ROOT:
            os.mknod(f'{place}/dev/{name}', 0o20666, os.makedev(MAJOR, minor))
            os.chmod(f'{place}/dev/{name}', 0o666)
    box = make_instance(gpus='granite', start=False, arguments=('--sysfs-root', f'{place}/sys', '--device-dir', f'{place}/dev'))
    box.command[0] = f'{programs}/mgpud'
    return box.start()


def is_guarded(box):
    features = box.api('GET', '/nodes').json['nodes'][0]['features']
    return next(feature['on'] for feature in features if feature['name'] == 'devices')


def test_a_vendor_is_one_file_and_one_row_of_the_recipe():
    with open(f'{ROOT}/HACKING.md', encoding='utf-8') as source:
        text = source.read()
    section = text[text.index(RECIPE):]
    files = set(re.findall(r'`(src/[\w./-]+)`', section[:section.index('\n\n')]))
    assert {TABLE, MESON, 'src/agent/gpu/WORD.c', 'src/agent/gpu/gpu.h'} <= files, files


def test_gpus_of_a_made_up_vendor_are_listed_and_given_to_jobs(box):
    assert [(gpu['uuid'], gpu['model'], gpu['memory_used_bytes']) for gpu in box.gpus()] == [
        ('GRN-one', 'Granite 1', 1 << 30), ('GRN-two', 'Granite 1', 1 << 30)]
    assert box.api('GET', '/nodes').json['nodes'][0]['gpu_backend'] == 'granite'
    assert '2 GPUs found by granite' in box.mgpu('doctor').out
    show = 'echo "${GRANITE_VISIBLE_DEVICES-none} ${CUDA_VISIBLE_DEVICES-none} ${ROCR_VISIBLE_DEVICES-none}"'
    assert box.run_job(['sh', '-c', show], gpus=2)[1] == '0,1 none none\n'
    assert box.run_job(['sh', '-c', show], gpus=0)[1] == ' none none\n'
    job, output = box.run_job(['sh', '-c', show], gpu_ids='1')
    assert job['granted'][0]['uuid'] == 'GRN-two'
    # Who can open no other GPU counts from 0.
    assert output == ('0 none none\n' if is_guarded(box) else '1 none none\n')


def test_a_job_opens_the_nodes_of_its_own_gpu_of_a_made_up_vendor_alone(box, place):
    if not harness.IS_ROOT or not is_guarded(box):
        pytest.skip('no GPU is guarded here')
    attempt = ('import os\nfor name in sorted(os.listdir(".")):\n'
               '    try:\n        os.open(name, os.O_RDWR | os.O_NONBLOCK)\n    except PermissionError:\n        continue\n'
               '    except OSError:\n        pass\n    print(name)\n')
    command = ['sh', '-c', f'cd {place}/dev && exec /usr/bin/python3 -c {shlex.quote(attempt)}']
    assert box.run_job(command, gpu_ids='1')[1].split() == ['granite1', 'granitectl']
    assert box.run_job(command, gpus=0)[1].split() == []


def test_containers_get_the_nodes_of_a_made_up_vendor(box, place):
    if not harness.IS_ROOT:
        pytest.skip('the nodes are made by root')
    folder = f'{place}/bin'
    os.mkdir(folder)
    shutil.copy(f'{ROOT}/tests/standin/podman', folder)
    for tool in ('sh', 'env', 'sed', 'dirname'):
        os.symlink(shutil.which(tool), f'{folder}/{tool}')
    os.chmod(folder, 0o1777)
    job = box.submit('-e', f'PATH={folder}', '--gpu-ids', '1', '--image', 'net', '--', '/bin/sh', '-c', 'echo $GRANITE_VISIBLE_DEVICES')
    assert box.wait(job)['state'] == 'done', box.output(job)
    assert box.output(job) == '0\n'
    with open(f'{folder}/NOTE', encoding='utf-8') as note:
        words = note.read().split('\0')
    devices = [word for word in words if word.startswith('--device=')]
    assert devices == [f'--device={place}/dev/granite1', f'--device={place}/dev/granitectl'], words
    assert '--env=GRANITE_VISIBLE_DEVICES' in words


def test_the_variable_of_a_made_up_vendor_is_no_axis_of_a_sweep(programs, box):
    done = subprocess.run([f'{programs}/mgpu', 'submit', '--sweep', 'GRANITE_VISIBLE_DEVICES=0,1', '--', 'true'], capture_output=True, text=True,
                          env={**os.environ, 'MGPU_SOCKET': box.socket})
    assert done.returncode != 0
    assert '--sweep: GRANITE_VISIBLE_DEVICES is set by mgpu itself' in done.stderr, done.stderr
