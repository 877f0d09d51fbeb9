/* SPDX-License-Identifier: MIT */
/*
 * All rows are kept until the widths are known. On a terminal, a table that is too wide is reduced in the
 * columns that may shrink, in their order, to SHRUNK_MIN at least; but columns of higher ranks are first
 * reduced to SHRUNK_FAIR, and to SHRUNK_SHORT before the first rank has less than SHRUNK_FACT. A table that
 * may drop columns keeps SHRUNK_FAIR of each text, and drops the last columns instead. In a pipe nothing is
 * cut.
 */
#include "cli/term/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SHRUNK_MIN   8
#define SHRUNK_FAIR  16 // long texts of higher ranks, such as names, before the first rank is cut
#define SHRUNK_FACT  18 // of the first rank: enough for the beginning of a reason (why_brief.c)
#define SHRUNK_SHORT 10
#define GAP          2

struct cell {
    char *text;
    enum color color;
};

struct table {
    struct table_column *columns;
    size_t n_columns;
    struct cell *cells;
    size_t n_cells, capacity;
    bool may_drop, must_fit;
};

struct table *table_new(const struct table_column *columns, size_t count)
{
    struct table *table = xcalloc(1, sizeof(*table));
    table->columns = xcalloc(count, sizeof(*columns));
    memcpy(table->columns, columns, count * sizeof(*columns));
    table->n_columns = count;
    return table;
}

void table_add(struct table *table, char *text, enum color color)
{
    if (table->n_cells == table->capacity) {
        table->capacity = table->capacity == 0 ? 64 : table->capacity * 2;
        table->cells = xreallocarray(table->cells, table->capacity, sizeof(struct cell));
    }
    table->cells[table->n_cells++] = (struct cell){ .text = text, .color = color };
}

static size_t sum_widths(size_t count, const size_t *widths)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += widths[i] + (i > 0 ? GAP : 0);
    return sum;
}

static size_t header_width(const struct table *table, size_t column, bool has_header)
{
    return has_header ? screen_text_width(table->columns[column].header) : 0;
}

static void measure(const struct table *table, bool has_header, size_t *widths)
{
    for (size_t i = 0; i < table->n_columns; i++)
        widths[i] = header_width(table, i, has_header);
    for (size_t i = 0; i < table->n_cells - table->n_cells % table->n_columns; i++) {
        size_t width = screen_text_width(table->cells[i].text);
        if (width > widths[i % table->n_columns])
            widths[i % table->n_columns] = width;
    }
}

/* Takes width from those of the first `count` columns that have this rank, but not below `least` and their
 * headers. */
static void shrink(const struct table *table, size_t count, size_t limit, bool has_header, unsigned rank,
    size_t least, size_t *widths)
{
    for (size_t i = 0; i < count; i++) {
        size_t sum = sum_widths(count, widths), header = header_width(table, i, has_header);
        size_t here = header > least ? header : least;
        if (sum <= limit || table->columns[i].shrink != rank || widths[i] <= here)
            continue;
        widths[i] = widths[i] - here > sum - limit ? widths[i] - (sum - limit) : here;
    }
}

static void fit(const struct table *table, size_t limit, bool has_header, size_t *widths)
{
    for (unsigned rank = 2; rank <= table->n_columns; rank++)
        shrink(table, table->n_columns, limit, has_header, rank, SHRUNK_FAIR, widths);
    shrink(table, table->n_columns, limit, has_header, 1, SHRUNK_FACT, widths);
    for (unsigned rank = 2; rank <= table->n_columns; rank++)
        shrink(table, table->n_columns, limit, has_header, rank, SHRUNK_SHORT, widths);
    for (unsigned rank = 1; rank <= table->n_columns; rank++)
        shrink(table, table->n_columns, limit, has_header, rank, SHRUNK_MIN, widths);
    /* The header of the last column, which is often long, is also cut before lines wrap. */
    size_t last = table->n_columns - 1, sum = sum_widths(table->n_columns, widths);
    if (sum > limit && table->columns[last].shrink != 0 && widths[last] > SHRUNK_MIN)
        shrink(table, table->n_columns, limit, false, table->columns[last].shrink, SHRUNK_MIN, widths);
}

/* How many of the columns fit without being cut. */
static size_t fit_some(const struct table *table, size_t limit, bool has_header, size_t *widths)
{
    for (size_t count = table->n_columns; count > 1; count--) {
        measure(table, has_header, widths);
        for (unsigned rank = 1; rank <= table->n_columns; rank++)
            shrink(table, count, limit, has_header, rank, SHRUNK_FAIR, widths);
        if (sum_widths(count, widths) <= limit)
            return count;
    }
    return 1;
}

void table_may_drop(struct table *table)
{
    table->may_drop = true;
}

void table_must_fit(struct table *table)
{
    table->must_fit = true;
}

static void print_blanks(size_t count, FILE *out)
{
    (void)fprintf(out, "%*s", (int)count, "");
}

/* Prints `text` in its column. Blanks are printed only when text follows, so no line ends in blanks. */
static void print_cell(const struct screen *screen, const struct table_column *column, size_t width,
    const char *text, enum color color, size_t *owed, FILE *out)
{
    size_t needed = screen_text_width(text);
    const char *mark = screen->is_utf8 ? "…" : "~";
    size_t bytes = needed > width ? screen_text_fit(text, width - 1) : strlen(text);
    size_t shown = needed > width ? width : needed;
    if (column->is_right)
        *owed += width - shown;
    if (*text != '\0') {
        print_blanks(*owed, out);
        *owed = 0;
        const char *on = color == COLOR_NONE ? "" : screen_color(screen, color);
        (void)fprintf(out, "%s%.*s%s%s", on, (int)bytes, text, needed > width ? mark : "",
            *on == '\0' ? "" : screen_color(screen, COLOR_NONE));
    } else {
        *owed += shown;
    }
    *owed += (column->is_right ? 0 : width - shown) + GAP;
}

bool table_fits(const struct table *table, const struct screen *screen, bool has_header)
{
    _cleanup_free_ size_t *widths = xcalloc(table->n_columns, sizeof(size_t));
    if (screen->width == 0)
        return true;
    measure(table, has_header, widths);
    fit(table, screen->width, has_header, widths);
    return sum_widths(table->n_columns, widths) <= screen->width;
}

size_t table_print(const struct table *table, const struct screen *screen, bool has_header, FILE *out)
{
    _cleanup_free_ size_t *widths = xcalloc(table->n_columns, sizeof(size_t));
    size_t owed = 0, n_shown = table->n_columns;
    measure(table, has_header, widths);
    if (screen->width > 0 && table->may_drop)
        n_shown = fit_some(table, screen->width, has_header, widths);
    else if (screen->width > 0)
        fit(table, screen->width, has_header, widths);
    while (screen->width > 0 && table->must_fit && n_shown > 1 && sum_widths(n_shown, widths) > screen->width)
        n_shown--;
    for (size_t i = 0; has_header && i < n_shown; i++)
        print_cell(screen, &table->columns[i], widths[i], table->columns[i].header, COLOR_BOLD, &owed, out);
    if (has_header)
        (void)fputc('\n', out);
    for (size_t row = 0; row + table->n_columns <= table->n_cells; row += table->n_columns) {
        owed = 0;
        for (size_t i = 0; i < n_shown; i++) {
            const struct cell *cell = &table->cells[row + i];
            print_cell(screen, &table->columns[i], widths[i], cell->text, cell->color, &owed, out);
        }
        (void)fputc('\n', out);
    }
    return n_shown;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i].text);
    free(table->cells);
    free(table->columns);
    free(table);
}

void table_freep(struct table **table)
{
    table_free(*table);
}
