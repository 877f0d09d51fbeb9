/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "job/xid.h"

static void each_number_has_the_class_that_its_remedy_asks_for(void **state)
{
    const struct {
        uint32_t number;
        enum xid_class class;
    } rows[] = {
        { 13, XID_APPLICATION },
        { 31, XID_APPLICATION },
        { 43, XID_APPLICATION },
        { 45, XID_APPLICATION },
        { 48, XID_RESET },
        { 63, XID_INFO },
        { 64, XID_DEVICE },
        { 74, XID_RESET },
        { 79, XID_DEVICE },
        { 94, XID_CONTAINED },
        { 95, XID_RESET },
        { 119, XID_RESET },
        { 120, XID_RESET },
        { 154, XID_RESET },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(xid_class_of(rows[i].number), rows[i].class);
        assert_non_null(xid_words(rows[i].number));
    }
}

static void an_unknown_number_has_words_and_no_consequence(void **state)
{
    const uint32_t numbers[] = { 0, 7, 999, UINT32_MAX };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_int_equal(xid_class_of(numbers[i]), XID_INFO);
        assert_string_equal(xid_words(numbers[i]), "an error that mgpu does not know");
    }
}

static void every_class_has_a_name(void **state)
{
    for (unsigned class = 0; class < XID_CLASSES; class ++)
        assert_string_not_equal(xid_class_name((enum xid_class) class), "invalid");
    assert_string_equal(xid_class_name(XID_CLASSES), "invalid");
    assert_string_equal(xid_class_name(XID_CONTAINED), "contained");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_has_the_class_that_its_remedy_asks_for),
        cmocka_unit_test(an_unknown_number_has_words_and_no_consequence),
        cmocka_unit_test(every_class_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
