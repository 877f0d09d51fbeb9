/* SPDX-License-Identifier: MIT */
/*
 * mgpu-bench-ended DIR COUNT: a store in the empty directory DIR with COUNT jobs that have ended, a second
 * apart, each with all its events, for bench/ended.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/store.h"

#define BATCH_JOBS  500U
#define ENV_ENTRIES 30
#define USERS       50U
#define FIRST_UID   1000U
#define APART_MS    1000

struct maker {
    struct store *store;
    struct job_spec spec;
    uint64_t last_event, last_batch, durable;
};

static void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "mgpu-bench-ended: %s: %s\n", what, err->message);
    exit(EXIT_FAILURE);
}

static void on_durable(void *arg, uint64_t batch)
{
    ((struct maker *)arg)->durable = batch;
}

static void on_failed(void *arg, uint64_t batch, const struct error *err)
{
    die("commit", err);
}

static void apply(
    struct maker *maker, struct store_batch *batch, struct job *job, struct job_event *event, int64_t wall_ms)
{
    struct error err = { 0 };
    event->seq = ++maker->last_event;
    event->job = job->id;
    event->wall_ms = wall_ms;
    if (job_apply(job, event, &err) < 0)
        die("apply", &err);
    _cleanup_(spec_bytes_dropp) struct spec_bytes *spec =
        event->type == EVENT_SUBMITTED ? spec_bytes_new(&maker->spec) : NULL;
    store_batch_add(batch, event, job, spec);
}

static void add_job(struct maker *maker, struct store_batch *batch, uint64_t id, int64_t wall_ms)
{
    char node[] = "head", boot[] = "0b7d0f6e-3d5f-4d4b-9d1e-2f1c0a9b8c7d", log[] = "/home/user/job.log";
    struct job *job = job_new(id, &maker->spec);
    struct job_event submitted = { .type = EVENT_SUBMITTED, .uid = FIRST_UID + id % USERS, .gid = FIRST_UID };
    struct job_event allocated = {
        .type = EVENT_ALLOCATED, .attempt = 1, .token = id, .node = node, .boot_id = boot
    };
    struct job_event started = { .type = EVENT_STARTED, .attempt = 1, .log_path = log };
    struct job_event ended = { .type = EVENT_ENDED, .attempt = 1, .end = END_EXIT, .run_ms = APART_MS / 2 };
    gpu_grants_add(&allocated.gpus, 0, "GPU-1", 0, 0);
    apply(maker, batch, job, &submitted, wall_ms);
    apply(maker, batch, job, &allocated, wall_ms + 1);
    apply(maker, batch, job, &started, wall_ms + 2);
    apply(maker, batch, job, &ended, wall_ms + 2 + APART_MS / 2);
    gpu_grants_clear(&allocated.gpus);
    job_free(job);
}

static void commit(struct maker *maker, struct store_batch *batch)
{
    struct pollfd ready = { .fd = store_fd(maker->store), .events = POLLIN };
    store_commit(maker->store, batch);
    while (maker->durable < maker->last_batch) {
        (void)poll(&ready, 1, -1);
        store_dispatch(maker->store);
    }
}

int main(int argc, char **argv)
{
    struct maker maker = { 0 };
    const struct store_observer observer = {
        .arg = &maker, .on_durable = on_durable, .on_failed = on_failed
    };
    struct store_summary summary;
    struct error err = { 0 };
    if (argc != 3)
        return 2;
    uint64_t count = strtoull(argv[2], NULL, 10);
    if (store_open(argv[1], &observer, &maker.store, &summary, &err) < 0)
        die("open", &err);
    job_spec_init(&maker.spec);
    strings_add(&maker.spec.command, "true");
    maker.spec.cwd = xstrdup("/home/user");
    for (int i = 0; i < ENV_ENTRIES; i++) {
        _cleanup_free_ char *entry = xasprintf("VARIABLE_%d=some value of middling length, as paths are", i);
        strings_add(&maker.spec.env, entry);
    }
    int64_t first_ms = clock_wall_ms() - (int64_t)count * APART_MS;
    for (uint64_t id = 1; id <= count;) {
        struct store_batch *batch = store_batch_new(++maker.last_batch);
        for (unsigned i = 0; i < BATCH_JOBS && id <= count; i++, id++)
            add_job(&maker, batch, id, first_ms + (int64_t)id * APART_MS);
        commit(&maker, batch);
    }
    store_close(maker.store);
    job_spec_clear(&maker.spec);
    return EXIT_SUCCESS;
}
