/* SPDX-License-Identifier: MIT */
/*
 * Classes stand in a binary heap by the policy. The top class's next job is placed, or, when it does not fit,
 * claims what it waits for: a claimed GPU goes to no later job, so a wide job gathers its GPUs and cannot
 * starve, while jobs that want other GPUs pass it. A job that neither fits nor finds anything more to claim
 * ends its class's part in the pass, since the rest of the class asks for the same.
 */
#include "sched/pass.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

static bool priority_is_before(const struct queue_class *a, const struct queue_class *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->cursor->job < b->cursor->job;
}

const struct policy policy_priority_fifo = { .name = "priority-fifo", .is_before = priority_is_before };

struct heap {
    struct queue_class **classes;
    size_t count;
    const struct policy *policy;
};

static void sift_down(struct heap *heap, size_t at)
{
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < heap->count && heap->policy->is_before(heap->classes[child], heap->classes[best]))
                best = child;
        if (best == at)
            return;
        struct queue_class *swapped = heap->classes[at];
        heap->classes[at] = heap->classes[best];
        heap->classes[best] = swapped;
        at = best;
    }
}

static void heap_fill(struct heap *heap, const struct queue *queue)
{
    heap->classes = xcalloc(queue->n_classes, sizeof(struct queue_class *));
    for (size_t i = 0; i < queue->n_buckets; i++) {
        for (struct queue_class *class = queue->buckets[i]; class != NULL; class = class->next) {
            class->cursor = class->first;
            heap->classes[heap->count++] = class;
        }
    }
    for (size_t i = heap->count / 2; i-- > 0;)
        sift_down(heap, i);
}

/* The top class has no more jobs for this pass. */
static void heap_drop_top(struct heap *heap)
{
    heap->classes[0] = heap->classes[--heap->count];
    sift_down(heap, 0);
}

static void drop_claims(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n_nodes; i++)
        for (size_t k = 0; k < cluster->nodes[i].n_gpus; k++)
            cluster->nodes[i].gpus[k].is_claimed = false;
}

/* Something could still be given to somebody. */
static bool has_room(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        if (!node->is_up)
            continue;
        if (node->cpu_jobs < node->cpus)
            return true;
        for (size_t k = 0; k < node->n_gpus; k++)
            if (node->gpus[k].is_present && !node->gpus[k].is_exclusive && !node->gpus[k].is_claimed)
                return true;
    }
    return false;
}

void sched_pass(struct queue *queue, struct cluster *cluster, const struct policy *policy,
    const struct placement *placement,
    void (*start)(
        void *arg, struct queue_entry *entry, struct cluster_node *node, const struct record_list *grants),
    void *arg)
{
    if (queue->length == 0 || !has_room(cluster))
        return;
    drop_claims(cluster);
    struct heap heap = { .policy = policy };
    heap_fill(&heap, queue);
    while (heap.count > 0 && has_room(cluster)) {
        struct queue_class *class = heap.classes[0];
        struct queue_entry *entry = class->cursor, *next = entry->after;
        struct cluster_node *node = NULL;
        struct record_list grants = { 0 };
        bool is_last = next == NULL;
        if (placement->place(cluster, &class->request, &node, &grants)) {
            start(arg, entry, node, &grants); // an emptied class is freed here
            gpu_grants_clear(&grants);
        } else if (placement_claim(cluster, &class->request) == 0) {
            is_last = true;
        }
        if (is_last) {
            heap_drop_top(&heap);
        } else {
            class->cursor = next;
            sift_down(&heap, 0);
        }
    }
    free(heap.classes);
    drop_claims(cluster);
}

const char *sched_explain(
    const struct cluster *cluster, const struct sched_request *request, char *text, size_t size)
{
    struct error err = { 0 };
    if (cluster_check(cluster, request, &err) < 0) {
        (void)snprintf(text, size, "%s", err.message);
        return "never_fits";
    }
    size_t up = 0, empty = 0, present = 0, open = 0;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        up += node->is_up;
        for (size_t k = 0; node->is_up && k < node->n_gpus; k++) {
            present += node->gpus[k].is_present;
            empty += node->gpus[k].is_present && cluster_gpu_is_empty(&node->gpus[k]);
            open += cluster_gpu_fits(&node->gpus[k], request);
        }
    }
    struct cluster_node *node = NULL;
    struct record_list grants = { 0 };
    if (up == 0) {
        (void)snprintf(text, size, "no node is connected");
        return "node_down";
    }
    if (placement_best_fit.place(cluster, request, &node, &grants)) {
        gpu_grants_clear(&grants);
        (void)snprintf(text, size, "jobs before it wait for the same GPUs");
        return "priority";
    }
    if (request->gpus == 0) {
        (void)snprintf(text, size, "every CPU has a job");
        return "resources";
    }
    if (request->gpu_mem > 0) {
        (void)snprintf(text, size, "%u GPU%s with enough free memory asked, %zu now", request->gpus,
            request->gpus == 1 ? "" : "s", open);
        return "gpu_memory";
    }
    if (request->n_ids > 0)
        (void)snprintf(text, size, "a GPU it names is in use");
    else
        (void)snprintf(text, size, "%u GPU%s asked, %zu of %zu free", request->gpus,
            request->gpus == 1 ? "" : "s", empty, present);
    return "resources";
}
