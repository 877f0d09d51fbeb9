/* SPDX-License-Identifier: MIT */
/*
 * The keys that speak to mgpu instead of the job: by default Ctrl-] and one more. Whatever turns out to be
 * meant for the job is passed on whole, after DETACH_KEYS_WAIT_MS at the latest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DETACH_KEYS_MAX     16U
#define DETACH_KEYS_WAIT_MS 1000

enum key_action {
    KEY_PASS, // pass on what came out
    KEY_WAIT, // nothing yet: the next key decides
    KEY_DETACH,
    KEY_CANCEL,
    KEY_LOG,
    KEY_STATUS,
    KEY_HELP,
};

struct detach_keys {
    uint8_t sequence[DETACH_KEYS_MAX];
    size_t length;  // 0: switched off
    size_t matched; // so much of the sequence has come
    bool is_menu;   // the sequence is a prefix, and the key after it chooses
};

/* "ctrl-p,ctrl-q", "~,.", "none"; NULL: the default menu behind Ctrl-]. */
int detach_keys_parse(struct detach_keys *keys, const char *text, struct error *err);

/* Takes one key. For KEY_PASS *ret_length bytes of `out` are for the job. */
enum key_action detach_keys_feed(
    struct detach_keys *keys, uint8_t key, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length);

/* The wait is over: what was held back is for the job. */
void detach_keys_expire(struct detach_keys *keys, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length);

static inline bool detach_keys_are_waiting(const struct detach_keys *keys)
{
    return keys->matched > 0;
}
