/* SPDX-License-Identifier: MIT */
/*
 * The height of a plot column is a number of small steps: eight per character with blocks, four with braille,
 * two with ASCII. A nonzero value has at least one step, to show that there was some activity.
 */
#include "cli/top/graph.h"

#include <errno.h>
#include <string.h>

static const char *const names[GRAPHS] = {
    [GRAPH_BLOCK] = "block",
    [GRAPH_BRAILLE] = "braille",
    [GRAPH_ASCII] = "ascii",
};

static const int steps_of[GRAPHS] = { [GRAPH_BLOCK] = 8, [GRAPH_BRAILLE] = 4, [GRAPH_ASCII] = 2 };

int graph_parse(const char *text, enum graph *ret, struct error *err)
{
    for (int i = 0; i < GRAPHS; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum graph)i;
            return 0;
        }
    return error_set(err, -EINVAL, "'%.40s' is not a graph type: block, braille or ascii", text);
}

const char *graph_name(enum graph graph)
{
    return names[graph];
}

static void put(struct canvas *canvas, int y, int x, enum look look, wchar_t character)
{
    struct cell *cell = canvas_cell(canvas, y, x);
    if (cell != NULL)
        *cell = (struct cell){ .text = { character }, .look = (unsigned char)look };
}

static double limited(double part)
{
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

void graph_bar(struct canvas *canvas, enum graph graph, int y, int x, int width, enum look look, double part)
{
    static const wchar_t eighths[] = L" ▏▎▍▌▋▊▉█", halves[] = L" ⡇⣿", hashes[] = L" -#";
    const wchar_t *const shapes[GRAPHS] = { eighths, halves, hashes };
    int fine = graph == GRAPH_BLOCK ? 8 : 2;
    int filled = (int)(limited(part) * width * fine + 0.5);
    for (int i = 0; i < width; i++) {
        int here = filled - i * fine;
        here = here < 0 ? 0 : here > fine ? fine : here;
        put(canvas, y, x + i, look, shapes[graph][here]);
    }
}

/* The character for one column and row of a plot, from the height of the column in steps within this row. */
static wchar_t shape(enum graph graph, int left, int right)
{
    static const wchar_t blocks[] = L" ▁▂▃▄▅▆▇█", hashes[] = L" .#";
    static const unsigned left_dots[] = { 0, 0x40, 0x44, 0x46, 0x47 };
    static const unsigned right_dots[] = { 0, 0x80, 0xa0, 0xb0, 0xb8 };
    if (graph == GRAPH_BRAILLE)
        return (wchar_t)(left + right == 0 ? L' ' : 0x2800 + (int)(left_dots[left] | right_dots[right]));
    return graph == GRAPH_BLOCK ? blocks[left] : hashes[left];
}

/* The height of a value in steps, over `rows` rows. */
static int height_of(enum graph graph, int rows, double value)
{
    int all = rows * steps_of[graph];
    int steps = (int)(limited(value) * all + 0.5);
    return value > 0 && steps == 0 ? 1 : steps;
}

static int in_row(enum graph graph, int height, int row_from_below)
{
    int steps = height - row_from_below * steps_of[graph];
    return steps < 0 ? 0 : steps > steps_of[graph] ? steps_of[graph] : steps;
}

static double at(const double *values, size_t count, long i)
{
    return i < 0 || (size_t)i >= count ? GRAPH_UNKNOWN : values[i];
}

/* On a single line a zero is drawn as a low mark, to distinguish it from an unknown value. */
static int height_on_line(enum graph graph, double value)
{
    int height = height_of(graph, 1, value);
    return value >= 0 && height == 0 ? 1 : height;
}

void graph_line(
    struct canvas *canvas, enum graph graph, int y, int x, int width, const double *values, size_t count)
{
    int each = graph == GRAPH_BRAILLE ? 2 : 1;
    long first = (long)count - (long)width * each;
    for (int i = 0; i < width; i++) {
        double left = at(values, count, first + (long)i * each);
        double right = each == 2 ? at(values, count, first + (long)i * 2 + 1) : GRAPH_UNKNOWN;
        double most = left > right ? left : right;
        put(canvas, y, x + i, most > 0 ? look_of_load(limited(most)) : LOOK_DIM,
            shape(graph, height_on_line(graph, left), height_on_line(graph, right)));
    }
}

/* The mean of the values that fall into one of `columns` parts. */
static double mean_of(const double *values, size_t count, long column, long columns)
{
    size_t from = (size_t)column * count / (size_t)columns,
           to = (size_t)(column + 1) * count / (size_t)columns;
    double sum = 0;
    size_t known = 0;
    if (to <= from)
        to = from + 1;
    for (size_t i = from; i < to && i < count; i++)
        if (values[i] >= 0) {
            sum += values[i];
            known++;
        }
    return known == 0 ? GRAPH_UNKNOWN : sum / (double)known;
}

void graph_plot(struct canvas *canvas, enum graph graph, const struct rect *area, enum look look,
    const double *values, size_t count)
{
    int each = graph == GRAPH_BRAILLE ? 2 : 1;
    long columns = (long)area->width * each;
    for (int i = 0; i < area->width && count > 0; i++) {
        double left = mean_of(values, count, (long)i * each, columns);
        double right = each == 2 ? mean_of(values, count, (long)i * 2 + 1, columns) : GRAPH_UNKNOWN;
        int left_height = height_of(graph, area->height, left);
        int right_height = height_of(graph, area->height, right);
        for (int row = 0; row < area->height; row++) {
            wchar_t here = shape(graph, in_row(graph, left_height, row), in_row(graph, right_height, row));
            if (here != L' ')
                put(canvas, area->y + area->height - 1 - row, area->x + i, look, here);
        }
    }
}
