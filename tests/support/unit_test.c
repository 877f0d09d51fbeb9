/* SPDX-License-Identifier: MIT */
#include "unit_test.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>

#define TESTS_MAX 200

static struct CMUnitTest tests[TESTS_MAX]; // by line
static int lines[TESTS_MAX];
static size_t count;

/* Compilers are free to run constructors in another order than that of the lines. */
void unit_test_add(const struct CMUnitTest *test, int line)
{
    assert(count < TESTS_MAX);
    size_t at = count++;
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = *test;
    lines[at] = line;
}

int unit_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    return _cmocka_run_group_tests(program_invocation_short_name, tests, count, setup, teardown);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *position)
{
    return remove(path);
}

int unit_test_remove(const char *path)
{
    return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
