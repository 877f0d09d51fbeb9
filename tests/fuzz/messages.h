/* SPDX-License-Identifier: MIT */
/* Messages of the link from an input: type, length and body, as the other side could send them. */
#pragma once

#include "input.h"
#include "job/launch.h"
#include "wire/message.h"

/* How messages about an attempt begin. */
struct about {
    struct spool_id id;
    uint64_t token;
};

/* The next message, decoded and within its limits; NULL if the bytes are none. The caller frees it with
 * message_free(). */
void *message_take(struct input *input, const struct record_type **ret_type);
void message_free(const struct record_type *type, void *message);

/* True if messages of this type begin with an attempt and its token. */
bool message_is_about_attempt(uint16_t type);
