/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <string.h>

#include "base/memory.h"
#include "cli/top/canvas.h"
#include "unit_test.h"

static void check(struct canvas *canvas, const char *expected)
{
    _cleanup_free_ char *text = canvas_text(canvas);
    assert_string_equal(text, expected);
    canvas_clear(canvas);
}

static struct canvas make(int rows, int columns)
{
    struct canvas canvas = { .is_utf8 = true };
    canvas_resize(&canvas, rows, columns);
    return canvas;
}

TEST(text_is_cut_with_an_ellipsis_and_blanks_at_the_end_go)
{
    struct canvas canvas = make(2, 10);
    assert_int_equal(canvas_put(&canvas, 0, 0, 4, LOOK_PLAIN, "abcdef"), 4);
    assert_int_equal(canvas_put(&canvas, 1, 8, 5, LOOK_PLAIN, "xyz"), 2);
    check(&canvas, "abc…\n        x…\n");
}

TEST(wide_characters_take_two_columns_and_are_never_halved)
{
    struct canvas canvas = make(1, 10);
    assert_int_equal(canvas_width("日本語"), 6);
    assert_int_equal(canvas_put(&canvas, 0, 0, 4, LOOK_PLAIN, "日本語"), 3);
    check(&canvas, "日…\n");
}

TEST(a_combining_mark_stays_with_its_character)
{
    struct canvas canvas = make(1, 4);
    assert_int_equal(canvas_put(&canvas, 0, 0, 4, LOOK_PLAIN, "e\xcc\x81x"), 2);
    check(&canvas, "e\xcc\x81x\n");
}

/* Escape, a bad byte, an override of the direction of text, a C1 control. */
TEST(nothing_that_moves_the_cursor_gets_onto_the_canvas)
{
    struct canvas canvas = make(1, 20);
    (void)canvas_put(&canvas, 0, 0, 20, LOOK_PLAIN,
        "a\033[2Jb\xff"
        "c\xe2\x80\xae"
        "d\xc2\x9b"
        "e\n");
    check(&canvas, "a?[2Jb?c?d?e?\n");
}

TEST(without_utf8_only_ascii_is_shown_in_the_same_places)
{
    struct canvas canvas = make(3, 8);
    const struct rect area = { 0, 0, 3, 8 };
    canvas.is_utf8 = false;
    canvas_box(&canvas, &area, LOOK_BORDER, "é日", NULL);
    (void)canvas_put(&canvas, 1, 1, 6, LOOK_PLAIN, "●×⚠ abcdef");
    check(&canvas, "+??\?---+\n|*x! a~|\n+------+\n");
}

TEST(a_box_has_its_words_in_the_upper_edge)
{
    struct canvas canvas = make(3, 14);
    const struct rect area = { 0, 0, 3, 14 };
    canvas_box(&canvas, &area, LOOK_BORDER, "Jobs", "[a]");
    struct rect inside = rect_inside(&area);
    assert_int_equal(inside.y, 1);
    assert_int_equal(inside.width, 12);
    check(&canvas, "┌Jobs─────[a]┐\n│            │\n└────────────┘\n");
}

TEST(what_lies_outside_is_not_drawn)
{
    struct canvas canvas = make(2, 4);
    const struct rect area = { -1, 2, 9, 9 };
    canvas_fill(&canvas, &area, LOOK_PLAIN, L'x');
    assert_int_equal(canvas_put(&canvas, 7, 0, 4, LOOK_PLAIN, "far"), 3);
    assert_int_equal(canvas_put(&canvas, 0, 6, 4, LOOK_PLAIN, "far"), 0);
    check(&canvas, "  xx\n  xx\n");
}

TEST(what_covers_half_of_a_wide_character_takes_all_of_it_away)
{
    struct canvas canvas = make(4, 6);
    for (int y = 0; y < 4; y++)
        (void)canvas_put(&canvas, y, 0, 6, LOOK_PLAIN, "日本語");
    const struct rect column = { 0, 3, 1, 1 };
    canvas_fill(&canvas, &column, LOOK_PLAIN, L'|');
    (void)canvas_put(&canvas, 1, 2, 1, LOOK_PLAIN, "x");
    (void)canvas_put(&canvas, 2, 1, 2, LOOK_PLAIN, "中");
    (void)canvas_put(&canvas, 3, 2, 2, LOOK_PLAIN, "中");
    check(&canvas, "日 |語\n日x 語\n 中 語\n日中語\n");
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return unit_tests_run(NULL, NULL);
}
