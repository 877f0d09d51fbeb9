/* SPDX-License-Identifier: MIT */
/* What the personalities that submit jobs have in common: their options are those of `submit` by other names.
 */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "base/wording.h"
#include "cli/options/call.h"

/*
 * Sets an option of `submit` from within the setter of another row; the options of the running verb begin
 * with struct submit_options. `option` is its long name, `shown` the name that was typed ("--mem"), which
 * errors use. `value` is NULL for a flag.
 */
int compat_set(void *call, const char *option, const char *shown, const char *value, struct error *err);

/* The end of a row (base/options.h) that is such an option of ours. */
#define COMPAT_OPTION(option) .set_key = compat_set_row, .key = (option)
int compat_set_row(void *call, const struct option_row *row, const char *value, struct error *err);

/* Runs in the user's home directory, as far as nothing else was said. */
int compat_go_home(struct call *call, struct error *err);

/* Runs another verb with these operands, as a call of its own with the global options of this one; its exit
 * status.
 */
int compat_run(const struct call *call, const struct command *command, int argc, char **argv);

/* Starts a program of the same installation, such as mgpud, in this one's place. `words` begins with its
 * name. Returns only when that failed. */
int compat_execute(const struct strings *words, struct error *err);

/* The last value of an option ("--run-dir") among words for another program, or NULL. */
const char *compat_find_value(int argc, char *const *argv, const char *option);

/*
 * A door that starts a server as root lets root use it, as in a container or on a machine of one's own, and
 * says so once. mgpud itself refuses jobs of root unless it is told otherwise. Nothing happens without root.
 */
void compat_allow_root(struct strings *words);
void compat_tell_root(void);

/*
 * Completes the words for a mgpud that `door`, the command that was typed, is about to start: those of
 * compat_allow_root, and the options that were typed behind "--". Says whom it serves: root too, or this user
 * alone, and how root would start it. `wording`: what its errors call by other names than this door.
 */
void compat_complete_server(const struct call *call, const char *door, const struct wording *wording,
    struct strings *words, int argc, char *const *argv);
