/* SPDX-License-Identifier: MIT */
/* Verbs that do the same to several jobs, and the exit status of the whole. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"
#include "cli/options/list.h"
#include "cli/options/selector.h"

/* Does one job ("42", "42.3"); 0 or a negative errno with a sentence. */
typedef int (*jobs_each_fn)(struct call *call, const char *job, void *arg, struct error *err);

/*
 * Does every job, also after a failure; each failure is printed. A single one keeps its own exit status,
 * several jobs of which some failed give EXIT_PARTLY, or the status that all failures share when none
 * succeeded.
 */
int jobs_each(struct call *call, const struct strings *jobs, jobs_each_fn each, void *arg);

/* What is shown of several jobs, one after the other, with an empty line between. */
struct jobs_pages {
    struct view view;
    bool is_next; // something was shown before
};

/* jobs_each for the jobs that these words name; `each` gets a struct jobs_pages. */
int jobs_show_each(struct call *call, int argc, char **argv, jobs_each_fn each, struct error *err);

/* Before something of one more job is printed. */
void jobs_begin_page(struct jobs_pages *pages);

/* Posts `body` to /jobs/ID/ACTION for each of the jobs named. `done` says on a terminal what became of one
 * ("is suspended"); NULL: the state that it is in then. */
int jobs_post_each(struct call *call, int argc, char **argv, const char *action, json_t *body,
    const char *done, struct error *err);
