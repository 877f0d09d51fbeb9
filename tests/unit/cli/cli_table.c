/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <string.h>

#include "base/memory.h"
#include "cli/term/table.h"
#include "unit_test.h"

static const struct table_column columns[] = {
    { "ID", true, 0 },
    { "NAME", false, 2 },
    { "COMMAND", false, 1 },
};

static const char *const rows[][3] = {
    { "7", "train", "python train.py --lr 0.1" },
    { "12", "größe", "true" },
    { "13", "", "x" },
};

static char *print(const struct screen *screen, bool has_header)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct table *table = table_new(columns, 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            table_add(table, xstrdup(rows[i][j]), j == 1 ? COLOR_RED : COLOR_NONE);
    table_add(table, xstrdup("an incomplete row"), COLOR_NONE);
    table_print(table, screen, has_header, out);
    table_free(table);
    (void)fclose(out);
    return text;
}

TEST(columns_are_as_wide_as_their_text)
{
    struct screen screen = { .is_utf8 = true };
    _cleanup_free_ char *text = print(&screen, true);
    assert_string_equal(text, "ID  NAME   COMMAND\n"
                              " 7  train  python train.py --lr 0.1\n"
                              "12  größe  true\n"
                              "13         x\n");
}

TEST(a_narrow_screen_cuts_the_command_first)
{
    struct screen screen = { .is_utf8 = true, .width = 25 };
    _cleanup_free_ char *text = print(&screen, false);
    assert_string_equal(text, " 7  train  python train.…\n"
                              "12  größe  true\n"
                              "13         x\n");
}

TEST(a_pipe_is_never_cut)
{
    struct screen screen = { .width = 0 };
    _cleanup_free_ char *text = print(&screen, false);
    assert_non_null(strstr(text, "python train.py --lr 0.1"));
}

TEST(columns_never_shrink_to_nothing)
{
    struct screen screen = { .width = 5 };
    _cleanup_free_ char *text = print(&screen, false);
    assert_non_null(strstr(text, "python ~\n"));
}

/* The rest is readable. */
TEST(a_table_may_drop_columns_instead_of_cutting)
{
    static const struct table_column wide[] = { { "GPU", true, 0 }, { "MODEL", false, 2 },
        { "WHY", false, 1 }, { "UUID", false, 0 } };
    static const struct {
        size_t width, shown;
        const char *text;
    } expected[] = {
        { 0, 4, "0  NVIDIA GeForce RTX 4090  a reason that is rather longer than the room  GPU-8c2f\n" },
        { 80, 4, "0  NVIDIA GeForce RTX 4090  a reason that is rather longer than the r…  GPU-8c2f\n" },
        { 62, 4, "0  NVIDIA GeForce RTX 4090  a reason that is rather…  GPU-8c2f\n" },
        { 46, 3, "0  NVIDIA GeForce RTX 4090  a reason that is …\n" },
        { 30, 2, "0  NVIDIA GeForce RTX 4090\n" },
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct screen screen = { .is_utf8 = true, .width = expected[i].width };
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        struct table *table = table_new(wide, 4);
        table_may_drop(table);
        table_add(table, xstrdup("0"), COLOR_NONE);
        table_add(table, xstrdup("NVIDIA GeForce RTX 4090"), COLOR_NONE);
        table_add(table, xstrdup("a reason that is rather longer than the room"), COLOR_NONE);
        table_add(table, xstrdup("GPU-8c2f"), COLOR_NONE);
        assert_int_equal(table_print(table, &screen, false, out), expected[i].shown);
        table_free(table);
        (void)fclose(out);
        assert_string_equal(text, expected[i].text);
    }
}

TEST(colours_do_not_count_as_width)
{
    struct screen screen = { .has_color = true, .is_utf8 = true };
    _cleanup_free_ char *text = print(&screen, false);
    assert_non_null(strstr(text, "12  \033[31mgröße\033[0m  true\n"));
}

TEST(wide_characters_take_two_columns)
{
    assert_int_equal(screen_text_width("日本"), 4);
    assert_int_equal(screen_text_fit("日本", 3), 3);
    assert_int_equal(screen_text_width("e\xcc\x81"), 1);
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return unit_tests_run(NULL, NULL);
}
