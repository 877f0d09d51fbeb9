/* SPDX-License-Identifier: MIT */
/* What waits until it is durable. */
#pragma once

#include "controller/core/core.h"

enum held_kind { HELD_REPLY, HELD_ACT, HELD_PUBLISH, HELD_FORGET, HELD_SIGNAL, HELD_STOP };

struct held {
    enum held_kind kind;
    void *request;              // reply; NULL when it was forgotten meanwhile
    struct core_answer *answer; // reply
    struct job_event event;     // publish, owned
    uint64_t job;               // act, signal
    uint32_t link;              // forget, stop
    struct message_forget forget;
    struct message_stop stop;
    struct message_signal signal;
    struct held *next;
};

struct batch {
    uint64_t id;
    bool is_urgent; // somebody waits for it; else it may gather more for a moment
    struct store_batch *changes;
    struct held *first, **last;
};

struct core_entry;

struct batch *core_batch(struct core *core); // the open one
void core_batch_free(struct batch *batch);
/* Lets it go when what was applied so far is durable, or now. */
void core_hold_back(struct core *core, struct held held);
void core_batch_durable(struct core *core, struct batch *batch); // frees it

/* Acts on the job when what was applied so far is durable; once, however often it is asked for till then. */
void core_act_later(struct core *core, struct core_entry *entry);

/* Answers now, or when what was applied so far is durable. */
void core_reply(struct core *core, void *request, const struct core_answer *answer);
void core_reply_ok(struct core *core, void *request, uint64_t job);
void core_forget_replies(struct core *core, const void *request); // the asker is gone

/* Tells the agent that it may drop an attempt, when that is durable. */
void core_forget_attempt(struct core *core, uint32_t link, const struct message_forget *forget);
