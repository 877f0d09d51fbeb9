/* SPDX-License-Identifier: MIT */
/* Verbs that apply to several jobs, and their combined exit status. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"
#include "cli/options/list.h"
#include "cli/options/selector.h"

/* Handles one job ("42", "42.3"); 0 or a negative errno with a sentence. */
typedef int (*jobs_each_fn)(struct call *call, const char *job, void *arg, struct error *err);

/*
 * Handles every job, also after a failure; each failure is printed. A single job keeps its own exit status;
 * of several, if some failed, EXIT_PARTLY, or if all failed with the same status, that one.
 */
int jobs_each(struct call *call, const struct strings *jobs, jobs_each_fn each, void *arg);

/* The same for changes of jobs: many are handled by several processes in parallel, in roughly this order. */
int jobs_each_beside(struct call *call, const struct strings *jobs, jobs_each_fn each, void *arg);

/* Pages about several jobs, separated by an empty line. */
struct jobs_pages {
    struct view view;
    bool is_next; // a page was printed before
};

/* jobs_each for the jobs selected by these words; `each` gets a struct jobs_pages. */
int jobs_show_each(struct call *call, int argc, char **argv, jobs_each_fn each, struct error *err);

/* To be called before a page is printed. */
void jobs_begin_page(struct jobs_pages *pages);

/* Posts `body` to /jobs/ID/ACTION for each selected job. `done` is the message on a terminal ("is
 * suspended"); NULL: the resulting state. */
int jobs_post_each(struct call *call, int argc, char **argv, const char *action, json_t *body,
    const char *done, struct error *err);
