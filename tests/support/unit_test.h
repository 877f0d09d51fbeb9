/* SPDX-License-Identifier: MIT */
/*
 * cmocka, the headers that it wants before it, and tests that need no list:
 *
 *   TEST(a_cancelled_job_returns_its_gpus)
 *   {
 *       ...
 *   }
 *
 * main() of a program without its own (unit_main.c) runs all of its tests in the order in which they are
 * written.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The body follows: it gets `void **state`, which `setup` may set before it and `teardown` frees after it. */
#define TEST_WITH(name, setup, teardown)                                                                     \
    static void name(void **state);                                                                          \
    TEST_AS(name, name, setup, teardown)                                                                     \
    static void name(void **state)

/* The same for a test whose state is one pointer, which is its parameter: TEST_ON(name, struct x *x, setup,
 * teardown). */
#define TEST_ON(name, parameter, setup, teardown)                                                            \
    static void name(parameter);                                                                             \
    static void run_##name(void **state)                                                                     \
    {                                                                                                        \
        name(*state);                                                                                        \
    }                                                                                                        \
    TEST_AS(name, run_##name, setup, teardown)                                                               \
    static void name(parameter)

/* A function that is there is a test of this name, too. */
#define TEST_AS(name, function, setup, teardown)                                                             \
    __attribute__((constructor)) static void register_##name(void)                                           \
    {                                                                                                        \
        unit_test_add(&(struct CMUnitTest){ #name, function, setup, teardown, NULL }, __LINE__);             \
    }

/* Adds a test, whose line in the source is its place among the others. */
void unit_test_add(const struct CMUnitTest *test, int line);

/* Runs all tests; setup and teardown are of all together, and may be NULL. Returns how many failed. */
int unit_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown);

/* Removes a folder with all that is in it; 0, or what nftw() returns. */
int unit_test_remove(const char *path);
