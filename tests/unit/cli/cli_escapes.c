/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/term/escapes.h"

/* The result must not depend on how the bytes were cut into pieces. */
static void check(const char *text, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        struct escapes escapes = { 0 };
        _cleanup_buffer_ struct buffer out = { 0 };
        for (size_t at = 0; at < strlen(text); at += piece) {
            size_t rest = strlen(text) - at;
            escapes_strip(&escapes, text + at, rest < piece ? rest : piece, &out);
        }
        assert_string_equal(buffer_text(&out), expected);
    }
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
        cmocka_unit_test(lines_of_a_terminal_end_as_all_do),
        cmocka_unit_test(colours_and_movements_go),
        cmocka_unit_test(titles_and_other_strings_go),
        cmocka_unit_test(short_sequences_and_controls_go),
        cmocka_unit_test(a_broken_string_ends_at_the_next_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
