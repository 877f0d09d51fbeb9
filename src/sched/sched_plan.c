/* SPDX-License-Identifier: MIT */
/*
 * Reservations of blocked jobs (EASY backfill, Lifka 1995, with specific GPUs): for each of the first few
 * blocked heads, finds the earliest time at which its request is expected to be free, beside the holds of the
 * heads before it. The GPUs are marked from that time on; a job that starts on them now must end before. The
 * plan is recomputed in every pass, so it only moves forward in time if an estimate was wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define EXACT_NODES 64U // clusters up to this size are examined completely
#define CANDIDATES  16U // nodes examined exactly in larger ones
#define SPAN_NODES  1024U

/* A search: some GPUs on one node, for a duration. */
struct search {
    struct sched *sched;
    const struct queue_class *class;
    const struct sched_request *request;
    int64_t length_ms; // for how long it must stay free
    uint64_t reservations[16];
    struct fit fit;
};

struct gpu_time {
    uint32_t gpu;
    int64_t free_ms;
};

/* Sorts by time, then by GPU: the input is in order of GPU. */
static void insert_gpu(struct gpu_time *times, size_t count, struct gpu_time entry)
{
    for (; count > 0 && times[count - 1].free_ms > entry.free_ms; count--)
        times[count] = times[count - 1];
    times[count] = entry;
}

static bool has_gpu(const struct plan_hold *hold, uint32_t node, uint32_t gpu)
{
    for (size_t i = 0; i < hold->allocation.n_gpus; i++)
        if (hold->allocation.gpus[i].node == node && hold->allocation.gpus[i].gpu == gpu)
            return true;
    return false;
}

/* As in fit.c: a reservation uses the certain end, or its begin if the job would yield. */
static bool is_over_before(const struct search *search, int64_t from, const struct cluster_booking *booking)
{
    int64_t limit = search->class->key.limit_ms;
    if (search->fit.may_give_way)
        return from < booking->from_ms;
    return limit > 0 && from <= booking->from_ms - limit;
}

/* From then on it would delay the return of a job that was parked from the GPU. */
static bool is_owed_at(const struct search *search, int64_t from, const struct cluster_gpu *gpu)
{
    int64_t limit = search->class->key.limit_ms, slot_ms = search->fit.give_back_ms - search->sched->now_ms;
    bool ends_before = limit > 0 && from <= gpu->return_ms - limit;
    bool gives_back = search->fit.give_back_ms != 0 && from <= gpu->return_ms - slot_ms;
    return gpu->return_ms < TIME_NEVER && !ends_before && !gives_back;
}

/* Moves `from` past everything that keeps this GPU: plan holds, reservations, and jobs parked from it. */
static int64_t past_holds(const struct search *search, uint32_t node, uint32_t gpu, int64_t from)
{
    const struct sched *sched = search->sched;
    const struct cluster_gpu *what = &sched->cluster.nodes[node].gpus[gpu];
    bool is_moved = true;
    while (is_moved && from < TIME_NEVER) {
        is_moved = false;
        for (size_t i = 0; what->hold_from_ms < TIME_NEVER && i < sched->nodes[node].n_holds; i++) {
            const struct plan_hold *hold = &sched->holds[sched->nodes[node].holds[i]];
            if (from + search->length_ms <= hold->from_ms || from >= hold->until_ms ||
                !has_gpu(hold, node, gpu))
                continue;
            from = hold->until_ms;
            is_moved = true;
        }
        for (size_t i = 0; i < what->n_bookings; i++) {
            const struct cluster_booking *booking = &what->bookings[i];
            if (fit_may_use(&search->fit, booking->reservation) || from >= booking->until_ms ||
                is_over_before(search, from, booking))
                continue;
            from = booking->until_ms;
            is_moved = true;
        }
        if (from < what->parked_until_ms && is_owed_at(search, from, what)) {
            from = what->parked_until_ms;
            is_moved = true;
        }
    }
    return from;
}

/* When this GPU has room for a share beside those that will still be on it. */
static int64_t share_free(const struct search *search, uint32_t node, uint32_t gpu)
{
    const struct sched *sched = search->sched;
    const struct cluster_gpu *what = &sched->cluster.nodes[node].gpus[gpu];
    const struct node_runs *runs = node < sched->n_nodes ? &sched->nodes[node] : &(struct node_runs){ 0 };
    struct cluster_gpu left = *what;
    int64_t at = sched->now_ms;
    left.hold_from_ms = TIME_NEVER;
    left.n_bookings = 0;
    struct fit alone = { .now_ms = at, .end_ms = at, .limit_ms = at };
    while (!fit_gpu(&sched->cluster, &sched->cluster.nodes[node], &left, search->request, &alone)) {
        const struct alloc_gpu *first = NULL;
        int64_t ends = TIME_NEVER;
        for (size_t i = 0; i < runs->count; i++) {
            const struct allocation *held = &runs->runs[i]->allocation;
            for (size_t k = 0; k < held->n_gpus; k++) {
                bool is_here = held->gpus[k].node == node && held->gpus[k].gpu == gpu;
                bool is_left = held->gpus[k].slot == 0 ? left.is_exclusive
                                                       : (left.share_slots & 1ULL << held->gpus[k].slot) != 0;
                if (is_here && is_left && runs->runs[i]->expected_end_ms < ends) {
                    ends = runs->runs[i]->expected_end_ms;
                    first = &held->gpus[k];
                }
            }
        }
        if (first == NULL)
            return TIME_NEVER;
        at = ends;
        if (first->slot == 0) {
            left.is_exclusive = false;
        } else {
            left.share_slots &= ~(1ULL << first->slot);
            left.share_booked -= first->share;
            left.memory_booked -= first->memory;
        }
    }
    return at;
}

int sched_compare_ends(const void *a, const void *b)
{
    const struct sched_run *const *left = a, *const *right = b;
    return ((*left)->expected_end_ms > (*right)->expected_end_ms) -
           ((*left)->expected_end_ms < (*right)->expected_end_ms);
}

/* When CPUs and host memory suffice, not before `from`. */
static int64_t host_free(const struct search *search, uint32_t node, int64_t from)
{
    const struct sched *sched = search->sched;
    struct cluster_node left = sched->cluster.nodes[node];
    struct fit alone = { .now_ms = sched->now_ms, .end_ms = sched->now_ms, .limit_ms = sched->now_ms };
    left.hold_from_ms = TIME_NEVER;
    if (fit_host(&left, search->request, &alone) || node >= sched->n_nodes)
        return fit_host(&left, search->request, &alone) ? from : TIME_NEVER;
    const struct node_runs *runs = &sched->nodes[node];
    if (runs->count == 0)
        return TIME_NEVER;
    struct sched_run **sorted = xcalloc(runs->count, sizeof(struct sched_run *));
    memcpy(sorted, runs->runs, runs->count * sizeof(struct sched_run *));
    qsort(sorted, runs->count, sizeof(struct sched_run *), sched_compare_ends);
    int64_t at = TIME_NEVER;
    for (size_t i = 0; i < runs->count && at == TIME_NEVER; i++) {
        const struct allocation *held = &sorted[i]->allocation;
        for (size_t k = 0; k < held->n_nodes; k++) {
            if (held->nodes[k].node != node)
                continue;
            left.cpu_booked -= held->nodes[k].cpu_milli;
            left.memory_booked -= held->nodes[k].memory;
            left.jobs--;
            left.is_exclusive &= !held->nodes[k].is_exclusive;
        }
        if (fit_host(&left, search->request, &alone))
            at = sorted[i]->expected_end_ms;
    }
    free(sorted);
    return at < from ? from : at;
}

/* When each suitable GPU of the node can serve the request, soonest first, and not before `from_ms`. */
static size_t gpu_times(const struct search *search, uint32_t node, int64_t from_ms, struct gpu_time *ret)
{
    const struct sched *sched = search->sched;
    const struct cluster_node *where = &sched->cluster.nodes[node];
    int64_t free_ms[NODE_GPUS_LIMIT];
    size_t count = 0;
    sched_node_free_times(sched, node, free_ms);
    for (uint32_t i = 0; i < where->n_gpus; i++) {
        bool is_shared = request_is_shared(search->request);
        if (free_ms[i] == TIME_NEVER || !cluster_gpu_suits(&sched->cluster, &where->gpus[i], search->request))
            continue;
        if (!is_shared && where->gpus[i].memory_external > 0)
            continue;
        int64_t at = is_shared ? share_free(search, node, i) : free_ms[i];
        if (at < from_ms)
            at = from_ms;
        at = at < TIME_NEVER ? past_holds(search, node, i, at) : at;
        if (at < TIME_NEVER)
            insert_gpu(ret, count++, (struct gpu_time){ i, at });
    }
    return count;
}

static void add_gpu(
    struct allocation *to, const struct cluster_node *node, uint32_t gpu, const struct sched_request *request)
{
    bool is_shared = request_is_shared(request);
    to->gpus = xreallocarray(to->gpus, to->n_gpus + 1, sizeof(*to->gpus));
    to->gpus[to->n_gpus++] = (struct alloc_gpu){
        .node = node->position,
        .gpu = gpu,
        .slot = is_shared,
        .share = is_shared ? request->share : SHARE_WHOLE,
        .memory = is_shared ? fit_share_memory(&node->gpus[gpu], request) : 0,
    };
}

/* Whether a GPU of the node may be kept for others later on, although it is free before. */
static bool is_kept_later(const struct sched *sched, uint32_t node)
{
    const struct cluster_node *where = &sched->cluster.nodes[node];
    bool is_kept = node < sched->n_nodes && sched->nodes[node].n_holds > 0;
    for (size_t i = 0; i < where->n_gpus && !is_kept; i++)
        is_kept = where->gpus[i].n_bookings > 0 || where->gpus[i].return_ms < TIME_NEVER;
    return is_kept;
}

/* When `count` GPUs, and CPUs and memory, are free together: a GPU that is free earlier is checked again. */
static int64_t times_together(const struct search *search, uint32_t node, uint32_t count,
    struct gpu_time times[NODE_GPUS_LIMIT], size_t *ret_found)
{
    int64_t from_ms = search->sched->now_ms;
    for (;;) {
        *ret_found = count > 0 ? gpu_times(search, node, from_ms, times) : 0;
        if (*ret_found < count)
            return TIME_NEVER;
        int64_t at = host_free(search, node, count > 0 ? times[count - 1].free_ms : from_ms);
        if (at == TIME_NEVER || at <= from_ms || count == 0 || !is_kept_later(search->sched, node))
            return at;
        from_ms = at;
    }
}

/* The earliest time for `count` GPUs of this node; they are added to `ret` when it is not NULL. */
static int64_t node_when(const struct search *search, uint32_t node, uint32_t count, struct allocation *ret)
{
    struct gpu_time times[NODE_GPUS_LIMIT];
    const struct cluster_node *where = &search->sched->cluster.nodes[node];
    if (!where->is_up || where->is_drained || !cluster_node_admits(where, search->request))
        return TIME_NEVER;
    size_t found = 0;
    int64_t at = times_together(search, node, count, times, &found);
    if (at == TIME_NEVER || ret == NULL)
        return at;
    /* Among those free by then, the ones that become free last: earlier ones are left to other jobs. */
    size_t in_time = count;
    while (in_time < found && times[in_time].free_ms <= at)
        in_time++;
    for (size_t i = in_time - count; i < in_time; i++)
        add_gpu(ret, where, times[i].gpu, search->request);
    fit_add_host(where, search->request, ret);
    return at;
}

/* Candidate nodes for `count` GPUs on one node. */
static size_t candidates(struct search *search, uint32_t count, size_t max, uint32_t *nodes)
{
    struct sched *sched = search->sched;
    const struct cluster *cluster = &sched->cluster;
    size_t n = 0;
    bool is_plain = search->request->partition == NULL && !search->request->is_exclusive &&
                    search->request->share_kind == 0; // as the index is
    if (is_plain && cluster->n_nodes > EXACT_NODES && count > 0 && count <= INDEX_TIMES) {
        sched_update_times(sched);
        return node_index_soonest(
            cluster->index, count, search->class->need.models, nodes, max, &sched->counts.index_work);
    }
    for (uint32_t i = 0; i < cluster->n_nodes && n < (max > EXACT_NODES ? max : EXACT_NODES); i++)
        if (cluster->nodes[i].n_gpus >= count && cluster_node_admits(&cluster->nodes[i], search->request))
            nodes[n++] = i;
    return n;
}

static int64_t plan_on_one(struct search *search, struct allocation *ret)
{
    uint32_t nodes[SPAN_NODES], best = 0;
    int64_t best_at = TIME_NEVER;
    size_t n = candidates(search, search->request->gpus, CANDIDATES, nodes);
    for (size_t i = 0; i < n; i++) {
        int64_t at = node_when(search, nodes[i], search->request->gpus, NULL);
        if (at >= best_at)
            continue;
        best_at = at;
        best = nodes[i];
    }
    return best_at < TIME_NEVER ? node_when(search, best, search->request->gpus, ret) : TIME_NEVER;
}

struct node_time {
    uint32_t node, count;
    int64_t at_ms;
};

static int compare_nodes(const void *a, const void *b)
{
    const struct node_time *left = a, *right = b;
    if (left->at_ms != right->at_ms)
        return left->at_ms < right->at_ms ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* Several nodes: those that will have a full part free soonest. */
static int64_t plan_on_several(struct search *search, struct allocation *ret)
{
    const struct sched_request *request = search->request;
    const struct cluster *cluster = &search->sched->cluster;
    uint32_t most = 0;
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].n_gpus > most)
            most = (uint32_t)cluster->nodes[i].n_gpus;
    if (most == 0 || request->gpus == 0)
        return TIME_NEVER;
    uint32_t part = request->nodes > 0     ? request->gpus / request->nodes
                    : request->gpus < most ? request->gpus
                                           : most;
    uint32_t rest = request->nodes > 0 ? 0 : request->gpus % part;
    size_t parts = request->nodes > 0 ? request->nodes : request->gpus / part, n;
    uint32_t *nodes = xcalloc(cluster->n_nodes + EXACT_NODES, sizeof(*nodes));
    n = candidates(search, part, parts + CANDIDATES, nodes);
    struct node_time *times = xcalloc(n + 1, sizeof(*times));
    for (size_t i = 0; i < n; i++)
        times[i] = (struct node_time){ nodes[i], part, node_when(search, nodes[i], part, NULL) };
    qsort(times, n, sizeof(*times), compare_nodes);
    size_t needed = parts + (rest > 0);
    if (rest > 0 && n >= needed) { // the rest does not wait for a whole node
        for (size_t i = parts; i < n; i++)
            times[i] =
                (struct node_time){ times[i].node, rest, node_when(search, times[i].node, rest, NULL) };
        qsort(&times[parts], n - parts, sizeof(*times), compare_nodes);
        if (times[parts].at_ms < times[parts - 1].at_ms)
            times[parts].at_ms = times[parts - 1].at_ms;
    }
    int64_t at = n >= needed ? times[needed - 1].at_ms : TIME_NEVER;
    for (size_t i = 0; at < TIME_NEVER && i < needed; i++)
        (void)node_when(search, times[i].node, times[i].count, ret);
    free(times);
    free(nodes);
    return at;
}

/* Exactly these GPUs; picks without a node are on the one node that has them soonest. */
static int64_t plan_picks(struct search *search, struct allocation *ret)
{
    const struct sched_request *request = search->request;
    const struct cluster *cluster = &search->sched->cluster;
    int64_t best_at = TIME_NEVER;
    size_t first = 0, last = request->picks[0].node != NULL ? 1 : cluster->n_nodes;
    for (; first < last; first++) {
        struct allocation tried = { 0 };
        struct gpu_time times[NODE_GPUS_LIMIT];
        int64_t at = search->sched->now_ms;
        for (size_t i = 0; i < request->n_picks && at < TIME_NEVER; i++) {
            const char *name = request->picks[i].node;
            const struct cluster_node *node =
                name != NULL ? cluster_find(cluster, name) : &cluster->nodes[first];
            int64_t free_at = TIME_NEVER;
            size_t n = node != NULL && node->is_up && !node->is_drained
                           ? gpu_times(search, node->position, search->sched->now_ms, times)
                           : 0;
            for (size_t k = 0; k < n; k++) {
                if (node->gpus[times[k].gpu].index != request->picks[i].index)
                    continue;
                free_at = times[k].free_ms;
                add_gpu(&tried, node, times[k].gpu, request);
            }
            if (free_at < TIME_NEVER)
                fit_add_host(node, request, &tried);
            at = free_at > at ? free_at : at;
        }
        for (size_t i = 0; i < tried.n_nodes && at < TIME_NEVER; i++)
            at = host_free(search, tried.nodes[i].node, at);
        if (at < best_at) {
            allocation_clear(ret);
            *ret = tried;
            best_at = at;
        } else {
            allocation_clear(&tried);
        }
    }
    return best_at;
}

/* --- marks --- */

static void note_hold(struct node_runs *node, uint32_t place)
{
    if (node->n_holds == node->holds_capacity) {
        node->holds_capacity = node->holds_capacity > 0 ? node->holds_capacity * 2 : 4;
        node->holds = xreallocarray(node->holds, node->holds_capacity, sizeof(*node->holds));
    }
    node->holds[node->n_holds++] = place;
}

/* The last of sched->holds. */
static void mark(struct sched *sched, const struct plan_hold *hold)
{
    for (size_t i = 0; i < hold->allocation.n_gpus; i++) {
        const struct alloc_gpu *held = &hold->allocation.gpus[i];
        struct cluster_gpu *gpu = &sched->cluster.nodes[held->node].gpus[held->gpu];
        gpu->hold_class = gpu->hold_from_ms == TIME_NEVER ? hold->class->number : 0;
        gpu->hold_from_ms = hold->from_ms < gpu->hold_from_ms ? hold->from_ms : gpu->hold_from_ms;
        gpu->hold_share =
            gpu->hold_share + held->share > SHARE_WHOLE ? SHARE_WHOLE : gpu->hold_share + held->share;
        gpu->hold_memory += held->memory;
    }
    for (size_t i = 0; i < hold->allocation.n_nodes; i++) {
        const struct alloc_node *held = &hold->allocation.nodes[i];
        struct cluster_node *node = &sched->cluster.nodes[held->node];
        node->hold_class = node->hold_from_ms == TIME_NEVER ? hold->class->number : 0;
        node->hold_from_ms = hold->from_ms < node->hold_from_ms ? hold->from_ms : node->hold_from_ms;
        node->hold_cpu_milli += held->cpu_milli;
        node->hold_jobs++;
        node->hold_is_exclusive |= held->is_exclusive;
        node->hold_memory += held->memory;
        note_hold(sched_node_runs(sched, held->node), (uint32_t)(sched->n_holds - 1));
    }
}

static void unmark(struct sched *sched, const struct plan_hold *hold)
{
    for (size_t i = 0; i < hold->allocation.n_gpus; i++) {
        const struct alloc_gpu *held = &hold->allocation.gpus[i];
        struct cluster_gpu *gpu = &sched->cluster.nodes[held->node].gpus[held->gpu];
        gpu->hold_class = 0;
        gpu->hold_from_ms = TIME_NEVER;
        gpu->hold_share = 0;
        gpu->hold_memory = 0;
    }
    for (size_t i = 0; i < hold->allocation.n_nodes; i++) {
        struct cluster_node *node = &sched->cluster.nodes[hold->allocation.nodes[i].node];
        node->hold_class = 0;
        node->hold_from_ms = TIME_NEVER;
        node->hold_cpu_milli = 0;
        node->hold_jobs = 0;
        node->hold_is_exclusive = false;
        node->hold_memory = 0;
        sched->nodes[node->position].n_holds = 0;
    }
}

bool sched_plan(struct sched *sched, struct queue_class *class)
{
    struct search search = { .sched = sched, .class = class, .request = &class->key.request };
    struct plan_hold hold = { .class = class };
    sched_fit_of(sched, class, search.reservations, 16, &search.fit);
    search.length_ms = class->horizon_ms;
    if (search.request->n_picks > 0)
        hold.from_ms = plan_picks(&search, &hold.allocation);
    else if (search.request->nodes <= 1)
        hold.from_ms = plan_on_one(&search, &hold.allocation);
    else
        hold.from_ms = TIME_NEVER;
    if (hold.from_ms == TIME_NEVER && search.request->n_picks == 0 && request_may_span(search.request))
        hold.from_ms = plan_on_several(&search, &hold.allocation);
    if (hold.from_ms == TIME_NEVER) {
        allocation_clear(&hold.allocation);
        return false;
    }
    hold.until_ms = hold.from_ms + search.length_ms;
    sched->holds = xreallocarray(sched->holds, sched->n_holds + 1, sizeof(hold));
    sched->holds[sched->n_holds++] = hold;
    mark(sched, &hold);
    return true;
}

void sched_plan_drop_all(struct sched *sched, struct plan_hold **ret_old, size_t *ret_n_old)
{
    for (size_t i = 0; i < sched->n_holds; i++)
        unmark(sched, &sched->holds[i]);
    *ret_old = take_ptr(sched->holds);
    *ret_n_old = sched->n_holds;
    sched->n_holds = 0;
}

static bool is_kept_alike(const struct sched *sched, const struct plan_hold *old)
{
    for (size_t i = 0; i < sched->n_holds; i++) {
        const struct plan_hold *hold = &sched->holds[i];
        const struct allocation *a = &hold->allocation, *b = &old->allocation;
        if (hold->class != old->class || hold->from_ms != old->from_ms || a->n_gpus != b->n_gpus ||
            a->n_nodes != b->n_nodes)
            continue;
        bool is_alike = true;
        for (size_t k = 0; k < a->n_gpus && is_alike; k++)
            is_alike = a->gpus[k].node == b->gpus[k].node && a->gpus[k].gpu == b->gpus[k].gpu;
        for (size_t k = 0; k < a->n_nodes && is_alike; k++)
            is_alike = a->nodes[k].node == b->nodes[k].node;
        if (is_alike)
            return true;
    }
    return false;
}

void sched_plan_compare(struct sched *sched, struct plan_hold *old, size_t n_old)
{
    for (size_t i = 0; i < n_old; i++) {
        if (is_kept_alike(sched, &old[i]))
            continue;
        for (size_t k = 0; k < old[i].allocation.n_gpus; k++)
            cluster_touch(&sched->cluster, &sched->cluster.nodes[old[i].allocation.gpus[k].node]);
        for (size_t k = 0; k < old[i].allocation.n_nodes; k++)
            cluster_touch(&sched->cluster, &sched->cluster.nodes[old[i].allocation.nodes[k].node]);
    }
    sched_plan_free(old, n_old);
}

void sched_plan_drop(struct sched *sched)
{
    struct plan_hold *old;
    size_t n_old;
    sched_plan_drop_all(sched, &old, &n_old);
    sched_plan_compare(sched, old, n_old);
}

void sched_plan_free(struct plan_hold *holds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        allocation_clear(&holds[i].allocation);
    free(holds);
}
