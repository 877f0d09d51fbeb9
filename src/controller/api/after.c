/* SPDX-License-Identifier: MIT */
/* Read one after the other, because there are rarely any. A job that is not in the store is omitted, and the
 * core reports it. */
#include "controller/api/after.h"

#include <stdlib.h>

#include "base/memory.h"
#include "job/ask.h"

struct settling {
    struct request *request;
    void *subject;
    void (*on_resolved)(struct request *request, void *subject, const struct core_facts *facts);
    void (*drop)(void *subject);
    struct ask_after *named;
    size_t count, at;
    struct core_facts facts;
};

static void fetch_next(struct settling *settling);

static void on_row(void *arg, uint64_t id, struct job *row)
{
    struct settling *settling = arg;
    if (row != NULL && row->state == JOB_DONE)
        settling->facts.items[settling->facts.count++] = (struct core_fact){ .job = id,
            .is_ok = row->end == END_EXIT && row->exit_code == 0,
            .began_ms = row->started_ms != 0 ? row->started_ms : row->ended_ms };
    job_free(row);
    settling->at++;
    fetch_next(settling);
}

static void finish(struct settling *settling)
{
    if (request_is_over(settling->request))
        settling->drop(settling->subject);
    else
        settling->on_resolved(settling->request, settling->subject, &settling->facts);
    request_unref(settling->request);
    free(settling->facts.items);
    free(settling->named);
    free(settling);
}

static void fetch_next(struct settling *settling)
{
    const struct controller *controller = settling->request->serve->controller;
    while (settling->at < settling->count &&
           core_job(controller->core, settling->named[settling->at].job) != NULL)
        settling->at++;
    if (settling->at < settling->count && !request_is_over(settling->request))
        store_fetch_job(controller->store, settling->named[settling->at].job, on_row, settling);
    else
        finish(settling);
}

void after_resolve(struct request *request, const struct job_ask *ask, void *subject,
    void (*on_resolved)(struct request *request, void *subject, const struct core_facts *facts),
    void (*drop)(void *subject))
{
    struct settling *settling = xcalloc(1, sizeof(*settling));
    *settling =
        (struct settling){ .request = request, .subject = subject, .on_resolved = on_resolved, .drop = drop };
    if (ask->after != NULL && parse_after(ask->after, &settling->named, &settling->count, NULL) < 0)
        settling->count = 0; // it was validated
    settling->facts.items = xcalloc(settling->count + 1, sizeof(struct core_fact));
    request_ref(request);
    fetch_next(settling);
}
