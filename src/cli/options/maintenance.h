/* SPDX-License-Identifier: MIT */
/* Shared by verbs that take GPUs and nodes out of use: a reason and an end time. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"

/* The options of these verbs. */
struct maintenance_options {
    const char *reason;
    int64_t until_ms; // 0: until resumed
    bool is_waiting;  // return when no job is left there
};

extern const struct option_row maintenance_rows[];
extern const struct option_row maintenance_reason_rows[]; // for fence, which has no end time
extern const struct option_row maintenance_wait_rows[];   // for drain

/* Adds reason and end time to `body` and sends it. Returns the exit status, or a negative errno. */
int maintenance_post(struct call *call, const char *path, json_t *body, struct error *err);
