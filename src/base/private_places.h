/* SPDX-License-Identifier: MIT */
/* The directories that are private to a job with --private-tmp. */
#pragma once

/* Which parts of its environment become private to a process. */
enum private_tmp {
    PRIVATE_TMP_FILES, // /tmp and /var/tmp
    PRIVATE_TMP_ALL,   // also /dev/shm, System V IPC and POSIX message queues
};

struct private_place {
    const char *path;
    enum private_tmp since;
};

/* Terminated by a NULL path. */
extern const struct private_place private_places[];

/* The one that an absolute path is below, such as "/var/tmp", or NULL. Links are not resolved. */
const char *private_place_of(const char *path);
