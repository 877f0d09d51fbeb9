/* SPDX-License-Identifier: MIT */
/* State that agents pass on to later ones: the highest epoch accepted, and the boot of the spool. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/process.h"

/* In the node's directory. There are two, because a machine with its own mgpud may join a cluster and leave
 * it again, and their epochs are unrelated. */
#define PERSIST_EPOCH_HERE    "epoch"             // for the mgpud of this machine
#define PERSIST_EPOCH_CLUSTER "cluster-epoch"     // for the cluster it joined
#define PERSIST_IDENTITY_SIZE (BOOT_ID_SIZE + 17) // boot id, mark, 16 digits

/* Opens STATE/node, created with mode 0700; it must belong to the current user. Returns a descriptor. */
int persist_open(const char *state_dir, struct error *err);

/* The highest epoch accepted, 0 if there was none. `file`: one of the above. */
int persist_load_epoch(int dirfd, const char *file, uint64_t *ret_epoch, struct error *err);

/* Durable when it returns. */
int persist_save_epoch(int dirfd, const char *file, uint64_t epoch, struct error *err);

/* The latest state of the controller's store reported to this node. It is in the spool, so that restoring a
 * copy of the state directory does not reset it. */
struct persist_seen {
    uint64_t epoch;   // 0: none
    int64_t began_ms; // start of the mgpud with this epoch; 0: unknown
    uint64_t event;
};

/* `file`: as above. Zeros if there is none that can be read. */
void persist_load_seen(int spoolfd, const char *file, struct persist_seen *ret);

/* If there is no space, the file is removed, because an old one would be wrong. */
void persist_save_seen(int spoolfd, const char *file, const struct persist_seen *seen);

/* Empties a spool of another boot, and marks it with this boot. `identity`: the boot id and a random number
 * of the spool, so that a spool that was lost or emptied is recognised as a new one. */
int persist_enter_boot(
    int spoolfd, const char *boot_id, char identity[PERSIST_IDENTITY_SIZE], struct error *err);
