/* SPDX-License-Identifier: MIT */
/*
 * Executing the command: search along PATH as in execvp(3), and the transfer through a setup shell.
 *
 * With a setup command the shell runs `eval SETUP || exit; exec mgpu-shepherd --exec FD`. FD is a memory file
 * with the command and the variables that the setup must not override; its result is written to the same
 * file. It is not a pipe, because a background process of the setup could keep it open forever, and not
 * arguments, because a sourced script sees the shell's positional parameters.
 */
#pragma once

#include <stdbool.h>

#include "base/record.h"
#include "base/strings.h"
#include "shepherd/steps.h"

#define EXEC_FD    100 // above the descriptors that shell scripts use
#define PROGRAM_FD 101 // this program: the user may not have access to its path

/*
 * Executes argv[0], searched along `path` (NULL: the system's). argv[-2] and argv[-1] are overwritten if the
 * file is a script without "#!". Returns a positive errno. Allocates nothing: it runs between vfork and exec.
 */
int exec_search(char **argv, char **environment, const char *path);

/* The error with which exec_search() would fail, as far as that can be determined without executing the
 * command; 0: none. */
int exec_check(char *name, const char *path);

/* A new argv with two free entries before the first; `command` keeps ownership of the words. The caller frees
 * `*ret - 2`. */
char **exec_argv(const struct strings *command);

/* Creates the memory file for FD; `image` is that of a launch_spec. Returns its descriptor (close-on-exec) or
 * a negative errno. */
int exec_request_make(
    const struct strings *variables, const struct strings *command, const struct record_list *image);

/* The result: true if the setup had ended and the command was about to be executed. *ret_step is then the
 * step that failed, with its errno, or STEP_NONE. */
bool exec_request_is_reached(int fd, enum launch_step *ret_step, int *ret_error);

/* The argument of `shell -c`. The caller frees it. */
char *exec_setup_script(const char *setup);

/* `mgpu-shepherd --exec FD`. Returns only on failure, with the exit status. */
int exec_main(int fd);
