/* SPDX-License-Identifier: MIT */
/* What run and submit have in common: the options of a request, and sending it so that it arrives once. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"
#include "cli/submit/image.h"
#include "cli/submit/setup_text.h"

/* First member of the options of every verb that uses submit_rows. */
struct submit_options {
    json_t *ask; // what was asked for, as members of the request; NULL: nothing
    const char *directory, *fallback, *output, *error, *input, *export, *list;
    struct setup_wishes setup;
    struct image_wishes image;
    json_t *env_files;     // the variables of --env-file
    struct strings sweeps; // of submit: the values of --sweep

    bool is_held, is_dry, is_truncated;
    bool is_tty, is_never_tty; // -T, --no-tty
    bool is_mem_named;         // --mem was typed
    bool is_in_place;          // of submit: the file of a script is run, not its text
    struct strings after;      // the values of --after: names need the server to become numbers
    struct strings env;        // NAME=value, over the environment of this process
};

extern const struct option_row submit_rows[];

void submit_options_clear(void *options);

/* A command as the API wants it: its words, or the text for a shell. The caller releases it. */
int submit_command(int argc, char **argv, json_t **ret, struct error *err);

/* Always the words. */
int submit_words(int argc, char *const *argv, json_t **ret, struct error *err);

/*
 * The request as the API wants it, checked as far as this side can; `after` is left to submit_request. The
 * environment, the directory and the umask are those of this process. Entries of the environment that are no
 * UTF-8 cannot be sent: *ret_left_out counts them.
 */
int submit_build(const struct submit_options *options, json_t *command, json_t **ret, unsigned *ret_left_out,
    struct error *err);

/* The same with `after`, for which mgpud may be asked. */
int submit_request(
    struct call *call, json_t *command, json_t **ret, unsigned *ret_left_out, struct error *err);

/* A copy of a request is a job of its own with another key. */
int submit_renew_key(json_t *request, struct error *err);

/* How many bytes the file of -o holds now, which the job appends to; 0 where that is not one file. */
uint64_t submit_output_size(const struct submit_options *options);

void submit_tell_left_out(const struct call *call, unsigned left_out);

/* That, and what may mean something else than its author thinks. */
void submit_tell_notes(const struct call *call, unsigned left_out);

/* Sends a request; the answer is the job. Repeats itself, with the same key, while it is not known to have
 * arrived. */
int submit_send(struct call *call, const json_t *request, json_t **ret, struct error *err);

/* Builds and sends. With --dry-run it asks where and when it would start, prints that, and *ret stays as it
 * is.
 */
int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err);

/* Asks where and when a request would start, and prints that. */
int submit_dry(struct call *call, const json_t *request, struct error *err);

/* Sends an adoption for this process, with the options of adopt_rows; as submit_job. */
extern const struct option_row adopt_rows[];
int submit_adoption(struct call *call, uint32_t pid, json_t **ret, struct error *err);

/* Prints the id (or the job with --json) on stdout, and what may be useful now on a terminal. */
void submit_print(struct call *call, const json_t *job);
