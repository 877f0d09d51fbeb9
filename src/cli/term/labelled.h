/* SPDX-License-Identifier: MIT */
/* Output of one of several sources: complete lines, each with a label. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"

struct labelled {
    char label[64];
    struct buffer line;                                      // incomplete
    int (*put)(void *arg, const void *bytes, size_t length); // a negative errno ends it
    void *arg;
};

/* Outputs the lines completed by these bytes; a very long one is split. Returns the first error of `put`, or
 * 0. */
int labelled_take(struct labelled *out, const void *bytes, size_t length);

/* Outputs the rest of an incomplete line. */
int labelled_flush(struct labelled *out);

void labelled_clear(struct labelled *out);
