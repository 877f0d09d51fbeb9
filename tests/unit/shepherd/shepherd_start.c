/* SPDX-License-Identifier: MIT */
/* Starts that do not come about: an init that its user has stopped, and a node that is short of processes. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/confine/confine.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "fixture.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup_cgroup, fixture_teardown)

#define DEADLINE_MS 20000

static int write_word(const char *directory, const char *file, const char *word)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", directory, file);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : write_all(fd, word, strlen(word));
}

static char *read_all(const char *directory, const char *file)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%s", directory, file);
    return file_read(AT_FDCWD, path, 4096, &bytes) == 0 && bytes.length > 0 ? buffer_take(&bytes)
                                                                            : xstrdup("");
}

static void await_text(const char *directory, const char *file, const char *text)
{
    for (int64_t deadline = clock_boot_ms() + DEADLINE_MS;;) {
        _cleanup_free_ char *found = read_all(directory, file);
        if (strstr(found, text) != NULL)
            return;
        assert_true(clock_boot_ms() < deadline);
        (void)poll(NULL, 0, 1);
    }
}

/* A process forked in the cell is stopped, as if its user had stopped it at once. */
static void freeze_cell(const struct fixture *f)
{
    if (f->spec.job_cgroup == NULL || write_word(f->spec.job_cgroup, "cgroup.freeze", "1") < 0)
        skip();
}

static void assert_nothing_is_left(struct fixture *f)
{
    await_text(f->spec.job_cgroup, "cgroup.events", "populated 0");
    assert_int_equal(confine_cgroup2.is_populated(f->cells, &f->id), 0);
}

CASE(a_start_that_is_not_prepared_in_time_is_given_back_and_leaves_no_process, f)
{
    freeze_cell(f);
    f->spec.start_ms = 200;
    fixture_run(f);
    assert_int_equal(f->exit.end, END_UNKNOWN);
    assert_int_equal(f->exit.is_executed, 0);
    assert_int_equal(f->exit.cause, START_SLOW);
    assert_non_null(strstr(f->exit.text, "its start timed out"));
    assert_nothing_is_left(f);
}

CASE(an_attempt_that_is_taken_back_ends_with_an_init_that_stands_still, f)
{
    const struct spool_command go = { .magic = SPOOL_GO_MAGIC, .grace_ms = -1 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/" SPOOL_CTL, f->dir);
    freeze_cell(f);
    f->spec.start_ms = LAUNCH_START_MS;
    fixture_start(f);
    await_text(f->spec.job_cgroup, "cgroup.events", "populated 1");
    _cleanup_close_ int dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_decide(dirfd, VERDICT_NOGO), VERDICT_NOGO);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        sendto(fd, &go, sizeof(go), 0, (const struct sockaddr *)&address, sizeof(address)), sizeof(go));
    assert_int_equal(fixture_wait(f), SHEPHERD_SETTLED);
    assert_nothing_is_left(f);
}

/* This process and the shepherd that it starts may be in it, and no third. */
static char *enter_small_cgroup(void)
{
    static const char *const roots[] = { "/sys/fs/cgroup/pids", "/sys/fs/cgroup" };
    char number[16];
    (void)snprintf(number, sizeof(number), "%d", (int)getpid());
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/mgpu-test-%s", roots[i], number);
        if (mkdir(path, 0755) < 0)
            continue;
        if (write_word(path, "pids.max", "2") == 0 && write_word(path, "cgroup.procs", number) == 0)
            return take_ptr(path);
        (void)rmdir(path);
    }
    return NULL;
}

static void leave_small_cgroup(const char *path)
{
    char number[16];
    _cleanup_free_ char *above = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    (void)snprintf(number, sizeof(number), "%d", (int)getpid());
    assert_int_equal(write_word(path, "pids.max", "max"), 0);
    assert_int_equal(write_word(above, "cgroup.procs", number), 0);
}

TEST_WITH(a_shortage_of_processes_that_passes_is_not_noticed, fixture_setup, fixture_teardown)
{
    struct fixture *f = *state;
    _cleanup_free_ char *cgroup = enter_small_cgroup();
    if (cgroup == NULL)
        skip();
    fixture_start(f);
    await_text(cgroup, "pids.events", "max 1");
    leave_small_cgroup(cgroup);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_EXIT);
    assert_int_equal(f->exit.exit_code, 0);
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
    assert_int_equal(rmdir(cgroup), 0);
}

/* That nothing was executed is proved, so that the controller may try it again. */
TEST_WITH(a_shortage_of_processes_that_stays_gives_the_attempt_back, fixture_setup, fixture_teardown)
{
    struct fixture *f = *state;
    _cleanup_free_ char *cgroup = enter_small_cgroup();
    if (cgroup == NULL)
        skip();
    fixture_start(f);
    fixture_await(f, "exit");
    leave_small_cgroup(cgroup);
    fixture_read_exit(f);
    assert_int_equal(f->exit.end, END_UNKNOWN);
    assert_int_equal(f->exit.is_executed, 0);
    assert_non_null(strstr(f->exit.text, "Resource temporarily unavailable"));
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
    assert_int_equal(rmdir(cgroup), 0);
}
