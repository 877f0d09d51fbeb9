/* SPDX-License-Identifier: MIT */
/*
 * GET /history: ended jobs from the store, newest first, also those that are no longer in memory. The store
 * is queried one short page at a time:
 *
 *   fetch ── page ──> write ── a slice is full ──> send ── space ──> fetch
 *     ^                 │ not yet                    └─ no space ─> wait until the client has read some
 *     └─────────────────┘
 *
 * Neither memory nor the time of a turn therefore grows with the size of the store. The jobs that the store
 * returns are durable.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/ended.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "wire/json_text.h"
#include "wire/limits.h"

#define SLICE_BYTES ((size_t)64 << 10)
#define PAGE_JOBS   128U

struct listing {
    struct ended_filter filter;
    struct ended_place place;
    bool has_place;
    size_t left; // number of jobs that may still be shown
    bool is_first, is_over, is_fetching;
    bool is_counted; // counts in the user's share of long lists
    struct buffer slice;
};

/* Reads a time in RFC 3339, or a duration before now. */
static int read_time(const char *text, const char *what, int64_t *ret_ms, struct error *err)
{
    int64_t ago_ms = 0, at_ms = text != NULL ? json_text_parse_time(text) : -1;
    if (text == NULL)
        return 0;
    if (at_ms >= 0) {
        *ret_ms = at_ms;
        return 0;
    }
    int r = parse_duration(text, what, &ago_ms, err);
    if (r < 0)
        return error_hint(err, "use RFC 3339 or an age: 12h, 7d");
    *ret_ms = clock_wall_ms() > ago_ms ? clock_wall_ms() - ago_ms : 0;
    return 0;
}

static int read_outcomes(const char *text, uint32_t *ret, struct error *err)
{
    uint32_t states = 0, over = 0;
    int r = text != NULL ? jobs_parse_states(text, &states, &over, err) : 0;
    if (r < 0)
        return error_hint(err, "done, failed or cancelled");
    if ((states & ~(1U << JOB_DONE)) != 0)
        return error_set(err, -EINVAL, "state: only ended jobs are listed: done, failed, cancelled");
    *ret = over;
    return 0;
}

static int read_filter(struct request *request, struct ended_filter *filter, struct error *err)
{
    const struct query *query = &request->query;
    const char *user = query_get(query, "user");
    int r = read_time(query_get(query, "since"), "since", &filter->since_ms, err);
    if (r == 0)
        r = read_time(query_get(query, "until"), "until", &filter->until_ms, err);
    if (r == 0 && filter->until_ms <= filter->since_ms)
        r = error_set(err, -EINVAL, "until must be after since");
    if (r == 0)
        r = read_outcomes(query_get(query, "state"), &filter->outcomes, err);
    if (r == 0 && user != NULL)
        r = jobs_parse_user(request, user, &filter->uid, err);
    filter->has_user = user != NULL;
    filter->name = query_get(query, "name");
    return r;
}

/* Reads the filter of the query; `name` remains owned by the query. Sends 400 itself if the filter is
 * invalid. */
static bool ended_read_filter(struct request *request, struct ended_filter *ret)
{
    struct error err = { 0 };
    *ret = (struct ended_filter){ .until_ms = INT64_MAX };
    if (read_filter(request, ret, &err) == 0)
        return true;
    request_reply_problem(request, &err);
    return false;
}

void ended_write_gpu_time(json_t *object, int64_t held_ms, int64_t measured_ms, int64_t used_ms)
{
    bool is_known = measured_ms > 0;
    const struct {
        const char *name;
        json_t *value;
    } rows[] = {
        { "gpu_seconds", json_text_seconds(held_ms) },
        { "gpu_seconds_measured", json_text_seconds(measured_ms) },
        { "gpu_seconds_used", is_known ? json_text_seconds(used_ms) : json_null() },
        { "gpu_seconds_wasted", is_known ? json_text_seconds(measured_ms - used_ms) : json_null() },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        (void)json_object_set_new(object, rows[i].name, rows[i].value);
}

/* --- the list --- */

static void continue_list(struct request *request);

static void release_listing(struct request *request)
{
    struct listing *listing = request->work;
    if (listing->is_counted)
        users_give(request->serve->users, request->who.uid, SHARE_LISTS, 1);
    buffer_clear(&listing->slice);
    free(listing);
}

static void append_row(struct request *request, struct listing *listing, const struct ended_row *row)
{
    json_t *object = jobs_write(request->serve, row->job, SHOW_JOB);
    ended_write_gpu_time(object, row->held_ms, row->measured_ms, row->used_ms);
    _cleanup_free_ char *text = json_text_format(object);
    json_decref(object);
    buffer_append_text(&listing->slice, listing->is_first ? "\n" : ",\n");
    buffer_append_text(&listing->slice, text);
    listing->is_first = false;
    listing->left--;
}

static void on_page(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        struct listing *listing = request->work;
        listing->is_fetching = false;
        for (size_t i = 0; i < count; i++)
            append_row(request, listing, &rows[i]);
        listing->is_over = next == NULL || listing->left == 0;
        listing->has_place = true;
        if (next != NULL)
            listing->place = *next;
        continue_list(request);
    }
    request_unref(request);
}

/* Starts a long list. */
static bool start(struct request *request)
{
    struct listing *listing = request->work;
    struct error err = { 0 };
    if (users_take(request->serve->users, request->who.uid, SHARE_LISTS, 1, &err) < 0) {
        request_reply_problem(request, &err);
        return false;
    }
    listing->is_counted = true;
    request->on_drained = continue_list;
    return request_start_stream(request, 200, "application/json", STREAM_ENDLESS);
}

static void finish(struct request *request)
{
    struct buffer *slice = &((struct listing *)request->work)->slice;
    buffer_append_text(slice, ((struct listing *)request->work)->is_first ? "]}\n" : "\n]}\n");
    if (request->phase == REQUEST_OPEN) {
        request_reply_bytes(request, 200, "application/json", slice->bytes, slice->length);
        return;
    }
    request_stream(request, slice->bytes, slice->length);
    request_end_stream(request);
}

static void continue_list(struct request *request)
{
    struct listing *listing = request->work;
    if (listing->is_fetching)
        return;
    if (listing->is_over) {
        finish(request);
        return;
    }
    if (listing->slice.length >= SLICE_BYTES) {
        if (request->phase == REQUEST_OPEN && !start(request))
            return;
        if (request_room(request) < LIMIT_STREAM_BUFFER_BYTES / 2)
            return; // on_drained comes
        request_stream(request, listing->slice.bytes, listing->slice.length);
        listing->slice.length = 0;
    }
    listing->is_fetching = true;
    request_ref(request);
    store_fetch_ended(request->serve->controller->store, &listing->filter,
        listing->has_place ? &listing->place : NULL, listing->left < PAGE_JOBS ? listing->left : PAGE_JOBS,
        on_page, request);
}

void handle_ended(struct request *request)
{
    const char *by = query_get(&request->query, "by"), *limit = query_get(&request->query, "limit");
    struct error err = { 0 };
    struct ended_filter filter;
    int64_t most = LIMIT_LIST_JOBS;
    if (!ended_read_filter(request, &filter))
        return;
    if (by != NULL) {
        ended_sum(request, &filter, by);
        return;
    }
    if (limit != NULL && parse_integer(limit, "limit", 1, LIMIT_LIST_JOBS, &most, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    struct listing *listing = xcalloc(1, sizeof(*listing));
    *listing = (struct listing){ .filter = filter, .left = (size_t)most, .is_first = true };
    request->work = listing;
    request->release = release_listing;
    buffer_append_text(&listing->slice, "{\"schema\":\"" SERVE_SCHEMA "\",\"jobs\":[");
    continue_list(request);
}
