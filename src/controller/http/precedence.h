/* SPDX-License-Identifier: MIT */
/* Whose connections come first: those of users who have had little of the loop's time. */
#pragma once

#include <event2/bufferevent.h>
#include <stdint.h>

#include "controller/http/http_private.h"
#include "controller/turns.h"

/* A callback of a connection, from its begin to its end. The connection may be closed meanwhile. */
struct precedence {
    struct serve *serve;
    uint32_t uid;
    enum turns_place place;
    int64_t began_us;
};

/* `is_usual`: the connection carries requests with short answers, and may come before the rest. `place` is
 * that of its events, which are moved. */
struct precedence precedence_begin(
    struct serve *serve, uint32_t uid, bool is_usual, struct bufferevent *stream, enum turns_place *place);

/* The time counts as the user's. */
void precedence_end(const struct precedence *precedence);
