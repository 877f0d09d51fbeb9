/* SPDX-License-Identifier: MIT */
/* Shared by run and submit: the options of a request, and sending it exactly once. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"
#include "cli/submit/image.h"
#include "cli/submit/setup_text.h"

/* First member of the options of every verb that uses submit_rows. */
struct submit_options {
    json_t *ask; // the request's members; NULL: none
    const char *directory, *fallback, *output, *error, *input, *export, *list;
    struct setup_options setup;
    struct image_options image;
    json_t *env_files;     // the variables of --env-file
    struct strings sweeps; // of submit: the values of --sweep

    bool is_held, is_dry, is_truncated;
    bool is_tty, is_never_tty; // -T, --no-tty
    bool is_mem_named;         // --mem was typed
    bool is_in_place;          // of submit: the script file is run in place, its text is not sent
    struct strings after;      // values of --after: names are resolved by the server
    struct strings env;        // NAME=value, in addition to the environment of this process
};

extern const struct option_row submit_rows[];

void submit_options_clear(void *options);

/* A single word with blanks or shell characters is meant for a shell, unless a file has that name. */
bool submit_is_shell_text(int argc, char *const *argv);

/* A command in the API's form: its words, or text for a shell. The caller releases it. */
int submit_command(int argc, char **argv, json_t **ret, struct error *err);

/* Always the words. */
int submit_words(int argc, char *const *argv, json_t **ret, struct error *err);

/*
 * The request in the API's form, checked as far as possible on this side; `after` is added by submit_request.
 * Uses the environment, directory and umask of this process. Environment entries that are not UTF-8 cannot be
 * sent: *ret_left_out is their number.
 */
int submit_build(const struct submit_options *options, json_t *command, json_t **ret, unsigned *ret_left_out,
    struct error *err);

/* The same with `after`, which may query mgpud. */
int submit_request(
    struct call *call, json_t *command, json_t **ret, unsigned *ret_left_out, struct error *err);

/* Gives a request a new key, so that it is submitted as a separate job. */
int submit_renew_key(json_t *request, struct error *err);

/* Current size of the file of -o, to which the job appends; 0 if that is not a single file. */
uint64_t submit_output_size(const struct submit_options *options);

void submit_print_left_out(const struct call *call, unsigned left_out);

/* Prints notes: omitted variables, and options that may not have the effect the user expects. */
void submit_print_notes(const struct call *call, unsigned left_out);

/* Sends a request; the answer is the job. Repeats it, with the same key, until it is known to have
 * arrived. */
int submit_send(struct call *call, const json_t *request, json_t **ret, struct error *err);

/* Builds and sends a request. With --dry-run, prints where and when it would start, and *ret is unchanged. */
int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err);

/* Queries and prints where and when a request would start. */
int submit_dry(struct call *call, const json_t *request, struct error *err);

/* Sends an adoption for this process, with the options of adopt_rows; like submit_job. */
extern const struct option_row adopt_rows[];
int submit_adoption(struct call *call, uint32_t pid, json_t **ret, struct error *err);

/* Prints the id (or the job with --json) on stdout, and hints on a terminal. */
void submit_print(struct call *call, const json_t *job);
