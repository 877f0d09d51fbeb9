/* SPDX-License-Identifier: MIT */
/*
 * A row for each GPU:  index job user  bar util  memory temperature power  graph  note
 * The bar and the graph share what the fixed columns leave. With very many GPUs a node is one line of cells.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/options/maintenance_text.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/job_columns.h"
#include "cli/top/draw.h"

#define GIB         (1024.0 * 1024 * 1024)
#define BAR_MIN     8
#define BAR_MAX     30
#define GRAPH_MAX   60
#define NOTE_MIN    18
#define LINE_POINTS 120

#define JOB_WIDTH_MIN 6
#define JOB_WIDTH_MAX 12
#define USER_WIDTH    8

struct gpu_row {
    int index_width, job_width, bar, line;
};

json_t *top_selected_gpu(const struct top *top)
{
    return json_array_get(top->model.gpus, top->view.gpu_row);
}

static bool is_state(const json_t *gpu, const char *a, const char *b)
{
    return field_is(gpu, "state", a) || field_is(gpu, "state", b);
}

static bool is_away(const json_t *gpu)
{
    return is_state(gpu, "lost", "node_down");
}

static bool is_out_of_use(const json_t *gpu)
{
    return is_state(gpu, "paused", "node_drained") || is_state(gpu, "drained", "unclean") ||
           is_state(gpu, "refused", "released");
}

/* The largest process without a job here, or NULL. */
static const json_t *external_process(const json_t *gpu)
{
    const json_t *largest = NULL;
    size_t index = 0;
    json_t *process = NULL;
    json_array_foreach(json_object_get(gpu, "processes"), index, process)
    {
        bool is_larger = largest == NULL ||
                         field_number(process, "memory_bytes", 0) > field_number(largest, "memory_bytes", 0);
        if (!field_is_known(process, "job") && is_larger)
            largest = process;
    }
    return largest;
}

/* The caller frees it. */
static char *note_of(const struct top *top, const json_t *gpu, enum look *look)
{
    const struct view view = top_list_view(top);
    const json_t *process = external_process(gpu);
    char idle[32];
    *look = LOOK_WARN;
    if (is_away(gpu) || is_out_of_use(gpu)) {
        bool is_meant = is_state(gpu, "paused", "node_drained") || field_is(gpu, "state", "released");
        *look = is_meant ? LOOK_HELD : LOOK_BAD;
        if (field_is(gpu, "state", "lost") && field_is_known(gpu, "trouble"))
            return field_shown(gpu, "trouble");
        return maintenance_text(&view, gpu, field_text(gpu, "state"));
    }
    if (process != NULL) {
        _cleanup_free_ char *user = field_shown(process, "user"), *command = field_shown(process, "command");
        command[strcspn(command, " ")] = '\0'; // there is not enough space for its arguments
        const char *slash = strrchr(command, '/');
        return xasprintf("external: %s %s (pid %" PRId64 ")", user, slash == NULL ? command : slash + 1,
            field_integer(process, "pid", 0));
    }
    const json_t *job = json_array_get(json_object_get(gpu, "jobs"), 0);
    _cleanup_free_ char *name = job == NULL ? xstrdup("") : field_shown(job, "name");
    if (field_is_known(gpu, "idle_s") && field_number(gpu, "idle_s", 0) >= 60) {
        bool is_wasted = json_is_true(json_object_get(gpu, "wasted"));
        format_duration((int64_t)(field_number(gpu, "idle_s", 0) * 1000), idle, sizeof(idle));
        *look = is_wasted ? LOOK_WARN : LOOK_DIM;
        return xasprintf("%sidle %s  %s", is_wasted ? "⚠ " : "", idle, name);
    }
    *look = LOOK_DIM;
    return take_ptr(name);
}

/* The first of its jobs, and the number of others; "" if it has none. */
static char *jobs_text(const json_t *gpu)
{
    const json_t *jobs = json_object_get(gpu, "jobs"), *job = json_array_get(jobs, 0);
    if (job == NULL)
        return xstrdup("");
    size_t others = json_array_size(jobs) - 1;
    _cleanup_free_ char *id = job_id(job);
    return others == 0 ? take_ptr(id) : xasprintf("%s+%zu", id, others);
}

static void draw_job(struct top *top, const json_t *gpu, const struct gpu_row *row, int y, int x)
{
    const json_t *job = json_array_get(json_object_get(gpu, "jobs"), 0);
    struct canvas *canvas = &top->canvas;
    if (job == NULL) {
        bool is_out = is_out_of_use(gpu) || is_away(gpu), is_taken = external_process(gpu) != NULL;
        enum look look = is_away(gpu) ? LOOK_BAD : is_out ? LOOK_HELD : is_taken ? LOOK_WARN : LOOK_DIM;
        const char *sign = is_away(gpu) ? "✗" : is_out ? "‖" : is_taken ? "!" : "free";
        (void)canvas_put(canvas, y, x, row->job_width, look, sign);
        return;
    }
    _cleanup_free_ char *shown = jobs_text(gpu), *user = field_shown(job, "user");
    (void)canvas_put(canvas, y, x, row->job_width, LOOK_GOOD, shown);
    (void)canvas_put(canvas, y, x + row->job_width + 1, USER_WIDTH, LOOK_PLAIN, user);
}

static size_t points_of(const struct top *top, const json_t *gpu, double points[LINE_POINTS])
{
    size_t index = 0, count = 0;
    json_t *past = NULL;
    const char *uuid = field_text(gpu, "uuid");
    json_array_foreach(top->model.past, index, past)
    {
        if (uuid == NULL || !field_is(past, "uuid", uuid))
            continue;
        const json_t *values = json_object_get(past, "utilization");
        for (size_t i = 0; i < json_array_size(values) && count < LINE_POINTS; i++) {
            const json_t *value = json_array_get(values, i);
            points[count++] = json_is_number(value) ? json_number_value(value) : GRAPH_UNKNOWN;
        }
    }
    return count;
}

static void draw_measures(struct top *top, const json_t *gpu, const struct gpu_row *row, int y, int *x)
{
    struct canvas *canvas = &top->canvas;
    double part = field_number(gpu, "utilization", 0), all = field_number(gpu, "memory_bytes", 0);
    enum look look = look_of_load(part);
    if (field_is_known(gpu, "utilization")) {
        graph_bar(canvas, top->prefs.graph, y, *x, row->bar, look, part);
        (void)canvas_printf(canvas, y, *x + row->bar, 5, LOOK_PLAIN, "%4.0f%%", part * 100);
    } else {
        (void)canvas_put_right(canvas, y, *x + row->bar, 5, LOOK_DIM, "-");
    }
    *x += row->bar + 5;
    _cleanup_free_ char *used = field_is_known(gpu, "memory_used_bytes")
                                    ? xasprintf("%.1f", field_number(gpu, "memory_used_bytes", 0) / GIB)
                                    : xstrdup("-");
    _cleanup_free_ char *memory = xasprintf("%s/%.0fG", used, all / GIB);
    (void)canvas_put_right(canvas, y, *x, 10, LOOK_PLAIN, memory);
    *x += 11;
    if (!top->layout.has_power)
        return;
    if (field_is_known(gpu, "temperature_c"))
        (void)canvas_printf(canvas, y, *x, 4, LOOK_PLAIN, "%3.0fC", field_number(gpu, "temperature_c", 0));
    if (field_is_known(gpu, "power_w"))
        (void)canvas_printf(canvas, y, *x + 5, 5, LOOK_PLAIN, "%4.0fW", field_number(gpu, "power_w", 0));
    *x += 11;
}

static void draw_gpu(struct top *top, const json_t *gpu, const struct gpu_row *row, int y, int x, int end)
{
    struct canvas *canvas = &top->canvas;
    enum look look = LOOK_DIM;
    _cleanup_free_ char *node = field_shown(gpu, "node");
    _cleanup_free_ char *index = top_has_nodes(top)
                                     ? xasprintf("%s:%" PRId64, node, field_integer(gpu, "index", 0))
                                     : xasprintf("%" PRId64, field_integer(gpu, "index", 0));
    (void)canvas_put_right(canvas, y, x, row->index_width, LOOK_TITLE, index);
    x += row->index_width + 1;
    draw_job(top, gpu, row, y, x);
    x += row->job_width + USER_WIDTH + 2;
    draw_measures(top, gpu, row, y, &x);
    if (row->line > 0) {
        double points[LINE_POINTS];
        size_t count = points_of(top, gpu, points);
        graph_line(canvas, top->prefs.graph, y, x, row->line, points, count);
        x += row->line + 1;
    }
    _cleanup_free_ char *note = note_of(top, gpu, &look);
    (void)canvas_put(canvas, y, x, end - x, look, note);
}

static struct gpu_row divide(const struct top *top, int width)
{
    struct gpu_row row = { .index_width = 2, .job_width = JOB_WIDTH_MIN };
    size_t i = 0;
    json_t *gpu = NULL;
    json_array_foreach(top->model.gpus, i, gpu)
    {
        int here = (top_has_nodes(top)
                           ? canvas_width(field_text(gpu, "node") == NULL ? "" : field_text(gpu, "node")) + 1
                           : 0) +
                   (field_integer(gpu, "index", 0) > 99 ? 3 : 2);
        row.index_width = here > row.index_width ? here : row.index_width;
        _cleanup_free_ char *shown = jobs_text(gpu);
        int job = canvas_width(shown);
        row.job_width = job > row.job_width ? job : row.job_width;
    }
    row.job_width = row.job_width > JOB_WIDTH_MAX ? JOB_WIDTH_MAX : row.job_width;
    row.index_width = row.index_width > width / 4 ? width / 4 : row.index_width;
    int left = width - row.index_width - 1 - (row.job_width + USER_WIDTH + 2) - 5 - 11 -
               (top->layout.has_power ? 11 : 0);
    row.bar = left - NOTE_MIN > BAR_MIN ? left - NOTE_MIN : BAR_MIN;
    if (top->layout.has_line && row.bar > BAR_MIN * 2) {
        row.line = row.bar * 3 / 5;
        row.line = row.line > GRAPH_MAX ? GRAPH_MAX : row.line;
        row.bar -= row.line + 1;
    }
    row.bar = row.bar > BAR_MAX ? BAR_MAX : row.bar;
    return row;
}

/* In columns from top to bottom; the rows scroll to the selection if not all fit. */
static void draw_rows(struct top *top, const struct rect *inside)
{
    size_t count = json_array_size(top->model.gpus), columns = (size_t)top->layout.gpu_columns;
    size_t lines = (count + columns - 1) / columns, height = (size_t)inside->height;
    int width = inside->width / (int)columns;
    struct gpu_row row = divide(top, width - 1);
    if (lines == 0)
        return;
    size_t first = top_scroll_to(0, top->view.gpu_row % lines, lines, height);
    for (size_t i = 0; i < count; i++) {
        size_t line = i % lines;
        if (line < first || line >= first + height)
            continue;
        int y = inside->y + (int)(line - first), x = inside->x + (int)(i / lines) * width;
        draw_gpu(top, json_array_get(top->model.gpus, i), &row, y, x, x + width - 1);
        const struct rect area = { y, x, 1, width };
        top_hit(top, &area, HIT_GPU, (int64_t)i);
        if (top->view.focus == PANEL_GPUS && i == top->view.gpu_row)
            canvas_select(&top->canvas, y, x, width - 1);
    }
}

void top_draw_gpus(struct top *top, const struct rect *area)
{
    size_t count = json_array_size(top->model.gpus);
    const json_t *first = json_array_get(top->model.gpus, 0);
    _cleanup_free_ char *model = count == 0 ? xstrdup("") : field_shown(first, "model");
    _cleanup_free_ char *title = xasprintf("1 GPUs %s", model);
    bool is_plain = !top->layout.is_cells;
    const char *right = is_plain && top->layout.has_line ? "[last 10 min]" : NULL;
    struct rect inside = top_draw_frame(top, area, top->view.focus == PANEL_GPUS, title, right);
    if (inside.height == 0)
        return;
    if (top->model.gpus == NULL)
        (void)canvas_put(
            &top->canvas, inside.y, inside.x + 1, inside.width - 1, LOOK_DIM, "waiting for mgpud ...");
    else if (count == 0)
        (void)canvas_put(&top->canvas, inside.y, inside.x + 1, inside.width - 1, LOOK_DIM,
            "no GPUs found; run mgpu doctor");
    else if (is_plain)
        draw_rows(top, &inside);
    else
        top_draw_cells(top, &inside);
}
