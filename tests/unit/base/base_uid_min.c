/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/uid_min.h"
#include "unit_test.h"

TEST(the_number_of_login_defs_counts)
{
    assert_int_equal(uid_min_of("# UID_MIN 7\nUID_MAX\t\t60000\n  UID_MIN\t\t  500 # old\n"), 500);
    assert_int_equal(uid_min_of("UID_MIN 1000"), 1000);
}

TEST(without_a_number_it_is_the_usual_one)
{
    static const char *const texts[] = { "", "\n", "UID_MIN\n", "UID_MIN x\n",
        "SYS_UID_MIN 100\nUID_MINIMUM 3\n", "UID_MIN 99999999999999999999\n" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(uid_min_of(texts[i]), UID_MIN_USUAL);
}

TEST(a_value_is_a_number_or_auto)
{
    uint32_t uid = 7;
    struct error err = { 0 };
    assert_int_equal(uid_min_parse("100", "--min-uid", &uid, &err), 0);
    assert_int_equal(uid, 100);
    assert_int_equal(uid_min_parse("auto", "--min-uid", &uid, &err), 0);
    assert_int_equal(uid_min_parse("0", "--min-uid", &uid, &err), 0);
    assert_int_equal(uid, 0);
    assert_int_equal(uid_min_parse("-1", "--min-uid", &uid, &err), -ERANGE);
    assert_true(uid_min_parse("none", "--min-uid", &uid, &err) < 0);
    assert_int_equal(uid, 0);
}
