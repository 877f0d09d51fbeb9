/* SPDX-License-Identifier: MIT */
/*
 * The options of a Slurm command as a table, used for the command line, #SBATCH lines (also those that
 * `mgpu submit` reads) and SBATCH_ variables, --help, --usage and docs/slurm.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

#define SLURM_VERSION "22.05.8" // the version whose messages and formats are used

struct slurm_option;

/* A command of Slurm. */
struct slurm_program {
    const char *name;
    unsigned bit;                       // in the rows of its options
    const char *usage;                  // text after the name
    const char *help;                   // one line
    const struct slurm_option *options; // terminated by a NULL name; NULL: none
    /* Returns the exit status. `argv` begins with the name, and has no option for slurm_options_answer(). */
    int (*run)(const struct slurm_program *program, int argc, char **argv);
};

enum {
    SLURM_SBATCH = 1,
    SLURM_SRUN = 2,
    SLURM_SALLOC = 4,
    SLURM_SQUEUE = 8,
    SLURM_SACCT = 16,
    SLURM_SINFO = 32,
    SLURM_SCANCEL = 64,
    SLURM_SCONTROL = 128,
    SLURM_RESTD = 256,
    SLURM_SACCTMGR = 512,
    SLURM_SSHARE = 1024,
    SLURM_SPRIO = 2048,
    SLURM_SDIAG = 4096,
    SLURM_SSTAT = 8192,
    SLURM_SATTACH = 16384,
    SLURM_SBCAST = 32768,
    SLURM_SEFF = 65536,
    SLURM_SREPORT = 131072,
};
#define SLURM_SUBMITS (SLURM_SBATCH | SLURM_SRUN | SLURM_SALLOC)

enum slurm_effect {
    SLURM_DONE,     // supported by mgpu
    SLURM_RECORDED, // kept with the job and displayed, without any effect
    SLURM_ACCEPTED, // accepted without effect
    SLURM_REFUSED,  // refused: it would change the meaning and is not supported
};

typedef int slurm_set_fn(
    void *target, const struct slurm_option *option, const char *value, struct error *err);

struct slurm_option {
    const char *name;
    int letter;           // 0: none
    const char *argument; // NULL: a flag; "[x]": optional
    unsigned programs;    // programs that have it, as bits
    enum slurm_effect effect;
    slurm_set_fn *set;    // for SLURM_DONE; value NULL: a flag, or omitted
    const char *variable; // environment variable without the prefix SBATCH_, SRUN_ ...; NULL: none
    const char *help;     // for SLURM_REFUSED: the reason
    const char *key;      // for `set`: the option to set; for SLURM_RECORDED: the name to keep it under
    size_t member;        // of the target, for slurm_keep_text() and slurm_keep_flag()
};

/* Rows of a table: an option that mgpu does, one that makes no difference here, and one that is refused, with
 * the reason. */
#define SLURM_ROW(program, name_, letter_, argument_, set_, variable_, help_)                                \
    {                                                                                                        \
        .name = name_, .letter = letter_, .argument = argument_, .programs = program, .effect = SLURM_DONE,  \
        .variable = variable_, .help = help_, .set = set_                                                    \
    }
/* For `set`: the value, or true, is all that is stored in a member of the target. */
#define SLURM_TEXT_OF(type, member_) slurm_keep_text, .member = offsetof(type, member_)
#define SLURM_FLAG_OF(type, member_) slurm_keep_flag, .member = offsetof(type, member_)
#define SLURM_NO_EFFECT(program, name, letter, argument, variable, help)                                     \
    {                                                                                                        \
        name, letter, argument, program, SLURM_ACCEPTED, NULL, variable, help, NULL                          \
    }

#define SLURM_REFUSE(program, name, letter, argument, why)                                                   \
    {                                                                                                        \
        name, letter, argument, program, SLURM_REFUSED, NULL, NULL, why, NULL                                \
    }

/* Why --yaml of lists is refused. */
#define SLURM_NO_YAML "--json prints the same as JSON"

/* How the commands print the sentence of an error: `kind` of struct error. */
enum slurm_words {
    SLURM_ERROR,  // "sbatch: error: SENTENCE"
    SLURM_FATAL,  // "sbatch: fatal: SENTENCE"
    SLURM_NAMED,  // "sbatch: SENTENCE"
    SLURM_BARE,   // "SENTENCE"
    SLURM_BOTH,   // "sbatch: error: SENTENCE", and the hint in the same way
    SLURM_LED,    // the hint alone, and then "sbatch: error: SENTENCE"
    SLURM_DOOMED, // "sbatch: error: SENTENCE", and "sbatch: fatal: HINT"
    SLURM_SAID,   // nothing: it has been printed
    SLURM_WORDS,
};

struct slurm_reading;

/* Called for an option that has no effect on the job. */
typedef void slurm_record_fn(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value);

/* Called for each option, with the problem of its value or NULL. */
typedef void slurm_report_fn(const struct slurm_reading *reading, const struct slurm_option *option,
    const char *value, const struct error *problem);

struct slurm_reading {
    const struct slurm_program *program;
    void *target;            // initialised with the options
    slurm_report_fn *report; // or NULL; with it no option is an error
    slurm_record_fn *record; // or NULL, for a command that keeps none
    slurm_record_fn *ignore; // or NULL; called for each option of SLURM_ACCEPTED
    slurm_record_fn *seen;   // or NULL; called for each option that is not refused
    const char *where;       // "script.sh: line 3", or NULL: the command line
    unsigned line;           // of a script
    bool is_strict;          // problems are errors with a place; getopt_long() prints none of them
};

/*
 * Parses options like getopt_long(3), whose messages Slurm also prints. With `stops`, the first operand ends
 * them. *ret_first is the first operand; operands are moved to the end of argv. -ENOENT: an unknown option or
 * a missing value, which has been reported.
 */
int slurm_options_read(const struct slurm_reading *reading, int argc, char **argv, bool stops, int *ret_first,
    struct error *err);

/* Sets the options for which a variable PREFIX_NAME is set in the environment. */
int slurm_options_from_environment(
    const struct slurm_reading *reading, const char *prefix, struct error *err);

/* Sets the option for that variable, if it is set. */
int slurm_option_from_variable(
    const struct slurm_reading *reading, const char *variable, const char *option, struct error *err);

/* The row with that name or letter that this program has, or NULL. */
const struct slurm_option *slurm_option_find(const struct slurm_program *program, const char *name);

/* Handles --help, --usage and --version; true if one was given. */
bool slurm_options_answer(const struct slurm_program *program, int argc, char **argv);

/* True if its argument may be omitted: "[0|1]", but not "[type:]n". */
bool slurm_option_is_optional(const struct slurm_option *option);

slurm_set_fn slurm_keep_text;   // const char *, borrowed
slurm_set_fn slurm_keep_flag;   // bool
slurm_set_fn slurm_set_nothing; // for options that are only counted among those that were given

/* A slurm_set_fn for --clusters: there is one, whose name is SLURM_CLUSTER; "all" is that, too. */
int slurm_set_clusters(void *target, const struct slurm_option *option, const char *value, struct error *err);

/* "done", "recorded", ...: for the documentation. */
/* Slurm's sentences for a value that an option does not take: its commands exit with 255 after the
 * first, and with 1 after the second. Both return the negative error number. */
int slurm_bad_value(const struct slurm_option *option, struct error *err);
int slurm_bad_number(const struct slurm_option *option, const char *value, struct error *err);

/* Whether the error is that of slurm_bad_value(). */
bool slurm_is_bad_value(const struct error *err);

const char *slurm_effect_name(enum slurm_effect effect);
