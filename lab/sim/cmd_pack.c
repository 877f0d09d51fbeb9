/* SPDX-License-Identifier: MIT */
/*
 * mgpu-sim pack: the packing experiment of the openb traces. Pods arrive in a given order; each is placed at
 * once or dropped, and none ends. The result is how much of the cluster's GPUs is allocated in the end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "lab/sim/nodes.h"
#include "lab/sim/pack_frag.h"
#include "lab/sim/talk.h"
#include "sched/placement/placement.h"

#define MARKS 8U

struct pack_call {
    const char *nodes, *order, *rank;
    const struct placement *placement;
    int64_t seed;
    bool is_json, is_online, is_help;
};

struct pack {
    struct workload pods;
    struct sim_nodes nodes;
    struct cluster cluster;
    struct pack_frag frag;
    void *state;
    uint32_t *order;
    size_t n_order, dropped;
    double arrived, allocated, capacity; // thousandths of GPUs
    struct {
        double arrived, allocated, frag, frag_of_idle; // percent; arrived 0: not reached
    } marks[MARKS];
};

static const double mark_percents[MARKS] = { 50, 80, 90, 100, 110, 120, 130, 1e9 };

/* The line of the file that begins with the seed, as a list of numbers below `limit`. */
static int read_line_of_seed(
    const char *path, int64_t seed, size_t limit, uint32_t **ret, size_t *ret_count, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_errno(err, -errno, "cannot read %.300s", path);
    _cleanup_free_ char *line = NULL;
    size_t size = 0, count = 0;
    uint32_t *numbers = NULL;
    bool is_found = false;
    while (!is_found && getline(&line, &size, file) >= 0) {
        char *at = line, *end = NULL;
        is_found = strtoll(at, &end, 10) == seed && end != at;
        for (at = end; is_found; at = end) {
            unsigned long long number = strtoull(at, &end, 10);
            if (end == at)
                break;
            if (number >= limit) {
                free(numbers);
                (void)fclose(file);
                return error_set(err, -ERANGE, "%.300s: %llu is not below %zu", path, number, limit);
            }
            if ((count & (count - 1)) == 0)
                numbers = xreallocarray(numbers, count == 0 ? 1 : 2 * count, sizeof(*numbers));
            numbers[count++] = (uint32_t)number;
        }
    }
    (void)fclose(file);
    if (!is_found)
        return error_set(err, -ENOENT, "%.300s has no line for seed %lld", path, (long long)seed);
    *ret = numbers;
    *ret_count = count;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct sim_node *)a)->name, ((const struct sim_node *)b)->name);
}

/* Nodes by name, then by the ranks of the file: ties of the placement go to the lowest. */
static int order_nodes(const struct pack_call *call, struct sim_nodes *nodes, struct error *err)
{
    uint32_t *ranks = NULL;
    size_t count = 0;
    qsort(nodes->items, nodes->count, sizeof(*nodes->items), compare_names);
    if (call->rank == NULL)
        return 0;
    int result = read_line_of_seed(call->rank, call->seed, nodes->count, &ranks, &count, err);
    if (result < 0)
        return result;
    if (count != nodes->count) {
        free(ranks);
        return error_set(
            err, -EINVAL, "%.300s ranks %zu nodes; there are %zu", call->rank, count, nodes->count);
    }
    struct sim_node *sorted = xcalloc(count + 1, sizeof(*sorted));
    bool *is_taken = xcalloc(count + 1, sizeof(bool));
    for (size_t i = 0; i < count && result == 0; i++) {
        if (is_taken[ranks[i]])
            result = error_set(err, -EINVAL, "%.300s gives rank %u twice", call->rank, ranks[i]);
        is_taken[ranks[i]] = true;
        sorted[ranks[i]] = nodes->items[i];
    }
    if (result == 0)
        memcpy(nodes->items, sorted, count * sizeof(*sorted));
    free(sorted);
    free(is_taken);
    free(ranks);
    return result;
}

static void make_request(const struct pack *pack, const struct sim_job *pod, struct sched_request *ret)
{
    *ret = (struct sched_request){ .gpus = pod->gpus,
        .nodes = 1,
        .share = pod->share,
        .cpu_milli = pod->cpu_milli,
        .memory = pod->memory,
        .model = pod->model == 0 ? NULL : pack->pods.models.items[pod->model] };
}

static void update_dirty(struct pack *pack, const struct placement *placement)
{
    struct cluster *cluster = &pack->cluster;
    for (size_t i = 0; i < cluster->n_dirty; i++) {
        struct cluster_node *node = &cluster->nodes[cluster->dirty[i]];
        pack_frag_update(&pack->frag, cluster, node->position);
        if (placement->dirty != NULL)
            placement->dirty(pack->state, cluster, node->position);
    }
    cluster->n_dirty = 0;
}

static void mark(struct pack *pack, bool is_end)
{
    for (size_t i = 0; i < MARKS; i++) {
        double arrived = 100 * pack->arrived / pack->capacity;
        bool is_due = i + 1 < MARKS ? arrived >= mark_percents[i] - 0.5 : is_end;
        if (!is_due || pack->marks[i].arrived > 0)
            continue;
        double idle = pack->capacity - pack->allocated;
        pack->marks[i].arrived = arrived;
        pack->marks[i].allocated = 100 * pack->allocated / pack->capacity;
        pack->marks[i].frag = 100 * pack->frag.total / pack->capacity;
        pack->marks[i].frag_of_idle = 100 * pack->frag.total / (idle > 1 ? idle : 1);
    }
}

static void arrive(struct pack *pack, const struct pack_call *call, const struct sim_job *pod)
{
    const struct placement *placement = call->placement;
    struct sched_request request;
    struct allocation allocation = { 0 };
    struct fit fit = { .end_ms = TIME_NEVER, .limit_ms = TIME_NEVER };
    uint64_t work = 0;
    double milli = (double)pod->gpus * (pod->share > 0 ? pod->share : SHARE_WHOLE);
    make_request(pack, pod, &request);
    pack->arrived += milli;
    if (call->is_online && placement->learn != NULL)
        placement->learn(pack->state, &pack->cluster, &request, 1);
    if (placement_choose(placement, pack->state, &pack->cluster, &request, &fit, &allocation, &work)) {
        cluster_book(&pack->cluster, &allocation);
        pack->allocated += milli;
        update_dirty(pack, placement);
    } else {
        pack->dropped++;
    }
    allocation_clear(&allocation);
    mark(pack, false);
}

static int prepare(struct pack *pack, const struct pack_call *call, const char *path, struct error *err)
{
    struct trace_options options = { .is_untimed = true };
    int result = nodes_read(&pack->nodes, call->nodes, err);
    if (result == 0)
        result = order_nodes(call, &pack->nodes, err);
    if (result == 0)
        result = workload_read_as_is(&pack->pods, path, &options, err);
    if (result == 0 && call->order != NULL)
        result =
            read_line_of_seed(call->order, call->seed, pack->pods.n_jobs, &pack->order, &pack->n_order, err);
    if (result < 0)
        return result;
    cluster_init(&pack->cluster);
    nodes_fill_cluster(&pack->nodes, &pack->cluster);
    pack->capacity = (double)pack->nodes.gpus * SHARE_WHOLE;
    if (call->placement->open != NULL)
        pack->state = call->placement->open();
    pack_frag_init(&pack->frag, &pack->pods, &pack->cluster);
    for (size_t i = 0; !call->is_online && call->placement->learn != NULL && i < pack->pods.n_jobs; i++) {
        struct sched_request request;
        make_request(pack, &pack->pods.jobs[i], &request);
        call->placement->learn(pack->state, &pack->cluster, &request, 1);
    }
    update_dirty(pack, call->placement);
    return 0;
}

static void print(const struct pack *pack, const struct pack_call *call, size_t pods)
{
    if (call->is_json)
        (void)printf("{\"placement\": \"%s\", \"seed\": %lld, \"pods\": %zu, \"dropped\": %zu, \"marks\": [",
            call->placement->name, (long long)call->seed, pods, pack->dropped);
    else
        (void)printf("placement %s, seed %lld: %zu pods, %zu dropped\n%12s %14s %18s %16s\n",
            call->placement->name, (long long)call->seed, pods, pack->dropped, "arrived %", "allocated %",
            "frag of capacity %", "frag of idle %");
    const char *comma = "";
    for (size_t i = 0; i < MARKS; i++) {
        if (pack->marks[i].arrived <= 0)
            continue;
        (void)printf(call->is_json ? "%s{\"arrived_percent\": %.2f, \"allocated_percent\": %.2f, "
                                     "\"frag_percent\": %.2f, \"frag_of_idle_percent\": %.2f}"
                                   : "%s%12.2f %14.2f %18.2f %16.2f\n",
            comma, pack->marks[i].arrived, pack->marks[i].allocated, pack->marks[i].frag,
            pack->marks[i].frag_of_idle);
        comma = call->is_json ? ", " : "";
    }
    if (call->is_json)
        (void)printf("]}\n");
}

static int pack_run(struct pack *pack, const struct pack_call *call, const char *path, struct error *err)
{
    int result = prepare(pack, call, path, err);
    if (result < 0)
        return result;
    size_t pods = call->order != NULL ? pack->n_order : pack->pods.n_jobs;
    for (size_t i = 0; i < pods; i++)
        arrive(pack, call, &pack->pods.jobs[call->order != NULL ? pack->order[i] : i]);
    mark(pack, true);
    print(pack, call, pods);
    return 0;
}

static int set_placement(void *target, const char *value, struct error *err)
{
    return talk_placement("--placement", value, &((struct pack_call *)target)->placement, err);
}

static const struct option_row rows[] = {
    { 'c', "nodes", "FILE", "the nodes, as CSV or NODESxGPUS", OPTION_VALUE(word, struct pack_call, nodes) },
    { 0, "placement", "NAME", "how GPUs are chosen (fgd)", set_placement },
    { 0, "order", "FILE", "one line per seed: seed, then rows of the pod list in order of arrival",
        OPTION_VALUE(word, struct pack_call, order) },
    { 0, "rank", "FILE", "one line per seed: seed, then the rank of each node for ties",
        OPTION_VALUE(word, struct pack_call, rank) },
    { 0, "seed", "N", "the line to use of these files (42)", OPTION_VALUE(integer, struct pack_call, seed),
        OPTION_RANGE(0, INT64_MAX) },
    { 0, "online", NULL, "learn typical pods from arrivals instead of the list",
        OPTION_VALUE(flag, struct pack_call, is_online) },
    { 0, "json", NULL, "print figures as JSON", OPTION_VALUE(flag, struct pack_call, is_json) },
    { 'h', "help", NULL, "this text", OPTION_VALUE(flag, struct pack_call, is_help) },
    { 0 },
};

static int run(int argc, char **argv)
{
    struct pack_call call = { .seed = 42, .placement = &placement_fgd };
    struct error err = { 0 };
    int first = 0;
    if (talk_parse(&command_pack, argc, argv, rows, &call, 0, 1, &first, &err) < 0)
        return talk_error(&err, SIM_USAGE);
    if (call.is_help) {
        talk_help(&command_pack, rows);
        return SIM_OK;
    }
    if (first == argc || call.nodes == NULL) {
        (void)error_set(
            &err, -EINVAL, first == argc ? "pack requires a list of pods" : "pack requires --nodes");
        (void)error_hint(&err, "usage: mgpu-sim %s", command_pack.usage);
        return talk_error(&err, SIM_USAGE);
    }
    struct pack pack = { 0 };
    int result = pack_run(&pack, &call, argv[first], &err);
    if (pack.state != NULL && call.placement->close != NULL)
        call.placement->close(pack.state);
    pack_frag_clear(&pack.frag);
    cluster_clear(&pack.cluster);
    workload_clear(&pack.pods);
    nodes_clear(&pack.nodes);
    free(pack.order);
    return result < 0 ? talk_error(&err, SIM_FAILED) : SIM_OK;
}

const struct sim_command command_pack = {
    .name = "pack",
    .summary = "place pods that never end, as in the fragmentation experiments",
    .usage = "pack PODS --nodes FILE [--order FILE] [--rank FILE] [--seed N] [--placement NAME]",
    .run = run,
};
