/* SPDX-License-Identifier: MIT */
/* Effects that are deferred until the change they follow from is durable. */
#pragma once

#include "controller/core/core.h"

enum deferred_kind {
    DEFERRED_REPLY,
    DEFERRED_ACT,
    DEFERRED_PUBLISH,
    DEFERRED_RELEASE,
    DEFERRED_SIGNAL,
    DEFERRED_STOP
};

struct deferred {
    enum deferred_kind kind;
    void *request;              // reply; NULL if its connection has been closed
    struct core_answer *answer; // reply
    struct job_event event;     // publish, owned
    uint64_t job;               // act, signal
    uint32_t link;              // release, stop
    struct message_release_attempt release;
    struct message_stop stop;
    struct message_signal signal;
    struct deferred *next;
};

struct batch {
    uint64_t id;
    int64_t due_ms; // boot clock: until then it may collect more changes
    struct store_batch *changes;
    struct deferred *first, **last;
};

struct core_entry;

struct batch *core_batch(struct core *core); // the open batch
/* It is due this many milliseconds from now, or earlier; 0: at the end of the turn. */
void core_batch_within(const struct core *core, struct batch *batch, int64_t patience_ms);
void core_batch_free(struct batch *batch);
/* Performs the effect once everything applied so far is durable, which may be now. */
void core_defer(struct core *core, struct deferred deferred);
void core_batch_durable(struct core *core, struct batch *batch); // frees the batch

/* Reconciles the job once everything applied so far is durable; repeated requests are merged. */
void core_act_later(struct core *core, struct core_entry *entry);

/* Replies once everything applied so far is durable, which may be now. */
void core_reply(struct core *core, void *request, const struct core_answer *answer);
void core_reply_ok(struct core *core, void *request, uint64_t job);
void core_forget_replies(struct core *core, const void *request); // the connection has been closed

/* Orders the agent to remove an attempt once its end is durable. */
void core_release_attempt(struct core *core, uint32_t link, const struct message_release_attempt *release);
