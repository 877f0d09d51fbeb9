/* SPDX-License-Identifier: MIT */
/*
 * Stores that several controllers keep identical. Every transaction of the leader's store is an entry of an
 * external log (a `struct store_log`), and is in that log before it is committed here; the other controllers
 * apply the entries to their own stores in order. An entry is the row changes of the transaction, recorded by
 * SQLite's session extension.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* The last entry that a store contains. An id is random, so that equal numbers of different logs differ. */
struct store_position {
    uint64_t number; // of entries since the log began; 0: none
    uint64_t id;     // of the last one
};

struct store_entry {
    struct store_position position, before; // after this entry and before it
    uint32_t schema;                        // version of the tables
    const void *changes;
    size_t length;
};

/* The log, as the leader uses it from the store's thread. */
struct store_log_writer {
    void *arg;
    /*
     * Appends an entry after `entry->before`: 0 once it is durable. A failure ends the store: the entry may
     * or may not be in the log.
     */
    int (*append)(void *arg, const struct store_entry *entry, struct error *err);
};

/* False if this mgpud's SQLite lacks the session extension. */
bool store_replica_is_supported(void);

/* store_open() for the leader. -ENXIO: the store belongs to no cluster (store_replica_found). The writer is
 * borrowed until store_close(). */
int store_open_leading(const char *dir, const struct store_observer *observer,
    const struct store_log_writer *writer, struct store **ret, struct store_summary *ret_summary,
    struct error *err);

/* Makes the store in DIR, which is created if missing, the first of a cluster, at its own position. */
int store_replica_found(const char *dir, struct error *err);

/* The same for a store whose log is lost: its new position follows those of all stores that have no entry
 * which this one lacks, so this store replaces them. */
int store_replica_found_again(const char *dir, struct error *err);

/* The opposite: the store in DIR is one controller's own again. */
int store_replica_leave(const char *dir, struct error *err);

/* --- a standby's store --- */

struct store_replica;

/* Opens the store in DIR for entries: -ENOENT if there is none, -ENXIO if it belongs to no cluster. Takes the
 * lock of the directory, as store_open() does. */
int store_replica_open(const char *dir, struct store_replica **ret, struct error *err);

/* Closes the file cleanly. NULL is allowed. */
void store_replica_close(struct store_replica *replica);

struct store_position store_replica_position(const struct store_replica *replica);

/* The name of the cluster's store (store_summary.instance). */
const char *store_replica_instance(const struct store_replica *replica);

/*
 * Applies the next entry as one transaction. -ESTALE: it does not follow this store's position; -EUCLEAN: its
 * changes do not fit; -ENOTSUP: a newer mgpu wrote it. A failure leaves the store as it was.
 */
int store_replica_apply(struct store_replica *replica, const struct store_entry *entry, struct error *err);

/*
 * Opens a read-only view of the store of a standby, in DIR, as of now: reads do not change while entries are
 * applied. Keep it only for a short time: SQLite's log grows meanwhile.
 */
int store_open_reading(const char *dir, const struct store_observer *observer, struct store **ret,
    struct store_summary *ret_summary, struct store_position *ret_position, struct error *err);

/* Writes a copy of the store in DIR to PATH, an existing empty file, while it is in use. *ret: its position.
 */
int store_replica_copy(const char *dir, const char *path, struct store_position *ret, struct error *err);

/*
 * Checks such a copy in DIR/NAME and makes it the store in DIR. The previous store is kept as
 * DIR/diverged.db. Takes the lock of the directory temporarily.
 */
int store_replica_install(const char *dir, const char *name, struct error *err);
