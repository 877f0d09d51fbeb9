/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdio.h>

#include "base/memory.h"

int fixture_open(void **state, unsigned gpus)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    queue_init(&fixture->queue);
    struct cluster_node *node = cluster_set_node(&fixture->cluster, "box", 2);
    for (unsigned i = 0; i < gpus; i++) {
        char uuid[16];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        cluster_set_gpu(node, i, uuid, 24 * GIB, true);
    }
    *state = fixture;
    return 0;
}

int fixture_close(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    assert_int_equal(cluster_invariant(&fixture->cluster, &err), 0);
    for (size_t i = 0; i < 64; i++)
        gpu_grants_clear(&fixture->grants[i]);
    queue_clear(&fixture->queue);
    cluster_clear(&fixture->cluster);
    free(fixture);
    return 0;
}

void fixture_add(struct fixture *fixture, uint64_t job, int32_t priority, struct sched_request request)
{
    queue_add(&fixture->queue, &fixture->entries[job], job, 1000, priority, &request);
}

static void start(
    void *arg, struct queue_entry *entry, struct cluster_node *node, const struct record_list *grants)
{
    struct fixture *fixture = arg;
    uint64_t job = entry->job;
    queue_remove(&fixture->queue, entry);
    cluster_book(&fixture->cluster, node->name, grants);
    gpu_grants_copy(&fixture->grants[job], grants);
    fixture->started[fixture->n_started++] = job;
}

void fixture_pass(struct fixture *fixture)
{
    sched_pass(
        &fixture->queue, &fixture->cluster, &policy_priority_fifo, &placement_best_fit, start, fixture);
}

void fixture_end(struct fixture *fixture, uint64_t job)
{
    cluster_release(&fixture->cluster, "box", &fixture->grants[job]);
    gpu_grants_clear(&fixture->grants[job]);
}

uint32_t fixture_gpu(const struct fixture *fixture, uint64_t job, size_t n)
{
    assert_true(n < fixture->grants[job].count);
    return ((const struct gpu_grant *)fixture->grants[job].items)[n].index;
}

void assert_started(const struct fixture *fixture, size_t count, ...)
{
    va_list jobs;
    assert_int_equal(fixture->n_started, count);
    va_start(jobs, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(fixture->started[i], va_arg(jobs, int));
    va_end(jobs);
}
