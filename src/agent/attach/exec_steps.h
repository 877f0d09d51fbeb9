/* SPDX-License-Identifier: MIT */
/* Answers OPEN_STEP (`mgpu exec`): additional steps of a job, each with its own shepherd. */
#pragma once

#include <event2/event.h>

#include "agent/launch/launcher.h"
#include "base/spool.h"
#include "wire/message.h"

#define EXEC_STEPS_MAX      256U // at a time on this node; more are refused
#define EXEC_STEPS_USER_MAX 64U  // of these

struct exec_steps;

/* `link_path` is the controller's socket, relative to the working directory. Both are borrowed. */
struct exec_steps *exec_steps_new(struct event_base *base, struct launcher *launcher, const char *link_path);
void exec_steps_free(struct exec_steps *exec_steps);

/* Starts an exec step, once its job has started here. If one with this key is already running, the connection
 * joins that one. */
void exec_steps_open(struct exec_steps *exec_steps, const struct message_open_step *request);

/* A client that has lost its connection has returned, or will not return. */
void exec_steps_rejoin(struct exec_steps *exec_steps, const struct message_rejoin_step *request);

/* A step of an earlier agent, found in the spool: watched while it is alive, else removed. */
void exec_steps_find(struct exec_steps *exec_steps, const struct spool_id *id);

/* The state of this step, or of a job (step 0), may have changed. */
void exec_steps_reconcile(struct exec_steps *exec_steps, const struct spool_id *id);
