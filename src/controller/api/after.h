/* SPDX-License-Identifier: MIT */
/* Looks up the dependencies of a request before the core is called. */
#pragma once

#include "controller/http/request.h"

/*
 * Calls `on_resolved` with the ends of those jobs that are no longer in memory; immediately if there are
 * none. `subject` is passed to it, or to `drop` if the client has left meanwhile.
 */
void after_resolve(struct request *request, const struct job_ask *ask, void *subject,
    void (*on_resolved)(struct request *request, void *subject, const struct core_facts *facts),
    void (*drop)(void *subject));
