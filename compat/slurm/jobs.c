/* SPDX-License-Identifier: MIT */
/*
 * An element of an array is part of the job with the array's number until it starts; then it is a job of its
 * own, as in Slurm. Listing an array by its number shows both.
 */
#include "compat/slurm/jobs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/api/client.h"
#include "cli/term/time_text.h"
#include "compat/slurm/slurm.h"
#include "job/array.h"
#include "wire/limits.h"

#define IDS_BYTES_MAX 6000U // bytes of ids per request: less than the limit of a path

void slurm_ids_clear(struct slurm_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        free(ids->items[i].step);
    free(ids->items);
    *ids = (struct slurm_ids){ 0 };
}

static void add(struct slurm_ids *ids, uint64_t job, int64_t index, const char *step)
{
    ids->items = xreallocarray(ids->items, ids->count + 1, sizeof(*ids->items));
    ids->items[ids->count++] =
        (struct slurm_id){ .job = job, .index = index, .step = step != NULL ? xstrdup(step) : NULL };
}

static int refuse(const struct slurm_ids *ids, const char *text, struct error *err)
{
    const char *refusal = ids->refusal != NULL ? ids->refusal : "Invalid job id specified: ";
    return error_mark(err, ids->words, error_set(err, -EINVAL, "%s%.60s", refusal, text));
}

/* All of them or none: a part would be mistaken for the whole. */
static int refuse_many(struct error *err)
{
    return error_set(
        err, -E2BIG, "more than %u job ids: name fewer, or a whole array by its number", SLURM_IDS_MAX);
}

/* "12_[1-3,7%2]": each of them. */
static int add_elements(
    const char *text, uint64_t job, const char *list, struct slurm_ids *ids, struct error *err)
{
    struct array array = { 0 };
    size_t length = strcspn(list, "%]");
    _cleanup_free_ char *indexes = xstrndup(list, length);
    if (strchr(list, ']') == NULL || parse_array(indexes, &array, NULL) < 0)
        return refuse(ids, text, err);
    int r = ids->count + array_size(&array) > SLURM_IDS_MAX ? refuse_many(err) : 0;
    for (size_t i = 0; r == 0 && i < array.count; i++)
        for (uint64_t k = array.ranges[i].first; k <= array.ranges[i].last;
             k += array.ranges[i].step > 0 ? array.ranges[i].step : 1)
            add(ids, job, (int64_t)k, NULL);
    array_clear(&array);
    return r;
}

static int parse_one(const char *text, struct slurm_ids *ids, struct error *err)
{
    char *rest = NULL;
    int64_t job = 0, index = SLURM_NO_INDEX;
    size_t digits = strspn(text, "0123456789");
    _cleanup_free_ char *number = xstrndup(text, digits);
    if (digits == 0 || parse_integer(number, "job", 0, INT64_MAX, &job, NULL) < 0)
        return refuse(ids, text, err);
    rest = (char *)(uintptr_t)text + digits;
    if (rest[0] == '_' && rest[1] == '[')
        return add_elements(text, (uint64_t)job, rest + 2, ids, err);
    if (rest[0] == '_' && rest[1] == '*')
        rest += 2;
    if (rest[0] == '_') {
        if (!isdigit((unsigned char)rest[1]))
            return refuse(ids, text, err);
        index = strtoll(rest + 1, &rest, 10);
    }
    if (rest[0] == '+') // a component of a heterogeneous job, which does not exist here
        rest += strcspn(rest, ".");
    if (rest[0] != '\0' && rest[0] != '.')
        return refuse(ids, text, err);
    if (ids->has_numbers && rest[0] == '.' && rest[1 + strspn(rest + 1, "0123456789")] != '\0')
        return refuse(ids, text, err);
    add(ids, (uint64_t)job, index, rest[0] == '.' ? rest + 1 : NULL);
    return 0;
}

int slurm_ids_parse(const char *text, struct slurm_ids *ids, struct error *err)
{
    int r = 0;
    for (const char *p = text; r == 0 && *p != '\0';) {
        bool is_inside = false;
        const char *end = p;
        for (; *end != '\0' && (is_inside || *end != ','); end++)
            is_inside = *end == '[' || (is_inside && *end != ']');
        _cleanup_free_ char *one = xstrndup(p, (size_t)(end - p));
        if (ids->count >= SLURM_IDS_MAX)
            return refuse_many(err);
        r = one[0] == '\0' ? 0 : parse_one(one, ids, err);
        p = *end == '\0' ? end : end + 1;
    }
    return r;
}

char *slurm_id_path(const struct slurm_id *id)
{
    return id->index == SLURM_NO_INDEX ? xasprintf("%" PRIu64, id->job)
                                       : xasprintf("%" PRIu64 ".%" PRId64, id->job, id->index);
}

bool slurm_id_fits(const struct slurm_id *id, const json_t *job)
{
    uint64_t number = (uint64_t)field_integer(job, "id", 0);
    uint64_t array = (uint64_t)field_integer(job, "array_job", 0);
    if (id->index == SLURM_NO_INDEX)
        return number == id->job || array == id->job;
    if (array == id->job)
        return field_integer(job, "array_index", SLURM_NO_INDEX) == id->index;
    const char *left = number == id->job ? field_text(job, "array_left") : NULL;
    _cleanup_free_ char *without = left != NULL ? array_without(left, (uint32_t)id->index) : NULL;
    return without != NULL;
}

/* The next word of a list, which is cut up; NULL: there is none. */
static char *next_word(char **rest)
{
    char *word = strsep(rest, ",");
    if (word == NULL)
        return NULL;
    word += strspn(word, " ");
    for (size_t length = strlen(word); length > 0 && word[length - 1] == ' '; length--)
        word[length - 1] = '\0';
    return word;
}

/* True for a word of the list, with the blanks around it. */
static bool has_whole(const char *list, const char *text)
{
    size_t length = strlen(text);
    for (const char *word = list; word != NULL;
         word = strchr(word, ',') != NULL ? strchr(word, ',') + 1 : NULL)
        if (strcspn(word, ",") == length && strncmp(word, text, length) == 0)
            return true;
    return false;
}

bool slurm_list_has(const char *list, const char *text)
{
    _cleanup_free_ char *copy = xstrdup(list);
    char *rest = copy;
    for (char *word = NULL; text != NULL && (word = next_word(&rest)) != NULL;)
        if (strcmp(word, text) == 0)
            return true;
    return text != NULL && has_whole(list, text);
}

static bool has_node(const json_t *job, const char *name)
{
    size_t index = 0;
    const json_t *rank = NULL;
    json_array_foreach(
        json_object_get(job, "ranks"), index, rank) if (field_is(rank, "node", name)) return true;
    return field_is(job, "node", name);
}

bool slurm_job_is_on(const json_t *job, const char *nodes)
{
    _cleanup_strings_ struct strings names = { 0 };
    if (hostlist_expand(nodes, &names, NULL) < 0)
        return false;
    for (size_t i = 0; i < names.count; i++)
        if (has_node(job, names.items[i]))
            return true;
    return false;
}

bool slurm_job_is_old(const json_t *job, int64_t now_ms)
{
    const char *ended = field_text(job, "ended_at");
    return ended != NULL && now_ms - time_parse(ended) > SLURM_MIN_JOB_AGE * INT64_C(1000);
}

bool slurm_lists_meet(const char *list, const char *other)
{
    _cleanup_free_ char *copy = xstrdup(other);
    char *rest = copy;
    for (char *word = NULL; (word = next_word(&rest)) != NULL;)
        if (word[0] != '\0' && slurm_list_has(list, word))
            return true;
    return false;
}

const char *slurm_job_note(const json_t *job, const char *name)
{
    size_t index = 0, length = strlen(name);
    json_t *note = NULL;
    json_array_foreach(json_object_get(job, "slurm"), index, note)
    {
        const char *text = json_string_value(note);
        if (text != NULL && strncmp(text, name, length) == 0 && text[length] == '=')
            return text + length + 1;
    }
    return NULL;
}

/* True for an array without waiting elements, which is not listed because its elements are; unless it was
 * cancelled before any element became a job. */
static bool is_shell(const json_t *job)
{
    const char *left = field_text(job, "array_left");
    const json_t *elements = json_object_get(job, "elements");
    bool was_never_split = field_integer(elements, "cancelled", 0) == field_integer(elements, "all", -1) &&
                           !field_is_known(elements, "exit_code");
    return field_is_known(job, "array") && !field_is_known(job, "array_job") &&
           (left == NULL || left[0] == '\0') && !was_never_split;
}

/* --- lists --- */

static int get(struct client *client, const char *query, json_t *ret, struct error *err)
{
    _cleanup_json_ json_t *page = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs?sparse=1%s", query);
    int r = client_get(client, path, &page, err);
    if (r == 0)
        (void)json_array_extend(ret, json_object_get(page, "jobs"));
    return r;
}

/* Appends it as a value of a query. */
static void add_escaped(struct buffer *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if (isalnum((unsigned char)*p) || strchr("-_.,", *p) != NULL)
            buffer_append(out, p, 1);
        else
            buffer_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
}

/* Requests jobs by number, some at a time. */
static int get_ids(struct client *client, const struct slurm_ids *ids, json_t *ret, struct error *err)
{
    _cleanup_buffer_ struct buffer query = { 0 };
    int r = 0;
    size_t count = 0;
    for (size_t i = 0; r == 0 && i < ids->count; i++) {
        bool is_again = i > 0 && ids->items[i].job == ids->items[i - 1].job; // another element
        if (!is_again)
            buffer_printf(&query, "%s%" PRIu64, query.length == 0 ? "&all=1&ids=" : ",", ids->items[i].job);
        count += !is_again;
        if (query.length == 0 ||
            (query.length < IDS_BYTES_MAX && count < LIMIT_LIST_IDS && i + 1 < ids->count))
            continue;
        count = 0;
        r = get(client, buffer_text(&query), ret, err);
        buffer_clear(&query);
    }
    return r;
}

/* The elements of arrays among them that are separate jobs. */
static int get_elements(struct client *client, json_t *jobs, struct error *err)
{
    size_t index = 0;
    json_t *job = NULL;
    _cleanup_buffer_ struct buffer users = { 0 };
    json_array_foreach(jobs, index, job)
    {
        const char *user = field_text(job, "user");
        bool is_array = field_is_known(job, "array") && !field_is_known(job, "array_job");
        if (is_array && user != NULL && !slurm_list_has(users.length > 0 ? buffer_text(&users) : "", user))
            buffer_printf(&users, "%s%s", users.length > 0 ? "," : "", user);
    }
    if (users.length == 0)
        return 0;
    _cleanup_free_ char *copy = buffer_take(&users);
    char *rest = copy;
    int r = 0;
    for (char *user = NULL; r == 0 && (user = strsep(&rest, ",")) != NULL;) {
        _cleanup_buffer_ struct buffer query = { 0 };
        buffer_append_text(&query, "&all=1&user=");
        add_escaped(&query, user);
        r = get(client, buffer_text(&query), jobs, err);
    }
    return r;
}

struct numbered {
    int64_t id;
    json_t *job;
};

static int by_id(const void *a, const void *b)
{
    const struct numbered *first = a, *second = b;
    return (first->id > second->id) - (first->id < second->id);
}

static int by_job_and_index(const void *a, const void *b)
{
    const struct slurm_id *first = a, *second = b;
    if (first->job != second->job)
        return first->job < second->job ? -1 : 1;
    return (first->index > second->index) - (first->index < second->index);
}

static bool has_id(const struct slurm_ids *sorted, uint64_t job, int64_t index)
{
    const struct slurm_id key = { .job = job, .index = index };
    return bsearch(&key, sorted->items, sorted->count, sizeof(key), by_job_and_index) != NULL;
}

/* Like slurm_id_fits for any of them, for lists of thousands. */
static bool fits_any(const struct slurm_ids *sorted, const json_t *job)
{
    uint64_t number = (uint64_t)field_integer(job, "id", 0);
    uint64_t array = (uint64_t)field_integer(job, "array_job", 0);
    if (has_id(sorted, number, SLURM_NO_INDEX) || (array != 0 && has_id(sorted, array, SLURM_NO_INDEX)))
        return true;
    if (array != 0)
        return has_id(sorted, array, field_integer(job, "array_index", SLURM_NO_INDEX));
    for (size_t i = 0; field_text(job, "array_left") != NULL && i < sorted->count; i++)
        if (sorted->items[i].job == number && slurm_id_fits(&sorted->items[i], job))
            return true;
    return false;
}

static bool is_wanted(const struct slurm_query *query, const struct slurm_ids *sorted, const json_t *job)
{
    bool fits = sorted->count == 0 || fits_any(sorted, job);
    _cleanup_free_ char *uid =
        query->users != NULL ? xasprintf("%" PRId64, field_integer(job, "uid", -1)) : NULL;
    bool is_users = query->users == NULL || slurm_list_has(query->users, field_text(job, "user")) ||
                    slurm_list_has(query->users, uid);
    return fits && is_users && (query->name == NULL || field_is(job, "name", query->name)) &&
           (query->names == NULL || slurm_list_has(query->names, field_text(job, "name"))) && !is_shell(job);
}

/* Sorted, without duplicates, only the requested ones. */
static json_t *sift(const struct slurm_query *query, json_t *jobs)
{
    json_t *ret = json_array();
    size_t count = json_array_size(jobs);
    _cleanup_free_ struct numbered *sorted = xcalloc(count + 1, sizeof(*sorted));
    for (size_t i = 0; i < count; i++) {
        sorted[i].job = json_array_get(jobs, i);
        sorted[i].id = field_integer(sorted[i].job, "id", 0);
    }
    qsort(sorted, count, sizeof(*sorted), by_id);
    size_t n_ids = query->ids != NULL ? query->ids->count : 0;
    _cleanup_free_ struct slurm_id *items = xcalloc(n_ids + 1, sizeof(*items));
    for (size_t i = 0; i < n_ids; i++)
        items[i] = query->ids->items[i];
    qsort(items, n_ids, sizeof(*items), by_job_and_index);
    const struct slurm_ids ids = { .items = items, .count = n_ids };
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || sorted[i - 1].id != sorted[i].id) && is_wanted(query, &ids, sorted[i].job))
            (void)json_array_append(ret, sorted[i].job);
    return ret;
}

/* The indexes of the array that are not jobs in this list; NULL: it is not certain that the missing ones were
 * cancelled before they started. The caller frees it. */
static char *never_started(const json_t *array, const json_t *jobs)
{
    const json_t *elements = json_object_get(array, "elements"), *job = NULL;
    int64_t missing = field_integer(elements, "all", 0), cancelled = field_integer(elements, "cancelled", 0);
    size_t index = 0;
    json_array_foreach(
        jobs, index, job) if (field_integer(job, "array_job", 0) == field_integer(array, "id", -1))
    {
        missing--;
        cancelled -= field_is(job, "state", "cancelled");
    }
    if (missing <= 0 || missing != cancelled)
        return NULL;
    char *left = array_indexes(field_text(array, "array"));
    json_array_foreach(jobs, index,
        job) if (left != NULL && field_integer(job, "array_job", 0) == field_integer(array, "id", -1))
    {
        char *rest = array_without(left, (uint32_t)field_integer(job, "array_index", 0));
        free(left);
        left = rest;
    }
    return left;
}

/* Elements that were cancelled while they waited have never been jobs: they are a line of their array, as in
 * Slurm. A client that requested them by index must find them. */
static void keep_cancelled(json_t *jobs)
{
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        bool is_over = field_is_known(job, "ended_at");
        if (!is_over || !is_shell(job) ||
            field_integer(json_object_get(job, "elements"), "cancelled", 0) == 0)
            continue;
        _cleanup_free_ char *left = never_started(job, jobs);
        if (left == NULL || left[0] == '\0')
            continue;
        (void)json_object_set_new(job, "array_left", json_string(left));
        (void)json_object_set_new(job, "state", json_string("cancelled"));
        (void)json_object_set_new(job, "ended_by", json_string("cancelled"));
    }
}

int slurm_jobs_get(struct client *client, const struct slurm_query *query, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *jobs = json_array();
    int r = 0;
    if (query->ids != NULL && query->ids->count > 0) {
        r = get_ids(client, query->ids, jobs, err);
        if (r == 0)
            r = get_elements(client, jobs, err);
    } else {
        _cleanup_buffer_ struct buffer text = { 0 };
        bool is_one = query->users != NULL && strpbrk(query->users, ", ") == NULL;
        buffer_printf(&text, "%s%s%s", query->has_ended ? "&all=1" : "",
            query->has_open_alone ? "&state=queued,starting,running,stopping" : "",
            query->is_quick ? "&quick=1" : "");
        if (is_one) {
            buffer_append_text(&text, "&user=");
            add_escaped(&text, query->users);
        }
        r = get(client, text.length > 0 ? buffer_text(&text) : "", jobs, err);
    }
    if (r == 0) {
        keep_cancelled(jobs);
        *ret = sift(query, jobs);
    }
    return r;
}

json_t *slurm_job_element(const json_t *job, uint32_t index)
{
    json_t *element = json_copy((json_t *)(uintptr_t)job);
    (void)json_object_set(element, "array_job", json_object_get(job, "id"));
    (void)json_object_set_new(element, "array_index", json_integer(index));
    (void)json_object_del(element, "array_left");
    return element;
}

static bool names_whole(const struct slurm_ids *ids, const json_t *job)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->items[i].index == SLURM_NO_INDEX && slurm_id_fits(&ids->items[i], job))
            return true;
    return ids->count == 0;
}

void slurm_jobs_narrow(const struct slurm_ids *ids, json_t **jobs)
{
    json_t *all = json_array(), *job = NULL;
    size_t index = 0;
    json_array_foreach(*jobs, index, job)
    {
        if (!field_is_known(job, "array_left") || names_whole(ids, job)) {
            (void)json_array_append(all, job);
            continue;
        }
        for (size_t i = 0; i < ids->count; i++)
            if (slurm_id_fits(&ids->items[i], job))
                (void)json_array_append_new(all, slurm_job_element(job, (uint32_t)ids->items[i].index));
    }
    json_decref(*jobs);
    *jobs = all;
}

const char *slurm_own_name(void)
{
    const struct passwd *user = getpwuid(geteuid());
    return user != NULL ? user->pw_name : "";
}

int slurm_users_check(const char *list, const char *what, struct error *err)
{
    _cleanup_free_ char *copy = list != NULL ? xstrdup(list) : NULL;
    char *rest = copy;
    for (char *word = NULL; rest != NULL && (word = next_word(&rest)) != NULL;)
        if (strspn(word, "0123456789") != strlen(word) && getpwnam(word) == NULL)
            return error_set(err, -EINVAL, "%s: %.60s", what, word);
    return 0;
}
