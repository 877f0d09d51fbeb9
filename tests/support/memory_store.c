/* SPDX-License-Identifier: MIT */
#include "memory_store.h"

#include <stdlib.h>

#include "base/memory.h"

uint64_t store_key_hash(uint32_t uid, const char *key)
{
    uint64_t hash = uid + 1;
    for (; *key != '\0'; key++)
        hash = (hash ^ (uint8_t)*key) * 0x100000001b3ULL;
    return hash;
}

struct store_batch *store_batch_new(uint64_t id)
{
    struct store_batch *batch = xcalloc(1, sizeof(*batch));
    batch->id = id;
    return batch;
}

void changes_free(struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        job_event_clear(&changes[i].event);
        job_spec_free(changes[i].spec);
    }
    free(changes);
}

void state_changes_free(struct state_change *states, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(states[i].kind);
        free(states[i].key);
        buffer_clear(&states[i].value);
    }
    free(states);
}

void store_batch_free(struct store_batch *batch)
{
    if (batch == NULL)
        return;
    changes_free(batch->changes, batch->count);
    state_changes_free(batch->states, batch->n_states);
    free(batch);
}

void store_batch_add(
    struct store_batch *batch, const struct job_event *event, const struct job *job, struct spec_bytes *spec)
{
    batch->changes = xreallocarray(batch->changes, batch->count + 1, sizeof(struct change));
    struct change *change = &batch->changes[batch->count++];
    *change = (struct change){ 0 };
    record_copy(&job_event_record, &change->event, event);
    if (spec != NULL) {
        change->spec = spec_bytes_decode(spec);
        if (spec->submit_key != NULL)
            change->key_hash = store_key_hash(event->uid, spec->submit_key);
    }
}

static struct state_change *add_state(struct store_batch *batch, const char *kind, const char *key)
{
    batch->states = xreallocarray(batch->states, batch->n_states + 1, sizeof(*batch->states));
    struct state_change *state = &batch->states[batch->n_states++];
    *state = (struct state_change){ .kind = xstrdup(kind), .key = xstrdup(key) };
    return state;
}

void store_batch_put(struct store_batch *batch, const char *kind, const char *key, const struct buffer *value)
{
    buffer_append(&add_state(batch, kind, key)->value, value->bytes, value->length);
}

void store_batch_skip(struct store_batch *batch, uint64_t gap)
{
    batch->gap += gap;
}

void store_batch_remove(struct store_batch *batch, const char *kind, const char *key)
{
    add_state(batch, kind, key)->is_removal = true;
}
