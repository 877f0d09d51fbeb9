/* SPDX-License-Identifier: MIT */
/* kill -9 of the shepherd at every stage, and the result of an adopter. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "fixture.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

/* Each without a cgroup and with one. */
#define CASE(name, f)                                                                                        \
    static void run_##name(void **state);                                                                    \
    TEST_AS(name##_with_cgroup, run_##name, fixture_setup_cgroup, fixture_teardown)                          \
    TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

static int open_spool(const struct fixture *f)
{
    int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void start_and_kill(struct fixture *f, const char *script)
{
    fixture_script(f, script);
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_kill_shepherd(f);
}

CASE(the_exit_code_survives_the_shepherd, f)
{
    start_and_kill(f, "echo ready; sleep 0.2; echo more; exit 33");
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_EXIT, 33);
    assert_int_equal(f->exit.is_executed, 1);
    assert_string_equal(f->exit.log_path, f->log);
    assert_string_equal(f->output, "ready\nmore\n");
    assert_int_equal(f->exit.log_bytes, 11);
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
}

CASE(so_does_one_that_came_before_the_adopter, f)
{
    /* It ends when its init has another parent: not before the shepherd is dead, which may record the end
     * else. */
    start_and_kill(f, "of() { cut -d' ' -f4 /proc/$PPID/stat; }; shepherd=$(of); echo ready; "
                      "while [ \"$(of)\" = \"$shepherd\" ]; do :; done; exit 34");
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_EXIT, 34);
}

CASE(an_adopter_stops_the_job, f)
{
    start_and_kill(f, "trap 'echo term; exit 8' TERM; echo ready; while :; do sleep 98711 & wait; done");
    fixture_adopt(f);
    fixture_stop(f, SIGTERM, 15000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 8);
    assert_int_equal(fixture_count_sleepers(f, "98711"), 0);
}

/* The command reacts to the stop after the shepherd's death. */
CASE(a_stop_is_known_to_who_adopts_the_step, f)
{
    fixture_script(
        f, "trap 'echo term; sleep 0.3; exit 8' TERM; echo ready; while :; do sleep 98713 & wait; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 15000);
    fixture_await_output(f, "term");
    fixture_kill_shepherd(f);
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 8);
}

CASE(so_is_why_it_was_stopped, f)
{
    struct init_stop stop = {
        .signal = SIGTERM, .end = END_NODE_LOST, .is_sent = true, .kill_boot_ms = clock_boot_ms() + 15000
    };
    start_and_kill(f, "echo ready; sleep 0.2; exit 8");
    int fd = open_spool(f);
    int status_fd = openat(fd, SPOOL_STATUS, O_RDWR | O_CLOEXEC);
    assert_int_equal(init_write_stop(status_fd, &stop), 0);
    (void)close(status_fd);
    (void)close(fd);
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_NODE_LOST, 8);
}

/* The command has ended, another process saves its work, and the shepherd dies. */
static void stop_and_kill(struct fixture *f, const char *script, int64_t grace_ms)
{
    fixture_script(f, script);
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, grace_ms);
    fixture_await_output(f, "left");
    fixture_kill_shepherd(f);
    fixture_adopt(f);
    fixture_finish(f);
}

CASE(the_grace_goes_on_with_who_adopts_the_step, f)
{
    stop_and_kill(f,
        "trap 'echo left; exit 7' TERM; (trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; "
        "while :; do sleep 0.05; done) & wait",
        15000);
    fixture_assert_end(f, END_CANCELLED, 7);
    assert_non_null(strstr(f->output, "saved\n"));
}

CASE(and_ends_with_him, f)
{
    stop_and_kill(
        f, "trap 'echo left; exit 7' TERM; (trap '' TERM; echo ready; exec sleep 98717) & wait", 600);
    fixture_assert_end(f, END_CANCELLED, 7);
    assert_int_equal(fixture_count_sleepers(f, "98717"), 0);
}

CASE(who_was_held_is_let_go_by_who_adopts_the_step, f)
{
    stop_and_kill(f,
        "(trap 'echo left; sleep 0.3; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done); "
        "echo went on",
        15000);
    fixture_assert_end(f, END_CANCELLED, 128 + SIGTERM);
    assert_non_null(strstr(f->output, "saved\n"));
    assert_null(strstr(f->output, "went on"));
}

CASE(an_adopter_ends_what_the_command_left, f)
{
    start_and_kill(f, "setsid sh -c 'sleep 98712 & exit' >/dev/null 2>&1; echo ready; exit 2");
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_EXIT, 2);
    assert_int_equal(fixture_count_sleepers(f, "98712"), 0);
}

CASE(a_lost_status_is_unknown_and_never_zero, f)
{
    fixture_script(f, "kill -9 $PPID; echo ready; sleep 0.2; exit 0");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_kill_shepherd(f);
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_UNKNOWN, 125);
    assert_int_equal(f->exit.is_executed, 1);
    assert_non_null(strstr(f->exit.text, "lost"));
}

CASE(a_shepherd_that_died_after_its_verdict_has_executed_nothing, f)
{
    int fd = open_spool(f);
    assert_int_equal(file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &f->spec, false), 0);
    assert_int_equal(spool_decide(fd, VERDICT_GO), VERDICT_GO);
    (void)close(fd);
    fixture_adopt(f);
    fixture_finish(f);
    fixture_assert_end(f, END_UNKNOWN, 125);
    assert_int_equal(f->exit.is_executed, 0);
}

CASE(without_a_verdict_an_adopter_leaves, f)
{
    int fd = open_spool(f);
    assert_int_equal(file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &f->spec, false), 0);
    (void)close(fd);
    fixture_adopt(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_SETTLED);
}

CASE(a_finished_step_is_left_alone, f)
{
    fixture_run(f);
    fixture_kill_shepherd(f);
    fixture_adopt(f);
    assert_int_equal(fixture_wait(f), SHEPHERD_DONE);
}

/* The dead shepherd may have come as far as its record. */
static void finish_by_adopter(struct fixture *f)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/" SPOOL_EXIT, f->dir);
    if (access(path, F_OK) == 0) {
        fixture_read_exit(f);
        return;
    }
    fixture_adopt(f);
    fixture_finish(f);
}

/* Kills the shepherd at some moment of the launch: whatever stands, the command ran once or not at all.
 */
TEST_WITH(a_shepherd_killed_at_any_moment_leaves_the_truth, fixture_setup, fixture_teardown)
{
    for (int delay_us = 0; delay_us < 6000; delay_us += 75) {
        fixture_teardown(state);
        (void)(delay_us % 2 == 0 ? fixture_setup(state) : fixture_setup_cgroup(state));
        struct fixture *f = *state;
        fixture_script(f, "echo ran; exit 3");
        fixture_start(f);
        (void)usleep((useconds_t)delay_us);
        fixture_kill_shepherd(f);
        int fd = open_spool(f);
        int verdict = spool_decide(fd, VERDICT_NOGO);
        (void)close(fd);
        if (verdict == VERDICT_GO) {
            finish_by_adopter(f);
            bool is_run = f->exit.is_executed == 1;
            fixture_assert_end(f, is_run ? END_EXIT : END_UNKNOWN, is_run ? 3 : 125);
            assert_string_equal(f->output, is_run ? "ran\n" : "");
        } else {
            assert_int_equal(verdict, VERDICT_NOGO);
        }
    }
}
