/* SPDX-License-Identifier: MIT */
#include "cli/show/progress_text.h"

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"

#define CELLS 8

/* 100% is shown only when complete, and a cell is filled only when its part is completely done. */
static int part_of(double progress, int whole)
{
    double part = progress < 0 ? 0 : progress > 1 ? 1 : progress;
    return (int)(part * whole + 1e-9);
}

char *progress_bar(const struct screen *screen, const json_t *job)
{
    struct buffer out = { 0 };
    if (!field_is_known(job, "progress"))
        return NULL;
    double progress = field_number(job, "progress", 0);
    int full = part_of(progress, CELLS);
    if (!screen->is_utf8)
        buffer_append_text(&out, "[");
    for (int i = 0; i < CELLS; i++)
        buffer_append_text(&out, i < full ? (screen->is_utf8 ? "█" : "#") : (screen->is_utf8 ? "░" : "."));
    buffer_printf(&out, "%s %d%%", screen->is_utf8 ? "" : "]", part_of(progress, 100));
    return buffer_take(&out);
}

char *progress_sentence(const struct screen *screen, const json_t *job)
{
    _cleanup_free_ char *bar = progress_bar(screen, job);
    if (!field_is_known(job, "status"))
        return take_ptr(bar);
    _cleanup_free_ char *status = field_shown(job, "status");
    return bar != NULL ? xasprintf("%s  %s", bar, status) : take_ptr(status);
}
