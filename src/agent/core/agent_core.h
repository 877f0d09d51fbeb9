/* SPDX-License-Identifier: MIT */
/*
 * The agent's core: the attempts of this node, and the reactions to messages, hints and the passing of time.
 * It uses no socket, file, process or clock: every input includes the time, and all actions go through struct
 * agent_effects. The decisions are the table in agent/core/attempt.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/attempt.h"
#include "agent/host/persist.h"
#include "base/error.h"
#include "wire/message.h"

/* A shepherd that exits this often before its verdict is not restarted. */
#define AGENT_STARTS_MAX 3U

/* Jobs that a node keeps prepared. */
#define AGENT_PREPARED_MAX 4U

struct agent_core;

/* What a shepherd is started for. */
enum shepherd_task {
    SHEPHERD_RUNS,  // the attempt
    SHEPHERD_WAITS, // at the gate of a prepared one, whoever has its GPUs: it is admitted before it is
                    // released
    SHEPHERD_ADOPTS,
};

/*
 * The effects. Calls return immediately and may not call back into the core. Those that can fail return a
 * negative errno with a sentence.
 */
struct agent_effects {
    void *arg;
    /* Queues one message to the controller; only called while the link is up. */
    void (*send)(void *arg, const struct record_type *type, const void *message);
    /* Observes an attempt. Fills in a zeroed observation; the caller owns its records. `is_reported`: its end
     * was reported, so its records are not needed any more. */
    void (*observe)(
        void *arg, const struct spool_id *id, bool is_reported, struct attempt_observation *observed);
    /* Writes the spool entry; an attempt that can never run here gets an exit record with the reason. On
     * failure this node cannot do it now. -EINPROGRESS: its user is being looked up; the core will be called
     * to check again. */
    int (*stage)(void *arg, const struct message_launch *launch, struct error *err);
    /* Starts a shepherd for a staged entry, or one that finishes it; its end will be noticed. 1: this entry
     * needs no shepherd and has already changed. -EINPROGRESS, -EALREADY: its GPUs are not ready, or another
     * attempt has not left them, and the core will be told to check again. */
    int (*start)(void *arg, const struct spool_id *id, enum shepherd_task task, struct error *err);
    /* Arranges that the end of a running shepherd is noticed; false if that is impossible. */
    bool (*watch)(void *arg, const struct spool_id *id, const struct attempt_observation *observed);
    /* Decides "nogo", creating the entry if there is none. Returns the enum spool_verdict in effect. */
    int (*settle_nogo)(void *arg, const struct spool_id *id, uint64_t token, struct error *err);
    /* Sends a command to the running shepherd; -EAGAIN etc. if it is not listening yet. 1: as for `start`. */
    int (*command)(void *arg, const struct spool_id *id, uint32_t signal, int64_t grace_ms);
    void (*kill)(void *arg, const struct spool_id *id);
    /* Removes spool entry, durable copy and cgroups. -EBUSY while a process of it is alive. */
    int (*remove)(void *arg, const struct spool_id *id);
    /* Stores the epoch durably before any of its orders is carried out. */
    int (*save_epoch)(void *arg, uint64_t epoch, struct error *err);
    void (*open_log)(void *arg, const struct message_open_log *request);
    /* The attempts of terminals, exec steps and ports are found in the spool; their streams report the
     * result. */
    void (*open_terminal)(void *arg, const struct message_open_terminal *request);
    void (*open_step)(void *arg, const struct message_open_step *request);
    void (*rejoin_step)(void *arg, const struct message_rejoin_step *request);
    void (*open_port)(void *arg, const struct message_open_port *request);
    /* One timer: call agent_core_timer() at that time; replaces the previous setting. */
    void (*arm)(void *arg, int64_t boot_ms);
    /* Inspects a process to be adopted; the result is passed to agent_core_process() later. */
    void (*inspect)(void *arg, const struct message_inspect *request);
    /* Stores the terms of the attempt and notifies its shepherd to read them. */
    int (*update)(void *arg, const struct spool_id *id, const struct spool_terms *terms, struct error *err);
    /* Delivers a notification for a job's owner; the result is passed to agent_core_notified() later. */
    void (*notify)(void *arg, const struct message_notify *request);
    /* Orders a running shepherd that waits at its gate to decide the verdict; no effect on others. `port`:
     * the rendezvous port, 0: unknown. */
    int (*release)(void *arg, const struct spool_id *id, uint32_t port);
    /* Closes these GPUs (UUIDs), and opens all others again. */
    void (*release_gpus)(void *arg, const struct strings *uuids);
    /* Informs the shepherd of the attempt that it may run until then. */
    int (*renew)(void *arg, const struct spool_id *id, int64_t until_ms);
    /* The controller does not respond: close the link as if the peer had closed it, after this call. */
    void (*hang_up)(void *arg);
    /* Recreates the entry of an ended attempt from the durable copy of its exit record; -ENOENT if there is
     * none. */
    int (*restore)(void *arg, const struct spool_id *id);
    /* Parks the attempt, or restores it; the result is passed to agent_core_parked() later. May be NULL. */
    void (*park)(void *arg, const struct message_park *order);
    /* Stores it for later agents. */
    void (*save_seen)(void *arg, const struct persist_seen *seen);
    /* As `stage`, but its shepherd will wait at the gate. Never writes an exit record: after a failure, the
     * attempt is not prepared. */
    int (*prepare)(void *arg, const struct message_launch *launch, struct error *err);
    /* 0 if staging this LAUNCH would give the same entry as the prepared one. -EINPROGRESS: as for `stage`.
     * Any other result: it must be staged again. */
    int (*take)(void *arg, const struct message_launch *launch, struct error *err);
    /* May the prepared attempt start now? Its GPUs are opened for its user then. Results as for `start`. */
    int (*admit)(void *arg, const struct spool_id *id, struct error *err);
    /* Fills in the spool's data about the orders that HELLO mentions. May be NULL. */
    void (*recall)(void *arg, const struct spool_id *id, struct known_attempt *known);
};

/* `epoch` is the highest one ever accepted here, 0 for none. */
struct agent_core *agent_core_new(const struct agent_effects *effects, uint64_t epoch);
void agent_core_free(struct agent_core *core);

/* At the start: the state stored by an earlier agent. */
void agent_core_note_seen(struct agent_core *core, const struct persist_seen *seen);

/* An attempt found on this node at the start, before the link is up. `token` is from its records. */
void agent_core_load(struct agent_core *core, int64_t boot_ms, const struct spool_id *id, uint64_t token);

/* For a loaded attempt: the lease in its spec, and its current end (boot clock). */
void agent_core_note_lease(
    struct agent_core *core, const struct spool_id *id, int64_t lease_ms, int64_t until_ms);

/* For a loaded attempt that an earlier agent had prepared: drops it, because it cannot be compared with its
 * LAUNCH any more. */
void agent_core_note_prepared(struct agent_core *core, int64_t boot_ms, const struct spool_id *id);

/* The link is up: sends HELLO. `node` describes the node; its attempts are filled in here. */
void agent_core_link_up(struct agent_core *core, int64_t boot_ms, const struct message_hello *node);
void agent_core_link_down(struct agent_core *core);

/* A message of the controller. -EPROTO: not allowed now; -ESTALE: an old epoch; the caller closes the link on
 * any failure. */
int agent_core_message(
    struct agent_core *core, int64_t boot_ms, uint16_t id, const void *message, struct error *err);

/* A hint of its shepherd was received. A prepared attempt is observed when its LAUNCH arrives. With
 * `is_start`, it says that the attempt has started; that of an array's element is reported a moment later, or
 * with its end. */
void agent_core_hint(struct agent_core *core, int64_t boot_ms, const struct spool_id *id, bool is_start);

/* The state of this attempt may have changed: its shepherd has ended, or its user was looked up. */
void agent_core_reconcile(struct agent_core *core, int64_t boot_ms, const struct spool_id *id);

void agent_core_timer(struct agent_core *core, int64_t boot_ms);

/* Forwards a sample; dropped while the controller has not answered HELLO. */
void agent_core_gpus(struct agent_core *core, const struct message_gpus *gpus);

/* Facts about a process; dropped in the same cases as a sample. */
void agent_core_process(struct agent_core *core, const struct message_process_info *process);

/* The result of a notification; dropped in the same cases as a sample. */
void agent_core_notified(struct agent_core *core, const struct message_notified *outcome);

/* The result of an order to park or restore; dropped in the same cases as a sample. */
void agent_core_parked(struct agent_core *core, const struct message_park_result *result);

/* Their number; for tests. */
size_t agent_core_attempts(const struct agent_core *core);
