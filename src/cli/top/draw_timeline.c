/* SPDX-License-Identifier: MIT */
/*
 * Shows which job had or has which GPU, and until when it is expected to have it; below, when waiting jobs
 * are expected to start and end. A broad bar shows the expected time, on which expected starts are based; a
 * thin line continues to the job's time limit. "now" is a third from the left.
 *
 *   0  ▕38 ana█████████████┊▒▒▒▒▒▒──────
 *   40 eval                ┊      ░░░░──
 */
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/maintenance_text.h"
#include "cli/show/job_columns.h"
#include "cli/top/draw.h"

#define LABEL_WIDTH 14
#define TIMES       6 // above the chart; the third one is "now"
#define HOUR_MS     INT64_C(3600000)

static const int64_t spans_ms[RANGES] = { HOUR_MS * 3 / 2, HOUR_MS * 6, HOUR_MS * 36 };

struct chart {
    struct rect area; // without the labels
    int64_t from_ms, to_ms, now_ms;
};

static int column_at(const struct chart *chart, int64_t ms)
{
    double part = (double)(ms - chart->from_ms) / (double)(chart->to_ms - chart->from_ms);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return (int)(part * chart->area.width);
}

static void draw_span(struct top *top, const struct chart *chart, int y, int64_t from_ms, int64_t to_ms,
    const char *glyph, enum look look)
{
    int from = column_at(chart, from_ms), to = column_at(chart, to_ms);
    if (to_ms < chart->from_ms || from_ms > chart->to_ms)
        return;
    to = to > from ? to : from + 1;
    for (int x = from; x < to && x < chart->area.width; x++)
        (void)canvas_put(&top->canvas, y, chart->area.x + x, 1, look, glyph);
}

/* The owner, on the bar if it is long enough. */
static void draw_label(
    struct top *top, const struct chart *chart, int y, int64_t from_ms, int64_t to_ms, const json_t *job)
{
    int from = column_at(chart, from_ms), room = column_at(chart, to_ms) - from;
    _cleanup_free_ char *id = job_id(job), *user = field_shown(job, "user");
    if (room > canvas_width(id))
        (void)canvas_printf(&top->canvas, y, chart->area.x + from, room, LOOK_TITLE, "%s %s", id, user);
}

/* The end by the time limit, which does not pass while the job is parked or has not had its GPUs yet; without
 * a limit, the end of the chart. */
static int64_t limit_of(const struct chart *chart, const json_t *job, int64_t start_ms)
{
    double limit_s = field_number(job, "time_limit_s", 0), parked_s, early_s;
    bool was_parked = field_measured(job, "parked_seconds", &parked_s);
    bool was_early = field_measured(job, "early_seconds", &early_s);
    if (limit_s <= 0)
        return chart->to_ms;
    return start_ms + (int64_t)((limit_s + (was_parked ? parked_s : 0) + (was_early ? early_s : 0)) * 1000);
}

/* Draws from `from_ms` to the expected end of the job, and a thin line from there to its limit, or to the end
 * of the chart. Returns the expected end. */
static int64_t draw_future(struct top *top, const struct chart *chart, int y, const json_t *job,
    int64_t from_ms, int64_t limit_ms, const char *glyph)
{
    bool has_limit = field_number(job, "time_limit_s", 0) > 0;
    int64_t expected_ms = time_parse(field_text(job, "expected_end"));
    int64_t solid_ms = expected_ms > from_ms ? expected_ms : from_ms;
    draw_span(
        top, chart, y, solid_ms, limit_ms > solid_ms ? limit_ms : solid_ms, has_limit ? "─" : "┄", LOOK_DIM);
    if (solid_ms > from_ms)
        draw_span(top, chart, y, from_ms, solid_ms, glyph, LOOK_WAIT);
    return solid_ms;
}

/* True if it is parked and not returning: it is unknown until when it has GPUs. */
static bool is_away(const json_t *job)
{
    return field_is_known(job, "park") && !field_is(job, "park", "restoring") &&
           !field_is(job, "park", "saving");
}

static void draw_job_on(struct top *top, const struct chart *chart, int y, const json_t *job)
{
    int64_t start = time_parse(field_text(job, "started_at")), end = time_parse(field_text(job, "ended_at"));
    if (start == 0)
        return;
    if (end > 0) {
        draw_span(top, chart, y, start, end, "█", LOOK_DIM);
        draw_label(top, chart, y, start, end, job);
        return;
    }
    int64_t until = chart->now_ms;
    if (!is_away(job))
        until = draw_future(top, chart, y, job, chart->now_ms, limit_of(chart, job, start), "▒");
    draw_span(top, chart, y, start, chart->now_ms, "█", LOOK_GOOD);
    draw_label(top, chart, y, start, until, job);
}

/* At the right: the GPU is out of use, or it is shared by others with the job that is drawn. */
static void draw_note(struct top *top, const struct chart *chart, int y, const json_t *gpu, size_t n_running)
{
    const struct view view = top_list_view(top);
    bool is_used =
        field_is(gpu, "state", "free") || field_is(gpu, "state", "used") || field_is(gpu, "state", "shared");
    _cleanup_free_ char *note = !is_used        ? maintenance_text(&view, gpu, field_text(gpu, "state"))
                                : n_running > 1 ? xasprintf("+%zu more", n_running - 1)
                                                : xstrdup("");
    int width = canvas_width(note), room = chart->area.width / 2;
    width = width < room ? width : room;
    (void)canvas_put(&top->canvas, y, chart->area.x + chart->area.width - width, width, LOOK_HELD, note);
}

static void draw_gpu(struct top *top, const struct chart *chart, int y, const json_t *gpu)
{
    _cleanup_free_ char *node = field_shown(gpu, "node");
    int64_t index = field_integer(gpu, "index", 0);
    if (top_has_nodes(top))
        (void)canvas_printf(&top->canvas, y, chart->area.x - LABEL_WIDTH, LABEL_WIDTH - 1, LOOK_HEADER,
            "%s:%" PRId64, node, index);
    else
        (void)canvas_printf(&top->canvas, y, chart->area.x - LABEL_WIDTH, LABEL_WIDTH - 1, LOOK_HEADER,
            "GPU %" PRId64, index);
    size_t n_running = 0;
    for (size_t i = 0; i < top->model.jobs.count; i++) {
        const json_t *job = top->model.jobs.items[i].job;
        if (job == NULL || !top_job_has_gpu(job, gpu))
            continue;
        draw_job_on(top, chart, y, job);
        n_running += !job_is_done(job);
    }
    draw_note(top, chart, y, gpu, n_running);
}

static void draw_waiting(struct top *top, const struct chart *chart, int y, const json_t *job)
{
    int64_t eta = time_parse(field_text(job, "eta"));
    _cleanup_free_ char *id = job_id(job), *name = field_shown(job, "name");
    (void)canvas_printf(
        &top->canvas, y, chart->area.x - LABEL_WIDTH, LABEL_WIDTH - 1, LOOK_WAIT, "%s %s", id, name);
    if (eta > 0)
        (void)draw_future(top, chart, y, job, eta, limit_of(chart, job, eta), "░");
    else
        (void)canvas_put(&top->canvas, y, chart->area.x + column_at(chart, chart->now_ms) + 2, 20, LOOK_DIM,
            "not known when");
}

static void draw_now(struct top *top, const struct chart *chart, int y, int height)
{
    for (int i = 0; i < height; i++) {
        struct cell *cell = canvas_cell(&top->canvas, y + i, chart->area.x + column_at(chart, chart->now_ms));
        if (cell != NULL && cell->text[0] == L' ')
            (void)canvas_put(
                &top->canvas, y + i, chart->area.x + column_at(chart, chart->now_ms), 1, LOOK_FOCUS, "┊");
    }
}

static void draw_times(struct top *top, const struct chart *chart, int y)
{
    char text[64];
    for (int i = 0; i < TIMES; i++) {
        int64_t ms = chart->from_ms + (chart->to_ms - chart->from_ms) * i / TIMES;
        if (i == TIMES / 3)
            continue; // there is "now"
        time_format_short(ms, top->now_ms, top->call->times, text, sizeof(text));
        (void)canvas_put(&top->canvas, y, chart->area.x + column_at(chart, ms), chart->area.width / TIMES - 1,
            LOOK_DIM, text);
    }
    (void)canvas_put(&top->canvas, y, chart->area.x + column_at(chart, chart->now_ms), 3, LOOK_FOCUS, "now");
}

static void draw_rows(struct top *top, const struct chart *chart)
{
    size_t gpus = json_array_size(top->model.gpus), skip = top->view.list_offset, row = 0;
    int y = chart->area.y, end = chart->area.y + chart->area.height;
    for (size_t i = 0; i < gpus && y < end; i++, row++)
        if (row >= skip)
            draw_gpu(top, chart, y++, json_array_get(top->model.gpus, i));
    for (size_t i = 0; i < top->view.n_rows && y < end; i++) {
        if (!field_is(top->view.rows[i], "state", "queued") || row++ < skip)
            continue;
        draw_waiting(top, chart, y++, top->view.rows[i]);
    }
    draw_now(top, chart, chart->area.y, y - chart->area.y);
}

void top_draw_timeline(struct top *top, const struct rect *area)
{
    static const char *const titles[RANGES] = { "Timeline, 90 min  [ ] change", "Timeline, 6 h  [ ] change",
        "Timeline, 36 h  [ ] change" };
    struct rect inside = top_draw_frame(top, area, true, titles[top->view.range], "[Esc back]");
    if (inside.height < 3 || inside.width < LABEL_WIDTH * 2)
        return;
    struct chart chart = {
        .area = { inside.y + 1, inside.x + LABEL_WIDTH, inside.height - 2, inside.width - LABEL_WIDTH },
        .now_ms = top->now_ms,
        .from_ms = top->now_ms - spans_ms[top->view.range] / 3,
        .to_ms = top->now_ms + spans_ms[top->view.range] * 2 / 3,
    };
    draw_times(top, &chart, inside.y);
    draw_rows(top, &chart);
    (void)canvas_put(&top->canvas, inside.y + inside.height - 1, inside.x, inside.width, LOOK_DIM,
        "█ ran, runs   ▒ expected to run   ░ expected start and end   ─ until its time limit   ┄ no limit");
}
