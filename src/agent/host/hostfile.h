/* SPDX-License-Identifier: MIT */
/* RUN/hosts: for each part of a job on several nodes a file of the job's user, $MGPU_HOSTFILE, with a line
 * "ADDRESS slots=GPUS" for each of the nodes. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/spool.h"
#include "wire/message.h"

/* Where the file of that part is. The caller frees it. */
char *hostfile_path(const char *run_dir, const struct spool_id *id);

/* Writes it, 0400, over one that is there. Nothing is done for a launch that is no part. Users pass through
 * the directory, and see nothing there but what they know the name of, where `is_root` says that there are
 * several of them. */
int hostfile_write(const char *run_dir, const struct message_launch *launch, uid_t uid, gid_t gid,
    bool is_root, struct error *err);

/* Harmless when there is none. */
int hostfile_remove(const char *run_dir, const struct spool_id *id);
