/* SPDX-License-Identifier: MIT */
/* Small files written whole and read whole, directories, and locks that die with their owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

/* Reads a whole file relative to `dirfd`; -EFBIG above `limit` bytes. */
int file_read(int dirfd, const char *name, size_t limit, struct buffer *out);

/* Writes NAME.tmp and renames it, so that a reader sees all or nothing. With `durable`, file and directory
 * are fsynced too. Mode 0600. */
int file_write(int dirfd, const char *name, const void *bytes, size_t length, bool durable);

int file_read_record(
    int dirfd, const char *name, const struct record_type *type, void *object, struct error *err);
int file_write_record(
    int dirfd, const char *name, const struct record_type *type, const void *object, bool durable);

/* Writes all bytes, over short writes and EINTR. */
int write_all(int fd, const void *bytes, size_t length);

/* Makes a directory and its parents; existing ones are left as they are. */
int make_directories(const char *path, mode_t mode);

/* Open file description lock on the whole file (fcntl(2), F_OFD_SETLK): 0 when taken, -EAGAIN when another
 * process has it. It is given up when the last copy of the descriptor closes, however its owner died. */
int lock_file(int fd);

/* Opens PATH, makes it 0600 and takes lock_file() on it. A file that others could open may be locked by one
 * of them for reading, for ever; nobody of ours takes such a lock, so a fresh file takes the place of that
 * one. -EAGAIN: *ret_fd is open, for what its owner wrote into it. */
int lock_path(const char *path, int *ret_fd);

/* Locks a directory that only its owner can open, until *ret_fd closes: -EAGAIN when another process has it.
 * Who removes lock files does not remove this lock. */
int lock_private_directory(const char *path, int *ret_fd);

/* True when some process holds lock_file() on the file behind `fd`. */
bool is_file_locked(int fd);
