/* SPDX-License-Identifier: MIT */
/* What `mgpu help TOPIC` explains beside the verbs. */
#pragma once

#include <stdio.h>

struct topic_row {
    const char *word, *meaning; // meaning NULL: a heading
};

struct topic {
    const char *name;
    const char *help;             // one line
    const struct topic_row *rows; // ended by a NULL word, or NULL
    const char *notes;            // after the rows, or NULL
    void (*print)(FILE *out);     // what other tables have, or NULL
};

/* Ended by a NULL name. */
extern const struct topic topics[];

/* The topic of that name, or NULL. */
const struct topic *topics_find(const char *name);

void topics_print(const struct topic *topic, FILE *out);
