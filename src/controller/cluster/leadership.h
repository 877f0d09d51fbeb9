/* SPDX-License-Identifier: MIT */
/*
 * Leadership: the key `leader` with this controller's lease. The create revision of the key is the guard of
 * every write to the log. A thread renews the lease. Leadership is certain only while the lease, counted on
 * this machine's boot clock from before the last successful renewal was sent, cannot have expired.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "controller/cluster/etcd.h"

struct curl_library;
struct leadership;

/* Tries to become the leader: 1 with *ret, 0 if another controller leads, or a negative errno. */
int leadership_take(const struct curl_library *curl, struct etcd_settings *settings, const char *name,
    int64_t lease_ms, struct leadership **ret, struct error *err);

/* True while no other controller can lead. From any thread. */
bool leadership_is_certain(const struct leadership *leadership);

/* How long it is certain from now on; 0: it is not. From any thread. */
int64_t leadership_left_ms(const struct leadership *leadership);

/* The create revision of the leader's key. */
int64_t leadership_revision(const struct leadership *leadership);

/* Becomes readable once leadership is not certain any more; it never is again. */
int leadership_fd(const struct leadership *leadership);

/* Ends leadership, stops the thread and deletes the key, so another controller need not wait for the lease to
 * expire. Nothing may be written after this. NULL is allowed. */
void leadership_free(struct leadership *leadership);

/* Ends it immediately, from any thread: it is no longer certain, and leadership_fd() becomes readable. */
void leadership_resign(struct leadership *leadership);
