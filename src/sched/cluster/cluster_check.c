/* SPDX-License-Identifier: MIT */
/*
 * Checks a request against the total hardware of nodes, regardless of allocations: which GPUs suit it and, if
 * no idle cluster could run it, a sentence with the first thing that is missing. Each check is one function
 * of a table, from named things (a node, a GPU, a model) to quantities.
 */
#include "sched/cluster/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "job/cluster_change.h"
#include "job/gpu_instance.h"
#include "job/share.h"

#define NAMES_SHOWN 8U

#define ANY_INSTANCE "mig"

static bool is_word(const char *word, const char *pattern, size_t length)
{
    return strlen(word) == length && strncasecmp(word, pattern, length) == 0;
}

/* True if `name` begins with the pattern. A "_" of the pattern is a blank of the name, too: Slurm's types of
 * GPUs have no blanks. */
static bool begins(const char *name, const char *pattern, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool is_blank = pattern[i] == '_' && name[i] == ' ';
        if (!is_blank && strncasecmp(name + i, pattern + i, 1) != 0)
            return false;
    }
    return true;
}

/* A MIG instance is requested by its whole profile, because that of another may contain it: 1g.10gb is in
 * 1g.10gb+me. */
static bool word_meets(const char *name, const char *pattern, size_t length)
{
    const char *profile = gpu_instance_profile(name);
    if (profile != NULL)
        return is_word(profile, pattern, length) || is_word(ANY_INSTANCE, pattern, length);
    for (const char *at = name; length > 0 && *at != '\0'; at++)
        if (begins(at, pattern, length))
            return true;
    return false;
}

/* "a100|h100": one of them is in `name`, whatever the case of its letters. */
static bool name_meets(const char *name, const char *pattern)
{
    while (*pattern != '\0') {
        size_t length = strcspn(pattern, "|");
        if (word_meets(name, pattern, length))
            return true;
        pattern += length + (pattern[length] == '|');
    }
    return false;
}

static bool is_allowed(const struct sched_request *request, uint32_t index)
{
    for (size_t i = 0; i < request->n_allow; i++)
        if (request->allow[i] == index)
            return true;
    return request->n_allow == 0;
}

bool cluster_gpu_suits(
    const struct cluster *cluster, const struct cluster_gpu *gpu, const struct sched_request *request)
{
    const char *model = cluster->models[gpu->model];
    bool is_named = request->model != NULL || request->n_picks > 0;
    /* A program cannot use several instances like several GPUs, so they must be named. */
    if (!is_named && request->gpus > 1 && cluster->has_instances && gpu_instance_profile(model) != NULL)
        return false;
    return (request->model == NULL || name_meets(model, request->model)) && is_allowed(request, gpu->index);
}

bool cluster_all_suit(const struct cluster *cluster, const struct sched_request *request)
{
    return request->model == NULL && request->n_allow == 0 &&
           (request->gpus <= 1 || request->n_picks > 0 || !cluster->has_instances);
}

uint64_t cluster_models(const struct cluster *cluster, const struct sched_request *request)
{
    if (request->model == NULL)
        return UINT64_MAX;
    uint64_t models = 0;
    for (size_t i = 0; i < cluster->n_models; i++)
        if (name_meets(cluster->models[i], request->model))
            models |= 1ULL << (i % 64);
    return models;
}

uint32_t cluster_count_suitable(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, uint32_t enough)
{
    uint32_t count = 0;
    for (size_t i = 0; i < node->n_gpus && count < enough; i++)
        count += node->gpus[i].is_known && (node->gpus[i].closed & DEVICE_DIVIDED) == 0 &&
                 cluster_gpu_suits(cluster, &node->gpus[i], request) &&
                 (request->gpu_mem == 0 || node->gpus[i].memory_bytes >= request->gpu_mem);
    return count;
}

bool cluster_host_suffices(const struct cluster_node *node, const struct sched_request *request)
{
    return cluster_node_admits(node, request) && node->cpu_milli >= request->cpu_milli &&
           (node->memory == 0 || node->memory >= request->memory);
}

/* How a job is divided among nodes: `most` GPUs on `n_most` of them, `least` on the others; 0: any division.
 */
struct division {
    uint32_t most, n_most, least;
};

static struct division division_of(const struct sched_request *request)
{
    uint32_t nodes = request->nodes;
    if (request->gpus_per_node > 0 || nodes == 0)
        return (struct division){ request->gpus_per_node, nodes, request->gpus_per_node };
    uint32_t part = request->gpus / nodes, rest = request->gpus % nodes;
    return (struct division){ part + (rest > 0), rest > 0 ? rest : nodes, part };
}

/* The needs of a job while nodes are examined one after another. */
struct found {
    uint32_t n_most, n_least; // nodes with this many GPUs
    uint64_t gpus;
};

static bool is_enough(
    const struct sched_request *request, const struct division *division, const struct found *found)
{
    if (request->nodes > 0)
        return found->n_least >= request->nodes && found->n_most >= division->n_most;
    return found->n_least > 0 && found->gpus >= request->gpus;
}

static void count_node(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct division *division, struct found *found)
{
    uint32_t enough = division->most > 0 ? division->most : request->gpus;
    uint32_t suitable = cluster_count_suitable(cluster, node, request, enough);
    found->n_most += suitable >= division->most;
    found->n_least += suitable >= division->least;
    found->gpus += suitable;
}

static bool could_run(const struct cluster *cluster, const struct sched_request *request)
{
    const struct division division = division_of(request);
    struct found found = { 0 };
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        if (!node->is_described && cluster_node_admits(node, request))
            return true;
        if (cluster_host_suffices(node, request))
            count_node(cluster, node, request, &division, &found);
        if (is_enough(request, &division, &found))
            return true;
    }
    return false;
}

static bool has_picks(
    const struct cluster *cluster, const struct cluster_node *node, const struct sched_request *request)
{
    for (size_t i = 0; i < request->n_picks; i++) {
        const char *name = request->picks[i].node;
        const struct cluster_node *on = name != NULL ? cluster_find(cluster, name) : node;
        const struct cluster_gpu *gpu = on != NULL ? cluster_find_index(on, request->picks[i].index) : NULL;
        bool would_do =
            on != NULL && (!on->is_described || (gpu != NULL && cluster_host_suffices(on, request) &&
                                                    gpu->memory_bytes >= request->gpu_mem &&
                                                    cluster_gpu_suits(cluster, gpu, request)));
        if (!would_do)
            return false;
    }
    return true;
}

static const char *picked_node(const struct sched_request *request)
{
    for (size_t i = 0; i < request->n_picks; i++)
        if (request->picks[i].node != NULL)
            return request->picks[i].node;
    return NULL;
}

static bool could_have_picks(const struct cluster *cluster, const struct sched_request *request)
{
    const char *name = picked_node(request);
    if (name != NULL)
        return has_picks(cluster, cluster_find(cluster, name), request);
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (has_picks(cluster, &cluster->nodes[i], request))
            return true;
    return false;
}

/* --- the sentences --- */

/* The maximum of each resource, and the node that has it. */
struct largest {
    const struct cluster_node *wide, *cpu, *memory;
    uint32_t gpus;     // GPUs of `wide`
    uint64_t all_gpus; // of the cluster
    uint64_t gpu_mem;  // of one GPU
    uint32_t suitable; // most GPUs of one node that suit
    uint64_t all_suitable;
    uint32_t nodes; // nodes that the request may use at all
};

static void find_largest(
    const struct cluster *cluster, const struct sched_request *request, struct largest *ret)
{
    *ret = (struct largest){ .nodes = 0 };
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        uint32_t known = 0;
        if (!cluster_node_admits(node, request))
            continue;
        if (ret->nodes++ == 0)
            ret->wide = ret->cpu = ret->memory = node;
        for (size_t k = 0; k < node->n_gpus; k++) {
            known += node->gpus[k].is_known;
            if (node->gpus[k].is_known && node->gpus[k].memory_bytes > ret->gpu_mem)
                ret->gpu_mem = node->gpus[k].memory_bytes;
        }
        uint32_t suitable = cluster_count_suitable(cluster, node, request, UINT32_MAX);
        ret->suitable = suitable > ret->suitable ? suitable : ret->suitable;
        ret->all_suitable += suitable;
        ret->all_gpus += known;
        if (known > ret->gpus) {
            ret->gpus = known;
            ret->wide = node;
        }
        ret->cpu = node->cpu_milli > ret->cpu->cpu_milli ? node : ret->cpu;
        ret->memory = node->memory > ret->memory->memory ? node : ret->memory;
    }
}

/* 0: not this. */
typedef int lack_fn(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err);

/* The first names that fit into a hint; the caller frees it. */
static char *join_names(const char *const *names)
{
    struct buffer out = { 0 };
    size_t i = 0;
    for (; names[i] != NULL && i < NAMES_SHOWN; i++)
        buffer_printf(&out, "%s%s", i > 0 ? ", " : "", names[i]);
    if (names[i] != NULL)
        buffer_append_text(&out, " and more (mgpu nodes)");
    return i > 0 ? buffer_take(&out) : xstrdup("none");
}

static int lack_node(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    for (size_t i = 0; i < request->n_picks; i++) {
        const char *name = request->picks[i].node;
        const struct cluster_node *node = name != NULL ? cluster_find(cluster, name) : NULL;
        if (name == NULL || (node != NULL && !node->is_gone))
            continue;
        _cleanup_free_ const char **names = xcalloc(cluster->n_nodes + 1, sizeof(*names));
        size_t count = 0;
        for (size_t k = 0; k < cluster->n_nodes; k++)
            if (!cluster->nodes[k].is_gone)
                names[count++] = cluster->nodes[k].name;
        _cleanup_free_ char *known = join_names(names);
        const char *near = text_nearest(name, names);
        (void)error_set(err, -ERANGE, "no node is named \"%s\"", name);
        return near != NULL ? error_hint(err, "did you mean %s? The nodes are: %s", near, known)
                            : error_hint(err, "the nodes are: %s", known);
    }
    return 0;
}

static int lack_id(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    const char *name = picked_node(request);
    const struct cluster_node *alone = name != NULL ? cluster_find(cluster, name) : largest->wide;
    for (size_t i = 0; i < request->n_picks; i++) {
        const struct gpu_pick *pick = &request->picks[i];
        const struct cluster_node *node = pick->node != NULL ? cluster_find(cluster, pick->node) : alone;
        uint32_t known = 0;
        if (!node->is_described || cluster_find_index(node, pick->index) != NULL)
            continue;
        for (size_t k = 0; k < node->n_gpus; k++)
            known += node->gpus[k].is_known;
        (void)error_set(
            err, -ERANGE, "GPU %u does not exist on %s, which has %u", pick->index, node->name, known);
        return error_hint(err, "see the GPUs and their numbers: mgpu gpus");
    }
    return 0;
}

static int lack_model(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    if (request->gpus == 0 || largest->gpus == 0 || cluster_models(cluster, request) != 0)
        return 0;
    char names[160] = "";
    size_t length = 0;
    for (size_t i = 1; i < cluster->n_models && length < sizeof(names); i++)
        length += (size_t)snprintf(
            names + length, sizeof(names) - length, "%s%s", i > 1 ? ", " : "", cluster->models[i]);
    (void)error_set(err, -ERANGE, "no GPU has model \"%s\"; available: %s", request->model,
        names[0] != '\0' ? names : "only GPUs of unknown model");
    return error_hint(err, "request one of these, or omit the model");
}

static int lack_count(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    uint32_t each = division_of(request).most;
    const char *plural = request->gpus == 1 ? "" : "s";
    if (each <= largest->gpus && request->gpus <= largest->all_gpus)
        return 0;
    if (each > largest->gpus && request->nodes > 1)
        (void)error_set(err, -ERANGE, "no node can run it: requested %u GPUs on each of %u nodes; %s has %u",
            each, request->nodes, largest->wide->name, largest->gpus);
    else if (largest->nodes == 1 || each > largest->gpus)
        (void)error_set(err, -ERANGE, "no node can run it: requested %u GPU%s; %s has %u", request->gpus,
            plural, largest->wide->name, largest->gpus);
    else
        (void)error_set(err, -ERANGE,
            "no node can run it: requested %u GPU%s; all %u nodes together have %" PRIu64
            ", the largest, %s, has %u",
            request->gpus, plural, largest->nodes, largest->all_gpus, largest->wide->name, largest->gpus);
    if (largest->gpus == 0)
        return error_hint(err, "no GPU was detected; use -g 0 for a job without a GPU, or run: mgpu doctor");
    if (largest->nodes > 1 && request->gpus <= largest->all_gpus)
        return error_hint(err, "request at most %u GPUs per node, or -N %u", largest->gpus,
            (request->gpus + largest->gpus - 1) / largest->gpus);
    return error_hint(err, "request at most %" PRIu64 " GPUs; list them with: mgpu gpus",
        request->nodes == 1 ? largest->gpus : largest->all_gpus);
}

static int lack_gpu_memory(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    struct sched_request anything = *request;
    uint64_t all = 0;
    anything.gpu_mem = 0;
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (cluster_node_admits(&cluster->nodes[i], request))
            all += cluster_count_suitable(cluster, &cluster->nodes[i], &anything, UINT32_MAX);
    if (request->gpu_mem == 0 || all == largest->all_suitable)
        return 0;
    char asked[32], biggest[32];
    format_size(request->gpu_mem, asked, sizeof(asked));
    format_size(largest->gpu_mem, biggest, sizeof(biggest));
    (void)error_set(err, -ERANGE, "no node has %u GPU%s with %s of memory; the largest has %s", request->gpus,
        request->gpus == 1 ? "" : "s", asked, biggest);
    return largest->suitable > 0
               ? error_hint(err, "request at most %u GPU%s with that memory; list GPUs with: mgpu gpus",
                     largest->suitable, largest->suitable == 1 ? "" : "s")
               : error_hint(err, "request at most %s; list GPUs and their memory with: mgpu gpus", biggest);
}

static int lack_suitable(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    uint32_t each = division_of(request).most;
    if (request->n_picks > 0 || (largest->suitable >= each && largest->all_suitable >= request->gpus))
        return 0;
    if (request->n_allow > 0)
        (void)error_set(err, -ERANGE,
            "requested %u GPU%s; one node has at most %u of those allowed, all nodes %" PRIu64, request->gpus,
            request->gpus == 1 ? "" : "s", largest->suitable, largest->all_suitable);
    else if (request->model == NULL && cluster->has_instances) {
        (void)error_set(err, -ERANGE,
            "requested %u GPUs; one node has at most %u that are not MIG instances, all nodes %" PRIu64,
            request->gpus, largest->suitable, largest->all_suitable);
        return error_hint(err, "for several MIG instances, name their profile, as in -g 1g.18gb:2");
    } else
        (void)error_set(err, -ERANGE, "requested %u GPU%s (%s); one node has at most %u, all nodes %" PRIu64,
            request->gpus, request->gpus == 1 ? "" : "s", request->model != NULL ? request->model : "any",
            largest->suitable, largest->all_suitable);
    return error_hint(err, "request at most %" PRIu64 "%s",
        request->nodes == 1 ? largest->suitable : largest->all_suitable,
        request->n_allow > 0 ? ", or allow more GPUs" : "");
}

static int lack_cpus(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    if (request->cpu_milli <= largest->cpu->cpu_milli)
        return 0;
    (void)error_set(err, -ERANGE, "no node can run it: requested %g CPUs; %s has %g",
        request->cpu_milli / 1000.0, largest->cpu->name, largest->cpu->cpu_milli / 1000.0);
    return error_hint(err, "request at most %g CPUs", largest->cpu->cpu_milli / 1000.0);
}

static int lack_memory(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (cluster_node_admits(&cluster->nodes[i], request) &&
            (cluster->nodes[i].memory == 0 || cluster->nodes[i].memory >= request->memory))
            return 0;
    char asked[32], most[32];
    format_size(request->memory, asked, sizeof(asked));
    format_size(largest->memory->memory, most, sizeof(most));
    (void)error_set(err, -ERANGE, "no node can run it: requested %s of memory; %s has %s", asked,
        largest->memory->name, most);
    return error_hint(err, "request at most %s", most);
}

static int lack_nodes(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    if (request->nodes <= largest->nodes)
        return 0;
    (void)error_set(err, -ERANGE, "%s is too small: requested %u nodes; there %s %u",
        request->partition != NULL ? "it" : "the cluster", request->nodes, largest->nodes == 1 ? "is" : "are",
        largest->nodes);
    return error_hint(err, "request at most -N %u", largest->nodes);
}

/* Some nodes have GPUs for their part, but too few. */
static int lack_division(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    const struct division division = division_of(request);
    struct found found = { 0 };
    if (request->nodes < 2 || request->n_picks > 0)
        return 0;
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (cluster_node_admits(&cluster->nodes[i], request))
            count_node(cluster, &cluster->nodes[i], request, &division, &found);
    if (is_enough(request, &division, &found))
        return 0;
    bool is_even = division.n_most == request->nodes, lacks_most = found.n_most < division.n_most;
    uint32_t have = lacks_most ? found.n_most : found.n_least;
    char asked[96];
    if (is_even)
        (void)snprintf(asked, sizeof(asked), "%u GPUs on each of %u nodes", division.most, request->nodes);
    else
        (void)snprintf(asked, sizeof(asked), "%u GPUs on %u and %u on %u of %u nodes", division.most,
            division.n_most, division.least, request->nodes - division.n_most, request->nodes);
    (void)error_set(err, -ERANGE,
        "no %u nodes can run it: requested %s; only %u of %u nodes ha%s %u that qualify", request->nodes,
        asked, have, largest->nodes, have == 1 ? "s" : "ve", lacks_most ? division.most : division.least);
    return error_hint(err, "request fewer GPUs, or omit -N to divide them in any way");
}

/* Each single demand is met somewhere, but not all at once. */
static int lack_together(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    char gpus[160], memory[32];
    struct buffer text = { 0 };
    request_text(request, gpus, sizeof(gpus));
    buffer_append_text(&text, gpus);
    if (request->cpu_milli > 0 && request->gpus > 0)
        buffer_printf(&text, ", %g CPUs", request->cpu_milli / 1000.0);
    format_size(request->memory, memory, sizeof(memory));
    if (request->memory > 0)
        buffer_printf(&text, ", %s of memory", memory);
    _cleanup_free_ char *all = buffer_take(&text);
    (void)error_set(err, -ERANGE, "no node has all requested resources: %s", all);
    return error_hint(err, "request fewer CPUs, less memory or fewer GPUs per node; see: mgpu gpus");
}

/* A named GPU is on a node outside of the partition, or of the lists. */
static int lack_member(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    for (size_t i = 0; i < request->n_picks; i++) {
        const char *name = request->picks[i].node;
        if (name == NULL || cluster_node_admits(cluster_find(cluster, name), request))
            continue;
        return error_set(err, -ERANGE,
            request->partition != NULL ? "node %s does not belong to it"
                                       : "node %s is not one of the listed ones",
            name);
    }
    return 0;
}

/* True if nodes are available, but none enforces shares as requested. */
static bool lacks_share_kind(
    const struct cluster *cluster, const struct sched_request *request, const struct largest *largest)
{
    struct sched_request any = *request;
    bool is_admitted = false;
    any.share_kind = SHARE_NONE;
    for (size_t i = 0; i < cluster->n_nodes; i++)
        is_admitted |= cluster_node_admits(&cluster->nodes[i], &any);
    return largest->nodes == 0 && request->share_kind != SHARE_NONE && is_admitted;
}

static int lack_share(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    if (!lacks_share_kind(cluster, request, largest))
        return 0;
    (void)error_set(err, -ERANGE, "no node can enforce shares of GPUs by %s",
        share_kind_name((enum share_kind)request->share_kind));
    return error_hint(err,
        "--share auto uses the strongest kind of each node; mgpu doctor shows why this one "
        "is missing");
}

/* The first name of the list that no node has; NULL: none. The caller frees it. */
static char *find_stranger(const struct cluster *cluster, const char *list)
{
    for (const char *at = list; at != NULL && *at != '\0'; at += at[strcspn(at, ",")] == ',') {
        size_t length = strcspn(at, ",");
        _cleanup_free_ char *name = xstrndup(at, length);
        const struct cluster_node *node = cluster_find(cluster, name);
        if (length > 0 && (node == NULL || node->is_gone))
            return take_ptr(name);
        at += length;
    }
    return NULL;
}

/* Its lists exclude every node. */
static int lack_any(const struct cluster *cluster, const struct sched_request *request,
    const struct largest *largest, struct error *err)
{
    _cleanup_free_ char *stranger = find_stranger(cluster, request->nodelist);
    if (largest->nodes > 0)
        return 0;
    if (stranger != NULL)
        (void)error_set(err, -ERANGE, "there is no node '%.60s'", stranger);
    else if (request->nodelist != NULL && request->exclude != NULL)
        (void)error_set(err, -ERANGE, "nodelist %.60s without exclude %.60s leaves no node",
            request->nodelist, request->exclude);
    else
        (void)error_set(err, -ERANGE, "%s %.60s leaves no node",
            request->nodelist != NULL ? "nodelist" : "exclude",
            request->nodelist != NULL ? request->nodelist : request->exclude);
    return error_hint(err, "list the nodes with: mgpu nodes");
}

static lack_fn *const lacks[] = { lack_share, lack_any, lack_node, lack_member, lack_id, lack_model,
    lack_nodes, lack_count, lack_gpu_memory, lack_suitable, lack_division, lack_cpus, lack_memory,
    lack_together };

int cluster_check(const struct cluster *cluster, const struct sched_request *request, struct error *err)
{
    bool is_possible =
        request->n_picks > 0 ? could_have_picks(cluster, request) : could_run(cluster, request);
    if (cluster->n_nodes == 0 || is_possible)
        return 0;
    /* A node that has not reported yet may have anything. */
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (!cluster->nodes[i].is_described && cluster_node_admits(&cluster->nodes[i], request))
            return 0;
    struct largest largest;
    find_largest(cluster, request, &largest);
    if (largest.nodes == 0 && request->nodelist == NULL && request->exclude == NULL &&
        !lacks_share_kind(cluster, request, &largest))
        return 0; // the nodes of its partition have not joined yet
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(lacks) / sizeof(lacks[0]); i++)
        rc = lacks[i](cluster, request, &largest, err);
    if (rc < 0)
        rc = error_recode(err, -EBADSLT);
    return rc < 0 && request->partition != NULL ? error_wrap(err, "partition %.60s", request->partition) : rc;
}
