/* SPDX-License-Identifier: MIT */
#include "cli/top/layout.h"
#include "unit_test.h"

static struct layout make(int columns, int rows, int gpus, enum panel focus)
{
    const struct layout_input input = {
        .rows = rows, .columns = columns, .gpus = gpus, .nodes = 3, .focus = focus
    };
    struct layout layout;
    layout_make(&input, &layout);
    return layout;
}

/* Header, panels and legend fill the screen without gap or overlap. */
static void check_stack(const struct layout *layout, int rows)
{
    int y = 1;
    for (int i = 0; i < PANELS; i++) {
        assert_int_equal(layout->panels[i].y, y);
        assert_true(layout->panels[i].height >= 3);
        y += layout->panels[i].height;
    }
    assert_int_equal(y, rows - 1);
    assert_int_equal(layout->legend.y, rows - 1);
}

TEST(at_80x24_eight_gpus_have_a_row_each_and_jobs_get_the_most_of_the_rest)
{
    struct layout layout = make(80, 24, 8, PANEL_JOBS);
    check_stack(&layout, 24);
    assert_int_equal(layout.panels[PANEL_GPUS].height, 10);
    assert_true(layout.panels[PANEL_JOBS].height >= 7);
    assert_true(layout.has_power);
    assert_false(layout.has_line);
}

TEST(every_size_is_filled)
{
    for (int rows = LAYOUT_TABS_BELOW; rows < 120; rows++)
        for (int gpus = 0; gpus < 40; gpus += 3) {
            struct layout layout = make(80, rows, gpus, PANEL_JOBS);
            check_stack(&layout, rows);
        }
}

TEST(what_is_shown_of_a_gpu_depends_on_the_width)
{
    assert_false(make(79, 24, 8, PANEL_JOBS).has_power);
    assert_true(make(80, 24, 8, PANEL_JOBS).has_power);
    assert_false(make(99, 24, 8, PANEL_JOBS).has_line);
    assert_true(make(100, 24, 8, PANEL_JOBS).has_line);
    assert_int_equal(make(160, 24, 8, PANEL_JOBS).gpu_columns, 1);
    assert_int_equal(make(161, 24, 8, PANEL_JOBS).gpu_columns, 2);
    assert_int_equal(make(161, 40, 8, PANEL_JOBS).panels[PANEL_GPUS].height, 6);
}

TEST(many_gpus_are_a_line_of_cells_for_each_node)
{
    assert_false(make(80, 50, 16, PANEL_JOBS).is_cells);
    struct layout layout = make(80, 50, 17, PANEL_JOBS);
    assert_true(layout.is_cells);
    assert_int_equal(layout.panels[PANEL_GPUS].height, 5);
    assert_false(make(80, 15, 17, PANEL_GPUS).is_cells); // alone it has room for rows
}

TEST(with_few_rows_there_is_one_panel_below_tabs)
{
    assert_int_equal(make(60, 16, 8, PANEL_LOG).tabs.height, 0);
    struct layout layout = make(60, 15, 8, PANEL_LOG);
    assert_int_equal(layout.tabs.height, 1);
    assert_int_equal(layout.panels[PANEL_LOG].height, 12);
    assert_int_equal(layout.panels[PANEL_JOBS].height, 0);
    assert_int_equal(layout.panels[PANEL_GPUS].height, 0);
}

TEST(a_maximized_panel_has_the_whole_body)
{
    const struct layout_input input = { 24, 80, 8, 1, PANEL_GPUS, true };
    struct layout layout;
    layout_make(&input, &layout);
    assert_int_equal(layout.panels[PANEL_GPUS].height, 22);
    assert_int_equal(layout.panels[PANEL_JOBS].height, 0);
}

TEST(nothing_is_squeezed_into_a_tiny_terminal)
{
    assert_true(make(19, 24, 8, PANEL_JOBS).is_too_small);
    assert_true(make(80, 4, 8, PANEL_JOBS).is_too_small);
    assert_false(make(20, 5, 8, PANEL_JOBS).is_too_small);
}
