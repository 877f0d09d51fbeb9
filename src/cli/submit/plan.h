/* SPDX-License-Identifier: MIT */
/*
 * The jobs that one `mgpu submit` makes, complete and checked before the first is sent. They come in units:
 * one command, one line or one document of a file, with one job or those of its sweep. A unit may need
 * others, by name. Units are sent in an order in which what is needed comes first, else in that of the file.
 * When one is refused, those that were sent before it are cancelled.
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
    size_t unit;      // which that is
};

struct plan_unit {
    char *name;   // by which others need it, or NULL
    char *origin; // "job.yaml:3", or NULL
    struct plan_need *needs;
    size_t n_needs;
    json_t *requests; // array
    json_t *ids;      // of the jobs sent, array
};

struct plan {
    struct plan_unit *units;
    size_t count, n_jobs;
    unsigned left_out; // variables that could not be said
};

/* Adds a unit from a request and the sweeps; `origin` and `name` may be NULL. */
int plan_add(struct plan *plan, const char *origin, const char *name, json_t *request,
    const struct strings *sweeps, struct error *err);

/* The unit added last needs that name. */
void plan_add_need(struct plan *plan, const char *name, const char *kind, const char *origin);

/* Sends all, and prints the ids on the way; with --dry-run it says what would be. Nothing is sent when a need
 * is wrong. */
int plan_run(struct call *call, struct plan *plan, struct error *err);

void plan_clear(struct plan *plan);

#define _cleanup_plan_ _cleanup_(plan_clear)
