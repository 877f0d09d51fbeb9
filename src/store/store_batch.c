/* SPDX-License-Identifier: MIT */
/*
 * A batch is filled on the caller's thread, which has the events and jobs, and read on the store's:
 * everything is encoded or copied when it is added, and nothing is shared afterwards.
 */
#include "store/store_batch.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/record_dense.h"
#include "store/store.h"
#include "store/store_ids.h"
#include "store/store_row.h"
#include "store/store_sqlite.h"
#include "store/store_write.h"

struct store_batch *store_batch_new(uint64_t id)
{
    struct store_batch *batch = xcalloc(1, sizeof(*batch));
    batch->id = id;
    return batch;
}

void store_batch_free(struct store_batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; i < batch->count; i++) {
        free(batch->changes[i].kind);
        free(batch->changes[i].key);
        buffer_clear(&batch->changes[i].event);
        spec_bytes_drop(batch->changes[i].spec);
        job_free(batch->changes[i].row);
    }
    free(batch->changes);
    free(batch);
}

static struct store_change *add_change(struct store_batch *batch, const struct store_change *change)
{
    if (batch->count == batch->capacity) {
        batch->capacity = batch->capacity > 0 ? batch->capacity * 2 : 4;
        batch->changes = xreallocarray(batch->changes, batch->capacity, sizeof(*batch->changes));
    }
    batch->changes[batch->count] = *change;
    return &batch->changes[batch->count++];
}

void store_batch_add(
    struct store_batch *batch, const struct job_event *event, const struct job *job, struct spec_bytes *spec)
{
    struct store_change *change = add_change(batch, &(struct store_change){
                                                        .seq = event->seq,
                                                        .job = event->job,
                                                        .attempt = event->attempt,
                                                        .type = (enum job_event_type)event->type,
                                                        .wall_ms = event->wall_ms,
                                                        .row = job != NULL ? store_row_copy(job) : NULL,
                                                    });
    record_encode_dense(&job_event_record, event, &change->event);
    change->spec = spec_bytes_hold(spec);
    if (spec != NULL && spec->submit_key != NULL)
        change->key_hash = store_key_hash(event->uid, spec->submit_key);
}

void store_batch_put(struct store_batch *batch, const char *kind, const char *key, const struct buffer *value)
{
    struct store_change *change =
        add_change(batch, &(struct store_change){ .kind = xstrdup(kind), .key = xstrdup(key) });
    buffer_append(&change->event, value->bytes, value->length);
}

void store_batch_remove(struct store_batch *batch, const char *kind, const char *key)
{
    (void)add_change(
        batch, &(struct store_change){ .kind = xstrdup(kind), .key = xstrdup(key), .is_removal = true });
}

void store_batch_skip(struct store_batch *batch, uint64_t gap)
{
    batch->gap += gap;
}

size_t store_batch_count(const struct store_batch *batch)
{
    return batch->count + (batch->gap > 0);
}

static uint64_t highest_new_job(const struct store_request *requests)
{
    uint64_t highest = 0;
    for (const struct store_request *request = requests; request != NULL; request = request->next) {
        const struct store_batch *batch = (const struct store_batch *)request;
        for (size_t i = 0; i < batch->count; i++)
            if (batch->changes[i].type == EVENT_SUBMITTED && batch->changes[i].job > highest)
                highest = batch->changes[i].job;
    }
    return highest;
}

static int run_commits(struct store *store, struct store_request *requests, struct error *err)
{
    int r = store_ids_reserve(store, highest_new_job(requests), err);
    return r < 0 ? r : store_write_batches(store, requests, err);
}

static void answer_commit(struct store *store, struct store_request *request)
{
    store->observer.on_durable(store->observer.arg, ((struct store_batch *)request)->id);
}

static void free_commit(struct store_request *request)
{
    store_batch_free((struct store_batch *)request);
}

static const struct store_request_kind commit_kind = {
    .run = run_commits, .answer = answer_commit, .free = free_commit, .is_grouped = true
};

uint64_t store_batch_of_request(const struct store_request *request)
{
    return request->kind == &commit_kind ? ((const struct store_batch *)request)->id : 0;
}

void store_commit(struct store *store, struct store_batch *batch)
{
    batch->request.kind = &commit_kind;
    store_thread_push(store, &batch->request);
}
