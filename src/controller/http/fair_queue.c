/* SPDX-License-Identifier: MIT */
/*
 * mgpud has one thread, and with a long queue some responses take a large part of a second: a forecast, or a
 * slice of a list. Such requests are queued here per user, and so are all requests of a user who has used
 * much of the time. A callback serves them for SLICE_US, always for the user who has used the least time.
 * Then the loop continues with everything else, for as long if that took much longer. Changes made earlier in
 * the turn are passed to the store first, and are written meanwhile.
 *
 * The time of a user counts from when the user's queue is not empty (start-time fair queueing), so a user who
 * returns after a pause has neither credit nor debt. Only a part of an administrator's time counts.
 *
 * While a commit is in progress, a user who is not alone adds few changes to the next one, because all who
 * wait for that commit wait longer if it is larger.
 */
#include "controller/http/fair_queue.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/http/request.h"
#include "controller/http/slices.h"
#include "controller/turns.h"

#define REST_FROM_US 20000 // after a shorter callback, the next one follows in the next turn
#define CHANGES_MAX  8     // of a user in the queue, per commit
#define ADMIN_PART   4     // one in this many units of an administrator's time counts

struct waiting {
    struct request *request; // a reference
    void (*serve)(struct request *request);
    bool is_change;
    struct waiting *next;
};

struct line {
    uint32_t uid;
    int64_t used_us;
    struct waiting *first, **end;
    int64_t period;   // period of its last change
    unsigned changes; // in it
    struct line *next;
};

struct fair_queue {
    struct event *next_one;
    struct line *lines; // none is empty
    int64_t period;     // period in which changes are counted: when the commit began, or negative
    int64_t rounds;     // the last negative period
    int64_t now_us;     // the used time of the user served last, before that request
};

static void arm(struct fair_queue *queue, int64_t rest_us)
{
    const struct timeval rest = { .tv_sec = rest_us / 1000000, .tv_usec = rest_us % 1000000 };
    if (queue->lines != NULL && evtimer_pending(queue->next_one, NULL) == 0)
        (void)evtimer_add(queue->next_one, &rest);
}

/* True if its user has made enough changes for this commit, which other users may wait for. */
static bool is_held(const struct fair_queue *queue, const struct line *line)
{
    const struct users *users = line->first->request->serve->users;
    return line->first->is_change && line->period == queue->period && line->changes >= CHANGES_MAX &&
           !users_is_alone(users, line->uid, clock_boot_us());
}

static void count_change(const struct fair_queue *queue, struct line *line)
{
    line->changes = line->period == queue->period ? line->changes + 1 : 1;
    line->period = queue->period;
}

/* One period for each commit. While no commit is in progress, one for each callback, before which one may
 * begin. */
static void begin_period(struct fair_queue *queue)
{
    const struct controller *controller = queue->lines->first->request->serve->controller;
    turns_hand_over(controller->turns);
    queue->period = controller->commit_us != 0 ? controller->commit_us : --queue->rounds;
}

/* NULL if all are held. */
static struct line **find_least(struct fair_queue *queue)
{
    struct line **least = NULL;
    for (struct line **link = &queue->lines; *link != NULL; link = &(*link)->next)
        if (!is_held(queue, *link) && (least == NULL || (*link)->used_us < (*least)->used_us))
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

static int64_t counted(const struct request *request, int64_t took_us)
{
    return request->who.role == ROLE_ADMIN ? took_us / ADMIN_PART : took_us;
}

static void serve_next(struct fair_queue *queue, struct line *line)
{
    if (line->first->is_change)
        count_change(queue, line);
    struct waiting *waiting = take_first(line);
    struct request *request = waiting->request;
    int64_t begin_us = clock_boot_us(), used_us = turns_thread_us();
    queue->now_us = line->used_us;
    if (!request_is_over(request))
        request_step(request, waiting->serve);
    line->used_us += counted(request, clock_boot_us() - begin_us) + 1; // the next may be another user's
    users_spend(request->serve->users, line->uid, begin_us, turns_thread_us() - used_us);
    leave(waiting);
    struct line **link = &queue->lines;
    while (*link != line) // serving may have added lines
        link = &(*link)->next;
    if (line->first == NULL)
        remove_line(link);
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
    struct fair_queue *queue = arg;
    int64_t begin_us = clock_boot_us(), took_us = 0;
    if (queue->lines == NULL)
        return; // requests added meanwhile were served at that time
    begin_period(queue);
    struct line **least = find_least(queue);
    while (least != NULL && took_us < SLICE_US) {
        serve_next(queue, *least);
        took_us = clock_boot_us() - begin_us;
        least = find_least(queue);
    }
    if (least != NULL || queue->period < 0)
        arm(queue, took_us >= REST_FROM_US ? took_us : 0);
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
        *line = (struct line){ .uid = uid, .used_us = queue->now_us, .end = &line->first };
        *link = line;
    }
    return *link;
}

static void add(struct request *request, void (*serve)(struct request *request), bool is_change)
{
    struct fair_queue *queue = request->serve->queue;
    struct waiting *waiting = xcalloc(1, sizeof(*waiting));
    struct line *line = line_of(queue, request->who.is_known ? request->who.uid : USER_UNKNOWN);
    *waiting = (struct waiting){ .request = request, .serve = serve, .is_change = is_change };
    request_ref(request);
    *line->end = waiting;
    line->end = &waiting->next;
    arm(queue, 0);
}

void fair_queue_add(struct request *request, void (*serve)(struct request *request))
{
    add(request, serve, false);
}

void fair_queue_add_change(struct request *request, void (*serve)(struct request *request))
{
    add(request, serve, true);
}

void fair_queue_resume(struct fair_queue *queue)
{
    arm(queue, 0);
}
