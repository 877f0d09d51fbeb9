/* SPDX-License-Identifier: MIT */
/* Guesses from the last lines of a job's output why it failed. */
#pragma once

#include <jansson.h>

/* A sentence, or NULL if no known cause is found. The caller frees it. */
char *tail_cause(const json_t *job);
