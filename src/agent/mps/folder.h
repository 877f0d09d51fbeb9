/* SPDX-License-Identifier: MIT */
/* RUN/mps/NAME: the sockets, the log and the record of a daemon. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/record.h"

#define MPS_NAME_SIZE 32U

/* RUN/mps/NAME/daemon, for the next agent. */
struct mps_record {
    uint32_t uid, pid;
    uint64_t start;
    char *uuid;
    uint64_t bytes; // its limits
    uint32_t percent;
};

extern const struct record_type mps_record_type;

/* "1001.1b2c3d4e": short, because the path of a socket is. */
void mps_folder_name(uid_t uid, const char *uuid, char name[MPS_NAME_SIZE]);

/* Creates `path` and path/log. With root, the user can enter them and connect, and change nothing. */
int mps_folder_make(const char *path, uid_t uid, gid_t gid, bool is_root);

int mps_folder_read(const char *path, struct mps_record *ret);
int mps_folder_write(const char *path, const struct mps_record *record);

/* Removes it with everything in it. */
void mps_folder_remove(const char *path);
