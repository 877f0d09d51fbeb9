/* SPDX-License-Identifier: MIT */
/* A plain number needs no request; everything else uses one list. */
#include "cli/options/selector.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/call.h"
#include "cli/options/job_name.h"
#include "job/alias.h"

#define BATCH_IDS 200U // ids in one request, so that its line stays short

/* Digits alone; false when there are none or they are too many. */
static bool read_number(const char *text, uint64_t *ret, const char **ret_end)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || number > INT64_MAX)
        return false;
    *ret = number;
    *ret_end = end;
    return true;
}

static int check_range(const char *word, const struct selector *range, struct error *err)
{
    if (range->last < range->first)
        return error_set(err, -EINVAL, "the range %.60s is reversed", word);
    if (range->last - range->first >= SELECTOR_JOBS_MAX)
        return error_set(err, -E2BIG, "the range %.60s names more than %u jobs", word, SELECTOR_JOBS_MAX);
    return 0;
}

/* "3" or "3-9" up to the end of the word. */
static bool read_range(const char *text, struct selector *ret)
{
    const char *end = text;
    if (!read_number(text, &ret->first, &end))
        return false;
    ret->last = ret->first;
    if (*end == '-' && !read_number(end + 1, &ret->last, &end))
        return false;
    return *end == '\0';
}

int selector_parse(const char *word, struct selector *ret, struct error *err)
{
    struct selector found = { 0 };
    const char *end = word;
    uint64_t alias = 0;
    if (word[0] == '\0')
        return error_set(err, -EINVAL, "an empty word does not name a job");
    if (strcmp(word, "@") == 0) {
        *ret = (struct selector){ .kind = SELECT_NEWEST };
        return 0;
    }
    if (read_range(word, &found) && found.first > 0 && found.last > 0)
        found.kind = found.first == found.last ? SELECT_ID : SELECT_RANGE;
    else if (read_number(word, &found.array, &end) && found.array > 0 && *end == '.' &&
             read_range(end + 1, &found))
        found.kind = SELECT_ELEMENTS;
    else if (job_alias_parse(word, &alias))
        found = (struct selector){ .kind = SELECT_ALIAS, .first = alias, .last = alias, .name = word };
    else
        found = (struct selector){ .kind = SELECT_NAME, .name = word };
    int r = check_range(word, &found, err);
    if (r < 0)
        return r;
    *ret = found;
    return 0;
}

/* Each once. */
static void add(struct strings *jobs, char *job)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (strcmp(jobs->items[i], job) == 0) {
            free(job);
            return;
        }
    strings_take(jobs, job);
}

char *selector_own_user(void)
{
    const struct passwd *user = getpwuid(geteuid());
    return user != NULL ? xstrdup(user->pw_name) : xasprintf("%u", (unsigned)geteuid());
}

/* What the words of one command are resolved with. */
struct resolving {
    struct client *client;
    enum job_name_use use;
    bool must_tell;
    struct strings jobs;
};

static int add_found(struct resolving *resolving, int64_t id)
{
    add(&resolving->jobs, xasprintf("%" PRId64, id));
    return 0;
}

static int find_newest(struct resolving *resolving, struct error *err)
{
    int64_t id = 0;
    int r = job_name_find_newest(resolving->client, &id, err);
    if (r != -ENOENT)
        return r < 0 ? r : add_found(resolving, id);
    (void)error_set(err, -ENOENT, "you have not submitted a job yet");
    return client_hint_other(resolving->client, err);
}

static int find_name(struct resolving *resolving, const char *name, struct error *err)
{
    int64_t id = 0;
    int r = job_name_find(resolving->client, name, resolving->use, resolving->must_tell, &id, err);
    if (r != -ENOENT)
        return r < 0 ? r : add_found(resolving, id);
    (void)error_set(err, -ENOENT, "you have no job named '%.100s'", name);
    (void)error_hint(err, "all jobs: mgpu ps -a");
    return client_hint_other(resolving->client, err);
}

/* The jobs of one part of a range that exist. */
static int find_batch(
    struct client *client, uint64_t first, uint64_t last, struct strings *jobs, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    buffer_append_text(&path, API_PATH "/jobs?all=1&ids=");
    for (uint64_t id = first; id <= last; id++)
        buffer_printf(&path, "%s%" PRIu64, id > first ? "," : "", id);
    int r = client_get(client, buffer_text(&path), &answer, err);
    if (r < 0)
        return r;
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(json_object_get(answer, "jobs"), index, job)
        add(jobs, xasprintf("%" PRId64, field_integer(job, "id", 0)));
    return 0;
}

/* The error has the name as it was typed. */
static int check_alias(struct client *client, const struct selector *selector, struct error *err)
{
    _cleanup_strings_ struct strings found = { 0 };
    int r = find_batch(client, selector->first, selector->first, &found, err);
    if (r < 0 || found.count > 0)
        return r;
    (void)error_set(err, -ENOENT, "there is no job %.60s", selector->name);
    (void)error_hint(err, "all jobs: mgpu ps -a");
    return client_hint_other(client, err);
}

/* A job that its owner called so comes first. */
static int find_alias(struct resolving *resolving, const struct selector *selector, struct error *err)
{
    int64_t id = (int64_t)selector->first;
    int r = job_name_find(resolving->client, selector->name, resolving->use, resolving->must_tell, &id, err);
    if (r == -ENOENT)
        r = check_alias(resolving->client, selector, err);
    return r < 0 ? r : add_found(resolving, id);
}

static int find_range(
    struct client *client, uint64_t first, uint64_t last, struct strings *jobs, struct error *err)
{
    size_t before = jobs->count;
    for (uint64_t from = first; from <= last; from += BATCH_IDS) {
        int r = find_batch(client, from, last - from < BATCH_IDS ? last : from + BATCH_IDS - 1, jobs, err);
        if (r < 0)
            return r;
    }
    if (jobs->count == before) {
        (void)error_set(err, -ENOENT, "there is no job from %" PRIu64 " to %" PRIu64, first, last);
        return client_hint_other(client, err);
    }
    return 0;
}

static int resolve_word(struct resolving *resolving, const char *word, struct error *err)
{
    struct selector selector = { 0 };
    struct strings *jobs = &resolving->jobs;
    int r = selector_parse(word, &selector, err);
    if (r < 0)
        return r;
    switch (selector.kind) {
    case SELECT_ID: add(jobs, xasprintf("%" PRIu64, selector.first)); return 0;
    case SELECT_RANGE: return find_range(resolving->client, selector.first, selector.last, jobs, err);
    case SELECT_ELEMENTS:
        for (uint64_t i = selector.first; i <= selector.last; i++)
            add(jobs, xasprintf("%" PRIu64 ".%" PRIu64, selector.array, i));
        return 0;
    case SELECT_ALIAS: return find_alias(resolving, &selector, err);
    case SELECT_NEWEST: return find_newest(resolving, err);
    case SELECT_NAME: return find_name(resolving, selector.name, err);
    }
    return 0;
}

static int resolve(struct resolving *resolving, int count, char *const *words, struct error *err)
{
    if (count == 0) {
        (void)error_set(err, -EINVAL, "no job given");
        return error_hint(
            err, "give a number, a range such as 42-45, an element 42.3, a name, or @ for your newest job");
    }
    for (int i = 0; i < count; i++) {
        int r = resolve_word(resolving, words[i], err);
        if (r < 0)
            return r;
        if (resolving->jobs.count > SELECTOR_JOBS_MAX)
            return error_set(err, -E2BIG, "more than %u jobs are named", SELECTOR_JOBS_MAX);
    }
    return 0;
}

int selector_resolve_by(struct client *client, enum job_name_use use, bool must_tell, int count,
    char *const *words, struct strings *ret, struct error *err)
{
    struct resolving resolving = { .client = client, .use = use, .must_tell = must_tell };
    int r = resolve(&resolving, count, words, err);
    if (r < 0)
        strings_clear(&resolving.jobs);
    else
        *ret = resolving.jobs;
    return r;
}

int selector_resolve(struct call *call, int count, char *const *words, struct strings *ret, struct error *err)
{
    return selector_resolve_by(
        &call->client, call->command->job_name_use, !call->is_quiet, count, words, ret, err);
}
