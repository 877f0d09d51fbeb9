# SPDX-License-Identifier: MIT
"""The kit for new hardware and `mgpu gpu test`, on libraries that stand in for the driver's."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

import harness

STANDINS = ('tests/unit/agent/nvml_current/libnvidia-ml.so.1', 'lab/tests/cuda/cuda_current/libcuda.so.1',
            'lab/tests/cuda/cuda_current/libnccl.so.2')
GPUS = (('3b', '00112233445566778899aabbccddeeff'), ('5b', '10112233445566778899aabbccddeeff'))
KIT_S = 650  # the kit gives up by itself before
IS_WHOLE = bool(os.environ.get('MGPU_SOAK_KIT'))  # every check, as in `make soak`; else some of each kind
only_whole = pytest.mark.skipif(not IS_WHOLE, reason='only in make soak')

pytestmark = pytest.mark.xdist_group('/tmp/mgpu-kit')  # what a kit leaves behind is told from what runs by this path


def some(rows, every=3):
    """All rows in `make soak`, and some of them otherwise."""
    return rows if IS_WHOLE else rows[::every]


def uuid(digits):
    return f'GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}'


class Kit:
    """The programs of the build in the kit's form, and a driver that does what its lines say."""

    def __init__(self, place):
        self.place = place
        harness.open_folder(place)
        shutil.copytree(harness.programs(), f'{place}/bin')
        for name in ('mgpu-gpu-kit', 'mgpu-gpu-test'):
            shutil.copy(os.path.join(harness.build_folder(), name), f'{place}/bin/{name}')
        os.rename(f'{place}/bin/mgpu-gpu-kit', f'{place}/run')
        os.mkdir(f'{place}/driver')
        os.chmod(f'{place}/driver', 0o1777)
        os.mkdir(f'{place}/out')
        os.chmod(f'{place}/out', 0o777)

    def install(self, nvml=(), cuda=(), of_cuda=GPUS):
        for library in STANDINS:
            shutil.copy(os.path.join(harness.build_folder(), library), f'{self.place}/driver')
        with open(f'{self.place}/driver/nvml.state', 'w', encoding='ascii') as out:
            for bus, digits in GPUS:
                print(f'gpu 0 {bus} 256 0 0 40 50000 {uuid(digits)} NVIDIA Stand-in', file=out)
            for i in range(len(GPUS)):
                print(f'more {i} {i} 700000 1000 1980 2619 0 0', file=out)
            print('\n'.join(nvml), file=out)
        with open(f'{self.place}/driver/cuda.state', 'w', encoding='ascii') as out:
            for bus, digits in of_cuda:
                print(f'gpu {bus} 256 {digits} NVIDIA Stand-in', file=out)
            print('\n'.join(cuda), file=out)

    def install_parking(self, *rules, cuda=()):
        """A driver that can park programs; the rules are those of tests/standin/cuda_park.c."""
        self.install(cuda=('version 13000', *cuda))
        os.mkdir(f'{self.place}/driver/cuda.d')
        os.chmod(f'{self.place}/driver/cuda.d', 0o1777)
        with open(f'{self.place}/driver/cuda.d/rules', 'w', encoding='ascii') as out:
            print('\n'.join(rules), file=out)

    def run(self, *arguments, user=None):
        """(exit status, the checks of report.json by name)"""
        user = user or harness.User('root' if harness.IS_ROOT else os.environ['USER'])
        env = dict(user.environment(), LD_LIBRARY_PATH=f'{self.place}/driver', ASAN_OPTIONS='detect_leaks=0')
        env['PATH'] = f'{self.place}/path:{env["PATH"]}'
        done = subprocess.run([f'{self.place}/run', '-o', f'{self.place}/out', *map(str, arguments)], env=env, cwd='/',
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=KIT_S, check=False,
                              **user.popen_arguments())
        assert not harness.SANITIZER.search(done.stderr), done.stderr
        sys.stdout.write(done.stdout + done.stderr)
        harness.until(lambda: not harness.processes('/mgpu-kit-') and not harness.processes(f'{self.place}/bin/'), 'the end of what it started and killed')
        return done.returncode, self.checks()

    def checks(self):
        """Those of report.json by name."""
        with open(f'{self.place}/out/report.json', encoding='utf-8') as report:
            return {check['name']: check for check in json.load(report)['checks']}


@pytest.fixture
def kit(tmp_path):
    return Kit(str(tmp_path))


def results(checks):
    return {name: check['result'] for name, check in checks.items()}


def test_without_a_driver_all_is_skipped_with_the_reason(kit):
    status, checks = kit.run()
    assert status == 77
    assert results(checks).pop('machine') == 'passed'
    del checks['machine']
    assert set(results(checks).values()) == {'skipped'}
    assert all(check['text'] for check in checks.values())
    assert 'libnvidia-ml.so.1' in checks['nvml']['text']


# Checks that need another machine, a program that is missing here, or a kernel with all controllers.
NEEDS_MORE = {'pytorch', 'limits', 'early', 'two-users', 'gpu-lost', 'nccl', 'podman', 'apptainer', 'mig-profiles', 'mig-users'}
ASKED = {'lock', 'mig-gone', 'load'}  # only if they are named
LONG = {'park-torch', 'park-jax', 'storm', 'gpu-test', 'park-auto', 'pytorch', 'gpu-lost'}  # seconds each, with any driver
ELSEWHERE = {'pairs', 'two-users', 'nccl', 'limits', 'early', 'podman', 'apptainer', 'park-image', 'mig-users', 'mig-profiles'}  # with a driver that does its work in test_gpu_kit_several.py and _ways.py


def test_a_driver_that_does_its_work_passes_every_check(kit):
    kit.install()
    status, checks = kit.run(*(() if IS_WHOLE else ('--only', ','.join(sorted(set(names_of_checks()) - LONG - ELSEWHERE - ASKED)))))
    outcome = results(checks)
    assert status == 0, outcome
    parks, of_amd = ({name for name in outcome if name.startswith(word)} for word in ('park', 'amd'))
    assert {name for name in outcome if outcome[name] == 'skipped'} <= parks | of_amd | {'driver', 'job-nodes', 'mig', 'mps', *NEEDS_MORE}
    assert parks <= set(outcome) and checks['park-most']['text'] == checks['park']['text'], 'what cannot be done is tried once'
    assert checks['nvml']['facts']['gpus'][0]['memory']['code'] == 0
    assert checks['cuda-health']['facts']['probe']['wrong_words'] == 0
    assert checks['oom']['facts']['attempts'] >= 2
    with open(f'{kit.place}/out/report.txt', encoding='utf-8') as page:
        assert '0 failed' in page.readline()
        assert 'mgpu is a scheduler' in (text := page.read()) and '2 GPUs (NVIDIA Stand-in)' in text


@pytest.mark.parametrize('arguments, words', [
    (('--only', 'job-two'), "there is no check 'job-two'; --list shows all"),
    (('--only', 'nvml,job-two'), "there is no check 'job-two'"),
    (('--only', 'nvml,'), "there is no check ''"),
    (('--only', 'job'), "there is no check 'job'"),
    (('-o', '/nonexistent'), 'cannot write /nonexistent/report.json'),
    (('-t', 'long'), "'long' is not a duration"),
], ids=['check', 'second', 'empty', 'part', 'folder', 'time'])
def test_wrong_use_is_refused_before_anything_is_tried(kit, arguments, words):
    done = subprocess.run([f'{kit.place}/run', *arguments], env={'ASAN_OPTIONS': 'detect_leaks=0'}, cwd=f'{kit.place}/out',
                          capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)
    assert done.returncode == 2 and words in done.stderr and not done.stdout, done


def test_only_some_checks_are_run_in_the_kits_order(kit):
    kit.install()
    status, checks = kit.run('--only', 'oom-first,job-order')
    assert status == 0 and list(checks)[-2:] == ['job-order', 'oom-first'] and 'storm' not in checks, results(checks)
    assert checks['job-order']['text'] == 'with -G 1,0 the job sees the GPUs in that order'
    assert checks['oom-first']['text'].startswith('recognised as gpu_oom at the first attempt')


def test_an_ordinary_user_runs_it_too(kit):
    if not harness.IS_ROOT:
        pytest.skip('the other tests run as an ordinary user')
    kit.install()
    user = harness.make_user('mgpu-test-a')
    status, checks = kit.run('--only', 'job-one', user=user)
    assert (status, checks['job-one']['result']) == (0, 'passed'), results(checks)
    assert checks['agent']['text'].endswith('without root')


def test_a_program_that_only_names_its_folder_is_left_alone(kit):
    kit.install()
    before = set(glob.glob('/tmp/mgpu-kit-*'))
    user = harness.User('root' if harness.IS_ROOT else os.environ['USER'])
    env = dict(user.environment(), LD_LIBRARY_PATH=f'{kit.place}/driver', ASAN_OPTIONS='detect_leaks=0')
    with subprocess.Popen([f'{kit.place}/run', '-o', f'{kit.place}/out', '--only', 'job-one'], env=env, cwd='/', stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user.popen_arguments()) as run:
        harness.until(lambda: set(glob.glob('/tmp/mgpu-kit-*')) - before, 'the folder of the kit')
        folder = (set(glob.glob('/tmp/mgpu-kit-*')) - before).pop()
        with subprocess.Popen(['cat', '-', f'{folder}/log'], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
            assert run.wait(KIT_S) == 0
            left = {pid: line for pid, line in harness.processes(folder).items() if pid != other.pid}
            assert other.poll() is None and not left, left
            other.stdin.close()


REPORTS = sorted(glob.glob(f'{harness.ROOT}/docs/hardware/*.json'))


def page_of(report):
    return subprocess.run([f'{harness.build_folder()}/mgpu-gpu-kit', '--report', report], capture_output=True, text=True, check=False,
                          env={'ASAN_OPTIONS': 'detect_leaks=0'}, timeout=harness.DEADLINE_S)


@pytest.mark.parametrize('report', REPORTS, ids=os.path.basename)
def test_a_report_of_the_documents_is_shown_as_a_page_and_has_its_row(report):
    with open(report, encoding='utf-8') as source:
        whole = json.load(source)
    lines = (done := page_of(report)).stdout.splitlines()
    assert done.returncode == 0, done.stderr
    counts = [sum(check['result'] == word for check in whole['checks']) for word in ('passed', 'failed', 'skipped')]
    assert counts == [whole['passed'], whole['failed'], whole['skipped']]
    assert lines[0].endswith('{} passed, {} failed, {} skipped'.format(*counts)) and whole['began_at'] in lines[0]
    shown = lines[-len(whole['checks']):]
    for check, line in zip(whole['checks'], shown):
        assert line.split()[:2] == [check['result'].replace('failed', 'FAILED'), check['name']] and check['text'].strip() in line, line
    with open(f'{harness.ROOT}/docs/hardware.md', encoding='utf-8') as source:
        row = next((line for line in source if f'](hardware/{os.path.basename(report)})' in line), '')
    assert '| {}, {}, {} |'.format(*counts) in row, 'docs/hardware.md has no row for it, or another result'


def names_of_checks():
    listed = subprocess.run([f'{harness.build_folder()}/mgpu-gpu-kit', '--list'], capture_output=True, text=True, check=True,
                            env={'ASAN_OPTIONS': 'detect_leaks=0'}, timeout=harness.DEADLINE_S).stdout
    return [line.split()[0] for line in listed.splitlines()]


def test_every_check_has_a_row_in_the_document():
    with open(f'{harness.ROOT}/docs/hardware.md', encoding='utf-8') as source:
        table = re.search(r'\| check \| passes if \|\n(.*?)\n\n', source.read(), re.DOTALL)[1]
    rows = [name for line in table.splitlines() for name in re.findall(r'`([\w-]+)`', line.split('|')[1])]
    assert rows and sorted(rows) == sorted(names_of_checks())


def test_todays_kit_has_every_check_of_the_reports():
    known = names_of_checks()
    assert REPORTS
    for report in REPORTS:
        with open(report, encoding='utf-8') as source:
            checks = [check['name'] for check in json.load(source)['checks']]
        assert not set(checks) - set(known), report


def test_a_report_that_comes_from_anybody_drives_no_terminal(tmp_path):
    check = {'name': 'nvml', 'title': 'each call', 'result': 'failed', 'text': 'a\x1b[2Jb\nc\u202ed', 'seconds': 1}
    (tmp_path / 'report.json').write_text(json.dumps({'format': 1, 'mgpu': '\x1b]0;x\x07', 'checks': [check]}))
    done = page_of(tmp_path / 'report.json')
    assert done.returncode == 0 and '0 passed, 1 failed, 0 skipped' in done.stdout and 'Failed: nvml' in done.stdout
    assert done.stdout.splitlines()[-1].endswith('\\x0ac\\xe2\\x80\\xaed'), done.stdout
    assert not set(done.stdout) & {'\x1b', '\x07', '\u202e'}


@pytest.mark.parametrize('text, words', [
    ('', 'is not JSON: line 1'), ('{"format": 1', 'is not JSON'), ('[]', 'no list of checks'), ('{"checks": 3}', 'no list of checks'),
    ('{"checks": []}', 'format 0'), ('{"format": 2, "checks": []}', 'format 2, and this kit reads format 1'),
    ('{"format": 1, "checks": [{}]}', 'check 0 of the report'), ('{"format": 1, "checks": [5]}', 'check 0 of the report'),
    ('{"format": 1, "checks": [{"name": "a", "result": "good"}]}', 'check 0 of the report'), (None, 'No such file'),
])
def test_what_is_no_report_is_refused_with_the_reason(tmp_path, text, words):
    if text is not None:
        (tmp_path / 'report.json').write_text(text)
    done = page_of(tmp_path / 'report.json')
    assert done.returncode == 2 and words in done.stderr and not done.stdout, done


BARE = """
set -e
mount -t proc proc $1/proc
mount --rbind /dev $1/dev
mount --rbind /sys $1/sys
root=$1; user=$2; shift 2
exec chroot --userspec=$user $root /kit/run -o /out "$@"
"""


@pytest.mark.root
@pytest.mark.parametrize('user', ['0:0', '12345:12345'])
def test_a_system_with_nothing_but_glibc_has_jobs(kit, place, user):
    """No shell, no user database, no configuration: a container made from nothing."""
    harness.require_namespaces()
    kit.install()
    root = f'{place}/root'
    for folder in ('proc', 'dev', 'sys', 'tmp', 'out', 'driver', 'kit'):
        os.makedirs(f'{root}/{folder}')
    for folder in ('tmp', 'out', 'driver'):
        os.chmod(f'{root}/{folder}', 0o1777)
    shutil.copytree(f'{kit.place}/bin', f'{root}/kit/bin')
    shutil.copy(f'{kit.place}/run', f'{root}/kit/run')
    for name in os.listdir(f'{kit.place}/driver'):
        shutil.copy(f'{kit.place}/driver/{name}', f'{root}/driver')
    programs = [f'{root}/kit/run'] + [f'{root}/kit/bin/{name}' for name in os.listdir(f'{root}/kit/bin')]
    found = subprocess.run(['ldd', *programs], capture_output=True, text=True, check=False).stdout
    for library in {word for line in found.splitlines() for word in line.split() if word.startswith('/') and
                    not word.endswith(':')}:
        os.makedirs(root + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, root + library)
    done = subprocess.run(['unshare', '-m', 'sh', '-c', BARE, 'sh', root, user, '--only', 'job-one'], check=False,
                          env={'PATH': os.environ['PATH'], 'LD_LIBRARY_PATH': '/driver',
                               'ASAN_OPTIONS': 'detect_leaks=0'},
                          capture_output=True, text=True, timeout=KIT_S)
    with open(f'{root}/out/report.json', encoding='utf-8') as report:
        checks = {check['name']: check for check in json.load(report)['checks']}
    sys.stdout.write(done.stdout + done.stderr)
    assert (done.returncode, checks['job-one']['result']) == (0, 'passed'), checks['job-one']


@only_whole
def test_it_ends_in_the_time_that_it_is_given(kit):
    kit.install(cuda=('init_ms 3000',))
    begin = time.monotonic()
    kit.run('-t', 15)
    assert time.monotonic() - begin < 15 + 15 + 5, 'the time, and that to stop mgpud'
    words = subprocess.run([f'{kit.place}/run', '--help'], capture_output=True, text=True, check=False,
                           env={'ASAN_OPTIONS': 'detect_leaks=0'}).stdout
    assert '570' in words, 'with 15 s to stop mgpud that is less than 10 minutes'


@pytest.mark.parametrize('nvml, cuda, name, text', some([
    ((), ('corrupt 5',), 'cuda-health', 'exit status 1'),
    ((), ('sorted 1',), 'job-order', "with -G 1,0 GPU 0 of the job is 'GPU-00112233"),
    ((), ('fail cuMemAlloc_v2 999',), 'oom-first', 'mgpu does not say that GPU memory ran out'),
    ((), ('fail cuMemAllocManaged 999',), 'cuda-managed', 'CUDA_ERROR_UNKNOWN'),
    ((), ('fail cuDevicePrimaryCtxRetain 999',), 'job-cancel', 'does not hold its memory'),
    (('handle 1 999',), (), 'nvml', '1 of 2 GPUs can be opened'),
    (('lost 1',), (), 'samples', '1 of 2 GPUs count as lost'),
    (('init 999',), (), 'nvml', 'NVML does not start'),
    (('compute 0 2', 'compute 1 2'), (), 'gpus', '0 of 2 GPUs are free'),
]))
def test_what_is_wrong_fails_its_check(kit, nvml, cuda, name, text):
    kit.install(nvml, cuda)
    status, checks = kit.run('--only', name)
    assert (status, checks[name]['result']) == (1, 'failed'), checks[name]
    assert text in checks[name]['text']
    with open(f'{kit.place}/out/report.txt', encoding='utf-8') as page:
        listed = next(line for line in page.read().splitlines() if line.startswith('Failed:'))
    assert name in listed.split()


@pytest.mark.parametrize('of_cuda, text', [
    (GPUS[::-1], 'out of order'),
    ((GPUS[0], ('5b', 'f' * 32)), 'which NVML does not have'),
])
def test_gpus_that_cuda_numbers_otherwise_are_told(kit, of_cuda, text):
    kit.install(of_cuda=of_cuda)
    status, checks = kit.run('--only', 'numbers')
    assert (status, checks['numbers']['result']) == (1, 'failed'), checks['numbers']
    assert text in checks['numbers']['text']


def test_nvmls_own_order_does_not_matter(kit):
    kit.install(nvml=('order 1 0',))
    status, checks = kit.run('--only', 'numbers')
    assert (status, checks['numbers']['result']) == (0, 'passed'), checks['numbers']


def test_a_job_that_cannot_be_parked_is_told_with_the_reason(kit):
    kit.install()
    status, checks = kit.run('--only', 'park')
    assert (status, checks['park']['result']) == (0, 'skipped'), checks['park']
    assert checks['park']['text'].startswith('the job was not parked: '), checks['park']
    assert 'parking needs 13.0' in checks['park']['text'], 'the library was found'
    assert checks['park']['facts']['job']['state'] == 'done'


def test_a_driver_that_parks_slowly_passes_with_its_speeds(kit):
    kit.install_parking('rate save 250', 'rate restore 750')
    status, checks = kit.run('--only', 'park-most')
    park = checks['park-most']
    assert (status, park['result']) == (0, 'passed'), park
    facts = park['facts']
    assert facts['park_ms'] >= 800 and facts['unpark_ms'] >= 270, 'at least 200 MiB at these speeds'
    assert facts['control']['wrong_words'] == facts['output']['wrong_words'] == 0


@pytest.mark.parametrize('rules, cuda, result, text', some([
    ((), ('rot 5',), 'failed', 'the same memory was correct without parking'),
    ((), ('corrupt 5',), 'failed', 'wrong in a job that was not parked'),
    (('break save 999',), (), 'failed', 'the job ended as'),
    (('fail lock 801',), (), 'skipped', 'CUDA_ERROR_NOT_SUPPORTED'),
], every=2), ids=some(['rot', 'corrupt', 'broken', 'refused'], every=2))
def test_what_parking_changes_is_told_from_what_is_wrong_without_it(kit, rules, cuda, result, text):
    kit.install_parking(*rules, cuda=cuda)
    status, checks = kit.run('--only', 'park')
    assert (status, checks['park']['result']) == (int(result == 'failed'), result), checks['park']
    assert text in checks['park']['text']


def test_managed_memory_that_the_driver_refuses_to_save_stays_right(kit):
    kit.install_parking()
    status, checks = kit.run('--only', 'park-managed')
    assert (status, checks['park-managed']['result']) == (0, 'passed'), checks['park-managed']
    assert 'CUDA_ERROR_NOT_SUPPORTED' in checks['park-managed']['text']


def test_a_size_that_does_not_fit_is_not_tried(kit):
    kit.install_parking()
    status, checks = kit.run('--only', 'park-8')
    assert (status, checks['park-8']['result']) == (0, 'skipped'), checks['park-8']
    assert 'needs 8192 MiB of the GPU, and 230 can be used' in checks['park-8']['text']


@only_whole
def test_a_driver_that_hangs_leaves_the_checks_before_it(kit):
    kit.install(nvml=('hang 1',))
    status, checks = kit.run('-t', 3)
    assert status == 1
    assert list(checks) == ['machine', 'driver']


def test_a_cuda_that_hangs_is_given_up(kit):
    kit.install(cuda=('hang cuInit',))
    status, checks = kit.run('-t', 45, '--start-limit', '1500ms', '--only', 'job-one')
    assert (status, checks['numbers']['result']) == (1, 'failed'), results(checks)
    assert checks['job-one']['result'] == 'skipped'


@pytest.fixture
def box(kit, make_instance):
    """An instance on the kit's driver, and mgpu with mgpu-gpu-test beside it."""
    kit.install()
    made = make_instance(gpus='auto', arguments=['--nvml-library', f'{kit.place}/driver/libnvidia-ml.so.1'])

    def start(*arguments):
        env = dict(made.client.environment(), MGPU_SOCKET=made.socket, LD_LIBRARY_PATH=f'{kit.place}/driver',
                   ASAN_OPTIONS='detect_leaks=0')
        return subprocess.Popen([f'{kit.place}/bin/mgpu', 'gpu', 'test', '-m', '32M', *arguments], env=env, cwd='/tmp',
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **made.client.popen_arguments())

    def end(tester):
        out, err = tester.communicate(timeout=KIT_S)
        return tester.returncode, json.loads(out)['tests'] if out else err
    made.start_test, made.end_test = lambda *arguments: start('--json', *arguments), end
    made.test = lambda *arguments: end(made.start_test(*arguments))
    return made


def test_gpus_are_tested_in_jobs_whose_status_is_the_result(box):
    _, rows = box.test()
    assert [row['gpu'].partition(':')[2] for row in rows] == ['0', '1']
    assert all(row['result'] == 'passed' and row['on_gpu_gb_per_s'] > 0 for row in rows), rows
    job = box.job(rows[1]['job'])
    assert (job['name'], job['granted'][0]['index'], job['state']) == ('gpu-test', 1, 'done')
    assert job['status'].startswith('to ') and job['status'].endswith('wrong 0')


def test_a_slow_gpu_is_told_by_the_earlier_result_of_its_twin(box, kit):
    box.test('1')
    kit.install(cuda=('speed 60000',))
    status, rows = box.test('0')
    assert (status, rows[0]['result']) == (1, 'slow'), rows
    assert rows[0]['text'].endswith('40 % below the median of its model')


def test_memory_that_changes_fails_the_gpu(box, kit):
    kit.install(cuda=('corrupt 5',))
    status, rows = box.test('0')
    assert (status, rows[0]['result']) == (1, 'failed')
    assert rows[0]['text'].endswith('wrong results')


def test_a_gpu_in_use_is_tested_once_it_is_free(box, gate):
    busy = box.submit('--gpu-ids', '0', '--', *gate.command())
    box.wait(busy, 'running')
    tester = box.start_test('0')
    harness.until(lambda: box.api('GET', '/jobs?name=gpu-test&state=queued').json['jobs'], 'the test waits')
    gate.open()
    status, rows = box.end_test(tester)
    assert status == 0 and rows[0]['result'] == 'passed', rows


def test_a_gpu_that_is_not_there_is_refused(box):
    assert box.test('7') == (3, 'mgpu gpu test: there is no GPU 7\n')
