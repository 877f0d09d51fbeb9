/* SPDX-License-Identifier: MIT */
/* The jobs that a request would wait for, looked up before the core is asked. */
#pragma once

#include "controller/http/request.h"

/*
 * Calls `on_settled` with how those jobs ended that are no longer in memory; at once when there are none.
 * `subject` is handed on to it, or to `drop` when the client has gone meanwhile.
 */
void after_settle(struct request *request, const struct job_ask *ask, void *subject,
    void (*on_settled)(struct request *request, void *subject, const struct core_facts *facts),
    void (*drop)(void *subject));
