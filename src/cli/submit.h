/* SPDX-License-Identifier: MIT */
/* What run and submit have in common: the options of a request, and sending it so that it arrives once. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/call.h"

/* First member of the options of every verb that uses submit_rows. */
struct submit_options {
    json_t *ask; // what was asked for, as members of the request; NULL: nothing
    const char *directory, *setup, *output;
    bool is_held, is_dry;
    struct strings after; // the values of --after: names need the server to become numbers
    struct strings env;   // NAME=value, over the environment of this process
};

extern const struct option_row submit_rows[];

void submit_options_clear(void *options);

/*
 * The request as the API wants it, checked as far as this side can; `after` is left to submit_job. The
 * environment, the directory and the umask are those of this process. Entries of the environment that are no
 * UTF-8 cannot be sent: *ret_left_out counts them.
 */
int submit_build(const struct submit_options *options, int argc, char **argv, json_t **ret,
    unsigned *ret_left_out, struct error *err);

/* Builds and sends; the answer is the job. Repeats itself, with the same key, while it is not known to have
 * arrived. */
int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err);

/*
 * --dry-run: asks where and when it would start, and prints that instead of submitting it. The result is the
 * exit status, or a negative errno.
 */
int submit_dry(struct call *call, int argc, char **argv, struct error *err);

/* A random submit key: with it the request can be repeated without harm. */
int submit_add_key(json_t *request, struct error *err);

/* Sends a lease for this process, with the options of lease_rows; as submit_job. */
extern const struct option_row lease_rows[];
int submit_lease(struct call *call, uint32_t pid, json_t **ret, struct error *err);

/* Prints the id (or the job with --json) on stdout, and what may be useful now on a terminal. */
void submit_print(const struct call *call, const json_t *job);
