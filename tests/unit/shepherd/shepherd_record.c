/* SPDX-License-Identifier: MIT */
/* Each way to end makes the record that people are shown. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "job/state.h"
#include "shepherd/record.h"
#include "unit_test.h"

struct expectation {
    struct ending ending;
    enum job_end end;
    int32_t exit_code;
    uint32_t signal, is_executed;
    const char *text; // of the record, where it matters
};

#define ENDED(...)                                                                                           \
    {                                                                                                        \
        .status = {.phase = INIT_ENDED, __VA_ARGS__ }                                                        \
    }
#define STOPPED(...)                                                                                         \
    {                                                                                                        \
        .status = { .phase = INIT_ENDED, __VA_ARGS__ }, .stop_signal = SIGTERM                               \
    }
#define EXITED(code) .wait_status = (code) << 8
#define AT_LIMIT                                                                                             \
    {                                                                                                        \
        .oom_kills = 1, .is_at_limit = true, .memory_peak = 64U << 20                                        \
    }
#define GROUP_AT_LIMIT                                                                                       \
    {                                                                                                        \
        .oom_kills = 3, .is_group_killed = true, .is_at_limit = true                                         \
    }
#define LIMIT_TEXT "used more than its 64 MiB of host memory (-M)"

static const struct expectation expectations[] = {
    { ENDED(EXITED(0)), END_EXIT, 0, 0, 1 },
    { ENDED(EXITED(42)), END_EXIT, 42, 0, 1 },
    { ENDED(.wait_status = SIGKILL), END_SIGNAL, 137, SIGKILL, 1 },
    { STOPPED(.wait_status = SIGTERM), END_CANCELLED, 143, SIGTERM, 1 },
    { STOPPED(EXITED(0)), END_CANCELLED, 0, 0, 1 },
    { ENDED(.step = STEP_CWD, .error = ENOENT), END_START_FAILED, 125, 0, 0 },
    { ENDED(.step = STEP_EXEC, .error = ENOENT), END_START_FAILED, 127, 0, 0 },
    { ENDED(.step = STEP_EXEC, .error = EACCES), END_START_FAILED, 126, 0, 0 },
    { STOPPED(.step = STEP_EXEC, .error = ENOENT), END_START_FAILED, 127, 0, 0 },
    { ENDED(.step = STEP_SETUP, EXITED(3)), END_SETUP_FAILED, 3, 0, 0 },
    { ENDED(.step = STEP_SETUP, EXITED(0)), END_SETUP_FAILED, 125, 0, 0 },
    { ENDED(.step = STEP_SETUP, .wait_status = SIGSEGV), END_SETUP_FAILED, 139, SIGSEGV, 0 },
    { STOPPED(.step = STEP_SETUP, .wait_status = SIGTERM), END_CANCELLED, 143, SIGTERM, 0 },
    { { .status = { .phase = INIT_WAITING } }, END_UNKNOWN, 125, 0, 0 },
    { { .status = { .phase = INIT_NEVER } }, END_UNKNOWN, 125, 0, 0 },
    { { .status = { .phase = INIT_EXECUTING } }, END_UNKNOWN, 125, 0, 1 },
    { { .status = { .phase = INIT_EXECUTING }, .stop_signal = SIGKILL }, END_CANCELLED, 137, 0, 1 },
    /* Killed because the node ran out of memory: the command itself, ... */
    { { .status = { .phase = INIT_ENDED, .wait_status = SIGKILL }, .counts = AT_LIMIT }, END_OOM, 137,
        SIGKILL, 1, LIMIT_TEXT ", peak 64 MiB" },
    /* ... a child of a shell that says so, ... */
    { { .status = { .phase = INIT_ENDED, EXITED(137) }, .counts = AT_LIMIT }, END_OOM, 137, SIGKILL, 1,
        LIMIT_TEXT ", peak 64 MiB" },
    /* ... or one without which the command fails in its own way, ... */
    { { .status = { .phase = INIT_ENDED, EXITED(1) }, .counts = AT_LIMIT }, END_OOM, 137, SIGKILL, 1,
        LIMIT_TEXT ", peak 64 MiB; then the command ended with status 1" },
    /* ... or all at once, so that no process saw the status; but one kill does not explain a lost status. */
    { { .status = { .phase = INIT_EXECUTING }, .counts = GROUP_AT_LIMIT }, END_OOM, 137, SIGKILL, 1,
        LIMIT_TEXT },
    { { .status = { .phase = INIT_EXECUTING }, .counts = AT_LIMIT }, END_UNKNOWN, 125, 0, 1 },
    { ENDED(.step = STEP_SETUP, .wait_status = SIGKILL), END_SETUP_FAILED, 137, SIGKILL, 0 },
    { { .status = { .phase = INIT_ENDED, .step = STEP_SETUP, .wait_status = SIGKILL }, .counts = AT_LIMIT },
        END_OOM, 137, SIGKILL, 0, LIMIT_TEXT ", peak 64 MiB" },
    { { .status = { .phase = INIT_ENDED, .wait_status = SIGKILL }, .counts = { .oom_kills = 1 } }, END_OOM,
        137, SIGKILL, 1, "the node ran out of memory" },
    /* What was asked for, and what went well, stays what it is. */
    { { .status = { .phase = INIT_ENDED, .wait_status = SIGKILL },
          .stop_signal = SIGTERM,
          .counts = AT_LIMIT },
        END_CANCELLED, 137, SIGKILL, 1,
        "the kernel killed 1 of its processes at its limit of 64 MiB of host memory (-M)" },
    { { .status = { .phase = INIT_ENDED, EXITED(0) }, .counts = AT_LIMIT }, END_EXIT, 0, 0, 1,
        "the kernel killed 1 of its processes at its limit of 64 MiB of host memory (-M)" },
    { { .status = { .phase = INIT_ENDED, EXITED(0) }, .counts = { .oom_kills = 2 } }, END_EXIT, 0, 0, 1,
        "the kernel killed 2 of its processes because the node ran out of memory" },
    { { .status = { .phase = INIT_ENDED, EXITED(2) }, .counts = { .refused_forks = 7 } }, END_EXIT, 2, 0, 1,
        "it reached its limit of 30 processes: 7 times a process could not be started" },
    { { .status = { .phase = INIT_ENDED, .wait_status = SIGKILL }, .counts = { .node_oom_kills = 2 } },
        END_SIGNAL, 137, SIGKILL, 1,
        "the node was out of memory while it ran: the kernel killed 2 processes there, perhaps this one" },
    { { .status = { .phase = INIT_ENDED, .wait_status = SIGKILL },
          .counts = { .node_oom_kills = 2 },
          .is_killed = true },
        END_SIGNAL, 137, SIGKILL, 1 },
    { { .status = { .phase = INIT_ENDED, .wait_status = SIGSEGV }, .counts = { .node_oom_kills = 2 } },
        END_SIGNAL, 139, SIGSEGV, 1 },
    /* No fault of the job: it is tried again. */
    { ENDED(.step = STEP_ENTER, .error = ENOENT), END_UNKNOWN, 125, 0, 0,
        "cannot enter the cgroups that limit the job: No such file or directory" },
};

TEST(every_ending_is_judged_rightly)
{
    struct shepherd shepherd = { .log_fd = -1,
        .spec = { .id.job = 7, .token = 5, .memory_limit = 64U << 20, .pids_max = 30 } };
    for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
        const struct expectation *expected = &expectations[i];
        struct launch_exit record;
        char text[512];
        record_make(&shepherd, &expected->ending, text, sizeof(text), &record);
        if (record.end != expected->end || record.exit_code != expected->exit_code ||
            record.signal != expected->signal || record.is_executed != expected->is_executed)
            fail_msg("row %zu: %s, %d, %u, %u", i, job_end_name(record.end), record.exit_code, record.signal,
                record.is_executed);
        assert_int_equal(record.id.job, 7);
        assert_int_equal(record.token, 5);
        if (expected->text != NULL && (record.text == NULL || strcmp(record.text, expected->text) != 0))
            fail_msg("row %zu: %s", i, record.text != NULL ? record.text : "no text");
        if (expected->text != NULL)
            continue;
        /* Only an end that needs no explanation has no text. */
        assert_int_equal(record.text == NULL,
            record.is_executed && record.end != END_UNKNOWN && expected->ending.status.phase == INIT_ENDED);
    }
}

int __wrap_fsync(int fd);
int __real_fsync(int fd);
static int n_synced;

int __wrap_fsync(int fd)
{
    n_synced++;
    return __real_fsync(fd);
}

/* Nothing else is left of the attempt after a power failure. */
TEST(a_record_that_the_spool_does_not_take_is_copied_to_disk)
{
    char place[] = "/tmp/mgpu-record-XXXXXX";
    struct shepherd shepherd = { .name = "7.1.0.0",
        .log_fd = -1,
        .status_fd = -1,
        .exit_fd = -1,
        .spool_fd = -1,
        .node_oom_kills = -1,
        .spec = { .id.job = 7, .token = 5 } };
    const struct ending ending = { .status = { .phase = INIT_ENDED, .wait_status = 3 << 8 } };
    struct launch_exit copy;
    struct error err = { 0 };
    assert_non_null(mkdtemp(place));
    shepherd.exit_copy_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(record_publish(&shepherd, &ending), SHEPHERD_UNUSABLE);
    assert_int_equal(n_synced, 2); // the file and its directory
    assert_int_equal(
        file_read_record(shepherd.exit_copy_fd, "7.1.0.0.exit", &launch_exit_record, &copy, &err), 0);
    assert_int_equal(copy.exit_code, 3);
    record_clear(&launch_exit_record, &copy);
    (void)unlinkat(shepherd.exit_copy_fd, "7.1.0.0.exit", 0);
    (void)close(shepherd.exit_copy_fd);
    (void)rmdir(place);
    buffer_clear(&shepherd.record);
}
