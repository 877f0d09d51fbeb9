# SPDX-License-Identifier: MIT
"""Numbers are true or absent: what was not measured is shown as nothing, and tools/check-numbers notices code that would show 0."""

import os
import pathlib
import subprocess

import pytest

import harness

GPUS = 'sim:2x24G'
CHECK = f'{harness.ROOT}/tools/check-numbers'


def check(root):
    return subprocess.run([CHECK, root], capture_output=True, text=True, check=False)


def test_the_sources_show_nothing_that_was_not_measured():
    done = check(harness.ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(('path', 'text', 'words'), [
    ('src/wire/json_job.c', 'x = { "warp_speed", "number|null", "of it" };', 'is warp_speed measured?'),
    ('src/cli/a.c', 'int f(void)\n{\n    return field_number(job, "cpu_seconds", 0);\n}\n', 'cpu_seconds is 0 when it is not known'),
    ('src/cli/a.c', 'int f(void)\n{\n    return field_integer(json_object_get(job, "usage"), "memory_peak_bytes", 0);\n}\n', 'memory_peak_bytes is 0'),
    ('src/controller/a.c', 'format_size(usage->gpu_memory_peak, text, sizeof(text));', 'gpu_memory_peak may not have been measured'),
    ('web/a.js', 'const text = `${gpu.utilization ?? 0}`;', 'utilization is 0 when it is not known'),
], ids=['member', 'default', 'nested', 'raw', 'page'])
def test_each_kind_of_made_up_number_is_found(place, path, text, words):
    for name in ('src/wire/json_job.c', 'src/controller/api/answers.c', 'web/empty.js', path):
        file = pathlib.Path(place, name)
        os.makedirs(file.parent, exist_ok=True)
        file.write_text(text if name == path else '')
    done = check(place)
    assert done.returncode == 1 and words in done.stdout, done


def test_a_job_too_short_for_a_sample_has_no_figures(make_instance):
    """It says that its GPU was out of memory, and is gone before anything was measured."""
    box = make_instance(GPUS)
    job = box.submit('-g', '1', '--', 'sh', '-c', 'echo "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB" >&2; exit 1')
    ended = box.wait(job)
    usage = ended['usage'] or {}
    assert ended['ended_by'] == 'gpu_oom' and 'it used up to' not in ended['message'], ended
    assert not usage.get('gpu_memory_peak_bytes') and usage.get('gpu_memory_peak_bytes') != 0 and usage.get('memory_peak_bytes') != 0, usage
    for verb in ('show', 'postmortem'):
        shown = box.mgpu(verb, job, check=True).out
        for made_up in (' 0 B', 'at most 0.0', ' 0.0 Wh'):
            assert made_up not in shown, (verb, shown)
