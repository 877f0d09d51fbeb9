/* SPDX-License-Identifier: MIT */
/* Files have one JSON object per line: {"settings": {...}}, {"node": {...}}, {"job": {...}}, {"event":
 * {...}}; zeros are omitted. Policies and placements are given by name. */
#include "lab/sim/check_case.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "sched/placement/placement.h"
#include "sched/queue/policy.h"

#define CASE_LINES_MAX 100000U

static const char *const setting_names[] = { "policy", "placement", "reservations", "node_jobs", "user_jobs",
    "user_gpu_milli", "grace_ms", "is_exact", "is_fair", "shares", "park", "park_room_milli" };
static const char *const node_names[] = { "gpus", "cpu_milli", "memory" };
static const char *const job_names[] = { "id", "at_ms", "run_ms", "uid", "gid", "priority", "gpus", "share",
    "gpu_mem", "cpu_milli", "memory", "nodes", "gpus_per_node", "allow", "pick", "preemptible", "limit_ms",
    "begin_ms", "hold_until_ms", "after", "after_kind", "fails", "elements", "element_limit", "own_priority",
    "refuses", "told_ms" };
static const char *const event_names[] = { "at_ms", "kind", "a", "b", "c", "d" };
_Static_assert(sizeof(setting_names) / sizeof(char *) == CASE_SETTINGS, "a name for each");
_Static_assert(sizeof(job_names) / sizeof(char *) == CASE_JOB_VALUES, "a name for each");

void case_clear(struct sim_case *of)
{
    free(of->nodes);
    free(of->jobs);
    free(of->events);
    *of = (struct sim_case){ 0 };
}

static void *copy(const void *items, size_t count, size_t size)
{
    void *to = xcalloc(count + 1, size);
    if (count > 0)
        memcpy(to, items, count * size);
    return to;
}

void case_copy(struct sim_case *to, const struct sim_case *from)
{
    *to = *from;
    to->nodes = copy(from->nodes, from->n_nodes, sizeof(*from->nodes));
    to->jobs = copy(from->jobs, from->n_jobs, sizeof(*from->jobs));
    to->events = copy(from->events, from->n_events, sizeof(*from->events));
}

/* --- text --- */

static void write_values(
    FILE *out, const char *const *names, const int64_t *values, size_t count, size_t from)
{
    const char *comma = from > 0 ? ", " : "";
    for (size_t i = from; i < count; i++) {
        if (values[i] == 0)
            continue;
        (void)fprintf(out, "%s\"%s\": %lld", comma, names[i], (long long)values[i]);
        comma = ", ";
    }
    (void)fputs("}}\n", out);
}

void case_write(const struct sim_case *of, FILE *out)
{
    (void)fprintf(out, "{\"settings\": {\"policy\": \"%s\", \"placement\": \"%s\"",
        policies[of->settings[SET_POLICY]]->name, placements[of->settings[SET_PLACEMENT]]->name);
    write_values(out, setting_names, of->settings, CASE_SETTINGS, SET_RESERVATIONS);
    for (size_t i = 0; i < of->n_nodes; i++) {
        (void)fputs("{\"node\": {", out);
        write_values(out, node_names, of->nodes[i], CASE_NODE_VALUES, 0);
    }
    for (size_t i = 0; i < of->n_jobs; i++) {
        (void)fputs("{\"job\": {", out);
        write_values(out, job_names, of->jobs[i], CASE_JOB_VALUES, 0);
    }
    for (size_t i = 0; i < of->n_events; i++) {
        (void)fputs("{\"event\": {", out);
        write_values(out, event_names, of->events[i], CASE_EVENT_VALUES, 0);
    }
}

static int read_values(
    json_t *object, const char *const *names, int64_t *values, size_t count, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (i < count && strcmp(names[i], key) != 0)
            i++;
        if (i == count ||
            (!json_is_integer(value) && !(json_is_string(value) && count == CASE_SETTINGS && i < 2)))
            return error_set(err, -EINVAL, "'%.60s' is unknown or not a whole number", key);
        values[i] = json_integer_value(value);
    }
    return 0;
}

static int read_names(json_t *settings, struct sim_case *ret, struct error *err)
{
    const char *policy = json_string_value(json_object_get(settings, "policy"));
    const char *placement = json_string_value(json_object_get(settings, "placement"));
    int64_t at = 0;
    while (policy != NULL && policies[at] != NULL && strcmp(policies[at]->name, policy) != 0)
        at++;
    if (policy == NULL || policies[at] == NULL)
        return error_set(err, -EINVAL, "names an unknown policy");
    ret->settings[SET_POLICY] = at;
    at = 0;
    while (placement != NULL && placements[at] != NULL && strcmp(placements[at]->name, placement) != 0)
        at++;
    if (placement == NULL || placements[at] == NULL)
        return error_set(err, -EINVAL, "names an unknown placement");
    ret->settings[SET_PLACEMENT] = at;
    return 0;
}

static int read_object(json_t *line, struct sim_case *ret, struct error *err)
{
    json_t *settings = json_object_get(line, "settings"), *node = json_object_get(line, "node");
    json_t *job = json_object_get(line, "job"), *event = json_object_get(line, "event");
    if (settings != NULL) {
        int result = read_values(settings, setting_names, ret->settings, CASE_SETTINGS, err);
        return result < 0 ? result : read_names(settings, ret, err);
    }
    if (node != NULL)
        return read_values(node, node_names, ret->nodes[ret->n_nodes++], CASE_NODE_VALUES, err);
    if (job != NULL)
        return read_values(job, job_names, ret->jobs[ret->n_jobs++], CASE_JOB_VALUES, err);
    if (event != NULL)
        return read_values(event, event_names, ret->events[ret->n_events++], CASE_EVENT_VALUES, err);
    return error_set(err, -EINVAL, "is neither settings, node, job nor event");
}

/* What the runner would otherwise have to trust. */
static int check_references(const struct sim_case *of, struct error *err)
{
    if (of->n_nodes == 0)
        return error_set(err, -EINVAL, "the case has no node");
    if (of->settings[SET_PARK] < 0 || of->settings[SET_PARK] >= CHECK_PARK_KINDS)
        return error_set(err, -EINVAL, "park is %lld, not 0 to %d", (long long)of->settings[SET_PARK],
            CHECK_PARK_KINDS - 1);
    for (size_t i = 0; i < of->n_nodes; i++)
        if (of->nodes[i][NODE_GPUS] < 0 || of->nodes[i][NODE_GPUS] > 64)
            return error_set(err, -EINVAL, "node %zu does not have 0 to 64 GPUs", i);
    for (size_t i = 0; i < of->n_jobs; i++)
        if (of->jobs[i][JOB_PICK] < 0 || of->jobs[i][JOB_PICK] / 256 >= (int64_t)of->n_nodes)
            return error_set(
                err, -EINVAL, "job %lld picks a GPU of a missing node", (long long)of->jobs[i][JOB_ID]);
    for (size_t i = 0; i < of->n_events; i++) {
        const int64_t *event = of->events[i];
        if (event[EVENT_KIND] < 0 || event[EVENT_KIND] >= HAPPEN_KINDS)
            return error_set(err, -EINVAL, "event %zu has an unknown kind", i);
        if (event[EVENT_KIND] <= HAPPEN_RESUME_GPU &&
            (event[EVENT_A] < 0 || event[EVENT_A] >= (int64_t)of->n_nodes))
            return error_set(err, -EINVAL, "event %zu refers to a missing node", i);
    }
    return 0;
}

int case_read(struct sim_case *ret, const char *path, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot read %.300s", path);
    *ret = (struct sim_case){ .nodes = xcalloc(CASE_LINES_MAX, sizeof(*ret->nodes)),
        .jobs = xcalloc(CASE_LINES_MAX, sizeof(*ret->jobs)),
        .events = xcalloc(CASE_LINES_MAX, sizeof(*ret->events)) };
    _cleanup_free_ char *line = NULL;
    size_t size = 0, number = 0;
    int result = 0;
    while (result == 0 && getline(&line, &size, file) >= 0 && number++ < CASE_LINES_MAX) {
        if (line[strspn(line, " \t\r\n")] == '\0')
            continue;
        json_error_t reason;
        json_t *object = json_loads(line, 0, &reason);
        result =
            object == NULL ? error_set(err, -EINVAL, "%.200s", reason.text) : read_object(object, ret, err);
        json_decref(object);
    }
    (void)fclose(file);
    if (result < 0)
        (void)error_wrap(err, "%.300s:%zu", path, number);
    return result < 0 ? result : check_references(ret, err);
}
