/* SPDX-License-Identifier: MIT */
/*
 * Everything is drawn with UTF-8 characters. Without UTF-8, a table has replacements of the same width, so
 * panels need not distinguish.
 */
#include "cli/top/canvas.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

static const struct {
    wchar_t fine;
    char plain;
} replacements[] = { { L'─', '-' }, { L'│', '|' }, { L'┌', '+' }, { L'┐', '+' }, { L'└', '+' }, { L'┘', '+' },
    { L'├', '+' }, { L'┤', '+' }, { L'·', '-' }, { L'…', '~' }, { L'×', 'x' }, { L'⚠', '!' }, { L'‖', '=' },
    { L'●', '*' }, { L'◌', 'o' }, { L'◔', '>' }, { L'◍', '<' }, { L'◫', 'z' }, { L'✓', '+' }, { L'✗', 'x' },
    { L'⊘', '-' }, { L'█', '#' }, { L'▒', ':' }, { L'░', '.' }, { L'▌', '#' }, { L'◀', '<' }, { L'▶', '>' },
    { L'▲', '^' }, { L'▼', 'v' }, { L'┊', ':' }, { L'↑', '^' }, { L'↓', 'v' }, { L'┄', '~' } };

static wchar_t replace(wchar_t wide)
{
    if (wide < 0x7f)
        return wide;
    for (size_t i = 0; i < sizeof(replacements) / sizeof(replacements[0]); i++)
        if (replacements[i].fine == wide)
            return (wchar_t)replacements[i].plain;
    return L'?';
}

/* Characters without a shape that reorder or join their neighbours. */
static bool is_invisible(wchar_t wide)
{
    return (wide >= 0x200b && wide <= 0x200f) || (wide >= 0x2028 && wide <= 0x202e) ||
           (wide >= 0x2060 && wide <= 0x206f) || wide == 0xfeff;
}

/* Reads one character of text and makes it harmless; returns its length in bytes. `*ret_width` is 0 for a
 * mark on the previous one. */
static size_t next(const char *text, wchar_t *ret, int *ret_width)
{
    mbstate_t state = { 0 };
    wchar_t wide = 0;
    size_t n = mbrtowc(&wide, text, strlen(text), &state);
    if (n == 0 || n > 4) {
        n = 1;
        wide = L'?';
    }
    int width = is_invisible(wide) ? -1 : wcwidth(wide);
    *ret = width < 0 ? L'?' : wide;
    *ret_width = width < 0 ? 1 : width;
    return n;
}

int canvas_width(const char *text)
{
    int sum = 0;
    while (*text != '\0') {
        wchar_t wide = 0;
        int width = 0;
        text += next(text, &wide, &width);
        sum += width;
    }
    return sum;
}

void canvas_resize(struct canvas *canvas, int rows, int columns)
{
    canvas->rows = rows < 1 ? 1 : rows > CANVAS_ROWS_MAX ? CANVAS_ROWS_MAX : rows;
    canvas->columns = columns < 1 ? 1 : columns > CANVAS_COLUMNS_MAX ? CANVAS_COLUMNS_MAX : columns;
    canvas->cells =
        xreallocarray(canvas->cells, (size_t)canvas->rows * (size_t)canvas->columns, sizeof(struct cell));
    for (int i = 0; i < canvas->rows * canvas->columns; i++)
        canvas->cells[i] = (struct cell){ .text = { L' ' } };
}

void canvas_clear(struct canvas *canvas)
{
    free(canvas->cells);
    *canvas = (struct canvas){ 0 };
}

struct cell *canvas_cell(const struct canvas *canvas, int y, int x)
{
    if (y < 0 || x < 0 || y >= canvas->rows || x >= canvas->columns)
        return NULL;
    return &canvas->cells[y * canvas->columns + x];
}

/* If a character of two columns loses one of them, the other is cleared too. */
static void part_from_other_half(struct canvas *canvas, int y, int x)
{
    const struct cell *cell = canvas_cell(canvas, y, x), *after = canvas_cell(canvas, y, x + 1);
    struct cell *other = cell->text[0] == 0                     ? canvas_cell(canvas, y, x - 1)
                         : after != NULL && after->text[0] == 0 ? canvas_cell(canvas, y, x + 1)
                                                                : NULL;
    if (other != NULL)
        *other = (struct cell){ .text = { L' ' }, .look = other->look, .is_selected = other->is_selected };
}

static void set(struct canvas *canvas, int y, int x, enum look look, wchar_t wide)
{
    struct cell *cell = canvas_cell(canvas, y, x);
    if (cell == NULL)
        return;
    part_from_other_half(canvas, y, x);
    *cell = (struct cell){ .text = { wide }, .look = (unsigned char)look, .is_selected = cell->is_selected };
}

static void add_mark(struct canvas *canvas, int y, int x, wchar_t mark)
{
    struct cell *cell = canvas_cell(canvas, y, x);
    if (cell != NULL && canvas->is_utf8 && cell->text[1] == 0)
        cell->text[1] = mark;
}

int canvas_put(struct canvas *canvas, int y, int x, int width, enum look look, const char *text)
{
    int room = x + width > canvas->columns ? canvas->columns - x : width, used = 0, last = -1;
    bool is_cut = canvas_width(text) > room;
    if (room <= 0)
        return 0;
    while (*text != '\0') {
        wchar_t wide = 0;
        int columns = 0;
        text += next(text, &wide, &columns);
        if (columns == 0) {
            if (last >= 0)
                add_mark(canvas, y, last, wide);
            continue;
        }
        if (used + columns > room - (is_cut ? 1 : 0))
            break;
        last = x + used;
        if (!canvas->is_utf8 && columns == 2) {
            set(canvas, y, last, look, L'?');
            set(canvas, y, last + 1, look, L'?');
        } else {
            set(canvas, y, last, look, canvas->is_utf8 ? wide : replace(wide));
            if (columns == 2)
                set(canvas, y, last + 1, look, 0);
        }
        used += columns;
    }
    if (!is_cut)
        return used;
    set(canvas, y, x + used, look, canvas->is_utf8 ? L'…' : L'~');
    return used + 1;
}

int canvas_printf(struct canvas *canvas, int y, int x, int width, enum look look, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    return n < 0 ? 0 : canvas_put(canvas, y, x, width, look, text);
}

int canvas_put_right(struct canvas *canvas, int y, int x, int width, enum look look, const char *text)
{
    int needed = canvas_width(text);
    int blanks = needed < width ? width - needed : 0;
    return blanks + canvas_put(canvas, y, x + blanks, width - blanks, look, text);
}

void canvas_fill(struct canvas *canvas, const struct rect *area, enum look look, wchar_t character)
{
    wchar_t shown = canvas->is_utf8 ? character : replace(character);
    for (int y = area->y; y < area->y + area->height; y++)
        for (int x = area->x; x < area->x + area->width; x++) {
            struct cell *cell = canvas_cell(canvas, y, x);
            if (cell == NULL)
                continue;
            part_from_other_half(canvas, y, x);
            *cell = (struct cell){ .text = { shown }, .look = (unsigned char)look };
        }
}

static void fill_line(
    struct canvas *canvas, int y, int x, int height, int width, enum look look, wchar_t character)
{
    const struct rect line = { .y = y, .x = x, .height = height, .width = width };
    canvas_fill(canvas, &line, look, character);
}

void canvas_box(struct canvas *canvas, const struct rect *area, enum look look, const char *title,
    const char *right_title)
{
    int last_y = area->y + area->height - 1, last_x = area->x + area->width - 1;
    if (area->height < 2 || area->width < 2)
        return;
    fill_line(canvas, area->y, area->x, 1, area->width, look, L'─');
    fill_line(canvas, last_y, area->x, 1, area->width, look, L'─');
    fill_line(canvas, area->y, area->x, area->height, 1, look, L'│');
    fill_line(canvas, area->y, last_x, area->height, 1, look, L'│');
    fill_line(canvas, area->y, area->x, 1, 1, look, L'┌');
    fill_line(canvas, area->y, last_x, 1, 1, look, L'┐');
    fill_line(canvas, last_y, area->x, 1, 1, look, L'└');
    fill_line(canvas, last_y, last_x, 1, 1, look, L'┘');
    int room = area->width - 2;
    int used = title == NULL ? 0 : canvas_put(canvas, area->y, area->x + 1, room, LOOK_TITLE, title);
    int needed = right_title == NULL ? 0 : canvas_width(right_title);
    if (needed > 0 && used + needed < room)
        (void)canvas_put_right(canvas, area->y, last_x - needed, needed, LOOK_DIM, right_title);
}

struct rect rect_inside(const struct rect *area)
{
    if (area->height < 3 || area->width < 3)
        return (struct rect){ .y = area->y, .x = area->x };
    return (struct rect){ area->y + 1, area->x + 1, area->height - 2, area->width - 2 };
}

void canvas_select(struct canvas *canvas, int y, int x, int width)
{
    for (int i = 0; i < width; i++) {
        struct cell *cell = canvas_cell(canvas, y, x + i);
        if (cell != NULL)
            cell->is_selected = true;
    }
}

void canvas_dim(struct canvas *canvas)
{
    for (int i = 0; i < canvas->rows * canvas->columns; i++)
        canvas->cells[i].look = LOOK_DIM;
}

char *canvas_text(const struct canvas *canvas)
{
    struct buffer out = { 0 };
    for (int y = 0; y < canvas->rows; y++) {
        size_t end = out.length; // after the last character other than a blank
        for (int x = 0; x < canvas->columns; x++) {
            const struct cell *cell = canvas_cell(canvas, y, x);
            for (int i = 0; i < 2 && cell->text[i] != 0; i++) {
                char bytes[MB_LEN_MAX];
                mbstate_t state = { 0 };
                size_t n = wcrtomb(bytes, cell->text[i], &state);
                if (n <= sizeof(bytes))
                    buffer_append(&out, bytes, n);
                if (cell->text[i] != L' ')
                    end = out.length;
            }
        }
        out.length = end;
        buffer_append_text(&out, "\n");
    }
    return buffer_take(&out);
}
