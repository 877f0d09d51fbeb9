/* SPDX-License-Identifier: MIT */
/* The core has the elements of arrays that have not ended. For older arrays, the array's events show which
 * job each element became. */
#include "controller/api/element.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/jobs.h"
#include "controller/api/route.h"
#include "wire/limits.h"

struct search {
    struct request *request;
    void (*next)(struct request *request), (*none)(struct request *request);
    uint64_t after; // last event examined
};

static void reply_missing(struct request *request, const struct job *job)
{
    struct error err = { 0 };
    if (job_is_array(job)) {
        (void)error_set(
            &err, -ENOENT, "there is no job %" PRIu64 ".%" PRIu32, request->job, request->element);
        (void)error_hint(&err, "mgpu show %" PRIu64 " shows the array", request->job);
    } else {
        (void)error_set(&err, -ENOENT,
            "job %" PRIu64 " is not an array: there is no job %" PRIu64 ".%" PRIu32, request->job,
            request->job, request->element);
    }
    request_reply_problem(request, &err);
}

static void reply_none(struct request *request)
{
    jobs_find(request, request->job, reply_missing);
}

static void fetch_more(struct search *search);

static void on_events(void *arg, const struct job_event *events, size_t count)
{
    struct search *search = arg;
    struct request *request = search->request;
    uint64_t element = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == EVENT_SPLIT && events[i].array_index == request->element)
            element = events[i].element;
        search->after = events[i].seq;
    }
    if (!request_is_over(request) && element == 0 && count > 0) {
        fetch_more(search);
        return;
    }
    if (!request_is_over(request) && element == 0)
        search->none(request);
    else if (!request_is_over(request)) {
        request->job = element;
        search->next(request);
    }
    request_unref(request);
    free(search);
}

static void fetch_more(struct search *search)
{
    store_fetch_events(search->request->serve->controller->store, search->after, search->request->job,
        LIMIT_EVENT_REPLAY, on_events, search);
}

/* The element is still waiting in its array. */
static void take_out(struct request *request, void (*next)(struct request *request))
{
    struct core *core = request->serve->controller->core;
    bool waits = false;
    if (strcmp(request->route->method, "POST") != 0) {
        next(request);
        return;
    }
    const struct job *array = core_job(core, request->job);
    if (!jobs_check(request, ACTION_CONTROL, array, "change it"))
        return;
    request->job =
        core_element(core, clock_boot_ms(), clock_wall_ms(), request->job, request->element, true, &waits);
    next(request);
}

void element_find(struct request *request, void (*next)(struct request *request))
{
    element_find_or(request, next, reply_none);
}

void element_find_or(
    struct request *request, void (*next)(struct request *request), void (*none)(struct request *request))
{
    struct core *core = request->serve->controller->core;
    bool waits = false;
    uint64_t element =
        core_element(core, clock_boot_ms(), clock_wall_ms(), request->job, request->element, false, &waits);
    if (waits) {
        take_out(request, next);
        return;
    }
    if (element != 0) {
        request->job = element;
        next(request);
        return;
    }
    struct search *search = xcalloc(1, sizeof(*search));
    *search = (struct search){ .request = request, .next = next, .none = none };
    request_ref(request);
    fetch_more(search);
}
