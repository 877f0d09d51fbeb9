/* SPDX-License-Identifier: MIT */
/*
 * Most jobs that wait at the same time were submitted by the same line of a script: their requests are equal,
 * and a request is the largest part of a waiting job. The cache is not an index of all requests, which would
 * have to be maintained when jobs leave: it has one slot per hash, which newer requests overwrite.
 */
#include "job/ask_shared.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

struct shared_ask {
    struct job_ask ask; // first: users have its address
    uint32_t users;     // atomic
};

/* Only its reference count is written here. */
static struct shared_ask *shared_of(const struct job_ask *ask)
{
    const union {
        const struct job_ask *ask;
        struct shared_ask *shared;
    } same = { .ask = ask };
    return same.shared;
}

const struct job_ask *ask_shared_new(const struct job_ask *from)
{
    struct shared_ask *shared = xcalloc(1, sizeof(*shared));
    job_ask_copy(&shared->ask, from);
    shared->users = 1;
    return &shared->ask;
}

const struct job_ask *ask_shared_hold(const struct job_ask *ask)
{
    (void)__atomic_add_fetch(&shared_of(ask)->users, 1, __ATOMIC_RELAXED);
    return ask;
}

struct record_list ask_shared_list(const struct job_ask *ask)
{
    struct shared_ask *shared = shared_of(ask_shared_hold(ask));
    return (struct record_list){ .items = &shared->ask, .count = 1 };
}

void ask_shared_drop(const struct job_ask *ask)
{
    struct shared_ask *shared = shared_of(ask);
    if (shared == NULL || __atomic_sub_fetch(&shared->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    job_ask_clear(&shared->ask);
    free(shared);
}

void ask_cache_share(struct ask_cache *cache, const struct job_ask **ask)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&job_ask_record, *ask, &bytes);
    uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a
    for (size_t i = 0; i < bytes.length; i++)
        hash = (hash ^ bytes.bytes[i]) * 0x100000001b3ULL;
    struct ask_slot *slot = &cache->slots[hash % ASK_CACHE_SLOTS];
    bool is_known = slot->ask != NULL && slot->bytes.length == bytes.length &&
                    memcmp(slot->bytes.bytes, bytes.bytes, bytes.length) == 0;
    const struct job_ask **from = is_known ? &slot->ask : ask, **to = is_known ? ask : &slot->ask;
    if (*from == *to)
        return;
    const struct job_ask *held = ask_shared_hold(*from);
    ask_shared_drop(*to);
    *to = held;
    if (is_known)
        return;
    buffer_clear(&slot->bytes);
    slot->bytes = bytes;
    bytes = (struct buffer){ 0 };
}

void ask_cache_clear(struct ask_cache *cache)
{
    for (size_t i = 0; i < ASK_CACHE_SLOTS; i++) {
        ask_shared_drop(cache->slots[i].ask);
        buffer_clear(&cache->slots[i].bytes);
    }
    *cache = (struct ask_cache){ 0 };
}
