/* SPDX-License-Identifier: MIT */
#include "controller/http/precedence.h"

#include <event2/bufferevent_struct.h>
#include <event2/event.h>

#include "base/clock.h"

/* Does nothing while one of its events is due. bufferevent_priority_set() would also move deferred callbacks,
 * and lose those that are due. */
static void move(struct bufferevent *stream, enum turns_place to, enum turns_place *place)
{
    if (*place != to && event_priority_set(&stream->ev_read, (int)to) == 0 &&
        event_priority_set(&stream->ev_write, (int)to) == 0)
        *place = to;
}

struct precedence precedence_begin(
    struct serve *serve, uint32_t uid, bool is_usual, struct bufferevent *stream, enum turns_place *place)
{
    bool has_time = is_usual && users_has_time(serve->users, uid, clock_boot_us());
    struct precedence precedence = {
        .serve = serve, .uid = uid, .place = *place, .began_us = turns_thread_us()
    };
    move(stream, turns_place(serve->controller->turns, has_time ? TURNS_USUAL : TURNS_REST), place);
    return precedence;
}

void precedence_end(const struct precedence *precedence)
{
    struct turns *turns = precedence->serve->controller->turns;
    int64_t used_us = turns_thread_us() - precedence->began_us + TURNS_AROUND_US;
    users_spend(precedence->serve->users, precedence->uid, clock_boot_us(), used_us);
    turns_spend(turns, precedence->place, used_us);
    if (precedence->place == TURNS_USUAL)
        turns_end_soon(turns);
}
