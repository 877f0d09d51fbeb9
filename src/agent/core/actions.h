/* SPDX-License-Identifier: MIT */
/* Internals of the agent's core, shared by agent_core.c (inputs) and core/actions.c (actions). */
#pragma once

#include "agent/core/agent_core.h"

enum agent_link_state { LINK_DOWN, LINK_GREETED, LINK_OBEYING };
enum attempt_report { REPORTED_NOTHING, REPORTED_READY, REPORTED_STARTED, REPORTED_END };

struct attempt {
    struct spool_id id;
    uint64_t token;
    enum attempt_want want;
    enum attempt_report reported; // since the last HELLO
    uint32_t signal;              // of the last STOP
    int64_t grace_ms;
    uint32_t port;           // of the last GO
    uint32_t terms;          // number of the last UPDATE
    uint32_t starts;         // shepherds started by this agent without a verdict
    int64_t look_at;         // time of the next check; 0: none needed
    int64_t not_before;      // failing actions are not retried earlier
    int64_t retry_ms;        // next retry interval
    char *why_returned;      // for RETURNED
    uint32_t cause_returned; // likewise: enum start_cause
    bool has_run;            // its verdict "go" has been seen
    bool is_prepared;        // by PREPARE: its GPUs are checked at the gate
    bool is_element;         // of an array; false also for one that an earlier agent has launched
    bool is_launched;        // a speculative attempt whose LAUNCH has arrived
    /* While staging is in progress, or until the prepared entry was removed; else NULL. */
    struct message_launch *launch;
    struct spool_terms *terms_kept; // received meanwhile; there is no entry yet to write them to
    int64_t lease_ms;   // ends after the node has had no contact with the controller for this time; 0: never
    int64_t renewed_ms; // boot clock: end of the lease, as its shepherd knows it or will
};

struct agent_core {
    struct agent_effects effects;
    uint64_t epoch;
    struct persist_seen seen; // latest state of the controller's store
    enum agent_link_state link;
    uint64_t last_order;       // of the last LAUNCH that was accepted
    struct attempt **attempts; // sorted by id
    size_t count, capacity;
    int64_t armed_at;  // 0: the timer is not armed
    bool has_removals; // some may have been deferred
    /* agent/core/heartbeat.c; all on the boot clock */
    int64_t heartbeat_ms, timeout_ms; // from the controller
    int64_t beat_at;                  // the next heartbeat; 0: none
    int64_t greeted_ms;               // when HELLO was sent
    int64_t last_contact_ms;          // when the last message of the controller arrived
    int64_t acked_ms;                 // time of the last message that the controller has acknowledged
};

/* Observes the attempt and performs the action of the table; `launch` is set when called for a LAUNCH. The
 * attempt may have been freed afterwards. */
void agent_actions_run(
    struct agent_core *core, struct attempt *attempt, int64_t boot_ms, const struct message_launch *launch);

/* After a hint: likewise, or a moment later if the hint only reports the start of an element. */
void agent_actions_follow(struct agent_core *core, struct attempt *attempt, int64_t boot_ms, bool is_start);

/* Makes it certain that it never runs, unless it has a verdict; it may have been freed afterwards. Nothing
 * happens if it is NULL or not launched, or while it is compared with what was prepared. */
void agent_actions_take_back(struct agent_core *core, struct attempt *attempt, int64_t boot_ms);

/* Observes it, including the state kept in memory, like agent_effects.observe. */
void agent_actions_inspect(
    struct agent_core *core, struct attempt *attempt, struct attempt_observation *observed);

/* Removes the attempt from the core and frees it. */
void agent_core_drop(struct agent_core *core, struct attempt *attempt);

/* Staging has ended: frees the LAUNCH and UPDATE that were kept for it. */
void agent_core_forget_launch(struct attempt *attempt);

/* Defers the removal of an ended attempt, because it takes as long as the start of a prepared one, which is
 * expected to follow immediately. */
void agent_core_remove_soon(struct agent_core *core, struct attempt *attempt, int64_t boot_ms);

/* Before an attempt is staged, which may need CPUs or space of the deferred ones. */
void agent_core_remove_now(struct agent_core *core, int64_t boot_ms);

/* Ensures that agent_core_timer() is called by that time. */
void agent_core_arm_by(struct agent_core *core, int64_t boot_ms);

/* Ensures that the attempt is observed again by that time. */
void agent_core_reconcile_by(struct agent_core *core, struct attempt *attempt, int64_t boot_ms);
