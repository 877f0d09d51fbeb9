/* SPDX-License-Identifier: MIT */
#include "serve_later.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/memory.h"

struct harness *current;

struct later *later_add(enum later_kind kind)
{
    struct later *later = xcalloc(1, sizeof(*later));
    later->kind = kind;
    struct later **link = &current->later;
    while (*link != NULL)
        link = &(*link)->next;
    *link = later;
    event_active(current->later_event, EV_TIMEOUT, 0);
    return later;
}

void later_run(int fd, short what, void *arg)
{
    struct harness *harness = arg;
    struct later **link = &harness->later;
    struct later *batch = NULL, **end = &batch;
    while (*link != NULL) { // those added meanwhile wait for the next turn
        struct later *later = *link;
        if (later->kind == LATER_BARRIER && harness->is_barrier_held) {
            link = &later->next;
            continue;
        }
        *link = later->next;
        later->next = NULL;
        *end = later;
        end = &later->next;
    }
    while (batch != NULL) {
        struct later *later = batch;
        batch = later->next;
        if (later->kind == LATER_CALL)
            later->call(later);
        else if (later->request != NULL)
            serve_reply(harness->controller.serve, later->request, &later->answer);
        free(later);
    }
}

void harness_release_barriers(struct harness *harness)
{
    harness->is_barrier_held = false;
    event_active(harness->later_event, EV_TIMEOUT, 0);
}
