/* SPDX-License-Identifier: MIT */
/*
 * mgpud has one thread, and with a long queue some answers take a good part of a second: a forecast, a slice
 * of a list. Such requests are queued here per user. One is served per turn of the loop, for the user who has
 * had the least time; then the loop gets as much time for everything else. Changes made earlier in the turn
 * are handed to the store first, and are written meanwhile.
 *
 * The time of a user counts from when its queue is not empty (start-time fair queueing): a user who returns
 * after a pause has neither credit nor debt.
 */
#include "controller/http/fair_queue.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/http/request.h"
#include "controller/turns.h"

#define REST_FROM_MS 20 // shorter ones follow each other in the next turn

struct waiting {
    struct request *request; // a reference
    void (*serve)(struct request *request);
    struct waiting *next;
};

struct line {
    uint32_t uid;
    int64_t used_ms;
    struct waiting *first, **end;
    struct line *next;
};

struct fair_queue {
    struct event *next_one;
    struct line *lines; // none is empty
    int64_t now_ms;     // the time of the user served last, before that request
};

static void arm(struct fair_queue *queue, int64_t rest_ms)
{
    const struct timeval rest = { .tv_sec = rest_ms / 1000, .tv_usec = rest_ms % 1000 * 1000 };
    if (queue->lines != NULL && evtimer_pending(queue->next_one, NULL) == 0)
        (void)evtimer_add(queue->next_one, &rest);
}

static struct line **find_least(struct fair_queue *queue)
{
    struct line **least = &queue->lines;
    for (struct line **link = &queue->lines; *link != NULL; link = &(*link)->next)
        if ((*link)->used_ms < (*least)->used_ms)
            least = link;
    return least;
}

static struct waiting *take_first(struct line *line)
{
    struct waiting *first = line->first;
    line->first = first->next;
    if (line->first == NULL)
        line->end = &line->first;
    return first;
}

static void leave(struct waiting *waiting)
{
    request_unref(waiting->request);
    free(waiting);
}

static void remove_line(struct line **link)
{
    struct line *line = *link;
    *link = line->next;
    free(line);
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
    struct fair_queue *queue = arg;
    struct line **link = find_least(queue), *line = *link;
    struct waiting *waiting = take_first(line);
    int64_t begin_ms = clock_boot_ms();
    queue->now_ms = line->used_ms;
    turns_hand_over(waiting->request->serve->controller->turns);
    if (!request_is_over(waiting->request))
        request_step(waiting->request, waiting->serve);
    leave(waiting);
    int64_t took_ms = clock_boot_ms() - begin_ms;
    line->used_ms += took_ms + 1;              // the next request is another user's
    for (link = &queue->lines; *link != line;) // serving may have made new lines
        link = &(*link)->next;
    if (line->first == NULL)
        remove_line(link);
    arm(queue, took_ms >= REST_FROM_MS ? took_ms : 0);
}

struct fair_queue *fair_queue_new(struct event_base *loop)
{
    struct fair_queue *queue = xcalloc(1, sizeof(*queue));
    queue->next_one = evtimer_new(loop, on_next, queue);
    if (queue->next_one == NULL)
        abort(); // memory
    return queue;
}

void fair_queue_free(struct fair_queue *queue)
{
    if (queue == NULL)
        return;
    while (queue->lines != NULL) {
        while (queue->lines->first != NULL)
            leave(take_first(queue->lines));
        remove_line(&queue->lines);
    }
    event_free(queue->next_one);
    free(queue);
}

static struct line *line_of(struct fair_queue *queue, uint32_t uid)
{
    struct line **link = &queue->lines;
    while (*link != NULL && (*link)->uid != uid)
        link = &(*link)->next;
    if (*link == NULL) {
        struct line *line = xcalloc(1, sizeof(*line));
        *line = (struct line){ .uid = uid, .used_ms = queue->now_ms, .end = &line->first };
        *link = line;
    }
    return *link;
}

void fair_queue_add(struct request *request, void (*serve)(struct request *request))
{
    struct fair_queue *queue = request->serve->queue;
    struct waiting *waiting = xcalloc(1, sizeof(*waiting));
    struct line *line = line_of(queue, request->who.uid);
    *waiting = (struct waiting){ .request = request, .serve = serve };
    request_ref(request);
    *line->end = waiting;
    line->end = &waiting->next;
    arm(queue, 0);
}
