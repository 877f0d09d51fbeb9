/* SPDX-License-Identifier: MIT */
/*
 * A small hash table of users with open resources or recent requests. A user without open resources whose
 * bucket is full again is equivalent to an unknown one and is dropped when its chain is searched, so the
 * table is bounded by the users seen within a second plus those with connections.
 */
#include "controller/http/users.h"

#include <errno.h>
#include <stdlib.h>

#include "base/allowance.h"
#include "base/memory.h"
#include "wire/limits.h"

#define CHAINS                 256U
#define USER_CONNECTIONS_LEAST 64U  // per user, where a sixteenth of all would be less
#define MILLI                  1000 // the bucket counts thousandths of a request
#define BUCKET_WHOLE           ((int64_t)LIMIT_USER_BURST * MILLI)

/* For a user with time left: hundreds of small requests a second. */
static const struct allowance_rate loop_time = { .percent = 20, .most_us = 100000, .debt_us = 20000 };

#define ALONE_US INT64_C(5000000) // since another user was served

struct user {
    struct user *next;
    uint32_t uid;
    size_t open[SHARES];
    int64_t bucket; // requests left, in thousandths
    int64_t filled_ms;
    struct allowance time; // of the loop
};

struct seen {
    uint32_t uid;
    int64_t at_us;
};

struct users {
    struct user *chains[CHAINS];
    struct seen last, last_other; // two users
    size_t open[SHARES];
    size_t most[SHARES], most_each[SHARES];
};

static const struct {
    int code;
    const char *what;
} shares[SHARES] = {
    [SHARE_CONNECTIONS] = { -EMFILE, "connections" },
    [SHARE_RESERVED] = { -EMFILE, "connections of administrators" },
    [SHARE_UNKNOWN] = { -EMFILE, "connections without a known user" },
    [SHARE_FOLLOWS] = { -EUSERS, "logs" },
    [SHARE_EVENTS] = { -EUSERS, "event streams" },
    [SHARE_REPLAYS] = { -EUSERS, "pages of events" },
    [SHARE_LISTS] = { -EUSERS, "long lists" },
    [SHARE_BODIES] = { -EUSERS, "bytes of requests" },
    [SHARE_TERMINALS] = { -EUSERS, "terminals" },
    [SHARE_INPUTS] = { -EUSERS, "standard inputs of jobs" },
    [SHARE_PORTS] = { -EUSERS, "connections to ports of jobs" },
};

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

static void limit_connections(struct users *users, size_t max_connections)
{
    size_t all = least(max_connections, LIMIT_CONNECTIONS), sixteenth = (all + 15) / 16;
    size_t reserved = least(sixteenth, LIMIT_RESERVED_CONNECTIONS);
    size_t unknown = least(sixteenth, LIMIT_UNKNOWN_CONNECTIONS);
    size_t each = sixteenth > USER_CONNECTIONS_LEAST ? sixteenth : least(USER_CONNECTIONS_LEAST, all / 2);
    users->most[SHARE_RESERVED] = users->most_each[SHARE_RESERVED] = reserved;
    users->most[SHARE_UNKNOWN] = users->most_each[SHARE_UNKNOWN] = unknown;
    users->most[SHARE_CONNECTIONS] = all > reserved + unknown ? all - reserved - unknown : 1;
    users->most_each[SHARE_CONNECTIONS] = least(each, LIMIT_USER_CONNECTIONS);
}

struct users *users_new(size_t max_connections)
{
    struct users *users = xcalloc(1, sizeof(*users));
    limit_connections(users, max_connections);
    users->most[SHARE_FOLLOWS] = LIMIT_FOLLOWS;
    users->most_each[SHARE_FOLLOWS] = LIMIT_USER_FOLLOWS;
    users->most[SHARE_EVENTS] = LIMIT_EVENT_CLIENTS;
    users->most_each[SHARE_EVENTS] = LIMIT_USER_EVENT_CLIENTS;
    users->most[SHARE_REPLAYS] = LIMIT_EVENT_CLIENTS;
    users->most_each[SHARE_REPLAYS] = 1; // so that no user delays a commit by more than one page
    users->most[SHARE_LISTS] = LIMIT_LISTS;
    users->most_each[SHARE_LISTS] = LIMIT_USER_LISTS;
    users->most[SHARE_BODIES] = LIMIT_BODIES_BYTES;
    users->most_each[SHARE_BODIES] = LIMIT_USER_BODIES_BYTES;
    users->most[SHARE_TERMINALS] = LIMIT_TERMINALS;
    users->most_each[SHARE_TERMINALS] = LIMIT_USER_TERMINALS;
    users->most[SHARE_INPUTS] = LIMIT_INPUTS;
    users->most_each[SHARE_INPUTS] = LIMIT_USER_INPUTS;
    users->most[SHARE_PORTS] = LIMIT_PORTS;
    users->most_each[SHARE_PORTS] = LIMIT_USER_PORTS;
    return users;
}

void users_free(struct users *users)
{
    if (users == NULL)
        return;
    for (size_t i = 0; i < CHAINS; i++) {
        while (users->chains[i] != NULL) {
            struct user *user = users->chains[i];
            users->chains[i] = user->next;
            free(user);
        }
    }
    free(users);
}

static bool is_idle(const struct user *user, int64_t boot_ms)
{
    for (size_t i = 0; i < SHARES; i++)
        if (user->open[i] != 0)
            return false;
    if (!allowance_is_full(&user->time, &loop_time, boot_ms * MILLI))
        return false;
    return boot_ms - user->filled_ms > LIMIT_USER_BURST * (int64_t)MILLI / LIMIT_USER_REQUESTS;
}

/* The user's entry, created if there is none. If `boot_ms` is given, idle entries found meanwhile are
 * dropped. */
static struct user *find(struct users *users, uint32_t uid, int64_t boot_ms)
{
    struct user **link = &users->chains[uid % CHAINS];
    while (*link != NULL && (*link)->uid != uid) {
        struct user *user = *link;
        if (boot_ms == 0 || !is_idle(user, boot_ms)) {
            link = &user->next;
            continue;
        }
        *link = user->next;
        free(user);
    }
    if (*link == NULL) {
        *link = xcalloc(1, sizeof(**link));
        **link = (struct user){ .uid = uid, .bucket = BUCKET_WHOLE, .filled_ms = boot_ms };
    }
    return *link;
}

int users_take(struct users *users, uint32_t uid, enum user_share share, size_t amount, struct error *err)
{
    struct user *user = find(users, uid, 0);
    const char *what = shares[share].what;
    if (amount > users->most[share] - users->open[share])
        return error_set(
            err, shares[share].code, "the limit of %zu %s has been reached", users->open[share], what);
    if (amount > users->most_each[share] - user->open[share])
        return error_set(err, shares[share].code, "you have reached the limit of %zu %s per user",
            user->open[share], what);
    user->open[share] += amount;
    users->open[share] += amount;
    return 0;
}

void users_give(struct users *users, uint32_t uid, enum user_share share, size_t amount)
{
    find(users, uid, 0)->open[share] -= amount;
    users->open[share] -= amount;
}

bool users_has_time(struct users *users, uint32_t uid, int64_t boot_us)
{
    return allowance_is_left(&find(users, uid, boot_us / MILLI)->time, &loop_time, boot_us);
}

void users_spend(struct users *users, uint32_t uid, int64_t boot_us, int64_t used_us)
{
    allowance_spend(&find(users, uid, boot_us / MILLI)->time, &loop_time, boot_us, used_us);
    if (uid == USER_UNKNOWN)
        return; // it is counted among the others
    if (users->last.uid != uid)
        users->last_other = users->last;
    users->last = (struct seen){ uid, boot_us };
}

bool users_is_alone(const struct users *users, uint32_t uid, int64_t boot_us)
{
    const struct seen *other = users->last.uid != uid ? &users->last : &users->last_other;
    return boot_us - other->at_us > ALONE_US;
}

int users_request(struct users *users, uint32_t uid, int64_t boot_ms, unsigned count, struct error *err)
{
    struct user *user = find(users, uid, boot_ms);
    int64_t passed_ms = boot_ms - user->filled_ms;
    user->filled_ms = boot_ms;
    user->bucket += (passed_ms < 60000 ? passed_ms : 60000) * LIMIT_USER_REQUESTS; // per ms: thousandths
    if (user->bucket > BUCKET_WHOLE)
        user->bucket = BUCKET_WHOLE;
    if (user->bucket < (int64_t)count * MILLI)
        return error_set(err, -EUSERS, "too many requests: at most %d per second", LIMIT_USER_REQUESTS);
    user->bucket -= (int64_t)count * MILLI;
    return 0;
}
