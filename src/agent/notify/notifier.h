/* SPDX-License-Identifier: MIT */
/*
 * Delivers notifications for a job's owner: sends a mail, runs a command, posts to a URL. Each is a process
 * that runs as that user, has no GPUs and limited resources, and is killed when its time is up.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "agent/confine/confine.h"
#include "agent/gpu/devices.h"
#include "agent/host/job_user.h"
#include "wire/message.h"

#define NOTIFIERS_MAX      8U // at a time
#define NOTIFIERS_USER_MAX 2U // of these, for one user

struct notifiers_options {
    const char *sendmail; // path
    struct job_users users;
    const struct gpu_devices *devices; // NULL: device access of notifiers is not restricted
};

/* The result of a notification. */
typedef void notified_fn(void *arg, const struct message_notified *result);

struct notifiers;

/* Copies `options`, and borrows what it points to. */
struct notifiers *notifiers_new(struct event_base *base, const struct confine *confine,
    struct confine_state *cells, const struct notifiers_options *options, notified_fn *on_notified,
    void *arg);

/* `on_told` is called for each, unless the same notification is already in progress. */
void notifiers_notify(struct notifiers *notifiers, const struct message_notify *request);

/* True if a cgroup belongs to a notifier and not to a job. */
bool notifiers_is_cell(const struct spool_id *id);

/* Kills and removes a cgroup left behind by an earlier agent. */
void notifiers_clear_cell(struct notifiers *notifiers, const struct spool_id *id);

/* Kills running ones. NULL is allowed. */
void notifiers_free(struct notifiers *notifiers);
