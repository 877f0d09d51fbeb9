/* SPDX-License-Identifier: MIT */
/*
 * The rows are written from top to bottom: v1 requires the memory limit before that of memory and swap, and
 * NUMA nodes before CPUs. Requested memory does not include swap: v2 allows none, v1 counts it.
 */
#include "agent/confine/limit_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define PERIOD_US    100000U
#define QUOTA_MIN_US 1000U // the kernel refuses smaller values
#define NUMBER_SIZE  48

enum value {
    VALUE_MEMORY,
    VALUE_NOTHING,
    VALUE_TOGETHER,
    VALUE_PIDS,
    VALUE_PERIOD,
    VALUE_QUOTA,
    VALUE_QUOTA_OF_PERIOD,
    VALUE_CPUS,
    VALUE_MEMS,
    VALUE_DMEM
};

enum row_kind {
    REQUIRED,
    OPTIONAL, // exists only in newer kernels, or only with swap
    USUAL,    // usually set in a new group: not written again, because writing it makes the kernel check all
              // groups
};

static const struct row {
    enum limit_controller controller;
    enum limit_hierarchy hierarchy;
    const char *file;
    enum value value;
    enum row_kind kind;
} rows[] = {
    { LIMIT_MEMORY, HIERARCHY_V2, "memory.max", VALUE_MEMORY, REQUIRED },
    { LIMIT_MEMORY, HIERARCHY_V2, "memory.swap.max", VALUE_NOTHING, OPTIONAL },
    { LIMIT_MEMORY, HIERARCHY_V2, "memory.oom.group", VALUE_TOGETHER, OPTIONAL },
    { LIMIT_MEMORY, HIERARCHY_V1, "memory.limit_in_bytes", VALUE_MEMORY, REQUIRED },
    { LIMIT_MEMORY, HIERARCHY_V1, "memory.memsw.limit_in_bytes", VALUE_MEMORY, OPTIONAL },
    { LIMIT_PIDS, HIERARCHY_V2, "pids.max", VALUE_PIDS, REQUIRED },
    { LIMIT_PIDS, HIERARCHY_V1, "pids.max", VALUE_PIDS, REQUIRED },
    { LIMIT_CPU, HIERARCHY_V2, "cpu.max", VALUE_QUOTA_OF_PERIOD, REQUIRED },
    { LIMIT_CPU, HIERARCHY_V1, "cpu.cfs_period_us", VALUE_PERIOD, USUAL },
    { LIMIT_CPU, HIERARCHY_V1, "cpu.cfs_quota_us", VALUE_QUOTA, REQUIRED },
    { LIMIT_CPUSET, HIERARCHY_V2, "cpuset.cpus", VALUE_CPUS, REQUIRED },
    { LIMIT_CPUSET, HIERARCHY_V1, "cpuset.mems", VALUE_MEMS, REQUIRED },
    { LIMIT_CPUSET, HIERARCHY_V1, "cpuset.cpus", VALUE_CPUS, REQUIRED },
    { LIMIT_DMEM, HIERARCHY_V2, "dmem.max", VALUE_DMEM, REQUIRED },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static uint64_t quota_us(uint32_t cpu_milli)
{
    uint64_t quota = (uint64_t)cpu_milli * (PERIOD_US / 1000);
    return quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota;
}

static const char *format(enum value value, const struct limit_values *values, char number[NUMBER_SIZE])
{
    uint64_t quota = quota_us(values->cpu_milli);
    switch (value) {
    case VALUE_MEMORY: (void)snprintf(number, NUMBER_SIZE, "%" PRIu64, values->memory); break;
    case VALUE_NOTHING: return "0";
    /* All processes of a job are killed at once. Of a step, only one is, because slurmstepd reports its
     * end. */
    case VALUE_TOGETHER: return values->is_step ? "0" : "1";
    case VALUE_PIDS: (void)snprintf(number, NUMBER_SIZE, "%u", values->pids); break;
    case VALUE_PERIOD: (void)snprintf(number, NUMBER_SIZE, "%u", PERIOD_US); break;
    case VALUE_QUOTA: (void)snprintf(number, NUMBER_SIZE, "%" PRIu64, quota); break;
    case VALUE_QUOTA_OF_PERIOD:
        (void)snprintf(number, NUMBER_SIZE, "%" PRIu64 " %u", quota, PERIOD_US);
        break;
    case VALUE_CPUS: return values->cpus;
    case VALUE_MEMS: return values->mems;
    case VALUE_DMEM: return values->dmem;
    }
    return number;
}

static int write_file(const char *dir, const char *file, const char *text)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, file);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : write_all(fd, text, strlen(text));
}

static bool has_text(const char *dir, const char *file, const char *text)
{
    char now[NUMBER_SIZE];
    return limit_files_read(dir, file, now, sizeof(now)) && strcmp(now, text) == 0;
}

int limit_files_write(const char *dir, enum limit_hierarchy hierarchy, enum limit_controller controller,
    const struct limit_values *values, struct error *err)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        char number[NUMBER_SIZE];
        if (row->controller != controller || row->hierarchy != hierarchy)
            continue;
        const char *text = format(row->value, values, number);
        if (row->kind == USUAL && has_text(dir, row->file, text))
            continue;
        int r = write_file(dir, row->file, text);
        if (r < 0 && row->kind != OPTIONAL)
            return error_set_errno(err, r, "cannot write %.40s to %s/%s", text, dir, row->file);
    }
    return 0;
}

const char *limit_files_first(enum limit_hierarchy hierarchy, enum limit_controller controller)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].controller == controller && rows[i].hierarchy == hierarchy)
            return rows[i].file;
    return NULL;
}

bool limit_files_read(const char *dir, const char *file, char *text, size_t size)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, file);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (n < 0)
        return false;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}
