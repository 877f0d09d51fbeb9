/* SPDX-License-Identifier: MIT */
/* A plain number costs no request; everything else is one list. */
#include "cli/selector.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/field.h"

#define RECENT_IDS 500U
#define BATCH_IDS  200U // ids in one request, so that its line stays short

/* Digits alone, as a number; 0 when it is none, since no job has that id. */
static uint64_t read_id(const char *text, const char **ret_end)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*text))
        return 0;
    errno = 0;
    uint64_t id = strtoull(text, &end, 10);
    *ret_end = end;
    return errno == 0 && id <= INT64_MAX ? id : 0;
}

int selector_parse(const char *word, struct selector *ret, struct error *err)
{
    const char *end = word;
    uint64_t first = read_id(word, &end), last = first;
    if (word[0] == '\0')
        return error_set(err, -EINVAL, "an empty word is no job");
    if (strcmp(word, "@") == 0) {
        *ret = (struct selector){ .kind = SELECT_NEWEST };
        return 0;
    }
    if (first > 0 && *end == '-')
        last = read_id(end + 1, &end);
    if (first == 0 || last == 0 || *end != '\0') {
        *ret = (struct selector){ .kind = SELECT_NAME, .name = word };
        return 0;
    }
    if (last < first)
        return error_set(err, -EINVAL, "the range %s runs backwards", word);
    if (last - first >= SELECTOR_JOBS_MAX)
        return error_set(err, -E2BIG, "the range %s names more than %u jobs", word, SELECTOR_JOBS_MAX);
    *ret = (struct selector){
        .kind = first == last ? SELECT_ID : SELECT_RANGE,
        .first = first,
        .last = last,
    };
    return 0;
}

void job_ids_add(struct job_ids *ids, uint64_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id)
            return;
    ids->ids = xreallocarray(ids->ids, ids->count + 1, sizeof(uint64_t));
    ids->ids[ids->count++] = id;
}

void job_ids_clear(struct job_ids *ids)
{
    free(ids->ids);
    *ids = (struct job_ids){ 0 };
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

/* The newest of my jobs among the newest `limit` ids (0: among all), of that name unless it is NULL; 0 for
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
        int64_t id = field_integer(job, "id", 0);
        if (id > *ret_id && (name == NULL || field_is(job, "name", name)))
            *ret_id = id;
    }
    return 0;
}

/* Looks at the newest ids first, so that the usual case costs little however long the history is. */
static int find_newest(struct client *client, const char *name, struct job_ids *ids, struct error *err)
{
    int64_t newest = 0;
    int r = ask_newest(client, name, RECENT_IDS, &newest, err);
    if (r == 0 && newest == 0)
        r = ask_newest(client, name, 0, &newest, err);
    if (r < 0)
        return r;
    if (newest == 0 && name == NULL)
        return error_set(err, -ENOENT, "you have no job yet");
    if (newest == 0) {
        (void)error_set(err, -ENOENT, "you have no job called '%.100s'", name);
        return error_hint(err, "all jobs: mgpu ps -a");
    }
    job_ids_add(ids, (uint64_t)newest);
    return 0;
}

/* The jobs of one part of a range that exist. */
static int find_batch(
    struct client *client, uint64_t first, uint64_t last, struct job_ids *ids, struct error *err)
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
        job_ids_add(ids, (uint64_t)field_integer(job, "id", 0));
    return 0;
}

static int find_range(
    struct client *client, uint64_t first, uint64_t last, struct job_ids *ids, struct error *err)
{
    size_t before = ids->count;
    for (uint64_t from = first; from <= last; from += BATCH_IDS) {
        int r = find_batch(client, from, last - from < BATCH_IDS ? last : from + BATCH_IDS - 1, ids, err);
        if (r < 0)
            return r;
    }
    if (ids->count == before)
        return error_set(err, -ENOENT, "there is no job from %" PRIu64 " to %" PRIu64, first, last);
    return 0;
}

static int resolve_word(struct client *client, const char *word, struct job_ids *ids, struct error *err)
{
    struct selector selector = { 0 };
    int r = selector_parse(word, &selector, err);
    if (r < 0)
        return r;
    switch (selector.kind) {
    case SELECT_ID: job_ids_add(ids, selector.first); return 0;
    case SELECT_RANGE: return find_range(client, selector.first, selector.last, ids, err);
    case SELECT_NEWEST:
    case SELECT_NAME: return find_newest(client, selector.name, ids, err);
    }
    return 0;
}

int selector_resolve(
    struct client *client, int count, char *const *words, struct job_ids *ret, struct error *err)
{
    struct job_ids ids = { 0 };
    if (count == 0) {
        (void)error_set(err, -EINVAL, "no job given");
        return error_hint(err, "give a number, a range such as 42-45, a name, or @ for your newest job");
    }
    for (int i = 0; i < count; i++) {
        int r = resolve_word(client, words[i], &ids, err);
        if (r == 0 && ids.count > SELECTOR_JOBS_MAX)
            r = error_set(err, -E2BIG, "more than %u jobs are named", SELECTOR_JOBS_MAX);
        if (r < 0) {
            job_ids_clear(&ids);
            return r;
        }
    }
    *ret = ids;
    return 0;
}
