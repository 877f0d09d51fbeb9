/* SPDX-License-Identifier: MIT */
#include "compat/slurm/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

#define NAMES_WIDTH 20   // width of a column of -O without a width
#define WIDTH_MAX   4096 // of one column

static struct slurm_cell *add(struct slurm_table *table, struct buffer *before)
{
    table->cells = xreallocarray(table->cells, table->count + 1, sizeof(*table->cells));
    struct slurm_cell *cell = &table->cells[table->count++];
    *cell = (struct slurm_cell){ .before = before->length > 0 ? buffer_take(before) : xstrdup("") };
    return cell;
}

static int read_width(const char *text, char **ret_end)
{
    long width = strtol(text, ret_end, 10);
    return width < 0 ? 0 : width > WIDTH_MAX ? WIDTH_MAX : (int)width;
}

int slurm_table_read_letters(struct slurm_table *table, const char *format, struct error *err)
{
    _cleanup_buffer_ struct buffer before = { 0 };
    for (const char *p = format; *p != '\0'; p++) {
        char *end = NULL;
        if (*p != '%') {
            bool is_newline = p[0] == '\\' && p[1] == 'n';
            buffer_append(&before, is_newline ? "\n" : p, 1);
            p += is_newline;
            continue;
        }
        if (p[1] == '%') {
            buffer_append(&before, p++, 1);
            continue;
        }
        bool is_right = p[1] == '.';
        int width = read_width(p + 1 + is_right, &end);
        const struct slurm_column *column = table->columns;
        while (column->name != NULL && (*end == '\0' || column->letter != *end))
            column++;
        if (column->name == NULL)
            return error_set(
                err, -EINVAL, "Invalid job format specification: %%%c", *end != '\0' ? *end : '%');
        struct slurm_cell *cell = add(table, &before);
        cell->column = column;
        cell->width = is_right ? -width : width;
        p = end;
    }
    if (before.length > 0)
        (void)add(table, &before);
    return 0;
}

static const struct slurm_column *find_name(const struct slurm_column *columns, const char *name)
{
    for (const struct slurm_column *column = columns; column->name != NULL; column++)
        if (strcasecmp(column->name, name) == 0)
            return column;
    return NULL;
}

int slurm_table_read_names(struct slurm_table *table, const char *names, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(names);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        _cleanup_buffer_ struct buffer before = { 0 };
        char *colon = strchr(word, ':'), *end = NULL;
        bool is_right = colon != NULL && colon[1] == '.';
        if (colon != NULL)
            *colon++ = '\0';
        if (word[0] == '\0')
            continue;
        const struct slurm_column *column = find_name(table->columns, word);
        if (column == NULL)
            return error_set(err, -EINVAL, "Invalid job format specification: %.60s", word);
        struct slurm_cell *cell = add(table, &before);
        int width = colon != NULL ? read_width(colon + is_right, &end) : NAMES_WIDTH;
        cell->column = column;
        cell->width = is_right ? -width : width;
    }
    return 0;
}

/* --- order --- */

struct sorting {
    const struct slurm_table *table;
    int64_t now_ms;
};

/* A value that does not exist is N/A. */
static char *text_of(const struct slurm_column *column, const json_t *job, int64_t now_ms)
{
    char *text = column->text(job, now_ms);
    return text != NULL ? text : xstrdup("N/A");
}

static int compare(const json_t *a, const json_t *b, const struct sorting *sorting)
{
    bool is_descending = false;
    for (const char *p = sorting->table->sort; *p != '\0'; p++) {
        if (*p == '-' || *p == '+') {
            is_descending = *p == '-';
            continue;
        }
        const struct slurm_column *column = sorting->table->columns;
        while (column->name != NULL && column->letter != *p)
            column++;
        if (column->name == NULL)
            continue;
        _cleanup_free_ char *first = text_of(column, a, sorting->now_ms);
        _cleanup_free_ char *second = text_of(column, b, sorting->now_ms);
        int r = strverscmp(first, second);
        if (r != 0)
            return is_descending ? -r : r;
        is_descending = false;
    }
    return 0;
}

static int compare_jobs(const void *a, const void *b, void *arg)
{
    return compare(*(json_t *const *)a, *(json_t *const *)b, arg);
}

/* --- print --- */

static void print_end(const struct slurm_cell *cell, const char *text)
{
    (void)fputs(cell->before, stdout);
    if (cell->column != NULL)
        slurm_print_cell(text, cell->width);
}

bool slurm_table_has(const struct slurm_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->cells[i].column != NULL && strcasecmp(table->cells[i].column->name, name) == 0)
            return true;
    return false;
}

void slurm_table_print(const struct slurm_table *table, json_t *jobs)
{
    struct sorting sorting = { table, clock_wall_ms() };
    size_t count = json_array_size(jobs);
    _cleanup_free_ json_t **sorted = xcalloc(count + 1, sizeof(json_t *));
    for (size_t i = 0; i < count; i++)
        sorted[i] = json_array_get(jobs, i);
    if (table->sort != NULL)
        qsort_r(sorted, count, sizeof(json_t *), compare_jobs, &sorting);
    for (size_t i = 0; !table->is_headless && i < table->count; i++)
        print_end(&table->cells[i], table->cells[i].column != NULL ? table->cells[i].column->header : "");
    if (!table->is_headless)
        (void)putchar('\n');
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < table->count; i++) {
            const struct slurm_cell *cell = &table->cells[i];
            _cleanup_free_ char *text =
                cell->column != NULL ? text_of(cell->column, sorted[k], sorting.now_ms) : NULL;
            print_end(cell, text);
        }
        (void)putchar('\n');
    }
}

void slurm_table_clear(struct slurm_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i].before);
    free(table->cells);
    table->cells = NULL;
    table->count = 0;
}
