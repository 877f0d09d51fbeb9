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

struct json_node_view {
    const char *name;
    bool is_up;
    int64_t unreachable_ms; // wall clock: since when nothing is heard of it; 0: it is not unreachable
    const struct message_hello *hello;  // what it said last
    const struct cluster_change *drain; // what an administrator said of it; NULL: nothing
    size_t n_drained;                   // of its GPUs, by mgpu
    size_t n_stopping;                  // attempts that are ended before anything new starts there
};

/* A node as the API shows it. The caller owns the result. */
json_t *json_node_write(const struct json_node_view *view);
