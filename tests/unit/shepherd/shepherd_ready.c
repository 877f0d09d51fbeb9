/* SPDX-License-Identifier: MIT */
/* A part of several waits between its preparations and its verdict, through the real program. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "fixture.h"
#include "job/state.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

static void tell(const struct fixture *f, const struct spool_command *command)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/" SPOOL_CTL, f->dir);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        sendto(fd, command, sizeof(*command), 0, (const struct sockaddr *)&address, sizeof(address)),
        sizeof(*command));
}

static void let_go_at(const struct fixture *f, uint32_t port)
{
    tell(f, &(struct spool_command){ .magic = SPOOL_GO_MAGIC, .grace_ms = -1, .port = port });
}

static void let_go(const struct fixture *f)
{
    let_go_at(f, 0);
}

static uint32_t port_said(const struct fixture *f, const char *name)
{
    struct launch_started said;
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_read_record(fd, name, &launch_started_record, &said, NULL), 0);
    uint32_t port = said.port;
    record_clear(&launch_started_record, &said);
    return port;
}

/* Its variables name a port that was not checked. */
static void expect_port(struct fixture *f)
{
    strings_set_env(&f->spec.gpu_env, "MASTER_PORT", "1");
    strings_set_env(&f->spec.gpu_env, "PET_MASTER_PORT", "1");
    fixture_script(f, "echo $MASTER_PORT $PET_MASTER_PORT");
}

static void start_part(struct fixture *f)
{
    f->spec.is_gated = true;
    fixture_start(f);
    fixture_await(f, "ready");
}

static int verdict(const struct fixture *f)
{
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return spool_verdict(fd);
}

CASE(nothing_runs_before_it_is_let_go, f)
{
    struct launch_started ready;
    fixture_script(f, "echo ran");
    start_part(f);
    assert_int_equal(verdict(f), VERDICT_NONE);
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_read_record(fd, SPOOL_READY, &launch_started_record, &ready, NULL), 0);
    assert_int_equal(ready.shepherd_pid, f->shepherd);
    assert_true(process_is_alive((pid_t)ready.shepherd_pid, ready.shepherd_start));
    record_clear(&launch_started_record, &ready);
    let_go(f);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_EXIT);
    assert_string_equal(f->output, "ran\n");
}

CASE(one_that_was_taken_back_finds_that_out_and_ends, f)
{
    fixture_script(f, "echo ran");
    start_part(f);
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_decide(fd, VERDICT_NOGO), VERDICT_NOGO);
    let_go(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_SETTLED);
    assert_int_equal(access(f->log, F_OK), 0); // it was prepared, and is empty
}

CASE(a_signal_that_comes_early_reaches_the_command, f)
{
    fixture_command(f, "sleep", "1000", NULL);
    start_part(f);
    tell(f, &(struct spool_command){ .magic = SPOOL_COMMAND_MAGIC, .signal = SIGUSR1, .grace_ms = -1 });
    let_go(f);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_SIGNAL);
    assert_int_equal(f->exit.signal, SIGUSR1);
}

CASE(what_cannot_be_prepared_is_told_without_waiting, f)
{
    f->spec.is_gated = true;
    free(f->spec.cwd);
    f->spec.cwd = xstrdup("/nowhere");
    fixture_run(f);
    assert_int_equal(f->exit.end, END_START_FAILED);
    assert_int_equal(f->exit.is_executed, 0);
}

CASE(the_first_rank_says_a_port_that_is_free_and_is_told_the_same, f)
{
    _cleanup_(meeting_close) struct meeting mine;
    char expected[32];
    meeting_init(&mine);
    meeting_reserve(&mine, 29960);
    expect_port(f);
    f->spec.meeting_port = mine.port;
    start_part(f);
    uint32_t port = port_said(f, SPOOL_READY);
    assert_int_not_equal(port, 0);
    assert_int_not_equal(port, mine.port);
    let_go_at(f, port);
    fixture_finish(f);
    (void)snprintf(expected, sizeof(expected), "%u %u\n", port, port);
    assert_string_equal(f->output, expected);
    assert_int_equal(port_said(f, SPOOL_STARTED), port);
}

CASE(another_rank_is_told_the_port_of_the_first, f)
{
    expect_port(f);
    start_part(f);
    assert_int_equal(port_said(f, SPOOL_READY), 0);
    let_go_at(f, 29777);
    fixture_finish(f);
    assert_string_equal(f->output, "29777 29777\n");
}

CASE(a_setup_cannot_change_the_port, f)
{
    expect_port(f);
    f->spec.setup = xstrdup("echo $MASTER_PORT; export MASTER_PORT=2");
    f->spec.shell = xstrdup("/bin/sh");
    start_part(f);
    let_go_at(f, 29777);
    fixture_finish(f);
    assert_string_equal(f->output, "29777\n29777 29777\n");
}

CASE(a_command_that_is_missing_is_told_before_it_is_ready, f)
{
    fixture_command(f, "no-such-command", NULL);
    f->spec.is_gated = true;
    fixture_run(f);
    assert_int_equal(f->exit.end, END_START_FAILED);
    assert_int_equal(f->exit.exit_code, 127);
    assert_int_equal(f->exit.is_executed, 0);
    assert_string_equal(f->exit.text, "cannot execute no-such-command: No such file or directory");
}

CASE(a_command_that_a_setup_may_bring_is_not_looked_for, f)
{
    fixture_command(f, "brought-by-setup", NULL);
    f->spec.setup = xstrdup("printf '#!/bin/sh\\necho here\\n' > brought-by-setup; "
                            "chmod 755 brought-by-setup; PATH=.:$PATH");
    f->spec.shell = xstrdup("/bin/sh");
    start_part(f);
    let_go(f);
    fixture_finish(f);
    assert_string_equal(f->output, "here\n");
}

CASE(a_shepherd_that_dies_while_it_waits_leaves_no_verdict, f)
{
    fixture_script(f, "echo ran");
    start_part(f);
    fixture_kill_shepherd(f);
    assert_int_equal(verdict(f), VERDICT_NONE);
}

/* --- a prepared job --- */

static void start_prepared(struct fixture *f)
{
    f->spec.is_prepared = true;
    fixture_start(f);
    fixture_await(f, "ready");
    assert_int_equal(verdict(f), VERDICT_NONE);
    assert_int_equal(access(f->log, F_OK), -1); // the job before may still write where it looks
}

CASE(a_prepared_job_opens_its_files_when_it_is_let_go, f)
{
    fixture_script(f, "echo ran");
    start_prepared(f);
    let_go(f);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_EXIT);
    assert_string_equal(f->output, "ran\n");
}

CASE(a_prepared_job_that_is_taken_back_has_opened_nothing, f)
{
    fixture_script(f, "echo ran");
    start_prepared(f);
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spool_decide(fd, VERDICT_NOGO), VERDICT_NOGO);
    let_go(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_WITHDRAWN);
    assert_int_equal(access(f->log, F_OK), -1);
}

CASE(a_prepared_job_whose_directory_is_gone_fails_when_it_is_let_go, f)
{
    free(f->spec.cwd);
    f->spec.cwd = xstrdup("/nowhere");
    start_prepared(f);
    let_go(f);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_START_FAILED);
    assert_int_equal(f->exit.is_executed, 0);
}

CASE(a_prepared_job_whose_init_is_killed_has_no_verdict, f)
{
    struct launch_started ready;
    fixture_script(f, "echo ran");
    start_prepared(f);
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_read_record(fd, SPOOL_READY, &launch_started_record, &ready, NULL), 0);
    assert_int_equal(kill((pid_t)ready.init_pid, SIGKILL), 0);
    record_clear(&launch_started_record, &ready);
    assert_int_equal(fixture_wait(f), SHEPHERD_WITHDRAWN);
    assert_int_equal(verdict(f), VERDICT_NONE);
}
