/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "shepherd/steps.h"
#include "unit_test.h"

TEST(every_step_makes_a_sentence)
{
    struct launch_spec spec = { .uid = 1001, .cwd = (char[]){ "/data" } };
    for (int step = STEP_NONE; step < STEPS; step++) {
        char text[256] = "";
        step_describe((enum launch_step)step, EACCES, &spec, "/home/a/out.log", text, sizeof(text));
        assert_true(strlen(text) > 9);
    }
}

TEST(the_sentence_names_the_object)
{
    char text[256];
    struct launch_spec spec = { .uid = 1001, .cwd = (char[]){ "/data" } };
    step_describe(STEP_UID, EAGAIN, &spec, NULL, text, sizeof(text));
    assert_string_equal(text, "cannot switch to uid 1001: Resource temporarily unavailable");
    step_describe(STEP_CWD, EACCES, &spec, NULL, text, sizeof(text));
    assert_string_equal(text, "cannot change to directory /data: Permission denied");
    step_describe(STEP_LOG_KIND, 0, &spec, "/dev/tty", text, sizeof(text));
    assert_string_equal(text, "the log /dev/tty is not a regular file");
}

TEST(exit_codes_are_those_of_a_shell)
{
    assert_int_equal(step_exit_code(STEP_EXEC, ENOENT), 127);
    assert_int_equal(step_exit_code(STEP_EXEC, ENOTDIR), 127);
    assert_int_equal(step_exit_code(STEP_EXEC, EACCES), 126);
    assert_int_equal(step_exit_code(STEP_EXEC, ENOEXEC), 126);
    assert_int_equal(step_exit_code(STEP_CWD, ENOENT), 125);
}
