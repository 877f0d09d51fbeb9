/* SPDX-License-Identifier: MIT */
/*
 * Output of another user's job on the caller's terminal. Its bytes are that user's, and terminals obey some
 * of them: they type answers, write the clipboard, change titles. Administrators look at jobs of all users.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "cli/options/call.h"
#include "cli/term/escapes.h"

enum foreign_mode {
    FOREIGN_PASS,    // the caller's own job, or no terminal
    FOREIGN_STRIP,   // text alone
    FOREIGN_CONFINE, // what draws on the screen as well
};

/* One stream of output. To be zeroed for FOREIGN_PASS. */
struct foreign {
    enum foreign_mode mode;
    struct escapes escapes;
};

/* How output of this job may reach the file descriptor `fd`: `job` is as GET /jobs/ID returns it (NULL: it is
 * requested as `path`). If the owner cannot be found out, the job is taken for another user's. */
enum foreign_mode foreign_mode(
    struct call *call, const char *path, const json_t *job, int fd, bool is_screen);

/* What may pass of these bytes, in `out` or where they are; *bytes and *length are replaced. */
void foreign_filter(struct foreign *foreign, struct buffer *out, const void **bytes, size_t *length);

/* The same, and the result is appended to `out`. */
void foreign_append(struct foreign *foreign, struct buffer *out, const void *bytes, size_t length);

/* For standard output and standard error. */
void foreign_init(struct foreign foreign[2], struct call *call, const char *path, bool is_screen);
