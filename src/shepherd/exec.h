/* SPDX-License-Identifier: MIT */
/*
 * The last step to the command: search along PATH as execvp(3) does, and the hand-over through a setup shell.
 *
 * With a setup command the shell runs `eval SETUP || exit; exec mgpu-shepherd --exec FD`. FD is a memory file
 * with the command and the variables that the setup must not override; the same file takes back how far it
 * came. It is a file and not a pipe because a background process of the setup keeps it open for ever, and not
 * arguments because a sourced script looks at the shell's positional parameters.
 */
#pragma once

#include <stdbool.h>

#include "base/record.h"
#include "base/strings.h"
#include "shepherd/steps.h"

#define EXEC_FD    100 // beyond the descriptors that shell scripts use
#define PROGRAM_FD 101 // this program: its path may be closed to the user

/*
 * Executes argv[0], searched along `path` (NULL: the system's). argv[-2] and argv[-1] are overwritten when
 * the file is a script without "#!". Returns a positive errno. Allocates nothing: it runs between vfork and
 * exec.
 */
int exec_search(char **argv, char **environment, const char *path);

/* What exec_search() would fail with for that command, as far as can be told without executing it; 0: it
 * would not. */
int exec_check(char *name, const char *path);

/* A new argv with two free entries before the first; the words stay owned by `command`. The caller frees
 * `*ret - 2`. */
char **exec_argv(const struct strings *command);

/* The memory file for FD; `image` is that of a launch_spec. Returns its descriptor (close-on-exec) or a
 * negative errno. */
int exec_request_make(
    const struct strings *variables, const struct strings *command, const struct record_list *image);

/* What became of it: true when the setup had ended and the command's turn came; then *ret_step is what
 * failed, with its errno, or STEP_NONE. */
bool exec_request_is_reached(int fd, enum launch_step *ret_step, int *ret_error);

/* The text for `shell -c`. The caller frees it. */
char *exec_setup_script(const char *setup);

/* `mgpu-shepherd --exec FD`. Returns only on failure, with the exit status. */
int exec_main(int fd);
