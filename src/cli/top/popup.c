/* SPDX-License-Identifier: MIT */
/* Popups: keys, sort order, columns, and text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/top/columns.h"
#include "cli/top/draw.h"
#include "cli/top/keys.h"

#define NAME_WIDTH 12
#define ROOM       6 // columns left beside a box, including its frame
#define TEXT_INSET 4 // within the columns of the box: the frame, and a blank at each side

static void open_box(struct top *top, enum popup popup, const char *title)
{
    top->view.popup = popup;
    top->view.popup_row = top->view.popup_offset = 0;
    strings_clear(&top->view.popup_lines);
    (void)snprintf(top->view.popup_title, sizeof(top->view.popup_title), "%s", title);
}

static void close_box(struct top *top)
{
    top->view.popup = POPUP_NONE;
    strings_clear(&top->view.popup_lines);
}

static void add_line(struct top *top, const char *name, const char *text)
{
    strings_take(&top->view.popup_lines, xasprintf("%-*s %s", NAME_WIDTH, name, text));
}

/* --- the keys --- */

void top_open_help(struct top *top)
{
    unsigned place = top_place(top);
    open_box(top, POPUP_HELP, "Keys here");
    for (const struct top_key *key = top_keys; key->name != NULL; key++)
        if ((key->where & place) != 0)
            add_line(top, key->name, key->help);
}

/* --- sorting --- */

void top_open_sort(struct top *top)
{
    open_box(top, POPUP_SORT, "Sort by (Enter; again reverses)");
    for (int i = 0; order_keys[i].name != NULL; i++)
        add_line(top, order_keys[i].name, order_keys[i].help);
    top->view.popup_row = top->prefs.order.by[0].key;
}

static void press_sort(struct top *top, int code)
{
    if (code != TOP_KEY_ENTER && code != '\r')
        return;
    int key = top->view.popup_row;
    close_box(top);
    top_sort_by(top, key);
}

/* --- columns: visible ones in their order, then the others --- */

static void list_columns(struct top *top)
{
    const struct list_column *shown[TOP_COLUMNS_MAX];
    size_t count = top_columns_parse(top->prefs.columns, shown);
    strings_clear(&top->view.popup_lines);
    for (size_t i = 0; i < count; i++)
        strings_take(
            &top->view.popup_lines, xasprintf("[x] %-*s %s", NAME_WIDTH, shown[i]->name, shown[i]->help));
    for (const struct list_column *column = job_columns; column->name != NULL; column++) {
        bool is_shown = false;
        for (size_t i = 0; i < count; i++)
            is_shown = is_shown || strcmp(shown[i]->name, column->name) == 0;
        if (!is_shown)
            strings_take(
                &top->view.popup_lines, xasprintf("[ ] %-*s %s", NAME_WIDTH, column->name, column->help));
    }
}

void top_open_columns(struct top *top)
{
    open_box(top, POPUP_COLUMNS, "Columns (Space shows or hides, < > moves, Esc)");
    list_columns(top);
}

static void press_columns(struct top *top, int code)
{
    char name[NAME_WIDTH * 2 + 1] = "";
    char *names = NULL;
    const char *line = top->view.popup_lines.items[top->view.popup_row];
    if (sscanf(line + 4, "%24s", name) != 1)
        return;
    if (code == ' ' || code == TOP_KEY_ENTER || code == '\r')
        names = top_columns_toggle(top->prefs.columns, name);
    else if (code == '<' || code == '>')
        names = top_columns_move(top->prefs.columns, name, code == '<' ? -1 : 1);
    if (names == NULL)
        return;
    free(top->prefs.columns);
    top->prefs.columns = names;
    list_columns(top);
    for (size_t i = 0; i < top->view.popup_lines.count && (code == '<' || code == '>'); i++) {
        char here[NAME_WIDTH * 2 + 1] = "";
        if (sscanf(top->view.popup_lines.items[i] + 4, "%24s", here) == 1 && strcmp(here, name) == 0)
            top->view.popup_row = (int)i;
    }
    (void)top_prefs_save(&top->prefs, NULL);
}

/* --- text --- */

void top_open_text(struct top *top, const char *title, const char *text)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    open_box(top, POPUP_TEXT, title);
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;)
        strings_add(&top->view.popup_lines, line);
}

/* --- all of them --- */

static void move_row(struct top *top, int by)
{
    int count = (int)top->view.popup_lines.count, row = top->view.popup_row + by;
    top->view.popup_row = row < 0 || count == 0 ? 0 : row >= count ? count - 1 : row;
}

static int steps_of(const struct top *top, int code)
{
    switch (code) {
    case TOP_KEY_UP:
    case 'k': return -1;
    case TOP_KEY_DOWN:
    case 'j': return 1;
    case TOP_KEY_PAGE_UP: return -top->view.popup_rows;
    case TOP_KEY_PAGE_DOWN: return top->view.popup_rows;
    case TOP_KEY_HOME: return -10000;
    case TOP_KEY_END: return 10000;
    default: return 0;
    }
}

bool top_popup_press(struct top *top, int code)
{
    bool is_list = top->view.popup == POPUP_SORT || top->view.popup == POPUP_COLUMNS;
    if (top->view.popup == POPUP_NONE)
        return false;
    int steps = steps_of(top, code);
    if (steps != 0)
        move_row(top, steps);
    else if (code == TOP_KEY_ESCAPE || code == 'q' || code == '?' || (!is_list && code == TOP_KEY_ENTER))
        close_box(top);
    else if (top->view.popup == POPUP_SORT)
        press_sort(top, code);
    else if (top->view.popup == POPUP_COLUMNS)
        press_columns(top, code);
    return true;
}

/* Width of the widest box, including its frame. */
static int widest_box(const struct top *top)
{
    return top->canvas.columns > ROOM + 20 ? top->canvas.columns - ROOM : top->canvas.columns;
}

int top_popup_text_width(const struct top *top)
{
    return widest_box(top) - TEXT_INSET;
}

static struct rect place_box(const struct top *top)
{
    const struct strings *lines = &top->view.popup_lines;
    int width = canvas_width(top->view.popup_title) + 4;
    for (size_t i = 0; i < lines->count; i++) {
        int here = canvas_width(lines->items[i]) + 4;
        width = here > width ? here : width;
    }
    int most = widest_box(top);
    width = width > most ? most : width;
    int height = (int)lines->count + 2, room = top->canvas.rows - 2;
    height = height > room ? room : height;
    return (struct rect){ (top->canvas.rows - height) / 2, (top->canvas.columns - width) / 2, height, width };
}

/* In a list, a row is selected; text scrolls until its last line is the lowest. */
void top_draw_popup(struct top *top)
{
    const struct strings *lines = &top->view.popup_lines;
    bool is_list = top->view.popup == POPUP_SORT || top->view.popup == POPUP_COLUMNS;
    if (top->view.popup == POPUP_NONE)
        return;
    struct rect box = place_box(top), inside = rect_inside(&box);
    canvas_fill(&top->canvas, &box, LOOK_PLAIN, L' ');
    top->view.popup_rows = inside.height > 0 ? inside.height : 1;
    bool is_long = (int)lines->count > inside.height;
    canvas_box(&top->canvas, &box, LOOK_FOCUS, top->view.popup_title, is_long ? "[more: arrows]" : "[Esc]");
    size_t most = lines->count > (size_t)inside.height ? lines->count - (size_t)inside.height : 0;
    size_t row = (size_t)top->view.popup_row;
    if (!is_list && row > most)
        top->view.popup_row = (int)(row = most);
    size_t first =
        is_list ? top_scroll_to((size_t)top->view.popup_offset, row, lines->count, (size_t)inside.height)
                : row;
    top->view.popup_offset = (int)first;
    for (size_t i = first; i < lines->count && i - first < (size_t)inside.height; i++) {
        int y = inside.y + (int)(i - first);
        (void)canvas_put(&top->canvas, y, inside.x + 1, inside.width - 2, LOOK_PLAIN, lines->items[i]);
        if (is_list && i == row)
            canvas_select(&top->canvas, y, inside.x, inside.width);
    }
}
