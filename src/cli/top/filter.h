/* SPDX-License-Identifier: MIT */
/* The filter of jobs, as typed after `/`: "u:ana s:queued gpu:4 train". */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define FILTER_BYTES_MAX 200

struct filter {
    const char *text; // terms, all of which must match; NULL or "": all
    int64_t own_uid;  // for is_mine and "u:you"
    bool is_mine;     // only the user's own jobs
    bool is_trouble;  // only jobs that need attention
};

/*
 * u:NAME owner; s:STATE; gpu:N or gpu:NODE:N; n:NAME of the job; id:N; other terms match anywhere in number,
 * owner, name, state, command or reason. A term that begins with ! must not match. Case-insensitive.
 */
bool filter_matches(const struct filter *filter, const json_t *job);

/* Failed, using other GPUs than its own, on a faulty GPU, idle, or unable to start ever. */
bool filter_is_trouble(const json_t *job);
