/* SPDX-License-Identifier: MIT */
/* What run and submit have in common: the options of a request, and sending it so that it arrives once. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/call.h"

/* First member of the options of every verb that uses submit_rows. */
struct submit_options {
    const char *gpus, *gpu_ids, *gpu_mem, *priority, *name, *directory, *setup, *output;
    struct strings env; // NAME=value, over the environment of this process
};

extern const struct option_row submit_rows[];

void submit_options_clear(void *options);

/*
 * The request as the API wants it, checked as far as this side can. The environment, the directory and the
 * umask are those of this process. Entries of the environment that are no UTF-8 cannot be sent: *ret_left_out
 * counts them.
 */
int submit_build(const struct submit_options *options, int argc, char **argv, json_t **ret,
    unsigned *ret_left_out, struct error *err);

/* Builds and sends; the answer is the job. Repeats itself, with the same key, while it is not known to have
 * arrived. */
int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err);

/* Prints the id (or the job with --json) on stdout, and what may be useful now on a terminal. */
void submit_print(const struct call *call, const json_t *job);
