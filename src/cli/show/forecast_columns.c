/* SPDX-License-Identifier: MIT */
/* The accuracy of forecasts of starts: the output of `mgpu history --forecasts`. */
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/show/history_columns.h"

static void seconds_text(const json_t *row, const char *member, char *text, size_t size)
{
    format_duration((int64_t)(field_number(row, member, 0) * 1000), text, size);
}

/* "1h to 6h", "over 1d", "all". */
static char *render_wait(const struct view *view, const json_t *row, enum color *color)
{
    char from[32], until[32];
    seconds_text(row, "wait_from_s", from, sizeof(from));
    seconds_text(row, "wait_until_s", until, sizeof(until));
    if (!field_is_known(row, "wait_from_s"))
        return xstrdup("all");
    if (!field_is_known(row, "wait_until_s"))
        return xasprintf("over %s", from);
    return field_number(row, "wait_from_s", 0) > 0 ? xasprintf("%s to %s", from, until)
                                                   : xasprintf("up to %s", until);
}

static char *render_right(const struct view *view, const json_t *row, enum color *color)
{
    double started = field_number(row, "started", 0);
    return started > 0 ? xasprintf("%.0f%%", 100 * field_number(row, "within", 0) / started) : xstrdup("-");
}

static char *bare_right(const json_t *row)
{
    double started = field_number(row, "started", 0);
    return started > 0 ? xasprintf("%.4f", field_number(row, "within", 0) / started) : xstrdup("");
}

/* "0.5 to 3.2 times": the interval shown for a forecast of this length. */
static char *render_interval(const struct view *view, const json_t *row, enum color *color)
{
    double from = 0, until = 0;
    if (!field_measured(row, "factor_from", &from) || !field_measured(row, "factor_until", &until))
        return xstrdup("");
    return xasprintf("%.2g to %.2g times", from, until);
}

static const struct list_column columns[] = {
    { "wait", "FORECAST WAIT", "wait that was forecast", "wait_from_s", false, 0, render_wait },
    { "started", "STARTED", "jobs that have started", "started", true, 0, NULL },
    { "right", "RIGHT", "of these, within the forecast interval, which should hold for 80%", NULL, true, 0,
        render_right, bare_right },
    { "earlier", "EARLIER", "jobs that started before the interval", "earlier", true, 0, NULL },
    { "later", "LATER", "jobs that started after the interval", "later", true, 0, NULL },
    { "waiting", "WAITING", "jobs that have not started", "waiting", true, 0, NULL },
    { "interval", "INTERVAL NOW", "the present interval, as multiples of the forecast wait", NULL, false, 0,
        render_interval },
    { 0 },
};

const struct list_kind *history_forecasts(void)
{
    static const struct list_kind kind = {
        .member = "ranges",
        .columns = columns,
        .normal = "wait,started,right,earlier,later,waiting,interval",
        .wide = "wait,started,right,earlier,later,waiting,interval",
    };
    return &kind;
}
