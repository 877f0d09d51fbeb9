/* SPDX-License-Identifier: MIT */
/*
 * The signals that ask a program to exit: SIGINT, SIGTERM, SIGHUP. One that was ignored when the program
 * began stays ignored: nohup, and shells that start a command in the background without job control, protect
 * a command in this way. A blocked signal reaches a signalfd even if it is ignored, so every program that
 * blocks signals asks here which.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

/* Whether this process ignores the signal. Nothing in this program may have set its action before. */
bool leaving_is_ignored(int number);

/* Those of the three signals that are not ignored. */
void leaving_signals(sigset_t *ret);

/* Adds the signal unless it is ignored. */
void leaving_signals_add(sigset_t *set, int number);

/* From now on, writing without a reader is an error instead of SIGPIPE. True if it was so when the program
 * began. */
bool leaving_ignore_unread(void);

/* For a child that is about to become another program: SIGPIPE as it was when this one began. */
void leaving_restore_unread(void);

/* Blocks the set and returns a signalfd for it (close on exec, never blocks), or a negative errno. */
int leaving_signals_open(const sigset_t *set, struct error *err);

/* For a command that may end the job in which it runs, as a job that requeues itself does: SIGTERM, which all
 * processes of the job get, waits until the command has ended, and its caller learns that it has succeeded.
 */
void leaving_outlive_own_end(void);
