/* SPDX-License-Identifier: MIT */
/* One row per node, one cell per GPU: full, busy, idle, free, external processes, out of use, lost. */
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/maintenance_text.h"
#include "cli/top/draw.h"

#define NAME_WIDTH 16

struct mark {
    const char *glyph;
    enum look look;
    const char *meaning;
};

static const struct mark marks[] = {
    { "█", LOOK_GOOD, "busy" },
    { "▒", LOOK_WAIT, "idle" },
    { "·", LOOK_DIM, "free" },
    { "!", LOOK_WARN, "external" },
    { "‖", LOOK_HELD, "paused" },
    { "✗", LOOK_BAD, "lost" },
};
enum { MARK_BUSY, MARK_IDLE, MARK_FREE, MARK_EXTERNAL, MARK_PAUSED, MARK_LOST, MARKS };

static bool is_used_externally(const json_t *gpu)
{
    size_t index = 0;
    json_t *process = NULL;
    json_array_foreach(json_object_get(gpu, "processes"), index, process)
    {
        if (!field_is_known(process, "job"))
            return true;
    }
    return false;
}

static int mark_of(const json_t *gpu)
{
    static const struct {
        const char *state;
        int mark;
    } states[] = { { "lost", MARK_LOST }, { "node_down", MARK_LOST }, { "drained", MARK_LOST },
        { "paused", MARK_PAUSED }, { "node_drained", MARK_PAUSED }, { "unclean", MARK_PAUSED },
        { "refused", MARK_PAUSED }, { "released", MARK_PAUSED } };
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (field_is(gpu, "state", states[i].state))
            return states[i].mark;
    if (field_is(gpu, "state", "free"))
        return is_used_externally(gpu) ? MARK_EXTERNAL : MARK_FREE;
    double idle = 0;
    return field_measured(gpu, "idle_s", &idle) && idle >= 60 ? MARK_IDLE : MARK_BUSY;
}

/* Draws the cells of a node's GPUs and "5/8"; returns the columns used. */
static int draw_cells(struct top *top, int y, int x, int width, const char *node)
{
    size_t index = 0;
    json_t *gpu = NULL;
    int used = 0, all = 0, at = 0;
    json_array_foreach(top->model.gpus, index, gpu)
    {
        if (!field_is(gpu, "node", node))
            continue;
        int mark = mark_of(gpu);
        used += mark == MARK_BUSY || mark == MARK_IDLE;
        all++;
        if (at < width - 8)
            at += canvas_put(&top->canvas, y, x + at, 1, marks[mark].look, marks[mark].glyph);
    }
    return at + canvas_printf(&top->canvas, y, x + at, width - at, LOOK_PLAIN, "  %d/%d", used, all);
}

static void draw_meanings(struct top *top, int y, int x, int width)
{
    int at = x;
    for (int i = 0; i < MARKS && at < x + width; i++) {
        at += canvas_put(&top->canvas, y, at, x + width - at, marks[i].look, marks[i].glyph);
        at += canvas_printf(&top->canvas, y, at, x + width - at, LOOK_DIM, " %s  ", marks[i].meaning);
    }
}

void top_draw_cells(struct top *top, const struct rect *area)
{
    size_t count = json_array_size(top->model.nodes), height = (size_t)area->height;
    size_t first = top_scroll_to(0, top->view.node_row, count, height);
    for (size_t i = first; i < count && i - first < height; i++) {
        const json_t *node = json_array_get(top->model.nodes, i);
        const char *name = field_text(node, "name");
        int y = area->y + (int)(i - first);
        bool is_up = field_is(node, "state", "up");
        if (name == NULL)
            continue;
        (void)canvas_put(&top->canvas, y, area->x, NAME_WIDTH, is_up ? LOOK_TITLE : LOOK_BAD, name);
        (void)draw_cells(top, y, area->x + NAME_WIDTH + 1, area->width - NAME_WIDTH - 1, name);
        const struct rect row = { y, area->x, 1, area->width };
        top_hit(top, &row, HIT_NODE, (int64_t)i);
        if (top->view.focus == PANEL_GPUS && i == top->view.node_row)
            canvas_select(&top->canvas, y, area->x, area->width);
    }
}

static void draw_node(struct top *top, const json_t *node, int y, const struct rect *inside)
{
    const struct view view = top_list_view(top);
    const char *name = field_text(node, "name");
    bool is_up = field_is(node, "state", "up");
    int end = inside->x + inside->width, x = inside->x;
    if (name == NULL)
        return;
    (void)canvas_put(&top->canvas, y, x, NAME_WIDTH, LOOK_TITLE, name);
    x += NAME_WIDTH + 1;
    x += draw_cells(top, y, x, (end - x) / 2, name) + 2;
    _cleanup_free_ char *state = maintenance_text(&view, node, is_up ? "up" : field_text(node, "state"));
    x += canvas_put(&top->canvas, y, x, end - x, is_up ? LOOK_GOOD : LOOK_BAD, state) + 2;
    _cleanup_free_ char *backend = field_shown(node, "gpu_backend");
    _cleanup_free_ char *version = field_shown(node, "version");
    (void)canvas_printf(&top->canvas, y, x, end - x, LOOK_DIM, "%" PRId64 " CPUs  %.0fG  %s  mgpu %s",
        field_integer(node, "cpus", 0), field_number(node, "memory_bytes", 0) / (1 << 30), backend, version);
}

void top_draw_nodes(struct top *top, const struct rect *area)
{
    size_t count = json_array_size(top->model.nodes);
    _cleanup_free_ char *title = xasprintf("Nodes %zu", count);
    struct rect inside = top_draw_frame(top, area, true, title, "[Esc back]");
    if (inside.height <= 1)
        return;
    draw_meanings(top, inside.y, inside.x, inside.width);
    size_t height = (size_t)inside.height - 1;
    size_t first = top_scroll_to(top->view.list_offset, top->view.node_row, count, height);
    for (size_t i = first; i < count && i - first < height; i++) {
        int y = inside.y + 1 + (int)(i - first);
        draw_node(top, json_array_get(top->model.nodes, i), y, &inside);
        const struct rect row = { y, inside.x, 1, inside.width };
        top_hit(top, &row, HIT_NODE, (int64_t)i);
        if (i == top->view.node_row)
            canvas_select(&top->canvas, y, inside.x, inside.width);
    }
}
