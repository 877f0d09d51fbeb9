/* SPDX-License-Identifier: MIT */
/* Variables from which a job can read the options of its submission: those of sbatch(1) and srun(1) whose
 * value is the option's text. Others are numbers of the job, which its node knows (slurm_env.c). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/submit/slurm_distribution.h"
#include "cli/submit/slurm_job.h"

#include "base/memory.h"
#include "base/strings.h"

#define SHOWN_MAX 1024U

static const struct {
    const char *option, *variable;
    bool is_of_batch; // only sbatch sets it, for the steps of the script
} shown[] = {
    { "acctg-freq", "SLURM_ACCTG_FREQ", true },
    { "cpu-bind", "SLURM_CPU_BIND" },
    { "cpu-freq", "SLURM_CPU_FREQ_REQ" },
    { "dependency", "SLURM_JOB_DEPENDENCY" },
    { "export", "SLURM_EXPORT_ENV", true },
    { "gpu-bind", "SLURM_GPU_BIND" },
    { "gpu-freq", "SLURM_GPU_FREQ" },
    { "gpus", "SLURM_GPUS" },
    { "gpus-per-node", "SLURM_GPUS_PER_NODE" },
    { "gpus-per-socket", "SLURM_GPUS_PER_SOCKET" },
    { "gpus-per-task", "SLURM_GPUS_PER_TASK" },
    { "hint", "SLURM_HINT" },
    { "mem-bind", "SLURM_MEM_BIND" },
    { "network", "SLURM_NETWORK", true },
    { "ntasks-per-core", "SLURM_NTASKS_PER_CORE" },
    { "ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET" },
    { "open-mode", "SLURM_OPEN_MODE", true },
    { "overcommit", "SLURM_OVERCOMMIT" },
    { "profile", "SLURM_PROFILE" },
    { "threads-per-core", "SLURM_THREADS_PER_CORE" },
};

/* An option of the --mem group on the command line replaces those of the script and the environment. */
static void replace_memory(struct slurm_job *job, const char *option)
{
    const struct {
        const char *option;
        uint64_t *bytes;
    } kinds[] = { { "mem", &job->memory }, { "mem-per-cpu", &job->memory_per_cpu },
        { "mem-per-gpu", &job->memory_per_gpu } };
    size_t set = 0;
    while (set < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[set].option, option) != 0)
        set++;
    if (set == sizeof(kinds) / sizeof(kinds[0]))
        return;
    job->memory_options |= 1U << set;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (i != set)
            *kinds[i].bytes = 0;
}

/* Stored for --verbose, which counts; SLURM_DEBUG has the number. */
static void define(struct slurm_job *job, const char *option, const char *value)
{
    const char *before = strings_get_env(&job->defined, option);
    bool is_verbose = strcmp(option, "verbose") == 0;
    _cleanup_free_ char *count = NULL;
    if (is_verbose && value != NULL)
        count = xstrdup(value);
    else if (is_verbose)
        count = xasprintf("%ld", 1 + (before != NULL ? strtol(before, NULL, 10) : 0));
    strings_set_env(&job->defined, option, is_verbose ? count : value != NULL ? value : "set");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A value as Slurm displays it: times in full, sizes with their unit. The caller frees it. */
static char *defined_text(const struct slurm_job *job, const char *option, const char *value)
{
    const struct {
        const char *option;
        int64_t seconds;
    } times[] = { { "time", job->time_s }, { "time-min", job->least_s } };
    const struct {
        const char *option;
        uint64_t bytes;
    } sizes[] = { { "mem", job->memory }, { "mem-per-cpu", job->memory_per_cpu },
        { "mem-per-gpu", job->memory_per_gpu } };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int64_t s = strcmp(times[i].option, option) == 0 ? times[i].seconds : 0, days = s / 86400;
        if (s > 0 && days > 0)
            return xasprintf(
                "%" PRId64 "-%02d:%02d:%02d", days, (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60));
        if (s > 0)
            return xasprintf("%02d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t mib = strcmp(sizes[i].option, option) == 0 ? sizes[i].bytes >> 20 : 0;
        if (mib > 0)
            return xasprintf(
                "%" PRIu64 "%c", mib % 1024 == 0 ? mib / 1024 : mib, mib % 1024 == 0 ? 'G' : 'M');
    }
    return text_escape(value, SHOWN_MAX);
}

void slurm_job_print_options(const struct slurm_job *job, const char *program)
{
    static const char rule[] = "-------------------- --------------------";
    _cleanup_free_ char **sorted = xcalloc(job->defined.count + 1, sizeof(char *));
    if (!job->is_verbose)
        return;
    for (size_t i = 0; i < job->defined.count; i++)
        sorted[i] = job->defined.items[i];
    qsort(sorted, job->defined.count, sizeof(char *), by_text);
    (void)fprintf(stderr, "%s: defined options\n%s: %s\n", program, program, rule);
    for (size_t i = 0; i < job->defined.count; i++) {
        int length = (int)strcspn(sorted[i], "=");
        _cleanup_free_ char *option = xstrndup(sorted[i], (size_t)length);
        _cleanup_free_ char *value = defined_text(job, option, sorted[i] + length + 1);
        (void)fprintf(stderr, "%s: %-20s: %s\n", program, option, value);
    }
    (void)fprintf(stderr, "%s: %s\n%s: end of defined options\n", program, rule, program);
}

void slurm_job_debug(const struct slurm_job *job, const char *format, ...)
{
    const char *level = strings_get_env(&job->defined, "verbose");
    va_list args;
    if (level == NULL || strtol(level, NULL, 10) < 2)
        return;
    (void)fprintf(stderr, "%s: debug:  ", job->program);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

static void show_distribution(struct slurm_job *job, const char *value)
{
    _cleanup_free_ char *text = slurm_distribution_text(value);
    _cleanup_free_ char *plane = xasprintf("%" PRIu32, slurm_distribution_plane(value));
    strings_set_env(&job->submit.env, "SLURM_DISTRIBUTION", text);
    if (slurm_distribution_layout(value) == SLURM_LAYOUT_PLANE)
        strings_set_env(&job->submit.env, "SLURM_DIST_PLANESIZE", plane);
}

void slurm_job_show(const struct slurm_reading *reading, const struct slurm_option *option, const char *value)
{
    struct slurm_job *job = reading->target;
    if (reading->where == NULL)
        replace_memory(job, option->name);
    define(job, option->name, value);
    bool is_batch = reading->program->bit == SLURM_SBATCH;
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        if (strcmp(shown[i].option, option->name) == 0 && (is_batch || !shown[i].is_of_batch))
            strings_set_env(&job->submit.env, shown[i].variable, value != NULL ? value : "1");
    if (strcmp(option->name, "distribution") == 0 && value != NULL)
        show_distribution(job, value);
    if (is_batch && strcmp(option->name, "mem-bind") == 0 && value != NULL)
        strings_set_env(&job->submit.env, "SBATCH_MEM_BIND", value);
}
