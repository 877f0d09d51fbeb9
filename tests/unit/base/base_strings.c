/* SPDX-License-Identifier: MIT */
/* Lists of strings and the text helpers: environments, shell quoting, escaping, the nearest word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/strings.h"
#include "unit_test.h"

TEST(a_list_is_an_argv_at_every_length)
{
    _cleanup_strings_ struct strings list = { 0 };
    for (size_t i = 0; i < 200; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%zu", i);
        strings_add(&list, text);
        assert_int_equal(list.count, i + 1);
        assert_null(list.items[list.count]);
    }
    assert_string_equal(list.items[199], "199");
}

TEST(an_environment_keeps_one_entry_a_name)
{
    _cleanup_strings_ struct strings env = { 0 };
    strings_set_env(&env, "A", "1");
    strings_set_env(&env, "AB", "2");
    strings_set_env(&env, "A", "3");
    assert_int_equal(env.count, 2);
    assert_string_equal(env.items[0], "A=3");
    assert_string_equal(strings_get_env(&env, "A"), "3");
    assert_string_equal(strings_get_env(&env, "AB"), "2");
    assert_null(strings_get_env(&env, "B"));
}

TEST(merged_environments_are_those_set_one_by_one)
{
    static const char *const texts[] = { "A=1", "AB=2", "A=", "B=x=y", "nothing", "=", "A=3", "C=", "=z" };
    size_t n = sizeof(texts) / sizeof(texts[0]);
    for (unsigned seed = 0; seed < 2000; seed++) {
        _cleanup_strings_ struct strings merged = { 0 }, more = { 0 }, expected = { 0 };
        for (unsigned i = 0, bits = seed * 2654435761U; i < 8; i++, bits /= 9)
            strings_add(i < seed % 6 ? &merged : &more, texts[bits % n]);
        strings_copy(&expected, &merged);
        for (size_t i = 0; i < more.count; i++) {
            const char *equals = strchr(more.items[i], '=');
            _cleanup_free_ char *name = xstrndup(more.items[i], strcspn(more.items[i], "="));
            if (equals != NULL)
                strings_set_env(&expected, name, equals + 1);
        }
        strings_merge_env(&merged, &more);
        assert_int_equal(merged.count, expected.count);
        for (size_t i = 0; i < merged.count; i++)
            assert_string_equal(merged.items[i], expected.items[i]);
    }
}

/* One after the other took some seconds. */
TEST(merging_large_environments_takes_no_square_of_time)
{
    _cleanup_strings_ struct strings env = { 0 }, more = { 0 };
    for (unsigned i = 0; i < 60000; i++) {
        strings_take(&env, xasprintf("a%u=", i));
        strings_take(&more, xasprintf("b%u=", i));
    }
    clock_t began = clock();
    strings_merge_env(&env, &more);
    assert_int_equal(env.count, 120000);
    assert_true(clock() - began < 2 * CLOCKS_PER_SEC);
}

TEST(a_copy_of_a_list_is_deep_and_replaces)
{
    _cleanup_strings_ struct strings from = { 0 }, to = { 0 };
    strings_add(&from, "x");
    strings_add(&to, "old");
    strings_copy(&to, &from);
    from.items[0][0] = 'y';
    assert_int_equal(to.count, 1);
    assert_string_equal(to.items[0], "x");
}

TEST(null_equals_only_null)
{
    assert_true(text_equal(NULL, NULL));
    assert_false(text_equal(NULL, ""));
    assert_false(text_equal("a", NULL));
    assert_true(text_equal("a", "a"));
}

TEST(a_quoted_command_survives_a_shell)
{
    static const char *const words[] = { "printf", "%s\\n", "a b", "it's", "$HOME", "", "`id`", "-x", "é" };
    _cleanup_strings_ struct strings command = { 0 };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        strings_add(&command, words[i]);
    _cleanup_free_ char *line = text_quote_command(&command);
    FILE *out = popen(line, "r");
    assert_non_null(out);
    char text[200];
    size_t n = fread(text, 1, sizeof(text) - 1, out);
    text[n] = '\0';
    assert_int_equal(pclose(out), 0);
    assert_string_equal(text, "a b\nit's\n$HOME\n\n`id`\n-x\né\n");
}

TEST(plain_words_are_not_quoted)
{
    _cleanup_strings_ struct strings command = { 0 };
    strings_add(&command, "python3");
    strings_add(&command, "--lr=1e-3");
    strings_add(&command, "./train.py");
    _cleanup_free_ char *line = text_quote_command(&command);
    assert_string_equal(line, "python3 --lr=1e-3 ./train.py");
}

TEST(nothing_that_drives_a_terminal_passes)
{
    const struct {
        const char *text, *escaped;
    } cases[] = { { "plain é €", "plain é €" }, { "a\nb", "a\\x0ab" }, { "\x1b[31m", "\\x1b[31m" },
        { "\xc2\x9b", "\\xc2\\x9b" },
        { "a\xe2\x80\xae"
          "b",
            "a\\xe2\\x80\\xae"
            "b" },
        { "\xe2\x80\xa8", "\\xe2\\x80\\xa8" }, { "\xe2\x81\xa6", "\\xe2\\x81\\xa6" },
        { "\xef\xbb\xbf", "\\xef\\xbb\\xbf" }, { "\xd8\x9c", "\\xd8\\x9c" },
        { "\xe2\x80\x93", "\xe2\x80\x93" }, { "\x7f", "\\x7f" }, { "\xff", "\\xff" },
        { "\xc0\xaf", "\\xc0\\xaf" }, { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
        { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *escaped = text_escape(cases[i].text, 100);
        assert_string_equal(escaped, cases[i].escaped);
    }
}

TEST(a_cut_is_shown_and_never_splits_a_character)
{
    _cleanup_free_ char *cut = text_escape("abcdef", 3);
    assert_string_equal(cut, "abc…");
    _cleanup_free_ char *whole = text_escape("abc", 3);
    assert_string_equal(whole, "abc");
    _cleanup_free_ char *split = text_escape("ab€", 3);
    assert_string_equal(split, "ab…");
}

/* Everything that grows when it is escaped, at every length around the limit. */
TEST(a_text_made_to_fit_does_so_with_its_escapes)
{
    static const char *const units[] = { "a", "\x01", "\xff", "\xc2\x9b", "é", "€", "😀", "a\x01€" };
    for (size_t unit = 0; unit < sizeof(units) / sizeof(units[0]); unit++) {
        for (size_t size = 3; size < 40; size++) {
            char text[256] = "";
            for (size_t n = 0; n < 45; n++, strcat(text, units[unit])) {
                _cleanup_free_ char *fit = text_escape_fit(text, size), *whole = text_escape(text, 256);
                assert_true(strlen(fit) <= size);
                if (strlen(whole) <= size)
                    assert_string_equal(fit, whole);
                else
                    assert_string_equal(fit + strlen(fit) - strlen("…"), "…");
                _cleanup_free_ char *again = text_escape(fit, 256); // no character and no escape was split
                assert_string_equal(again, fit);
            }
        }
    }
}

TEST(slips_of_the_fingers_find_the_word)
{
    static const char *const words[] = { "run", "submit", "ps", "show", "logs", "at", "wait", "cancel",
        "gpus", NULL };
    const struct {
        const char *typed, *nearest;
    } cases[] = { { "submti", "submit" }, { "sbmit", "submit" }, { "log", "logs" }, { "cancle", "cancel" },
        { "can", "cancel" }, { "gpu", "gpus" }, { "rum", "run" }, { "wat", "wait" }, { "atr", "at" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(text_nearest(cases[i].typed, words), cases[i].nearest);
    assert_null(text_nearest("elephant", words));
    assert_null(text_nearest("a_word_of_more_than_forty_letters_is_no_slip_of_any", words));
}
