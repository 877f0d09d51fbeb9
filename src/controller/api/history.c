/* SPDX-License-Identifier: MIT */
/*
 * GET /gpus/history: past GPU values, as one array per kind of value. The number of points in an answer is
 * limited; if the query has no step, the finest allowed one is used. Steps are whole minutes, or seconds
 * below one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "controller/api/routes.h"
#include "controller/history/gpu_history.h"
#include "controller/http/request.h"
#include "wire/json_text.h"
#include "wire/limits.h"

#define SINCE_DEFAULT_MS INT64_C(600000)
#define SINCE_MAX_S      ((int64_t)HISTORY_MINUTES * HISTORY_MINUTE_S)

struct question {
    const char *gpu; // "node:0", a UUID; NULL: all
    int64_t from_s;
    uint32_t step_s;
    size_t points;
};

struct answering {
    const struct gpu_history *history;
    const struct core *core;
    const struct question *question;
    bool has_one_node;
    size_t n_gpus;
    json_t *gpus; // NULL: GPUs are only counted
};

static bool is_asked(const struct answering *answering, const char *node, const struct gpu_state *gpu)
{
    const char *asked = answering->question->gpu;
    if (gpu->uuid == NULL)
        return false;
    if (asked == NULL || text_equal(asked, gpu->uuid))
        return true;
    _cleanup_free_ char *name = xasprintf("%s:%" PRIu32, node, gpu->index);
    _cleanup_free_ char *index = xasprintf("%" PRIu32, gpu->index);
    return text_equal(asked, name) || (answering->has_one_node && text_equal(asked, index));
}

/* A value in the units of `GET /gpus`: fractions, watts, degrees. */
static json_t *number(size_t which, uint16_t value)
{
    static const double units[HISTORY_VALUES] = { 100, 1000, 1, 1 };
    if (value == HISTORY_NOT_KNOWN)
        return json_null();
    return units[which] > 1 ? json_real(value / units[which]) : json_integer(value);
}

static json_t *column(const struct history_point *points, size_t count, size_t which, bool is_max)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            array, number(which, (is_max ? points[i].max : points[i].mean).values[which]));
    return array;
}

static json_t *write_gpu(const struct answering *answering, const char *node, const struct gpu_state *gpu)
{
    static const char *const names[HISTORY_VALUES][2] = {
        { "utilization", "utilization_max" },
        { "memory", "memory_max" },
        { "power_w", "power_w_max" },
        { "temperature_c", "temperature_c_max" },
    };
    const struct question *question = answering->question;
    _cleanup_free_ struct history_point *points = xcalloc(question->points, sizeof(*points));
    gpu_history_read(
        answering->history, gpu->uuid, question->from_s, question->step_s, points, question->points);
    json_t *object = json_object();
    (void)json_object_set_new(object, "node", json_text_string(node));
    (void)json_object_set_new(object, "index", json_integer(gpu->index));
    (void)json_object_set_new(object, "uuid", json_text_string(gpu->uuid));
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        for (size_t k = 0; k < 2; k++)
            (void)json_object_set_new(object, names[i][k], column(points, question->points, i, k == 1));
    return object;
}

static void add_node(void *arg, const struct core_node *node)
{
    struct answering *answering = arg;
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        if (!is_asked(answering, node->name, &gpus[i]))
            continue;
        answering->n_gpus++;
        if (answering->gpus != NULL)
            (void)json_array_append_new(answering->gpus, write_gpu(answering, node->name, &gpus[i]));
    }
}

static void count_node(void *arg, const struct core_node *node)
{
    ++*(size_t *)arg;
}

/* RFC 3339, or a duration that ends now. */
static int read_since(const char *text, int64_t now_s, int64_t *ret_s, struct error *err)
{
    int64_t ms = SINCE_DEFAULT_MS, at_ms = text != NULL ? json_text_parse_time(text) : -1;
    if (at_ms >= 0) {
        *ret_s = at_ms / 1000;
    } else {
        int r = text != NULL ? parse_duration(text, "since", &ms, err) : 0;
        if (r < 0)
            return error_hint(err, "use RFC 3339 or an age: 10m, 7d as 168h");
        *ret_s = now_s - ms / 1000;
    }
    if (*ret_s >= now_s)
        return error_set(err, -EINVAL, "since: '%.60s' is not in the past", text != NULL ? text : "");
    if (now_s - *ret_s > SINCE_MAX_S)
        *ret_s = now_s - SINCE_MAX_S;
    return 0;
}

static size_t count_points(int64_t span_s, uint32_t step_s)
{
    return (size_t)((span_s + step_s - 1) / step_s);
}

/* The finest step within the limit. */
static uint32_t choose_step(int64_t span_s, size_t n_gpus)
{
    static const uint32_t steps[] = { 1, 5, 10, 60, 300, 900, 3600, 14400, 86400 };
    size_t i = span_s <= (int64_t)HISTORY_SECONDS ? 0 : 3;
    size_t most = LIMIT_HISTORY_POINTS / (n_gpus > 0 ? n_gpus : 1);
    most = most < HISTORY_SECONDS + 1 ? most : HISTORY_SECONDS + 1;
    while (i + 1 < sizeof(steps) / sizeof(steps[0]) && count_points(span_s, steps[i]) > most)
        i++;
    return steps[i];
}

static int read_step(const char *text, uint32_t *ret, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(text, "step", &ms, err);
    if (r < 0)
        return r;
    if (ms < 1000 || ms > SINCE_MAX_S * 1000 || (ms >= HISTORY_MINUTE_S * INT64_C(1000) && ms % 60000 != 0) ||
        ms % 1000 != 0) {
        (void)error_set(
            err, -EINVAL, "step: '%.40s' is neither seconds below a minute nor whole minutes", text);
        return error_hint(err, "such as 1, 10, 60, 1h");
    }
    *ret = (uint32_t)(ms / 1000);
    return 0;
}

static int read_question(
    const struct request *request, struct answering *answering, struct question *ret, struct error *err)
{
    int64_t now_s = clock_wall_ms() / 1000;
    const char *step = query_get(&request->query, "step");
    ret->gpu = query_get(&request->query, "gpu");
    int r = read_since(query_get(&request->query, "since"), now_s, &ret->from_s, err);
    if (r < 0)
        return r;
    core_each_node(answering->core, add_node, answering);
    if (ret->gpu != NULL && answering->n_gpus == 0)
        return error_set(err, -ENOENT, "there is no GPU %.100s", ret->gpu);
    ret->step_s = choose_step(now_s - ret->from_s, answering->n_gpus);
    r = step != NULL ? read_step(step, &ret->step_s, err) : 0;
    if (r < 0)
        return r;
    if (ret->step_s >= HISTORY_MINUTE_S)
        ret->from_s -= ret->from_s % HISTORY_MINUTE_S;
    ret->points = count_points(now_s - ret->from_s, ret->step_s);
    if (ret->points * answering->n_gpus <= LIMIT_HISTORY_POINTS)
        return 0;
    (void)error_set(err, -EINVAL, "%zu points of %zu GPUs are more than %d", ret->points, answering->n_gpus,
        LIMIT_HISTORY_POINTS);
    return error_hint(err, "use a longer step, a later since or one gpu");
}

void handle_history(struct request *request)
{
    const struct controller *controller = request->serve->controller;
    struct error err = { 0 };
    struct question question = { 0 };
    size_t n_nodes = 0;
    core_each_node(controller->core, count_node, &n_nodes);
    struct answering answering = {
        .history = controller->history,
        .core = controller->core,
        .question = &question,
        .has_one_node = n_nodes == 1,
    };
    if (read_question(request, &answering, &question, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    answering.gpus = json_array();
    core_each_node(controller->core, add_node, &answering);
    json_t *body = json_object();
    (void)json_object_set_new(body, "from", json_text_time(question.from_s * 1000));
    (void)json_object_set_new(body, "step_s", json_integer(question.step_s));
    (void)json_object_set_new(body, "gpus", answering.gpus);
    request_reply_json(request, 200, body);
}
