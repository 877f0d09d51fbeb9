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
#include "job/alias.h"

#define RECENT_JOBS 500U
#define BATCH_IDS   200U // ids in one request, so that its line stays short

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

/* Glob characters in a name that a person typed in full mean themselves. */
static void append_literal_glob(struct buffer *path, const char *name)
{
    _cleanup_buffer_ struct buffer glob = { 0 };
    for (const char *p = name; *p != '\0'; p++) {
        if (strchr("*?[]\\", *p) != NULL)
            buffer_append_text(&glob, "\\");
        buffer_append(&glob, p, 1);
    }
    http_append_encoded(path, buffer_text(&glob));
}

/* The newest of my jobs among the newest `limit` jobs (0: among all), of that name unless it is NULL; 0 for
 * none.
 */
static int ask_newest(
    struct client *client, const char *name, unsigned limit, int64_t *ret_id, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *user = selector_own_user();
    buffer_append_text(&path, API_PATH "/jobs?all=1&user=");
    http_append_encoded(&path, user);
    if (limit > 0)
        buffer_printf(&path, "&limit=%u", limit);
    if (name != NULL) {
        buffer_append_text(&path, "&name=");
        append_literal_glob(&path, name);
    }
    int r = client_get(client, buffer_text(&path), &answer, err);
    if (r < 0)
        return r;
    size_t index = 0;
    json_t *job = NULL;
    *ret_id = 0;
    json_array_foreach(json_object_get(answer, "jobs"), index, job)
    {
        /* The elements of an array bear its name; the array is what was submitted. */
        int64_t id = field_integer(job, "array_job", 0) > 0 ? field_integer(job, "array_job", 0)
                                                            : field_integer(job, "id", 0);
        if (id > *ret_id && (name == NULL || field_is(job, "name", name)))
            *ret_id = id;
    }
    return 0;
}

/* Examines the newest jobs first, so that the usual case is cheap however long the history is. */
static int find_newest(struct client *client, const char *name, struct strings *jobs, struct error *err)
{
    int64_t newest = 0;
    int r = ask_newest(client, name, RECENT_JOBS, &newest, err);
    if (r == 0 && newest == 0)
        r = ask_newest(client, name, 0, &newest, err);
    if (r < 0)
        return r;
    if (newest == 0 && name == NULL) {
        (void)error_set(err, -ENOENT, "you have not submitted a job yet");
        return client_hint_other(client, err);
    }
    if (newest == 0) {
        (void)error_set(err, -ENOENT, "you have no job named '%.100s'", name);
        (void)error_hint(err, "all jobs: mgpu ps -a");
        return client_hint_other(client, err);
    }
    add(jobs, xasprintf("%" PRId64, newest));
    return 0;
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
static int find_alias(
    struct client *client, const struct selector *selector, struct strings *jobs, struct error *err)
{
    int64_t named = 0;
    int r = ask_newest(client, selector->name, RECENT_JOBS, &named, err);
    if (r == 0 && named == 0)
        r = check_alias(client, selector, err);
    if (r == 0)
        add(jobs, named > 0 ? xasprintf("%" PRId64, named) : xasprintf("%" PRIu64, selector->first));
    return r;
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

static int resolve_word(struct client *client, const char *word, struct strings *jobs, struct error *err)
{
    struct selector selector = { 0 };
    int r = selector_parse(word, &selector, err);
    if (r < 0)
        return r;
    switch (selector.kind) {
    case SELECT_ID: add(jobs, xasprintf("%" PRIu64, selector.first)); return 0;
    case SELECT_RANGE: return find_range(client, selector.first, selector.last, jobs, err);
    case SELECT_ELEMENTS:
        for (uint64_t i = selector.first; i <= selector.last; i++)
            add(jobs, xasprintf("%" PRIu64 ".%" PRIu64, selector.array, i));
        return 0;
    case SELECT_ALIAS: return find_alias(client, &selector, jobs, err);
    case SELECT_NEWEST:
    case SELECT_NAME: return find_newest(client, selector.name, jobs, err);
    }
    return 0;
}

int selector_resolve(
    struct client *client, int count, char *const *words, struct strings *ret, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    if (count == 0) {
        (void)error_set(err, -EINVAL, "no job given");
        return error_hint(
            err, "give a number, a range such as 42-45, an element 42.3, a name, or @ for your newest job");
    }
    for (int i = 0; i < count; i++) {
        int r = resolve_word(client, words[i], &jobs, err);
        if (r < 0)
            return r;
        if (jobs.count > SELECTOR_JOBS_MAX)
            return error_set(err, -E2BIG, "more than %u jobs are named", SELECTOR_JOBS_MAX);
    }
    *ret = jobs;
    jobs = (struct strings){ 0 };
    return 0;
}
