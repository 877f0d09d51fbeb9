/* SPDX-License-Identifier: MIT */
/* One request of a slurmrestd client, parsed from the bytes received. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

#define REST_HEAD_MAX 65536U
#define REST_BODY_MAX (2U << 20) // larger than the largest script

/* Results of rest_message_examine() that are not HTTP statuses. */
#define REST_MORE  0 // bytes are missing
#define REST_WHOLE 1 // the members are set

/* To be zeroed; bytes are appended as they arrive. */
struct rest_message {
    struct buffer bytes;
    bool is_waiting;              // the client sends its body only after "100 Continue"
    char *method, *target, *body; // within `bytes`
    const char *user;             // of X-SLURM-USER-NAME, or NULL
    size_t head, body_length;     // bytes of the head, 0: not known yet; and of the body
};

/* REST_MORE, REST_WHOLE, or the status with which the request is refused. The result does not depend on how
 * the bytes were divided. */
int rest_message_examine(struct rest_message *message);

void rest_message_clear(struct rest_message *message);
