/* SPDX-License-Identifier: MIT */
/* A job of several nodes is never parked. Whether a job can be parked follows from its command alone. */
#include "lab/sim/parking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "lab/sim/names.h"

#define ROOM_MAX 1000.0

/* --- options --- */

static int set_where(struct parking_options *options, char *value, struct error *err)
{
    static const char *const names[] = {
        [PARKING_ANY] = "any", [PARKING_NODE] = "node", [PARKING_GPU] = "gpu"
    };
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(value, names[i]) == 0) {
            options->where = (enum parking_where)i;
            return 0;
        }
    return error_set(err, -EINVAL, "--park: where=%.40s is neither gpu, node nor any", value);
}

static int set_room(struct parking_options *options, char *value, struct error *err)
{
    char *end = NULL;
    options->room = strtod(value, &end);
    if (end == value || *end != '\0' || !(options->room >= 0 && options->room <= ROOM_MAX))
        return error_set(err, -EINVAL, "--park: room=%.40s is not a number from 0 to 1000", value);
    return 0;
}

/* "3s+8s/gpu", or one of the two. */
static int read_cost(char *value, const char *what, int64_t *ret_ms, int64_t *ret_gpu_ms, struct error *err)
{
    char *rest = NULL;
    *ret_ms = *ret_gpu_ms = 0;
    for (char *part = strtok_r(value, "+", &rest); part != NULL; part = strtok_r(NULL, "+", &rest)) {
        char *per = strchr(part, '/');
        if (per != NULL && strcmp(per, "/gpu") != 0)
            return error_set(err, -EINVAL, "%s: '%.40s' does not end with /gpu", what, part);
        if (per != NULL)
            *per = '\0';
        int result = parse_duration(part, what, per != NULL ? ret_gpu_ms : ret_ms, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int set_save(struct parking_options *options, char *value, struct error *err)
{
    return read_cost(value, "--park save", &options->save_ms, &options->save_gpu_ms, err);
}

static int set_load(struct parking_options *options, char *value, struct error *err)
{
    return read_cost(value, "--park load", &options->load_ms, &options->load_gpu_ms, err);
}

static int set_refuse(struct parking_options *options, char *value, struct error *err)
{
    int64_t percent = 0;
    size_t length = strlen(value);
    if (length > 0 && value[length - 1] == '%')
        value[length - 1] = '\0';
    int result = parse_integer(value, "--park refuse", 0, 100, &percent, err);
    options->refuse_percent = (unsigned)percent;
    return result;
}

static const struct key_row {
    const char *key;
    int (*set)(struct parking_options *options, char *value, struct error *err);
} key_rows[] = {
    { "where", set_where },
    { "room", set_room },
    { "save", set_save },
    { "load", set_load },
    { "refuse", set_refuse },
};

static int set_key(struct parking_options *options, char *pair, struct error *err)
{
    char *equals = strchr(pair, '=');
    if (equals == NULL)
        return error_set(err, -EINVAL, "--park: '%.40s' is not KEY=VALUE", pair);
    *equals = '\0';
    for (size_t i = 0; i < sizeof(key_rows) / sizeof(*key_rows); i++)
        if (strcmp(pair, key_rows[i].key) == 0)
            return key_rows[i].set(options, equals + 1, err);
    return error_set(
        err, -EINVAL, "--park: unknown key '%.40s'; where, room, save, load and refuse exist", pair);
}

int parking_options_read(struct parking_options *ret, const char *text, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = NULL;
    int result = 0;
    *ret = (struct parking_options){
        .is_on = true, .room = 4, .save_ms = 3000, .save_gpu_ms = 8000, .load_ms = 2000, .load_gpu_ms = 4000
    };
    for (char *pair = strtok_r(copy, ",", &rest); result == 0 && pair != NULL;
         pair = strtok_r(NULL, ",", &rest))
        result = set_key(ret, pair, err);
    return result;
}

void parking_set_cost(const struct parking_options *options, struct sched_settings *settings)
{
    settings->preempt_cost_ms = settings->preempt_cost_wide_ms = options->save_ms + options->load_ms;
    settings->preempt_cost_gpu_ms = options->save_gpu_ms + options->load_gpu_ms;
}

/* --- the books --- */

void parking_init(
    struct parking *parking, const struct parking_options *options, size_t n_nodes, size_t n_jobs)
{
    *parking = (struct parking){ .options = *options, .n_nodes = n_nodes, .n_jobs = n_jobs };
    if (!options->is_on)
        return;
    parking->held_milli = xcalloc(n_nodes + 1, sizeof(*parking->held_milli));
    parking->jobs = xcalloc(n_jobs + 1, sizeof(*parking->jobs));
    parking->refuses = xcalloc(n_jobs + 1, sizeof(*parking->refuses));
    parking->leaving_ms = xcalloc(n_nodes + 1, sizeof(*parking->leaving_ms));
    parking->empty_ms = xcalloc(n_nodes * NODE_GPUS_LIMIT + 1, sizeof(*parking->empty_ms));
}

static void forget(struct parked *parked)
{
    free(parked->node_name);
    free(parked->gpus);
    *parked = (struct parked){ 0 };
}

void parking_clear(struct parking *parking)
{
    for (size_t i = 0; parking->jobs != NULL && i < parking->n_jobs; i++)
        forget(&parking->jobs[i]);
    free(parking->jobs);
    free(parking->held_milli);
    free(parking->refuses);
    free(parking->leaving_ms);
    free(parking->empty_ms);
    *parking = (struct parking){ 0 };
}

/* Of a share that is requested by memory, the part of the GPU's memory. */
static uint64_t milli_of(const struct cluster *cluster, const struct allocation *allocation)
{
    uint64_t milli = 0;
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *held = &allocation->gpus[i];
        uint64_t bytes = cluster->nodes[held->node].gpus[held->gpu].memory_bytes;
        if (held->slot == 0)
            milli += SHARE_WHOLE;
        else if (held->share > 0 || bytes < SHARE_WHOLE)
            milli += held->share;
        else
            milli += (uint64_t)(((__uint128_t)held->memory * SHARE_WHOLE + bytes - 1) / bytes);
    }
    return milli;
}

void parking_know(struct parking *parking, uint32_t job, uint64_t command)
{
    uint64_t by = command == HASH_START ? (uint64_t)job + 1 : command;
    parking->refuses[job] = hash_bytes(HASH_START, &by, sizeof(by)) % 100 < parking->options.refuse_percent;
}

bool parking_allows(const struct parking *parking, const struct cluster *cluster, uint32_t job,
    const struct allocation *allocation)
{
    if (allocation->n_nodes != 1 || parking->refuses[job])
        return false;
    uint32_t node = allocation->nodes[0].node;
    double most = parking->options.room * (double)cluster->nodes[node].n_gpus * SHARE_WHOLE;
    return (double)(parking->held_milli[node] + milli_of(cluster, allocation)) <= most;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

int64_t parking_add(struct parking *parking, const struct cluster *cluster, uint32_t job,
    const struct allocation *allocation, int64_t now_ms)
{
    struct parked *parked = &parking->jobs[job];
    uint32_t node = allocation->nodes[0].node;
    *parked = (struct parked){ .node = node,
        .node_name = xstrdup(cluster->nodes[node].name),
        .gpu_milli = milli_of(cluster, allocation),
        .gpus = xcalloc(allocation->n_gpus + 1, sizeof(*parked->gpus)),
        .n_gpus = allocation->n_gpus };
    int64_t *leaving_ms = &parking->leaving_ms[node];
    *leaving_ms = (*leaving_ms > now_ms ? *leaving_ms : now_ms) + parking->options.load_ms +
                  parking->options.load_gpu_ms * (int64_t)parked->n_gpus;
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        parked->gpus[i] = allocation->gpus[i].gpu;
        parking->empty_ms[node * NODE_GPUS_LIMIT + parked->gpus[i]] = *leaving_ms;
    }
    qsort(parked->gpus, parked->n_gpus, sizeof(*parked->gpus), compare_u32);
    parking->held_milli[node] += parked->gpu_milli;
    parking->n_parks++;
    return parking->options.save_ms + parking->options.save_gpu_ms * (int64_t)parked->n_gpus;
}

void parking_remove(struct parking *parking, uint32_t job)
{
    struct parked *parked = &parking->jobs[job];
    if (parked->node_name == NULL)
        return;
    parking->held_milli[parked->node] -= parked->gpu_milli;
    forget(parked);
}

int64_t parking_delay(const struct parking *parking, const struct allocation *allocation, int64_t now_ms)
{
    int64_t from_ms = now_ms;
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *gpu = &allocation->gpus[i];
        int64_t empty_ms = parking->empty_ms[gpu->node * NODE_GPUS_LIMIT + gpu->gpu];
        from_ms = empty_ms > from_ms ? empty_ms : from_ms;
    }
    return from_ms - now_ms;
}

void parking_bind(const struct parking *parking, uint32_t job, struct sched_request *request)
{
    const struct parked *parked = &parking->jobs[job];
    if (parked->node_name == NULL || parking->options.where == PARKING_ANY)
        return;
    request->nodelist = parked->node_name;
    if (parking->options.where == PARKING_NODE)
        return;
    request->allow = parked->gpus;
    request->n_allow = parked->n_gpus;
}
