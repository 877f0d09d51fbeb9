/* SPDX-License-Identifier: MIT */
/* The pipe of a step, and the stop that ends when the job says there that its work is saved. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "fixture.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "shepherd/shepherd.h"
#include "shepherd/status_pipe.h"
#include "unit_test.h"

static char pipes[128];

static int setup(void **state)
{
    int r = fixture_setup(state);
    struct fixture *f = *state;
    char name[SPOOL_NAME_SIZE];
    (void)snprintf(pipes, sizeof(pipes), "%s/" SPOOL_PIPES_DIR, f->run_dir);
    assert_int_equal(mkdir(pipes, 0711), 0);
    spool_name(&f->id, name);
    f->spec.say_pipe = xasprintf("%s/%s", pipes, name);
    strings_set_env(&f->spec.gpu_env, "MGPU_NOTIFY", f->spec.say_pipe);
    f->spec.checkpoint_signal = SIGUSR1;
    return r;
}

#define CASE(name, f) TEST_ON(name, struct fixture *f, setup, fixture_teardown)

static struct spool_report read_said(const struct fixture *f)
{
    struct spool_report said = { 0 };
    _cleanup_close_ int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(spool_read_report(fd, &said));
    return said;
}

CASE(what_the_job_says_is_in_the_spool_at_its_end, f)
{
    struct stat st;
    fixture_script(f, "echo PROGRESS=0.5 > $MGPU_NOTIFY; printf 'STATUS=last' > $MGPU_NOTIFY");
    fixture_run(f);
    assert_int_equal(f->exit.exit_code, 0);
    struct spool_report said = read_said(f);
    assert_int_equal(said.progress_ppm, 500000);
    assert_string_equal(said.status, "last");
    assert_int_equal(stat(f->spec.say_pipe, &st), 0);
    assert_true(S_ISFIFO(st.st_mode) && (st.st_mode & 0777) == 0600 && st.st_uid == f->spec.uid);
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
    assert_int_equal(access(f->spec.say_pipe, F_OK), -1);
}

CASE(a_job_that_reports_nothing_has_no_file, f)
{
    fixture_script(f, "true");
    fixture_run(f);
    _cleanup_free_ char *path = xasprintf("%s/" SPOOL_REPORT, f->dir);
    assert_int_equal(access(path, F_OK), -1);
}

CASE(the_job_has_no_descriptor_of_the_pipe, f)
{
    fixture_script(f, "ls -l /proc/self/fd | grep -c notify");
    fixture_run(f);
    assert_string_equal(f->output, "0\n");
}

CASE(a_pipe_that_cannot_be_made_gives_the_job_back, f)
{
    assert_int_equal(rmdir(pipes), 0);
    fixture_run(f);
    assert_int_equal(f->exit.end, END_UNKNOWN);
    assert_int_equal(f->exit.is_executed, 0);
    assert_int_equal(f->exit.cause, START_SPOOL);
    assert_non_null(strstr(f->exit.text, "MGPU_NOTIFY"));
}

CASE(one_that_is_left_from_before_is_replaced, f)
{
    int fd = open(f->spec.say_pipe, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    what_the_job_says_is_in_the_spool_at_its_end(f);
}

CASE(a_job_that_saves_its_work_is_ended_at_once, f)
{
    fixture_script(
        f, "trap 'echo CHECKPOINTED > $MGPU_NOTIFY' USR1; echo ready; while :; do sleep 98801 & wait; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    int64_t before = clock_boot_ms();
    fixture_checkpoint(f, 15000);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
    assert_true(clock_boot_ms() - before < 10000);
    assert_true(read_said(f).checkpointed_ms > 0);
    assert_int_equal(fixture_count_sleepers(f, "98801"), 0);
}

CASE(a_job_that_does_not_is_ended_after_the_grace, f)
{
    fixture_script(f,
        "trap '' USR1; echo CHECKPOINTED > $MGPU_NOTIFY; echo ready; while :; do sleep 98802 & wait; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    int64_t before = clock_boot_ms();
    fixture_checkpoint(f, 300);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
    assert_int_equal(f->exit.signal, SIGKILL);
    assert_true(clock_boot_ms() - before >= 300);
}

/* The report is in the pipe when the stop is repeated: it was written after the first one. */
CASE(a_repeated_stop_loses_no_report, f)
{
    fixture_script(f,
        "trap 'echo told; until [ -e go ]; do sleep 0.01; done; trap \"\" USR1;"
        " echo CHECKPOINTED > $MGPU_NOTIFY; echo said' USR1; echo ready; while :; do sleep 0.01; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_checkpoint(f, 15000);
    fixture_await_output(f, "told");
    assert_int_equal(kill(f->shepherd, SIGSTOP), 0);
    fixture_touch(f, "go");
    fixture_await_output(f, "said");
    fixture_checkpoint(f, 15000);
    int64_t before = clock_boot_ms();
    assert_int_equal(kill(f->shepherd, SIGCONT), 0);
    fixture_finish(f);
    assert_true(clock_boot_ms() - before < 10000);
}

CASE(a_plain_stop_waits_for_no_word, f)
{
    fixture_script(
        f, "trap 'echo CHECKPOINTED > $MGPU_NOTIFY' TERM; echo ready; while :; do sleep 98803 & wait; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    int64_t before = clock_boot_ms();
    fixture_stop(f, SIGTERM, 300);
    fixture_finish(f);
    assert_true(clock_boot_ms() - before >= 300);
}

CASE(the_warning_before_the_limit_begins_the_stop, f)
{
    f->spec.time_limit_ms = 15000;
    f->spec.warn_signal = SIGUSR1;
    f->spec.warn_before_ms = 14000;
    f->spec.is_requeued_at_limit = true;
    fixture_script(f, "trap 'echo CHECKPOINTED > $MGPU_NOTIFY' USR1; while :; do sleep 98804 & wait; done");
    fixture_run(f);
    assert_int_equal(f->exit.end, END_TIME_LIMIT);
    assert_true(f->exit.run_ms < 13000);
}

CASE(one_that_saves_and_leaves_has_ended_by_its_limit_too, f)
{
    f->spec.time_limit_ms = 15000;
    f->spec.warn_signal = SIGUSR1;
    f->spec.warn_before_ms = 14000;
    f->spec.is_requeued_at_limit = true;
    fixture_script(
        f, "trap 'echo CHECKPOINTED > $MGPU_NOTIFY; exit 0' USR1; while :; do sleep 98806 & wait; done");
    fixture_run(f);
    assert_int_equal(f->exit.end, END_TIME_LIMIT);
}

CASE(at_the_limit_itself_it_is_told, f)
{
    f->spec.time_limit_ms = 1000;
    f->spec.grace_ms = 15000;
    f->spec.is_requeued_at_limit = true;
    fixture_script(f, "trap 'echo CHECKPOINTED > $MGPU_NOTIFY' USR1; while :; do sleep 98805 & wait; done");
    fixture_run(f);
    assert_int_equal(f->exit.end, END_TIME_LIMIT);
    assert_true(f->exit.run_ms >= 900 && f->exit.run_ms < 10000);
}

/* The init keeps the pipe open: reports of that time are in it. */
CASE(nothing_is_lost_between_two_shepherds, f)
{
    fixture_script(f, "trap 'exit 0' USR1; echo STATUS=first > $MGPU_NOTIFY; echo ready;"
                      "until [ -e go ]; do sleep 0.01; done;"
                      "echo PROGRESS=0.75 > $MGPU_NOTIFY; echo told; while :; do sleep 0.01; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_kill_shepherd(f);
    fixture_touch(f, "go");
    fixture_await_output(f, "told");
    fixture_adopt(f);
    fixture_stop(f, SIGUSR1, -1); // by the second one
    fixture_finish(f);
    struct spool_report said = read_said(f);
    assert_int_equal(said.progress_ppm, 750000);
    assert_string_equal(said.status, "first");
}

/* Who adopts it is not told of the stop here: the spool says that the job was. */
CASE(a_word_said_between_two_shepherds_ends_the_stop, f)
{
    fixture_script(f,
        "trap 'echo told; until [ -e go ]; do sleep 0.01; done;"
        " echo CHECKPOINTED > $MGPU_NOTIFY; echo said' USR1; echo ready; while :; do sleep 0.01; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_checkpoint(f, 60000);
    fixture_await_output(f, "told");
    fixture_kill_shepherd(f);
    fixture_touch(f, "go");
    fixture_await_output(f, "said");
    fixture_adopt(f);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED); // not at a limit: it goes back to the queue
    assert_true(read_said(f).checkpointed_ms > 0);
}

/* --- the reading itself --- */

CASE(a_flood_is_read_in_turns_with_rests_between, f)
{
    static char lines[4096];
    _cleanup_(status_pipe_close) struct status_pipe status_pipe;
    struct launch_spec spec = { .uid = geteuid(), .gid = getegid(), .say_pipe = f->spec.say_pipe };
    _cleanup_close_ int spool_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    status_pipe_init(&status_pipe);
    assert_int_equal(status_pipe_make(&status_pipe, &spec, spool_fd), 0);
    memset(lines, '\n', sizeof(lines));
    _cleanup_close_ int writer = open(f->spec.say_pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (write(writer, lines, sizeof(lines)) > 0)
        ;
    assert_int_equal(status_pipe_source(&status_pipe, 5000), status_pipe.pipe_fd);
    assert_int_equal(status_pipe_wait_ms(&status_pipe, 5000), -1);
    assert_false(status_pipe_read(&status_pipe, 5000));
    assert_int_equal(status_pipe_source(&status_pipe, 5001), -1);
    int wait_ms = status_pipe_wait_ms(&status_pipe, 5001);
    assert_in_range(wait_ms, 1, 100);
    assert_int_equal(status_pipe_source(&status_pipe, 5001 + wait_ms), status_pipe.pipe_fd);
    /* Who waited for room has it now. */
    assert_true(write(writer, "CHECKPOINTED\n", 13) == 13);
    assert_true(status_pipe_drain(&status_pipe));
    assert_false(status_pipe_drain(&status_pipe));
}
