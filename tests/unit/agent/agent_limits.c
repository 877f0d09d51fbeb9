/* SPDX-License-Identifier: MIT */
/* Against the real kernel, in whichever hierarchy the controllers are; skipped where nothing can be limited.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confine/confine.h"
#include "agent/confine/cpu_pool.h"
#include "agent/confine/limit_files.h"
#include "agent/confine/limits.h"
#include "agent/host/pids_max.h"
#include "base/memory.h"
#include "unit_test.h"

#define TEXT_SIZE 256

static const struct spool_id first = { .job = 5, .attempt = 2 }, second = { .job = 6, .attempt = 1 };

struct place {
    char run_dir[64];
    const struct confine *kind;
    struct confine_state *cells;
};

static void open_cells(struct place *place)
{
    place->kind = NULL;
    for (size_t i = 0; confine_kinds[i] != NULL && place->kind == NULL; i++)
        if (confine_kinds[i]->open(place->run_dir, NULL, &place->cells, NULL) == 0)
            place->kind = confine_kinds[i];
    assert_non_null(place->kind);
}

static int setup(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    (void)snprintf(place->run_dir, sizeof(place->run_dir), "/tmp/mgpu-limits.XXXXXX");
    assert_non_null(mkdtemp(place->run_dir));
    open_cells(place);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = { "cgroup", "cgroup-v1" };
    struct place *place = *state;
    assert_int_equal(place->kind->remove(place->cells, &first), 0);
    assert_int_equal(place->kind->remove(place->cells, &second), 0);
    place->kind->close(place->cells);
    for (size_t i = 0; i < 2; i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", place->run_dir, files[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(place->run_dir), 0);
    free(place);
    return 0;
}

#define CASE(name, place) TEST_ON(name, struct place *place, setup, teardown)

static bool has(const struct place *place, enum limit_controller controller)
{
    return limits_how(place->kind->limits(place->cells), controller) != NULL;
}

static int try_limit(
    const struct place *place, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    int shepherd_fd;
    free(take_ptr(spec->job_cgroup));
    assert_int_equal(place->kind->prepare(place->cells, id, &spec->job_cgroup, &shepherd_fd, NULL), 0);
    return place->kind->limit(place->cells, id, spec, err);
}

static void limit(const struct place *place, const struct spool_id *id, struct launch_spec *spec)
{
    struct error err = { 0 };
    if (try_limit(place, id, spec, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(place->kind->is_limited(place->cells, id));
}

/* The value of the file that one of the attempt's directories has; "" when none has it. */
static const char *value_of(
    const struct launch_spec *spec, const char *v2_file, const char *v1_file, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < spec->v1_cgroups.count; i++)
        if (limit_files_read(spec->v1_cgroups.items[i], v1_file, text, TEXT_SIZE))
            return text;
    if (spec->job_cgroup == NULL)
        return text;
    _cleanup_free_ char *attempt = xasprintf("%s/..", spec->job_cgroup);
    (void)limit_files_read(attempt, v2_file, text, TEXT_SIZE);
    return text;
}

static void clear(struct launch_spec *spec)
{
    record_clear(&launch_spec_record, spec);
}

CASE(what_is_asked_for_stands_in_the_kernels_files, place)
{
    char text[TEXT_SIZE];
    if (!has(place, LIMIT_MEMORY) || !has(place, LIMIT_CPU) || !has(place, LIMIT_PIDS))
        skip();
    _cleanup_(
        clear) struct launch_spec spec = { .memory_limit = 64U << 20, .cpu_milli = 500, .pids_max = 30 };
    for (int i = 0; i < 2; i++) {
        limit(place, &first, &spec);
        assert_string_equal(value_of(&spec, "memory.max", "memory.limit_in_bytes", text), "67108864");
        assert_string_equal(value_of(&spec, "pids.max", "pids.max", text), "30");
        assert_int_equal(strncmp(value_of(&spec, "cpu.max", "cpu.cfs_quota_us", text), "50000", 5), 0);
        assert_non_null(spec.memory_cgroup);
        assert_int_equal(access(spec.memory_cgroup, F_OK), 0);
    }
}

CASE(memory_means_memory_without_swap, place)
{
    char text[TEXT_SIZE];
    if (!has(place, LIMIT_MEMORY))
        skip();
    _cleanup_(clear) struct launch_spec spec = { .memory_limit = 64U << 20 };
    limit(place, &first, &spec);
    (void)value_of(&spec, "memory.swap.max", "memory.memsw.limit_in_bytes", text);
    assert_true(text[0] == '\0' || strcmp(text, spec.v1_cgroups.count > 0 ? "67108864" : "0") == 0);
    if (spec.v1_cgroups.count == 0)
        assert_string_equal(value_of(&spec, "memory.oom.group", "", text), "1");
}

CASE(what_is_not_asked_for_is_not_limited, place)
{
    char text[TEXT_SIZE];
    _cleanup_(clear) struct launch_spec spec = { 0 };
    limit(place, &first, &spec);
    (void)value_of(&spec, "memory.max", "memory.limit_in_bytes", text);
    assert_true(text[0] == '\0' || strcmp(text, "max") == 0);
    (void)value_of(&spec, "cpu.max", "cpu.cfs_quota_us", text);
    assert_true(text[0] == '\0' || strncmp(text, "max", 3) == 0 || strncmp(text, "-1", 2) == 0);
}

/* Thousands of processes of one job leave the other jobs and mgpud their time. */
CASE(an_attempt_is_one_competitor_for_the_cpus_whatever_it_asks_for, place)
{
    static const uint32_t asked[] = { 0, 500, 1000 };
    char text[TEXT_SIZE];
    if (!has(place, LIMIT_CPU))
        skip();
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct launch_spec spec = { .cpu_milli = asked[i] };
        limit(place, &first, &spec);
        int share = atoi(value_of(&spec, "cpu.weight", "cpu.shares", text));
        assert_int_equal(share, spec.v1_cgroups.count > 0 ? 1024 : 100);
        assert_int_equal(place->kind->remove(place->cells, &first), 0);
        clear(&spec);
    }
}

static struct cpu_set cpus_of(const struct launch_spec *spec)
{
    char text[TEXT_SIZE];
    struct cpu_set set;
    assert_true(cpu_set_parse(value_of(spec, "cpuset.cpus", "cpuset.cpus", text), &set));
    return set;
}

static bool overlaps(const struct cpu_set *a, const struct cpu_set *b)
{
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX; cpu++)
        if (cpu_set_has(a, cpu) && cpu_set_has(b, cpu))
            return true;
    return false;
}

/* An agent that starts while they run knows them as well: it reads the cgroups. */
CASE(whole_cpus_are_nobody_elses_also_after_a_restart, place)
{
    struct launch_spec one = { .cpu_milli = 1000 }, other = { .cpu_milli = 1000 };
    if (!has(place, LIMIT_CPUSET) || sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    limit(place, &first, &one);
    struct cpu_set mine = cpus_of(&one);
    assert_int_equal(cpu_set_count(&mine), 1);
    place->kind->close(place->cells);
    open_cells(place);
    limit(place, &second, &other);
    struct cpu_set others = cpus_of(&other);
    assert_int_equal(cpu_set_count(&others), 1);
    assert_false(overlaps(&mine, &others));
    limit(place, &first, &one);
    struct cpu_set again = cpus_of(&one);
    assert_memory_equal(&again, &mine, sizeof(mine));
    clear(&one);
    clear(&other);
}

/* A node that does not exist tells nothing: any CPU will do. */
CASE(cpus_are_near_the_gpu_where_that_is_known, place)
{
    char text[TEXT_SIZE];
    struct cpu_set node0 = { 0 };
    if (!has(place, LIMIT_CPUSET))
        skip();
    static const uint64_t sets[] = { 1, UINT64_C(1) << 63, 1 | UINT64_C(1) << 63 };
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct launch_spec spec = { .cpu_milli = 1000, .numas = sets[i] };
        limit(place, &first, &spec);
        struct cpu_set own = cpus_of(&spec);
        assert_int_equal(cpu_set_count(&own), 1);
        if ((sets[i] & 1) != 0 &&
            limit_files_read("/sys/devices/system/node/node0", "cpulist", text, sizeof(text)) &&
            cpu_set_parse(text, &node0))
            assert_true(overlaps(&own, &node0));
        assert_int_equal(place->kind->remove(place->cells, &first), 0);
        clear(&spec);
    }
}

CASE(more_cpus_than_are_free_become_a_quota, place)
{
    char text[TEXT_SIZE];
    uint32_t all = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    struct launch_spec one = { .cpu_milli = 1000 }, rest = { .cpu_milli = all * 1000 };
    if (!has(place, LIMIT_CPUSET) || !has(place, LIMIT_CPU))
        skip();
    limit(place, &first, &one);
    limit(place, &second, &rest);
    _cleanup_free_ char *quota = xasprintf("%u00000", all);
    (void)value_of(&rest, "cpu.max", "cpu.cfs_quota_us", text);
    assert_int_equal(strncmp(text, quota, strlen(quota)), 0);
    assert_string_equal(value_of(&rest, "cpuset.cpus", "cpuset.cpus", text), "");
    clear(&one);
    clear(&rest);
}

/* More processes than Linux can count are refused by the kernel. */
CASE(a_limit_that_cannot_be_set_is_an_error, place)
{
    struct error err = { 0 };
    if (!has(place, LIMIT_PIDS))
        skip();
    _cleanup_(clear) struct launch_spec spec = { .pids_max = 2 * PIDS_MAX };
    assert_int_equal(try_limit(place, &first, &spec, &err), -EINVAL);
    assert_non_null(strstr(err.message, "pids.max"));
    assert_true(place->kind != &confine_cgroup2 || !place->kind->is_limited(place->cells, &first));
}

static void visit(void *arg, const struct spool_id *id, bool is_populated)
{
    size_t *count = arg;
    assert_int_equal(id->job, first.job);
    assert_int_equal(id->attempt, first.attempt);
    assert_false(is_populated);
    (*count)++;
}

CASE(groups_go_with_the_attempt_and_are_swept_when_left, place)
{
    struct launch_spec spec = { .memory_limit = 64U << 20, .cpu_milli = 500, .pids_max = 30 };
    size_t count = 0;
    limit(place, &first, &spec);
    /* In v2 they go with the cell. */
    if (spec.v1_cgroups.count == 0)
        return clear(&spec);
    /* The agent died between the cell and the groups. */
    assert_int_equal(rmdir(spec.job_cgroup), 0);
    *strrchr(spec.job_cgroup, '/') = '\0';
    assert_int_equal(rmdir(spec.job_cgroup), 0);
    place->kind->close(place->cells);
    open_cells(place);
    assert_int_equal(place->kind->list(place->cells, visit, &count), 0);
    assert_int_equal(count, spec.v1_cgroups.count);
    assert_int_equal(place->kind->remove(place->cells, &first), 0);
    for (size_t i = 0; i < spec.v1_cgroups.count; i++)
        assert_int_equal(access(spec.v1_cgroups.items[i], F_OK), -1);
    clear(&spec);
}

TEST(one_job_never_takes_all_processes)
{
    assert_int_equal(pids_max_of(4194304), PIDS_MAX_DEFAULT);
    assert_int_equal(pids_max_of(65536), 16384);
    assert_int_equal(pids_max_of(32768), 8192); // two jobs leave half of it
    assert_int_equal(pids_max_of(0), PIDS_MAX_DEFAULT);
    assert_true(pids_max_default() > 0);
}
