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

#define NOTIFIERS_MAX      8U // at once
#define NOTIFIERS_USER_MAX 2U // of these, of one user

struct notifiers_options {
    const char *sendmail; // path
    struct job_users users;
    const struct gpu_devices *devices; // NULL: notifiers are not kept from devices
};

/* What became of one. */
typedef void notified_fn(void *arg, const struct message_notified *told);

struct notifiers;

/* `options` is copied, what it points to is borrowed. */
struct notifiers *notifiers_new(struct event_base *base, const struct confine *confine,
    struct confine_state *cells, const struct notifiers_options *options, notified_fn *on_told, void *arg);

/* `on_told` is called for each, unless the same is being told already: its answer is the answer. */
void notifiers_notify(struct notifiers *notifiers, const struct message_notify *request);

/* True for a cell that is a notifier's and no job's. */
bool notifiers_is_cell(const struct spool_id *id);

/* Ends and removes a cell that an agent before this one left. */
void notifiers_clear_cell(struct notifiers *notifiers, const struct spool_id *id);

/* Those that run are ended. NULL is fine. */
void notifiers_free(struct notifiers *notifiers);
