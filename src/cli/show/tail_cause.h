/* SPDX-License-Identifier: MIT */
/* What the last lines of a job's output say about why it failed. */
#pragma once

#include <jansson.h>

/* A sentence, or NULL when they say nothing that is known here. The caller frees it. */
char *tail_cause(const json_t *job);
