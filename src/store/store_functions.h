/* SPDX-License-Identifier: MIT */
/* What our SQL can ask of the records that the tables hold as bytes. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"

/*
 * granted_milli(event): thousandths of GPUs that an `allocated` event gives. A job that shares a GPU by
 * memory counts as one that has it for itself, because how large the GPU is is not in the event.
 * usage_milli(usage): how busy the attempt's GPUs were on average, in thousandths; NULL: nobody measured.
 * requeue_cause(event): enum requeue_cause of a `requeued` event.
 */
int store_functions_add(sqlite3 *db, struct error *err);
