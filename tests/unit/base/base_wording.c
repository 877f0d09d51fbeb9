/* SPDX-License-Identifier: MIT */
/* Sentences in the words of the command that was typed, also when another program says them. */
#include <stdlib.h>

#include "base/buffer.h"
#include "base/wording.h"
#include "unit_test.h"

static const struct wording words[] = {
    { "--listen 0.0.0.0:PORT) or none (--listen none", "--port PORT" },
    { "--listen", "--host" },
    { "-g", "--gpus" },
    { 0 },
};

static void expect(const struct wording *wording, const char *text, const char *expected)
{
    _cleanup_free_ char *said = wording_apply(wording, text);
    assert_string_equal(said, expected);
}

TEST(a_name_is_replaced_where_it_is_a_word_of_its_own)
{
    expect(words, "--listen: use `-g` and -gx, (-g), not --listening",
        "--host: use `--gpus` and -gx, (--gpus), not --listening");
    expect(words, "use another (--listen 0.0.0.0:PORT) or none (--listen none)", "use another (--port PORT)");
    expect(NULL, "-g", "-g");
    expect(words, "", "");
}

TEST(names_that_are_handed_over_arrive_once)
{
    wording_hand_over(words);
    wording_hand_over((const struct wording[]){ { "-m", "--mem" }, { 0 } });
    _cleanup_free_ struct wording *taken = wording_take_over();
    for (size_t i = 0; words[i].from != NULL; i++) {
        assert_string_equal(taken[i].from, words[i].from);
        assert_string_equal(taken[i].to, words[i].to);
    }
    expect(taken, "-m", "--mem");
    assert_null(getenv("MGPU_WORDING"));
    _cleanup_free_ struct wording *again = wording_take_over();
    expect(again, "--listen", "--listen");
}

/* Anybody may write the variable. */
TEST(what_is_no_pair_ends_the_names)
{
    _cleanup_buffer_ struct buffer many = { 0 };
    for (int i = 0; i < 1000; i++)
        buffer_printf(&many, "-%d\tx\n", i);
    const char *const texts[] = { "-g", "-g\n", "-g\t--gpus", "\n\t\n", "\t--gpus\n", "-h\thelp\n-g",
        buffer_text(&many) };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)setenv("MGPU_WORDING", texts[i], 1);
        _cleanup_free_ struct wording *taken = wording_take_over();
        expect(taken, "-g -999", "-g -999");
    }
}
