/* SPDX-License-Identifier: MIT */
/* Axes use the smallest round step that keeps labels apart. */
#include "lab/sim/svg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "lab/sim/json_text.h"

#define SECOND_MS   1000LL
#define MINUTE_MS   (60 * SECOND_MS)
#define HOUR_MS     (60 * MINUTE_MS)
#define DAY_MS      (24 * HOUR_MS)
#define LABEL_WIDTH 80.0 // pixels between two times at least
#define LABEL_LINES 25.0 // pixels between two values at least

void svg_open(struct buffer *out, double width, double height, const char *title)
{
    buffer_printf(out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width, height, width, height);
    buffer_append_text(out, "<title>");
    xml_text(out, title);
    buffer_append_text(out, "</title>\n<text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\">");
    xml_text(out, title);
    buffer_append_text(out, "</text>\n");
}

void svg_text(struct buffer *out, double x, double y, const char *anchor, const char *text)
{
    buffer_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    xml_text(out, text);
    buffer_append_text(out, "</text>\n");
}

void svg_line(struct buffer *out, double x1, double y1, double x2, double y2, const char *colour)
{
    buffer_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2,
        y2, colour);
}

void svg_duration(int64_t ms, char *text, size_t size)
{
    static const struct {
        int64_t ms;
        const char *letter;
    } units[] = { { DAY_MS, "d" }, { HOUR_MS, "h" }, { MINUTE_MS, "m" }, { SECOND_MS, "s" } };
    _cleanup_buffer_ struct buffer out = { 0 };
    unsigned parts = 0;
    for (size_t i = 0; i < 4 && parts < 2; i++) {
        if (ms < units[i].ms)
            continue;
        buffer_printf(&out, "%s%lld%s", parts > 0 ? " " : "", (long long)(ms / units[i].ms), units[i].letter);
        ms %= units[i].ms;
        parts++;
    }
    (void)snprintf(text, size, "%s", parts == 0 ? "0" : buffer_text(&out));
}

void svg_time_axis(struct buffer *out, const struct panel *panel, int64_t end_ms)
{
    static const int64_t steps[] = { SECOND_MS, 2 * SECOND_MS, 5 * SECOND_MS, 10 * SECOND_MS, 30 * SECOND_MS,
        MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS, 2 * HOUR_MS,
        3 * HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS, DAY_MS, 2 * DAY_MS, 5 * DAY_MS, 10 * DAY_MS, 20 * DAY_MS,
        50 * DAY_MS };
    size_t last = sizeof(steps) / sizeof(*steps) - 1, at = 0;
    double per_ms = end_ms > 0 ? panel->width / (double)end_ms : 0;
    while (at < last && (double)steps[at] * per_ms < LABEL_WIDTH)
        at++;
    int64_t step_ms = steps[at];
    while ((double)step_ms * per_ms < LABEL_WIDTH && end_ms > 0)
        step_ms *= 2;
    double bottom = panel->y + panel->height;
    for (int64_t ms = 0; ms <= end_ms; ms += step_ms) {
        char label[32];
        double x = panel->x + (double)ms * per_ms;
        svg_duration(ms, label, sizeof(label));
        svg_line(out, x, panel->y, x, bottom + 4, "#dddddd");
        svg_text(out, x, bottom + 18, "middle", label);
    }
    svg_line(out, panel->x, bottom, panel->x + panel->width, bottom, "#333333");
}

double svg_value_axis(struct buffer *out, const struct panel *panel, double most, const char *title)
{
    double step = 1;
    if (most <= 0)
        most = 1;
    for (unsigned i = 0; panel->height * step / most < LABEL_LINES; i++)
        step *= i % 3 == 1 ? 2.5 : 2;
    double top = ceil(most / step) * step;
    for (double value = 0; value <= top + step / 2; value += step) {
        char label[32];
        double y = panel->y + panel->height * (1 - value / top);
        (void)snprintf(label, sizeof(label), "%.10g", value);
        svg_line(out, panel->x - 4, y, panel->x + panel->width, y, "#dddddd");
        svg_text(out, panel->x - 8, y + 4, "end", label);
    }
    svg_line(out, panel->x, panel->y, panel->x, panel->y + panel->height, "#333333");
    svg_text(out, panel->x, panel->y - 8, "start", title);
    return top;
}

const char *svg_colour(size_t number)
{
    static const char *const colours[SVG_COLOURS] = { "#3b6fb6", "#e07b39", "#3f9b58", "#c94a53", "#8560a8",
        "#8c6d4f", "#d685b8", "#b5a02c", "#2ba3b4", "#1f3f66", "#8fbf6a", "#e8b04a" };
    return colours[number % SVG_COLOURS];
}

int svg_write(struct buffer *out, const char *path, struct error *err)
{
    buffer_append_text(out, "</svg>\n");
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot write %.300s", path);
    bool is_short = fwrite(out->bytes, 1, out->length, file) != out->length;
    if (fclose(file) != 0 || is_short)
        return error_set_errno(err, -EIO, "cannot write %.300s", path);
    return 0;
}
