/* SPDX-License-Identifier: MIT */
/* Writes batches to the tables: one transaction, one sync. */
#pragma once

#include "base/error.h"
#include "store/store_thread.h"

struct store;

/* Begins a transaction, calls `write`, and commits; if the disk is full, removes the reserve and retries
 * once. A failure leaves no changes, unless COMMIT itself failed: then the outcome is unknown. */
int store_write_transaction(struct store *store,
    int (*write)(struct store *store, void *arg, struct error *err), void *arg, struct error *err);

/* Writes a list of commit requests as one transaction. */
int store_write_batches(struct store *store, struct store_request *first, struct error *err);
