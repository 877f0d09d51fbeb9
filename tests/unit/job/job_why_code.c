/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "job/why_code.h"
#include "unit_test.h"

static void every_code_is_found_by_its_name_and_has_words(void **state)
{
    (void)state;
    for (unsigned code = 0; code < WHY_CODES; code++) {
        assert_int_equal(why_code_find(why_code_name((enum why_code)code)), code);
        assert_true(strlen(why_code_title((enum why_code)code)) > 0);
        assert_true(strlen(why_code_meaning((enum why_code)code)) > 0);
    }
}

static void a_code_of_a_newer_mgpud_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(why_code_find("moon_phase"), WHY_CODES);
    assert_int_equal(why_code_find(NULL), WHY_CODES);
    assert_string_equal(why_code_name(WHY_CODES), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_is_found_by_its_name_and_has_words),
        cmocka_unit_test(a_code_of_a_newer_mgpud_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
