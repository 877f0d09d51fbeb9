/* SPDX-License-Identifier: MIT */
/* Open resources, request rate and loop time of each user, so that no user can block the API for others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define USER_UNKNOWN UINT32_MAX // all unidentified callers together

/* Resources counted per user and in total. */
enum user_share {
    SHARE_CONNECTIONS,
    SHARE_RESERVED, // connections for administrators when no others are left
    SHARE_UNKNOWN,  // connections of USER_UNKNOWN
    SHARE_FOLLOWS,
    SHARE_EVENTS,
    SHARE_REPLAYS, // pages of old events being read
    SHARE_LISTS,
    SHARE_BODIES,
    SHARE_TERMINALS,
    SHARE_INPUTS,
    SHARE_PORTS,
    SHARES
};

struct users;

/* `max_connections` replaces the limit of connections if the process may not open as many. */
struct users *users_new(size_t max_connections);
void users_free(struct users *users);

/* Allocates `amount` (bytes for SHARE_BODIES, else 1): 0, or -EMFILE (connections) or -EUSERS with a
 * sentence. */
int users_take(struct users *users, uint32_t uid, enum user_share share, size_t amount, struct error *err);

/* Returns what users_take() allocated. */
void users_give(struct users *users, uint32_t uid, enum user_share share, size_t amount);

/* Whether this user has had little of the loop's time; then he comes before those who have had much. */
bool users_has_time(struct users *users, uint32_t uid, int64_t boot_us);

/* He has used so much of it. */
void users_spend(struct users *users, uint32_t uid, int64_t boot_us, int64_t used_us);

/* Whether no other user has used any of it lately: then no room has to be made. */
bool users_is_alone(const struct users *users, uint32_t uid, int64_t boot_us);

/* Counts a request, or what costs as much as several: 0, or -EUSERS if this user exceeds its request rate. */
int users_request(struct users *users, uint32_t uid, int64_t boot_ms, unsigned count, struct error *err);
