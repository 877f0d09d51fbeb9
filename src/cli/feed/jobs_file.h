/* SPDX-License-Identifier: MIT */
/*
 * A line of the jobs file: priority,script_path,conda_env,arguments,allowed_gpus. The last field takes the
 * rest of the line, so that 4,5,6,7 needs no quotes; a field in quotes may hold commas, and "" is a quote
 * there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"

#define FEED_HASH_SIZE    17U // sixteen digits and the closing NUL
#define FEED_FILE_MAX     (64U << 20)
#define FEED_PRIORITY_MAX 1000

struct feed_line {
    unsigned number;      // in its file, from 1 on
    int64_t priority;     // the lowest runs first
    char *script;         // never empty
    char *conda, *gpus;   // NULL: none, any
    char *arguments;      // as written, or NULL
    struct strings words; // the arguments as a shell would split them
};

/* 1 and the job of the line; 0 for a comment and a blank line; a negative errno with a sentence. */
int feed_line_parse(const char *text, struct feed_line *ret, struct error *err);

/* The line, without its end, that is read as this job; -EINVAL when there is none. The caller frees it. */
int feed_line_format(const struct feed_line *line, char **ret, struct error *err);

/* What makes two lines the same job: script, arguments and environment. */
void feed_line_hash(const struct feed_line *line, char ret[FEED_HASH_SIZE]);

void feed_line_clear(struct feed_line *line);

#define _cleanup_feed_line_ _cleanup_(feed_line_clear)

/* A number for these bytes, by which a changed text is told (FNV-1a). */
uint64_t feed_hash(const void *bytes, size_t length, uint64_t from);
#define FEED_HASH_START 14695981039346656037ULL
