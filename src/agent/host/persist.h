/* SPDX-License-Identifier: MIT */
/* What an agent remembers of agents before it: the highest epoch obeyed, and the boot its spool belongs to.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/process.h"

/* In the node's directory: two, because a machine that had an mgpud of its own may join a cluster, and leave
 * it, and the numbers of one mean nothing to the other. */
#define PERSIST_EPOCH_HERE    "epoch"             // of this machine's mgpud
#define PERSIST_EPOCH_CLUSTER "cluster-epoch"     // of the one that was joined
#define PERSIST_IDENTITY_SIZE (BOOT_ID_SIZE + 17) // boot id, mark, 16 digits

/* Opens STATE/node, which is made 0700 and must be our own. Returns a descriptor. */
int persist_open(const char *state_dir, struct error *err);

/* The highest epoch obeyed, 0 when there was none. `file`: one of the above. */
int persist_load_epoch(int dirfd, const char *file, uint64_t *ret_epoch, struct error *err);

/* Durable when it returns. */
int persist_save_epoch(int dirfd, const char *file, uint64_t epoch, struct error *err);

/* The latest state of the controller's store that this node was told of. It is in the spool: a copy of the
 * state directory that is put back does not take it back as well. */
struct persist_seen {
    uint64_t epoch;   // 0: it was told nothing
    int64_t began_ms; // of the run of mgpud; 0: not told
    uint64_t event;
};

/* `file`: as above. Zeros when there is none that can be read. */
void persist_load_seen(int spoolfd, const char *file, struct persist_seen *ret);

/* Where there is no room, none is left: an old one would be wrong. */
void persist_save_seen(int spoolfd, const char *file, const struct persist_seen *seen);

/* Empties a spool that belongs to another boot, and marks it as one of this boot. `identity`: the boot id,
 * and a random number of the spool, so that one that was lost, or emptied by somebody, does not pass for the
 * one before. */
int persist_enter_boot(
    int spoolfd, const char *boot_id, char identity[PERSIST_IDENTITY_SIZE], struct error *err);
