/* SPDX-License-Identifier: MIT */
/* One function per type of event writes its fields; numbers and milliseconds as stored, not rounded. */
#include "wire/json_journal.h"

#include <errno.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/cluster_change.h"
#include "job/job_nodes.h"
#include "wire/json_record.h"
#include "wire/json_text.h"

static void add_ask(json_t *object, const struct job_event *event)
{
    if (event->ask.count == 1) {
        const struct job_ask *ask = event->ask.items;
        json_t *record = json_record_write(&job_ask_record, ask);
        (void)json_object_set_new(record, "begin_ms", json_integer(ask->begin_ms));
        (void)json_object_set_new(record, "deadline_ms", json_integer(ask->deadline_ms));
        (void)json_object_set_new(record, "time_limit_ms", json_integer(ask->time_limit_ms));
        /* It decides nothing, and addresses of hooks are secrets. */
        (void)json_object_del(record, "notify");
        (void)json_object_del(record, "notify_on");
        (void)json_object_del(record, "slurm");
        (void)json_object_set_new(object, "ask", record);
    }
    (void)json_object_set_new(object, "name", json_text_string(event->name));
}

static void add_submitted(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "uid", json_integer(event->uid));
    (void)json_object_set_new(
        object, "gid", json_integer(event->account != 0 ? event->account - 1 : event->gid));
    (void)json_object_set_new(object, "stem", json_integer((json_int_t)stem));
    (void)json_object_set_new(object, "hold", json_integer(event->hold));
    (void)json_object_set_new(object, "array_job",
        event->array_job != 0 ? json_integer((json_int_t)event->array_job) : json_null());
    (void)json_object_set_new(object, "array_index", json_integer(event->array_index));
    add_ask(object, event);
}

static void add_allocated(json_t *object, const struct job_event *event, uint64_t stem)
{
    json_t *gpus = json_array();
    const struct gpu_grant *grants = event->gpus.items;
    for (size_t i = 0; i < event->gpus.count; i++) {
        json_t *gpu = json_record_write(&gpu_grant_record, &grants[i]);
        if (grants[i].node == NULL)
            (void)json_object_set_new(gpu, "node", json_text_string(event->node));
        (void)json_array_append_new(gpus, gpu);
    }
    if (event->nodes.count > 0) {
        json_t *names = json_array();
        const struct job_node *nodes = event->nodes.items;
        for (size_t i = 0; i < event->nodes.count; i++)
            (void)json_array_append_new(names, json_text_string(nodes[i].name));
        (void)json_object_set_new(object, "nodes", names);
    }
    (void)json_object_set_new(object, "node", json_text_string(event->node));
    (void)json_object_set_new(object, "gpus", gpus);
    (void)json_object_set_new(object, "cpu_milli", json_integer(event->cpu_milli));
    (void)json_object_set_new(object, "memory", json_integer((json_int_t)event->memory));
    if (event->is_early != 0)
        (void)json_object_set_new(object, "early", json_integer(event->is_early));
}

static void add_end(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "ended_by", json_string(job_end_name((enum job_end)event->end)));
    (void)json_object_set_new(object, "exit_code", json_integer(event->exit_code));
    (void)json_object_set_new(object, "started_ms", json_integer(event->started_wall_ms));
    (void)json_object_set_new(object, "run_ms", json_integer(event->run_ms));
}

static void add_cause(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "cause", json_integer(event->cause));
    (void)json_object_set_new(object, "park_cause", json_integer(event->park_cause));
}

static void add_requeued(json_t *object, const struct job_event *event, uint64_t stem)
{
    add_end(object, event, stem);
    add_cause(object, event, stem);
    (void)json_object_set_new(object, "retry_ms", json_integer(event->retry_ms));
}

static void add_park(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "park_cause", json_integer(event->park_cause));
    (void)json_object_set_new(object, "park_return_ms", json_integer(event->park_return_ms));
    (void)json_object_set_new(object, "park_guest", json_integer((json_int_t)event->park_guest));
}

static void add_parked(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "park_bytes", json_integer((json_int_t)event->park_bytes));
}

static void add_reconciled(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "terms", json_integer(event->terms));
    (void)json_object_set_new(object, "park_number", json_integer(event->park_number));
    (void)json_object_set_new(object, "park_seen", json_integer(event->park_seen));
}

static void add_signal(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "uid", json_integer(event->uid));
    (void)json_object_set_new(object, "sent", json_integer(event->sent));
}

static void add_stop(json_t *object, const struct job_event *event, uint64_t stem)
{
    enum job_end reason = event->reason != END_NONE ? (enum job_end)event->reason : END_CANCELLED;
    (void)json_object_set_new(object, "reason", json_string(job_end_name(reason)));
}

static void add_returned(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "retry_ms", json_integer(event->retry_ms));
    if (event->reason != END_NONE)
        (void)json_object_set_new(object, "reason", json_string(job_end_name((enum job_end)event->reason)));
}

static void add_hold(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "hold", json_integer(event->hold));
}

static void add_edit(json_t *object, const struct job_event *event, uint64_t stem)
{
    add_ask(object, event);
}

static void add_element(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "element", json_integer((json_int_t)event->element));
    (void)json_object_set_new(object, "array_index", json_integer(event->array_index));
}

static void add_member(json_t *object, const struct job_event *event, uint64_t stem)
{
    add_element(object, event, stem);
    add_end(object, event, stem);
}

static void add_idle(json_t *object, const struct job_event *event, uint64_t stem)
{
    (void)json_object_set_new(object, "idle_level", json_integer(event->idle_level));
    (void)json_object_set_new(object, "idle_ms", json_integer(event->idle_ms));
}

static void add_change(json_t *object, const struct job_event *event, uint64_t stem)
{
    const struct cluster_change *change = event->change.items;
    if (event->change.count != 1)
        return;
    json_t *record = json_record_write(&cluster_change_record, change);
    (void)json_object_set_new(record, "kind", json_string(change_kind_name((enum change_kind)change->kind)));
    (void)json_object_set_new(object, "change", record);
}

static void (*const adders[EVENT_TYPES])(json_t *, const struct job_event *, uint64_t) = {
    [EVENT_SUBMITTED] = add_submitted,
    [EVENT_ALLOCATED] = add_allocated,
    [EVENT_STOP] = add_stop,
    [EVENT_RETURNED] = add_returned,
    [EVENT_ENDED] = add_end,
    [EVENT_EDITED] = add_edit,
    [EVENT_HELD] = add_hold,
    [EVENT_RELEASED] = add_hold,
    [EVENT_PREEMPTED] = add_cause,
    [EVENT_REQUEUED] = add_requeued,
    [EVENT_SPLIT] = add_element,
    [EVENT_MEMBER] = add_member,
    [EVENT_CLUSTER] = add_change,
    [EVENT_IDLE] = add_idle,
    [EVENT_SUSPENDED] = add_signal,
    [EVENT_CONTINUED] = add_signal,
    [EVENT_SIGNALLED] = add_signal,
    [EVENT_PARK] = add_park,
    [EVENT_PARKED] = add_parked,
    [EVENT_RESTORING] = add_allocated,
    [EVENT_RECONCILED] = add_reconciled,
};

json_t *json_journal_write(const struct job_event *event, uint64_t stem)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "seq", json_integer((json_int_t)event->seq));
    (void)json_object_set_new(object, "type", json_string(job_event_name((enum job_event_type)event->type)));
    (void)json_object_set_new(object, "job", json_integer((json_int_t)event->job));
    (void)json_object_set_new(object, "attempt", json_integer(event->attempt));
    (void)json_object_set_new(object, "at_ms", json_integer(event->wall_ms));
    if (event->type < EVENT_TYPES && adders[event->type] != NULL)
        adders[event->type](object, event, stem);
    return object;
}

/* --- and back --- */

static int read_number(const json_t *object, const char *key, int64_t *ret, struct error *err)
{
    json_t *value = json_object_get(object, key);
    *ret = 0;
    if (value == NULL || json_is_null(value))
        return 0;
    if (!json_is_integer(value))
        return error_set(err, -EINVAL, "%s must be a whole number", key);
    *ret = json_integer_value(value);
    return 0;
}

/* Numbers that are not there are 0. */
struct number_place {
    const char *key;
    size_t offset;
    enum { NUMBER_32, NUMBER_64 } size;
};

#define NUMBER(key_, member_)                                                                                \
    {                                                                                                        \
        .key = (key_), .offset = offsetof(struct job_event, member_),                                        \
        .size = sizeof(((struct job_event *)0)->member_) == 4 ? NUMBER_32 : NUMBER_64                        \
    }

static const struct number_place places[] = {
    NUMBER("seq", seq),
    NUMBER("job", job),
    NUMBER("attempt", attempt),
    NUMBER("at_ms", wall_ms),
    NUMBER("uid", uid),
    NUMBER("gid", gid),
    NUMBER("exit_code", exit_code),
    NUMBER("started_ms", started_wall_ms),
    NUMBER("run_ms", run_ms),
    NUMBER("hold", hold),
    NUMBER("array_job", array_job),
    NUMBER("array_index", array_index),
    NUMBER("element", element),
    NUMBER("cpu_milli", cpu_milli),
    NUMBER("memory", memory),
    NUMBER("idle_level", idle_level),
    NUMBER("idle_ms", idle_ms),
    NUMBER("cause", cause),
    NUMBER("retry_ms", retry_ms),
    NUMBER("sent", sent),
    NUMBER("park_cause", park_cause),
    NUMBER("park_return_ms", park_return_ms),
    NUMBER("park_guest", park_guest),
    NUMBER("park_bytes", park_bytes),
    NUMBER("terms", terms),
    NUMBER("park_number", park_number),
    NUMBER("park_seen", park_seen),
    NUMBER("early", is_early),
};

static int read_numbers(const json_t *object, struct job_event *event, struct error *err)
{
    int64_t number;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        void *member = (char *)event + places[i].offset;
        int r = read_number(object, places[i].key, &number, err);
        if (r < 0)
            return r;
        if (places[i].size == NUMBER_32)
            *(uint32_t *)member = (uint32_t)number;
        else
            *(int64_t *)member = number;
    }
    return 0;
}

static int read_ask(json_t *object, struct job_event *event, struct error *err)
{
    _cleanup_json_ json_t *record = json_deep_copy(json_object_get(object, "ask"));
    if (record == NULL)
        return 0;
    struct job_ask *ask = xcalloc(1, sizeof(*ask));
    event->ask = (struct record_list){ .items = ask, .count = 1 };
    int64_t begin_ms = 0, deadline_ms = 0, time_limit_ms = 0;
    int r = read_number(record, "begin_ms", &begin_ms, err);
    if (r == 0)
        r = read_number(record, "deadline_ms", &deadline_ms, err);
    if (r == 0)
        r = read_number(record, "time_limit_ms", &time_limit_ms, err);
    static const char *const exact[] = { "begin_ms", "deadline_ms", "time_limit_ms", "begin", "deadline",
        "time_limit" };
    for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
        (void)json_object_del(record, exact[i]);
    if (r == 0)
        r = json_record_read(&job_ask_record, record, ask, err);
    if (r < 0)
        return error_wrap(err, "ask");
    ask->begin_ms = begin_ms;
    ask->deadline_ms = deadline_ms;
    ask->time_limit_ms = time_limit_ms;
    return 0;
}

static int read_gpus(json_t *object, struct job_event *event, struct error *err)
{
    json_t *list = json_object_get(object, "gpus"), *item;
    size_t count = json_array_size(list), i;
    if (count == 0)
        return 0;
    struct gpu_grant *grants = xcalloc(count, sizeof(*grants));
    event->gpus = (struct record_list){ .items = grants, .count = count };
    json_array_foreach(list, i, item)
    {
        int r = json_record_read(&gpu_grant_record, item, &grants[i], err);
        if (r < 0)
            return error_wrap(err, "gpus[%zu]", i);
    }
    return 0;
}

static int read_nodes(json_t *object, struct job_event *event, struct error *err)
{
    json_t *list = json_object_get(object, "nodes"), *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item) || i >= JOB_NODES_MAX)
            return error_set(err, -EINVAL, "nodes[%zu] is not a node", i);
        job_nodes_add(&event->nodes, json_string_value(item), NULL);
    }
    return 0;
}

static int read_change(json_t *object, struct job_event *event, struct error *err)
{
    _cleanup_json_ json_t *record = json_deep_copy(json_object_get(object, "change"));
    if (record == NULL)
        return 0;
    struct cluster_change *change = xcalloc(1, sizeof(*change));
    event->change = (struct record_list){ .items = change, .count = 1 };
    _cleanup_free_ char *kind = xstrdup(json_string_value(json_object_get(record, "kind")));
    while (change->kind < CHANGE_KINDS && !text_equal(change_kind_name(change->kind), kind))
        change->kind++;
    if (change->kind == CHANGE_KINDS)
        return error_set(err, -EINVAL, "unknown change of the cluster '%.60s'", kind != NULL ? kind : "");
    (void)json_object_del(record, "kind");
    int r = json_record_read(&cluster_change_record, record, change, err);
    return r < 0 ? error_wrap(err, "change") : cluster_change_validate(change, err);
}

static int read_end(json_t *object, const char *key, uint32_t *ret, struct error *err)
{
    const char *name = json_string_value(json_object_get(object, key));
    if (name == NULL)
        return 0;
    enum job_end end = job_end_from_name(name);
    if (end == END_KINDS)
        return error_set(err, -EINVAL, "%s: unknown end '%.60s'", key, name);
    *ret = end;
    return 0;
}

int json_journal_read(json_t *object, struct job_event *ret, uint64_t *ret_stem, struct error *err)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    int64_t stem;
    *ret = (struct job_event){ 0 };
    *ret_stem = 0;
    if (type == NULL || !json_is_integer(json_object_get(object, "at_ms")))
        return error_set(err, -EINVAL, "an event needs \"type\" and \"at_ms\"");
    ret->type = job_event_from_name(type);
    if (ret->type == EVENT_TYPES)
        return error_set(err, -EINVAL, "unknown event '%.60s'", type);
    int r = read_number(object, "stem", &stem, err);
    if (r == 0)
        r = read_numbers(object, ret, err);
    if (r == 0)
        r = read_end(object, "ended_by", &ret->end, err);
    if (r == 0)
        r = read_end(object, "reason", &ret->reason, err);
    if (r == 0)
        r = read_ask(object, ret, err);
    if (r == 0)
        r = read_gpus(object, ret, err);
    if (r == 0)
        r = read_nodes(object, ret, err);
    if (r == 0)
        r = read_change(object, ret, err);
    ret->node = xstrdup(json_string_value(json_object_get(object, "node")));
    ret->name = xstrdup(json_string_value(json_object_get(object, "name")));
    *ret_stem = (uint64_t)stem;
    return r;
}
