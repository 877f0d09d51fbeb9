/* SPDX-License-Identifier: MIT */
/*
 * The keys that control mgpu instead of being sent to the job: by default Ctrl-] and another. Keys that turn
 * out to be for the job are sent completely, after DETACH_KEYS_WAIT_MS at the latest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DETACH_KEYS_MAX     16U
#define DETACH_KEYS_WAIT_MS 1000

enum key_action {
    KEY_PASS, // send the output to the job
    KEY_WAIT, // wait for the next key
    KEY_DETACH,
    KEY_CANCEL,
    KEY_LOG,
    KEY_STATUS,
    KEY_HELP,
};

struct detach_keys {
    uint8_t sequence[DETACH_KEYS_MAX];
    size_t length;  // 0: disabled
    size_t matched; // length of the part of the sequence typed so far
    bool is_menu;   // the sequence is a prefix of one more key, which selects the action
};

/* "ctrl-p,ctrl-q", "~,.", "none"; NULL: the default menu after Ctrl-]. */
int detach_keys_parse(struct detach_keys *keys, const char *text, struct error *err);

/* Processes one key. For KEY_PASS, *ret_length bytes of `out` are for the job. */
enum key_action detach_keys_feed(
    struct detach_keys *keys, uint8_t key, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length);

/* The wait has ended: keys held back are for the job. */
void detach_keys_expire(struct detach_keys *keys, uint8_t out[DETACH_KEYS_MAX + 1], size_t *ret_length);

static inline bool detach_keys_are_waiting(const struct detach_keys *keys)
{
    return keys->matched > 0;
}
