/* SPDX-License-Identifier: MIT */
#include "base/containers/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"

#define ITEMS 1000U

struct item {
    uint64_t key;
    unsigned number;
    struct map_link link;
};

static struct item *item_at(struct map_link *link)
{
    return MAP_ITEM(link, struct item, link);
}

static unsigned n_released;

static void release(struct map_link *link)
{
    free(item_at(link));
    n_released++;
}

static void add(struct map *map, uint64_t key, unsigned number, uint64_t hash)
{
    struct item *item = xcalloc(1, sizeof(*item));
    *item = (struct item){ .key = key, .number = number };
    map_add(map, &item->link, hash);
}

static void each_item_is_found_by_its_number_and_no_other_is(void **state)
{
    struct map map = { 0 };
    assert_null(map_find(&map, map_hash(1)));
    for (unsigned i = 0; i < ITEMS; i++)
        add(&map, i, i, map_hash(i));
    assert_int_equal(map.count, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(item_at(map_find(&map, map_hash(i)))->number, i);
    assert_null(map_find(&map, map_hash(ITEMS)));
    n_released = 0;
    map_clear(&map, release);
    assert_int_equal(n_released, ITEMS);
    assert_null(map_find(&map, map_hash(1)));
}

/* Also after the table has grown several times. */
static void items_with_equal_hashes_are_found_the_last_one_first(void **state)
{
    struct map map = { 0 };
    for (unsigned i = 0; i < ITEMS; i++)
        add(&map, i % 10, i, i % 10);
    for (uint64_t key = 0; key < 10; key++) {
        unsigned count = 0, last = ITEMS;
        for (const struct map_link *link = map_find(&map, key); link != NULL; link = map_find_next(link)) {
            const struct item *item = item_at((struct map_link *)(uintptr_t)link);
            assert_int_equal(item->key, key);
            assert_true(item->number < last);
            last = item->number;
            count++;
        }
        assert_int_equal(count, ITEMS / 10);
    }
    map_clear(&map, release);
}

static void a_loop_over_all_sees_each_once_and_may_remove_it(void **state)
{
    struct map map = { 0 };
    bool seen[ITEMS] = { false };
    unsigned count = 0;
    assert_null(map_first(&map));
    for (unsigned i = 0; i < ITEMS; i++)
        add(&map, i, i, map_hash(i));
    for (struct map_link *link = map_first(&map), *next = NULL; link != NULL; link = next) {
        struct item *item = item_at(link);
        next = map_next(&map, link);
        assert_false(seen[item->number]);
        seen[item->number] = true;
        count++;
        if (item->number % 2 == 0) {
            map_remove(&map, link);
            free(item);
        }
    }
    assert_int_equal(count, ITEMS);
    assert_int_equal(map.count, ITEMS / 2);
    assert_null(map_find(&map, map_hash(2)));
    assert_int_equal(item_at(map_find(&map, map_hash(3)))->number, 3);
    map_clear(&map, release);
}

static void a_map_that_is_cleared_without_a_function_leaves_its_items(void **state)
{
    struct map map = { 0 };
    struct item item = { .key = 7 };
    map_add(&map, &item.link, map_hash(7));
    map_clear(&map, NULL);
    assert_int_equal(map.count, 0);
    assert_int_equal(item.key, 7);
}

static void different_numbers_have_different_hashes_that_fill_the_table_evenly(void **state)
{
    static unsigned buckets[256];
    for (uint64_t i = 0; i < 256 * 16; i++)
        buckets[map_hash(i << 32) % 256]++;
    for (unsigned i = 0; i < 256; i++)
        assert_in_range(buckets[i], 1, 48);
    assert_true(map_hash(1) != map_hash(2));
    assert_true(map_hash_add(map_hash(1), 2) != map_hash_add(map_hash(2), 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_found_by_its_number_and_no_other_is),
        cmocka_unit_test(items_with_equal_hashes_are_found_the_last_one_first),
        cmocka_unit_test(a_loop_over_all_sees_each_once_and_may_remove_it),
        cmocka_unit_test(a_map_that_is_cleared_without_a_function_leaves_its_items),
        cmocka_unit_test(different_numbers_have_different_hashes_that_fill_the_table_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
