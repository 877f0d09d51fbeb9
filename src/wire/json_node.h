/* SPDX-License-Identifier: MIT */
/* A node in the API's form. */
#pragma once

#include <stdbool.h>

#include "job/cluster_change.h"
#include "wire/json_member.h"
#include "wire/message.h"
#include "wire/park_proof.h"

struct json_node_view {
    const char *name;
    bool is_up;
    int64_t unreachable_ms;             // wall clock: unreachable since; 0: reachable
    const struct message_hello *hello;  // its last report
    const struct cluster_change *drain; // drained by an administrator; NULL: not drained
    size_t n_drained;                   // GPUs drained by mgpu
    const struct park_proof *parking;   // its last test of parking; NULL: there was none
    const char *parking_state;          // its current validity; NULL: "none"
    size_t n_stopping;                  // attempts being ended before new ones start there
    /* What it does not report itself. */
    const char *address; // NULL: this machine, or not seen since mgpud started
    bool is_remote;      // a joined machine
    int64_t since_ms;    // last change of its connection; 0: unknown
    int64_t joined_ms;   // 0: it did not join
};

/* Of a struct json_node_view, and for the documentation its parts. */
extern const struct json_table json_node_table, json_feature_table, json_nic_table, json_parking_table;
