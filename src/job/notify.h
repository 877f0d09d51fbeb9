/* SPDX-License-Identifier: MIT */
/* Notifications of a job: targets (`notify`) and events (`notify_on`). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"

#define NOTIFY_MAX         8U   // targets of one job
#define NOTIFY_ADDRESS_MAX 254U // bytes of a mail address
#define NOTIFY_TARGET_MAX  2048U

enum notify_way {
    NOTIFY_MAIL,    // by the node's sendmail
    NOTIFY_COMMAND, // shell text, run as the job's owner
    NOTIFY_URL,     // the job's JSON is posted there
};

struct notify_target {
    enum notify_way way;
    const char *to; // the address within the text; NULL: the owner's own mail
};

/* Events that can be notified; the values are bits. */
enum notify_event {
    NOTIFY_START = 1,
    NOTIFY_END = 2,      // the job ended, in any way
    NOTIFY_FAIL = 4,     // the job failed
    NOTIFY_REQUEUE = 8,  // an attempt has ended and the job was requeued
    NOTIFY_PREEMPT = 16, // the same, because it was preempted
    NOTIFY_PARK = 32,    // it was parked: other jobs may use its GPUs
    NOTIFY_UNPARK = 64,  // it continues after it was parked
};

/* "mail", "mail:ana@lab", "https://host/path", or a command. -EINVAL, -E2BIG with a sentence. ret->to points
 * into `text`. */
int parse_notify(const char *text, struct notify_target *ret, struct error *err);

/* "start,end" as bits. */
int parse_notify_on(const char *text, uint32_t *ret_events, struct error *err);

/* The name of a single bit, and the name by position; NULL after the last. */
const char *notify_event_name(enum notify_event event);
const char *notify_event_word(size_t i);

/* The events for which a valid request wants notifications; 0 without targets. */
uint32_t notify_events(const struct job_ask *ask);

/* The part of job_ask_validate() for notifications. */
int ask_check_notify(const struct job_ask *ask, struct error *err);
