/* SPDX-License-Identifier: MIT */
/* With a spool and a procfs made of plain files. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/usage_watch.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/event.h"
#include "job/launch.h"
#include "unit_test.h"

static char root[64];
static int spool_fd;
static struct usage_watch *watch;
static const struct spool_id id = { .job = 42, .attempt = 1 };
static char uuid[] = "GPU-0";

static int open_entry(void)
{
    (void)mkdirat(spool_fd, "42.1.0.0", 0700);
    int fd = openat(spool_fd, "42.1.0.0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void put_spec(void)
{
    _cleanup_close_ int fd = open_entry();
    struct launch_spec spec = { .id.job = 42, .id.attempt = 1, .token = 99 };
    (void)gpu_grants_add(&spec.gpus, 0, uuid, 0, 0);
    assert_int_equal(file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, false), 0);
    gpu_grants_clear(&spec.gpus);
}

static void put_started(void)
{
    _cleanup_close_ int fd = open_entry();
    struct launch_started started = {
        .id.job = 42, .id.attempt = 1, .wall_ms = 1000, .init_pid = 50, .init_start = 500
    };
    assert_int_equal(file_write_record(fd, SPOOL_STARTED, &launch_started_record, &started, false), 0);
}

static void put_exit(void)
{
    _cleanup_close_ int fd = open_entry();
    struct launch_exit record = { .id.job = 42, .id.attempt = 1 };
    assert_int_equal(file_write_record(fd, SPOOL_EXIT, &launch_exit_record, &record, false), 0);
}

static int setup(void **state)
{
    (void)snprintf(root, sizeof(root), "/tmp/mgpu-watch-XXXXXX");
    assert_non_null(mkdtemp(root));
    spool_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    watch = usage_watch_new(spool_fd, root);
    return 0;
}

static int teardown(void **state)
{
    usage_watch_free(watch);
    closep(&spool_fd);
    return unit_test_remove(root);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

/* Reports this utilization of the GPU; returns the number of usages sent. */
static size_t add(int64_t boot_ms, uint32_t percent)
{
    struct gpu_state gpu = { .uuid = uuid, .valid = GPU_UTILIZATION, .utilization_percent = percent };
    struct record_list gpus = { &gpu, 1 }, usages;
    usage_watch_add(watch, &gpus, boot_ms, boot_ms);
    usage_watch_usages(watch, &usages);
    size_t count = usages.count;
    if (count > 0)
        assert_int_equal(((struct attempt_usage *)usages.items)->token, 99);
    usage_watch_clear(&usages);
    return count;
}

static uint64_t sampled_at_end(void)
{
    struct job_usage *usage = usage_watch_end(watch, &id);
    uint64_t sampled_ms = usage != NULL ? usage->sampled_ms : 0;
    job_usage_free(usage);
    return sampled_ms;
}

CASE(an_attempt_is_measured_from_its_start_to_its_end)
{
    put_spec();
    assert_int_equal(add(1000, 50), 0);
    put_started();
    assert_int_equal(add(2000, 50), 1);
    assert_int_equal(add(3000, 50), 1);
    put_exit();
    assert_int_equal(add(4000, 0), 0);
    assert_int_equal(sampled_at_end(), 2000);
}

CASE(an_attempt_that_was_never_sampled_has_no_usage)
{
    struct stat st;
    put_spec();
    put_started();
    put_exit();
    (void)add(2000, 50);
    assert_null(usage_watch_end(watch, &id));
    assert_int_equal(fstatat(spool_fd, "42.1.0.0/" SPOOL_USAGE, &st, 0), -1);
}

static void say(const char *status)
{
    struct spool_report said = { .has_progress = 1, .progress_ppm = 400000, .checkpointed_ms = 5 };
    (void)snprintf(said.status, sizeof(said.status), "%s", status);
    _cleanup_close_ int dirfd = open_entry();
    _cleanup_close_ int fd = openat(dirfd, SPOOL_REPORT, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(spool_write_report(fd, &said), 0);
}

static void assert_said(const char *status)
{
    struct job_usage *usage = usage_watch_end(watch, &id);
    assert_non_null(usage);
    assert_int_equal(usage->progress_ppm, 400000);
    assert_true((usage->valid & USAGE_PROGRESS) != 0);
    assert_string_equal(usage->status, status);
    assert_int_equal(usage->checkpointed_ms, 5);
    job_usage_free(usage);
}

CASE(what_a_job_says_is_part_of_its_usage)
{
    put_spec();
    put_started();
    say("first");
    assert_int_equal(add(2000, 50), 1);
    say("last");
    put_exit();
    assert_said("last");
}

CASE(what_a_job_says_before_the_first_sample_is_kept)
{
    put_spec();
    put_started();
    say("quick");
    put_exit();
    assert_said("quick");
}

CASE(usage_outlives_a_killed_agent)
{
    put_spec();
    put_started();
    (void)add(2000, 50);
    (void)add(3000, 50); // not kept yet
    struct usage_watch *killed = watch;
    watch = usage_watch_new(spool_fd, root);
    assert_int_equal(add(4000, 50), 1);
    assert_int_equal(sampled_at_end(), 3000);
    usage_watch_free(watch);
    watch = usage_watch_new(spool_fd, root);
    assert_int_equal(sampled_at_end(), 3000);
    usage_watch_free(killed);
}

CASE(an_agent_that_leaves_loses_nothing)
{
    put_spec();
    put_started();
    (void)add(2000, 50);
    (void)add(3000, 50);
    usage_watch_free(watch);
    watch = usage_watch_new(spool_fd, root);
    put_exit();
    assert_int_equal(sampled_at_end(), 2000);
}

CASE(a_damaged_file_is_not_believed)
{
    put_spec();
    put_started();
    _cleanup_close_ int fd = open_entry();
    assert_int_equal(file_write(fd, SPOOL_USAGE, "nonsense", 8, false), 0);
    assert_int_equal(add(2000, 50), 1);
    assert_int_equal(sampled_at_end(), 1000);
}

CASE(a_removed_attempt_is_forgotten)
{
    put_spec();
    put_started();
    assert_int_equal(add(2000, 50), 1);
    assert_int_equal(spool_remove(spool_fd, "42.1.0.0"), 0);
    assert_int_equal(add(3000, 50), 0);
    assert_null(usage_watch_end(watch, &id));
}

static uint64_t idle_at(int64_t boot_ms)
{
    struct gpu_state gpu = { .uuid = uuid, .valid = GPU_UTILIZATION };
    struct record_list gpus = { &gpu, 1 }, usages;
    usage_watch_add(watch, &gpus, boot_ms, boot_ms);
    usage_watch_usages(watch, &usages);
    const struct attempt_usage *attempt = usages.items;
    uint64_t idle_ms = ((const struct job_usage *)attempt->usage.items)->idle_ms;
    usage_watch_clear(&usages);
    return idle_ms;
}

static void put_terms(uint32_t is_suspended)
{
    _cleanup_close_ int fd = open_entry();
    struct spool_terms terms = { .magic = SPOOL_TERMS_MAGIC, .is_suspended = is_suspended };
    assert_int_equal(file_write(fd, SPOOL_TERMS, &terms, sizeof(terms), false), 0);
}

CASE(a_suspended_attempt_does_not_get_more_idle)
{
    put_spec();
    put_started();
    (void)idle_at(2000);
    assert_int_equal(idle_at(3000), 1000);
    put_terms(1);
    assert_int_equal(idle_at(4000), 1000);
    assert_int_equal(idle_at(5000), 1000);
    put_terms(0);
    assert_int_equal(idle_at(6000), 2000);
}

/* --- many --- */

#define MANY        500U
#define IN_A_REPORT 200U // of those without GPUs

/* A running attempt; only job 42 has a GPU. */
static void put_running(uint64_t job)
{
    char name[SPOOL_NAME_SIZE], cgroup[128];
    const struct spool_id own = { .job = job, .attempt = 1 };
    struct launch_spec spec = { .id = own, .token = 99, .job_cgroup = cgroup };
    (void)snprintf(cgroup, sizeof(cgroup), "/mgpu.ab/j%" PRIu64 ".1/step0.0", job);
    struct launch_started started = { .id = own, .wall_ms = 1000, .init_pid = 50 };
    spool_name(&own, name);
    assert_int_equal(mkdirat(spool_fd, name, 0700), 0);
    _cleanup_close_ int fd = openat(spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (job == id.job)
        (void)gpu_grants_add(&spec.gpus, 0, uuid, 0, 0);
    assert_int_equal(file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, false), 0);
    assert_int_equal(file_write_record(fd, SPOOL_STARTED, &launch_started_record, &started, false), 0);
    gpu_grants_clear(&spec.gpus);
}

/* One report whose usages are passed on. How many there are; counts each job in `counts`. */
static size_t pass_on(int64_t boot_ms, struct gpu_process *process, unsigned counts[MANY + 1])
{
    struct gpu_state gpu = {
        .uuid = uuid, .valid = GPU_UTILIZATION | GPU_PROCESSES, .processes = { process, process != NULL }
    };
    struct record_list gpus = { &gpu, 1 }, usages;
    usage_watch_add(watch, &gpus, boot_ms, boot_ms);
    usage_watch_usages(watch, &usages);
    const struct attempt_usage *items = usages.items;
    size_t count = usages.count;
    for (size_t i = 0; i < count; i++)
        counts[items[i].id.job]++;
    usage_watch_clear(&usages);
    usage_watch_set_new(watch, false);
    return count;
}

CASE(attempts_without_gpus_are_measured_in_turns)
{
    unsigned counts[MANY + 1] = { 0 };
    for (uint64_t job = 1; job <= MANY; job++)
        put_running(job);
    for (int64_t i = 2; i < 2 + (MANY + IN_A_REPORT - 1) / IN_A_REPORT; i++)
        assert_int_equal(pass_on(i * 1000, NULL, counts), IN_A_REPORT + 1);
    for (uint64_t job = 1; job <= MANY; job++)
        if (job == id.job)
            assert_int_equal(counts[job], 3);
        else
            assert_in_range(counts[job], 1, 2);
}

CASE(few_attempts_without_gpus_are_measured_with_every_report)
{
    unsigned counts[MANY + 1] = { 0 };
    for (uint64_t job = 1; job <= IN_A_REPORT; job++)
        put_running(job);
    assert_int_equal(pass_on(2000, NULL, counts), IN_A_REPORT);
    assert_int_equal(pass_on(3000, NULL, counts), IN_A_REPORT);
}

CASE(another_controller_gets_all_usages)
{
    unsigned counts[MANY + 1] = { 0 };
    for (uint64_t job = 1; job <= MANY; job++)
        put_running(job);
    for (int64_t i = 2; i < 5; i++)
        (void)pass_on(i * 1000, NULL, counts);
    usage_watch_set_new(watch, true);
    assert_int_equal(pass_on(5000, NULL, counts), MANY);
}

static void put_process(pid_t pid, uint64_t job)
{
    char name[32], stat[128], cgroup[128];
    (void)snprintf(name, sizeof(name), "%d", (int)pid);
    (void)snprintf(
        stat, sizeof(stat), "%d (train) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0", (int)pid);
    (void)snprintf(cgroup, sizeof(cgroup), "0::/mgpu.ab/j%" PRIu64 ".1/step0.0\n", job);
    assert_int_equal(mkdirat(spool_fd, name, 0700), 0);
    _cleanup_close_ int fd = openat(spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_write(fd, "stat", stat, strlen(stat), false), 0);
    assert_int_equal(file_write(fd, "cgroup", cgroup, strlen(cgroup), false), 0);
}

CASE(an_attempt_on_a_gpu_is_measured_out_of_turn)
{
    unsigned counts[MANY + 1] = { 0 };
    struct gpu_process process = { .pid = 7000 };
    for (uint64_t job = 1; job <= MANY; job++)
        put_running(job);
    put_process(7000, 7);
    (void)pass_on(2000, NULL, counts);
    assert_int_equal(counts[7], 1);
    assert_int_equal(pass_on(3000, &process, counts), IN_A_REPORT + 2);
    assert_int_equal(counts[7], 2);
    assert_int_equal(counts[8], 1);
    free(process.command);
    free(process.container);
}

static void put_stat(int pid, int parent, int start)
{
    char path[96], text[128];
    (void)snprintf(path, sizeof(path), "%d", pid);
    (void)mkdirat(spool_fd, path, 0700);
    (void)snprintf(path, sizeof(path), "%d/stat", pid);
    int length = snprintf(
        text, sizeof(text), "%d (x) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0\n", pid, parent, start);
    assert_int_equal(file_write(spool_fd, path, text, (size_t)length, false), 0);
}

CASE(a_process_belongs_to_an_attempt_while_that_runs)
{
    struct spool_id found = { 0 };
    put_stat(50, 1, 500);
    put_stat(60, 50, 600);
    put_stat(70, 1, 700);
    put_spec();
    assert_false(usage_watch_attempt_of(watch, 60, 1000, 1000, &found));
    put_started();
    assert_true(usage_watch_attempt_of(watch, 60, 1000, 1000, &found));
    assert_true(spool_id_equal(&found, &id));
    assert_false(usage_watch_attempt_of(watch, 70, 1000, 1000, &found));
    put_exit();
    assert_false(usage_watch_attempt_of(watch, 60, 2000, 2000, &found));
}
