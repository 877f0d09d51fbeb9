/* SPDX-License-Identifier: MIT */
/* Requests about the end of a job: valid ones, and contradictions. */
#include <signal.h>

#include "base/signals.h"
#include "job/ask.h"
#include "unit_test.h"

TEST(signals_are_known_by_name_and_number)
{
    assert_int_equal(signal_find("USR1"), SIGUSR1);
    assert_int_equal(signal_find("SIGUSR1"), SIGUSR1);
    assert_int_equal(signal_find("sigterm"), SIGTERM);
    assert_int_equal(signal_find("15"), SIGTERM);
    assert_int_equal(signal_find("64"), 64);
    static const char *const wrong[] = { "", "0", "-1", "65", "99999999999999999999", "USR3", "SIG", "1 ",
        "0x1" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(signal_find(wrong[i]), 0);
    assert_string_equal(signal_name(SIGKILL), "KILL");
    assert_null(signal_name(0));
    assert_null(signal_name(64));
}

TEST(a_warning_names_a_signal_and_a_time)
{
    int signal = 0;
    int64_t before_ms = 0;
    assert_int_equal(parse_warn_signal("USR1@90", &signal, &before_ms, NULL), 0);
    assert_int_equal(signal, SIGUSR1);
    assert_int_equal(before_ms, 90000);
    assert_int_equal(parse_warn_signal("10@2m", &signal, &before_ms, NULL), 0);
    assert_int_equal(before_ms, 120000);
    assert_int_equal(parse_warn_signal("USR2", &signal, &before_ms, NULL), 0);
    assert_int_equal(before_ms, ASK_WARN_MS);
    static const char *const wrong[] = { "@60", "USR1@", "USR1@0", "USR1@-5", "NOSUCH@60", "USR1@60@60" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_true(parse_warn_signal(wrong[i], &signal, &before_ms, NULL) < 0);
}

TEST(what_makes_no_sense_is_refused)
{
    char codes[] = "75", zero[] = "0", high[] = "256", warning[] = "NOSUCH";
    const struct job_ask wrong[] = {
        { .gpus = 1, .grace_ms = -1 },
        { .gpus = 1, .grace_ms = ASK_GRACE_MAX_MS + 1 },
        { .gpus = 1, .retry = ASK_RETRY_MAX + 1 },
        { .gpus = 1, .max_requeues = ASK_REQUEUES_MAX + 1 },
        { .gpus = 1, .retry_on = codes },
        { .gpus = 1, .retry = 1, .retry_on = zero },
        { .gpus = 1, .retry = 1, .retry_on = high },
        { .gpus = 1, .warn_signal = warning },
        { .gpus = 1, .adopted_pid = 7, .retry = 1 },
        { .gpus = 1, .adopted_pid = 7, .requeue_on_timeout = true },
        { .gpus = 1, .adopted_pid = 7, .checkpoint = true },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_true(job_ask_validate(&wrong[i], NULL) < 0);
    const struct job_ask good = { .gpus = 1, .retry = 1, .retry_on = codes, .grace_ms = ASK_GRACE_MAX_MS };
    assert_int_equal(job_ask_validate(&good, NULL), 0);
}
