/* SPDX-License-Identifier: MIT */
/*
 * The agent's core: which attempts this node knows and what follows from a message, a hint or the passing of
 * time. It knows no socket, no file, no process and no clock: every input carries the time, everything it
 * does goes through struct agent_effects. The decisions themselves are the table in agent/core/attempt.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/attempt.h"
#include "agent/host/persist.h"
#include "base/error.h"
#include "wire/message.h"

/* A shepherd that ends this often before its verdict is not tried again. */
#define AGENT_STARTS_MAX 3U

struct agent_core;

/*
 * The outside. Calls are answered at once and may not call back into the core. Those that can fail return a
 * negative errno with a sentence.
 */
struct agent_effects {
    void *arg;
    /* Queues one message to the controller; only called while the link is up. */
    void (*send)(void *arg, const struct record_type *type, const void *message);
    /* Looks at an attempt. Fills a zeroed sight, whose records become the caller's. `is_reported`: its end
     * was reported, and its records are not needed any more. */
    void (*observe)(void *arg, const struct spool_id *id, bool is_reported, struct attempt_sight *sight);
    /* Writes the spool entry; an attempt that can never run here gets an exit record that says why. On
     * failure this node cannot do it now. -EINPROGRESS: its user is being looked up, and the core is told to
     * look when that is done. */
    int (*stage)(void *arg, const struct message_launch *launch, struct error *err);
    /* Starts a shepherd on a staged entry, or with `adopt` one that finishes it. Its end is noticed. 1: this
     * entry needs no shepherd, and there is something new to see already.
     * -EINPROGRESS: its GPUs are not ready yet, and the core is told to look when they are. */
    int (*start)(void *arg, const struct spool_id *id, bool adopt, struct error *err);
    /* Sees to it that the end of a shepherd that was found alive is noticed; false when that cannot be. */
    bool (*watch)(void *arg, const struct spool_id *id, const struct attempt_sight *sight);
    /* Settles "nogo", making the entry when there is none. Returns the enum spool_verdict that stands. */
    int (*settle_nogo)(void *arg, const struct spool_id *id, uint64_t token, struct error *err);
    /* Tells the living shepherd; -EAGAIN and the like when it does not listen yet. 1: as of `start`. */
    int (*command)(void *arg, const struct spool_id *id, uint32_t signal, int64_t grace_ms);
    void (*kill)(void *arg, const struct spool_id *id);
    /* Removes spool entry, durable copy and cgroups. -EBUSY while a process of it is left. */
    int (*remove)(void *arg, const struct spool_id *id);
    /* Makes the epoch durable before anything is done in its name. */
    int (*save_epoch)(void *arg, uint64_t epoch, struct error *err);
    void (*open_log)(void *arg, const struct message_open_log *request);
    /* Terminals and exec_steps are looked for in the spool; their streams tell what became of it. */
    void (*open_terminal)(void *arg, const struct message_open_terminal *request);
    void (*open_step)(void *arg, const struct message_open_step *request);
    /* One timer: call agent_core_timer() at that time; the last call counts. */
    void (*arm)(void *arg, int64_t boot_ms);
    /* Inspects a process to be adopted; agent_core_process() says later what was seen. */
    void (*inspect)(void *arg, const struct message_inspect *request);
    /* Keeps the terms with the attempt, and tells its shepherd to look at them. */
    int (*update)(void *arg, const struct spool_id *id, const struct spool_terms *terms, struct error *err);
    /* Tells somebody outside on behalf of a job's owner; agent_core_notified() says later what became of it.
     */
    void (*notify)(void *arg, const struct message_notify *request);
    /* Has a living shepherd that waits at its gate settle the verdict; harmless to any other. `port`: where
     * the ranks meet, 0: not known. */
    int (*release)(void *arg, const struct spool_id *id, uint32_t port);
    /* Has these GPUs (their UUIDs) let go of, and all others taken back. */
    void (*release_gpus)(void *arg, const struct strings *uuids);
    /* Lets the shepherd of the attempt know that it may run until then. */
    int (*renew)(void *arg, const struct spool_id *id, int64_t until_ms);
    /* Nobody answers on the link: it is to end, as if the controller had closed it. Not from within. */
    void (*hang_up)(void *arg);
    /* Makes the entry of an attempt that is over anew from the durable copy of its exit record; -ENOENT when
     * there is none. */
    int (*restore)(void *arg, const struct spool_id *id);
    /* Keeps it for agents after this one. */
    void (*save_seen)(void *arg, const struct persist_seen *seen);
};

/* `epoch` is the highest one that was ever obeyed here, 0 for none. */
struct agent_core *agent_core_new(const struct agent_effects *effects, uint64_t epoch);
void agent_core_free(struct agent_core *core);

/* At the start: what an agent before this one has kept. */
void agent_core_note_seen(struct agent_core *core, const struct persist_seen *seen);

/* An attempt found on this node at the start, before the link is up. `token` is what its records name. */
void agent_core_load(struct agent_core *core, int64_t boot_ms, const struct spool_id *id, uint64_t token);

/* Of an attempt that was loaded: the lease in its spec, and until when its shepherd lets it run (boot clock).
 */
void agent_core_note_lease(
    struct agent_core *core, const struct spool_id *id, int64_t lease_ms, int64_t until_ms);

/* The link is up: says HELLO. `node` describes the node; its attempts are filled in here. */
void agent_core_link_up(struct agent_core *core, int64_t boot_ms, const struct message_hello *node);
void agent_core_link_down(struct agent_core *core);

/* A message of the controller. -EPROTO: one that it may not send now; -ESTALE: an epoch that is over; the
 * caller closes the link on any failure. */
int agent_core_message(
    struct agent_core *core, int64_t boot_ms, uint16_t id, const void *message, struct error *err);

/* Something may have changed about this attempt: a hint came, or its shepherd ended. */
void agent_core_look(struct agent_core *core, int64_t boot_ms, const struct spool_id *id);

void agent_core_timer(struct agent_core *core, int64_t boot_ms);

/* Passes a sample on; dropped while the controller has not answered HELLO. */
void agent_core_gpus(struct agent_core *core, const struct message_gpus *gpus);

/* What was seen of a process; dropped as a sample is. */
void agent_core_process(struct agent_core *core, const struct message_process_info *process);

/* What became of telling somebody; dropped as a sample is. */
void agent_core_notified(struct agent_core *core, const struct message_notified *told);

size_t agent_core_attempts(const struct agent_core *core);
