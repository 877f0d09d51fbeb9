/* SPDX-License-Identifier: MIT */
/* Output of a job on its way to standard output or standard error of this program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "cli/follow/foreign.h"

struct outlet {
    int fd; // borrowed
    struct foreign filter;
    struct buffer pending; // bytes that `fd` has not accepted yet, from `written` on
    size_t written;
    bool is_gone; // no process reads it: further output is discarded
};

/* Adds output. */
void outlet_add(struct outlet *outlet, const void *bytes, size_t length);

static inline bool outlet_has_pending(const struct outlet *outlet)
{
    return outlet->pending.length > 0;
}

/* Writes once, when poll(2) has reported that it is writable. A negative errno: it is closed from now on. */
int outlet_write(struct outlet *outlet);

void outlet_clear(struct outlet *outlet);
