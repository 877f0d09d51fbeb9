# SPDX-License-Identifier: MIT
"""Fixtures: users, private instances, and gates at which jobs wait for the test."""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time

import pytest

import harness


# Each of the processes that run tests side by side compiles all of them, and pytest twice. What one has compiled is for all; programs that
# tests start compile as they would without this.
sys.dont_write_bytecode, sys.pycache_prefix = False, f'{harness.build_folder()}/pycache'

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000  # of sched.h and sys/mount.h


def bind_root():
    """In a plain chroot / is no mount point, and programs that change its propagation, as unshare does, are refused. There
    all that runs from here on gets a / that is one, in a mount namespace of its own."""
    with open('/proc/self/mountinfo', encoding='utf-8') as mounts:
        if os.geteuid() != 0 or any(line.split()[4] == '/' for line in mounts):
            return
    libc, here, aside = ctypes.CDLL(None), os.getcwd(), b'/tmp'  # where only the old / has it
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b'/', aside, None, MS_BIND | MS_REC, None) == 0:
        os.chdir(aside)
        os.chroot('.')
        libc.mount(None, b'/', None, MS_REC | MS_PRIVATE, None)
        os.chdir(here)


def pytest_configure(config):
    config.addinivalue_line('markers', 'root: needs root (several users)')
    config.addinivalue_line('markers', 'gpu: needs an NVIDIA GPU')
    config.addinivalue_line('markers', 'real: needs a package that only make check-real installs')
    config.addinivalue_line('markers', 'wing: of compat/ or lab/: tools/run-tests --wings has these, --house the others')
    config.addinivalue_line('markers', 'minutes(number): takes that long on a slow machine, and does not begin later than that before TESTS_END')
    config.addinivalue_line('markers', 'smoke: short, and shows that most works: make check QUICK=1')
    bind_root()
    # A shell without job control has what it starts in the background ignore SIGINT, as nohup does with SIGHUP, and so would all that is tested.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def needs_its_module(item):
    """Whether the test uses something that is made once for its file, such as an instance."""
    return any(fixture.scope == 'module' for fixtures in item._fixtureinfo.name2fixturedefs.values()
               for fixture in fixtures)


# Files here whose tests are of the wings of the house (ARCHITECTURE.md, "Rooms").
WINGS = ('seeds/', 'test_compat.', 'test_gpu_kit', 'test_python_names.', 'test_sim.', 'test_slurm_')


def is_of_a_wing(item):
    return str(item.path.relative_to(os.path.dirname(__file__))).startswith(WINGS)


# They take minutes, so none of them may be the last that begins.
LONG_FILES = ('test_models.py', 'test_from_nothing.py', 'test_packages.py', 'test_release.py', 'test_container.py', 'test_web_browser.py')


def begin_elsewhere(items):
    """With TESTS_FIRST, a number, the tests of another file are the first after the long ones; those of the files before it are the
    last."""
    files = list(dict.fromkeys(item.path for item in items))
    if files and os.environ.get('TESTS_FIRST'):
        first = int(os.environ['TESTS_FIRST']) % len(files)
        items.sort(key=lambda item: (item.path.name not in LONG_FILES, (files.index(item.path) - first) % len(files)))


def pytest_runtest_setup(item):
    """No test begins after TESTS_END, seconds since 1970 (tools/run-tests)."""
    takes = item.get_closest_marker('minutes')
    if time.time() + (60 * takes.args[0] if takes else 0) > float(os.environ.get('TESTS_END', 'inf')):
        pytest.skip('the time for tests was over')


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests run side by side (`-n 6 --dist loadgroup`): those that share an instance in one worker, all others anywhere.

    Tests that use the same fixed path name their own group: `@pytest.mark.xdist_group('that path')`."""
    begin_elsewhere(items)
    for item in items:
        if is_of_a_wing(item):
            item.add_marker(pytest.mark.wing)
        if not item.get_closest_marker('xdist_group') and needs_its_module(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        if item.get_closest_marker('root') and not harness.IS_ROOT:
            item.add_marker(pytest.mark.skip(reason='needs root'))
        if item.get_closest_marker('gpu') and not harness.HAS_NVIDIA:
            item.add_marker(pytest.mark.skip(reason='no NVIDIA GPU here'))


@pytest.fixture(scope='session', autouse=True)
def remove_programs():
    yield
    if harness.programs.cache_info().currsize:
        shutil.rmtree(harness.programs(), ignore_errors=True)


@pytest.fixture(scope='session')
def ana():
    return harness.make_user('mgpu-ta', group='mgpu-tg')


@pytest.fixture(scope='session')
def bo():
    return harness.make_user('mgpu-tb')


@pytest.fixture(scope='session')
def someone(request):
    """The user of tests that need only one: mgpu-ta as root, else whoever runs the tests."""
    if harness.IS_ROOT:
        return request.getfixturevalue('ana')
    import pwd
    return harness.User(pwd.getpwuid(os.geteuid()).pw_name)


@pytest.fixture
def make_instance(someone):
    """Instances of this one test; each is taken down and checked at its end."""
    made = []

    def make(gpus='sim:8x24G', start=True, **options):
        instance = harness.Instance(gpus, **{'client': someone, **options})
        made.append(instance)
        return instance.start() if start else instance

    yield make
    problems = []
    for instance in reversed(made):
        try:
            instance.close()
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, '\n'.join(problems)


@pytest.fixture(scope='module')
def shared_box(request, someone):
    """The module's instance: as root with several users, or the user's own. Real GPUs when the machine has them."""
    gpus = getattr(request.module, 'GPUS', 'auto' if harness.HAS_NVIDIA else 'sim:8x24G')
    instance = harness.Instance(gpus, client=someone, listen=getattr(request.module, 'LISTEN', 'none'),
                                arguments=getattr(request.module, 'ARGUMENTS', ()))
    instance.start()
    yield instance
    instance.close()


@pytest.fixture(scope='module')
def two(someone):
    """A machine with mgpud and two nodes that joined it over TLS."""
    with pytest.importorskip('cluster').Cluster(2, client=someone) as made:
        yield made


@pytest.fixture
def box(shared_box):
    """The module's instance, with no job open at the end of each test."""
    yield shared_box
    if shared_box.process.poll() is not None:
        log = shared_box.log()[-4000:]
        shared_box.start()
        raise AssertionError(f'mgpud died in this test:\n{log}')
    shared_box.cancel_all()


@pytest.fixture
def place():
    """A directory that every user may enter and write."""
    path = tempfile.mkdtemp(prefix='mgpu-p-', dir='/tmp')
    os.chmod(path, 0o1777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def tmp_path(tmp_path):
    """Pytest's own, which every user may enter: mgpud and its jobs are other users."""
    harness.open_folder(tmp_path)
    return tmp_path


@pytest.fixture
def gate(place):
    made = harness.Gate(place)
    yield made
    made.close()


@pytest.fixture
def bell(place):
    made = harness.Bell(place)
    yield made
    made.close()


@pytest.fixture
def ran():
    """A file in which each job writes its id once it runs."""
    with tempfile.NamedTemporaryFile(prefix='mgpu-ran-', dir='/tmp', delete=False) as file:
        os.fchmod(file.fileno(), 0o666)
    yield file.name
    os.unlink(file.name)
