/* SPDX-License-Identifier: MIT */
/* One panel per measure, one line per variant: the interval of its ratio on a logarithmic axis around 1. */
#include <math.h>
#include <stdio.h>

#include "lab/sim/svg.h"
#include "lab/sim/tune/tune.h"

#define LEFT           190.0
#define PANEL          230.0
#define GAP            24.0
#define TOP            70.0
#define ROW            24.0
#define RATIO          4.0 // at either end of the axis
#define DOT            4.0
#define BETTER         "#2f855a"
#define WORSE          "#b03030"
#define UNCLEAR        "#777777"
#define NAME_MAX_CHARS 60

static double place(const struct panel *panel, double ratio)
{
    double part = log(ratio > 0 ? ratio : 1 / RATIO) / log(RATIO);
    part = part < -1 ? -1 : part > 1 ? 1 : part;
    return panel->x + panel->width * (1 + part) / 2;
}

static void draw_axis(struct buffer *out, const struct panel *panel, const char *name)
{
    static const struct {
        double ratio;
        const char *text;
    } ticks[] = { { 0.25, "1/4" }, { 0.5, "1/2" }, { 1, "as now" }, { 2, "2" }, { 4, "4" } };
    for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
        double x = place(panel, ticks[i].ratio);
        svg_line(out, x, panel->y, x, panel->y + panel->height + 4, i == 2 ? "#333333" : "#dddddd");
        svg_text(out, x, panel->y + panel->height + 18, "middle", ticks[i].text);
    }
    svg_text(out, panel->x + panel->width / 2, panel->y - 12, "middle", name);
}

static void draw_ratio(
    struct buffer *out, const struct panel *panel, double y, const struct tune_ratio *ratio)
{
    static const char *const colours[] = { WORSE, UNCLEAR, BETTER };
    const char *colour = colours[tune_verdict(ratio) + 1];
    buffer_printf(out,
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\"/>\n"
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n",
        place(panel, ratio->low), y, place(panel, ratio->high), y, colour, place(panel, ratio->value), y, DOT,
        colour);
}

int tune_draw(const struct tune_report *report, const char *path, struct error *err)
{
    const struct tune_comparison *comparison = report->comparison;
    _cleanup_buffer_ struct buffer out = { 0 };
    char title[200];
    double height = ROW * (double)(comparison->n_variants - 1);
    (void)snprintf(title, sizeof(title), "%.90s: other settings, shorter to the left", report->trace);
    svg_open(&out, LEFT + TUNE_MEASURES * (PANEL + GAP), TOP + height + 40, title);
    for (enum tune_measure m = 0; m < TUNE_MEASURES; m++) {
        struct panel panel = { LEFT + m * (PANEL + GAP), TOP, PANEL, height };
        draw_axis(&out, &panel, tune_measure_names[m]);
        for (size_t v = 1; v < comparison->n_variants; v++)
            draw_ratio(&out, &panel, TOP + ROW * ((double)v - 0.5), &comparison->results[v].ratios[m]);
    }
    for (size_t v = 1; v < comparison->n_variants; v++) {
        char name[NAME_MAX_CHARS + 1];
        (void)snprintf(name, sizeof(name), "%.60s", report->variants[v].text);
        svg_text(&out, LEFT - 14, TOP + ROW * ((double)v - 0.5) + 4, "end", name);
    }
    return svg_write(&out, path, err);
}
