/* SPDX-License-Identifier: MIT */
/*
 * GET /jobs, in parts (http/slices.h), each of them a turn in the fair queue:
 *
 *   scan: matching ids ──> make_forecasts: if expected starts are shown ──> fill: the jobs of these ids
 *
 * With `all`, the ids are read from the store first, and the scan adds the jobs that have not ended. A job
 * that exists only in the store is fetched in between.
 *
 * With `fold`, arrays represent their ended elements: such an element is never listed, and an array matches
 * the filter if one of its elements would. The numbers come from the array's record, so no limit affects
 * them.
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
#include "controller/api/list_top.h"
#include "controller/api/routes.h"
#include "controller/http/fair_queue.h"
#include "controller/http/slices.h"
#include "job/array.h"
#include "job/behind.h"
#include "job/elements.h"
#include "wire/limits.h"

#define RECENT_MS 3600000
#define SCAN_JOBS 1024 // jobs scanned between two checks of the clock
#define STEPS     1U   // steps of a forecast between two checks of the clock: one can start a thousand jobs

/* "42.3" */
struct named_element {
    uint64_t array;
    uint32_t index;
};

struct list {
    struct slices slices;
    uint32_t states, over; // bits; 0: any
    bool has_user, is_deep;
    bool is_folded; // ended elements are represented by their arrays
    bool is_recent; // only jobs that have not ended or ended recently
    uint32_t uid;
    const char *name; // pattern; points into the query
    unsigned shown;   // bits of enum jobs_shown
    size_t limit;
    bool has_limit;
    uint64_t after; // only higher ids, from the lowest; 0: the highest ids
    bool has_after;
    uint64_t *ids; // in order
    size_t count, at;
    uint64_t scanned; // the last id scanned
    uint64_t next;    // `after` of the next page; 0: there is none
    struct list_top *top;
    struct named_element *elements; // from `ids=`; those from `n_elements` on have been found
    size_t n_elements;
    size_t positions;     // jobs with a position listed so far
    uint64_t n_forecasts; // number of forecasts made before this list
    bool is_first;
};

static void release_list(struct request *request)
{
    struct list *list = request->work;
    slices_clear(request);
    list_top_free(list->top);
    free(list->ids);
    free(list->elements);
    free(list);
}

static bool is_state_wanted(const struct list *list, const struct job *job)
{
    if (list->states == 0)
        return true;
    return (list->states & (1U << job_shown_state(job))) != 0 &&
           (job->state != JOB_DONE || (list->over & jobs_over_bit(job)) != 0);
}

/* An array whose elements are all separate jobs is listed for those that have ended. */
static bool is_array_wanted(const struct list *list, const struct job *job)
{
    struct job_elements elements = job_elements(job);
    bool is_left = elements.waiting > 0;
    if (list->states == 0)
        return is_left || job_elements_ended(&elements) > 0;
    const uint32_t counts[] = {
        [OVER_DONE] = elements.done, [OVER_FAILED] = elements.failed, [OVER_CANCELLED] = elements.cancelled
    };
    if (is_left && is_state_wanted(list, job))
        return true;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i] > 0 && (list->states & (1U << JOB_DONE)) != 0 && (list->over & (1U << i)) != 0)
            return true;
    return false;
}

static bool is_wanted(const struct list *list, const struct job *job)
{
    if (list->is_folded && job->array_job != 0 && job->state == JOB_DONE)
        return false;
    if (!(list->is_folded && job_is_array(job) ? is_array_wanted(list, job) : is_state_wanted(list, job)))
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
    if (!is_wanted(list, job) || (list->is_deep && job->state == JOB_DONE)) // ended jobs come from the store
        return;
    if (list->top != NULL)
        list_top_note(list->top, job, list->is_folded && job_is_split_up(job) ? JOB_DONE : job->state);
    else
        add_id(list, job->id);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Keeps `limit` ids, sorted and unique: the newest, or the oldest after a given id. */
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
    list->count = kept - surplus;
    if (!list->has_after)
        memmove(list->ids, list->ids + surplus, list->count * sizeof(*list->ids));
    else if (surplus > 0)
        list->next = list->ids[list->count - 1];
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

static bool is_job_wanted(void *arg, const struct job *job)
{
    return is_wanted(arg, job);
}

static void take_id(void *arg, uint64_t id)
{
    add_id(arg, id);
}

static void find_elements(struct request *request);

static void scan(struct request *request)
{
    struct list *list = request->work;
    const struct core *core = request->serve->controller->core;
    int64_t until_us = clock_boot_us() + SLICE_US;
    bool is_over = false;
    while (!is_over && clock_boot_us() < until_us) {
        list->scanned = core_each_job_after(core, list->scanned, SCAN_JOBS, collect_job, list);
        is_over = list->scanned == 0 || (list->has_after && !list->is_deep && list->count > list->limit);
    }
    if (!is_over) {
        fair_queue_add(request, scan);
        return;
    }
    if (list->top != NULL)
        list_top_take(list->top, core, list->has_user ? &list->uid : NULL, is_job_wanted, take_id, list);
    find_elements(request);
}

static void ask_store(struct request *request, uint64_t from);

static void on_ids(void *arg, const uint64_t *ids, size_t count, uint64_t next)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        struct list *list = request->work;
        size_t wanted = list->limit + list->has_after; // one more shows whether there is a next page
        for (size_t i = 0; i < count && list->count < wanted; i++)
            add_id(list, ids[i]);
        if (next != 0 && list->count < wanted) {
            ask_store(request, next);
        } else {
            if (!list->has_limit && !list->has_after)
                list->limit = SIZE_MAX; // jobs that have not ended are never omitted
            scan(request);
        }
    }
    request_unref(request);
}

/* With a limit, that many jobs are examined; without, all that match are returned. A short list is cheap
 * however few jobs match, and a list without a limit is complete however many do not. */
static void ask_store(struct request *request, uint64_t from)
{
    struct list *list = request->work;
    struct store_ids_query query = { .order = list->has_after ? STORE_OLDEST_FIRST : STORE_NEWEST_FIRST,
        .from = from,
        .most = list->limit + list->has_after - list->count,
        .uid = STORE_ANY_USER };
    if (!list->has_limit) {
        query.most = list->limit;
        query.uid = list->has_user ? (int64_t)list->uid : STORE_ANY_USER;
        query.name = list->name;
    }
    query.has_no_elements = list->is_folded;
    request_ref(request);
    store_fetch_ids(request->serve->controller->store, &query, on_ids, request);
}

/* --- what is asked --- */

static int read_filters(struct request *request, struct list *list, struct error *err)
{
    const struct query *query = &request->query;
    const char *states = query_get(query, "state"), *user = query_get(query, "user");
    const char *ids = query_get(query, "ids"), *limit = query_get(query, "limit");
    const char *after = query_get(query, "after"), *top = query_get(query, "top");
    bool is_all = false, is_quick = false, is_sparse = false, is_folded = false;
    int64_t most = LIMIT_LIST_JOBS, cursor = 0, each = 0;
    int r = query_get_flag(query, "all", &is_all, err);
    if (r == 0)
        r = query_get_flag(query, "quick", &is_quick, err);
    if (r == 0)
        r = query_get_flag(query, "sparse", &is_sparse, err);
    if (r == 0)
        r = query_get_flag(query, "fold", &is_folded, err);
    if (r == 0 && states != NULL)
        r = jobs_parse_states(states, &list->states, &list->over, err);
    if (r == 0 && user != NULL)
        r = jobs_parse_user(request, user, &list->uid, err);
    if (r == 0 && limit != NULL)
        r = parse_integer(limit, "limit", 1, LIMIT_LIST_JOBS, &most, err);
    if (r == 0 && after != NULL)
        r = parse_integer(after, "after", 0, INT64_MAX - LIMIT_LIST_JOBS, &cursor, err);
    if (r == 0 && top != NULL)
        r = parse_integer(top, "top", 1, LIMIT_LIST_TOP, &each, err);
    if (r == 0 && top != NULL && (ids != NULL || is_all || after != NULL))
        r = error_set(err, -EINVAL, "top cannot be combined with ids, all or after");
    if (r == 0 && ids != NULL && after != NULL)
        r = error_set(err, -EINVAL, "after cannot be combined with ids");
    if (r == 0 && ids != NULL)
        r = read_ids(list, ids, err);
    if (r < 0)
        return r;
    if (is_folded && ids != NULL)
        return error_set(err, -EINVAL, "fold cannot be combined with ids");
    list->is_folded = is_folded;
    list->has_user = user != NULL;
    list->name = query_get(query, "name");
    list->limit = (size_t)most;
    list->has_limit = limit != NULL;
    list->has_after = after != NULL;
    list->after = list->scanned = (uint64_t)cursor;
    list->top = top != NULL ? list_top_new((size_t)each) : NULL;
    list->shown = (is_quick ? SHOW_POSITION : SHOW_QUEUE) | (is_sparse ? SHOW_SPARSE : SHOW_JOB);
    list->is_deep = is_all || ids != NULL;
    list->is_recent = !list->is_deep && states == NULL;
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
    buffer_append_text(&list->slices.bytes, list->is_first ? "\n" : ",\n");
    unsigned omitted = is_queue_shown ? 0 : job->state == JOB_QUEUED ? SHOW_QUEUE : SHOW_POSITION;
    jobs_append(request->serve, job, list->shown & ~omitted, &list->slices.bytes);
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

static void end(struct list *list)
{
    struct buffer *bytes = &list->slices.bytes;
    buffer_append_text(bytes, list->is_first ? "],\"next\":" : "\n],\"next\":");
    if (list->next != 0)
        buffer_printf(bytes, "%" PRIu64, list->next);
    else
        buffer_append_text(bytes, "null");
    buffer_append_text(bytes, ",\"omitted\":");
    if (list->top != NULL)
        list_top_append_omitted(list->top, bytes);
    else
        buffer_append_text(bytes, "null");
    buffer_append_text(bytes, "}\n");
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
        end(list);
    slices_send(request);
}

/* --- the forecast --- */

static void make_forecasts(struct request *request)
{
    struct core *core = request->serve->controller->core;
    int64_t until_us = clock_boot_us() + SLICE_US, now_ms = clock_wall_ms();
    bool is_made = core_forecast_count(core) != ((struct list *)request->work)->n_forecasts;
    while (!is_made && clock_boot_us() < until_us)
        is_made = core_advance_forecasts(core, now_ms, STEPS);
    if (is_made)
        slices_begin(request, fill_slice);
    else
        fair_queue_add(request, make_forecasts);
}

static void on_element(struct request *request)
{
    add_id(request->work, request->job);
    find_elements(request);
}

/* Finds elements one after the other; then the list is complete. */
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
    if ((list->shown & SHOW_WHY) != 0)
        fair_queue_add(request, make_forecasts); // copying the scheduler is a separate part
    else
        slices_begin(request, fill_slice);
}

void handle_list(struct request *request)
{
    struct error err = { 0 };
    struct list *list = xcalloc(1, sizeof(*list));
    request->work = list;
    request->release = release_list;
    list->n_forecasts = core_forecast_count(request->serve->controller->core);
    if (read_filters(request, list, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    list->is_first = true;
    buffer_append_text(&list->slices.bytes, "{\"schema\":\"" SERVE_SCHEMA "\",\"jobs\":[");
    if (query_get(&request->query, "ids") != NULL)
        find_elements(request);
    else if (list->is_deep)
        ask_store(request, list->has_after ? list->after : UINT64_MAX);
    else
        scan(request);
}
