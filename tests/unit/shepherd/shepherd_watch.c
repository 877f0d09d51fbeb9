/* SPDX-License-Identifier: MIT */
/* Stops, and remains of a job; each with a cgroup (where there is one) and without. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fixture.h"
#include "shepherd/shepherd.h"
#include "unit_test.h"

/* Each without a cgroup and with one. */
#define CASE(name, f)                                                                                        \
    static void run_##name(void **state);                                                                    \
    TEST_AS(name##_with_cgroup, run_##name, fixture_setup_cgroup, fixture_teardown)                          \
    TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

/* Daemons: another session, another parent, output elsewhere. */
#define DAEMONS(seconds)                                                                                     \
    "for i in 1 2 3; do setsid sh -c 'sleep " seconds " & sleep " seconds " & exit' >/dev/null 2>&1; done; "

CASE(daemons_end_with_the_command, f)
{
    fixture_script(f, DAEMONS("98701") "exit 6");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 6);
    assert_int_equal(fixture_count_sleepers(f, "98701"), 0);
}

CASE(a_stop_sends_its_signal, f)
{
    fixture_script(f, "trap 'echo term; exit 8' TERM; echo ready; while :; do sleep 98702 & wait; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 15000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 8);
    assert_string_equal(f->output, "ready\nterm\n");
    assert_int_equal(fixture_count_sleepers(f, "98702"), 0);
}

CASE(a_stop_that_is_ignored_becomes_a_kill, f)
{
    fixture_script(f, "trap '' TERM; " DAEMONS("98703") "echo ready; while :; do sleep 98703; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    int64_t before = clock_boot_ms();
    fixture_stop(f, SIGTERM, 150);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 128 + SIGKILL);
    assert_int_equal(f->exit.signal, SIGKILL);
    assert_true(clock_boot_ms() - before >= 150);
    assert_int_equal(fixture_count_sleepers(f, "98703"), 0);
}

/* A process that takes its time after SIGTERM. */
#define SAVER "(trap 'sleep 0.4; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done)"

static void assert_told(const char *text, const char *part)
{
    if (text == NULL || strstr(text, part) == NULL)
        fail_msg("no '%s' in '%s'", part, text != NULL ? text : "");
}

CASE(the_grace_is_for_those_who_outlive_the_command, f)
{
    fixture_script(f, "trap 'exit 7' TERM; " SAVER " & wait");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 15000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 7);
    assert_told(f->output, "saved\n");
    assert_told(f->exit.signals, "SIGTERM to ");
    assert_null(f->exit.text);
    assert_true(f->exit.run_ms >= 400);
}

CASE(who_would_only_die_waits_for_those_below, f)
{
    fixture_script(f, SAVER "; echo went on; exit 9");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 15000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 128 + SIGTERM);
    assert_told(f->output, "saved\n");
    assert_null(strstr(f->output, "went on"));
}

CASE(who_outlasts_the_grace_is_killed_and_named, f)
{
    fixture_script(f, "trap 'exit 7' TERM; (trap '' TERM; echo ready; exec sleep 98714) & wait");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 300);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
    assert_int_equal(f->exit.exit_code, 7);
    assert_int_equal(fixture_count_sleepers(f, "98714"), 0);
    if (f->cells != NULL) // without a cgroup nobody knows which of them the init leaves
        assert_told(f->exit.text, "1 process (sleep) had to be killed after the grace period of 300ms");
}

CASE(what_the_command_leaves_running_is_named, f)
{
    fixture_script(f, "sleep 98715 & exit 0");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_told(f->exit.text, "1 process (sleep) that the command left running was ended");
}

CASE(what_leaves_by_itself_is_not_named, f)
{
    fixture_script(f, "sleep 0.01 & exit 0");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_null(f->exit.text);
}

CASE(a_signal_spares_who_would_only_die_of_it, f)
{
    fixture_script(f, "(trap 'echo usr1; exit 0' USR1; echo ready; while :; do sleep 0.05; done); exit 3");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGUSR1, -1);
    fixture_finish(f);
    fixture_assert_end(f, END_EXIT, 3);
    assert_string_equal(f->output, "ready\nusr1\n");
    assert_told(f->exit.signals, "SIGUSR1 to ");
}

CASE(a_signal_that_nobody_handles_is_for_all, f)
{
    fixture_script(f, "echo ready; sleep 98716; exit 3");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGUSR1, -1);
    fixture_finish(f);
    fixture_assert_end(f, END_SIGNAL, 128 + SIGUSR1);
}

CASE(a_stopped_job_can_be_cancelled, f)
{
    fixture_script(f, "echo ready; kill -STOP $$; sleep 98704");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 15000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 128 + SIGTERM);
}

CASE(a_plain_signal_lets_the_job_go_on, f)
{
    fixture_script(f, "trap 'echo usr1; exit 0' USR1; echo ready; while :; do sleep 98705 & wait; done");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGUSR1, -1);
    fixture_finish(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_string_equal(f->output, "ready\nusr1\n");
}

CASE(a_stop_right_after_the_start_is_not_lost, f)
{
    fixture_command(f, "sleep", "98706", NULL);
    fixture_start(f);
    fixture_await(f, "started");
    fixture_stop(f, SIGTERM, 15000);
    fixture_finish(f);
    fixture_assert_end(f, END_CANCELLED, 128 + SIGTERM);
}

/* The command ends its init with it: everything of this uid that it may signal. */
CASE(a_killed_init_does_not_lose_the_exit_code, f)
{
    fixture_script(f, "kill -9 $PPID; sleep 0.05; exit 23");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 23);
    assert_int_equal(f->exit.is_executed, 1);
}

CASE(a_stop_reaches_the_command_of_a_killed_init, f)
{
    fixture_script(f, "kill -9 $PPID; echo ready; " DAEMONS("98707") "sleep 98707");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGINT, 0);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
    assert_int_equal(fixture_count_sleepers(f, "98707"), 0);
}

CASE(a_stopped_init_does_not_hold_up_a_kill, f)
{
    fixture_script(f, "kill -STOP $PPID; echo ready; sleep 98708");
    fixture_start(f);
    fixture_await_output(f, "ready");
    fixture_stop(f, SIGTERM, 50);
    fixture_finish(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
}

CASE(the_shepherd_ignores_signals, f)
{
    fixture_script(f, "echo ready; sleep 0.2; exit 4");
    fixture_start(f);
    fixture_await_output(f, "ready");
    (void)kill(f->shepherd, SIGTERM);
    (void)kill(f->shepherd, SIGHUP);
    (void)kill(f->shepherd, SIGINT);
    fixture_finish(f);
    fixture_assert_end(f, END_EXIT, 4);
    assert_int_equal(fixture_reap(f), SHEPHERD_DONE);
}

CASE(the_time_of_children_is_counted, f)
{
    fixture_script(f, "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'");
    fixture_run(f);
    fixture_assert_end(f, END_EXIT, 0);
    assert_true(f->exit.cpu_ms >= 20);
    assert_true(f->exit.max_rss >= 100000);
    assert_true(f->exit.run_ms >= 20);
}
