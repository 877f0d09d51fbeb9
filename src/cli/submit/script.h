/* SPDX-License-Identifier: MIT */
/*
 * A script as the operand of submit: the options in its head, and how it is run. The head ends before the
 * first line that is neither blank nor a comment. "#MGPU -g 2 -t 4h" lines contain options of submit; the
 * command line takes precedence over them, and they take precedence over "#SBATCH" lines
 * (cli/submit/sbatch.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

#define SCRIPT_HEAD_MAX (64U << 10) // bytes of a file that are read

struct script {
    const char *path; // as typed; borrowed
    char *head;       // its first bytes
    char *text;       // the whole text, if it is sent; NULL: the file is run in place
    bool is_executable, has_options;
    bool is_slurm;  // it has #SBATCH lines
    bool is_wide;   // UTF-16: it cannot be run
    bool is_marked; // begins with a byte order mark, which `head` and `text` do not have
};

/*
 * True if `word` is a regular text file that is executable, begins with "#!" or has option lines. A word
 * without a slash that is also a program in PATH is that program, unless the file has option lines. To be
 * cleared with script_clear in any case.
 */
bool script_open(struct script *script, const char *word);

/* The same with entries that are relative to `directory`, unless `is_absolute_only`. */
bool script_find_in_path(const char *word, const char *directory, bool is_absolute_only);

/* -EINVAL if it cannot be run because of its encoding: UTF-16, or a byte order mark in a file that is run in
 * place. */
int script_check(const struct script *script, bool is_in_place, struct error *err);

/* A call_layer_fn: sets the options of its lines; `arg` is the struct script. Errors include file and
 * line. */
int script_apply(struct call *call, void *arg, struct error *err);

/* Warns about option lines after the head, which have no effect. */
void script_warn_late(const struct script *script);

/* Reads the text to be sent, so that later changes of the file do not affect the job. A file that is not
 * text, or that this user cannot change, is run in place. -EFBIG above SPEC_SCRIPT_MAX. */
int script_read(struct script *script, const struct call *call, struct error *err);

/* The command that runs it: its absolute path if its text is sent, else preceded by its interpreter if it is
 * not executable. The path is also made absolute if the job starts in another directory. The caller releases
 * it. */
int script_command(const struct script *script, const char *directory, int argc, char **argv, json_t **ret,
    struct error *err);

void script_clear(struct script *script);

#define _cleanup_script_ _cleanup_(script_clear)
