/* SPDX-License-Identifier: MIT */
/*
 * The files of v2 and v1 have different names and are never in the same directory, so all are tried.
 * `oom_kill` counts kills for lack of memory, whether because of the job's limit or of the node. Only the
 * limit makes v2 count `oom`; v1 has no equivalent on every kernel, but there the peak then equals the limit,
 * up to what the kernel charges in advance.
 */
#include "shepherd/processes/counts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"
#include "job/spec.h"

#define FILE_SIZE   1024
#define SIZE_TEXT   32
#define PEAK_SLACK  (1U << 20) // bytes
#define VMSTAT_SIZE 16384
#define BEFORE_MS   1000 // the kernel sums the counters of all processors for each reading

static bool read_file(const char *dir, const char *file, char text[FILE_SIZE])
{
    char path[SPEC_PATH_MAX + 64];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, FILE_SIZE - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The number behind `key`, which begins a line and ends with a blank; if the key is empty, the whole file is
 * the number. */
static uint64_t number_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0)
            return strtoull(line + length, NULL, 10);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return 0;
}

static uint64_t read_number(const char *dir, const char *file, const char *key)
{
    char text[FILE_SIZE];
    return read_file(dir, file, text) ? number_of(text, key) : 0;
}

/* The counters of v2 include those of all steps, which may have their own limits: losses of other steps
 * are not losses of the command. `step`: directory of the command's own step. */
static void leave_out_steps(const char *dir, const char *step, struct counts *ret)
{
    char text[FILE_SIZE];
    if (step == NULL || !read_file(dir, "memory.events.local", text))
        return;
    ret->is_at_limit = number_of(text, "oom ") > 0;
    if (!ret->is_at_limit && read_file(step, "memory.events", text))
        ret->oom_kills = number_of(text, "oom_kill ");
}

static void read_memory(const char *dir, const char *step, uint64_t limit, struct counts *ret)
{
    char text[FILE_SIZE];
    if (read_file(dir, "memory.events", text)) {
        ret->oom_kills = number_of(text, "oom_kill ");
        ret->is_group_killed = number_of(text, "oom_group_kill ") > 0;
        ret->is_at_limit = number_of(text, "oom ") > 0;
        ret->memory_peak = read_number(dir, "memory.peak", "");
        leave_out_steps(dir, step, ret);
        return;
    }
    ret->oom_kills = read_number(dir, "memory.oom_control", "oom_kill ");
    ret->memory_peak = read_number(dir, "memory.max_usage_in_bytes", "");
    ret->is_at_limit = ret->memory_peak + PEAK_SLACK >= limit;
}

static uint64_t read_refused(const char *dir)
{
    return read_number(dir, "pids.events", "max ");
}

int64_t counts_node_oom_kills(const char *vmstat)
{
    char text[VMSTAT_SIZE];
    _cleanup_close_ int fd = open(vmstat, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "\noom_kill ") != NULL ? (int64_t)number_of(text, "oom_kill ") : -1;
}

int64_t counts_node_oom_kills_before(const char *vmstat, int64_t boot_ms)
{
    static int64_t kills, read_ms;
    if (read_ms != 0 && boot_ms - read_ms <= BEFORE_MS)
        return kills;
    kills = counts_node_oom_kills(vmstat);
    read_ms = boot_ms;
    return kills;
}

void counts_read(const struct launch_spec *spec, struct counts *ret)
{
    *ret = (struct counts){ 0 };
    if (spec->memory_cgroup != NULL)
        read_memory(spec->memory_cgroup, spec->job_cgroup, spec->memory_limit, ret);
    for (size_t i = 0; i < spec->v1_cgroups.count; i++)
        ret->refused_forks += read_refused(spec->v1_cgroups.items[i]);
    if (spec->job_cgroup == NULL)
        return;
    /* In v2 the limit is set on the attempt, above its steps. */
    char attempt[SPEC_PATH_MAX];
    (void)snprintf(attempt, sizeof(attempt), "%s/..", spec->job_cgroup);
    ret->refused_forks += read_refused(attempt);
}

static void describe_peak(const struct counts *counts, char text[SIZE_TEXT + 16])
{
    char size[SIZE_TEXT];
    format_size(counts->memory_peak, size, sizeof(size));
    (void)snprintf(text, SIZE_TEXT + 16, counts->memory_peak > 0 ? ", peak %s" : "%.0s", size);
}

void counts_describe_memory(
    const struct counts *counts, const struct launch_spec *spec, char *text, size_t size)
{
    char limit[SIZE_TEXT], peak[SIZE_TEXT + 16];
    format_size(spec->memory_limit, limit, sizeof(limit));
    describe_peak(counts, peak);
    if (counts->is_at_limit && spec->memory_limit > 0)
        (void)snprintf(text, size, "used more than its %s of host memory (-M)%s", limit, peak);
    else
        (void)snprintf(text, size, "the node ran out of memory%s", peak);
}

void counts_describe_rest(
    const struct counts *counts, const struct launch_spec *spec, char *text, size_t size)
{
    char limit[SIZE_TEXT];
    format_size(spec->memory_limit, limit, sizeof(limit));
    text[0] = '\0';
    if (counts->oom_kills > 0)
        (void)snprintf(text, size, "the kernel killed %" PRIu64 " of its processes%s%s%s", counts->oom_kills,
            counts->is_at_limit && spec->memory_limit > 0 ? " at its limit of "
                                                          : " because the node ran out of memory",
            counts->is_at_limit && spec->memory_limit > 0 ? limit : "",
            counts->is_at_limit && spec->memory_limit > 0 ? " of host memory (-M)" : "");
    else if (counts->refused_forks > 0)
        (void)snprintf(text, size,
            "it reached its limit of %u processes: %" PRIu64 " time%s a process could not be started",
            spec->pids_max, counts->refused_forks, counts->refused_forks == 1 ? "" : "s");
}
