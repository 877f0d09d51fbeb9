/* SPDX-License-Identifier: MIT */
/*
 * The words that may come next on a command line that is being typed. A line of output is a word, and after
 * a tab what it is. A line that begins with a colon leaves the rest to the shell: ":files", ":directories",
 * or ":commands". Failures are silent: whoever presses a key wants words, not sentences.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "cli/options/call.h"

#define COMPLETE_ANSWER_MS 150 // how long mgpud may take, so that the key press does not hang

struct completion {
    struct client *client;
    const struct command *command; // the verb, NULL before it is typed
    const char *first;             // its first operand, or NULL
    size_t operands;               // words typed after the verb that are no options
    const char *head;              // what stands before the part to complete: "--output=", "id,"
    const char *part;              // that part: words that do not begin so are left out
    FILE *out;
};

/* Prints the words that may come last in `argv`, which is what was typed after "mgpu". */
void complete_line(struct client *client, int argc, char *const *argv, FILE *out);

/* One word, unless it does not begin with what is typed or would need quotes; `about` may be NULL. */
void complete_add(const struct completion *completion, const char *word, const char *about);

/* Completes the last item of a list with commas. */
void complete_list(const struct completion *completion, complete_fn *complete);

/* The words of the value of an option. */
void complete_value(const struct completion *completion, const struct option_row *row);

/* Kinds of words. */
void complete_actions(const struct completion *completion);
void complete_commands(const struct completion *completion);
void complete_gpus(const struct completion *completion);
void complete_jobs(const struct completion *completion);
void complete_nodes(const struct completion *completion);
void complete_processes(const struct completion *completion);
void complete_reservations(const struct completion *completion);
void complete_signals(const struct completion *completion);
void complete_settings(const struct completion *completion);
void complete_tokens(const struct completion *completion);
void complete_users(const struct completion *completion);
void complete_verbs(const struct completion *completion);
void complete_job_names(const struct completion *completion);
