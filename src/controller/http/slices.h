/* SPDX-License-Identifier: MIT */
/*
 * Long answers, a slice at a time:
 *
 *   fill ── slices_send(): full or the last ──> barrier ──> send ── space ──> fill, through the fair queue
 *                                                             └─ no space ─> wait until the client has read
 * some
 *
 * Memory and the time of one turn are bounded however long the answer is, every slice is durable when it is
 * sent, and a slow client delays no other. An answer that fits into one slice is sent at once.
 */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "controller/http/request.h"

/* The time after which work in parts makes room for others. */
#define SLICE_US 2000

/* The first member of the handler's `work`. */
struct slices {
    struct buffer bytes; // of this slice
    bool is_last;        // set by `fill` with the end of the answer
    bool is_counted;     // in the user's share of long lists
    bool is_immediate;   // no slice waits for the disk
    const char *type;    // of the content; NULL: JSON
    void (*fill)(struct request *request);
};

/* `fill` appends until slices_is_full() or the answer's end, then calls slices_send(). */
void slices_begin(struct request *request, void (*fill)(struct request *request));
bool slices_is_full(const struct slices *slices);
void slices_send(struct request *request);

/* To be called when the request is released. */
void slices_clear(struct request *request);
