/* SPDX-License-Identifier: MIT */
/*
 * The end of a commit, which all requests wait for, takes precedence over other due events (turns.h). Reading
 * pages is long work, and is handled with the rest.
 */
#include "controller/results.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/controller.h"
#include "controller/turns.h"
#include "store/store.h"

struct results {
    struct controller *controller;
    struct event *prompt, *all;
};

static void on_prompt(evutil_socket_t fd, short events, void *arg)
{
    struct results *results = arg;
    struct turns *turns = results->controller->turns;
    int64_t began_us = turns_step_begin();
    store_dispatch_prompt(results->controller->store);
    turns_step_end(turns, began_us, "results of", "the store");
    turns_end_callback(turns, results->prompt, TURNS_FIRST, began_us);
}

static void on_any(evutil_socket_t fd, short events, void *arg)
{
    const struct results *results = arg;
    int64_t began_us = turns_step_begin();
    store_dispatch(results->controller->store);
    turns_step_end(results->controller->turns, began_us, "pages of", "the store");
}

struct results *results_new(struct controller *controller)
{
    struct results *results = xcalloc(1, sizeof(*results));
    struct event_base *loop = controller->loop;
    results->controller = controller;
    results->prompt =
        event_new(loop, store_prompt_fd(controller->store), EV_READ | EV_PERSIST, on_prompt, results);
    results->all = event_new(loop, store_fd(controller->store), EV_READ | EV_PERSIST, on_any, results);
    if (results->prompt == NULL || results->all == NULL)
        abort(); // memory
    (void)event_add(results->prompt, NULL);
    (void)event_add(results->all, NULL);
    return results;
}

void results_free(struct results *results)
{
    if (results == NULL)
        return;
    event_free(results->prompt);
    event_free(results->all);
    free(results);
}
