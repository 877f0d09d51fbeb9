/* SPDX-License-Identifier: MIT */
/* What happens to a job when a program goes away: the table, its page in docs, and what repeated signals do.
 */
#include <signal.h>

#include <fcntl.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "cli/api/leaving.h"
#include "cli/api/leaving_signals.h"
#include "cli/follow/going.h"
#include "unit_test.h"

#define PAGE_MAX (1U << 20)

static size_t count_rows(const char *page)
{
    size_t count = 0;
    for (const char *p = page; (p = strstr(p, "\n| `")) != NULL; p++)
        count++;
    return count;
}

TEST(the_page_has_the_rows_of_the_table)
{
    _cleanup_buffer_ struct buffer page = { 0 };
    size_t missing = 0, count = 0;
    assert_int_equal(file_read(AT_FDCWD, MANUAL "/leaving.md", PAGE_MAX, &page), 0);
    for (enum leaver leaver = LEAVER_NONE + 1; leaver < LEAVERS; leaver++) {
        struct buffer rows = { 0 };
        leaving_print_row(leaving_of(leaver), &rows);
        for (const char *p = buffer_text(&rows); *p != '\0'; p++)
            count += *p == '\n';
        if (strstr(buffer_text(&page), buffer_text(&rows)) == NULL) {
            missing++;
            print_message("docs/leaving.md does not have:\n%s", buffer_text(&rows));
        }
        buffer_clear(&rows);
    }
    assert_int_equal(missing, 0);
    assert_int_equal(count_rows(buffer_text(&page)), count);
}

TEST(a_program_without_a_row_does_nothing)
{
    static const struct leaving nothing = { 0 };
    assert_memory_equal(leaving_of(LEAVER_NONE)->waiting, nothing.waiting, sizeof(nothing.waiting));
    assert_memory_equal(leaving_of(LEAVER_NONE)->running, nothing.running, sizeof(nothing.running));
}

static bool is_of_process(enum leave_effect effect)
{
    return effect == LEAVE_NOTHING || effect == LEAVE_ENDS_PROCESS;
}

/* A killed program cannot report its end: only what is tied to it ends. */
TEST(nobody_ends_a_job_by_being_killed)
{
    for (enum leaver leaver = 0; leaver < LEAVERS; leaver++) {
        const struct leaving *leaving = leaving_of(leaver);
        if (leaver == LEAVER_ACQUIRER) // whose process is the job
            continue;
        for (enum leave_way way = LEAVE_KILL; way < LEAVE_WAYS; way++) {
            assert_int_equal(leaving->waiting[way], LEAVE_NOTHING);
            assert_true(is_of_process(leaving->running[way]));
        }
    }
}

/* An effect that is only a program's that has a process in the job, or a command here. */
TEST(while_it_waits_a_job_is_ended_or_left)
{
    for (enum leaver leaver = 0; leaver < LEAVERS; leaver++)
        for (enum leave_way way = 0; way < LEAVE_WAYS; way++) {
            enum leave_effect effect = leaving_of(leaver)->waiting[way];
            assert_true(effect == LEAVE_NOTHING || effect == LEAVE_ENDS);
        }
}

TEST(other_signals_do_nothing)
{
    assert_int_equal(leaving_effect(LEAVER_RUN, false, SIGUSR1), LEAVE_NOTHING);
    assert_int_equal(leaving_effect(LEAVER_RUN, false, SIGTERM), LEAVE_ENDS);
    assert_int_equal(leaving_effect(LEAVER_RUN, true, SIGINT), LEAVE_ENDS);
    assert_int_equal(leaving_effect(LEAVER_RUN, false, SIGINT), LEAVE_INTERRUPTS);
}

/* --- repeated signals --- */

TEST(a_run_is_interrupted_then_ended_then_killed)
{
    struct going going = { .leaver = LEAVER_RUN };
    assert_int_equal(going_next(&going, false, SIGINT, 1000), GOING_SIGNAL);
    assert_int_equal(going_next(&going, false, SIGINT, 1500), GOING_CANCEL);
    assert_int_equal(going_next(&going, false, SIGINT, 90000), GOING_KILL);
    assert_int_equal(going_next(&going, false, SIGINT, 90001), GOING_ABANDON);
    assert_int_equal(going.first_signal, SIGINT);
}

TEST(a_run_is_interrupted_again_after_some_time)
{
    struct going going = { .leaver = LEAVER_RUN };
    assert_int_equal(going_next(&going, false, SIGINT, 1000), GOING_SIGNAL);
    assert_int_equal(going_next(&going, false, SIGINT, 3001), GOING_SIGNAL);
    assert_int_equal(going_next(&going, false, SIGINT, 5001), GOING_CANCEL);
}

TEST(a_run_that_waits_is_ended_at_once)
{
    struct going going = { .leaver = LEAVER_RUN };
    assert_int_equal(going_next(&going, true, SIGINT, 1000), GOING_CANCEL);
    assert_int_equal(going_next(&going, true, SIGINT, 1000), GOING_KILL);
}

TEST(only_ctrl_c_shortens_the_grace_period)
{
    static const int signals[] = { SIGTERM, SIGHUP, SIGPIPE };
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct going going = { .leaver = LEAVER_RUN };
        assert_int_equal(going_next(&going, false, signals[i], 1000), GOING_CANCEL);
        assert_int_equal(going_next(&going, false, SIGHUP, 1001), GOING_WAIT);
        assert_int_equal(going_next(&going, false, SIGPIPE, 1002), GOING_WAIT);
        assert_int_equal(going_next(&going, false, SIGINT, 1003), GOING_KILL);
        assert_int_equal(going_next(&going, false, SIGTERM, 1004), GOING_WAIT);
        assert_int_equal(going.first_signal, signals[i]);
    }
}

TEST(the_job_of_an_srun_is_shown_then_interrupted_and_ended)
{
    struct going going = { .leaver = LEAVER_SRUN };
    assert_int_equal(going_next(&going, false, SIGINT, 1000), GOING_SHOW);
    assert_int_equal(going_next(&going, false, SIGINT, 2001), GOING_SHOW);
    assert_int_equal(going_next(&going, false, SIGINT, 3001), GOING_CANCEL);
    assert_true(going.is_interrupted);
    assert_int_equal(going_next(&going, false, SIGINT, 9001), GOING_KILL);
    assert_false(going.is_interrupted);
}

TEST(a_viewer_leaves_by_any_signal)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 };
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct going going = { .leaver = LEAVER_ATTACH };
        assert_int_equal(going_next(&going, false, signals[i], 1000), GOING_LEAVE);
        assert_int_equal(going_next(&going, true, signals[i], 1000), GOING_LEAVE);
    }
}

/* --- signals --- */

TEST(what_is_ignored_is_not_waited_for)
{
    sigset_t set;
    (void)signal(SIGHUP, SIG_DFL); // it may be called by nohup
    leaving_signals(&set);
    assert_true(sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) && sigismember(&set, SIGHUP));
    (void)signal(SIGHUP, SIG_IGN);
    leaving_signals(&set);
    leaving_signals_add(&set, SIGHUP);
    assert_true(sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) && !sigismember(&set, SIGHUP));
    (void)signal(SIGHUP, SIG_DFL);
}
