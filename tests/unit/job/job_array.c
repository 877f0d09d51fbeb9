/* SPDX-License-Identifier: MIT */
/* Indexes of arrays: valid ones, invalid ones, and the rest after elements are taken out. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "job/array.h"
#include "unit_test.h"

TEST(ranges_steps_and_a_limit_are_read)
{
    _cleanup_(array_clear) struct array array = { 0 };
    assert_int_equal(parse_array("0-9:3,12,20-21%8", &array, NULL), 0);
    assert_int_equal(array.count, 3);
    assert_int_equal(array.ranges[0].last, 9);
    assert_int_equal(array.ranges[0].step, 3);
    assert_int_equal(array.ranges[1].first, 12);
    assert_int_equal(array.ranges[1].last, 12);
    assert_int_equal(array.limit, 8);
    assert_int_equal(array_size(&array), 4 + 1 + 2);
}

TEST(a_range_ends_with_its_last_element)
{
    _cleanup_(array_clear) struct array array = { 0 };
    assert_int_equal(parse_array("1-10:4", &array, NULL), 0);
    assert_int_equal(array.ranges[0].last, 9);
    assert_int_equal(array.limit, 0);
}

TEST(the_largest_array_is_accepted)
{
    _cleanup_(array_clear) struct array array = { 0 };
    assert_int_equal(parse_array("0-99999", &array, NULL), 0);
    assert_int_equal(array_size(&array), ARRAY_MAX);
    array_clear(&array);
    assert_int_equal(parse_array("1000000000", &array, NULL), 0);
}

TEST(what_is_no_array_is_refused_with_its_value)
{
    static const struct {
        const char *text;
        int code;
        const char *word;
    } rows[] = {
        { "", -EINVAL, "''" },
        { "a", -EINVAL, "'a'" },
        { "-1", -EINVAL, "'-1'" },
        { "1,", -EINVAL, "'1,'" },
        { ",1", -EINVAL, "',1'" },
        { "1-", -EINVAL, "'1-'" },
        { "1-2:", -EINVAL, "'1-2:'" },
        { "1:2", -EINVAL, "'1:2'" },
        { "1-2-3", -EINVAL, "'1-2-3'" },
        { "1 ", -EINVAL, "'1 '" },
        { "0-3%", -EINVAL, "'0-3%'" },
        { "0-3%2,5", -EINVAL, "'0-3%2,5'" },
        { "99999999999", -EINVAL, "99999999999" },
        { "0-3%0", -ERANGE, "0 at a time" },
        { "0-3%100001", -ERANGE, "100001" },
        { "0-9:0", -ERANGE, "step 0" },
        { "9-3", -EINVAL, "9-3 is descending" },
        { "3,3", -EINVAL, "3 comes after 3" },
        { "0-9,5", -EINVAL, "5 comes after 9" },
        { "5,0-3", -EINVAL, "0 comes after 5" },
        { "1000000001", -ERANGE, "1000000001" },
        { "0-100000", -E2BIG, "100000 elements" },
        { "0-99999,100001", -E2BIG, "100000 elements" },
        { "0-1000000000", -E2BIG, "100000 elements" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct array array = { .limit = 77 };
        struct error err = { 0 };
        assert_int_equal(parse_array(rows[i].text, &array, &err), rows[i].code);
        if (strstr(err.message, rows[i].word) == NULL)
            fail_msg("'%s': %s", rows[i].text, err.message);
        assert_null(array.ranges);
    }
}

TEST(an_element_is_taken_out_wherever_it_is)
{
    static const struct {
        const char *before;
        uint32_t index;
        const char *after; // NULL: it is not in there
    } rows[] = {
        { "0-99", 0, "1-99" },
        { "0-99", 99, "0-98" },
        { "0-9", 5, "0-4,6-9" },
        { "0-9%4", 0, "1-9" },
        { "0-8:2", 0, "2-8:2" },
        { "0-8:2", 4, "0-2:2,6-8:2" },
        { "0-4:4", 0, "4" },
        { "0-8:2", 3, NULL },
        { "7", 7, "" },
        { "1,3,5", 3, "1,5" },
        { "1,3", 2, NULL },
        { "", 0, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *left = array_without(rows[i].before, rows[i].index);
        if (rows[i].after == NULL)
            assert_null(left);
        else
            assert_string_equal(left, rows[i].after);
    }
}

TEST(taking_the_first_again_and_again_gives_every_index_in_order)
{
    char *left = array_indexes("2-6:2,9,11-12%1");
    static const uint32_t wanted[] = { 2, 4, 6, 9, 11, 12 };
    uint32_t index = 0;
    size_t count = 0;
    for (; array_first(left, &index); count++) {
        assert_int_equal(index, wanted[count]);
        char *rest = array_without(left, index);
        free(left);
        left = rest;
    }
    assert_int_equal(count, 6);
    assert_string_equal(left, "");
    free(left);
}

TEST(indexes_are_shown_without_the_limit)
{
    _cleanup_free_ char *indexes = array_indexes("0-10:4%2");
    assert_string_equal(indexes, "0-8:4");
    assert_null(array_indexes("nothing"));
}
