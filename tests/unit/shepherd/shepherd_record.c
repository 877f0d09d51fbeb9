/* SPDX-License-Identifier: MIT */
/* Each way to end makes the record that people are shown. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>

#include "job/state.h"
#include "shepherd/record.h"

struct expectation {
    struct ending ending;
    enum job_end end;
    int32_t exit_code;
    uint32_t signal, is_executed;
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
};

static void every_ending_is_judged_rightly(void **state)
{
    struct shepherd shepherd = { .log_fd = -1, .spec = { .job = 7, .token = 5 } };
    for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++) {
        const struct expectation *expected = &expectations[i];
        struct launch_exit record;
        char text[512];
        record_make(&shepherd, &expected->ending, text, sizeof(text), &record);
        if (record.end != expected->end || record.exit_code != expected->exit_code ||
            record.signal != expected->signal || record.is_executed != expected->is_executed)
            fail_msg("row %zu: %s, %d, %u, %u", i, job_end_name(record.end), record.exit_code, record.signal,
                record.is_executed);
        assert_int_equal(record.job, 7);
        assert_int_equal(record.token, 5);
        /* Only an end that speaks for itself goes without words. */
        assert_int_equal(record.text == NULL,
            record.is_executed && record.end != END_UNKNOWN && expected->ending.status.phase == INIT_ENDED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ending_is_judged_rightly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
