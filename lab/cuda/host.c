/* SPDX-License-Identifier: MIT */
/* The limits of the machine's own resources, as a job has them; neither verb needs a driver. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "lab/cuda/probes.h"

#define RAM_BYTES ((uint64_t)64 << 20)
#define PAGE      4096U
#define FILE_MAX  65536U
#define ROOT      "/sys/fs/cgroup"

static int print(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    (void)puts(text != NULL ? text : "{}");
    (void)fflush(stdout);
    free(text);
    json_decref(line);
    return PROBE_OK;
}

int probe_ram(const struct probe_options *options, const struct cuda_api *api)
{
    uint64_t bytes = options->memory_bytes > 0 ? options->memory_bytes : RAM_BYTES;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        (void)print(json_pack("{s:s, s:s}", "result", "failed", "error", strerror(errno)));
        return PROBE_WRONG;
    }
    for (uint64_t i = 0; i < bytes; i += PAGE)
        ((volatile char *)at)[i] = 1;
    (void)munmap(at, bytes);
    return print(json_pack("{s:s, s:I}", "result", "passed", "bytes", (json_int_t)bytes));
}

int probe_idle(const struct probe_options *options, const struct cuda_api *api)
{
    const struct timespec pause = { .tv_sec = (time_t)options->seconds };
    (void)print(json_pack("{s:s}", "result", PROBE_READY));
    (void)nanosleep(&pause, NULL);
    return print(json_pack("{s:s}", "result", "passed"));
}

/* The value of that file in the nearest group at or above this process's that has a number there; null: none.
 */
static json_t *find_limit(const char *file)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, "/proc/self/cgroup", FILE_MAX, &text) < 0)
        return json_null();
    char *group = strstr(buffer_text(&text), "0::");
    if (group == NULL)
        return json_null();
    group += strlen("0::");
    group[strcspn(group, "\n")] = '\0';
    for (char *slash = group; slash != NULL; slash = strrchr(group, '/')) {
        _cleanup_buffer_ struct buffer value = { 0 };
        _cleanup_free_ char *path = xasprintf(ROOT "%s/%s", group, file);
        char *end = NULL;
        long long number = 0;
        if (file_read(AT_FDCWD, path, FILE_MAX, &value) == 0)
            number = strtoll(buffer_text(&value), &end, 10);
        if (end != NULL && end != buffer_text(&value))
            return json_integer(number);
        if ((slash = strrchr(group, '/')) == NULL)
            break;
        *slash = '\0';
    }
    return json_null();
}

int probe_limits(const struct probe_options *options, const struct cuda_api *api)
{
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    return print(json_pack("{s:s, s:i, s:o, s:o}", "result", "passed", "cpus", count, "memory_max_bytes",
        find_limit("memory.max"), "pids_max", find_limit("pids.max")));
}
