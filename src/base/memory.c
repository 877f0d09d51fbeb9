/* SPDX-License-Identifier: MIT */
/* Out of memory ends the program: every program restarts from durable state. */
#include "base/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEPT_BYTES  (4 << 20)
#define ALONE_BYTES (1 << 20) // allocations of this size are mapped separately, and unmapped when freed

static void *check(void *memory)
{
    if (memory != NULL)
        return memory;
    static const char text[] = "mgpu: out of memory\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    abort();
}

void *xcalloc(size_t count, size_t size)
{
    return check(calloc(count > 0 ? count : 1, size > 0 ? size : 1));
}

void *xreallocarray(void *old, size_t count, size_t size)
{
    return check(reallocarray(old, count > 0 ? count : 1, size > 0 ? size : 1));
}

void *xmalloc(size_t size)
{
    return check(malloc(size > 0 ? size : 1));
}

void *xrealloc(void *old, size_t size)
{
    return check(realloc(old, size > 0 ? size : 1));
}

char *xstrdup(const char *text)
{
    return text == NULL ? NULL : check(strdup(text));
}

char *xstrndup(const char *text, size_t length)
{
    return check(strndup(text, length));
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    return check(n < 0 ? NULL : text);
}

void memory_keep_freed(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, ALONE_BYTES);
}

void freep(void *pointer_to_pointer)
{
    int saved = errno;
    free(*(void **)pointer_to_pointer);
    errno = saved;
}

void closep(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved;
}
