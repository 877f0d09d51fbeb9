/* SPDX-License-Identifier: MIT */
/* One call of the program: its global options, the connection, and the running verb. */
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
#include "cli/options/job_name.h"
#include "cli/term/screen.h"
#include "cli/term/time_text.h"

/* Options of lists besides their filters (-o, -H, --sort). */
struct list_choice {
    const char *output; // "json", "csv", columns, ..., NULL: the default columns
    const char *sort;
    bool is_headless;
};

struct call {
    void *options; // the verb's own struct, zeroed before its options are parsed; must be first: OPTION_INNER
    const struct command *command;
    const char *socket, *host;
    enum color_when color;
    enum time_style times;
    bool is_json, is_quiet, is_help;
    bool is_followed;           // the job that is submitted: a signal is for the job once it is known
    bool is_shown;              // the output of the job that is submitted is shown here
    bool is_own_priority_shown; // the message that a priority counts only among the user's own jobs was shown
    bool is_owner_shown;        // of srun: the owner of the server was reported
    struct list_choice list;
    struct client client;
    struct strings defaults; // values from files, which the options point to
    json_t *env_files;       // results of --env-file: file to variables
    const char *layer;       // the file whose options are being parsed, or NULL
    char **words;            // the options of the command line, from words[1] on
    int n_words;
};

struct completion;
struct list_kind;

/* Prints the possible next words; see complete.h. */
typedef void complete_fn(const struct completion *completion);

#define COMMAND_TABLES  3
#define COMMAND_ALIASES 5

/* A verb, or an action of one ("gpu pause"). Dispatch, help, completion and suggestions use these rows. */
struct command {
    const char *name;
    const char *aliases[COMMAND_ALIASES]; // terminated by NULL
    const char *usage;                    // text after the name
    const char *help;                     // one line
    const char *option_hint;              // hint for an unknown option; NULL: read the help
    const char *detail;                   // paragraphs for `mgpu help VERB`, or NULL
    const struct option_row
        *tables[COMMAND_TABLES]; // terminated by NULL; the global options are always added
    size_t options_size;
    bool stops_at_operand; // words after the first operand belong to the user's command
    bool is_job_status;    // exits with the job's status, and with 125 for its own failures
    bool takes_jobs;       // operands are jobs (for completion)
    bool makes_jobs;       // has the options of submit, and uses the defaults of submit for them
    bool takes_nothing;    // accepts no operands
    bool is_hidden;
    const struct command *const *actions; // "pause" and "resume" of `gpu`; terminated by NULL; NULL: none
    const char *list_command;             // with actions: the command that lists its objects, or NULL
    const struct list_kind *list;         // list whose columns are valid for -o and --sort, or NULL
    complete_fn *complete_operand;        // NULL: jobs with takes_jobs, else a command with stops_at_operand
    const char *job_states;               // with takes_jobs: the states to complete, or NULL
    enum job_name_use job_name_use;       // with takes_jobs: which of several jobs a name means
    bool is_silent;                       // does not report failures
    void (*print_more)(FILE *out);        // prints an additional table for `mgpu help VERB`, or NULL
    /* Returns the exit status, or a negative errno with a sentence. `argv` contains only the operands. */
    int (*run)(struct call *call, int argc, char **argv, struct error *err);
    void (*clear)(void *options); // or NULL
};

extern const struct option_row call_global_rows[];
extern const struct option_row call_list_rows[];

/* The action of a verb with this name, or NULL. */
const struct command *call_find_action(const struct command *command, const char *name);

/* Sets options with lower precedence than the command line. */
typedef int call_layer_fn(struct call *call, void *arg, struct error *err);

/* Parses the options of the running verb again from the beginning: the user's defaults, overridden by those
 * that `layer` sets, overridden by the command line. The values that `layer` sets must live as long as the
 * call: call_keep. */
int call_read_again(struct call *call, call_layer_fn *layer, void *arg, struct error *err);

/* The option of the running verb with that long name, or NULL. */
const struct option_row *call_find_option(const struct call *call, const char *name);

/* The most similar option name, or NULL. */
const char *call_nearest_option(const struct call *call, const char *name);

/* A copy that lives as long as the call. */
char *call_keep(struct call *call, const char *text);

/*
 * Runs one verb: parses its options and calls it. Returns the exit status; failures have been printed.
 */
int call_run(struct call *call, const struct command *command, int argc, char **argv);
