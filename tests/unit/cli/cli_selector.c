/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "cli/selector.h"

static struct selector parse(const char *word)
{
    struct selector selector = { 0 };
    assert_int_equal(selector_parse(word, &selector, NULL), 0);
    return selector;
}

static void a_number_is_a_job(void **state)
{
    (void)state;
    assert_int_equal(parse("42").kind, SELECT_ID);
    assert_int_equal(parse("42").first, 42);
    assert_int_equal(parse("42-42").kind, SELECT_ID);
}

static void a_range_has_both_ends(void **state)
{
    (void)state;
    assert_int_equal(parse("42-45").kind, SELECT_RANGE);
    assert_int_equal(parse("42-45").first, 42);
    assert_int_equal(parse("42-45").last, 45);
}

static void everything_else_is_a_name(void **state)
{
    static const char *const words[] = { "train", "42x", "-", "0", "4.2", "1-", "99999999999999999999",
        "1-x" };
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_int_equal(parse(words[i]).kind, SELECT_NAME);
        assert_string_equal(parse(words[i]).name, words[i]);
    }
    assert_int_equal(parse("@").kind, SELECT_NEWEST);
}

static void senseless_words_are_refused(void **state)
{
    struct selector selector;
    struct error err = { 0 };
    (void)state;
    assert_int_equal(selector_parse("", &selector, &err), -EINVAL);
    assert_int_equal(selector_parse("5-4", &selector, &err), -EINVAL);
    assert_int_equal(selector_parse("1-10001", &selector, &err), -E2BIG);
}

static void numbers_need_no_server(void **state)
{
    struct client client = { .asked_path = "/nonexistent" };
    struct job_ids ids = { 0 };
    _cleanup_strings_ struct strings words = { 0 };
    (void)state;
    strings_add(&words, "7");
    strings_add(&words, "5");
    strings_add(&words, "7");
    assert_int_equal(selector_resolve(&client, 3, words.items, &ids, NULL), 0);
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], 7);
    assert_int_equal(ids.ids[1], 5);
    job_ids_clear(&ids);
}

static void no_word_at_all_is_refused(void **state)
{
    struct client client = { 0 };
    struct job_ids ids = { 0 };
    struct error err = { 0 };
    (void)state;
    assert_int_equal(selector_resolve(&client, 0, NULL, &ids, &err), -EINVAL);
    assert_string_equal(err.message, "no job given");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_a_job),
        cmocka_unit_test(a_range_has_both_ends),
        cmocka_unit_test(everything_else_is_a_name),
        cmocka_unit_test(senseless_words_are_refused),
        cmocka_unit_test(numbers_need_no_server),
        cmocka_unit_test(no_word_at_all_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
