/* SPDX-License-Identifier: MIT */
#include "compat/stepd/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define PROCESSES_MAX 4096U
#define TEXT_MAX      65536U
#define FIELD_UTIME   14 // of /proc/PID/stat, from 1; then stime, cutime, cstime
#define FIELD_RSS     24
#define FIRST_MS      500
#define MOST_MS       10000

static void add_children(pid_t pid, pid_t *pids, size_t *count)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (file_read(AT_FDCWD, path, TEXT_MAX, &text) < 0)
        return;
    char *at = buffer_text(&text), *end = NULL;
    for (long child; *count < PROCESSES_MAX && (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
        pids[(*count)++] = (pid_t)child;
}

struct sample {
    uint64_t user, system, pages; // clock ticks, pages
};

static void add_process(pid_t pid, struct sample *sample)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("/proc/%d/stat", (int)pid);
    if (file_read(AT_FDCWD, path, TEXT_MAX, &text) < 0)
        return;
    const char *p = strrchr(buffer_text(&text), ')');
    for (int field = 3; p != NULL && (p = strchr(p + 1, ' ')) != NULL && field <= FIELD_RSS; field++) {
        uint64_t value = strtoull(p + 1, NULL, 10);
        if (field == FIELD_UTIME || field == FIELD_UTIME + 2)
            sample->user += value;
        else if (field == FIELD_UTIME + 1 || field == FIELD_UTIME + 3)
            sample->system += value;
        else if (field == FIELD_RSS)
            sample->pages += value;
    }
}

void usage_sample(struct step_usage *usage, pid_t pid)
{
    _cleanup_free_ pid_t *pids = xcalloc(PROCESSES_MAX, sizeof(*pids));
    size_t count = 1;
    struct sample sample = { 0 };
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    pids[0] = pid;
    for (size_t i = 0; i < count; i++) {
        add_children(pids[i], pids, &count);
        add_process(pids[i], &sample);
    }
    usage->user_ms = sample.user * 1000 / ticks;
    usage->system_ms = sample.system * 1000 / ticks;
    uint64_t rss = sample.pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (rss > usage->max_rss)
        usage->max_rss = rss;
}

static uint64_t to_ms(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_usec / 1000;
}

void usage_end(struct step_usage *usage, const struct rusage *counted)
{
    uint64_t largest = (uint64_t)counted->ru_maxrss << 10;
    usage->user_ms = to_ms(&counted->ru_utime);
    usage->system_ms = to_ms(&counted->ru_stime);
    if (largest > usage->max_rss)
        usage->max_rss = largest;
}

int64_t usage_next_ms(uint32_t samples)
{
    int64_t sum_ms = 0, step_ms = FIRST_MS;
    for (; step_ms < MOST_MS && samples > 0; samples--, step_ms *= 2)
        sum_ms += step_ms;
    return sum_ms + (step_ms < MOST_MS ? step_ms : MOST_MS * ((int64_t)samples + 1));
}
