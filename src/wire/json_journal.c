/* SPDX-License-Identifier: MIT */
/*
 * One row for each member, in the order in which they are written: the types of events that have it, and its
 * form. A number is written as it is stored, not rounded. Numbers that are missing are 0.
 */
#include "wire/json_journal.h"

#include <errno.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/cluster_change.h"
#include "job/job_nodes.h"
#include "wire/json_record.h"
#include "wire/json_text.h"

struct line {
    struct job_event event;
    uint64_t command_hash;
};

struct row {
    uint64_t types; // of the events that have it: bits of OF()
    struct record_field field;
    json_t *(*write)(const struct job_event *event); // NULL: the field as it is. Its answer may be NULL
    int (*read)(json_t *value, struct job_event *event, struct error *err); // NULL: into the field
    bool is_optional;                                                       // omitted if it would be null
};

static json_t *write_type(const struct job_event *event)
{
    return json_string(job_event_name((enum job_event_type)event->type));
}

static int read_type(json_t *value, struct job_event *event, struct error *err)
{
    const char *name = json_string_value(value);
    event->type = job_event_from_name(name);
    return event->type < EVENT_TYPES ? 0 : error_set(err, -EINVAL, "unknown event '%.60s'", name);
}

/* The group that the job counts for. */
static json_t *write_group(const struct job_event *event)
{
    return json_integer(event->account != 0 ? event->account - 1 : event->gid);
}

/* In milliseconds, beside the seconds and dates that a request has in JSON. */
static const struct record_field exact_fields[] = {
    RECORD_FIELD(0, RECORD_I64, struct job_ask, begin_ms, 0),
    RECORD_FIELD(0, RECORD_I64, struct job_ask, deadline_ms, 0),
    RECORD_FIELD(0, RECORD_I64, struct job_ask, time_limit_ms, 0),
};

static const struct record_type exact_record = RECORD_TYPE(0, "ask", struct job_ask, exact_fields);

static json_t *write_ask(const struct job_event *event)
{
    if (event->ask.count != 1)
        return NULL;
    json_t *record = json_record_write(&job_ask_record, event->ask.items);
    _cleanup_json_ json_t *exact = json_record_write(&exact_record, event->ask.items);
    (void)json_object_update(record, exact);
    /* Notification targets affect no decision, and URLs of hooks are secrets. */
    (void)json_object_del(record, "notify");
    (void)json_object_del(record, "notify_on");
    (void)json_object_del(record, "slurm");
    return record;
}

static int read_ask(json_t *value, struct job_event *event, struct error *err)
{
    _cleanup_json_ json_t *record = json_deep_copy(value);
    struct job_ask *ask = xcalloc(1, sizeof(*ask));
    event->ask = (struct record_list){ .items = ask, .count = 1 };
    _cleanup_json_ json_t *exact = json_object();
    for (size_t i = 0; i < exact_record.n_fields; i++) {
        const char *name = exact_fields[i].name;
        (void)json_object_set(exact, name, json_object_get(value, name));
        (void)json_object_del(record, name);
    }
    (void)json_object_del(record, "begin");
    (void)json_object_del(record, "deadline");
    (void)json_object_del(record, "time_limit");
    int r = json_record_read(&job_ask_record, record, ask, err);
    if (r == 0)
        r = json_record_read(&exact_record, exact, ask, err);
    return r < 0 ? error_wrap(err, "ask") : 0;
}

static json_t *write_gpus(const struct job_event *event)
{
    json_t *gpus = json_array();
    const struct gpu_grant *grants = event->gpus.items;
    for (size_t i = 0; i < event->gpus.count; i++) {
        json_t *gpu = json_record_write(&gpu_grant_record, &grants[i]);
        if (grants[i].node == NULL)
            (void)json_object_set_new(gpu, "node", json_text_string(event->node));
        (void)json_array_append_new(gpus, gpu);
    }
    return gpus;
}

static json_t *write_nodes(const struct job_event *event)
{
    const struct job_node *nodes = event->nodes.items;
    json_t *names = event->nodes.count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < event->nodes.count; i++)
        (void)json_array_append_new(names, json_text_string(nodes[i].name));
    return names;
}

static int read_nodes(json_t *value, struct job_event *event, struct error *err)
{
    json_t *item;
    size_t i;
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item) || i >= JOB_NODES_MAX)
            return error_set(err, -EINVAL, "nodes[%zu] is not a node", i);
        job_nodes_add(&event->nodes, json_string_value(item), NULL);
    }
    return 0;
}

static json_t *write_end(const struct job_event *event)
{
    return json_string(job_end_name((enum job_end)event->end));
}

static json_t *write_reason(const struct job_event *event)
{
    bool is_plain_stop = event->reason == END_NONE && event->type == EVENT_STOP;
    enum job_end reason = is_plain_stop ? END_CANCELLED : (enum job_end)event->reason;
    return reason != END_NONE ? json_string(job_end_name(reason)) : NULL;
}

static int read_word(const char *key, json_t *value, uint32_t *ret, struct error *err)
{
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    enum job_end end = job_end_from_name(name);
    if (end == END_KINDS)
        return error_set(err, -EINVAL, "%s: unknown end '%.60s'", key, name);
    *ret = end;
    return 0;
}

static int read_end(json_t *value, struct job_event *event, struct error *err)
{
    return read_word("ended_by", value, &event->end, err);
}

static int read_reason(json_t *value, struct job_event *event, struct error *err)
{
    return read_word("reason", value, &event->reason, err);
}

static json_t *write_change(const struct job_event *event)
{
    const struct cluster_change *change = event->change.items;
    if (event->change.count != 1)
        return NULL;
    json_t *record = json_record_write(&cluster_change_record, change);
    (void)json_object_set_new(record, "kind", json_string(change_kind_name((enum change_kind)change->kind)));
    return record;
}

static int read_change(json_t *value, struct job_event *event, struct error *err)
{
    _cleanup_json_ json_t *record = json_deep_copy(value);
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

/* --- the table --- */

#define OF(type)    (UINT64_C(1) << EVENT_##type)
#define ALL         UINT64_MAX
#define ALLOCATIONS (OF(ALLOCATED) | OF(RESTORING) | OF(INHERITS))
#define SIGNALS     (OF(SUSPENDED) | OF(CONTINUED) | OF(SIGNALLED))
#define ENDS        (OF(ENDED) | OF(REQUEUED) | OF(MEMBER))
#define REQUEUES    (OF(PREEMPTED) | OF(REQUEUED))

#define FIELD(key_, member_, ...)                                                                            \
    .field = { .name = (key_), .offset = offsetof(struct line, member_), .kind = RECORD_##__VA_ARGS__ }
#define NUMBER(key_, kind_, member_) FIELD(key_, event.member_, kind_, .has_zero = true)
#define TEXT(key_, member_)          FIELD(key_, event.member_, STRING, .limit = SPEC_NAME_MAX)
#define OTHER(key_, name_)           .field.name = (key_), .write = write_##name_, .read = read_##name_

static const struct row rows[] = {
    { ALL, NUMBER("seq", U64, seq) },
    { ALL, OTHER("type", type) },
    { ALL, NUMBER("job", U64, job) },
    { ALL, NUMBER("attempt", U32, attempt) },
    { ALL, NUMBER("at_ms", I64, wall_ms) },
    { OF(SUBMITTED) | SIGNALS, NUMBER("uid", U32, uid) },
    { OF(SUBMITTED), NUMBER("gid", U32, gid), .write = write_group },
    { OF(SUBMITTED), FIELD("stem", command_hash, I64, .has_zero = true) },
    { OF(SUBMITTED) | OF(HELD) | OF(RELEASED), NUMBER("hold", U32, hold) },
    { OF(SUBMITTED), FIELD("array_job", event.array_job, U64) },
    { OF(SPLIT) | OF(MEMBER), NUMBER("element", U64, element) },
    { OF(SUBMITTED) | OF(SPLIT) | OF(MEMBER), NUMBER("array_index", U32, array_index) },
    { OF(SUBMITTED) | OF(EDITED), OTHER("ask", ask) },
    { OF(SUBMITTED) | OF(EDITED), TEXT("name", name) },
    { SIGNALS, NUMBER("sent", U32, sent) },
    { ALLOCATIONS, OTHER("nodes", nodes) },
    { ALLOCATIONS, TEXT("node", node) },
    { ALLOCATIONS, FIELD("gpus", event.gpus, LIST, .limit = EVENT_GPUS_MAX, .sub = &gpu_grant_record),
        .write = write_gpus },
    { ALLOCATIONS, NUMBER("cpu_milli", U32, cpu_milli) },
    { ALLOCATIONS, NUMBER("memory", U64, memory) },
    { ALLOCATIONS, FIELD("early", event.is_early, U32), .is_optional = true },
    { ALLOCATIONS, FIELD("behind", event.behind, U64), .is_optional = true },
    { ENDS, OTHER("ended_by", end) },
    { ENDS, NUMBER("exit_code", I32, exit_code) },
    { ENDS, NUMBER("started_ms", I64, started_wall_ms) },
    { ENDS, NUMBER("run_ms", I64, run_ms) },
    { REQUEUES, NUMBER("cause", U32, cause) },
    { REQUEUES | OF(PARK), NUMBER("park_cause", U32, park_cause) },
    { OF(REQUEUED) | OF(RETURNED), NUMBER("retry_ms", I64, retry_ms) },
    { OF(STOP) | OF(RETURNED), OTHER("reason", reason) },
    { OF(PARK), NUMBER("park_return_ms", I64, park_return_ms) },
    { OF(PARK), NUMBER("park_guest", U64, park_guest) },
    { OF(PARKED), NUMBER("park_bytes", U64, park_bytes) },
    { OF(RECONCILED), NUMBER("terms", U32, terms) },
    { OF(RECONCILED), NUMBER("park_number", U32, park_number) },
    { OF(RECONCILED), NUMBER("park_seen", U32, park_seen) },
    { OF(IDLE), NUMBER("idle_level", U32, idle_level) },
    { OF(IDLE), NUMBER("idle_ms", I64, idle_ms) },
    { OF(CLUSTER), OTHER("change", change) },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

json_t *json_journal_write(const struct job_event *event, uint64_t command_hash)
{
    const struct line line = { *event, command_hash }; // borrowed
    uint64_t type = event->type < EVENT_TYPES ? UINT64_C(1) << event->type : 0;
    json_t *object = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].types != ALL && (rows[i].types & type) == 0)
            continue;
        json_t *value =
            rows[i].write != NULL ? rows[i].write(event) : json_record_answer(&rows[i].field, &line);
        if (value != NULL && !(rows[i].is_optional && json_is_null(value)))
            (void)json_object_set_new(object, rows[i].field.name, value);
    }
    return object;
}

int json_journal_read(json_t *object, struct job_event *ret, uint64_t *ret_command_hash, struct error *err)
{
    struct line line = { 0 };
    int r = 0;
    if (!json_is_string(json_object_get(object, "type")) ||
        !json_is_integer(json_object_get(object, "at_ms")))
        r = error_set(err, -EINVAL, "an event needs \"type\" and \"at_ms\"");
    for (size_t i = 0; r == 0 && i < ROWS; i++) {
        json_t *value = json_object_get(object, rows[i].field.name);
        if (rows[i].read == NULL)
            r = json_record_read_field(&rows[i].field, value, &line, err);
        else if (value != NULL && !json_is_null(value))
            r = rows[i].read(value, &line.event, err);
    }
    *ret = line.event;
    *ret_command_hash = line.command_hash;
    return r;
}
