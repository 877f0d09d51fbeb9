/* SPDX-License-Identifier: MIT */
/*
 * mgpud has one thread, and some answers take it for a good part of a second when the queue is long: a
 * forecast, a slice of a list. Such requests wait here in a line of their user's. One is served in a turn of
 * the loop, of the user who has had the least time so far; then the loop has as much time for everything else
 * as that took.
 *
 * The time of a user counts from when his line is not empty (start-time fair queueing): who comes back after
 * a pause has neither credit nor debt.
 */
#include "controller/http/desk.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/http/request.h"

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

struct desk {
    struct event *next_one;
    struct line *lines; // none is empty
    int64_t now_ms;     // what the user who was served last had used before
};

static void arm(struct desk *desk, int64_t rest_ms)
{
    const struct timeval rest = { .tv_sec = rest_ms / 1000, .tv_usec = rest_ms % 1000 * 1000 };
    if (desk->lines != NULL && evtimer_pending(desk->next_one, NULL) == 0)
        (void)evtimer_add(desk->next_one, &rest);
}

static struct line **find_least(struct desk *desk)
{
    struct line **least = &desk->lines;
    for (struct line **link = &desk->lines; *link != NULL; link = &(*link)->next)
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
    struct desk *desk = arg;
    struct line **link = find_least(desk), *line = *link;
    struct waiting *waiting = take_first(line);
    int64_t begin_ms = clock_boot_ms();
    desk->now_ms = line->used_ms;
    if (!request_is_over(waiting->request))
        waiting->serve(waiting->request);
    leave(waiting);
    int64_t took_ms = clock_boot_ms() - begin_ms;
    line->used_ms += took_ms + 1;             // the next is somebody else's
    for (link = &desk->lines; *link != line;) // serving may have made new lines
        link = &(*link)->next;
    if (line->first == NULL)
        remove_line(link);
    arm(desk, took_ms >= REST_FROM_MS ? took_ms : 0);
}

struct desk *desk_new(struct event_base *loop)
{
    struct desk *desk = xcalloc(1, sizeof(*desk));
    desk->next_one = evtimer_new(loop, on_next, desk);
    if (desk->next_one == NULL)
        abort(); // memory
    return desk;
}

void desk_free(struct desk *desk)
{
    if (desk == NULL)
        return;
    while (desk->lines != NULL) {
        while (desk->lines->first != NULL)
            leave(take_first(desk->lines));
        remove_line(&desk->lines);
    }
    event_free(desk->next_one);
    free(desk);
}

static struct line *line_of(struct desk *desk, uint32_t uid)
{
    struct line **link = &desk->lines;
    while (*link != NULL && (*link)->uid != uid)
        link = &(*link)->next;
    if (*link == NULL) {
        struct line *line = xcalloc(1, sizeof(*line));
        *line = (struct line){ .uid = uid, .used_ms = desk->now_ms, .end = &line->first };
        *link = line;
    }
    return *link;
}

void desk_enter(struct request *request, void (*serve)(struct request *request))
{
    struct desk *desk = request->serve->desk;
    struct waiting *waiting = xcalloc(1, sizeof(*waiting));
    struct line *line = line_of(desk, request->who.uid);
    *waiting = (struct waiting){ .request = request, .serve = serve };
    request_ref(request);
    *line->end = waiting;
    line->end = &waiting->next;
    arm(desk, 0);
}
