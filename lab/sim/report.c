/* SPDX-License-Identifier: MIT */
/*
 * The JSON is written in a fixed order with a fixed number of digits, so that equal schedules give equal
 * bytes. Values that depend on the machine are separate, under "timing", and can be omitted.
 */
#include "lab/sim/report.h"

#include <stddef.h>

#include "base/buffer.h"
#include "base/parse.h"
#include "lab/sim/json_text.h"

/* A figure of struct metrics: its key and where it is. */
struct figure {
    const char *key;
    size_t offset;
    int digits;
};

#define FIGURE(key_, member_, digits_)                                                                       \
    {                                                                                                        \
        key_, offsetof(struct metrics, member_), digits_                                                     \
    }

static const struct figure figures[] = {
    FIGURE("avg_jct_s", jct_s.mean, 3),
    FIGURE("median_jct_s", jct_s.median, 3),
    FIGURE("p90_jct_s", jct_s.p90, 3),
    FIGURE("p99_jct_s", jct_s.p99, 3),
    FIGURE("max_jct_s", jct_s.max, 3),
    FIGURE("avg_queue_delay_s", wait_s.mean, 3),
    FIGURE("median_queue_delay_s", wait_s.median, 3),
    FIGURE("p90_queue_delay_s", wait_s.p90, 3),
    FIGURE("p99_queue_delay_s", wait_s.p99, 3),
    FIGURE("max_queue_delay_s", wait_s.max, 3),
    FIGURE("avg_slowdown", slowdown.mean, 4),
    FIGURE("median_slowdown", slowdown.median, 4),
    FIGURE("p99_slowdown", slowdown.p99, 4),
    FIGURE("max_slowdown", slowdown.max, 4),
    FIGURE("makespan_s", makespan_s, 3),
    FIGURE("utilization", utilization, 6),
    FIGURE("lost_gpu_s", lost_gpu_s, 3),
    FIGURE("jain_user_slowdown", jain, 6),
    FIGURE("worst_user_slowdown", worst_user_slowdown, 4),
    FIGURE("waiting_s", waiting_s, 3),
    FIGURE("unallocated_gpus", free_gpus, 4),
    FIGURE("unallocated_percent", free_percent, 4),
    FIGURE("largest_gang_gpus", largest_gang, 4),
    FIGURE("median_estimate_error", estimate_error.median, 4),
    FIGURE("p90_estimate_error", estimate_error.p90, 4),
};

static const struct figure timing_figures[] = {
    FIGURE("median_pass_us", pass_us.median, 3),
    FIGURE("p99_pass_us", pass_us.p99, 3),
    FIGURE("max_pass_us", pass_us.max, 3),
    FIGURE("scheduler_s", scheduler_s, 6),
    FIGURE("wall_s", wall_s, 6),
};

static double value_of(const struct metrics *metrics, const struct figure *figure)
{
    return *(const double *)((const char *)metrics + figure->offset);
}

static void put_widths(struct buffer *out, const struct metrics *metrics)
{
    buffer_append_text(out, "  \"by_gpus\": {\n");
    for (size_t i = 0; i < WIDTHS; i++) {
        const struct width_metrics *width = &metrics->widths[i];
        buffer_printf(out,
            "    \"%s\": {\"jobs\": %zu, \"avg_jct_s\": %.3f, \"median_jct_s\": %.3f, \"p99_jct_s\": %.3f, "
            "\"avg_queue_delay_s\": %.3f, \"median_queue_delay_s\": %.3f, \"p90_queue_delay_s\": %.3f, "
            "\"p99_queue_delay_s\": %.3f, \"max_queue_delay_s\": %.3f}%s\n",
            width->name, width->jobs, width->jct_s.mean, width->jct_s.median, width->jct_s.p99,
            width->wait_s.mean, width->wait_s.median, width->wait_s.p90, width->wait_s.p99, width->wait_s.max,
            i + 1 < WIDTHS ? "," : "");
    }
    buffer_append_text(out, "  },\n");
}

static void put_forecasts(struct buffer *out, const struct forecast_metrics *forecasts)
{
    if (forecasts->count == 0)
        return;
    buffer_printf(out,
        "  \"forecasts\": {\"count\": %zu, \"within_80\": %.4f, \"width_80\": %.4f, \"error\": %.4f, "
        "\"started_before\": {",
        forecasts->count, forecasts->within, forecasts->width, forecasts->plain_error);
    for (size_t i = 0; i < CALIBRATION_PARTS; i++)
        buffer_printf(out, "%s\"%.2f\": %.4f", i > 0 ? ", " : "", calibration_parts[i], forecasts->before[i]);
    buffer_append_text(out, "}},\n");
}

static void put_counts(struct buffer *out, const struct sched_counts *counts)
{
    buffer_printf(out,
        "  \"counts\": {\"passes\": %llu, \"starts\": %llu, \"examined\": %llu, \"classes_tried\": %llu, "
        "\"index_work\": %llu, \"queue_work\": %llu}",
        (unsigned long long)counts->passes, (unsigned long long)counts->starts,
        (unsigned long long)counts->examined, (unsigned long long)counts->classes_tried,
        (unsigned long long)counts->index_work, (unsigned long long)counts->queue_work);
}

void report_json(const struct report *report, FILE *out)
{
    const struct metrics *metrics = report->metrics;
    _cleanup_buffer_ struct buffer text = { 0 };
    buffer_append_text(&text, "{\n");
    json_text(&text, "  ", "trace", report->trace);
    json_text(&text, "  ", "cluster", report->cluster);
    buffer_printf(
        &text, "  \"nodes\": %zu,\n  \"gpus\": %llu,\n", report->nodes, (unsigned long long)report->gpus);
    json_text(&text, "  ", "policy", report->policy->name);
    json_text(&text, "  ", "placement", report->placement->name);
    json_text(&text, "  ", "estimate", report->estimate);
    buffer_printf(&text, "  \"oracle\": %s,\n  \"reference\": %s,\n", report->is_oracle ? "true" : "false",
        report->is_reference ? "true" : "false");
    buffer_printf(&text,
        "  \"jobs\": %zu,\n  \"refused_jobs\": %zu,\n  \"bad_lines\": %llu,\n  \"users\": %zu,\n",
        metrics->jobs, metrics->refused, (unsigned long long)report->bad_lines, metrics->users);
    buffer_printf(&text, "  \"preemptions\": %llu,\n", (unsigned long long)metrics->preemptions);
    if (metrics->parks > 0)
        buffer_printf(&text, "  \"parks\": %llu,\n  \"parked_at_most\": %.3f,\n  \"started_again\": %llu,\n",
            (unsigned long long)metrics->parks, metrics->most_parked, (unsigned long long)metrics->reclaims);
    buffer_printf(&text, "  \"interruptions\": %llu,\n", (unsigned long long)metrics->interruptions);
    for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
        buffer_printf(
            &text, "  \"%s\": %.*f,\n", figures[i].key, figures[i].digits, value_of(metrics, &figures[i]));
    json_text(&text, "  ", "worst_user", metrics->worst_user == NULL ? "" : metrics->worst_user);
    put_widths(&text, metrics);
    put_forecasts(&text, &metrics->forecasts);
    put_counts(&text, report->counts);
    if (report->has_timing) {
        buffer_append_text(&text, ",\n  \"timing\": {");
        for (size_t i = 0; i < sizeof(timing_figures) / sizeof(*timing_figures); i++)
            buffer_printf(&text, "\"%s\": %.*f, ", timing_figures[i].key, timing_figures[i].digits,
                value_of(metrics, &timing_figures[i]));
        buffer_printf(&text, "\"peak_memory_bytes\": %zu}", metrics->peak_memory_bytes);
    }
    buffer_append_text(&text, "\n}\n");
    (void)fputs(buffer_text(&text), out);
}

/* --- text --- */

static void put_row(FILE *out, const char *name, const struct summary *summary)
{
    (void)fprintf(out, "  %-14s %12.1f %12.1f %12.1f %12.1f %12.1f\n", name, summary->mean, summary->median,
        summary->p90, summary->p99, summary->max);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void put_head(const struct report *report, FILE *out)
{
    const struct metrics *metrics = report->metrics;
    (void)fprintf(out, "%s on %s (%zu node%s, %llu GPU%s): %zu job%s of %zu user%s\n", report->trace,
        report->cluster, report->nodes, plural(report->nodes), (unsigned long long)report->gpus,
        plural(report->gpus), metrics->jobs, plural(metrics->jobs), metrics->users, plural(metrics->users));
    (void)fprintf(out, "policy %s, placement %s, estimate %s%s%s\n", report->policy->name,
        report->placement->name, report->estimate, report->is_reference ? ", reference mode" : "",
        report->is_oracle ? "; ORACLE: uses real durations, which no real scheduler has" : "");
    if (metrics->refused > 0)
        (void)fprintf(out, "%zu jobs can never run on this cluster and are not counted; the first: %s\n",
            metrics->refused, report->first_refusal);
    if (report->bad_lines > 0)
        (void)fprintf(out, "skipped %llu invalid line%s of the trace\n",
            (unsigned long long)report->bad_lines, report->bad_lines == 1 ? "" : "s");
}

static void put_timing(const struct metrics *metrics, FILE *out)
{
    char memory[32];
    format_size(metrics->peak_memory_bytes, memory, sizeof(memory));
    (void)fprintf(out,
        "timing           scheduler %.3f s in %zu passes: median %.1f us, p99 %.1f us, max %.1f us\n",
        metrics->scheduler_s, metrics->pass_us.count, metrics->pass_us.median, metrics->pass_us.p99,
        metrics->pass_us.max);
    (void)fprintf(out, "                 whole run %.3f s, peak memory %s\n", metrics->wall_s, memory);
}

void report_table(const struct report *report, FILE *out)
{
    const struct metrics *metrics = report->metrics;
    put_head(report, out);
    (void)fprintf(out, "\n  %-14s %12s %12s %12s %12s %12s\n", "", "average", "median", "p90", "p99", "max");
    put_row(out, "JCT s", &metrics->jct_s);
    put_row(out, "queue delay s", &metrics->wait_s);
    put_row(out, "slowdown", &metrics->slowdown);
    for (size_t i = 0; i < WIDTHS; i++) {
        const struct width_metrics *width = &metrics->widths[i];
        char name[32];
        (void)snprintf(name, sizeof(name), "delay %s GPU%s", width->name, i == 0 ? "" : "s");
        if (width->jobs > 0)
            put_row(out, name, &width->wait_s);
    }
    (void)fprintf(out, "\nmakespan         %.1f s\n", metrics->makespan_s);
    (void)fprintf(out, "utilization      %.2f %% until the last submission\n", 100 * metrics->utilization);
    (void)fprintf(out, "fairness         Jain of users' slowdown %.3f; worst user %s: %.1f\n", metrics->jain,
        metrics->worst_user == NULL ? "-" : metrics->worst_user, metrics->worst_user_slowdown);
    (void)fprintf(out, "preemptions      %llu, by failed nodes %llu; %.0f GPU-seconds lost\n",
        (unsigned long long)metrics->preemptions, (unsigned long long)metrics->interruptions,
        metrics->lost_gpu_s);
    if (metrics->parks > 0)
        (void)fprintf(out,
            "parked           %llu times, at most %.2f times as long as the job had run; %llu started again "
            "for parked jobs\n",
            (unsigned long long)metrics->parks, metrics->most_parked, (unsigned long long)metrics->reclaims);
    (void)fprintf(out,
        "fragmentation    %.2f GPUs (%.2f %%) unallocated while jobs waited, largest gang %.2f\n",
        metrics->free_gpus, metrics->free_percent, metrics->largest_gang);
    if (metrics->forecasts.count > 0)
        (void)fprintf(out,
            "forecasts        %zu: %.0f %% of the starts within the 80 %% interval, which ends %.1f times as "
            "late as "
            "it begins\n",
            metrics->forecasts.count, 100 * metrics->forecasts.within, metrics->forecasts.width);
    if (metrics->estimate_error.count > 0)
        (void)fprintf(out, "estimates        wrong by a factor of %.2f (median), %.2f (p90)\n",
            metrics->estimate_error.median, metrics->estimate_error.p90);
    if (report->has_timing)
        put_timing(metrics, out);
}
