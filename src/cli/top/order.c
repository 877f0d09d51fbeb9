/* SPDX-License-Identifier: MIT */
/* The value of each key is computed once per job, because finding members of JSON objects is slow. */
#include "cli/top/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/term/time_text.h"

struct value {
    double number;
    const char *text; // NULL: only the number is compared
};

static struct value by_id(const json_t *job)
{
    return (struct value){ .number = field_number(job, "id", 0) };
}

static struct value by_user(const json_t *job)
{
    return (struct value){ .text = field_text(job, "user") };
}

static struct value by_name(const json_t *job)
{
    return (struct value){ .text = field_text(job, "name") };
}

static struct value by_state(const json_t *job)
{
    return (struct value){ .number = job_state_rank(job) };
}

static struct value by_gpus(const json_t *job)
{
    double share = job_gpu_share(job);
    return (struct value){ .number = share > 0 ? share : field_number(job, "gpus", 0) };
}

static struct value by_time(const json_t *job)
{
    double seconds = field_number(job, "run_seconds", -1);
    return (struct value){ .number = seconds >= 0 ? seconds : field_number(job, "wait_seconds", 0) };
}

static struct value by_priority(const json_t *job)
{
    return (struct value){ .number = -field_number(job, "priority", 0) };
}

static struct value by_where(const json_t *job)
{
    const char *node = field_text(job, "node");
    const json_t *first = json_array_get(json_object_get(job, "granted"), 0);
    return (
        struct value){ .text = node == NULL ? "\x7f" : node, .number = field_number(first, "index", 1e9) };
}

/* The next events first: waiting jobs by position in the queue, running ones by run time, ended ones by time
 * of end, the latest first. */
static struct value by_turn(const json_t *job)
{
    if (job_is_done(job))
        return (struct value){ .number = -(double)time_parse(field_text(job, "ended_at")) };
    if (field_is_known(job, "started_at"))
        return (struct value){ .number = (double)time_parse(field_text(job, "started_at")) };
    return (struct value){ .number = field_number(job, "position", 1e15) };
}

const struct order_key order_keys[] = {
    { "state", "running, waiting, ended" },
    { "turn", "next to run; longest running; last ended" },
    { "id", "number" },
    { "user", "owner" },
    { "name", "name" },
    { "gpus", "number of GPUs" },
    { "time", "run or waiting time" },
    { "priority", "highest priority first" },
    { "where", "node and GPU" },
    { 0 },
};

static struct value (*const values[])(const json_t *job) = { by_state, by_turn, by_id, by_user, by_name,
    by_gpus, by_time, by_priority, by_where };

int order_find(const char *name)
{
    for (int i = 0; order_keys[i].name != NULL; i++)
        if (strcmp(order_keys[i].name, name) == 0)
            return i;
    return -1;
}

int order_parse(const char *text, struct order *ret, struct error *err)
{
    struct order order = { .by = { { .key = -1 }, { .key = -1 } } };
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    int count = 0;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL; count++) {
        bool is_down = word[0] == '-';
        int key = order_find(word + is_down);
        if (key < 0)
            return error_set(err, -EINVAL, "cannot sort by '%.40s'", word);
        if (count == ORDER_KEYS)
            return error_set(err, -EINVAL, "'%.40s' has more than two keys", text);
        order.by[count].key = key;
        order.by[count].is_down = is_down;
    }
    *ret = order;
    return 0;
}

char *order_text(const struct order *order)
{
    struct buffer out = { 0 };
    for (int i = 0; i < ORDER_KEYS && order->by[i].key >= 0; i++)
        buffer_printf(&out, "%s%s%s", i > 0 ? "," : "", order->by[i].is_down ? "-" : "",
            order_keys[order->by[i].key].name);
    return buffer_take(&out);
}

void order_choose(struct order *order, int key)
{
    if (order->by[0].key == key) {
        order->by[0].is_down = !order->by[0].is_down;
        return;
    }
    order->by[1] = order->by[0];
    order->by[0].key = key;
    order->by[0].is_down = false;
}

/* --- sorting --- */

struct row {
    json_t *job;
    int64_t id;
    struct value values[ORDER_KEYS];
};

static int compare_values(const struct value *a, const struct value *b)
{
    int r = a->text != NULL && b->text != NULL ? strcasecmp(a->text, b->text) : 0;
    if (r != 0)
        return r;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct row *x = a, *y = b;
    const struct order *order = arg;
    for (int i = 0; i < ORDER_KEYS && order->by[i].key >= 0; i++) {
        int r = compare_values(&x->values[i], &y->values[i]);
        if (r != 0)
            return order->by[i].is_down ? -r : r;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

void order_sort(const struct order *order, json_t **jobs, size_t count)
{
    _cleanup_free_ struct row *rows = xcalloc(count + 1, sizeof(struct row));
    struct order keys = *order;
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct row){ .job = jobs[i], .id = field_integer(jobs[i], "id", 0) };
        for (int k = 0; k < ORDER_KEYS && order->by[k].key >= 0; k++)
            rows[i].values[k] = values[order->by[k].key](jobs[i]);
    }
    qsort_r(rows, count, sizeof(struct row), compare, &keys);
    for (size_t i = 0; i < count; i++)
        jobs[i] = rows[i].job;
}
