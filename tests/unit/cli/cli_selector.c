/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "cli/options/selector.h"
#include "unit_test.h"

static struct selector parse(const char *word)
{
    struct selector selector = { 0 };
    assert_int_equal(selector_parse(word, &selector, NULL), 0);
    return selector;
}

TEST(a_number_is_a_job)
{
    assert_int_equal(parse("42").kind, SELECT_ID);
    assert_int_equal(parse("42").first, 42);
    assert_int_equal(parse("42-42").kind, SELECT_ID);
}

TEST(a_range_has_both_ends)
{
    assert_int_equal(parse("42-45").kind, SELECT_RANGE);
    assert_int_equal(parse("42-45").first, 42);
    assert_int_equal(parse("42-45").last, 45);
}

TEST(an_element_belongs_to_its_array)
{
    assert_int_equal(parse("42.3").kind, SELECT_ELEMENTS);
    assert_int_equal(parse("42.3").array, 42);
    assert_int_equal(parse("42.3").first, 3);
    assert_int_equal(parse("42.3").last, 3);
    assert_int_equal(parse("42.0-9").first, 0);
    assert_int_equal(parse("42.0-9").last, 9);
}

TEST(everything_else_is_a_name)
{
    static const char *const words[] = { "train", "42x", "-", "0", "0.1", "4.", "4.x", "4.2-", ".3", "1-",
        "99999999999999999999", "1-x" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_int_equal(parse(words[i]).kind, SELECT_NAME);
        assert_string_equal(parse(words[i]).name, words[i]);
    }
    assert_int_equal(parse("@").kind, SELECT_NEWEST);
}

TEST(senseless_words_are_refused)
{
    struct selector selector;
    struct error err = { 0 };
    assert_int_equal(selector_parse("", &selector, &err), -EINVAL);
    assert_int_equal(selector_parse("5-4", &selector, &err), -EINVAL);
    assert_int_equal(selector_parse("1-10001", &selector, &err), -E2BIG);
    assert_int_equal(selector_parse("1.5-4", &selector, &err), -EINVAL);
    assert_int_equal(selector_parse("1.0-10000", &selector, &err), -E2BIG);
}

TEST(numbers_need_no_server)
{
    struct client client = { .asked_path = "/nonexistent" };
    _cleanup_strings_ struct strings words = { 0 }, jobs = { 0 };
    strings_add(&words, "7");
    strings_add(&words, "5.1-2");
    strings_add(&words, "7");
    assert_int_equal(selector_resolve_by(&client, JOB_NAME_LIVE, false, 3, words.items, &jobs, NULL), 0);
    assert_int_equal(jobs.count, 3);
    assert_string_equal(jobs.items[0], "7");
    assert_string_equal(jobs.items[1], "5.1");
    assert_string_equal(jobs.items[2], "5.2");
}

TEST(no_word_at_all_is_refused)
{
    struct client client = { 0 };
    struct strings jobs = { 0 };
    struct error err = { 0 };
    assert_int_equal(selector_resolve_by(&client, JOB_NAME_LIVE, false, 0, NULL, &jobs, &err), -EINVAL);
    assert_string_equal(err.message, "no job given");
}
