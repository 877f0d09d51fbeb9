/* SPDX-License-Identifier: MIT */
/*
 * A line of the jobs file: priority,script_path,conda_env,arguments,allowed_gpus. The last field is the rest
 * of the line, so 4,5,6,7 needs no quotes; a quoted field may contain commas, and "" for a quote.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"

#define FEED_HASH_SIZE    17U // sixteen digits and the terminating NUL
#define FEED_FILE_MAX     (64U << 20)
#define FEED_PRIORITY_MAX 1000

struct feed_line {
    unsigned number;      // in its file, from 1 on
    int64_t priority;     // lowest first
    char *script;         // never empty
    char *conda, *gpus;   // NULL: none, any
    char *arguments;      // as written, or NULL
    struct strings words; // the arguments, split as by a shell
};

/* 1 and the line's job; 0 for a comment or a blank line; a negative errno with a sentence. */
int feed_line_parse(const char *text, struct feed_line *ret, struct error *err);

/* The line, without its end, for this job; -EINVAL if it cannot be written as one. The caller frees it. */
int feed_line_format(const struct feed_line *line, char **ret, struct error *err);

/* Identifies the job of a line: a hash of script, arguments and environment. */
void feed_line_hash(const struct feed_line *line, char ret[FEED_HASH_SIZE]);

void feed_line_clear(struct feed_line *line);

#define _cleanup_feed_line_ _cleanup_(feed_line_clear)

/* A hash of these bytes (FNV-1a), to detect changes. */
uint64_t feed_hash(const void *bytes, size_t length, uint64_t from);
#define FEED_HASH_START 14695981039346656037ULL
