/* SPDX-License-Identifier: MIT */
/* Output of one among several: whole lines, each with a label before it. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"

struct labelled {
    char label[64];
    struct buffer line;                                      // that is not complete yet
    int (*put)(void *arg, const void *bytes, size_t length); // a negative errno ends it
    void *arg;
};

/* Puts the lines that these bytes complete; a very long one is broken. The first error of `put`, or 0. */
int labelled_take(struct labelled *out, const void *bytes, size_t length);

/* Puts what is left of a line that its writer did not end. */
int labelled_flush(struct labelled *out);

void labelled_clear(struct labelled *out);
