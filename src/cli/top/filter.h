/* SPDX-License-Identifier: MIT */
/* Which jobs are shown: what was typed after `/`, "u:ana s:queued gpu:4 train". */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define FILTER_BYTES_MAX 200

struct filter {
    const char *text; // words, all of which must match; NULL or "": all
    int64_t own_uid;  // with is_mine, and for "u:you"
    bool is_mine;     // only one's own
    bool is_trouble;  // only what needs somebody's attention
};

/*
 * u:NAME owner; s:STATE; gpu:N or gpu:NODE:N; n:NAME of the job; id:N; another word anywhere in number,
 * owner, name, state, command or reason. A word that begins with ! must not match. Case does not matter.
 */
bool filter_matches(const struct filter *filter, const json_t *job);

/* Failed, stray, faulty, left its GPUs idle, or can never start. */
bool filter_is_trouble(const json_t *job);
