/* SPDX-License-Identifier: MIT */
/*
 * The jobs of one `mgpu submit`, complete and checked before the first is sent. They are grouped in units:
 * one command, line or document, with one job or those of its sweep. Units may depend on others by name.
 * Units are sent after those they depend on, otherwise in the order of the file. If one is refused, those
 * already sent are cancelled.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

#define PLAN_JOBS_MAX 10000U

struct plan_need {
    char *name, *origin;
    const char *kind; // "ok", "any" or "fail"
    size_t unit;      // the unit with that name
};

struct plan_unit {
    char *name;   // by which other units refer to it, or NULL
    char *origin; // "job.yaml:3", or NULL
    struct plan_need *needs;
    size_t n_needs;
    json_t *requests; // array
    json_t *ids;      // of the jobs sent, array
};

struct plan {
    struct plan_unit *units;
    size_t count, n_jobs;
    unsigned left_out; // variables that could not be sent
};

/* Adds a unit with a request and its sweeps; `origin` and `name` may be NULL. */
int plan_add(struct plan *plan, const char *origin, const char *name, json_t *request,
    const struct strings *sweeps, struct error *err);

/* Makes the last unit depend on that name. */
void plan_add_need(struct plan *plan, const char *name, const char *kind, const char *origin);

/* Sends all units and prints the ids; with --dry-run prints what would be sent. If a dependency is invalid,
 * nothing is sent. */
int plan_run(struct call *call, struct plan *plan, struct error *err);

void plan_clear(struct plan *plan);

#define _cleanup_plan_ _cleanup_(plan_clear)
