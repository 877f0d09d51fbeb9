/* SPDX-License-Identifier: MIT */
/* Stands in front of libc: one allocation fails, the one at which /mnt/memory-PROGRAM has counted down to
 * zero. The processes of a program share that file; its second number counts all allocations. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct counters {
    _Atomic long left, seen; // left: 0 and less is never
};

static struct counters *counters;

const char *__asan_default_options(void); // of programs built with it, before which this library is loaded

const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0:detect_leaks=0:allocator_may_return_null=1";
}

__attribute__((constructor)) static void map_counters(void)
{
    char path[100];
    (void)snprintf(path, sizeof(path), "/mnt/memory-%s", program_invocation_short_name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    counters = map == MAP_FAILED ? NULL : map;
}

static bool fails(void)
{
    if (counters == NULL)
        return false;
    counters->seen++;
    if (counters->left <= 0 || --counters->left != 0)
        return false;
    errno = ENOMEM;
    return true;
}

/* Those of a sanitizer where there is one, which cannot be asked for with dlsym while it begins. */

extern void *__interceptor_malloc(size_t size) __attribute__((weak));
extern void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__interceptor_realloc(void *old, size_t size) __attribute__((weak));
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    if (fails())
        return NULL;
    return __interceptor_malloc != NULL ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (fails())
        return NULL;
    return __interceptor_calloc != NULL ? __interceptor_calloc(count, size) : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (fails())
        return NULL;
    return __interceptor_realloc != NULL ? __interceptor_realloc(old, size) : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}
