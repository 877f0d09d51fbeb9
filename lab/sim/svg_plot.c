/* SPDX-License-Identifier: MIT */
/* Three panels. Curves are reduced to one value per pixel, the maximum (queue) or the mean (GPUs) within
 * it. */
#include "lab/sim/svg_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lab/sim/samples.h"
#include "lab/sim/svg.h"

#define WIDTH  1100.0
#define LEFT   80.0
#define PLOT   990.0
#define HIGH   220.0
#define PIXELS 990U

struct columns {
    double highest_waiting[PIXELS];
    double mean_gpus[PIXELS];
};

static int64_t end_of(const struct engine *engine)
{
    return engine->n_curve > 0 ? engine->curve[engine->n_curve - 1].at_ms : 0;
}

/* Spreads each piece of the step curve over the pixels that it covers. */
static void fill_columns(const struct engine *engine, struct columns *columns)
{
    double per_pixel = (double)end_of(engine) / PIXELS;
    for (size_t i = 0; i + 1 < engine->n_curve && per_pixel > 0; i++) {
        const struct curve_point *point = &engine->curve[i];
        double from = (double)point->at_ms / per_pixel, to = (double)engine->curve[i + 1].at_ms / per_pixel;
        for (size_t x = (size_t)from; x < PIXELS && (double)x < to; x++) {
            double begin = from > (double)x ? from : (double)x, end = to < (double)x + 1 ? to : (double)x + 1;
            columns->mean_gpus[x] += (double)point->gpu_milli / SHARE_WHOLE * (end - begin);
            if ((double)point->waiting > columns->highest_waiting[x])
                columns->highest_waiting[x] = (double)point->waiting;
        }
    }
}

static double highest(const double *values)
{
    double most = 0;
    for (size_t x = 0; x < PIXELS; x++)
        most = values[x] > most ? values[x] : most;
    return most;
}

static void draw_curve(
    struct buffer *out, const struct panel *panel, const double *values, double top, const char *colour)
{
    buffer_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\" points=\"", colour);
    for (size_t x = 0; x < PIXELS; x++)
        buffer_printf(out, "%.1f,%.1f ", panel->x + (double)x * panel->width / PIXELS,
            panel->y + panel->height * (1 - values[x] / top));
    buffer_append_text(out, "\"/>\n");
}

static void draw_capacity(
    const struct engine *engine, struct buffer *out, const struct panel *panel, double top)
{
    char text[64];
    double y = panel->y + panel->height * (1 - (double)engine->nodes->gpus / top);
    buffer_printf(out,
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#b03030\" stroke-dasharray=\"6 "
        "4\"/>\n",
        panel->x, y, panel->x + panel->width, y);
    (void)snprintf(text, sizeof(text), "all %llu GPUs", (unsigned long long)engine->nodes->gpus);
    svg_text(out, panel->x + panel->width - 4, y - 4, "end", text);
}

/* A logarithmic axis from one second on, in round times; returns the powers of ten that it covers. */
static double draw_wait_axis(struct buffer *out, const struct panel *panel, double longest)
{
    static const struct {
        double seconds;
        const char *text;
    } ticks[] = { { 1, "1s or less" }, { 10, "10s" }, { 60, "1m" }, { 600, "10m" }, { 3600, "1h" },
        { 6 * 3600, "6h" }, { 86400, "1d" }, { 3 * 86400, "3d" }, { 10 * 86400, "10d" },
        { 30 * 86400, "30d" }, { 100 * 86400, "100d" }, { 1000 * 86400.0, "1000d" } };
    double decades = log10(longest > 10 ? longest * 1.1 : 10);
    (void)svg_value_axis(out, panel, 100, "jobs that waited no longer, %");
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]) && log10(ticks[i].seconds) <= decades; i++) {
        double x = panel->x + panel->width * log10(ticks[i].seconds) / decades;
        svg_line(out, x, panel->y, x, panel->y + panel->height + 4, "#dddddd");
        svg_text(out, x, panel->y + panel->height + 18, "middle", ticks[i].text);
    }
    return decades;
}

/* Waiting times on a logarithmic axis; those below a second stand at its left end. */
static void draw_waits(const struct engine *engine, struct buffer *out, const struct panel *panel)
{
    _cleanup_(samples_clear) struct samples waits = { 0 };
    struct summary summary;
    for (size_t i = 0; i < engine->workload->n_jobs; i++)
        if (engine->results[i].end_ms >= 0)
            samples_add(&waits, (double)engine->results[i].wait_ms / 1000);
    samples_summarize(&waits, &summary);
    double decades = draw_wait_axis(out, panel, summary.max);
    svg_line(out, panel->x, panel->y + panel->height, panel->x + panel->width, panel->y + panel->height,
        "#333333");
    buffer_append_text(out, "<polyline fill=\"none\" stroke=\"#2b6cb0\" stroke-width=\"1.6\" points=\"");
    size_t step = waits.count / PIXELS + 1;
    for (size_t i = 0; i < waits.count;
         i += i + step < waits.count || i + 1 == waits.count ? step : waits.count - 1 - i) {
        double seconds = waits.values[i] > 1 ? waits.values[i] : 1;
        buffer_printf(out, "%.1f,%.1f ", panel->x + panel->width * log10(seconds) / decades,
            panel->y + panel->height * (1 - (double)(i + 1) / (double)waits.count));
    }
    buffer_append_text(out, "\"/>\n");
}

int svg_plot(const struct engine *engine, const char *title, const char *path, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ struct columns *columns = xcalloc(1, sizeof(*columns));
    struct panel panel = { .x = LEFT, .y = 60, .width = PLOT, .height = HIGH };
    fill_columns(engine, columns);
    svg_open(&out, WIDTH, 3 * (HIGH + 70) + 20, title);
    double top =
        svg_value_axis(&out, &panel, highest(columns->highest_waiting), "jobs waiting (highest per pixel)");
    svg_time_axis(&out, &panel, end_of(engine));
    draw_curve(&out, &panel, columns->highest_waiting, top, "#2b6cb0");
    panel.y += HIGH + 70;
    top = svg_value_axis(&out, &panel, (double)engine->nodes->gpus, "GPUs in use (mean per pixel)");
    svg_time_axis(&out, &panel, end_of(engine));
    draw_capacity(engine, &out, &panel, top);
    draw_curve(&out, &panel, columns->mean_gpus, top, "#2f855a");
    panel.y += HIGH + 70;
    draw_waits(engine, &out, &panel);
    return svg_write(&out, path, err);
}
