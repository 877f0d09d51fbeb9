/* SPDX-License-Identifier: MIT */
/* A job whose directory and files are not there yet, are never there, or may not be used. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "fixture.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

#define CASE(name) TEST_WITH(name, fixture_setup, fixture_teardown)

#define PATIENCE_MS 20000 // longer than any of these tests
#define LATER_MS    100   // after which the missing file is made, by which it was looked for several times

/* What may be missing, below the directory "late" of the job's home. */
static const struct missing {
    const char *name;
    size_t field; // a path in the spec
    const char *path;
} missing[] = {
    { "the working directory", offsetof(struct launch_spec, cwd), "late" },
    { "the directory of the output", offsetof(struct launch_spec, output), "late/out" },
    { "the directory of standard error", offsetof(struct launch_spec, error), "late/err" },
    { "the file of standard input", offsetof(struct launch_spec, input), "late/in" },
    { "the command", 0, "late/tool" },
};

#define N_MISSING (sizeof(missing) / sizeof(missing[0]))

static char *below_home(const struct fixture *f, const char *name)
{
    return xasprintf("%s/%s", f->home, name);
}

static void name_missing(struct fixture *f, const struct missing *row)
{
    _cleanup_free_ char *path = below_home(f, row->path);
    if (row->field == 0) {
        fixture_command(f, path, NULL);
        return;
    }
    char **field = (char **)((char *)&f->spec + row->field);
    free(*field);
    *field = take_ptr(path);
}

static void make_file(const struct fixture *f, const char *name, const char *text)
{
    _cleanup_free_ char *path = below_home(f, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
    assert_int_equal(close(fd), 0);
}

static void make_late(const struct fixture *f)
{
    _cleanup_free_ char *hidden = below_home(f, "hidden");
    _cleanup_free_ char *late = below_home(f, "late");
    assert_int_equal(mkdir(hidden, 0777), 0);
    assert_int_equal(chmod(hidden, 0777), 0);
    make_file(f, "hidden/in", "");
    make_file(f, "hidden/tool", "#!/bin/sh\nexit 0\n");
    assert_int_equal(rename(hidden, late), 0); // all at once
}

CASE(what_is_made_a_moment_later_is_found)
{
    for (size_t i = 0; i < N_MISSING; i++) {
        struct fixture *f = *state;
        f->spec.files_ms = PATIENCE_MS;
        name_missing(f, &missing[i]);
        fixture_start(f);
        (void)poll(NULL, 0, LATER_MS);
        make_late(f);
        fixture_finish(f);
        if (f->exit.end != END_EXIT || f->exit.exit_code != 0)
            fail_msg("%s: %s", missing[i].name, f->exit.text);
        assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
        (void)fixture_teardown(state);
        (void)fixture_setup(state);
    }
}

CASE(what_stays_away_is_looked_for_elsewhere_when_the_time_is_up)
{
    for (size_t i = 0; i < N_MISSING; i++) {
        struct fixture *f = *state;
        int64_t began_ms = clock_boot_ms();
        bool is_command = missing[i].field == 0;
        f->spec.files_ms = 2 * LATER_MS;
        name_missing(f, &missing[i]);
        fixture_run(f);
        assert_true(clock_boot_ms() - began_ms >= f->spec.files_ms);
        assert_int_equal(f->exit.end, END_START_FAILED);
        assert_int_equal(f->exit.is_executed, 0);
        assert_int_equal(f->exit.is_refused, !is_command);
        assert_int_equal(f->exit.cause, is_command ? START_COMMAND : START_FILES);
        assert_non_null(strstr(f->exit.text, "No such file or directory"));
        assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
        (void)fixture_teardown(state);
        (void)fixture_setup(state);
    }
}

/* Nobody who may not enter it today may enter it in three seconds. */
CASE(what_is_forbidden_is_not_waited_for)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    f->spec.files_ms = PATIENCE_MS;
    free(f->spec.cwd);
    f->spec.cwd = xstrdup(f->dir);
    int64_t began_ms = clock_boot_ms();
    fixture_run(f);
    assert_true(clock_boot_ms() - began_ms < PATIENCE_MS);
    assert_int_equal(f->exit.end, END_START_FAILED);
    assert_int_equal(f->exit.is_refused, 0);
    assert_int_equal(f->exit.cause, START_PLACE);
}

CASE(a_name_that_is_searched_for_is_not_waited_for)
{
    struct fixture *f = *state;
    f->spec.files_ms = PATIENCE_MS;
    fixture_command(f, "nosuchcmd", NULL);
    int64_t began_ms = clock_boot_ms();
    fixture_run(f);
    assert_true(clock_boot_ms() - began_ms < PATIENCE_MS);
    assert_int_equal(f->exit.exit_code, 127);
}

CASE(a_missing_home_directory_is_no_fault_of_the_job)
{
    static const size_t fields[] = { offsetof(struct launch_spec, cwd),
        offsetof(struct launch_spec, output) };
    for (size_t i = 0; i < 2; i++) {
        struct fixture *f = *state;
        char **field = (char **)((char *)&f->spec + fields[i]);
        strings_set_env(&f->spec.env, "HOME", "/nosuch/home");
        free(*field);
        *field = xstrdup("/nosuch/home/work");
        fixture_run(f);
        assert_int_equal(f->exit.end, END_UNKNOWN); // the job is tried again
        assert_int_equal(f->exit.is_executed, 0);
        assert_int_equal(f->exit.cause, START_HOME);
        assert_string_equal(
            f->exit.text, "the home directory /nosuch/home of its user is missing on this node");
        assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
        (void)fixture_teardown(state);
        (void)fixture_setup(state);
    }
}

/* Its mount point, created by another user. */
CASE(a_home_directory_that_is_not_mounted_is_missing)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    _cleanup_free_ char *home = below_home(f, "unmounted");
    assert_int_equal(mkdir(home, 0755), 0);
    strings_set_env(&f->spec.env, "HOME", home);
    free(f->spec.cwd);
    f->spec.cwd = xasprintf("%s/work", home);
    fixture_run(f);
    assert_int_equal(f->exit.end, END_UNKNOWN);
    assert_int_equal(f->exit.cause, START_HOME);
}

CASE(a_default_output_that_cannot_be_made_is_no_fault_of_the_job)
{
    struct fixture *f = *state;
    free(f->spec.output);
    f->spec.output = xstrdup("/proc/nosuch/1.log");
    f->spec.is_output_default = true;
    fixture_run(f);
    assert_int_equal(f->exit.end, END_UNKNOWN);
    assert_int_equal(f->exit.is_executed, 0);
    assert_int_equal(f->exit.cause, START_HOME);
}

static pid_t find_init(const struct fixture *f)
{
    char path[64], line[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)f->shepherd, (int)f->shepherd);
    for (int64_t ends_ms = clock_boot_ms() + PATIENCE_MS; clock_boot_ms() < ends_ms;) {
        FILE *file = fopen(path, "re");
        bool has_line = file != NULL && fgets(line, sizeof(line), file) != NULL;
        if (file != NULL)
            (void)fclose(file);
        if (has_line)
            return (pid_t)atoi(line);
        (void)poll(NULL, 0, 1);
    }
    fail_msg("it has no init");
    return -1;
}

CASE(an_init_that_was_killed_before_the_command_leaves_a_job_to_try_again)
{
    struct fixture *f = *state;
    f->spec.files_ms = PATIENCE_MS;
    name_missing(f, &missing[0]);
    fixture_start(f);
    assert_int_equal(kill(find_init(f), SIGKILL), 0);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_UNKNOWN);
    assert_int_equal(f->exit.is_executed, 0);
    assert_int_equal(f->exit.cause, START_INIT);
    assert_string_equal(f->exit.text, "the job's init ended before the command could be started");
}

/* Whether it is over, also where process 1 reaps nobody. */
static bool has_ended(pid_t pid, uint64_t since)
{
    char text[512] = "";
    _cleanup_free_ char *path = xasprintf("/proc/%d/stat", (int)pid);
    if (process_start_time(pid) != since)
        return true;
    FILE *file = fopen(path, "re");
    size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL)
        (void)fclose(file);
    const char *name_end = strrchr(text, ')');
    return length == 0 || (name_end != NULL && strncmp(name_end, ") Z", 3) == 0);
}

CASE(nobody_waits_for_files_when_the_shepherd_is_gone)
{
    struct fixture *f = *state;
    f->spec.files_ms = PATIENCE_MS;
    name_missing(f, &missing[0]);
    fixture_start(f);
    pid_t init = find_init(f);
    uint64_t since = process_start_time(init);
    fixture_kill_shepherd(f);
    int64_t ends_ms = clock_boot_ms() + PATIENCE_MS / 2;
    while (!has_ended(init, since) && clock_boot_ms() < ends_ms)
        (void)poll(NULL, 0, 1);
    assert_true(clock_boot_ms() < ends_ms);
}
