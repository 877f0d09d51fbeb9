/* SPDX-License-Identifier: MIT */
/*
 * The commands of other small schedulers, for people who know them: other verbs and options over the same
 * requests. mgpu-compat is all of them, by the name that it is called by. A personality decides nothing; what
 * it cannot say in requests it does not do.
 */
#pragma once

#include <stdbool.h>

#include "cli/options/call.h"
#include "cli/options/talk.h"

/* A verb, by the name it has there. */
struct personality_verb {
    const char *name;
    const struct command *command;
};

struct personality {
    const char *name; // of the program: "mgpu_srun", a row of verbs/compat_names.c
    /* A program is one verb; or has verbs, with options before them. */
    const struct command *command;
    const struct personality_verb *verbs; // ended by a NULL name
    const struct option_row *first_rows;  // beside the global ones; they set members of struct call
    /* Called when these are read and before the verb runs, or NULL. */
    int (*prepare)(struct call *call, struct error *err);
    const char *socket;          // looked for after the usual places, or NULL
    const char *server;          // the command that starts one, for hints, or NULL
    const struct wording *words; // of hints, or NULL
};

/* Declared here, and a row of cli/compat.c. */
extern const struct personality personality_scheduler_server, personality_mgpu_srun, personality_mgpu_queue,
    personality_mgpu_cancel, personality_tgpu, personality_srun, personality_run_server, personality_tui,
    personality_scheduler, personality_simple_master, personality_simple_node, personality_simple_client;

/* Ended by NULL. */
extern const struct personality *const personalities[];

/* The personality that a program of that name (or path) has, or NULL. */
const struct personality *personality_find(const char *program);

/* Runs the words as that program would; argv[0] is its name. The result is the exit status. */
int personality_run(const struct personality *personality, int argc, char **argv);
