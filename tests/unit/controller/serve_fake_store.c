/* SPDX-License-Identifier: MIT */
/* The store that the API sees in its tests. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve_later.h"

static void call_job(struct later *later)
{
    void (*on_job)(void *, uint64_t, struct job *) =
        (void (*)(void *, uint64_t, struct job *))later->callback;
    for (size_t i = 0; i < current->n_rows; i++) {
        if (current->rows[i] == NULL || current->rows[i]->id != later->number)
            continue;
        struct job_spec spec;
        job_spec_init(&spec);
        strings_add(&spec.command, "old");
        struct job *row = job_new(later->number, &spec);
        job_spec_clear(&spec);
        row->uid = current->rows[i]->uid;
        row->state = JOB_DONE;
        row->end = END_EXIT;
        row->ended_ms = row->submitted_ms = 1;
        on_job(later->arg, later->number, row);
        return;
    }
    on_job(later->arg, later->number, NULL);
}

void store_fetch_job(
    struct store *store, uint64_t job, void (*on_job)(void *arg, uint64_t job, struct job *row), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_job;
    later->callback = (void (*)(void))on_job;
    later->arg = arg;
    later->number = job;
}

static void call_spec(struct later *later)
{
    void (*on_spec)(void *, uint64_t, struct job_spec *) =
        (void (*)(void *, uint64_t, struct job_spec *))later->callback;
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    strings_add(&spec->command, "sleep");
    strings_add(&spec->command, "1");
    strings_add(&spec->env, "SECRET=treasure");
    spec->cwd = xstrdup("/home/someone");
    on_spec(later->arg, later->number, spec);
}

void store_fetch_spec(struct store *store, uint64_t job,
    void (*on_spec)(void *arg, uint64_t job, struct job_spec *spec), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_spec;
    later->callback = (void (*)(void))on_spec;
    later->arg = arg;
    later->number = job;
}

static void call_events(struct later *later)
{
    void (*on_events)(void *, const struct job_event *, size_t) =
        (void (*)(void *, const struct job_event *, size_t))later->callback;
    struct job_event page[512];
    size_t count = 0;
    for (size_t i = 0; i < current->n_events && count < later->limit && count < 512; i++) {
        const struct job_event *event = &current->events[i];
        if (event->seq > later->number && (later->second == 0 || later->second == event->job))
            page[count++] = *event;
    }
    on_events(later->arg, page, count);
}

void store_fetch_events(struct store *store, uint64_t after, uint64_t job, size_t limit,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_events;
    later->callback = (void (*)(void))on_events;
    later->arg = arg;
    later->number = after;
    later->second = job;
    later->limit = limit;
}

static void call_added(struct later *later)
{
    void (*on_added)(void *, uint64_t) = (void (*)(void *, uint64_t))later->callback;
    on_added(later->arg, 7);
}

void store_add_token(struct store *store, const struct store_token *token, const uint8_t hash[32],
    void (*on_added)(void *arg, uint64_t id), void *arg)
{
    current->token = *token;
    current->token.name = NULL;
    current->has_token = true;
    memcpy(current->token_hash, hash, 32);
    struct later *later = later_add(LATER_CALL);
    later->call = call_added;
    later->callback = (void (*)(void))on_added;
    later->arg = arg;
}

static void call_token(struct later *later)
{
    void (*on_token)(void *, const struct store_token *) =
        (void (*)(void *, const struct store_token *))later->callback;
    bool is_it = current->has_token && memcmp(current->token_hash, later->hash, 32) == 0;
    on_token(later->arg, is_it ? &current->token : NULL);
}

void store_find_token(struct store *store, const uint8_t hash[32], int64_t now_ms,
    void (*on_token)(void *arg, const struct store_token *token), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_token;
    later->callback = (void (*)(void))on_token;
    later->arg = arg;
    memcpy(later->hash, hash, 32);
}

bool store_is_full(struct store *store)
{
    return current->is_store_full;
}
