/* SPDX-License-Identifier: MIT */
/*
 * Shell completion: the words that may come next on a command line. Each output line is a word, optionally
 * followed by a tab and its description. A line that begins with a colon leaves completion to the shell:
 * ":files", ":directories", or ":commands". Errors are not reported.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "cli/options/call.h"

#define COMPLETE_ANSWER_MS 150 // maximum time for mgpud to answer, so that completion does not hang

struct completion {
    struct client *client;
    const struct command *command; // the verb, NULL if not typed yet
    const char *first;             // its first operand, or NULL
    size_t operands;               // number of words after the verb that are not options
    const char *head;              // the text before the part to complete: "--output=", "id,"
    const char *part;              // that part: only words that begin with it are printed
    FILE *out;
};

/* Prints the possible last words of `argv`, the command line after "mgpu". */
void complete_line(struct client *client, int argc, char *const *argv, FILE *out);

/* Prints a word, unless it does not match or would need quotes; `about` may be NULL. */
void complete_add(const struct completion *completion, const char *word, const char *about);

/* Completes the last item of a comma-separated list. */
void complete_list(const struct completion *completion, complete_fn *complete);

/* Completes the value of an option. */
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
