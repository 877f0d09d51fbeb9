/* SPDX-License-Identifier: MIT */
/* RUN/hosts: for each rank of a job on several nodes, a file of the job's user, $MGPU_HOSTFILE, with a line
 * "ADDRESS slots=GPUS" per node. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/spool.h"
#include "wire/message.h"

#define HOSTS_DIR "hosts" // in RUN

/* The path of that rank's file. The caller frees it. */
char *hostfile_path(const char *run_dir, const struct spool_id *id);

/* Writes the file, 0400, replacing an existing one. Does nothing for a launch on one node. With `is_root`,
 * when there are several users, these can pass through the directory but not list it. */
int hostfile_write(const char *run_dir, const struct message_launch *launch, uid_t uid, gid_t gid,
    bool is_root, struct error *err);

/* No effect if there is none. */
int hostfile_remove(const char *run_dir, const struct spool_id *id);
