/* SPDX-License-Identifier: MIT */
/* What taking GPUs and nodes out of use has in common: a reason, and an end. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"

/* The options of these verbs. */
struct maintenance_options {
    const char *reason;
    int64_t until_ms; // 0: until it is put back
    bool is_waiting;  // return when nothing runs there
};

extern const struct option_row maintenance_rows[];
extern const struct option_row maintenance_reason_rows[]; // of fence, which has no end
extern const struct option_row maintenance_wait_rows[];   // of drain

/* Adds reason and end to `body` and sends it. The result is the exit status, or a negative errno. */
int maintenance_post(struct call *call, const char *path, json_t *body, struct error *err);
