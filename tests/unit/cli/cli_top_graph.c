/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/memory.h"
#include "cli/top/graph.h"
#include "unit_test.h"

static struct canvas canvas;

static void check(int rows, const char *expected)
{
    _cleanup_free_ char *text = canvas_text(&canvas);
    assert_string_equal(text, expected);
    canvas_clear(&canvas);
}

static void start(int rows, int columns)
{
    canvas = (struct canvas){ .is_utf8 = true };
    canvas_resize(&canvas, rows, columns);
}

TEST(a_bar_is_as_fine_as_its_characters)
{
    start(5, 6);
    graph_bar(&canvas, GRAPH_BLOCK, 0, 0, 4, LOOK_PLAIN, 0.28);
    graph_bar(&canvas, GRAPH_ASCII, 1, 0, 4, LOOK_PLAIN, 0.4);
    graph_bar(&canvas, GRAPH_BRAILLE, 2, 0, 4, LOOK_PLAIN, 0.4);
    graph_bar(&canvas, GRAPH_BLOCK, 3, 0, 4, LOOK_PLAIN, 7);
    graph_bar(&canvas, GRAPH_BLOCK, 4, 0, 4, LOOK_PLAIN, -1);
    check(5, "█▏\n#-\n⣿⡇\n████\n\n");
}

TEST(a_line_shows_the_newest_values_at_the_right_with_gaps)
{
    const double values[] = { 1, 1, 0.5, GRAPH_UNKNOWN, 0, 0.01, 1 };
    start(4, 8);
    graph_line(&canvas, GRAPH_BLOCK, 0, 0, 5, values, 7);
    graph_line(&canvas, GRAPH_ASCII, 1, 0, 5, values, 7);
    graph_line(&canvas, GRAPH_BRAILLE, 2, 0, 4, values, 7);
    graph_line(&canvas, GRAPH_BLOCK, 3, 0, 8, values, 2);
    check(4, "▄ ▁▁█\n. ..#\n⢸⣧⢀⣸\n      ██\n");
}

TEST(a_plot_uses_all_its_rows)
{
    const double values[] = { 0, 0.25, 0.5, 1 };
    const struct rect area = { 0, 0, 2, 4 };
    start(2, 4);
    graph_plot(&canvas, GRAPH_BLOCK, &area, LOOK_PLAIN, values, 4);
    check(2, "   █\n ▄██\n");
}

TEST(more_values_than_columns_are_averaged_and_unknown_ones_left_out)
{
    const double values[] = { 1, 0, 1, GRAPH_UNKNOWN, GRAPH_UNKNOWN, GRAPH_UNKNOWN };
    const struct rect area = { 0, 0, 1, 3 };
    start(1, 3);
    graph_plot(&canvas, GRAPH_BLOCK, &area, LOOK_PLAIN, values, 6);
    check(1, "▄█\n");
}

TEST(its_names_are_known_and_others_refused)
{
    enum graph graph = GRAPH_BLOCK;
    assert_int_equal(graph_parse("braille", &graph, NULL), 0);
    assert_int_equal(graph, GRAPH_BRAILLE);
    assert_int_equal(graph_parse("dots", &graph, NULL), -EINVAL);
    assert_string_equal(graph_name(GRAPH_ASCII), "ascii");
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return unit_tests_run(NULL, NULL);
}
