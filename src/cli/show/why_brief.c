/* SPDX-License-Identifier: MIT */
/*
 * The sentences are mgpud's. Each row is the beginning of one, and what is shown instead of it; the rest of
 * the sentence follows. A sentence without a row is shown as it is.
 */
#include "cli/show/why_brief.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/show/job_columns.h"
#include "cli/term/field.h"

static const struct {
    const char *begins, *until; // until: the beginning goes on to the end of this text
    const char *brief;
} beginnings[] = {
    { "requested ", "; ", "" },
    { "waiting for job ", NULL, "after job " },
    { "waiting for its begin time", NULL, "before its begin time" },
    { "waiting for ", NULL, "after " },
    { "waiting until ", NULL, "until " },
    { "its dependency can never be satisfied: ", NULL, "never: " },
    { "its dependency could never be satisfied: ", NULL, "never: " },
    { "its last attempt failed; ", NULL, "failed; " },
    { "limit of its ", ": ", "" },
    { "the free GPUs are reserved", NULL, "reserved" },
    { "did not start, exit ", ": ", "" },
    { "setup failed, exit ", ": ", "" },
    { "its resources are free, but reserved for ", NULL, "behind " },
};

/* "cannot start DIR: No such file or directory": the last part says what is wrong. */
static const struct {
    const char *ends, *brief;
} endings[] = {
    { ": No such file or directory", "no " },
    { ": Permission denied", "no access to " },
};

/* The word of the path before that ending, or NULL. */
static char *name_missing(const char *text)
{
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        const char *end = strstr(text, endings[i].ends), *start = end;
        while (start != NULL && start > text && start[-1] != ' ' && start[-1] != '\'')
            start--;
        size_t length = start == NULL ? 0 : (size_t)(end - start);
        length -= length > 0 && start[length - 1] == '\'' ? 1 : 0;
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

void why_brief_add(json_t *jobs)
{
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        bool is_start =
            field_is(job, "ended_by", "start_failed") || field_is(job, "ended_by", "setup_failed");
        bool is_waiting = field_is(job, "state", "queued") && field_is_known(job, "reason_text");
        if (!is_waiting && !is_start)
            continue;
        _cleanup_free_ char *text = is_waiting ? xstrdup(field_text(job, "reason_text")) : job_outcome(job);
        if (text == NULL)
            continue;
        char *brief = is_waiting ? name_first_ahead(text, jobs) : name_missing(text);
        _cleanup_free_ char *shown = brief != NULL ? brief : shorten(text);
        if (shown != NULL)
            (void)json_object_set_new(job, "brief", json_string(shown));
    }
}
