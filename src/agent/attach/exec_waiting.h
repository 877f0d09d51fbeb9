/* SPDX-License-Identifier: MIT */
/*
 * Requests for exec steps of jobs that have not started on this node yet. A job on several nodes counts as
 * running as soon as it has started on one of them, so such a request may come before the start.
 */
#pragma once

#include "wire/message.h"

#define EXEC_WAITING_MAX 64U // the oldest one is dropped for another
#define EXEC_WAITING_MS                                                                                      \
    5000 // afterwards it is dropped: its client is about to be told that the node is silent

struct exec_waiting; // NULL: none

/* Keeps a copy of the request. Times are those of the boot clock. */
void exec_waiting_add(struct exec_waiting **list, const struct message_open_step *request, int64_t now_ms);

/* Removes the oldest request for this attempt into `ret`, which message_open_step_record clears. False: there
 * is none. */
bool exec_waiting_take(
    struct exec_waiting **list, const struct spool_id *id, int64_t now_ms, struct message_open_step *ret);

void exec_waiting_free(struct exec_waiting **list);
