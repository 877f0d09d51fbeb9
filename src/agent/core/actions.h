/* SPDX-License-Identifier: MIT */
/* The inner side of the agent's core, shared by agent_core.c (inputs) and core/actions.c (what is done). */
#pragma once

#include "agent/core/agent_core.h"

enum agent_link_state { LINK_DOWN, LINK_GREETED, LINK_OBEYING };
enum attempt_told { TOLD_NOTHING, TOLD_READY, TOLD_STARTED, TOLD_END };

struct attempt {
    struct spool_id id;
    uint64_t token;
    enum attempt_want want;
    enum attempt_told told; // since the last HELLO
    uint32_t signal;        // of the last STOP
    int64_t grace_ms;
    uint32_t port;                  // of the last GO
    uint32_t terms;                 // number of the last UPDATE
    uint32_t starts;                // shepherds started before a verdict, by this agent
    int64_t look_at;                // look again by then; 0: no need
    int64_t not_before;             // what can fail is not tried again earlier
    int64_t retry_ms;               // the next distance between such tries
    char *why_returned;             // for RETURNED
    bool has_run;                   // its verdict "go" was seen
    struct message_launch *launch;  // what it is staged from while that takes time; else NULL
    struct spool_terms *terms_kept; // came meanwhile; there is no entry yet to write them to
    int64_t lease_ms;   // it ends when we have heard nothing of the controller for so long; 0: never
    int64_t renewed_ms; // boot clock: until when its shepherd lets it run, as far as it was told
};

struct agent_core {
    struct agent_effects effects;
    uint64_t epoch;
    struct persist_seen seen; // of the controller's store, the latest
    enum agent_link_state link;
    uint64_t last_order;       // of a LAUNCH that was obeyed, or could have been
    struct attempt **attempts; // sorted by id
    size_t count, capacity;
    int64_t armed_at; // 0: the timer is not armed
    /* agent/core/heartbeat.c; all on the boot clock */
    int64_t heartbeat_ms, timeout_ms; // as the controller said
    int64_t beat_at;                  // the next heartbeat; 0: none is due
    int64_t greeted_ms;               // when HELLO was sent
    int64_t acked_ms;                 // when that was said which the controller has heard last
};

/* Looks at the attempt and does what the table says; `launch` is there when LAUNCH brought us here. The
 * attempt may be gone afterwards. */
void agent_actions_run(
    struct agent_core *core, struct attempt *attempt, int64_t boot_ms, const struct message_launch *launch);

/* Looks at it, with what is remembered of it. As agent_effects.observe. */
void agent_actions_inspect(struct agent_core *core, struct attempt *attempt, struct attempt_sight *sight);

/* Takes the attempt out of the core and frees it. */
void agent_core_drop(struct agent_core *core, struct attempt *attempt);

/* It is staged, or will not be: the LAUNCH and the UPDATE that were kept for that are freed. */
void agent_core_forget_launch(struct attempt *attempt);

/* Has agent_core_timer() called by then. */
void agent_core_arm_by(struct agent_core *core, int64_t boot_ms);

/* Has the attempt looked at again by then. */
void agent_core_look_by(struct agent_core *core, struct attempt *attempt, int64_t boot_ms);
