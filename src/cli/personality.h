/* SPDX-License-Identifier: MIT */
/*
 * Names under which this program is installed beside its own. Each is a front door for people who know
 * another small scheduler: other verbs and options over the same requests. A personality decides nothing;
 * what it cannot say in requests it does not do.
 */
#pragma once

#include <stdbool.h>

#include "cli/call.h"

struct personality {
    const char *name; // of the program: "mgpu_srun"
    const char *help; // one line
    /* A program is one verb, whose row has the name ""; or has verbs, with options before them. */
    const struct command *command;
    const struct command *const *verbs;  // ended by NULL
    const struct option_row *first_rows; // beside the global ones; they set members of struct call
    /* Another program of that name that must stay the one that is found, or NULL: what it belongs to. */
    const char *rival;
};

/* Ended by NULL. */
extern const struct personality *const personalities[];

/* The personality that a program of that name (or path) has, or NULL. */
const struct personality *personality_find(const char *program);

/* Runs the words as that program would; argv[0] is its name. The result is the exit status. */
int personality_run(const struct personality *personality, int argc, char **argv);
