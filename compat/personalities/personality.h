/* SPDX-License-Identifier: MIT */
/*
 * The commands of other small schedulers: other verbs and options for the same requests. mgpu-compat provides
 * all of them, depending on the name it is called by. A personality makes no decisions; it supports only what
 * the requests support.
 */
#pragma once

#include <stdbool.h>

#include "cli/options/call.h"
#include "cli/options/talk.h"

/* A verb, by its name in that program. */
struct personality_verb {
    const char *name;
    const struct command *command;
};

struct personality {
    const char *name; // of the program: "mgpu_srun", a row of verbs/compat_names.c
    /* A program either is one verb, or has verbs, with options before them. */
    const struct command *command;
    const struct personality_verb *verbs; // terminated by a NULL name
    const struct option_row *first_rows;  // in addition to the global ones; they set members of struct call
    /* Called after these are parsed and before the verb runs, or NULL. */
    int (*prepare)(struct call *call, struct error *err);
    const char *socket;          // searched after the default places, or NULL
    const char *server;          // the command that starts a server, for hints, or NULL
    const struct wording *words; // for hints, or NULL
};

/* Each is declared here and has a row in compat/personality_table.c. */
extern const struct personality personality_scheduler_server, personality_mgpu_srun, personality_mgpu_queue,
    personality_mgpu_cancel, personality_tgpu, personality_srun, personality_run_server, personality_tui,
    personality_scheduler, personality_simple_master, personality_simple_node, personality_simple_client;

/* Terminated by NULL. */
extern const struct personality *const personalities[];

/* The personality of a program with that name (or path), or NULL. */
const struct personality *personality_find(const char *program);

/* Behaves like that program; argv[0] is its name. Returns the exit status. */
int personality_run(const struct personality *personality, int argc, char **argv);
