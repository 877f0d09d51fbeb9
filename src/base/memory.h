/* SPDX-License-Identifier: MIT */
/* Allocation that aborts when memory is exhausted, and cleanup attributes. Programs recover by restarting
 * from the store. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* Zeroed memory for `count` objects of `size` bytes; never NULL; the caller frees it. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* Resizes an array; new bytes are not zeroed. Never NULL. Aborts when count * size overflows. */
void *xreallocarray(void *old, size_t count, size_t size) __attribute__((returns_nonnull));

/* malloc() and realloc() that are never NULL, for libraries; a size of 0 counts as 1. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t size) __attribute__((returns_nonnull));

/* Copy of `text`, or NULL for NULL. */
char *xstrdup(const char *text);

/* Copy of at most `length` bytes, always terminated. */
char *xstrndup(const char *text, size_t length) __attribute__((returns_nonnull));

/* Formatted string on the heap. */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* For a program that moves many bytes: keeps up to 4 MiB of freed memory in the process. Memory that is
 * returned to the kernel costs a page fault per 4 KiB when it is allocated again. */
void memory_keep_freed(void);

void freep(void *pointer_to_pointer);

/* Closes a descriptor, if it is one, and leaves -1, so that it is never closed twice. Keeps errno. */
void closep(int *fd);

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _cleanup_free_      _cleanup_(freep)
#define _cleanup_close_     _cleanup_(closep)

/* Gives up ownership: the variable is left empty, so its cleanup does nothing. */
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define take_ptr(pointer)                                                                                    \
    __extension__({                                                                                          \
        __typeof__(pointer) taken = (pointer);                                                               \
        (pointer) = NULL;                                                                                    \
        taken;                                                                                               \
    })
