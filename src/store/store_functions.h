/* SPDX-License-Identifier: MIT */
/* SQL functions on the records that the tables contain as bytes. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"

/*
 * granted_milli(event): thousandths of GPUs in an `allocated` event. A GPU shared by memory counts as a whole
 * one, because its size is not in the event. usage_milli(usage): mean utilization of the attempt's GPUs in
 * thousandths; NULL: not measured. requeue_cause(event): enum requeue_cause of a `requeued` event.
 * event_parked_ms(event): how long an attempt was parked, of its `ended` or `requeued` event.
 * event_end(event), event_exit_code(event): enum job_end and exit status, of `ended` and `member` events.
 * earlier_attempt(event, node, start): the record of job/earlier.h, from the `requeued` event of an attempt,
 * its node, and its `started` event, which may be NULL; NULL: it had no output.
 */
int store_functions_add(sqlite3 *db, struct error *err);
