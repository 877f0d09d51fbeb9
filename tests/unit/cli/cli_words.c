/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/term/words.h"
#include "unit_test.h"

/* The words joined with | between them. */
static char *joined(const char *line)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_buffer_ struct buffer out = { 0 };
    assert_int_equal(words_split(line, &words, NULL), 0);
    for (size_t i = 0; i < words.count; i++)
        buffer_printf(&out, "%s%s", i > 0 ? "|" : "", words.items[i]);
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

TEST(words_are_those_of_a_shell)
{
    static const struct {
        const char *line, *words;
    } rows[] = {
        { "", "" },
        { "  -g 2\t-t  4h ", "-g|2|-t|4h" },
        { "-J 'my job' -e \"A=b c\"", "-J|my job|-e|A=b c" },
        { "-e A=\"x y\"z", "-e|A=x yz" },
        { "a\\ b \\'", "a b|'" },
        { "\"\\\"q\\\" \\n\"", "\"q\" \\n" },
        { "'' x", "|x" },
        { "-g 2 # two of them", "-g|2" },
        { "a#b", "a#b" },
        { "$'it\\'s' x", "it's|x" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *words = joined(rows[i].line);
        assert_string_equal(words, rows[i].words);
    }
}

TEST(a_quote_that_is_not_closed_is_refused)
{
    static const char *const lines[] = { "'", "a \"b", "\"a\\\"", "$'a\\'" };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        _cleanup_strings_ struct strings words = { 0 };
        struct error err = { 0 };
        assert_int_equal(words_split(lines[i], &words, &err), -EINVAL);
        assert_string_equal(err.message, "a quote is not closed");
    }
}

TEST(names_of_variables)
{
    assert_true(words_is_variable("lr"));
    assert_true(words_is_variable("_A9"));
    assert_false(words_is_variable(""));
    assert_false(words_is_variable("9a"));
    assert_false(words_is_variable("a-b"));
}
