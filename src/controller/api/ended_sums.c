/* SPDX-License-Identifier: MIT */
/* GET /history?by=: totals over ended jobs. The store computes them in short steps and answers once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utc.h"
#include "controller/api/accounts.h"
#include "controller/api/ended.h"
#include "wire/json_text.h"

#define DAY_MS INT64_C(86400000)

static void write_user(struct serve *serve, const struct ended_sum *sum, json_t *object)
{
    (void)json_object_set_new(
        object, "user", json_text_string(usernames_name(serve->names, (uint32_t)sum->number)));
    (void)json_object_set_new(object, "uid", json_integer(sum->number));
}

static void write_group(struct serve *serve, const struct ended_sum *sum, json_t *object)
{
    (void)json_object_set_new(object, "group", accounts_group_name((uint32_t)sum->number));
    (void)json_object_set_new(object, "gid", json_integer(sum->number));
}

static void write_day(struct serve *serve, const struct ended_sum *sum, json_t *object)
{
    char text[32];
    utc_format(sum->number * DAY_MS, text, sizeof(text));
    (void)json_object_set_new(object, "day", json_stringn(text, strcspn(text, "T")));
}

static void write_node(struct serve *serve, const struct ended_sum *sum, json_t *object)
{
    (void)json_object_set_new(
        object, "node", sum->node[0] != '\0' ? json_text_string(sum->node) : json_null());
}

static const struct {
    const char *word;
    void (*write)(struct serve *serve, const struct ended_sum *sum, json_t *object);
    bool is_in_order; // else sorted by GPU time, largest first
} kinds[ENDED_BYS] = {
    [ENDED_BY_USER] = { "user", write_user, false },
    [ENDED_BY_GROUP] = { "group", write_group, false },
    [ENDED_BY_DAY] = { "day", write_day, true },
    [ENDED_BY_NODE] = { "node", write_node, false },
};

struct summing {
    enum ended_by by;
    struct ended_filter filter;
};

static int compare_held(const void *a, const void *b)
{
    const struct ended_sum *left = a, *right = b;
    if (left->held_ms != right->held_ms)
        return left->held_ms < right->held_ms ? 1 : -1;
    return (left->jobs < right->jobs) - (left->jobs > right->jobs);
}

static json_t *write_sum(const struct request *request, enum ended_by by, const struct ended_sum *sum)
{
    json_t *object = json_object();
    kinds[by].write(request->serve, sum, object);
    (void)json_object_set_new(object, "jobs", json_integer((json_int_t)sum->jobs));
    ended_write_gpu_time(object, sum->held_ms, sum->measured_ms, sum->used_ms);
    (void)json_object_set_new(
        object, "wait_seconds_median", sum->has_waits ? json_text_seconds(sum->wait_median_ms) : json_null());
    (void)json_object_set_new(
        object, "wait_seconds_p95", sum->has_waits ? json_text_seconds(sum->wait_p95_ms) : json_null());
    return object;
}

static void reply(struct request *request, const struct ended_sum *sums, size_t count)
{
    const struct summing *summing = request->work;
    const struct ended_filter *filter = &summing->filter;
    struct ended_sum *ordered = xcalloc(count + 1, sizeof(*ordered));
    json_t *array = json_array(), *body = json_object();
    for (size_t i = 0; i < count; i++)
        ordered[i] = sums[i];
    if (!kinds[summing->by].is_in_order)
        qsort(ordered, count, sizeof(*ordered), compare_held);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, write_sum(request, summing->by, &ordered[i]));
    free(ordered);
    (void)json_object_set_new(body, "by", json_string(kinds[summing->by].word));
    (void)json_object_set_new(body, "since", json_text_time(filter->since_ms));
    (void)json_object_set_new(
        body, "until", json_text_time(filter->until_ms < INT64_MAX ? filter->until_ms : 0));
    (void)json_object_set_new(body, "sums", array);
    request_reply_json(request, 200, body);
}

static void on_sums(void *arg, const struct ended_sum *sums, size_t count, bool is_cut)
{
    struct request *request = arg;
    struct error err = { 0 };
    if (!request_is_over(request) && is_cut) {
        (void)error_set(&err, -EINVAL, "more than %u sums", ENDED_SUMS_MAX);
        (void)error_hint(&err, "use a later since, or one user");
        request_reply_problem(request, &err);
    } else if (!request_is_over(request)) {
        reply(request, sums, count);
    }
    request_unref(request);
}

static void release(struct request *request)
{
    users_give(request->serve->users, request->who.uid, SHARE_LISTS, 1);
    free(request->work);
}

void ended_sum(struct request *request, const struct ended_filter *filter, const char *by)
{
    struct error err = { 0 };
    enum ended_by found = 0;
    while (found < ENDED_BYS && strcmp(kinds[found].word, by) != 0)
        found++;
    int r =
        found == ENDED_BYS ? error_set(&err, -EINVAL, "by: '%.40s' is not user, group, day or node", by) : 0;
    if (r == 0 && query_get(&request->query, "limit") != NULL)
        r = error_set(&err, -EINVAL, "limit cannot be combined with by");
    if (r == 0)
        r = users_take(request->serve->users, request->who.uid, SHARE_LISTS, 1, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    struct summing *summing = xcalloc(1, sizeof(*summing));
    *summing = (struct summing){ .by = found, .filter = *filter };
    request->work = summing;
    request->release = release;
    request_ref(request);
    store_sum_ended(request->serve->controller->store, filter, found, on_sums, request);
}
