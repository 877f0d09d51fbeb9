/* SPDX-License-Identifier: MIT */
/* mgpu-sim tune: what other settings would have done with the jobs of one's own machine. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "base/strings.h"
#include "lab/sim/journal_machine.h"
#include "lab/sim/talk.h"
#include "lab/sim/tune/tune.h"

#define PARALLEL_MAX 64

struct tune_call {
    const char *cluster, *now, *plot;
    struct strings tries;
    struct trace_options trace;
    int64_t parallel, seed, max_jobs;
    bool is_json, is_help;
};

static int add_try(void *target, const char *value, struct error *err)
{
    struct sched_settings ignored;
    sched_settings_init(&ignored);
    int r = tune_apply(value, &ignored, err);
    if (r == 0)
        strings_add(&((struct tune_call *)target)->tries, value);
    return r;
}

static const struct option_row rows[] = {
    { 'c', "cluster", "NxG", "64x8, pool:128 (one node), or a CSV list of nodes (those of the journal)",
        OPTION_VALUE(word, struct tune_call, cluster) },
    { 0, "now", "SETTINGS", "settings to compare with (those of the journal, otherwise the defaults)",
        OPTION_VALUE(word, struct tune_call, now) },
    { 't', "try", "SETTINGS", "settings to try, such as policy=learnt,age-cap=7d; can be repeated", add_try },
    { 'j', "jobs", "N", "number of replays at a time (one per CPU)",
        OPTION_VALUE(integer, struct tune_call, parallel), OPTION_RANGE(1, PARALLEL_MAX) },
    { 0, "max-jobs", "N", "use only the first N jobs of the trace",
        OPTION_VALUE(integer, struct tune_call, max_jobs), OPTION_RANGE(1, UINT32_MAX - 1) },
    { 0, "users-from", "COLUMN", "column of a CSV trace with the user",
        OPTION_VALUE(word, struct tune_call, trace.users_from) },
    { 0, "skip-bad", NULL, "skip invalid lines of the trace",
        OPTION_VALUE(flag, struct tune_call, trace.skip_bad) },
    { 0, "seed", "N", "seed of the resamples (1)", OPTION_VALUE(integer, struct tune_call, seed),
        OPTION_RANGE(0, INT64_MAX) },
    { 0, "plot", "FILE", "draw the intervals, as SVG", OPTION_VALUE(word, struct tune_call, plot) },
    { 0, "json", NULL, "print figures as JSON", OPTION_VALUE(flag, struct tune_call, is_json) },
    { 'h', "help", NULL, "this text", OPTION_VALUE(flag, struct tune_call, is_help) },
    { 0 },
};

/* The cluster, and in variants[0] the settings in force. */
static int find_machine(const struct tune_call *call, const char *path, bool is_journal,
    struct sim_nodes *nodes, struct tune_variant *now, struct error *err)
{
    struct sim_nodes unused = { 0 };
    int r = 0;
    if (!is_journal && call->cluster == NULL) {
        (void)error_set(err, -EINVAL, "%.200s is not a journal, so it does not describe its cluster", path);
        return error_hint(err, "name it: --cluster NODESxGPUS");
    }
    if (call->cluster != NULL)
        r = nodes_read(nodes, call->cluster, err);
    if (r == 0 && is_journal)
        r = journal_machine_read(path, call->cluster == NULL ? nodes : &unused, &now->settings, err);
    nodes_clear(&unused);
    if (r == 0 && call->now != NULL)
        r = tune_apply(call->now, &now->settings, err);
    return r;
}

/* variants[0] is there; returns how many there are, without those that change nothing or are not for such a
 * cluster. */
static size_t make_variants(
    const struct tune_call *call, const struct sim_nodes *nodes, struct tune_variant *variants)
{
    _cleanup_buffer_ struct buffer now = { 0 };
    size_t count = 1;
    tune_describe(&variants[0].settings, &now);
    for (size_t i = 0; count < TUNE_VARIANTS_MAX; i++) {
        bool is_usual = call->tries.count == 0;
        const char *text = is_usual ? tune_usual[i] : i < call->tries.count ? call->tries.items[i] : NULL;
        _cleanup_buffer_ struct buffer changed = { 0 };
        struct error ignored = { 0 };
        if (text == NULL)
            break;
        struct tune_variant *variant = &variants[count];
        *variant = (struct tune_variant){ text, variants[0].settings };
        (void)tune_apply(text, &variant->settings, &ignored); // it was checked, or is one of ours
        tune_describe(&variant->settings, &changed);
        bool is_usable = !tune_parks(&variant->settings) || nodes->count == 1; // it is for single nodes
        if (!is_usual || (is_usable && !text_equal(buffer_text(&changed), buffer_text(&now))))
            count++;
    }
    return count;
}

static int compare(const struct tune_call *call, const char *path, const struct workload *workload,
    struct tune_variant *variants, const struct sim_nodes *nodes, struct error *err)
{
    struct tune_outcome *outcomes[TUNE_VARIANTS_MAX] = { NULL };
    _cleanup_free_ struct tune_comparison *comparison = xcalloc(1, sizeof(*comparison));
    _cleanup_buffer_ struct buffer now = { 0 };
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned parallel = call->parallel > 0 ? (unsigned)call->parallel : cpus > 0 ? (unsigned)cpus : 1;
    size_t count = make_variants(call, nodes, variants);
    tune_describe(&variants[0].settings, &now);
    variants[0].text = buffer_text(&now);
    int r = tune_run(workload, nodes, variants, count, parallel, outcomes, err);
    if (r == 0) {
        struct tune_report report = { path, call->cluster, nodes, variants, comparison };
        tune_compare(workload, nodes, outcomes, count, (uint64_t)call->seed, comparison);
        if (call->is_json)
            tune_print_json(&report);
        else
            tune_print(&report);
        r = call->plot == NULL ? 0 : tune_draw(&report, call->plot, err);
    }
    tune_free(outcomes, TUNE_VARIANTS_MAX, workload);
    return r;
}

static int tune(struct tune_call *call, const char *path, struct error *err)
{
    _cleanup_(workload_clear) struct workload workload = { 0 };
    _cleanup_(nodes_clear) struct sim_nodes nodes = { 0 };
    _cleanup_free_ struct tune_variant *variants = xcalloc(TUNE_VARIANTS_MAX, sizeof(*variants));
    call->trace.max_jobs = (uint64_t)call->max_jobs;
    sched_settings_init(&variants[0].settings);
    int r = workload_read(&workload, path, &call->trace, err);
    if (r == 0)
        r = find_machine(call, path, workload.is_journal, &nodes, &variants[0], err);
    if (r == 0)
        r = compare(call, path, &workload, variants, &nodes, err);
    return r;
}

static int run(int argc, char **argv)
{
    struct tune_call call = { .seed = 1 };
    struct error err = { 0 };
    int first = 0, status = SIM_OK;
    if (talk_parse(&command_tune, argc, argv, rows, &call, 0, 1, &first, &err) < 0)
        status = talk_error(&err, SIM_USAGE);
    else if (call.is_help)
        talk_help(&command_tune, rows);
    else if (first == argc) {
        (void)error_set(&err, -EINVAL, "tune requires a journal or a trace");
        (void)error_hint(&err, "write a journal with: mgpu journal export -o FILE");
        status = talk_error(&err, SIM_USAGE);
    } else if (tune(&call, argv[first], &err) < 0)
        status = talk_error(&err, SIM_FAILED);
    strings_clear(&call.tries);
    return status;
}

const struct sim_command command_tune = {
    .name = "tune",
    .summary = "replay the journal of a machine with other settings, and compare",
    .usage = "tune JOURNAL [OPTIONS]",
    .run = run,
};
