# SPDX-License-Identifier: MIT
"""A dry run changes nothing: each option that submit has, and each way to name another job, is tried with --dry-run, and the store is as before."""

import contextlib
import re
import sqlite3

import pytest

import harness
import slurm

# A value for each option with one; jobs are ARRAY, whose elements wait, and NEXT, which waits, too.
VALUES = {
    'gpus': '1', 'gpu-ids': '0', 'gpu-allow': '0-1', 'gpu-mem': '1G', 'share': 'none', 'cpus': '1', 'ram': '1G', 'nodes': '1', 'gpus-per-node': '1',
    'partition': 'none-such', 'nodelist': 'none-such', 'exclude': 'none-such', 'time': '1h', 'signal': 'USR1@60', 'grace': '5s', 'on-timeout': 'requeue',
    'on-preempt': 'requeue', 'requeue-on': 'node-lost', 'max-requeues': '2', 'retry': '2', 'retry-on': '75', 'retry-oom': 'x1.5', 'notify': 'mail',
    'notify-on': 'end', 'priority': '1', 'begin': '+1h', 'deadline': '+2h', 'array': '0-3', 'after': 'ARRAY.3', 'idle-timeout': '30m', 'log-max': '1M',
    'tty-idle': '1h', 'name': 'x', 'chdir': '/tmp', 'chdir-fallback': 'tmp', 'env': 'A=b', 'env-file': '/dev/null', 'export': 'minimal', 'module': 'x',
    'conda': 'x', 'venv': '/tmp', 'setup': 'true', 'image': 'x', 'image-mount': '/tmp', 'image-runtime': 'podman', 'output': '/tmp/x', 'error': '/tmp/y',
    'input': '/dev/null', 'file': '-', 'sweep': 'x=1-3',
}
AFTER = ('NEXT', 'NEXT:any', 'ARRAY', 'ARRAY.3', 'ARRAY.3:fail', 'ARRAY.2:any,ARRAY.3:any', 'ARRAY.2?ARRAY.3', 'ARRAY.1:start+5m', 'ARRAY.0', 'next', '@')
DEPENDENCIES = ('afterok:ARRAY_3', 'afterany:ARRAY_*', 'after:ARRAY_3+5', 'aftercorr:ARRAY', 'afterok:ARRAY_2:ARRAY_3', 'afterok:ARRAY_1?afterany:ARRAY_2')


class Waiting:
    """An array and a job that wait, and what the store has of all jobs."""

    def __init__(self, instance):
        self.instance = instance
        self.array = instance.submit('--hold', '-g', '0', '-a', '0-3', '-J', 'sweep', '--', 'true')
        self.next = instance.submit('--hold', '-g', '0', '-J', 'next', '--', 'true')

    def named(self, text):
        return text.replace('ARRAY', str(self.array)).replace('NEXT', str(self.next))

    def store(self):
        """Every table but that of the clock."""
        with contextlib.closing(sqlite3.connect(f'file:{self.instance.state_dir}/store/mgpu.db?mode=ro', uri=True, timeout=10)) as db:
            return {name: db.execute(f'SELECT * FROM {name}').fetchall()
                    for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if name not in ('meta', 'sqlite_stat1')}

    def check_unchanged(self, call):
        before = self.store()
        done = call()
        after = self.store()
        assert {name: rows for name, rows in after.items() if rows != before.get(name)} == {}, done
        assert self.instance.job(self.array)['array_left'] == '0-3', done
        return done


@pytest.fixture(scope='module')
def waiting(someone):
    instance = harness.Instance('sim:2x8G', client=someone).start()
    yield Waiting(instance)
    instance.close()


@pytest.fixture
def commands(waiting, tmp_path):
    harness.open_folder(tmp_path)
    return slurm.Slurm(waiting.instance, tmp_path)


def options(instance):
    """The long names of all options of submit, and whether they have a value."""
    found = re.findall(r'^  (?:-\w, |    )--([a-z-]+)( \S)?', instance.mgpu('submit', '--help', check=True).out.split('Options:')[1].split('Options of every')[0], re.M)
    assert len(found) > 60, found
    return {name: bool(value) for name, value in found}


def test_no_option_makes_a_dry_run_change_the_store(waiting):
    tried = 0
    for option, has_value in options(waiting.instance).items():
        assert not has_value or option in VALUES, f'--{option} needs a value here'
        words = [f'--{option}', waiting.named(VALUES[option])] if has_value else [f'--{option}']
        waiting.check_unchanged(lambda words=words: waiting.instance.mgpu('submit', '--dry-run', *words, '--', 'true', '{x}', input=b'true\n'))
        tried += 1
    assert tried > 60


@pytest.mark.parametrize('after', AFTER)
def test_no_dependency_makes_a_dry_run_change_the_store(waiting, after):
    done = waiting.check_unchanged(lambda: waiting.instance.mgpu('submit', '--dry-run', '--after', waiting.named(after), '--', 'true'))
    assert done.code == 0 and 'It would wait' in done.out, done
    assert ('has not started: this shows when a job after the whole array would start' in done.err) == ('ARRAY.' in after), done


@pytest.mark.parametrize('dependency', DEPENDENCIES)
def test_no_dependency_makes_a_test_of_sbatch_change_the_store(waiting, commands, dependency):
    done = waiting.check_unchanged(lambda: commands.run('sbatch', '--test-only', '-d', waiting.named(dependency), '--wrap', 'true'))
    assert done.code == 0 and 'to start at' in done.err, done
