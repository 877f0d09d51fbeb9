/* SPDX-License-Identifier: MIT */
#include "cli/show/usage_text.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"

#define GIB            (1024.0 * 1024 * 1024)
#define JOULES_PER_KWH 3600000.0
#define LEVELS         8
#define IDLE_SHOWN_S   60 // a shorter time may only be a pause between two steps

static void add_part(struct buffer *out)
{
    if (out->length > 0)
        buffer_append_text(out, ", ");
}

char *usage_sentence(const json_t *usage)
{
    struct buffer out = { 0 };
    double busy = 0, peak = 0, used = 0, all = 0, joules = 0;
    if (field_measured(usage, "utilization", &busy) && field_measured(usage, "utilization_peak", &peak))
        buffer_printf(&out, "%.0f %% busy (peak %.0f %%)", busy * 100, peak * 100);
    if (field_measured(usage, "gpu_memory_peak_bytes", &used) &&
        field_measured(usage, "gpu_memory_bytes", &all)) {
        add_part(&out);
        buffer_printf(&out, "at most %.1f of %.1f GiB", used / GIB, all / GIB);
    }
    if (field_measured(usage, "energy_joules", &joules)) {
        add_part(&out);
        if (joules < JOULES_PER_KWH / 100)
            buffer_printf(&out, "%.1f Wh", joules / JOULES_PER_KWH * 1000);
        else
            buffer_printf(&out, "%.2f kWh", joules / JOULES_PER_KWH);
    }
    return out.length == 0 ? NULL : buffer_take(&out);
}

char *usage_stray(const json_t *usage)
{
    if (!field_is_known(usage, "stray_gpus"))
        return NULL;
    _cleanup_free_ char *gpus = field_shown(usage, "stray_gpus");
    return xasprintf("uses GPU %s, which is not allocated to it", gpus);
}

char *usage_share(const json_t *usage)
{
    char cap[32];
    if (!field_is_known(usage, "share") || !field_is_known(usage, "gpu_memory_cap_bytes"))
        return NULL;
    _cleanup_free_ char *kind = field_shown(usage, "share"), *why = field_shown(usage, "share_why");
    format_size((uint64_t)field_integer(usage, "gpu_memory_cap_bytes", 0), cap, sizeof(cap));
    return xasprintf("%s of GPU memory, enforced by %s (%s)", cap, kind, why);
}

char *usage_excess(const json_t *usage)
{
    char used[32], cap[32];
    if (!field_is_known(usage, "gpu_memory_over_bytes"))
        return NULL;
    format_size((uint64_t)field_integer(usage, "gpu_memory_over_bytes", 0), used, sizeof(used));
    format_size((uint64_t)field_integer(usage, "gpu_memory_cap_bytes", 0), cap, sizeof(cap));
    return xasprintf("uses %s of GPU memory, and its share is %s; it will be ended", used, cap);
}

char *usage_idle_mark(const struct screen *screen, const json_t *job)
{
    char text[32];
    if (!field_is_known(job, "idle") || !field_is_known(job, "idle_s"))
        return NULL;
    format_duration((int64_t)(field_number(job, "idle_s", 0) * 1000), text, sizeof(text));
    return xasprintf("%s idle %s", screen->is_utf8 ? "⚠" : "!", text);
}

char *usage_idle(const json_t *job)
{
    char text[32], end[32] = "";
    double idle = 0, timeout = field_number(job, "idle_end_s", 0);
    if (!field_measured(job, "idle_s", &idle) || (idle < IDLE_SHOWN_S && !field_is_known(job, "idle")))
        return NULL;
    format_duration((int64_t)(idle * 1000), text, sizeof(text));
    if (timeout > 0)
        format_duration((int64_t)(timeout * 1000), end, sizeof(end));
    return xasprintf("has left its GPUs unused for %s%s%s%s", text,
        field_is(job, "idle", "yields") ? "; other jobs can preempt it" : "",
        timeout > 0 ? "; it will be ended after " : "", end);
}

char *usage_idle_gpus(const json_t *job)
{
    const json_t *times = json_object_get(json_object_get(job, "usage"), "gpus_idle_s");
    const json_t *granted = json_object_get(job, "granted");
    struct buffer gpus = { 0 };
    double least = 0;
    size_t index = 0, n_idle = 0;
    json_t *time = NULL;
    char text[32];
    json_array_foreach(times, index, time)
    {
        double idle = json_is_number(time) ? json_number_value(time) : 0;
        if (idle < IDLE_SHOWN_S)
            continue;
        least = n_idle == 0 || idle < least ? idle : least;
        buffer_printf(&gpus, "%s%" PRId64, n_idle++ > 0 ? "," : "",
            field_integer(json_array_get(granted, index), "index", 0));
    }
    if (n_idle == 0 || n_idle == json_array_size(times)) {
        buffer_clear(&gpus);
        return NULL;
    }
    format_duration((int64_t)(least * 1000), text, sizeof(text));
    char *sentence = xasprintf("has left GPU %s unused for %s", buffer_text(&gpus), text);
    buffer_clear(&gpus);
    return sentence;
}

const char *usage_bar(const struct screen *screen, int64_t percent)
{
    static const char *const blocks[LEVELS] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const ascii[LEVELS] = { "_", ".", ":", "-", "=", "+", "*", "#" };
    size_t i = (size_t)(percent < 0 ? 0 : percent > 100 ? 100 : percent) * (LEVELS - 1) / 100;
    return screen->is_utf8 ? blocks[i] : ascii[i];
}

static const char *level(const struct screen *screen, const json_t *percent)
{
    return json_is_integer(percent) ? usage_bar(screen, json_integer_value(percent)) : " ";
}

static bool has_values(const json_t *timeline, size_t which)
{
    size_t index = 0;
    json_t *bucket = NULL;
    json_array_foreach(
        timeline, index, bucket) if (json_is_integer(json_array_get(bucket, which))) return true;
    return false;
}

void usage_print_timeline(const struct screen *screen, const json_t *usage, FILE *out)
{
    static const char *const names[] = { "busy", "memory", "power" };
    const json_t *timeline = json_object_get(usage, "timeline");
    char span[32];
    if (json_array_size(timeline) == 0)
        return;
    for (size_t which = 0; which < 3; which++) {
        size_t index = 0;
        json_t *bucket = NULL;
        if (!has_values(timeline, which))
            continue;
        (void)fprintf(out, "  %-7s", names[which]);
        json_array_foreach(timeline, index, bucket)(void)
            fputs(level(screen, json_array_get(bucket, which)), out);
        (void)fputc('\n', out);
    }
    format_duration(field_integer(usage, "bucket_seconds", 1) * 1000, span, sizeof(span));
    (void)fprintf(out, "  %-7sone column is %s; bottom 0 %%, top 100 %%\n", "", span);
}
