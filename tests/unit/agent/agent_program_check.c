/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/confine/program_check.h"
#include "unit_test.h"

static char script[64];

static void write_script(const char *text)
{
    FILE *out = fopen(script, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(script, 0755), 0);
}

static int setup(void **state)
{
    char folder[] = "/tmp/mgpu-program.XXXXXX";
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(script, sizeof(script), "%s/program", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)unlink(script);
    *strrchr(script, '/') = '\0';
    return rmdir(script);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(a_program_that_tells_its_version_can_run)
{
    struct error err = { 0 };
    write_script("#!/bin/sh\ntest \"$1\" = --version\n");
    assert_int_equal(program_check(script, &err), 0);
}

CASE(a_missing_program_is_reported)
{
    struct error err = { 0 };
    assert_int_equal(program_check("/nosuch/program", &err), -ENOENT);
    assert_string_equal(err.message, "/nosuch/program cannot be executed: No such file or directory");
}

CASE(a_file_that_is_no_program_is_reported)
{
    struct error err = { 0 };
    write_script("\177ELF");
    assert_true(program_check(script, &err) < 0);
    assert_non_null(strstr(err.message, "cannot be executed"));
}

CASE(a_program_that_crashes_is_told_with_its_signal)
{
    struct error err = { 0 };
    write_script("#!/bin/sh\nkill -SEGV $$\n");
    assert_true(program_check(script, &err) < 0);
    assert_non_null(strstr(err.message, "is killed by signal 11 (Segmentation fault)"));
}

CASE(a_program_that_fails_is_told_with_its_status)
{
    struct error err = { 0 };
    write_script("#!/bin/sh\nexit 127\n");
    assert_true(program_check(script, &err) < 0);
    assert_non_null(strstr(err.message, "exits with 127"));
}
