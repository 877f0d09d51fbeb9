/* SPDX-License-Identifier: MIT */
/*
 * GET /jobs. Matching ids are collected once; then the list is built in slices (api/slices.h). A job that
 * only the store has is fetched in between.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/element.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/api/slices.h"
#include "job/array.h"
#include "wire/json_text.h"
#include "wire/limits.h"

#define RECENT_MS 3600000

/* "42.3" */
struct named_element {
    uint64_t array;
    uint32_t index;
};

struct list {
    struct slices slices;
    uint32_t states, over; // bits; 0: any
    bool has_user, is_deep;
    bool is_recent; // only jobs that are not over or ended lately
    uint32_t uid;
    const char *name; // pattern, in the query
    unsigned shown;   // bits of enum jobs_shown
    size_t limit;
    uint64_t *ids; // in order
    size_t count, at;
    struct named_element *elements; // of `ids=`; those from `n_elements` on are found
    size_t n_elements;
    size_t positions; // jobs shown with their position so far
    bool is_first;
};

static void release_list(struct request *request)
{
    struct list *list = request->work;
    slices_clear(request);
    free(list->ids);
    free(list->elements);
    free(list);
}

static bool is_wanted(const struct list *list, const struct job *job)
{
    if (list->states != 0 && (list->states & (1U << job->state)) == 0)
        return false;
    if (list->states != 0 && job->state == JOB_DONE && (list->over & jobs_over_bit(job)) == 0)
        return false;
    if (list->is_recent && job->state == JOB_DONE && clock_wall_ms() - job->ended_ms > RECENT_MS)
        return false;
    if (list->has_user && job->uid != list->uid)
        return false;
    return list->name == NULL || fnmatch(list->name, job->name, 0) == 0;
}

/* --- which ids --- */

static void add_id(struct list *list, uint64_t id)
{
    if ((list->count & (list->count - 1)) == 0)
        list->ids = xreallocarray(list->ids, list->count == 0 ? 1 : list->count * 2, sizeof(*list->ids));
    list->ids[list->count++] = id;
}

static void collect_job(void *arg, const struct job *job)
{
    struct list *list = arg;
    if (is_wanted(list, job))
        add_id(list, job->id);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Keeps the newest `limit` ids, in order, each once. */
static void order_ids(struct list *list)
{
    if (list->count == 0)
        return;
    qsort(list->ids, list->count, sizeof(*list->ids), compare_ids);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++)
        if (list->ids[i] != list->ids[kept - 1])
            list->ids[kept++] = list->ids[i];
    size_t surplus = kept > list->limit ? kept - list->limit : 0;
    memmove(list->ids, list->ids + surplus, (kept - surplus) * sizeof(*list->ids));
    list->count = kept - surplus;
}

/* "42", or "42.3", which is looked up later. */
static int read_id(struct list *list, char *word, struct error *err)
{
    int64_t id, index = 0;
    char *dot = strchr(word, '.');
    if (dot != NULL)
        *dot = '\0';
    int r = parse_integer(word, "ids", 1, INT64_MAX, &id, err);
    if (r == 0 && dot != NULL)
        r = parse_integer(dot + 1, "ids", 0, ARRAY_INDEX_MAX, &index, err);
    if (r < 0)
        return r;
    if (dot == NULL) {
        add_id(list, (uint64_t)id);
        return 0;
    }
    list->elements = xreallocarray(list->elements, list->n_elements + 1, sizeof(*list->elements));
    list->elements[list->n_elements++] = (struct named_element){ (uint64_t)id, (uint32_t)index };
    return 0;
}

static int read_ids(struct list *list, const char *text, struct error *err)
{
    while (true) {
        size_t length = strcspn(text, ",");
        _cleanup_free_ char *word = xstrndup(text, length);
        if (list->count + list->n_elements >= LIMIT_LIST_IDS)
            return error_set(err, -EINVAL, "ids names more than %d jobs", LIMIT_LIST_IDS);
        int r = read_id(list, word, err);
        if (r < 0)
            return r;
        if (text[length] == '\0')
            return 0;
        text += length + 1;
    }
}

static void collect(struct request *request, struct list *list)
{
    const struct controller *controller = request->serve->controller;
    if (!list->is_deep) {
        core_each_job(controller->core, collect_job, list);
        return;
    }
    uint64_t last = core_last_job(controller->core);
    for (uint64_t id = last > list->limit ? last - list->limit + 1 : 1; id <= last; id++)
        add_id(list, id);
}

/* --- what is asked --- */

static int read_filters(struct request *request, struct list *list, struct error *err)
{
    const struct query *query = &request->query;
    const char *states = query_get(query, "state"), *user = query_get(query, "user");
    const char *ids = query_get(query, "ids"), *limit = query_get(query, "limit");
    bool is_all = false, is_quick = false, is_sparse = false;
    int64_t most = LIMIT_LIST_JOBS;
    int r = query_get_flag(query, "all", &is_all, err);
    if (r == 0)
        r = query_get_flag(query, "quick", &is_quick, err);
    if (r == 0)
        r = query_get_flag(query, "sparse", &is_sparse, err);
    if (r == 0 && states != NULL)
        r = jobs_parse_states(states, &list->states, &list->over, err);
    if (r == 0 && user != NULL)
        r = usernames_uid(request->serve->names, user, &list->uid, err);
    if (r == 0 && limit != NULL)
        r = parse_integer(limit, "limit", 1, LIMIT_LIST_JOBS, &most, err);
    if (r == 0 && ids != NULL)
        r = read_ids(list, ids, err);
    if (r < 0)
        return r == -ENOENT ? error_set(err, -EINVAL, "user: there is no user '%.60s'", user) : r;
    list->has_user = user != NULL;
    list->name = query_get(query, "name");
    list->limit = (size_t)most;
    list->shown = (is_quick ? SHOW_POSITION : SHOW_QUEUE) | (is_sparse ? SHOW_SPARSE : SHOW_JOB);
    list->is_deep = is_all || ids != NULL;
    list->is_recent = !list->is_deep && states == NULL;
    if (ids == NULL)
        collect(request, list);
    return 0;
}

/* --- the slices --- */

static void fill_slice(struct request *request);

static void append_job(struct request *request, struct list *list, const struct job *job)
{
    if (!is_wanted(list, job))
        return;
    bool is_queue_shown = job->state == JOB_QUEUED && list->positions < LIMIT_LIST_POSITIONS;
    list->positions += is_queue_shown;
    json_t *object =
        jobs_write(request->serve, job, list->shown & (is_queue_shown ? ~0U : ~(unsigned)SHOW_QUEUE));
    _cleanup_free_ char *text = json_text_format(object);
    json_decref(object);
    buffer_append_text(&list->slices.bytes, list->is_first ? "\n" : ",\n");
    buffer_append_text(&list->slices.bytes, text);
    list->is_first = false;
}

static void on_row(void *arg, uint64_t id, struct job *row)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        if (row != NULL)
            append_job(request, request->work, row);
        fill_slice(request);
    }
    job_free(row);
    request_unref(request);
}

static void fill_slice(struct request *request)
{
    struct list *list = request->work;
    struct controller *controller = request->serve->controller;
    while (list->at < list->count && !slices_is_full(&list->slices)) {
        uint64_t id = list->ids[list->at++];
        const struct job *job = core_job(controller->core, id);
        if (job != NULL) {
            append_job(request, list, job);
            continue;
        }
        request_ref(request);
        store_fetch_job(controller->store, id, on_row, request);
        return;
    }
    list->slices.is_last = list->at == list->count;
    if (list->slices.is_last)
        buffer_append_text(&list->slices.bytes, list->is_first ? "]}\n" : "\n]}\n");
    slices_send(request);
}

static void find_elements(struct request *request);

static void on_element(struct request *request)
{
    add_id(request->work, request->job);
    find_elements(request);
}

/* One after the other; then the list is known. */
static void find_elements(struct request *request)
{
    struct list *list = request->work;
    if (list->n_elements > 0) {
        const struct named_element *element = &list->elements[--list->n_elements];
        request->job = element->array;
        request->element = element->index;
        element_find_or(request, on_element, find_elements);
        return;
    }
    order_ids(list);
    slices_begin(request, fill_slice);
}

void handle_list(struct request *request)
{
    struct error err = { 0 };
    struct list *list = xcalloc(1, sizeof(*list));
    request->work = list;
    request->release = release_list;
    if (read_filters(request, list, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    list->is_first = true;
    buffer_append_text(&list->slices.bytes, "{\"schema\":\"" SERVE_SCHEMA "\",\"jobs\":[");
    find_elements(request);
}
