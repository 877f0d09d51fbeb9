# SPDX-License-Identifier: MIT
"""Command lines that do with mgpu what they do with Slurm 22.05, which runs beside it: the rows of slurm_judge.py."""

import concurrent.futures
import difflib
import os
import shutil
import tempfile

import pytest

import slurm_judge

ROWS = slurm_judge.rows()
PARTS = 3  # that are judged side by side, each by a Slurm of its own: they mostly wait


def in_part(part):
    return pytest.mark.xdist_group(f'slurm_judge {part}')


pytestmark = [pytest.mark.real, pytest.mark.root,
              pytest.mark.skipif(not shutil.which('apt-get'), reason='Slurm is had from Debian')]


@pytest.fixture(scope='module')
def sides(ana, bo):
    """Types a line at Slurm and at mgpu, at the same time. Why Slurm did not start, if it did not."""
    place = tempfile.mkdtemp(prefix='mgpu-t-', dir='/tmp')
    os.chmod(place, 0o755)
    packages = slurm_judge.unpack(place)
    if packages is None:
        shutil.rmtree(place)
        pytest.skip('the packages of Slurm cannot be had')
    ours = slurm_judge.Ours(ana, bo, place)
    node = ours.cluster.node('n1')
    try:
        real = slurm_judge.Real(ana, place, packages, node['memory_bytes'] >> 20)
    except AssertionError as error:  # for the first test
        ours.close()
        yield error
        return
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        yield lambda line: [typed.result() for typed in [threads.submit(side.type, line) for side in (real, ours)]]
    real.close()
    ours.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize('part', [pytest.param(part, marks=in_part(part)) for part in range(PARTS)])
def test_slurm_starts(sides, part):
    assert callable(sides), sides


@pytest.mark.parametrize('row', [pytest.param(row, id=row.where, marks=in_part(i * PARTS // len(ROWS))) for i, row in enumerate(ROWS)])
def test_a_line_does_what_it_does_with_slurm(sides, row):
    if not callable(sides):
        pytest.skip('Slurm does not start')
    real, ours = sides(row.line)
    told = ''.join(difflib.unified_diff(real.splitlines(True), ours.splitlines(True), 'Slurm', 'mgpu', n=9))
    if row.is_open and real != ours:
        pytest.xfail(row.reason)
    if row.reason is None and real != ours:
        pytest.fail(f'{row.line}\n{told}', pytrace=False)
    if row.reason is not None and not row.is_open and real == ours:
        pytest.fail(f'{row.line}\nis equal, and needs no reason: {row.reason}', pytrace=False)
