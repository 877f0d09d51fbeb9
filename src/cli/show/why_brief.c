/* SPDX-License-Identifier: MIT */
/*
 * The sentences are mgpud's. Each row has the beginning of a sentence and its replacement; the rest of the
 * sentence follows. A sentence without a row is shown unchanged.
 */
#include "cli/show/why_brief.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/show/ps_arrays.h"

static const struct {
    const char *begins, *until; // until: the replaced beginning extends to the end of this text
    const char *brief;
} beginnings[] = {
    { "requested ", "; ", "" },
    { "waiting for job ", NULL, "after job " },
    { "waiting for its begin time", NULL, "its begin time" },
    { "held by an administrator", NULL, "held by an admin" },
    { "waiting for ", NULL, "after " },
    { "waiting until ", NULL, "until " },
    { "its dependency can never be satisfied: ", NULL, "never: " },
    { "its dependency could never be satisfied: ", NULL, "never: " },
    { "its last attempt failed; it will be tried again", NULL, "tried again soon" },
    { "its last attempt failed; ", NULL, "failed; " },
    { "a requested GPU has ", NULL, "a GPU has " },
    { "limit of its ", ": ", "" },
    { "the free GPUs are reserved", NULL, "reserved" },
    { "did not start, exit ", ": ", "" },
    { "setup failed, exit ", ": ", "" },
    { "its resources are free, but reserved for ", NULL, "behind " },
    /* How jobs end (job_outcome.c). */
    { "reached its time limit", NULL, "time limit" },
    { "killed by signal ", NULL, "signal " },
    { "killed: used more than its ", NULL, "over its " },
    { "ran out of GPU memory", NULL, "GPU out of memory" },
    { "exceeded its share of GPU memory", NULL, "over its GPU share" },
    { "ended because it was idle", NULL, "idle" },
    { "ended because the GPU-hours of its token are used up", NULL, "token is used up" },
    { "could not start before its deadline", NULL, "deadline passed" },
    { "its node was lost", NULL, "node lost" },
    { "its node rebooted", NULL, "node rebooted" },
    { "all of its elements are done", NULL, "all are done" },
    { "some of its elements failed: ", NULL, "" },
};

/* "cannot start DIR: No such file or directory": the last part states the problem. */
static const struct {
    const char *ends, *brief;
} endings[] = {
    { ": No such file or directory", "no " },
    { ": Permission denied", "no access to " },
};

/* The path in the text before that ending, or NULL. */
static char *name_missing(const char *text)
{
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        const char *end = strstr(text, endings[i].ends);
        end -= end != NULL && end > text && end[-1] == '\'' ? 1 : 0;
        const char *start = end;
        while (start != NULL && start > text && start[-1] != ' ' && start[-1] != '\'')
            start--;
        size_t length = start == NULL ? 0 : (size_t)(end - start);
        if (length > 0)
            return xasprintf("%s%.*s", endings[i].brief, (int)length, start);
    }
    return NULL;
}

static const json_t *find_job(const json_t *jobs, int64_t id)
{
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        if (field_integer(job, "id", 0) == id)
            return job;
    }
    return NULL;
}

/* "behind 7 (8 GPUs)" from "...; after job 7, which was submitted earlier". */
static char *name_first_ahead(const char *text, const json_t *jobs)
{
    static const char before[] = "; after job ";
    const char *at = strstr(text, before);
    if (at == NULL)
        return NULL;
    int64_t id = strtoll(at + strlen(before), NULL, 10);
    const json_t *ahead = find_job(jobs, id);
    int64_t gpus = ahead == NULL ? 0 : field_integer(ahead, "gpus", 0);
    if (gpus <= 0)
        return xasprintf("behind %" PRId64, id);
    return xasprintf("behind %" PRId64 " (%" PRId64 " GPU%s)", id, gpus, gpus == 1 ? "" : "s");
}

static char *shorten(const char *text)
{
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        size_t length = strlen(beginnings[i].begins);
        if (strncmp(text, beginnings[i].begins, length) != 0)
            continue;
        const char *rest = text + length;
        const char *until = beginnings[i].until == NULL ? NULL : strstr(rest, beginnings[i].until);
        if (beginnings[i].until != NULL && until == NULL)
            return NULL;
        return xasprintf(
            "%s%s", beginnings[i].brief, until != NULL ? until + strlen(beginnings[i].until) : rest);
    }
    return NULL;
}

/* "array limit (2)" from "limit of its array: 2 elements of this array run (its limit)". */
static char *name_array_limit(const char *text)
{
    unsigned most = 0;
    const char *at = strstr(text, " of this array run");
    while (at != NULL && at > text && strchr("elements ", at[-1]) != NULL)
        at--;
    while (at != NULL && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at != NULL && sscanf(at, "%u", &most) == 1 ? xasprintf("array limit (%u)", most) : NULL;
}

/* The first of these that recognizes the sentence. */
static char *name_fact(const json_t *jobs, const char *text, bool is_waiting, bool is_start)
{
    char *brief = is_waiting ? name_first_ahead(text, jobs) : is_start ? name_missing(text) : NULL;
    if (brief == NULL && is_waiting)
        brief = name_array_limit(text);
    return brief != NULL ? brief : shorten(text);
}

/* Adds how an array's elements ended. */
static char *with_counts(const json_t *job, char *brief)
{
    _cleanup_free_ char *counts = elements_counts(job), *start = brief;
    if (counts == NULL)
        return take_ptr(start);
    return start == NULL || strcmp(start, counts) == 0 ? take_ptr(counts)
                                                       : xasprintf("%s; %s", start, counts);
}

void why_brief_add(json_t *jobs)
{
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        bool is_start =
            field_is(job, "ended_by", "start_failed") || field_is(job, "ended_by", "setup_failed");
        bool is_waiting = field_text(job, "reason_text") != NULL &&
                          (field_is(job, "state", "queued") || field_is(job, "state", "held"));
        _cleanup_free_ char *text = is_waiting         ? xstrdup(field_text(job, "reason_text"))
                                    : job_is_done(job) ? job_outcome(job)
                                                       : NULL;
        char *brief = text == NULL ? NULL : name_fact(jobs, text, is_waiting, is_start);
        bool is_plain_end = brief == NULL && !is_waiting && !field_is(job, "ended_by", "exit");
        if (brief == NULL && text != NULL && (is_waiting || is_plain_end) && elements_ended(job) > 0)
            brief = xstrdup(text);
        _cleanup_free_ char *shown = with_counts(job, brief);
        if (shown != NULL)
            (void)json_object_set_new(job, "brief", json_string(shown));
    }
}
