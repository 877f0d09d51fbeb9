/* SPDX-License-Identifier: MIT */
/* Topics of `mgpu help TOPIC`, besides the verbs. */
#pragma once

#include <stdio.h>

struct topic_row {
    const char *word, *meaning; // meaning NULL: a heading
};

struct topic {
    const char *name;
    const char *help;             // one line
    const struct topic_row *rows; // terminated by a NULL word, or NULL
    const char *notes;            // after the rows, or NULL
    void (*print)(FILE *out);     // prints parts that come from other tables, or NULL
};

/* Terminated by a NULL name. */
extern const struct topic topics[];

/* The topic with that name, or NULL. */
const struct topic *topics_find(const char *name);

void topics_print(const struct topic *topic, FILE *out);
