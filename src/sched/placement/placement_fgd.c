/* SPDX-License-Identifier: MIT */
/*
 * For each requested shape, the score of every node is kept in a tournament tree: its root is the best node,
 * the lowest position on ties. Changed nodes are recorded in a ring; each shape reads the entries since its
 * last use and updates these nodes. Nodes in the same state have the same score, which a small cache of each
 * shape uses.
 *
 * When the typical shapes have changed, or a shape is new or too far behind, all nodes must be scored, in a
 * loop over those that offer enough. Each decision scores a limited number of nodes (rule.at_once); the rest
 * is left to the shape's next decisions, and keeps its old scores, or none, until then.
 *
 * Scores ignore holds and reservations: if these exclude the best node, the next best ones are tried, and
 * finally any node that fits.
 *
 * While only whole GPUs are requested, best fit, which then avoids fragmentation, is used.
 */
#include "sched/placement/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/placement/fgd.h"

#define SHAPES_MAX   256U // kept at a time
#define TRIES_MAX    64U  // nodes tried in order of score
#define KNOWN_STATES 256U // a power of two
#define NODES_FIRST  64U

struct known_state {
    uint64_t hash; // 0: nothing
    float score;
    int32_t gpu;
};

struct shape {
    struct sched_request request;
    uint64_t hash, used, epoch;
    uint64_t seen;     // position up to which the ring was read
    bool is_started;   // scores, tree and seen are valid
    int64_t walked;    // the last due node that was scored; n_nodes at the end
    float *scores;     // by position; -INFINITY: it does not fit
    int32_t *gpus;     // the GPU of the node to share, -1: any
    uint32_t *winners; // the tree's inner nodes, from 1 on
    struct known_state *known;
};

struct fgd {
    const struct fgd_rule *rule;
    struct fgd_counts counts;
    struct shape *shapes[SHAPES_MAX];
    size_t n_shapes;
    uint64_t uses;
    uint32_t capacity; // leaves of each tree, places of the ring; a power of two
    uint32_t *ring;    // touched nodes
    uint64_t touched;  // total number put into the ring
    uint64_t *last;    // for each node: `touched` after it was last put there
};

static void free_shape(struct shape *shape)
{
    request_clear(&shape->request);
    free(shape->scores);
    free(shape->gpus);
    free(shape->winners);
    free(shape->known);
    free(shape);
}

static void drop_shapes(struct fgd *fgd)
{
    for (size_t i = 0; i < fgd->n_shapes; i++)
        free_shape(fgd->shapes[i]);
    fgd->n_shapes = 0;
}

static void *open_rule(const struct fgd_rule *rule)
{
    struct fgd *fgd = xcalloc(1, sizeof(*fgd));
    fgd->rule = rule;
    fgd_counts_init(&fgd->counts);
    return fgd;
}

static void close_fgd(void *state)
{
    struct fgd *fgd = state;
    drop_shapes(fgd);
    fgd_counts_clear(&fgd->counts);
    free(fgd->ring);
    free(fgd->last);
    free(fgd);
}

static void learn(
    void *state, const struct cluster *cluster, const struct sched_request *request, double weight)
{
    struct fgd *fgd = state;
    double gpus = fgd->rule->is_by_gpus && request->gpus > 1 ? request->gpus : 1;
    fgd_counts_learn(&fgd->counts, cluster, request, gpus * weight);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 32);
}

/* --- touched nodes --- */

static void grow(struct fgd *fgd, size_t nodes)
{
    uint32_t capacity = fgd->capacity > 0 ? fgd->capacity : NODES_FIRST;
    while (capacity < nodes)
        capacity *= 2;
    drop_shapes(fgd);
    free(fgd->ring);
    free(fgd->last);
    fgd->ring = xcalloc(capacity, sizeof(*fgd->ring));
    fgd->last = xcalloc(capacity, sizeof(*fgd->last));
    fgd->capacity = capacity;
}

static void make_room(struct fgd *fgd, const struct cluster *cluster)
{
    if (cluster->n_nodes > fgd->capacity)
        grow(fgd, cluster->n_nodes);
}

static void dirty(void *state, const struct cluster *cluster, uint32_t node)
{
    struct fgd *fgd = state;
    make_room(fgd, cluster);
    fgd->ring[fgd->touched & (fgd->capacity - 1)] = node;
    fgd->last[node] = ++fgd->touched;
}

/* --- the score of one node --- */

static uint64_t hash_state(const struct fgd_node *view)
{
    uint64_t hash = mix(mix(mix(view->cpu_milli + 1ULL, view->memory), view->models), view->gpu_bytes);
    for (uint32_t i = 0; i < view->n; i++)
        hash = mix(hash, (uint64_t)view->gpu[i] << 32 | view->free[i]);
    return hash != 0 ? hash : 1;
}

/* Independent of its position in the order. */
static float score_state(
    struct fgd *fgd, struct shape *shape, const struct cluster *cluster, uint32_t position, int32_t *ret_gpu)
{
    const struct cluster_node *node = &cluster->nodes[position];
    struct fgd_node view;
    fgd_node_read(cluster, node, &view);
    /* The state alone does not show whether a GPU is allowed. */
    bool is_comparable = cluster_all_suit(cluster, &shape->request);
    uint64_t hash = is_comparable ? hash_state(&view) : 0;
    struct known_state *known = &shape->known[hash & (KNOWN_STATES - 1)];
    if (hash != 0 && known->hash == hash) {
        *ret_gpu = known->gpu;
        return known->score;
    }
    float score = fgd_score(fgd->rule, &fgd->counts.typicals, cluster, node, &view, &shape->request, ret_gpu);
    if (hash != 0)
        *known = (struct known_state){ .hash = hash, .score = score, .gpu = *ret_gpu };
    return score;
}

/* --- the tree of one shape --- */

static uint32_t winner(const struct fgd *fgd, const struct shape *shape, uint32_t at)
{
    return at >= fgd->capacity ? at - fgd->capacity : shape->winners[at];
}

static void play(const struct fgd *fgd, struct shape *shape, uint32_t at)
{
    uint32_t left = winner(fgd, shape, 2 * at), right = winner(fgd, shape, 2 * at + 1);
    shape->winners[at] = shape->scores[right] > shape->scores[left] ? right : left;
}

static void set_score(const struct fgd *fgd, struct shape *shape, uint32_t position, float score)
{
    if (shape->scores[position] == score)
        return;
    shape->scores[position] = score;
    for (uint32_t at = (fgd->capacity + position) / 2; at > 0; at /= 2)
        play(fgd, shape, at);
}

static void score_node(struct fgd *fgd, struct shape *shape, const struct cluster *cluster, uint32_t position)
{
    float score = score_state(fgd, shape, cluster, position, &shape->gpus[position]);
    set_score(fgd, shape, position, score - fgd->rule->slope * (float)position / (float)fgd->capacity);
}

static void start(struct fgd *fgd, struct shape *shape)
{
    for (uint32_t i = 0; i < fgd->capacity; i++)
        shape->scores[i] = -INFINITY;
    for (uint32_t at = fgd->capacity - 1; at > 0; at--)
        play(fgd, shape, at);
    shape->seen = fgd->touched;
    shape->walked = -1;
    shape->is_started = true;
}

/* Scores the nodes changed since; those that do not offer enough cost almost nothing. */
static uint32_t score_touched(struct fgd *fgd, struct shape *shape, const struct cluster *cluster,
    const struct node_need *need, uint32_t left)
{
    for (; shape->seen < fgd->touched && left > 0; shape->seen++) {
        uint32_t node = fgd->ring[shape->seen & (fgd->capacity - 1)];
        if (fgd->last[node] != shape->seen + 1)
            continue; // it comes again
        if (!offer_meets(node_index_offer(cluster->index, node), need)) {
            set_score(fgd, shape, node, -INFINITY);
            continue;
        }
        score_node(fgd, shape, cluster, node);
        left--;
    }
    return left;
}

/* Scores further nodes that are due. A node that does not offer enough has no score, or was changed. */
static uint32_t score_due(struct fgd *fgd, struct shape *shape, const struct cluster *cluster,
    const struct node_need *need, uint32_t left, uint64_t *work)
{
    for (; left > 0 && shape->walked < (int64_t)cluster->n_nodes; left--) {
        shape->walked = node_index_find(cluster->index, need, (uint32_t)(shape->walked + 1), work);
        if (shape->walked < 0)
            shape->walked = INT64_MAX;
        else
            score_node(fgd, shape, cluster, (uint32_t)shape->walked);
    }
    return left;
}

static void bring_up_to_date(
    struct fgd *fgd, struct shape *shape, const struct cluster *cluster, uint64_t *work)
{
    struct node_need need;
    request_need(cluster, &shape->request, &need);
    if (shape->epoch != fgd->counts.typicals.epoch) {
        shape->epoch = fgd->counts.typicals.epoch;
        shape->walked = -1;
        memset(shape->known, 0, KNOWN_STATES * sizeof(*shape->known));
    }
    if (!shape->is_started || fgd->touched - shape->seen > fgd->capacity)
        start(fgd, shape);
    uint32_t left = score_touched(fgd, shape, cluster, &need, fgd->rule->at_once);
    left = score_due(fgd, shape, cluster, &need, left, work);
    *work += fgd->rule->at_once - left;
}

/* The place of a new shape; the one unused for the longest time makes room. */
static struct shape **place_for_shape(struct fgd *fgd)
{
    if (fgd->n_shapes < SHAPES_MAX)
        return &fgd->shapes[fgd->n_shapes++];
    struct shape **oldest = &fgd->shapes[0];
    for (size_t i = 1; i < fgd->n_shapes; i++)
        if (fgd->shapes[i]->used < (*oldest)->used)
            oldest = &fgd->shapes[i];
    free_shape(*oldest);
    return oldest;
}

static struct shape *find_shape(struct fgd *fgd, const struct sched_request *request)
{
    uint64_t hash = request_hash(request);
    struct shape *shape = NULL;
    for (size_t i = 0; i < fgd->n_shapes && shape == NULL; i++)
        if (fgd->shapes[i]->hash == hash && request_equal(&fgd->shapes[i]->request, request))
            shape = fgd->shapes[i];
    if (shape == NULL) {
        struct shape **place = place_for_shape(fgd);
        *place = shape = xcalloc(1, sizeof(*shape));
        request_copy(&shape->request, request);
        shape->hash = hash;
        shape->scores = xcalloc(fgd->capacity, sizeof(*shape->scores));
        shape->gpus = xcalloc(fgd->capacity, sizeof(*shape->gpus));
        shape->winners = xcalloc(fgd->capacity, sizeof(*shape->winners));
        shape->known = xcalloc(KNOWN_STATES, sizeof(*shape->known));
    }
    shape->used = ++fgd->uses;
    return shape;
}

/* --- the choice --- */

static bool take(const struct shape *shape, uint32_t position, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *ret)
{
    const struct cluster_node *node = &cluster->nodes[position];
    int32_t gpu = shape->gpus[position];
    if (!fit_host(node, request, fit) ||
        fit_count(cluster, node, request, fit, request->gpus) < request->gpus)
        return false;
    fit_take(cluster, node, request, fit, request->gpus, gpu, ret);
    return true;
}

/* Nodes that fail the check are removed from the tree during the search. */
static bool take_best(struct fgd *fgd, struct shape *shape, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    uint32_t tried[TRIES_MAX];
    float scores[TRIES_MAX];
    size_t n = 0;
    bool is_taken = false;
    while (!is_taken && n < TRIES_MAX) {
        uint32_t best = winner(fgd, shape, 1);
        if (shape->scores[best] == -INFINITY)
            break;
        ++*work;
        is_taken = take(shape, best, cluster, request, fit, ret);
        if (is_taken)
            break;
        tried[n] = best;
        scores[n++] = shape->scores[best];
        set_score(fgd, shape, best, -INFINITY);
    }
    for (size_t i = 0; i < n; i++)
        set_score(fgd, shape, tried[i], scores[i]);
    return is_taken;
}

static bool is_plain(const struct cluster *cluster, const struct sched_request *request)
{
    return request->gpus > 0 && !request_is_shared(request) && request->cpu_milli == 0 &&
           request->memory == 0 && cluster_all_suit(cluster, request);
}

static bool place_fgd(void *state, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    struct fgd *fgd = state;
    if (cluster->n_nodes == 0)
        return false;
    fgd_counts_settle(&fgd->counts, cluster);
    if (fgd->rule->is_for_shares && fgd->counts.typicals.is_all_plain &&
        (is_plain(cluster, request) || request->gpus == 0))
        return request->gpus > 0 && placement_best_fit.place(NULL, cluster, request, fit, ret, work);
    struct node_need need;
    request_need(cluster, request, &need);
    int64_t only = node_index_find(cluster->index, &need, 0, work);
    if (only < 0)
        return false;
    /* In a full cluster there is usually one candidate: the node on which a job has just ended. */
    if (fgd->rule->is_for_shares && request->gpus > 0 &&
        node_index_find(cluster->index, &need, (uint32_t)only + 1, work) < 0)
        return placement_first_fit.place(NULL, cluster, request, fit, ret, work);
    make_room(fgd, cluster);
    struct shape *shape = find_shape(fgd, request);
    bring_up_to_date(fgd, shape, cluster, work);
    if (take_best(fgd, shape, cluster, request, fit, ret, work))
        return true;
    return request->gpus > 0 && placement_first_fit.place(NULL, cluster, request, fit, ret, work);
}

static void *open_plus(void)
{
    return open_rule(&fgd_rule_plus);
}

static void *open_plain(void)
{
    return open_rule(&fgd_rule_plain);
}

static void *open_best_fit(void)
{
    return open_rule(&fgd_rule_best_fit);
}

#define SCORED(title, opener)                                                                                \
    {                                                                                                        \
        .name = (title), .takes_cpu_jobs = true, .open = (opener), .close = close_fgd, .learn = learn,       \
        .dirty = dirty, .place = place_fgd                                                                   \
    }

const struct placement placement_fgd = SCORED("fgd", open_plus);
const struct placement placement_fgd_plain = SCORED("fgd-plain", open_plain);
const struct placement placement_best_fit_plain = SCORED("best-fit-plain", open_best_fit);
