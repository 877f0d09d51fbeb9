/* SPDX-License-Identifier: MIT */
/* Small files that are read and written whole, directories, and locks that are released when their owner
 * dies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

/* Reads a whole file relative to `dirfd`; -EFBIG above `limit` bytes. */
int file_read(int dirfd, const char *name, size_t limit, struct buffer *out);

/* Writes NAME.tmp and renames it, so a reader sees the old or the new file, never a part. With `durable`,
 * file and directory are also fsynced. Mode 0600. */
int file_write(int dirfd, const char *name, const void *bytes, size_t length, bool durable);

int file_read_record(
    int dirfd, const char *name, const struct record_type *type, void *object, struct error *err);
int file_write_record(
    int dirfd, const char *name, const struct record_type *type, const void *object, bool durable);

/* Writes the record in place, which is cheaper: until it is complete, readers see a wrong checksum. For files
 * that are read again after a notification. */
int file_put_record(int dirfd, const char *name, const struct record_type *type, const void *object);

/* Writes all bytes; continues after short writes and EINTR. */
int write_all(int fd, const void *bytes, size_t length);

/* Creates a directory and its parents; existing ones are not changed. */
int make_directories(const char *path, mode_t mode);

/* Takes an open file description lock on the whole file (fcntl(2), F_OFD_SETLK): 0 on success, -EAGAIN if
 * another process has it. The kernel releases it when the last copy of the descriptor is closed, however its
 * owner died. */
int lock_file(int fd);

/* Opens PATH, makes it 0600 and takes lock_file() on it. If another user could open the file, that user could
 * hold a read lock on it forever; mgpu takes no read locks, so such a file is replaced by a new one. On
 * -EAGAIN, *ret_fd is open, so that the caller can read what the owner wrote. */
int lock_path(const char *path, int *ret_fd);

/* Locks a directory that only its owner can open, until *ret_fd is closed. -EAGAIN if another process has the
 * lock. Removing lock files does not remove this lock. */
int lock_private_directory(const char *path, int *ret_fd);

/* True when some process holds lock_file() on the file behind `fd`. */
bool is_file_locked(int fd);
