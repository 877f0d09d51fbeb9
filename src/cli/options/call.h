/* SPDX-License-Identifier: MIT */
/* One call of the program: its global options, the connection, and the row of the verb that runs. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/options.h"
#include "base/strings.h"
#include "cli/api/client.h"
#include "cli/term/screen.h"
#include "cli/term/time_text.h"

/* What lists understand beside their filters (-o, -H, --sort). */
struct list_choice {
    const char *output; // "json", "csv", columns, ..., NULL: the default columns
    const char *sort;
    bool is_headless;
};

struct call {
    void *options; // the verb's own struct, zeroed before its options are read; first: OPTION_INNER
    const struct command *command;
    const char *socket, *host;
    enum color_when color;
    enum time_style times;
    bool is_json, is_quiet, is_help;
    bool is_followed;  // the job that is submitted: a signal is for the job once it is known
    bool was_own_told; // that a priority counts among the own jobs alone
    struct list_choice list;
    struct client client;
    struct strings defaults; // values from files, which the options point to
    json_t *env_files;       // what was read for --env-file: file to variables
    const char *layer;       // the file whose options are being read, or NULL
    char **words;            // the options of the command line, from words[1] on
    int n_words;
};

struct completion;
struct list_kind;

/* Prints the words that may come next; see complete.h. */
typedef void complete_fn(const struct completion *completion);

#define COMMAND_TABLES  3
#define COMMAND_ALIASES 5

/* A verb, or an action of one ("gpu pause"). Dispatch, help, completion and suggestions come from these rows.
 */
struct command {
    const char *name;
    const char *aliases[COMMAND_ALIASES]; // ended by NULL
    const char *usage;                    // what follows the name
    const char *help;                     // one line
    const char *option_hint; // what to do instead of an option that does not exist; NULL: read the help
    const char *detail;      // paragraphs for `mgpu help VERB`, or NULL
    const struct option_row *tables[COMMAND_TABLES]; // ended by NULL; the global options are always added
    size_t options_size;
    bool stops_at_operand; // what follows the first operand belongs to the user's command
    bool is_job_status;    // exits with the job's status, so that its own failures are 125
    bool takes_jobs;       // operands are jobs (for completion)
    bool makes_jobs;       // has the options of submit, and takes the defaults of submit for them
    bool takes_nothing;    // an operand is a mistake
    bool is_hidden;
    const struct command *const *actions; // "pause" and "resume" of `gpu`; ended by NULL; NULL: none
    const struct list_kind *list;         // whose columns -o and --sort take, or NULL
    complete_fn *complete_operand;        // NULL: jobs with takes_jobs, else a command with stops_at_operand
    const char *job_states;               // of takes_jobs: the only ones that make sense, or NULL
    bool is_silent;                       // says nothing of failures
    void (*print_more)(FILE *out);        // a table of its own for `mgpu help VERB`, or NULL
    /* The exit status, or a negative errno with a sentence. `argv` holds the operands alone. */
    int (*run)(struct call *call, int argc, char **argv, struct error *err);
    void (*clear)(void *options); // or NULL
};

extern const struct option_row call_global_rows[];
extern const struct option_row call_list_rows[];

/* The action of a verb by its last word, or NULL. */
const struct command *call_find_action(const struct command *command, const char *name);

/* Sets options that count less than those of the command line. */
typedef int call_layer_fn(struct call *call, void *arg, struct error *err);

/* Reads the options of the running verb once more from the beginning: one's own defaults, over them what
 * `layer` sets, over that the command line. The values that `layer` sets live as long as the call: call_keep.
 */
int call_read_again(struct call *call, call_layer_fn *layer, void *arg, struct error *err);

/* The option of the running verb with that long name, or NULL. */
const struct option_row *call_find_option(const struct call *call, const char *name);

/* The name of its option that was probably meant, or NULL. */
const char *call_nearest_option(const struct call *call, const char *name);

/* A copy that lives as long as the call. */
char *call_keep(struct call *call, const char *text);

/*
 * Runs one verb: reads its options and calls it. The result is the exit status; failures have been printed.
 */
int call_run(struct call *call, const struct command *command, int argc, char **argv);
