/* SPDX-License-Identifier: MIT */
/* Shared by the personalities that submit jobs: their options are those of `submit` under other names. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "base/wording.h"
#include "cli/options/call.h"

/*
 * Sets an option of `submit` from the setter of another row; the options of the running verb begin with
 * struct submit_options. `option` is its long name, `shown` the name that was typed ("--mem"), used in
 * errors. `value` is NULL for a flag.
 */
int compat_set(void *call, const char *option, const char *shown, const char *value, struct error *err);

/* The end of a row (base/options.h) for such an option. */
#define COMPAT_OPTION(option) .set_key = compat_set_row, .key = (option)
int compat_set_row(void *call, const struct option_row *row, const char *value, struct error *err);

/* Uses the user's home directory, unless a directory was specified. */
int compat_go_home(struct call *call, struct error *err);

/* The log of job N, unless the server was started with --log-dir; for help texts. */
#define COMPAT_LOG_DIR ".local/state/mgpu/logs"
#define COMPAT_LOG     "~/" COMPAT_LOG_DIR "/N.log"

/* Rows of words for every personality: hints about options and forms of jobs that personalities lack. */
#define COMPAT_WORDS                                                                                         \
    { "-P NAME (--partition) is the partition; -p N is the priority", "a number from -1000 to 1000" },       \
    {                                                                                                        \
        "give a number, a range such as 42-45, an element 42.3, a name, or @ for your newest job",           \
            "give the id of a job, 8 letters and digits, or its number"                                      \
    }

/* A setting of the server, or NULL. The caller frees it. */
int compat_find_setting(struct call *call, const char *key, char **ret, struct error *err);

/*
 * Prints where the log of a background job will be, and the command that shows it, such as "mgpu logs".
 * `where`: "" or " on its node". The job has been submitted, so it is not an error if the server is
 * unreachable by now.
 */
void compat_print_log(struct call *call, long long job, const char *where, const char *command);

/* Runs another verb with these operands, as a separate call with this one's global options; returns its exit
 * status. */
int compat_run(const struct call *call, const struct command *command, int argc, char **argv);

/* Executes a program of the same installation, such as mgpud, in place of this one. `words` begins with its
 * name. Returns only on failure. */
int compat_execute(const struct strings *words, struct error *err);

/* The last value of an option ("--run-dir") among arguments of another program, or NULL. */
const char *compat_find_value(int argc, char *const *argv, const char *option);

/* The socket of the mgpud whose --run-dir is among these arguments; NULL: there is none. Owned by the
 * call. */
const char *compat_find_socket(struct call *call, int argc, char *const *argv);

/* The socket on which an mgpud started with these options will listen, by its own rules. The caller frees
 * it. */
char *compat_own_socket(int argc, char *const *argv);

/*
 * Allows root jobs if the server is started as root, as in a container or on a personal machine, and prints a
 * message. mgpud itself refuses jobs of root unless configured otherwise. No effect without root.
 */
void compat_allow_root(struct strings *words);
void compat_print_root_note(void);

/*
 * Completes the arguments of the mgpud that the command `door` will start: those of compat_allow_root, and
 * the options given after "--". Prints which users it serves: root too, or only this user, and how root would
 * start it. `serves`: which users it serves without root. `wording`: names to be replaced in its errors.
 */
enum compat_serves {
    COMPAT_SERVES_USER,   // who started it
    COMPAT_SERVES_GUESTS, // and processes of other users (mgpud --adopt-any-user)
};

void compat_complete_server(const struct call *call, const char *door, enum compat_serves serves,
    const struct wording *wording, struct strings *words, int argc, char *const *argv);
