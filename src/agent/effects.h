/* SPDX-License-Identifier: MIT */
/* Implements the effects of the agent's core: spool, launcher, cgroups, processes, link and timer. */
#pragma once

#include <event2/event.h>

#include "agent/agent_link.h"
#include "agent/attach/exec_steps.h"
#include "agent/attach/log_stream.h"
#include "agent/attach/port_streams.h"
#include "agent/confine/confine.h"
#include "agent/core/agent_core.h"
#include "agent/gpu/access.h"
#include "agent/gpu/check.h"
#include "agent/gpu/chores.h"
#include "agent/gpu/usage_watch.h"
#include "agent/launch/inspector.h"
#include "agent/launch/launcher.h"
#include "agent/notify/notifier.h"
#include "agent/park/parker.h"

struct effects;

/* What the effects use; all borrowed. */
struct effects_parts {
    struct event_base *base;
    struct launcher *launcher;
    const struct confine *confine;
    struct confine_state *cells;
    struct log_streams *streams;
    struct exec_steps *exec_steps;
    struct port_streams *ports;
    const char *link_path; // the controller's socket, relative to the spool
    struct usage_watch *watch;
    struct gpu_check *check;
    struct gpu_access *access; // NULL: not root
    struct gpu_chores *chores; // NULL: none are requested
    struct inspector *looks;
    struct notifiers *notifiers;
    struct parker *parker;
    struct mps *mps;                                              // NULL: none
    void (*release_gpus)(void *arg, const struct strings *uuids); // called with `arg`
    void *arg;
    int state_fd;           // persist.h
    const char *epoch_file; // in state_fd
};

/* Creates the effects and their core. */
struct effects *effects_new(const struct effects_parts *parts, uint64_t epoch);
void effects_free(struct effects *effects);

struct agent_core *effects_core(struct effects *effects);

/* Loads every attempt in the spool into the core, and removes cgroups that belong to none. */
int effects_load(struct effects *effects, struct error *err);

/* GPUs were checked: continues attempts that waited for it. */
void effects_gpus_checked(struct effects *effects);

/* Where messages are sent; NULL: nowhere. */
void effects_set_link(struct effects *effects, struct agent_link *link);
