/* SPDX-License-Identifier: MIT */
/* A node as the API shows it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "job/cluster_change.h"
#include "wire/message.h"

/* What is known of a node besides what it says. */
struct json_node_place {
    const char *address; // NULL: this machine, or it was not seen since mgpud started
    bool is_remote;      // it joined
    int64_t since_ms;    // when it came or went; 0: not known
    int64_t joined_ms;   // 0: it did not
};

/* Adds it to what json_node_write() made. */
void json_node_add_place(json_t *object, const struct json_node_place *place);

/* `hello` is what the node said last; `drain` what an administrator said of it, NULL: nothing; `n_drained`
 * how many of its GPUs mgpu has taken out of use. The caller owns the result. */
json_t *json_node_write(const char *name, bool is_up, const struct message_hello *hello,
    const struct cluster_change *drain, size_t n_drained);
