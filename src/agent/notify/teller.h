/* SPDX-License-Identifier: MIT */
/*
 * Tells somebody outside on behalf of a job's owner: sends a mail, runs a command, posts to a URL. Each is a
 * process that is that user, has no GPU and little of everything else, and is ended when its time is up.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "agent/confine/confine.h"
#include "agent/gpu/devices.h"
#include "agent/host/job_user.h"
#include "wire/message.h"

#define TELLERS_MAX      8U // at once
#define TELLERS_USER_MAX 2U // of these, of one user

struct tellers_options {
    const char *sendmail; // path
    struct job_users users;
    const struct gpu_devices *devices; // NULL: tellers are not kept from devices
};

/* What became of one. */
typedef void told_fn(void *arg, const struct message_told *told);

struct tellers;

/* `options` is copied, what it points to is borrowed. */
struct tellers *tellers_new(struct event_base *base, const struct confine *confine,
    struct confine_state *cells, const struct tellers_options *options, told_fn *on_told, void *arg);

/* `on_told` is called for each, unless the same is being told already: its answer is the answer. */
void tellers_tell(struct tellers *tellers, const struct message_tell *request);

/* True for a cell that is a teller's and no job's. */
bool tellers_is_cell(const struct spool_id *id);

/* Ends and removes a cell that an agent before this one left. */
void tellers_clear_cell(struct tellers *tellers, const struct spool_id *id);

/* Those that run are ended. NULL is fine. */
void tellers_free(struct tellers *tellers);
