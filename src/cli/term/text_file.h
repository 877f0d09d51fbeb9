/* SPDX-License-Identifier: MIT */
/* A text file of the user, read completely and then line by line. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

struct text_file {
    const char *path; // name in messages; borrowed
    char *text;       // the whole text, split into lines as they are read
    char *rest;       // NULL after the last line
    unsigned line;    // number of the last line read
};

/* Reads `path`, or standard input if it is "-". May be a pipe. -EFBIG above `limit` bytes, -EINVAL if it is
 * not text, or UTF-16. A byte order mark of UTF-8 is left out. To be cleared with text_file_clear, also after
 * a failure. */
int text_file_open(struct text_file *file, const char *path, size_t limit, struct error *err);

/* The next line without its end, or NULL. Owned by the file. */
char *text_file_next(struct text_file *file);

/* Returns -EINVAL with "PATH:LINE: " before the sentence. */
int text_file_refuse(const struct text_file *file, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void text_file_clear(struct text_file *file);

#define _cleanup_text_file_ _cleanup_(text_file_clear)
