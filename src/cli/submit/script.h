/* SPDX-License-Identifier: MIT */
/*
 * A script as the operand of submit: what its head asks for, and how it is run. The head is what stands
 * before the first line that is neither blank nor a comment. "#MGPU -g 2 -t 4h" lines have the options of
 * submit, and count less than the command line; "#SBATCH" lines (cli/submit/sbatch.h) count less than both.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

#define SCRIPT_HEAD_MAX (64U << 10) // bytes of a file that are looked at

struct script {
    const char *path; // as it was typed; borrowed
    char *head;       // its first bytes
    char *text;       // all of it, when it is sent along; NULL: it is run where it is
    bool is_executable, has_options;
    bool is_slurm; // it has #SBATCH lines
};

/*
 * True when `word` is a regular file of text that is executable, begins with "#!" or has option lines. A word
 * without a slash that is a program in PATH is that, unless the file has option lines. Cleared by
 * script_clear in any case.
 */
bool script_open(struct script *script, const char *word);

/* A program of that name can be executed from PATH. */
bool script_is_in_path(const char *word);

/* A call_layer_fn: sets the options of its lines; `arg` is the struct script. The error has file and line. */
int script_apply(struct call *call, void *arg, struct error *err);

/* Reads the text that is sent along, so that the job runs it whatever becomes of the file. A file that is no
 * text, or that this user cannot change, is run where it is. -EFBIG above SPEC_SCRIPT_MAX. */
int script_read(struct script *script, const struct call *call, struct error *err);

/* The words that run it: its absolute path when its text is sent along, else with its interpreter in front
 * when it is not executable. The path is made absolute too when the job starts in another directory. The
 * caller releases it. */
int script_command(const struct script *script, const char *directory, int argc, char **argv, json_t **ret,
    struct error *err);

void script_clear(struct script *script);

#define _cleanup_script_ _cleanup_(script_clear)
