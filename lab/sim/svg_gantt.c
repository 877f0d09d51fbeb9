/* SPDX-License-Identifier: MIT */
/*
 * One row per GPU; above 256 GPUs one row per node, with a thin lane for every GPU. Adjacent GPUs of one job
 * are one bar. The colour is the user's; a trace without users shows groups. Users with the most GPU time
 * have distinct colours, all others are grey.
 */
#include "lab/sim/svg_gantt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lab/sim/json_text.h"
#include "lab/sim/svg.h"

#define ROWS_OF_GPUS_MAX 256U
#define LEGEND_MAX       SVG_COLOURS
#define OTHERS           "#b8bcc2"
#define WIDTH            1400.0
#define LEFT             90.0
#define RIGHT            190.0
#define TOP              40.0
#define BOTTOM           45.0

struct gantt {
    const struct engine *engine;
    struct panel panel;
    double lane;      // height of one GPU
    double *node_top; // of each node
    bool is_by_group; // colours
    size_t *owners;   // the greediest, so many
    size_t n_owners, n_others;
    int64_t end_ms;
};

static const struct names *owners(const struct gantt *gantt)
{
    const struct workload *workload = gantt->engine->workload;
    return gantt->is_by_group ? &workload->groups : &workload->users;
}

static uint32_t owner_of(const struct gantt *gantt, uint32_t job)
{
    const struct sim_job *of = &gantt->engine->workload->jobs[job];
    return gantt->is_by_group ? of->group : of->user;
}

/* By the GPU time that they had, the greediest first. */
static void rank_owners(struct gantt *gantt)
{
    const struct engine *engine = gantt->engine;
    size_t count = owners(gantt)->count;
    _cleanup_free_ double *used = xcalloc(count + 1, sizeof(double));
    for (size_t i = 0; i < engine->n_segments; i++) {
        const struct segment *segment = &engine->segments[i];
        int64_t end_ms = segment->end_ms < 0 ? gantt->end_ms : segment->end_ms;
        used[owner_of(gantt, segment->job)] += (double)(end_ms - segment->start_ms) + 1;
    }
    for (size_t i = 0; i < count; i++)
        gantt->n_others += used[i] > 0;
    gantt->owners = xcalloc(LEGEND_MAX, sizeof(*gantt->owners));
    while (gantt->n_owners < LEGEND_MAX) {
        size_t most = 0;
        for (size_t i = 1; i < count; i++)
            most = used[i] > used[most] ? i : most;
        if (count == 0 || used[most] <= 0)
            return;
        used[most] = 0;
        gantt->owners[gantt->n_owners++] = most;
        gantt->n_others--;
    }
}

static const char *colour_of(const struct gantt *gantt, size_t owner)
{
    for (size_t i = 0; i < gantt->n_owners; i++)
        if (gantt->owners[i] == owner)
            return svg_colour(i);
    return OTHERS;
}

static void lay_out(struct gantt *gantt)
{
    const struct sim_nodes *nodes = gantt->engine->nodes;
    bool is_per_gpu = nodes->gpus <= ROWS_OF_GPUS_MAX;
    gantt->lane = is_per_gpu ? 14 : nodes->gpus <= 4096 ? 2 : 0.5;
    double y = TOP, gap = is_per_gpu ? 4 : 1;
    gantt->node_top = xcalloc(nodes->count + 1, sizeof(double));
    for (size_t i = 0; i < nodes->count; i++) {
        gantt->node_top[i] = y;
        y += nodes->items[i].gpus * gantt->lane + gap;
    }
    gantt->panel =
        (struct panel){ .x = LEFT, .y = TOP, .width = WIDTH - LEFT - RIGHT, .height = y > TOP ? y - TOP : 1 };
    for (size_t i = 0; i < gantt->engine->workload->n_jobs; i++)
        if (gantt->engine->results[i].end_ms > gantt->end_ms)
            gantt->end_ms = gantt->engine->results[i].end_ms;
    gantt->is_by_group = gantt->engine->workload->users.count < 2;
    rank_owners(gantt);
}

static void draw_names(const struct gantt *gantt, struct buffer *out)
{
    const struct sim_nodes *nodes = gantt->engine->nodes;
    double last = -100;
    for (size_t i = 0; i < nodes->count; i++)
        for (uint32_t gpu = 0; gpu < nodes->items[i].gpus; gpu++) {
            double y = gantt->node_top[i] + (gpu + 0.5) * gantt->lane + 4;
            if (y - last < 13 || (gpu > 0 && nodes->gpus > ROWS_OF_GPUS_MAX))
                continue;
            char name[64];
            if (nodes->gpus > ROWS_OF_GPUS_MAX)
                (void)snprintf(name, sizeof(name), "%.40s", nodes->items[i].name);
            else
                (void)snprintf(name, sizeof(name), "%.40s:%u", nodes->items[i].name, gpu);
            svg_text(out, LEFT - 6, y, "end", name);
            last = y;
        }
}

static void draw_bar(
    const struct gantt *gantt, struct buffer *out, const struct segment *first, uint32_t lanes)
{
    const struct engine *engine = gantt->engine;
    const struct sim_job *job = &engine->workload->jobs[first->job];
    const struct job_result *result = &engine->results[first->job];
    double scale = gantt->end_ms > 0 ? gantt->panel.width / (double)gantt->end_ms : 0;
    int64_t end_ms = first->end_ms < 0 ? gantt->end_ms : first->end_ms;
    double width = (double)(end_ms - first->start_ms) * scale, height = lanes * gantt->lane;
    char waited[32], ran[32], start[32];
    svg_duration(result->wait_ms, waited, sizeof(waited));
    svg_duration(end_ms - first->start_ms, ran, sizeof(ran));
    svg_duration(first->start_ms, start, sizeof(start));
    if (first->share > 0)
        height *= first->share / 1000.0;
    buffer_printf(out,
        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"%s><title>job %u, ",
        LEFT + (double)first->start_ms * scale, gantt->node_top[first->node] + first->gpu * gantt->lane,
        width > 0.2 ? width : 0.2, height, colour_of(gantt, owner_of(gantt, first->job)),
        gantt->lane > 4 ? " stroke=\"#ffffff\" stroke-width=\"0.5\"" : "", first->job + 1);
    xml_text(out, owners(gantt)->items[owner_of(gantt, first->job)]);
    buffer_printf(out, ": %u GPU%s from %s for %s, waited %s</title></rect>\n", job->gpus,
        job->gpus == 1 ? "" : "s", start, ran, waited);
}

static size_t draw_bars(const struct gantt *gantt, struct buffer *out)
{
    const struct engine *engine = gantt->engine;
    size_t bars = 0;
    for (size_t i = 0, next; i < engine->n_segments; i = next) {
        const struct segment *first = &engine->segments[i];
        for (next = i + 1; next < engine->n_segments; next++) {
            const struct segment *other = &engine->segments[next];
            if (other->job != first->job || other->start_ms != first->start_ms ||
                other->node != first->node || other->share != 0 || other->gpu != first->gpu + (next - i))
                break;
        }
        if (out != NULL)
            draw_bar(gantt, out, first, (uint32_t)(next - i));
        bars++;
    }
    return bars;
}

static double draw_legend_row(struct buffer *out, double y, const char *colour, const char *text)
{
    buffer_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n",
        WIDTH - RIGHT + 16, y - 10, colour);
    svg_text(out, WIDTH - RIGHT + 34, y, "start", text);
    return y + 18;
}

static void draw_legend(const struct gantt *gantt, struct buffer *out)
{
    const struct names *names = owners(gantt);
    double y = TOP + 10;
    char others[40];
    svg_text(
        out, WIDTH - RIGHT + 16, y, "start", gantt->is_by_group ? "groups by GPU time" : "users by GPU time");
    y += 20;
    for (size_t i = 0; i < gantt->n_owners; i++)
        y = draw_legend_row(out, y, svg_colour(i), names->items[gantt->owners[i]]);
    (void)snprintf(others, sizeof(others), "%zu others", gantt->n_others);
    if (gantt->n_others > 0)
        (void)draw_legend_row(out, y, OTHERS, others);
}

int svg_gantt(const struct engine *engine, const char *title, const char *path, struct error *err)
{
    struct gantt gantt = { .engine = engine };
    size_t bars = draw_bars(&gantt, NULL);
    if (bars > GANTT_BARS_MAX)
        return error_set(err, -E2BIG, "--gantt would draw %zu bars; the limit is %u: use --max-jobs", bars,
            GANTT_BARS_MAX);
    _cleanup_buffer_ struct buffer out = { 0 };
    lay_out(&gantt);
    double height = gantt.panel.y + gantt.panel.height + BOTTOM;
    double legend = TOP + 40 + 18.0 * (double)(gantt.n_owners + 1);
    svg_open(&out, WIDTH, height > legend ? height : legend, title);
    svg_time_axis(&out, &gantt.panel, gantt.end_ms);
    draw_names(&gantt, &out);
    (void)draw_bars(&gantt, &out);
    draw_legend(&gantt, &out);
    free(gantt.node_top);
    free(gantt.owners);
    return svg_write(&out, path, err);
}
