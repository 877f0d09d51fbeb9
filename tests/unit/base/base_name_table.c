/* SPDX-License-Identifier: MIT */
#include "base/containers/name_table.h"
#include "unit_test.h"

#include <stdio.h>

#define NAMES 1000U

TEST(every_name_is_found_at_its_position_and_no_other_is)
{
    static char names[NAMES][16];
    struct name_table table = { 0 };
    assert_int_equal(name_table_find(&table, "n0"), NAME_NONE);
    for (size_t i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%zu", i);
        assert_int_equal(name_table_find(&table, names[i]), NAME_NONE);
        name_table_add(&table, names[i], i);
    }
    for (size_t i = 0; i < NAMES; i++) {
        char copy[16];
        (void)snprintf(copy, sizeof(copy), "n%zu", i);
        assert_int_equal(name_table_find(&table, copy), i);
    }
    assert_int_equal(name_table_find(&table, "n1000"), NAME_NONE);
    assert_int_equal(name_table_find(&table, ""), NAME_NONE);
    assert_int_equal(name_table_find(&table, NULL), NAME_NONE);
    name_table_clear(&table);
    assert_int_equal(name_table_find(&table, "n0"), NAME_NONE);
}
