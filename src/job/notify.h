/* SPDX-License-Identifier: MIT */
/* Whom a job tells of what becomes of it (`notify`), and of what (`notify_on`). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"

#define NOTIFY_MAX         8U   // whom one job tells
#define NOTIFY_ADDRESS_MAX 254U // bytes of a mail address
#define NOTIFY_TARGET_MAX  2048U

enum notify_way {
    NOTIFY_MAIL,    // by the node's sendmail
    NOTIFY_COMMAND, // shell text, run as the job's owner
    NOTIFY_URL,     // the job's JSON is posted there
};

struct notify_target {
    enum notify_way way;
    const char *to; // the part of the text that says where; NULL: the owner's own mail
};

/* What can be told; the values are those of bits. */
enum notify_event {
    NOTIFY_START = 1,
    NOTIFY_END = 2,      // however it ended
    NOTIFY_FAIL = 4,     // it ended, and not as it should
    NOTIFY_REQUEUE = 8,  // an attempt is over, and the job waits for the next
    NOTIFY_PREEMPT = 16, // the same, because it gave way to others
};

/* "mail", "mail:ana@lab", "https://host/path", or a command. -EINVAL, -E2BIG with a sentence. ret->to points
 * into `text`. */
int parse_notify(const char *text, struct notify_target *ret, struct error *err);

/* "start,end" as bits. */
int parse_notify_on(const char *text, uint32_t *ret_events, struct error *err);

/* The name of a single bit, and the name at a place in the list of all; NULL after the last. */
const char *notify_event_name(enum notify_event event);
const char *notify_event_word(size_t i);

/* The events that a valid request wants to be told of; 0 when it tells nobody. */
uint32_t notify_events(const struct job_ask *ask);

/* The part of job_ask_validate() that is about this. */
int ask_check_notify(const struct job_ask *ask, struct error *err);
