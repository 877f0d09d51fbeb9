/* SPDX-License-Identifier: MIT */
/* Against directories of plain files in the place of procfs and of a cgroup. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/usage/host.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

static char root[64], cell[96];

static void put(const char *dir, const char *file, const char *text)
{
    _cleanup_free_ char *where = xasprintf("%s/%s", root, dir);
    _cleanup_free_ char *path = xasprintf("%s/%s", where, file);
    assert_int_equal(make_directories(where, 0700), 0);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static int setup(void **state)
{
    (void)snprintf(root, sizeof(root), "/tmp/mgpu-host-XXXXXX");
    assert_non_null(mkdtemp(root));
    (void)snprintf(cell, sizeof(cell), "%s/j42.1/step0.0", root);
    put("j42.1/step0.0", "cpu.stat", "usage_usec 7500000\nuser_usec 7000000\n");
    put("7", "statm", "1000 10 3 1 0 9 0\n");
    put("7", "stat", "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 100 50 20 30 20 0 1 0 700 0 0\n");
    put("8", "statm", "1000 5 3 1 0 9 0\n");
    put("8", "stat", "8 (c) S 7 1 1 0 -1 0 0 0 0 0 100 0 0 0 20 0 1 0 800 0 0\n");
    put("7/task/7", "children", "");
    put("7/task/17", "children", "8 \n");
    return 0;
}

static int teardown(void **state)
{
    return unit_test_remove(root);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(a_cgroup_with_controllers_says_everything)
{
    struct usage_host host;
    put("j42.1", "memory.peak", "123456\n");
    put("j42.1", "memory.current", "99\n");
    usage_host_read(root, cell, 7, &host);
    assert_true(host.is_cpu_known && host.is_memory_known);
    assert_int_equal(host.cpu_ms, 7500);
    assert_int_equal(host.memory, 123456);
}

CASE(without_them_its_processes_are_added_up)
{
    struct usage_host host;
    put("j42.1/step0.0", "cgroup.procs", "7\n8\n");
    usage_host_read(root, cell, 7, &host);
    assert_true(host.is_cpu_known && host.is_memory_known);
    assert_int_equal(host.cpu_ms, 7500);
    assert_int_equal(host.memory, 15 * sysconf(_SC_PAGESIZE));
}

CASE(a_frozen_cgroup_is_paused)
{
    struct usage_host host;
    usage_host_read(root, cell, 7, &host);
    assert_false(host.is_paused);
    put("j42.1/step0.0", "cgroup.events", "populated 1\nfrozen 0\n");
    usage_host_read(root, cell, 7, &host);
    assert_false(host.is_paused);
    put("j42.1/step0.0", "cgroup.events", "populated 1\nfrozen 1\n");
    usage_host_read(root, cell, 7, &host);
    assert_true(host.is_paused);
}

CASE(without_a_cgroup_it_is_paused_when_all_below_the_init_are_stopped)
{
    struct usage_host host;
    usage_host_read(root, NULL, 7, &host);
    assert_false(host.is_paused);
    put("8", "stat", "8 (c) T 7 1 1 0 -1 0 0 0 0 0 100 0 0 0 20 0 1 0 800 0 0\n");
    usage_host_read(root, NULL, 7, &host);
    assert_true(host.is_paused);
}

CASE(without_a_cgroup_what_descends_from_the_init_is_added_up)
{
    struct usage_host host;
    usage_host_read(root, NULL, 7, &host);
    assert_true(host.is_cpu_known && host.is_memory_known);
    assert_int_equal(host.cpu_ms, 300 * 1000 / sysconf(_SC_CLK_TCK));
    assert_int_equal(host.memory, 15 * sysconf(_SC_PAGESIZE));
}

CASE(what_has_gone_is_not_known)
{
    struct usage_host host;
    usage_host_read(root, "/nonexistent/j1.1/step0.0", 0, &host);
    assert_false(host.is_cpu_known || host.is_memory_known);
    usage_host_read(root, NULL, 0, &host);
    assert_false(host.is_cpu_known || host.is_memory_known);
}

CASE(what_a_v1_group_counted_is_better)
{
    struct usage_host host;
    _cleanup_free_ char *group = xasprintf("%s/memory", root);
    put("j42.1/step0.0", "cgroup.procs", "7\n8\n");
    put("memory", "memory.max_usage_in_bytes", "777777\n");
    usage_host_read(root, cell, 7, &host);
    usage_host_read_v1(group, &host);
    assert_int_equal(host.memory, 777777);
    usage_host_read_v1("/nonexistent", &host);
    assert_int_equal(host.memory, 777777);
}

CASE(the_peak_is_told_when_no_process_is_left)
{
    uint64_t peak = 0;
    _cleanup_free_ char *group = xasprintf("%s/memory", root);
    assert_false(usage_host_peak(NULL, NULL, &peak));
    put("j42.1/step0.0", "memory.current", "5\n");
    assert_false(usage_host_peak(cell, "/nonexistent", &peak));
    put("j42.1", "memory.peak", "888888\n");
    assert_true(usage_host_peak(cell, NULL, &peak));
    assert_int_equal(peak, 888888);
    put("memory", "memory.max_usage_in_bytes", "777777\n");
    assert_true(usage_host_peak(cell, group, &peak));
    assert_int_equal(peak, 777777);
}

CASE(more_processes_than_can_be_added_up_are_not_guessed)
{
    struct usage_host host;
    char list[8192] = "";
    for (int i = 0; i < 600; i++)
        (void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%d\n", 100000 + i);
    put("j42.1/step0.0", "cgroup.procs", list);
    usage_host_read(root, cell, 7, &host);
    assert_true(host.is_cpu_known);
    assert_false(host.is_memory_known);
}
