/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/show/job_columns.h"
#include "unit_test.h"

static void check(const char *text, int status, const char *words)
{
    _cleanup_json_ json_t *job = json_loads(text, 0, NULL);
    assert_non_null(job);
    assert_int_equal(exit_code_of_job(job), status);
    _cleanup_free_ char *outcome = job_outcome(job);
    if (words == NULL)
        assert_null(outcome);
    else
        assert_string_equal(outcome, words);
}

TEST(a_job_lends_its_status)
{
    check("{\"ended_by\":\"exit\",\"exit_code\":0}", 0, "exit 0");
    check("{\"ended_by\":\"exit\",\"exit_code\":255}", 255, "exit 255");
}

TEST(a_signal_is_told_as_the_shell_does)
{
    check("{\"ended_by\":\"signal\",\"signal\":9,\"exit_code\":137}", 137, "killed by signal 9 (SIGKILL)");
}

TEST(a_cancelled_job_counts_as_terminated)
{
    check("{\"ended_by\":\"cancelled\",\"exit_code\":0,\"stopped_by\":\"ana\"}", 143, "cancelled by ana");
}

TEST(a_job_that_did_not_start_keeps_its_own_code)
{
    check("{\"ended_by\":\"start_failed\",\"exit_code\":127,\"message\":\"no such command\"}", 127,
        "did not start, exit 127: no such command");
    check("{\"ended_by\":\"start_failed\",\"exit_code\":0}", 125, "did not start, exit 0");
}

TEST(an_unknown_end_is_mgpus_own_failure)
{
    check("{\"ended_by\":\"unknown\"}", 125, "ended, result unknown");
    check("{\"ended_by\":\"time_limit\",\"time_limit_s\":90}", 124, "reached its time limit of 1m30s");
    check("{\"ended_by\":\"deadline\"}", 125, "could not start before its deadline");
    check("{\"ended_by\":\"dependency\"}", 125, "its dependency could never be satisfied");
    check("{\"ended_by\":\"reboot\",\"exit_code\":0}", 125, "its node rebooted");
    check("{\"ended_by\":\"a word of the future\",\"exit_code\":0}", 125, "a word of the future");
    check("{\"ended_by\":null}", 125, NULL);
    check("{}", 125, NULL);
}

TEST(errors_have_documented_statuses)
{
    assert_int_equal(exit_code_of_error(-EINVAL), 2);
    assert_int_equal(exit_code_of_error(-ENOENT), 3);
    assert_int_equal(exit_code_of_error(-EPERM), 4);
    assert_int_equal(exit_code_of_error(-EHOSTDOWN), 5);
    assert_int_equal(exit_code_of_error(-EALREADY), 6);
    assert_int_equal(exit_code_of_error(-ETIME), 124);
    assert_int_equal(exit_code_of_error(-EIO), 1);
}
