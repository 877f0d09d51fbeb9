/* SPDX-License-Identifier: MIT */
/* The screen has less space than a pipe: the user's own name is "you", and GPUs replace the requested
 * number. */
#include "cli/top/columns.h"

#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/show/job_columns.h"

#define PROGRESS_WIDTH 10

static char *render_with(const char *name, const struct view *view, const json_t *job, enum color *color)
{
    for (const struct list_column *column = job_columns; column->name != NULL; column++)
        if (strcmp(column->name, name) == 0)
            return list_cell(view, column, job, color);
    return xstrdup("-");
}

static char *render_user(const struct view *view, const json_t *job, enum color *color)
{
    if (field_integer(job, "uid", -1) != (int64_t)geteuid())
        return field_shown(job, "user");
    *color = COLOR_BOLD;
    return xstrdup("you");
}

/* For a job on several nodes, indexes alone would be ambiguous. */
static char *render_gpus(const struct view *view, const json_t *job, enum color *color)
{
    _cleanup_free_ char *where = job_where(job);
    const char *indexes = json_array_size(json_object_get(job, "ranks")) > 1 ? NULL : strrchr(where, ':');
    if (!job_is_done(job) && indexes != NULL && json_array_size(json_object_get(job, "granted")) > 0)
        return xstrdup(indexes); // ":4" is GPU 4, "×4" are four
    _cleanup_free_ char *count = render_with("gpus", view, job, color);
    bool is_array = strstr(count, "×") != NULL;
    return is_array ? take_ptr(count) : xasprintf("×%s", count);
}

/* Status reports come first: "[#### ] 42% epoch 3". */
static char *render_why(const struct view *view, const json_t *job, enum color *color)
{
    static const char *const shapes[] = { "█", "░" };
    struct buffer out = { 0 };
    double part = field_number(job, "progress", -1);
    const char *status = field_text(job, "status");
    if (field_is(job, "state", "running") && part >= 0) {
        part = part > 1 ? 1 : part;
        for (int i = 0; i < PROGRESS_WIDTH; i++)
            buffer_append_text(&out, shapes[part * PROGRESS_WIDTH < i + 0.5]);
        buffer_printf(&out, " %.0f%%", part * 100);
    }
    if (field_is(job, "state", "running") && status != NULL && *status != '\0') {
        _cleanup_free_ char *shown = field_shown(job, "status");
        buffer_printf(&out, "%s%s", out.length > 0 ? " " : "", shown);
    }
    return out.length > 0 ? buffer_take(&out) : render_with("why", view, job, color);
}

static const struct list_column own_columns[] = {
    { "user", "USER", "its owner", "user", false, 0, render_user },
    { "gpus", "GPUS", "its GPUs, or the number requested", "gpus", false, 0, render_gpus },
    { "why", "WHY", "why it waits, its progress, its command or how it ended", NULL, false, 1, render_why },
    { 0 },
};

static const struct list_column *find_in(const struct list_column *columns, const char *name)
{
    while (columns->name != NULL && strcmp(columns->name, name) != 0)
        columns++;
    return columns->name == NULL ? NULL : columns;
}

/* The column with that name, or NULL. */
static const struct list_column *top_column_find(const char *name)
{
    const struct list_column *own = find_in(own_columns, name);
    return own != NULL ? own : find_in(job_columns, name);
}

size_t top_columns_parse(const char *names, const struct list_column *columns[TOP_COLUMNS_MAX])
{
    _cleanup_free_ char *copy = xstrdup(names);
    char *rest = copy;
    size_t count = 0;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL && count < TOP_COLUMNS_MAX;) {
        const struct list_column *column = top_column_find(name);
        if (column != NULL)
            columns[count++] = column;
    }
    return count;
}

static void split(const char *names, struct strings *list)
{
    _cleanup_free_ char *copy = xstrdup(names);
    char *rest = copy;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;)
        if (*name != '\0')
            strings_add(list, name);
}

static char *join(const struct strings *list, const char *without, const char *more)
{
    struct buffer out = { 0 };
    for (size_t i = 0; i < list->count; i++)
        if (without == NULL || strcmp(list->items[i], without) != 0)
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", list->items[i]);
    if (more != NULL)
        buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", more);
    return buffer_take(&out);
}

static size_t place_in(const struct strings *list, const char *name)
{
    size_t i = 0;
    while (i < list->count && strcmp(list->items[i], name) != 0)
        i++;
    return i;
}

char *top_columns_toggle(const char *names, const char *name)
{
    _cleanup_strings_ struct strings list = { 0 };
    split(names, &list);
    bool is_there = place_in(&list, name) < list.count;
    bool is_last = is_there && list.count == 1; // an empty table shows nothing
    return is_last ? xstrdup(names) : join(&list, name, is_there ? NULL : name);
}

char *top_columns_move(const char *names, const char *name, int by)
{
    _cleanup_strings_ struct strings list = { 0 };
    split(names, &list);
    size_t from = place_in(&list, name), to = from + (size_t)by;
    if (from < list.count && to < list.count) {
        char *moved = list.items[from];
        list.items[from] = list.items[to];
        list.items[to] = moved;
    }
    return join(&list, NULL, NULL);
}
