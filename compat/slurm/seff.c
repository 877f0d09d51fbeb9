/* SPDX-License-Identifier: MIT */
/* seff: how much of its CPUs, memory and GPUs a job has used. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/state.h"

const struct slurm_option slurm_seff_options[] = {
    SLURM_NO_EFFECT(SLURM_SEFF, "debug", 'd', NULL, NULL, "show how the numbers are computed"),
    { 0 },
};

/* "1.20 MB": each unit is 1024 of the previous one. */
static char *size_text(double bytes)
{
    static const char *const units[] = { "KB", "MB", "GB", "TB", "PB" };
    double value = bytes / 1024;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        value /= 1024;
    return xasprintf("%.2f %s", value, units[unit]);
}

static double part(double used, double all)
{
    return all > 0 ? 100 * used / all : 0;
}

static void print_cpus(const json_t *job)
{
    int64_t nodes = slurm_job_nodes(job), cpus = slurm_job_cpus(job);
    double used_s = 0, run_s = 0;
    bool is_measured = field_measured(job, "cpu_seconds", &used_s);
    (void)field_measured(job, "run_seconds", &run_s);
    int64_t whole_s = (int64_t)run_s * cpus;
    if (nodes > 1)
        (void)printf("Nodes: %" PRId64 "\nCores per node: %" PRId64 "\n", nodes, (cpus + nodes - 1) / nodes);
    else
        (void)printf("Cores: %" PRId64 "\n", cpus);
    _cleanup_free_ char *used = slurm_duration_text((int64_t)used_s, true);
    _cleanup_free_ char *whole = slurm_duration_text(whole_s, true);
    _cleanup_free_ char *run = slurm_duration_text((int64_t)run_s, true);
    if (is_measured)
        (void)printf("CPU Utilized: %s\nCPU Efficiency: %.2f%% of %s core-walltime\n", used,
            part(used_s, (double)whole_s), whole);
    else
        (void)printf("CPU Utilized: not measured yet\n");
    (void)printf("Job Wall-clock time: %s\n", run);
}

/* Without a request there is no efficiency to calculate. */
static void print_memory(const json_t *job)
{
    double peak = 0, largest = 0;
    double asked = field_number(job, "memory", 0) * (double)slurm_job_nodes(job);
    bool has_peak = field_measured(json_object_get(job, "usage"), "memory_peak_bytes", &peak);
    bool has_largest = field_measured(job, "max_rss_bytes", &largest);
    double used = peak > largest ? peak : largest;
    _cleanup_free_ char *used_text = size_text(used), *asked_text = size_text(asked);
    (void)printf("Memory Utilized: %s\n", has_peak || has_largest ? used_text : "not measured yet");
    if (asked > 0 && (has_peak || has_largest))
        (void)printf("Memory Efficiency: %.2f%% of %s\n", part(used, asked), asked_text);
}

/* In addition to Slurm's seff, for jobs with measured GPUs. */
static void print_gpus(const json_t *job)
{
    const json_t *usage = json_object_get(job, "usage");
    double utilization = 0, memory = 0;
    int64_t gpus = field_integer(job, "gpus", 0);
    if (gpus == 0 || !field_measured(usage, "utilization", &utilization))
        return;
    (void)printf("GPUs: %" PRId64 "\nGPU Efficiency: %.2f%%\n", gpus, utilization * 100);
    if (!field_measured(usage, "gpu_memory_peak_bytes", &memory))
        return;
    _cleanup_free_ char *text = size_text(memory);
    (void)printf("GPU Memory Utilized: %s (maximum of one GPU)\n", text);
}

static void print_job(const json_t *job)
{
    const struct slurm_state *state = slurm_state_of(job);
    _cleanup_free_ char *id = slurm_text_raw_id(job, 0), *array = slurm_text_job_id(job, 0);
    _cleanup_free_ char *user = slurm_text_user(job, 0), *group = slurm_text_group(job, 0);
    int code = 0, signal = 0;
    slurm_exit_of(job, &code, &signal);
    (void)printf("Job ID: %s\n", id);
    if (field_is_known(job, "array_job"))
        (void)printf("Array Job ID: %s\n", array);
    (void)printf("Cluster: mgpu\nUser/Group: %s/%s\n", user, group);
    if (state->is_over)
        (void)printf("State: %s (exit code %d)\n", state->name, code);
    else
        (void)printf("State: %s\n", state->name);
    if (!field_is_known(job, "started_at")) {
        (void)printf("Efficiency not available for jobs in the %s state.\n", state->name);
        return;
    }
    print_cpus(job);
    print_memory(job);
    print_gpus(job);
    if (!state->is_over)
        (void)printf("WARNING: Efficiency statistics may be misleading for %s jobs.\n", state->name);
}

int slurm_run_seff(const struct slurm_program *program, int argc, char **argv)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *job = NULL;
    const struct slurm_reading reading = { .program = program, .target = &ids };
    struct error err = { 0 };
    struct client client;
    int first = 0;
    int r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0 && first + 1 != argc)
        r = error_set(&err, -EINVAL, "one job id is required, such as 42 or 42_3");
    if (r == 0)
        r = slurm_ids_parse(argv[first], &ids, &err);
    if (r < 0)
        return slurm_fail(program, &err);
    _cleanup_free_ char *path = slurm_id_path(&ids.items[0]);
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    client_init(&client, NULL, NULL);
    r = client_get(&client, request, &job, &err);
    client_clear(&client);
    if (r == -ENOENT) {
        (void)fprintf(stderr, "Job not found.\n");
        return 2;
    }
    if (r < 0)
        return slurm_fail(program, &err);
    print_job(job);
    return 0;
}
