/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>

#include "job/alias.h"
#include "unit_test.h"

TEST(each_number_has_its_own)
{
    for (uint64_t id = 0; id < 6ULL << 28; id += id < 5000 ? 1 : 99991) {
        char alias[ALIAS_SIZE];
        uint64_t back = UINT64_MAX;
        assert_true(job_alias(id, alias));
        assert_int_equal(strlen(alias), 8);
        assert_true(isupper((unsigned char)alias[0]));
        assert_true(job_alias_parse(alias, &back));
        assert_int_equal(back, id);
    }
}

TEST(either_case_is_read)
{
    char alias[ALIAS_SIZE];
    uint64_t back = 0;
    assert_true(job_alias(42, alias));
    for (char *p = alias; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    assert_true(job_alias_parse(alias, &back));
    assert_int_equal(back, 42);
}

TEST(other_words_are_none)
{
    static const char *const words[] = { "", "42", "12345678", "9FFFFFFF", "F68FAFE", "F68FAFECA", "F68FAFEG",
        "@", "train", "F68F AFE" };
    char alias[ALIAS_SIZE] = "x";
    uint64_t id = 7;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_false(job_alias_parse(words[i], &id));
    assert_int_equal(id, 7);
    assert_false(job_alias(6ULL << 28, alias));
    assert_string_equal(alias, "");
}
