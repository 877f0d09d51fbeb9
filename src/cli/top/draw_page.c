/* SPDX-License-Identifier: MIT */
/* The page of one job: facts, its timeline, the usage of its GPUs, and its output. */
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/show/job_columns.h"
#include "cli/show/park_text.h"
#include "cli/show/usage_text.h"
#include "cli/show/why_text.h"
#include "cli/top/draw.h"
#include "cli/top/points.h"

#define LABEL_WIDTH 11
#define PLOT_ROWS   4 // maximum height of each plot
#define LOG_ROWS    3 // minimum height, plus the frame

static const char *const range_names[RANGES] = { "10 min", "1 hour", "all" };

/* One line "label  text"; nothing if the text is NULL. The text is freed. */
static void put_fact(struct top *top, struct rect *rest, const char *label, enum look look, char *text)
{
    _cleanup_free_ char *owned = text;
    if (owned == NULL || rest->height <= 0)
        return;
    (void)canvas_put(&top->canvas, rest->y, rest->x + 1, LABEL_WIDTH, LOOK_HEADER, label);
    (void)canvas_put(
        &top->canvas, rest->y, rest->x + 1 + LABEL_WIDTH, rest->width - LABEL_WIDTH - 1, look, owned);
    rest->y++;
    rest->height--;
}

static char *state_text(const struct top *top, const json_t *job)
{
    _cleanup_free_ char *outcome = job_outcome(job);
    int64_t position = field_integer(job, "position", 0);
    const char *glyph = job_glyph(&top->screen, job), *state = job_state_shown(job);
    if (outcome != NULL)
        return xasprintf("%s %s: %s", glyph, state, outcome);
    if (position > 0 && !job_is_held(job))
        return xasprintf("%s %s, position %" PRId64, glyph, state, position);
    _cleanup_free_ char *idle = usage_idle_mark(&top->screen, job);
    return xasprintf("%s %s%s%s", glyph, state, idle == NULL ? "" : "  ", idle == NULL ? "" : idle);
}

static char *duration(double seconds)
{
    char text[32];
    format_duration((int64_t)(seconds * 1000), text, sizeof(text));
    return xstrdup(text);
}

/* submitted 14:02 ── waited 18m ── started 14:20 ── 3h12m ── now ── 48m left */
static char *timeline(const struct top *top, const json_t *job)
{
    struct buffer out = { 0 };
    char at[64];
    const char *dash = "─";
    time_format_short(
        time_parse(field_text(job, "submitted_at")), top->now_ms, top->call->times, at, sizeof(at));
    _cleanup_free_ char *wait = duration(field_number(job, "wait_seconds", 0));
    buffer_printf(&out, "submitted %s %s waited %s", at, dash, wait);
    if (field_is_known(job, "started_at")) {
        _cleanup_free_ char *run = duration(field_number(job, "run_seconds", 0));
        time_format_short(
            time_parse(field_text(job, "started_at")), top->now_ms, top->call->times, at, sizeof(at));
        buffer_printf(&out, " %s started %s %s %s", dash, at, dash, run);
    } else if (field_is_known(job, "eta") && !job_is_done(job)) {
        time_format_short(time_parse(field_text(job, "eta")), top->now_ms, top->call->times, at, sizeof(at));
        buffer_printf(&out, " %s starts ~%s", dash, at);
    }
    if (field_is_known(job, "ended_at")) {
        time_format_short(
            time_parse(field_text(job, "ended_at")), top->now_ms, top->call->times, at, sizeof(at));
        buffer_printf(&out, " %s ended %s", dash, at);
    } else if (field_is_known(job, "started_at")) {
        double left = field_number(job, "time_limit_s", 0) - field_number(job, "run_seconds", 0);
        _cleanup_free_ char *shown = duration(left > 0 ? left : 0);
        buffer_printf(&out, " %s now", dash);
        if (field_is_known(job, "time_limit_s"))
            buffer_printf(&out, " %s %s left", dash, shown);
    }
    return buffer_take(&out);
}

/* For which job it is parked, which job is parked for it, and to which its GPUs are lent or due. */
static void put_parks(struct top *top, struct rect *rest, const json_t *job)
{
    const struct view view = { .screen = &top->screen, .times = top->call->times, .now_ms = top->now_ms };
    for (const struct park_fact *fact = park_facts; fact->label != NULL; fact++)
        put_fact(top, rest, fact->label, LOOK_PLAIN, fact->text(&view, job));
}

static void draw_facts(struct top *top, struct rect *rest, const json_t *job)
{
    const json_t *detail = top->model.detail_id == top->view.selected ? top->model.detail : NULL;
    const json_t *usage = json_object_get(detail == NULL ? job : detail, "usage");
    put_fact(top, rest, "state", look_of_color(job_color(job)), state_text(top, job));
    put_fact(top, rest, "command", LOOK_PLAIN, field_shown(job, "command"));
    put_fact(top, rest, "request", LOOK_PLAIN, why_request(job));
    put_fact(top, rest, "where", LOOK_PLAIN, job_where(job));
    put_fact(top, rest, "times", LOOK_PLAIN, timeline(top, job));
    put_parks(top, rest, job);
    if (json_is_object(usage))
        put_fact(top, rest, "used", LOOK_PLAIN, usage_sentence(usage));
    put_fact(top, rest, "idle", LOOK_WARN, usage_idle(job));
    put_fact(top, rest, "warning", LOOK_BAD, json_is_object(usage) ? usage_stray(usage) : NULL);
    if (detail != NULL && field_is_known(detail, "cwd"))
        put_fact(top, rest, "in", LOOK_DIM, field_shown(detail, "cwd"));
}

static void draw_plot(struct top *top, const struct rect *area, const double *points, size_t count,
    double peak, const char *label, enum look look)
{
    if (area->height <= 0 || area->width <= LABEL_WIDTH + 2)
        return;
    (void)canvas_put(&top->canvas, area->y, area->x + 1, LABEL_WIDTH, LOOK_HEADER, label);
    if (area->height > 1)
        (void)canvas_printf(
            &top->canvas, area->y + 1, area->x + 1, LABEL_WIDTH, LOOK_DIM, "max %.0f%%", peak * 100);
    struct rect plot = { area->y, area->x + 1 + LABEL_WIDTH, area->height, area->width - LABEL_WIDTH - 2 };
    for (int x = 0; x < plot.width; x++)
        (void)canvas_put(&top->canvas, plot.y + plot.height - 1, plot.x + x, 1, LOOK_BORDER, "·");
    graph_plot(&top->canvas, top->prefs.graph, &plot, look, points, count);
}

/* The names of the plotted values. The caller frees it. */
static char *plots_title(const struct top *top, const json_t *job)
{
    size_t count = json_array_size(json_object_get(job, "granted"));
    const char *of_many = count > 1 ? ", their mean" : "";
    if (job_is_done(job))
        return xasprintf(" GPUs%s, from start to end ", of_many);
    if (json_array_size(top->model.gpus) > LAYOUT_GPU_ROWS_MAX && count > 1)
        of_many = ", the first";
    return xasprintf(" GPUs%s, %s  [ ] change ", of_many, range_names[top->view.range]);
}

static const struct {
    const char *name, *peak_name; // of GET /gpus/history
    const char *label;
    enum look look;
} plots[] = {
    { "utilization", "utilization_max", "busy", LOOK_MIDDLE },
    { "memory", "memory_max", "memory", LOOK_MEMORY },
};
#define N_PLOTS ((int)(sizeof(plots) / sizeof(plots[0])))

static void draw_plots(struct top *top, struct rect *rest, const json_t *job)
{
    const json_t *detail = top->model.detail_id == top->view.selected ? top->model.detail : NULL;
    const json_t *usage = json_object_get(detail, "usage"),
                 *past = detail == NULL ? NULL : top->model.detail_past;
    int rows = (rest->height - LOG_ROWS - 1) / N_PLOTS;
    rows = rows > PLOT_ROWS ? PLOT_ROWS : rows;
    if (json_array_size(json_object_get(job, "granted")) == 0 || rows < 1)
        return;
    _cleanup_free_ double *points = xcalloc(POINTS_MAX, sizeof(double));
    _cleanup_free_ char *title = plots_title(top, job);
    struct rect line = { rest->y, rest->x, 1, rest->width };
    canvas_fill(&top->canvas, &line, LOOK_BORDER, L'─');
    (void)canvas_put(&top->canvas, line.y, line.x + 1, line.width - 1, LOOK_TITLE, title);
    for (int i = 0; i < N_PLOTS; i++) {
        struct rect area = { rest->y + 1 + i * rows, rest->x, rows, rest->width };
        bool is_done = job_is_done(job);
        size_t count = is_done ? 0 : points_of_gpus(job, past, plots[i].peak_name, points);
        double peak = points_peak(points, count);
        count = is_done ? points_of_usage(usage, (size_t)i, points)
                        : points_of_gpus(job, past, plots[i].name, points);
        draw_plot(top, &area, points, count, is_done ? points_peak(points, count) : peak, plots[i].label,
            plots[i].look);
    }
    rest->y += 1 + N_PLOTS * rows;
    rest->height -= 1 + N_PLOTS * rows;
}

void top_draw_page(struct top *top, const struct rect *area)
{
    json_t *job = top_selected(top);
    _cleanup_free_ char *id = job == NULL ? xstrdup("") : job_id(job);
    _cleanup_free_ char *name = job == NULL ? xstrdup("") : field_shown(job, "name");
    _cleanup_free_ char *user = job == NULL ? xstrdup("") : field_shown(job, "user");
    _cleanup_free_ char *title = xasprintf("Job %s  %s, of %s", id, name, user);
    struct rect rest = top_draw_frame(top, area, true, title, "[Esc back]");
    if (rest.height <= 0)
        return;
    if (job == NULL) {
        (void)canvas_put(&top->canvas, rest.y, rest.x + 1, rest.width - 1, LOOK_DIM,
            top->model.is_complete ? "no such job" : "waiting for mgpud ...");
        return;
    }
    top_job_tick(job, top->now_ms);
    draw_facts(top, &rest, job);
    draw_plots(top, &rest, job);
    if (rest.height > 1) {
        struct rect line = { rest.y, rest.x, 1, rest.width };
        bool is_queued = field_is(job, "state", "queued");
        canvas_fill(&top->canvas, &line, LOOK_BORDER, L'─');
        (void)canvas_put(
            &top->canvas, line.y, line.x + 1, line.width - 1, LOOK_TITLE, is_queued ? " why " : " log ");
        rest.y++;
        rest.height--;
        top_draw_log_lines(top, &rest);
    }
}
