/* SPDX-License-Identifier: MIT */
#include "base/containers/map.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "unit_test.h"

#define ITEMS 1000U

struct item {
    uint64_t key;
    unsigned number;
    struct map_link link;
};

static struct item *item_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct item, link);
}

static uint64_t hash_of(const struct map_link *link)
{
    return map_hash(item_at(link)->key);
}

static unsigned n_released;

static void release(struct map_link *link)
{
    free(item_at(link));
    n_released++;
}

static void add(struct map *map, uint64_t key, unsigned number)
{
    struct item *item = xcalloc(1, sizeof(*item));
    *item = (struct item){ .key = key, .number = number };
    map_add(map, &item->link, hash_of);
}

static struct item *find(const struct map *map, uint64_t key)
{
    const struct map_link *link = map_chain(map, map_hash(key));
    while (link != NULL && item_at(link)->key != key)
        link = link->next;
    return link != NULL ? item_at(link) : NULL;
}

TEST(each_item_is_in_the_chain_of_its_hash_until_it_is_removed)
{
    struct map map = { 0 };
    assert_null(find(&map, 1));
    for (unsigned i = 0; i < ITEMS; i++)
        add(&map, i, i);
    assert_int_equal(map.count, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(find(&map, i)->number, i);
    assert_null(find(&map, ITEMS));
    for (unsigned i = 0; i < ITEMS; i += 2) {
        struct item *item = find(&map, i);
        map_remove(&map, &item->link, hash_of);
        free(item);
    }
    assert_int_equal(map.count, ITEMS / 2);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(find(&map, i) != NULL, i % 2);
    n_released = 0;
    map_clear(&map, release);
    assert_int_equal(n_released, ITEMS / 2);
    assert_null(find(&map, 1));
}

/* Also after the table has grown several times. */
TEST(items_with_equal_hashes_come_the_last_one_first)
{
    struct map map = { 0 };
    for (unsigned i = 0; i < ITEMS; i++)
        add(&map, i % 10, i);
    for (uint64_t key = 0; key < 10; key++) {
        unsigned count = 0, last = ITEMS;
        for (const struct map_link *link = map_chain(&map, map_hash(key)); link != NULL; link = link->next) {
            const struct item *item = item_at(link);
            if (item->key != key)
                continue;
            assert_true(item->number < last);
            last = item->number;
            count++;
        }
        assert_int_equal(count, ITEMS / 10);
    }
    map_clear(&map, release);
}

TEST(a_loop_along_all_chains_sees_each_item_once)
{
    struct map map = { 0 };
    static bool seen[ITEMS];
    unsigned count = 0;
    for (unsigned i = 0; i < ITEMS; i++)
        add(&map, i, i);
    for (size_t i = 0; i < map.n_buckets; i++) {
        for (const struct map_link *link = map.buckets[i]; link != NULL; link = link->next) {
            assert_false(seen[item_at(link)->number]);
            seen[item_at(link)->number] = true;
            count++;
        }
    }
    assert_int_equal(count, ITEMS);
    map_clear(&map, release);
}

TEST(a_map_that_is_cleared_without_a_function_leaves_its_items)
{
    struct map map = { 0 };
    struct item item = { .key = 7 };
    map_add(&map, &item.link, hash_of);
    map_clear(&map, NULL);
    assert_int_equal(map.count, 0);
    assert_int_equal(item.key, 7);
}

TEST(hashes_of_numbers_fill_a_table_evenly)
{
    static unsigned buckets[256];
    for (uint64_t i = 0; i < 256 * 16; i++)
        buckets[map_hash(i << 32) % 256]++;
    for (unsigned i = 0; i < 256; i++)
        assert_in_range(buckets[i], 1, 48);
    assert_true(map_hash(1) != map_hash(2));
    assert_true(map_hash_add(map_hash(1), 2) != map_hash_add(map_hash(2), 1));
}
