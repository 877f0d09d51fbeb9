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

static void controls_that_are_characters_go(void **state)
{
    (void)state;
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

static void characters_that_reorder_others_go(void **state)
{
    (void)state;
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

static void other_encodings_stay_readable(void **state)
{
    (void)state;
    check("caf\xe9 \xfc\xe9n\xf6 x", "caf\xe9 \xfc\xe9n\xf6 x");
}

static void what_draws_stays_on_a_screen(void **state)
{
    static const char *const kept[] = { "\033[1;31mred\033[0m", "\033[2J\033[10;5Hx", "\033[?1049h\033[?25l",
        "\033(0q\033(B", "\0337x\0338", "\033[4 q", "\033[1;20r\033M", "a\bb\a\r\n" };
    (void)state;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        check_screen(kept[i], kept[i]);
}

static void what_makes_a_terminal_answer_or_act_goes(void **state)
{
    static const char *const removed[] = { "\033[c", "\033[>c", "\033[6n", "\033[?6n", "\033[21t", "\033[5i",
        "\033[?1$p", "\033[>q", "\033[?u", "\033Z", "\005", "\033]0;title\007", "\033]52;c;Zm9v\033\\",
        "\033P$qm\033\\", "\033_Gi=1;AAAA\033\\", "\033^x\033\\", "\033c", "\033[1\nc", "\033[ $c" };
    (void)state;
    for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++)
        check_screen(removed[i], "");
}

static void a_sequence_that_is_too_long_goes(void **state)
{
    char text[400] = "\033[";
    (void)state;
    memset(text + 2, '1', 300);
    memcpy(text + 302, "mx", 3);
    check_screen(text, "x");
}

static void plain_text_stays(void **state)
{
    (void)state;
    check("a\tb\n\xc3\xa9 10%\r20%\n", "a\tb\n\xc3\xa9 10%\r20%\n");
}

static void lines_of_a_terminal_end_as_all_do(void **state)
{
    (void)state;
    check("one\r\ntwo\r\r\nthree\n", "one\ntwo\r\nthree\n");
}

static void colours_and_movements_go(void **state)
{
    (void)state;
    check("\033[1;31mred\033[0m \033[2Kx", "red x");
}

static void titles_and_other_strings_go(void **state)
{
    (void)state;
    check("a\033]0;title\007b\033]52;c;Zm9v\033\\c\033Pq#\033\\d", "abcd");
}

static void short_sequences_and_controls_go(void **state)
{
    (void)state;
    check("a\0337b\033(Bc\bd\x7f", "abcd");
}

static void a_broken_string_ends_at_the_next_sequence(void **state)
{
    (void)state;
    check("\033]0;x\033[1my", "y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(controls_that_are_characters_go),
        cmocka_unit_test(characters_that_reorder_others_go),
        cmocka_unit_test(other_encodings_stay_readable),
        cmocka_unit_test(what_draws_stays_on_a_screen),
        cmocka_unit_test(what_makes_a_terminal_answer_or_act_goes),
        cmocka_unit_test(a_sequence_that_is_too_long_goes),
        cmocka_unit_test(lines_of_a_terminal_end_as_all_do),
        cmocka_unit_test(colours_and_movements_go),
        cmocka_unit_test(titles_and_other_strings_go),
        cmocka_unit_test(short_sequences_and_controls_go),
        cmocka_unit_test(a_broken_string_ends_at_the_next_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
