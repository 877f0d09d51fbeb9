/* SPDX-License-Identifier: MIT */
/*
 * GPU time is counted from allocation to end. Of the measured time, a part was used and the rest was wasted;
 * unmeasured time is neither.
 */
#include "cli/show/history_columns.h"

#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/show/job_columns.h"

#define BAR_CELLS 24.0
#define BAR_PART  "bar_part" // the fraction of the longest bar

static char *render_used(const struct view *view, const json_t *row, enum color *color)
{
    double measured = field_number(row, "gpu_seconds_measured", 0);
    if (measured <= 0)
        return xstrdup("-");
    return xasprintf("%.0f%%", 100 * field_number(row, "gpu_seconds_used", 0) / measured);
}

/* --- jobs --- */

/* One word: its state, or the reason of its end if that is more specific. */
static char *render_end(const struct view *view, const json_t *job, enum color *color)
{
    *color = job_color(job);
    bool is_plain = !field_is_known(job, "ended_by") || field_is(job, "ended_by", "exit");
    return field_shown(job, is_plain ? "state" : "ended_by");
}

static char *render_gpu_peak(const struct view *view, const json_t *job, enum color *color)
{
    return list_size(view, json_object_get(job, "usage"), "gpu_memory_peak_bytes");
}

static char *render_peak(const struct view *view, const json_t *job, enum color *color)
{
    const json_t *usage = json_object_get(job, "usage");
    return field_is_known(usage, "memory_peak_bytes") ? list_size(view, usage, "memory_peak_bytes")
                                                      : list_size(view, job, "max_rss_bytes");
}

static char *bare_number(const json_t *object, const char *member)
{
    return field_is_known(object, member) ? xasprintf("%.0f", field_number(object, member, 0)) : xstrdup("");
}

static char *bare_gpu_peak(const json_t *job)
{
    return bare_number(json_object_get(job, "usage"), "gpu_memory_peak_bytes");
}

static char *bare_peak(const json_t *job)
{
    const json_t *usage = json_object_get(job, "usage");
    return field_is_known(usage, "memory_peak_bytes") ? bare_number(usage, "memory_peak_bytes")
                                                      : bare_number(job, "max_rss_bytes");
}

static char *bare_busy(const json_t *row)
{
    double measured = field_number(row, "gpu_seconds_measured", 0);
    return measured > 0 ? xasprintf("%.4f", field_number(row, "gpu_seconds_used", 0) / measured)
                        : xstrdup("");
}

static char *render_saved(const struct view *view, const json_t *job, enum color *color)
{
    char text[32];
    double seconds;
    if (!field_measured(job, "saved_seconds", &seconds))
        return xstrdup("-");
    format_duration((int64_t)(seconds * 1000), text, sizeof(text));
    return xstrdup(text);
}

static char *bare_saved(const json_t *job)
{
    double seconds;
    return field_measured(job, "saved_seconds", &seconds) ? xasprintf("%.3f", seconds) : xstrdup("");
}

static const struct list_column own_columns[] = {
    { "end", "END", "how it ended, as one word", "ended_by", false, 0, render_end },
    { "gpu_hours", "GPU-H", "GPU-hours allocated", "gpu_seconds", true, 0, .form = list_hours,
        .unit = LIST_HOUR_S },
    { "used", "USED", "utilization of its GPUs", NULL, true, 0, render_used, bare_busy },
    { "used_hours", "USED GPU-H", "GPU-hours used", "gpu_seconds_used", true, 0, .form = list_hours,
        .unit = LIST_HOUR_S },
    { "wasted", "WASTED", "GPU-hours allocated but not used", "gpu_seconds_wasted", true, 0,
        .form = list_hours, .unit = LIST_HOUR_S },
    { "saved", "SAVED", "GPU time saved by its early start", NULL, true, 0, render_saved, bare_saved },
    { "gpu_peak", "GPU PEAK", "peak memory of one GPU", NULL, true, 0, render_gpu_peak, bare_gpu_peak },
    { "memory", "MEM PEAK", "peak host memory", NULL, true, 0, render_peak, bare_peak },
    { 0 },
};
#define N_OWN (sizeof(own_columns) / sizeof(own_columns[0]) - 1)

const struct list_kind history_own = { .member = "jobs", .columns = own_columns };

const struct list_kind *history_jobs(void)
{
    static struct list_column columns[LIST_COLUMNS_MAX + 1];
    static const struct list_kind kind = {
        .member = "jobs",
        .columns = columns,
        .normal = "id,user,name,end,exit,ended,gpus,wait,run,gpu_hours,used,gpu_peak",
        .wide = "id,user,name,end,where,gpus,wait,run,gpu_hours,used,exit,message,submitted,started,ended,"
                "wasted,gpu_peak,memory,cpu",
    };
    size_t count = N_OWN;
    memcpy(columns, own_columns, N_OWN * sizeof(own_columns[0]));
    for (const struct list_column *column = job_columns; column->name != NULL && count < LIST_COLUMNS_MAX;
         column++)
        columns[count++] = *column;
    return &kind;
}

/* --- sums --- */

void history_measure_bars(json_t *sums)
{
    double longest = 0;
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(sums, index, row)
    {
        double held = field_number(row, "gpu_seconds", 0);
        longest = held > longest ? held : longest;
    }
    json_array_foreach(sums, index, row)
    {
        double held = field_number(row, "gpu_seconds", 0);
        (void)json_object_set_new(row, BAR_PART, json_real(longest > 0 ? held / longest : 0));
    }
}

static void append_cells(struct buffer *out, const char *cell, double cells)
{
    for (int i = 0; i < (int)(cells + 0.5); i++)
        buffer_append_text(out, cell);
}

/* Used, wasted and unmeasured parts. */
static char *render_bar(const struct view *view, const json_t *row, enum color *color)
{
    static const char *const cells[2][3] = { { "#", "-", "." }, { "█", "░", "·" } };
    const char *const *cell = cells[view->screen->is_utf8];
    double held = field_number(row, "gpu_seconds", 0), all = field_number(row, BAR_PART, 0) * BAR_CELLS;
    struct buffer out = { 0 };
    if (held > 0) {
        double used = all * field_number(row, "gpu_seconds_used", 0) / held;
        double measured = all * field_number(row, "gpu_seconds_measured", 0) / held;
        int n_used = (int)(used + 0.5), n_measured = (int)(measured + 0.5);
        append_cells(&out, cell[0], n_used);
        append_cells(&out, cell[1], n_measured - n_used);
        append_cells(&out, cell[2], (int)(all + 0.5) - n_measured);
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

#define SUM_COLUMNS                                                                                          \
    { "jobs", "JOBS", "ended jobs", "jobs", true, 0, NULL },                                                 \
        { "asked", "ASKED", "GPU-hours allocated", "gpu_seconds", true, 0, .form = list_hours,               \
            .unit = LIST_HOUR_S },                                                                           \
        { "used", "USED", "GPU-hours used", "gpu_seconds_used", true, 0, .form = list_hours,                 \
            .unit = LIST_HOUR_S },                                                                           \
        { "wasted", "WASTED", "GPU-hours allocated but not used", "gpu_seconds_wasted", true, 0,             \
            .form = list_hours, .unit = LIST_HOUR_S },                                                       \
        { "busy", "BUSY", "utilization of their GPUs", NULL, true, 0, render_used, bare_busy },              \
        { "wait", "WAIT", "median waiting time", "wait_seconds_median", true, 0, .form = list_seconds },     \
        { "wait95", "WAIT 95%", "95th percentile of the waiting time", "wait_seconds_p95", true, 0,          \
            .form = list_seconds },                                                                          \
        { "bar", "GPU-HOURS", "bar: used, wasted, not measured", NULL, false, 1, render_bar },               \
    {                                                                                                        \
        0                                                                                                    \
    }
#define SUM_NAMES "jobs,asked,used,wasted,busy,wait,wait95"

static const struct list_column user_columns[] = {
    { "user", "USER", "owner", "user", false, 0, NULL },
    { "uid", "UID", "user id", "uid", true, 0, NULL },
    SUM_COLUMNS,
};
static const struct list_column group_columns[] = {
    { "group", "GROUP", "group of the owners", "group", false, 0, NULL },
    { "gid", "GID", "its number", "gid", true, 0, NULL },
    SUM_COLUMNS,
};
static const struct list_column day_columns[] = {
    { "day", "DAY", "day of their end, in UTC", "day", false, 0, NULL },
    SUM_COLUMNS,
};
static const struct list_column node_columns[] = {
    { "node", "NODE", "node of their last attempt, the first of several", "node", false, 0, NULL },
    SUM_COLUMNS,
};

static const struct {
    const char *by;
    struct list_kind kind;
} sums[] = {
    { "user", { "sums", user_columns, "user," SUM_NAMES ",bar", "user,uid," SUM_NAMES ",bar" } },
    { "group", { "sums", group_columns, "group," SUM_NAMES ",bar", "group,gid," SUM_NAMES ",bar" } },
    { "day", { "sums", day_columns, "day," SUM_NAMES ",bar", "day," SUM_NAMES ",bar" } },
    { "node", { "sums", node_columns, "node," SUM_NAMES ",bar", "node," SUM_NAMES ",bar" } },
};

const struct list_kind *history_sums(const char *by)
{
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        if (strcmp(sums[i].by, by) == 0)
            return &sums[i].kind;
    return NULL;
}
