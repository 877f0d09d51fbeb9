/* SPDX-License-Identifier: MIT */
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/options/list.h"
#include "cli/term/time_text.h"

#define TEXT_SIZE 64

char *list_cell(
    const struct view *view, const struct list_column *column, const json_t *row, enum color *color)
{
    if (column->render != NULL)
        return column->render(view, row, color);
    return column->form != NULL ? column->form(view, row, column->field) : field_shown(row, column->field);
}

char *list_seconds(const struct view *view, const json_t *row, const char *name)
{
    char text[TEXT_SIZE];
    double seconds;
    if (!field_measured(row, name, &seconds))
        return xstrdup("-");
    format_duration((int64_t)(seconds * 1000), text, sizeof(text));
    return xstrdup(text);
}

char *list_size(const struct view *view, const json_t *row, const char *name)
{
    char text[TEXT_SIZE];
    double bytes;
    if (!field_measured(row, name, &bytes))
        return xstrdup("-");
    format_size((uint64_t)bytes, text, sizeof(text));
    return xstrdup(text);
}

char *list_hours(const struct view *view, const json_t *row, const char *name)
{
    double seconds;
    return field_measured(row, name, &seconds) ? xasprintf("%.1f", seconds / LIST_HOUR_S) : xstrdup("-");
}

static char *time_text(const struct view *view, const json_t *row, const char *name,
    void (*format)(int64_t wall_ms, int64_t now_ms, enum time_style style, char *text, size_t size))
{
    char text[TEXT_SIZE];
    int64_t when = time_parse(field_text(row, name));
    if (when == 0)
        return xstrdup("-");
    format(when, view->now_ms, view->times, text, sizeof(text));
    return xstrdup(text);
}

char *list_time(const struct view *view, const json_t *row, const char *name)
{
    return time_text(view, row, name, time_format);
}

char *list_moment(const struct view *view, const json_t *row, const char *name)
{
    return time_text(view, row, name, time_format_short);
}
