/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "agent/confine/cpu_pool.h"
#include "base/memory.h"
#include "unit_test.h"

static struct cpu_set set_of(const char *text)
{
    struct cpu_set set;
    assert_true(cpu_set_parse(text, &set));
    return set;
}

static void assert_set(const struct cpu_set *set, const char *expected)
{
    char text[CPU_LIST_SIZE];
    cpu_set_format(set, text);
    assert_string_equal(text, expected);
}

static struct cpu_pool *pool_of(const char *all)
{
    struct cpu_pool *pool = xcalloc(1, sizeof(*pool));
    pool->all = set_of(all);
    return pool;
}

TEST(lists_are_read_and_written)
{
    static const char *const same[] = { "", "0", "0-3", "0-3,8,10-11", "4095", "0-4095" };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct cpu_set set = set_of(same[i]);
        assert_set(&set, same[i]);
    }
    struct cpu_set set = set_of("3,1,2,0\n");
    assert_set(&set, "0-3");
    assert_int_equal(cpu_set_count(&set), 4);
}

TEST(what_is_no_list_is_refused)
{
    static const char *const bad[] = { "a", "1-", "-1", "1,,2", "1;2", "4096", "0-4096",
        "99999999999999999999" };
    struct cpu_set set;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(cpu_set_parse(bad[i], &set));
}

/* Every CPU apart: the longest list there is. */
TEST(the_longest_list_fits)
{
    struct cpu_set set = { 0 }, again;
    char text[CPU_LIST_SIZE];
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX; cpu += 2)
        cpu_set_add(&set, cpu);
    cpu_set_format(&set, text);
    assert_true(cpu_set_parse(text, &again));
    assert_memory_equal(&set, &again, sizeof(set));
}

TEST(no_cpu_is_given_twice)
{
    _cleanup_free_ struct cpu_pool *pool = pool_of("0-3");
    struct cpu_set got;
    assert_true(cpu_pool_take(pool, 1, 1, 2, NULL, &got));
    assert_set(&got, "0-1");
    assert_true(cpu_pool_take(pool, 2, 1, 1, NULL, &got));
    assert_set(&got, "2");
    assert_false(cpu_pool_take(pool, 3, 1, 2, NULL, &got));
    assert_true(cpu_pool_take(pool, 4, 1, 1, NULL, &got));
    assert_set(&got, "3");
    cpu_pool_give_back(pool, 1, 1);
    assert_true(cpu_pool_take(pool, 3, 1, 2, NULL, &got));
    assert_set(&got, "0-1");
}

TEST(asking_again_gives_the_same)
{
    _cleanup_free_ struct cpu_pool *pool = pool_of("0-7");
    struct cpu_set got;
    assert_true(cpu_pool_take(pool, 1, 1, 2, NULL, &got));
    assert_true(cpu_pool_take(pool, 2, 1, 2, NULL, &got));
    cpu_pool_give_back(pool, 1, 1);
    assert_true(cpu_pool_take(pool, 2, 1, 2, NULL, &got));
    assert_set(&got, "2-3");
    /* A second attempt is another one. */
    assert_true(cpu_pool_take(pool, 2, 2, 2, NULL, &got));
    assert_set(&got, "0-1");
}

TEST(what_the_cgroups_say_is_taken)
{
    _cleanup_free_ struct cpu_pool *pool = pool_of("0-3");
    struct cpu_set noted = set_of("0,2"), got;
    cpu_pool_note(pool, 9, 1, &noted);
    assert_true(cpu_pool_take(pool, 1, 1, 2, NULL, &got));
    assert_set(&got, "1,3");
}

TEST(cpus_near_its_gpu_come_first)
{
    _cleanup_free_ struct cpu_pool *pool = pool_of("0-7");
    struct cpu_set near = set_of("4-7,100"), got;
    assert_true(cpu_pool_take(pool, 1, 1, 2, &near, &got));
    assert_set(&got, "4-5");
    /* Two are left there; the third comes from elsewhere. */
    assert_true(cpu_pool_take(pool, 2, 1, 3, &near, &got));
    assert_set(&got, "0,6-7");
}
