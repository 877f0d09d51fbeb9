/* SPDX-License-Identifier: MIT */
/* The comparison as a table and as JSON. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/parse.h"
#include "lab/sim/json_text.h"
#include "lab/sim/tune/tune.h"

#define NAME_WIDTH 22
#define CELL_WIDTH 19

static const char *const keys[TUNE_MEASURES] = {
    [TUNE_AVERAGE] = "avg_queue_delay",
    [TUNE_P99] = "p99_queue_delay",
    [TUNE_WIDE] = "wide_queue_delay",
    [TUNE_WORST_USER] = "worst_user_slowdown",
};

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_head(const struct tune_report *report)
{
    const struct tune_comparison *comparison = report->comparison;
    char span[32];
    format_duration(comparison->span_ms, span, sizeof(span));
    (void)printf("%s: %zu job%s of %zu user%s in %s, on %zu node%s with %llu GPU%s%s\n", report->trace,
        comparison->n_jobs, plural(comparison->n_jobs), comparison->n_users, plural(comparison->n_users),
        span, report->nodes->count, plural(report->nodes->count), (unsigned long long)report->nodes->gpus,
        plural(report->nodes->gpus), report->cluster == NULL ? " (from the journal)" : "");
    (void)printf("now: %s\n", report->variants[0].text);
    if (comparison->results[0].refused > 0)
        (void)printf("%zu job%s can never run on this cluster and %s not counted\n",
            comparison->results[0].refused, plural(comparison->results[0].refused),
            comparison->results[0].refused == 1 ? "is" : "are");
}

static void print_now(const struct tune_result *now)
{
    (void)printf("%-*s", NAME_WIDTH, "now");
    for (enum tune_measure m = 0; m < TUNE_MEASURES; m++) {
        char cell[40];
        if (m == TUNE_WORST_USER)
            (void)snprintf(cell, sizeof(cell), "%.1f", now->values[m]);
        else
            format_duration((int64_t)(now->values[m] * 1000), cell, sizeof(cell));
        (void)printf("%-*s", CELL_WIDTH, cell);
    }
    (void)printf("%.2f\n", now->idle_gpus);
}

static void print_variant(const struct tune_variant *variant, const struct tune_result *result)
{
    static const char *const marks[] = { "-", "", "+" };
    if (strlen(variant->text) >= NAME_WIDTH)
        (void)printf("%s\n%-*s", variant->text, NAME_WIDTH, "");
    else
        (void)printf("%-*s", NAME_WIDTH, variant->text);
    for (enum tune_measure m = 0; m < TUNE_MEASURES; m++) {
        const struct tune_ratio *ratio = &result->ratios[m];
        char cell[40];
        (void)snprintf(cell, sizeof(cell), "%.2f (%.2f-%.2f)%s", ratio->value, ratio->low, ratio->high,
            marks[tune_verdict(ratio) + 1]);
        (void)printf("%-*s", CELL_WIDTH, cell);
    }
    (void)printf("%.2f\n", result->idle_gpus);
}

/* A shorter wait by preemption has a price that the table does not show. */
static void print_preempting(const struct tune_report *report)
{
    for (size_t v = 1; v < report->comparison->n_variants; v++)
        if (report->variants[v].settings.policy->preempting != PREEMPT_NONE)
            (void)printf("%s preempts running jobs; the replay assumes that they keep their work.\n",
                report->variants[v].text);
}

static void print_parking(const struct tune_report *report)
{
    for (size_t v = 0; v < report->comparison->n_variants; v++) {
        const struct sched_settings *settings = &report->variants[v].settings;
        if (!tune_parks(settings))
            continue;
        (void)printf("%s: the replay assumes that every job can be parked, and that host memory suffices. ",
            v == 0 ? "now" : report->variants[v].text);
        if (settings->park_cost_ms > 0)
            (void)printf("To park and to return one takes %.1f s (park-cost).\n",
                (double)settings->park_cost_ms / 1000);
        else
            (void)printf("To park and to return one takes 5 s, and 12 s for each of its GPUs.\n");
    }
}

void tune_print(const struct tune_report *report)
{
    const struct tune_comparison *comparison = report->comparison;
    print_head(report);
    (void)printf("\n%-*s", NAME_WIDTH, "");
    for (enum tune_measure m = 0; m < TUNE_MEASURES; m++)
        (void)printf("%-*s", CELL_WIDTH, tune_measure_names[m]);
    (void)printf("idle GPUs\n");
    print_now(&comparison->results[0]);
    for (size_t v = 1; v < comparison->n_variants; v++)
        print_variant(&report->variants[v], &comparison->results[v]);
    (void)printf(
        "\nRatios to now, and the interval that contains 90 %% of the ratios in resamples of %zu blocks "
        "of time.\n"
        "+ better, - worse, otherwise perhaps by chance. Wide jobs: %zu with %u GPUs or more. Worst user: "
        "mean slowdown.\n"
        "Idle GPUs: on average, while jobs waited. Nothing was changed.\n",
        comparison->n_blocks, comparison->n_wide, comparison->wide_gpus);
    print_preempting(report);
    print_parking(report);
}

/* --- JSON --- */

static void put_result(
    struct buffer *out, const struct tune_variant *variant, const struct tune_result *result, bool is_last)
{
    static const char *const verdicts[] = { "worse", "unclear", "better" };
    buffer_append_text(out, "    {\n");
    json_text(out, "      ", "settings", variant->text);
    for (enum tune_measure m = 0; m < TUNE_MEASURES; m++) {
        const struct tune_ratio *ratio = &result->ratios[m];
        buffer_printf(out,
            "      \"%s\": {\"value\": %.3f, \"ratio\": %.4f, \"low\": %.4f, \"high\": %.4f, "
            "\"verdict\": \"%s\"},\n",
            keys[m], result->values[m], ratio->value, ratio->low, ratio->high,
            verdicts[tune_verdict(ratio) + 1]);
    }
    buffer_printf(out, "      \"idle_gpus\": %.4f\n    }%s\n", result->idle_gpus, is_last ? "" : ",");
}

void tune_print_json(const struct tune_report *report)
{
    const struct tune_comparison *comparison = report->comparison;
    _cleanup_buffer_ struct buffer out = { 0 };
    buffer_append_text(&out, "{\n");
    json_text(&out, "  ", "trace", report->trace);
    buffer_printf(&out,
        "  \"nodes\": %zu,\n  \"gpus\": %llu,\n  \"jobs\": %zu,\n  \"wide_jobs\": %zu,\n"
        "  \"wide_gpus\": %u,\n  \"refused_jobs\": %zu,\n  \"users\": %zu,\n  \"blocks\": %zu,\n"
        "  \"variants\": [\n",
        report->nodes->count, (unsigned long long)report->nodes->gpus, comparison->n_jobs, comparison->n_wide,
        comparison->wide_gpus, comparison->results[0].refused, comparison->n_users, comparison->n_blocks);
    for (size_t v = 0; v < comparison->n_variants; v++)
        put_result(&out, &report->variants[v], &comparison->results[v], v + 1 == comparison->n_variants);
    buffer_append_text(&out, "  ]\n}\n");
    (void)fputs(buffer_text(&out), stdout);
}
