/* SPDX-License-Identifier: MIT */
/* The time for which a job ran on the CPU before it had its GPUs. */
#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/show/show_page.h"
#include "cli/term/time_text.h"

static void append_time(struct buffer *out, const struct page *page, const char *words, const char *name)
{
    char text[64];
    int64_t when = time_parse(field_text(page->job, name));
    if (when == 0)
        return;
    time_format(when, page->view.now_ms, page->view.times, text, sizeof(text));
    buffer_printf(out, "%s%s", words, text);
}

static void append_span(
    struct buffer *out, const struct page *page, const char *before, const char *name, const char *after)
{
    char span[32];
    double seconds = 0;
    if (!field_measured(page->job, name, &seconds))
        return;
    format_duration((int64_t)(seconds * 1000), span, sizeof(span));
    buffer_printf(out, "%s%s%s", before, span, after);
}

void show_print_early(const struct page *page)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    double seconds;
    bool has_gpus = field_is_known(page->job, "gpus_at");
    if (field_is_known(page->job, "early_start")) {
        _cleanup_free_ char *start = field_shown(page->job, "early_start");
        show_print_line(page, "early start", start);
    }
    if (!field_measured(page->job, "early_seconds", &seconds))
        return;
    bool is_over = has_gpus || !field_is(page->job, "state", "running");
    append_time(&text, page, is_over ? "on the CPU from " : "on the CPU since ", "started_at");
    append_span(&text, page, " (", "early_seconds", ")");
    append_time(&text, page, ", with its GPUs from ", "gpus_at");
    append_span(&text, page, ", ", "saved_seconds", " saved");
    if (is_over && !has_gpus)
        buffer_append_text(&text, "; it ended without its GPUs");
    show_print_line(page, "early", buffer_text(&text));
}
