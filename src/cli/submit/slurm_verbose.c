/* SPDX-License-Identifier: MIT */
#include "cli/submit/slurm_verbose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/submit/slurm_option.h"

#define VERBOSE   "verbose"
#define SHOWN_MAX 1000 // bytes of a value
#define RULE      "-----------------------------"

const struct slurm_verbose slurm_verbose_squeue[] = {
    { "all", "all", SLURM_SAY_FLAG, NULL },
    { "array", "array", SLURM_SAY_FLAG, NULL },
    { "federation", "federation", SLURM_SAY_FLAG, NULL },
    { "format", "format", SLURM_SAY_TEXT, "(null)" },
    { "iterate", "iterate", SLURM_SAY_COUNT, NULL },
    { "job_flag", "job_flag", SLURM_SAY_COUNT, NULL },
    { "jobs", "jobs", SLURM_SAY_TEXT, "(null)" },
    { "licenses", "licenses", SLURM_SAY_TEXT, "(null)" },
    { "local", "local", SLURM_SAY_FLAG, NULL },
    { "names", "name", SLURM_SAY_TEXT, "(null)" },
    { "nodes", "nodelist", SLURM_SAY_TEXT, "" },
    { "partitions", "partition", SLURM_SAY_TEXT, "(null)" },
    { "priority", "priority", SLURM_SAY_FLAG, NULL },
    { "reservation", "reservation", SLURM_SAY_TEXT, "(null)" },
    { "sibling     ", "sibling", SLURM_SAY_FLAG, NULL },
    { "sort", "sort", SLURM_SAY_TEXT, "(null)" },
    { "start_flag", "start", SLURM_SAY_COUNT, NULL },
    { "states", "states", SLURM_SAY_TEXT, "(null)" },
    { "step_flag", "step_flag", SLURM_SAY_COUNT, NULL },
    { "steps", "steps", SLURM_SAY_TEXT, "(null)" },
    { "users", "user", SLURM_SAY_TEXT, "(null)" },
    { "verbose", "verbose", SLURM_SAY_COUNT, NULL },
    { 0 },
};

const struct slurm_verbose slurm_verbose_sinfo[] = {
    { "dead", "dead", SLURM_SAY_FLAG, NULL },
    { "exact", "exact", SLURM_SAY_COUNT, NULL },
    { "filtering", "filtering", SLURM_SAY_FLAG, NULL },
    { "format", "format", SLURM_SAY_TEXT, "(null)" },
    { "iterate", "iterate", SLURM_SAY_COUNT, NULL },
    { "long", "long", SLURM_SAY_FLAG, NULL },
    { "no_header", "noheader", SLURM_SAY_FLAG, NULL },
    { "node_field", "Node", SLURM_SAY_FLAG, NULL },
    { "node_format", "Node", SLURM_SAY_FLAG, NULL },
    { "nodes", "nodes", SLURM_SAY_TEXT, "n/a" },
    { "part_field", "part_field", SLURM_SAY_FLAG, NULL },
    { "partition", "partition", SLURM_SAY_TEXT, "n/a" },
    { "responding", "responding", SLURM_SAY_FLAG, NULL },
    { "states", "states", SLURM_SAY_TEXT, "(null)" },
    { "sort", "sort", SLURM_SAY_TEXT, "(null)" },
    { "summarize", "summarize", SLURM_SAY_FLAG, NULL },
    { "verbose", "verbose", SLURM_SAY_COUNT, NULL },
    { 0 },
};

int slurm_verbose_level(const struct strings *given)
{
    const char *text = strings_get_env(given, VERBOSE);
    return text != NULL ? (int)strtol(text, NULL, 10) : 0;
}

void slurm_verbose_note(struct strings *given, const struct slurm_option *option, const char *value)
{
    bool is_verbose = strcmp(option->name, VERBOSE) == 0, is_steps = strcmp(option->name, "steps") == 0;
    _cleanup_free_ char *count = xasprintf("%d", slurm_verbose_level(given) + 1);
    if (is_steps)
        strings_set_env(given, "step_flag", "1");
    bool is_job = strcmp(option->name, "jobs") == 0 && strings_get_env(given, "step_flag") == NULL;
    if (is_steps || is_job)
        strings_set_env(given, "job_flag", is_job ? "1" : "0");
    if (is_steps && value == NULL)
        return;
    strings_set_env(given, option->name, is_verbose ? count : value != NULL ? value : "1");
}

bool slurm_verbose_print(const struct slurm_verbose *lines, const struct strings *given)
{
    if (slurm_verbose_level(given) == 0)
        return false;
    (void)puts(RULE);
    for (const struct slurm_verbose *line = lines; line->key != NULL; line++) {
        const char *value = line->option != NULL ? strings_get_env(given, line->option) : NULL;
        _cleanup_free_ char *shown = text_escape(value != NULL ? value : "", SHOWN_MAX);
        const char *const texts[] = {
            [SLURM_SAY_FLAG] = value != NULL ? "true" : "false",
            [SLURM_SAY_COUNT] = value != NULL ? shown : "0",
            [SLURM_SAY_TEXT] = value != NULL ? shown : line->none,
        };
        (void)printf("%-11s = %s\n", line->key, texts[line->kind]);
    }
    (void)puts(RULE);
    return true;
}

void slurm_verbose_count(const struct strings *given, size_t count)
{
    if (slurm_verbose_level(given) > 0)
        (void)printf("last_update_time=%" PRId64 " records=%zu\n", clock_wall_ms() / 1000, count);
}
