/* SPDX-License-Identifier: MIT */
/*
 * Appends JSON as text to a buffer. Objects of long lists are written member by member without building a
 * tree first, which would cost several times as much as their text. The text is that of json_text_format().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"

/* One line without white space. Does not take ownership of `value`. */
void json_append(struct buffer *out, json_t *value);

/* An object that is being written: as text, or as a tree for callers that add to it. */
struct json_members {
    struct buffer *out; // NULL: `tree`
    json_t *tree;
    bool is_sparse; // members that are null or false are omitted
    bool has_one;
};

void json_members_begin(struct json_members *members, struct buffer *out, bool is_sparse);

/* Takes ownership of `value`. Names need no escapes, and each is added once. */
void json_members_add(struct json_members *members, const char *name, json_t *value);

void json_members_end(struct json_members *members);
