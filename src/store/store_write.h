/* SPDX-License-Identifier: MIT */
/* Batches into tables: one transaction, one sync. */
#pragma once

#include "base/error.h"
#include "store/store_thread.h"

struct store;

/* Begins, calls `write`, and commits; a full disk is tried once more after the reserve was given up. A
 * failure leaves nothing of it behind, unless COMMIT itself failed: then the outcome is not known. */
int store_write_transaction(struct store *store,
    int (*write)(struct store *store, void *arg, struct error *err), void *arg, struct error *err);

/* Writes a list of commit requests as one transaction. */
int store_write_batches(struct store *store, struct store_request *first, struct error *err);
