/* SPDX-License-Identifier: MIT */
/* What each user has open and how fast it asks, so that nobody can take the API from the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define USER_UNKNOWN UINT32_MAX // all whom nobody knows, together

/* Things that are counted by user and altogether. */
enum user_share {
    SHARE_CONNECTIONS,
    SHARE_RESERVED, // connections of administrators when there are no others left
    SHARE_UNKNOWN,  // connections of USER_UNKNOWN
    SHARE_FOLLOWS,
    SHARE_EVENTS,
    SHARE_REPLAYS, // pages of old events that are being read
    SHARE_LISTS,
    SHARE_BODIES,
    SHARE_TERMINALS,
    SHARES
};

struct users;

/* `max_connections` replaces the limit of connections when the process may not open as many. */
struct users *users_new(size_t max_connections);
void users_free(struct users *users);

/* Takes `amount` (bytes for SHARE_BODIES, else 1): 0, or -EMFILE (connections) or -EUSERS with a sentence. */
int users_take(struct users *users, uint32_t uid, enum user_share share, size_t amount, struct error *err);

/* Gives back what users_take() gave. */
void users_give(struct users *users, uint32_t uid, enum user_share share, size_t amount);

/* Counts a request: 0, or -EUSERS when this user asks too fast. */
int users_request(struct users *users, uint32_t uid, int64_t boot_ms, struct error *err);
