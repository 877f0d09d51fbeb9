/* SPDX-License-Identifier: MIT */
/*
 * The Standard Workload Format of the Parallel Workloads Archive: 18 numbers per line, -1 for unknown values,
 * comments after ';'. Processors are treated as GPUs. Dependencies between jobs (fields 17 and 18) are
 * ignored: the submit times already show what users did after they had seen a result.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/workload.h"

#define SWF_FIELDS 18U

enum swf_field {
    SWF_SUBMIT = 1,
    SWF_RUN = 3,
    SWF_PROCS = 4,
    SWF_PROCS_ASKED = 7,
    SWF_TIME_ASKED = 8,
    SWF_USER = 11,
    SWF_GROUP = 12,
    SWF_PROGRAM = 13,
};

static uint32_t number_of(struct names *names, char letter, int64_t value_ms)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%c%lld", letter, (long long)(value_ms / 1000));
    return names_number(names, value_ms < 0 ? "-" : name);
}

static int read_line(struct line_reader *reader, char *line, struct error *err)
{
    int64_t values[SWF_FIELDS]; // in thousandths, as seconds_parse() gives them
    char *rest = NULL;
    size_t count = 0;
    line[strcspn(line, ";")] = '\0';
    for (char *word = strtok_r(line, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
        char what[16];
        (void)snprintf(what, sizeof(what), "field %zu", count + 1);
        if (count < SWF_FIELDS) {
            int result = seconds_parse(word, what, &values[count], err);
            if (result < 0)
                return result;
        }
        count++;
    }
    if (count == 0)
        return 0;
    if (count != SWF_FIELDS)
        return error_set(
            err, -EINVAL, "has %zu fields; the Standard Workload Format has %u", count, SWF_FIELDS);
    if (values[SWF_SUBMIT] < 0)
        return error_set(err, -EINVAL, "the submit time is unknown");
    if (values[SWF_RUN] < 0)
        return error_set(err, -EINVAL, "the run time is unknown");
    int64_t procs = (values[SWF_PROCS] > 0 ? values[SWF_PROCS] : values[SWF_PROCS_ASKED]) / 1000;
    if (procs < 1 || procs > TRACE_GPUS_MAX)
        return error_set(err, -EINVAL, "the number of processors (%lld) is not within 1 to %u",
            (long long)procs, TRACE_GPUS_MAX);
    struct workload *workload = reader->workload;
    struct sim_job job = {
        .submit_ms = values[SWF_SUBMIT],
        .duration_ms = values[SWF_RUN],
        .wall_ms = values[SWF_TIME_ASKED] > 0 ? values[SWF_TIME_ASKED] : 0,
        .user = number_of(&workload->users, 'u', values[SWF_USER]),
        .group = number_of(&workload->groups, 'g', values[SWF_GROUP]),
        .gpus = (uint32_t)procs,
    };
    job.command_hash = hash_bytes(HASH_START, &values[SWF_PROGRAM], sizeof(int64_t));
    workload->has_wall |= job.wall_ms > 0;
    workload_add(workload, &job);
    return 0;
}

int read_swf(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err)
{
    struct line_reader reader = { .path = path, .workload = workload, .options = options, .read = read_line };
    return lines_read(&reader, err);
}
