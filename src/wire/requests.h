/* SPDX-License-Identifier: MIT */
/* Bodies of the smaller requests, as record types (job/spec.h has the body of a submit). */
#pragma once

#include <stdint.h>

#include "base/record.h"

/* POST /jobs/ID/cancel */
struct cancel_request {
    int64_t grace_s; // between SIGTERM and SIGKILL; negative: the controller's default
};

/* POST /tokens */
struct token_request {
    char *name;         // for its owner to recognise it
    uint64_t expires_s; // from now on
};

extern const struct record_type cancel_request_record;
extern const struct record_type token_request_record;
