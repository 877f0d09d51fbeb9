/* SPDX-License-Identifier: MIT */
/* The agent core's effects on the real world: spool, launcher, cgroups, processes, link and timer. */
#pragma once

#include <event2/event.h>

#include "agent/core/agent_core.h"
#include "agent/confine/confine.h"
#include "agent/gpu/check.h"
#include "agent/gpu/usage_watch.h"
#include "agent/attach/exec_steps.h"
#include "agent/launch/launcher.h"
#include "agent/agent_link.h"
#include "agent/launch/inspector.h"
#include "agent/attach/log_stream.h"
#include "agent/notify/notifier.h"

struct effects;

/* What effects work on; all is borrowed. */
struct effects_parts {
    struct event_base *base;
    struct launcher *launcher;
    const struct confine *confine;
    struct confine_state *cells;
    struct log_streams *streams;
    struct exec_steps *exec_steps;
    const char *link_path; // the controller's socket, seen from the spool
    struct usage_watch *watch;
    struct gpu_check *check;
    struct inspector *looks;
    struct notifiers *notifiers;
    void (*release_gpus)(void *arg, const struct strings *uuids); // called with `arg`
    void *arg;
    int state_fd;           // persist.h
    const char *epoch_file; // there
};

/* Makes the effects and the core that has them. */
struct effects *effects_new(const struct effects_parts *parts, uint64_t epoch);
void effects_free(struct effects *effects);

struct agent_core *effects_core(struct effects *effects);

/* Loads every attempt that the spool holds into the core, and tidies cells that belong to none. */
int effects_load(struct effects *effects, struct error *err);

/* The GPUs were looked at: what waited for that goes on. */
void effects_gpus_looked_at(struct effects *effects);

/* Where messages go; NULL: nowhere. */
void effects_set_link(struct effects *effects, struct agent_link *link);
