/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/term/escapes.h"
#include "unit_test.h"

/* The result must not depend on how the bytes were cut into pieces. */
static void check_with(void (*remove)(struct escapes *, const void *, size_t, struct buffer *),
    const char *text, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        struct escapes escapes = { 0 };
        _cleanup_buffer_ struct buffer out = { 0 };
        for (size_t at = 0; at < strlen(text); at += piece) {
            size_t rest = strlen(text) - at;
            remove(&escapes, text + at, rest < piece ? rest : piece, &out);
        }
        assert_string_equal(buffer_text(&out), expected);
    }
}

static void check(const char *text, const char *expected)
{
    check_with(escapes_strip, text, expected);
}

static void check_screen(const char *text, const char *expected)
{
    check_with(escapes_confine, text, expected);
}

TEST(controls_that_are_characters_go)
{
    check("a\xc2\x9b"
          "31mb\xc2\x85"
          "c",
        "a31mbc");
    check("a\x9b"
          "31mb",
        "a31mb");
    check_screen("a\xc2\x9d"
                 "0;x\xc2\x9c"
                 "b",
        "a0;xb");
}

TEST(characters_that_reorder_others_go)
{
    check("a\xe2\x80\xae"
          "b\xe2\x81\xa6"
          "c\xd8\x9c"
          "d",
        "abcd");
    check("\xe2\x80\033[m\xae"
          "b",
        "b");
    check("\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(other_encodings_stay_readable)
{
    check("caf\xe9 \xfc\xe9n\xf6 x", "caf\xe9 \xfc\xe9n\xf6 x");
}

TEST(what_draws_stays_on_a_screen)
{
    static const char *const kept[] = { "\033[1;31mred\033[0m", "\033[2J\033[10;5Hx", "\033[?1049h\033[?25l",
        "\033(0q\033(B", "\0337x\0338", "\033[4 q", "\033[1;20r\033M", "a\bb\a\r\n" };
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        check_screen(kept[i], kept[i]);
}

TEST(what_makes_a_terminal_answer_or_act_goes)
{
    static const char *const removed[] = { "\033[c", "\033[>c", "\033[6n", "\033[?6n", "\033[21t", "\033[5i",
        "\033[?1$p", "\033[>q", "\033[?u", "\033Z", "\005", "\033]0;title\007", "\033]52;c;Zm9v\033\\",
        "\033P$qm\033\\", "\033_Gi=1;AAAA\033\\", "\033^x\033\\", "\033c", "\033[1\nc", "\033[ $c" };
    for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
        check_screen(removed[i], "");
}

TEST(a_sequence_that_is_too_long_goes)
{
    char text[400] = "\033[";
    memset(text + 2, '1', 300);
    memcpy(text + 302, "mx", 3);
    check_screen(text, "x");
}

TEST(plain_text_stays)
{
    check("a\tb\n\xc3\xa9 10%\r20%\n", "a\tb\n\xc3\xa9 10%\r20%\n");
}

TEST(lines_of_a_terminal_end_as_all_do)
{
    check("one\r\ntwo\r\r\nthree\n", "one\ntwo\r\nthree\n");
}

TEST(colours_and_movements_go)
{
    check("\033[1;31mred\033[0m \033[2Kx", "red x");
}

TEST(titles_and_other_strings_go)
{
    check("a\033]0;title\007b\033]52;c;Zm9v\033\\c\033Pq#\033\\d", "abcd");
}

TEST(short_sequences_and_controls_go)
{
    check("a\0337b\033(Bc\bd\x7f", "abcd");
}

TEST(a_broken_string_ends_at_the_next_sequence)
{
    check("\033]0;x\033[1my", "y");
}
