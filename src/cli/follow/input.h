/* SPDX-License-Identifier: MIT */
/*
 * Standard input of this process, sent to a job submitted with input SPEC_INPUT_SENT. A separate process
 * sends it (input_sender.c): connecting to mgpud and slow readers may take time, and the job's output must
 * not wait for either.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/options/call.h"

enum input_terminal {
    INPUT_NO_TERMINAL,
    INPUT_TERMINAL, // a terminal counts, too, if this process is in its foreground
};

/* True if standard input may have something in it for the job: a pipe, a socket, a device, a file that is not
 * at its end. Not a terminal, /dev/null, or a descriptor that cannot be read. */
bool input_is_there(enum input_terminal terminal);

/* True if standard input is a file that has not been read yet. A shell's loop over its lines has read some.
 */
bool input_is_fresh_file(void);

/* Called after `taken` bytes were read from standard input, of which `unused` were not needed. A file is left
 * at the position reached. If all bytes of a pipe were unused, this is reported, because other readers may
 * miss them. */
void input_leave_rest(uint64_t taken, uint64_t unused);

struct input_feed {
    pid_t pid; // of the sender; 0: none
    int fd;    // orders for it
    int64_t attempt;
};

/* Starts the sender, which owns standard input from then on: this process has /dev/null instead, unless it is
 * a terminal. It sends nothing before input_feed_run. */
int input_feed_start(struct input_feed *feed, struct call *call, uint64_t job, struct error *err);

/* This attempt of the job runs. A later one gets the whole input again. NULL: there is no input. */
void input_feed_run(struct input_feed *feed, int64_t attempt);

/* The job has ended. NULL: there is no input. */
void input_feed_over(struct input_feed *feed);

/*
 * Ends the sender; unless the job has ended, its input ends here. Waits until the rest is where it belongs: a
 * file that the job has not read to its end is left at the position that the job has reached.
 */
void input_feed_end(struct input_feed *feed);
