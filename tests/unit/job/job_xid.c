/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "job/xid.h"
#include "unit_test.h"

TEST(each_number_has_the_class_that_its_remedy_asks_for)
{
    const struct {
        uint32_t number;
        enum xid_class class;
    } rows[] = {
        { 13, XID_APPLICATION },
        { 31, XID_APPLICATION },
        { 39, XID_APPLICATION },
        { 43, XID_APPLICATION },
        { 45, XID_APPLICATION },
        { 72, XID_APPLICATION },
        { 105, XID_APPLICATION },
        { 126, XID_APPLICATION },
        { 135, XID_APPLICATION },
        { 139, XID_APPLICATION },
        { 38, XID_INFO },
        { 63, XID_INFO },
        { 106, XID_INFO },
        { 144, XID_INFO },
        { 150, XID_INFO },
        { 154, XID_INFO },
        { 171, XID_INFO },
        { 94, XID_CONTAINED },
        { 48, XID_RESET },
        { 74, XID_RESET },
        { 95, XID_RESET },
        { 109, XID_RESET },
        { 119, XID_RESET },
        { 120, XID_RESET },
        { 136, XID_RESET },
        { 143, XID_RESET },
        { 155, XID_RESET },
        { 156, XID_RESET },
        { 158, XID_RESET },
        { 167, XID_RESET },
        { 64, XID_DEVICE },
        { 79, XID_DEVICE },
        { 151, XID_DEVICE },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(xid_class_of(rows[i].number), rows[i].class);
        assert_true(rows[i].number == 106 || strstr(xid_words(rows[i].number), "unknown error") == NULL);
    }
}

TEST(an_unknown_number_has_words_and_no_consequence)
{
    const uint32_t numbers[] = { 0, 7, 999, UINT32_MAX };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_int_equal(xid_class_of(numbers[i]), XID_INFO);
        assert_string_equal(xid_words(numbers[i]), "unknown error");
    }
}
