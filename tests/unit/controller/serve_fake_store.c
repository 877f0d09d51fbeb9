/* SPDX-License-Identifier: MIT */
/* The store that the API sees in its tests. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "serve_later.h"
#include "store/store_ended.h"

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

/* 0: there is none. */
static uint64_t id_after(uint64_t from, bool is_up)
{
    uint64_t found = 0;
    for (size_t i = 0; i < current->core.n_jobs + current->n_rows; i++) {
        const struct job *job =
            i < current->core.n_jobs ? current->core.jobs[i] : current->rows[i - current->core.n_jobs];
        if (job == NULL || (is_up ? job->id <= from : job->id >= from))
            continue;
        if (found == 0 || (is_up ? job->id < found : job->id > found))
            found = job->id;
    }
    return found;
}

/* Of any user and name, two at a time. */
static void call_ids(struct later *later)
{
    void (*on_ids)(void *, const uint64_t *, size_t, uint64_t) =
        (void (*)(void *, const uint64_t *, size_t, uint64_t))later->callback;
    uint64_t ids[2], id = later->number;
    size_t count = 0;
    while (count < 2 && count < later->limit && (id = id_after(id, later->second != 0)) != 0)
        ids[count++] = id;
    on_ids(later->arg, ids, count, id);
}

void store_fetch_ids(struct store *store, const struct store_ids_query *query,
    void (*on_ids)(void *arg, const uint64_t *ids, size_t count, uint64_t next), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_ids;
    later->callback = (void (*)(void))on_ids;
    later->arg = arg;
    later->number = query->from;
    later->second = query->order == STORE_OLDEST_FIRST;
    later->limit = query->most;
}

#define PAGE_MAX 256U

/* The jobs of the core that are done, each after 2 s of GPU time of which half was used. */
static void call_ended(struct later *later)
{
    void (*on_page)(void *, const struct ended_row *, size_t, const struct ended_place *) =
        (void (*)(void *, const struct ended_row *, size_t, const struct ended_place *))later->callback;
    struct ended_row rows[PAGE_MAX];
    struct ended_place next = { 0 };
    size_t count = 0, i = current->core.n_jobs;
    for (; i > 0 && count < later->limit && count < PAGE_MAX; i--) {
        struct job *job = current->core.jobs[i - 1];
        if (job == NULL || job->state != JOB_DONE || job->id >= later->number)
            continue;
        rows[count++] = (struct ended_row){ job, 2000, 2000, 1000 };
        next.job = job->id;
    }
    on_page(later->arg, rows, count, i > 0 ? &next : NULL);
}

void store_fetch_ended(struct store *store, const struct ended_filter *filter,
    const struct ended_place *after, size_t limit,
    void (*on_page)(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next),
    void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_ended;
    later->callback = (void (*)(void))on_page;
    later->arg = arg;
    later->number = after != NULL ? after->job : UINT64_MAX;
    later->limit = limit;
    current->ended_pages++;
    current->ended_uid = filter->has_user ? filter->uid : UINT32_MAX;
    current->ended_outcomes = filter->outcomes;
    current->ended_since_ms = filter->since_ms;
}

/* The second holds more than the first; nobody measured the first. */
static void call_sums(struct later *later)
{
    void (*on_sums)(void *, const struct ended_sum *, size_t, bool) =
        (void (*)(void *, const struct ended_sum *, size_t, bool))later->callback;
    char node[] = "box";
    const struct ended_sum sums[] = {
        { .number = 7, .node = node, .jobs = 1, .held_ms = 1000 },
        { .number = 8,
            .node = node,
            .jobs = 2,
            .held_ms = 9000,
            .measured_ms = 4000,
            .used_ms = 3000,
            .has_waits = true,
            .wait_median_ms = 5,
            .wait_p95_ms = 6 },
    };
    on_sums(later->arg, sums, 2, current->is_sum_cut);
}

void store_sum_ended(struct store *store, const struct ended_filter *filter, enum ended_by by,
    void (*on_sums)(void *arg, const struct ended_sum *sums, size_t count, bool is_cut), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_sums;
    later->callback = (void (*)(void))on_sums;
    later->arg = arg;
}

static void call_spec(struct later *later)
{
    void (*on_spec)(void *, uint64_t, struct spec_bytes *) =
        (void (*)(void *, uint64_t, struct spec_bytes *))later->callback;
    _cleanup_(job_spec_clear) struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "sleep");
    strings_add(&spec.command, "1");
    strings_add(&spec.env, "SECRET=treasure");
    spec.cwd = xstrdup("/home/someone");
    on_spec(later->arg, later->number, spec_bytes_new(&spec));
}

void store_fetch_spec(struct store *store, uint64_t job,
    void (*on_spec)(void *arg, uint64_t job, struct spec_bytes *spec), void *arg)
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
    current->pages--;
    on_events(later->arg, page, count);
}

void store_fetch_events(struct store *store, uint64_t after, uint64_t job, size_t limit,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    current->pages++;
    if (current->pages > current->pages_most)
        current->pages_most = current->pages;
    later->call = call_events;
    later->callback = (void (*)(void))on_events;
    later->arg = arg;
    later->number = after;
    later->second = job;
    later->limit = limit;
}

void store_fetch_steps(struct store *store, uint64_t job,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg)
{
    store_fetch_events(store, 0, job, SIZE_MAX, on_events, arg);
}

static void call_added(struct later *later)
{
    void (*on_added)(void *, uint64_t, int) = (void (*)(void *, uint64_t, int))later->callback;
    on_added(later->arg, 7, 0);
}

void store_add_token(struct store *store, const struct store_token *token, const uint8_t hash[32],
    void (*on_added)(void *arg, uint64_t id, int result), void *arg)
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

static void call_tokens(struct later *later)
{
    void (*on_tokens)(void *, const struct store_token *, size_t) =
        (void (*)(void *, const struct store_token *, size_t))later->callback;
    char name[] = "ci";
    struct store_token token = current->token;
    token.name = name;
    bool is_seen = current->has_token && (later->number == UINT64_MAX || later->number == token.uid);
    on_tokens(later->arg, &token, is_seen ? 1 : 0);
}

void store_list_tokens(struct store *store, int64_t uid, int64_t now_ms, size_t limit,
    void (*on_tokens)(void *arg, const struct store_token *tokens, size_t count), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_tokens;
    later->callback = (void (*)(void))on_tokens;
    later->arg = arg;
    later->number = (uint64_t)uid;
}

static void call_revoked(struct later *later)
{
    void (*on_revoked)(void *, uint64_t, int) = (void (*)(void *, uint64_t, int))later->callback;
    bool is_it = current->has_token && later->number == current->token.id &&
                 (later->second == UINT64_MAX || later->second == current->token.uid);
    if (is_it && !current->is_store_full)
        current->has_token = false;
    on_revoked(later->arg, later->number, !is_it ? -ENOENT : current->is_store_full ? -ENOSPC : 0);
}

void store_revoke_token(struct store *store, uint64_t id, int64_t uid,
    void (*on_revoked)(void *arg, uint64_t id, int result), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_revoked;
    later->callback = (void (*)(void))on_revoked;
    later->arg = arg;
    later->number = id;
    later->second = (uint64_t)uid;
}

bool store_lacks_inodes(const struct store *store)
{
    return false;
}

bool store_is_full(struct store *store)
{
    return current->is_store_full;
}
