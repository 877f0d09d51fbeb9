/* SPDX-License-Identifier: MIT */
/*
 * A waiting thread may hold a lock that others sleep on, so the thread that waited longest counts for all.
 * The kernel adds a wait to its sum only when the wait ends. A wait that has not ended is recognised by a
 * runnable thread whose sums have not changed; a driver that spins makes its thread run.
 */
#include "agent/gpu/active_time.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS 1000000U

static int64_t waited_ms(
    const struct gpu_active_time *before, pid_t tid, const struct process_times *now, int64_t ms)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct process_times *last = &before->threads[i].times;
        if (before->threads[i].tid != tid)
            continue;
        bool is_unchanged = now->ran_ns == last->ran_ns && now->waited_ns == last->waited_ns;
        return is_unchanged ? (now->is_runnable ? ms : 0)
                            : (int64_t)((now->waited_ns - last->waited_ns) / NS_PER_MS);
    }
    return (int64_t)(now->waited_ns / NS_PER_MS); // a new thread
}

int64_t gpu_active_time_count(struct gpu_active_time *active_time, int64_t ms)
{
    char path[32];
    int64_t longest_ms = 0, least_ms = ms / ACTIVE_TIME_FACTOR;
    struct gpu_active_time now = { .pid = active_time->pid };
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)active_time->pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir != NULL && now.count < ACTIVE_TIME_THREADS && (entry = readdir(dir)) != NULL) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct process_times times;
        if (tid <= 0 || process_read_times(active_time->pid, tid, &times) < 0)
            continue;
        int64_t thread_ms = waited_ms(active_time, tid, &times, ms);
        longest_ms = thread_ms > longest_ms ? thread_ms : longest_ms;
        now.threads[now.count].tid = tid;
        now.threads[now.count++].times = times;
    }
    if (dir != NULL)
        (void)closedir(dir);
    *active_time = now;
    return ms - longest_ms > least_ms ? ms - longest_ms : least_ms;
}
