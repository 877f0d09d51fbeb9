/* SPDX-License-Identifier: MIT */
/* Against plain files in the place of cgroups. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "shepherd/processes/counts.h"
#include "unit_test.h"

static char root[64];

static char *put(const char *dir, const char *file, const char *text)
{
    char *where = xasprintf("%s/%s", root, dir);
    _cleanup_free_ char *path = xasprintf("%s/%s", where, file);
    assert_int_equal(make_directories(where, 0700), 0);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return where;
}

static int setup(void **state)
{
    (void)snprintf(root, sizeof(root), "/tmp/mgpu-counts-XXXXXX");
    assert_non_null(mkdtemp(root));
    return 0;
}

static int teardown(void **state)
{
    return unit_test_remove(root);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(v2_says_who_was_killed_and_why)
{
    struct counts counts;
    free(put("j1.1/step0.0", "cgroup.procs", ""));
    free(put("j1.1", "memory.peak", "2147483648\n"));
    free(put("j1.1", "pids.events", "max 12\n"));
    struct launch_spec spec = { .memory_limit = 2147483648 };
    spec.memory_cgroup = put("j1.1", "memory.events",
        "low 0\nhigh 0\nmax 31\noom 2\noom_kill 3\noom_group_kill 1\nsock_throttled 0\n");
    spec.job_cgroup = xasprintf("%s/j1.1/step0.0", root);
    counts_read(&spec, &counts);
    assert_int_equal(counts.oom_kills, 3);
    assert_true(counts.is_group_killed && counts.is_at_limit);
    assert_int_equal(counts.memory_peak, 2147483648);
    assert_int_equal(counts.refused_forks, 12);
    /* The node itself was out of memory. */
    free(put("j1.1", "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"));
    counts_read(&spec, &counts);
    assert_int_equal(counts.oom_kills, 1);
    assert_false(counts.is_group_killed || counts.is_at_limit);
    free(spec.memory_cgroup);
    free(spec.job_cgroup);
}

CASE(what_a_step_with_its_own_limit_loses_is_not_lost_by_the_command)
{
    struct counts counts;
    struct launch_spec spec = { .memory_limit = 2147483648 };
    spec.memory_cgroup = put("j1.1", "memory.events", "max 9\noom 1\noom_kill 1\noom_group_kill 0\n");
    spec.job_cgroup = put("j1.1/step0.0", "memory.events", "max 0\noom 0\noom_kill 0\noom_group_kill 0\n");
    free(put("j1.1", "memory.events.local", "max 0\noom 0\noom_kill 0\noom_group_kill 0\n"));
    counts_read(&spec, &counts);
    assert_int_equal(counts.oom_kills, 0);
    assert_false(counts.is_at_limit);
    /* The limit of the job itself: then every kill counts. */
    free(put("j1.1", "memory.events.local", "max 4\noom 1\noom_kill 0\noom_group_kill 0\n"));
    counts_read(&spec, &counts);
    assert_int_equal(counts.oom_kills, 1);
    assert_true(counts.is_at_limit);
    free(spec.memory_cgroup);
    free(spec.job_cgroup);
}

CASE(v1_says_it_in_other_files)
{
    struct counts counts;
    struct launch_spec spec = { .memory_limit = 64U << 20 };
    free(put("memory", "memory.max_usage_in_bytes", "67108864\n"));
    spec.memory_cgroup = put("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    strings_add(&spec.v1_cgroups, spec.memory_cgroup);
    strings_take(&spec.v1_cgroups, put("pids", "pids.events", "max 5\n"));
    counts_read(&spec, &counts);
    assert_int_equal(counts.oom_kills, 1);
    assert_true(counts.is_at_limit && !counts.is_group_killed);
    assert_int_equal(counts.memory_peak, 67108864);
    assert_int_equal(counts.refused_forks, 5);
    free(put("memory", "memory.max_usage_in_bytes", "30000000\n"));
    counts_read(&spec, &counts);
    assert_false(counts.is_at_limit);
    strings_clear(&spec.v1_cgroups);
    free(spec.memory_cgroup);
}

CASE(the_kills_of_the_whole_node_are_in_vmstat)
{
    _cleanup_free_ char *dir = put("proc", "vmstat", "nr_free_pages 7\noom_kill 128\npgscan 3\n");
    _cleanup_free_ char *path = xasprintf("%s/vmstat", dir);
    assert_int_equal(counts_node_oom_kills(path), 128);
    free(put("proc", "vmstat", "nr_free_pages 7\n"));
    assert_int_equal(counts_node_oom_kills(path), -1);
    assert_int_equal(counts_node_oom_kills("/nonexistent"), -1);
}

CASE(the_kills_before_a_step_are_read_once_a_second)
{
    _cleanup_free_ char *dir = put("proc", "vmstat", "pgscan 3\noom_kill 5\n");
    _cleanup_free_ char *path = xasprintf("%s/vmstat", dir);
    assert_int_equal(counts_node_oom_kills_before(path, 10000), 5);
    free(put("proc", "vmstat", "pgscan 3\noom_kill 6\n"));
    assert_int_equal(counts_node_oom_kills_before(path, 11000), 5);
    assert_int_equal(counts_node_oom_kills_before(path, 11001), 6);
}

CASE(without_cgroups_nothing_is_counted)
{
    static const struct counts nothing;
    struct launch_spec spec = { .memory_limit = 64U << 20, .pids_max = 5 };
    struct counts counts = { .oom_kills = 9 };
    char text[64];
    counts_read(&spec, &counts);
    assert_memory_equal(&counts, &nothing, sizeof(counts));
    counts_describe_rest(&counts, &spec, text, sizeof(text));
    assert_string_equal(text, "");
}
