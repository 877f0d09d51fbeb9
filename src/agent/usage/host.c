/* SPDX-License-Identifier: MIT */
/*
 * cgroup v2 counts CPU time even without a controller, but memory only with the controller. Without it, the
 * resident memory of the processes is added up, which counts shared pages several times.
 */
#include "agent/usage/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define PROCESSES_MAX 512U // a larger number is not added up every second
#define LIST_MAX      65536U

struct pids {
    pid_t items[PROCESSES_MAX];
    size_t count;
    bool is_cut;
};

static bool read_text(const char *dir, const char *file, struct buffer *ret)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, file);
    if (file_read(AT_FDCWD, path, LIST_MAX, ret) < 0)
        return false;
    (void)buffer_text(ret);
    return true;
}

static bool read_number(const char *dir, const char *file, const char *key, uint64_t *ret)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (!read_text(dir, file, &text))
        return false;
    const char *at = strstr(buffer_text(&text), key);
    char *end = NULL;
    if (at == NULL)
        return false;
    at += strlen(key);
    *ret = strtoull(at, &end, 10);
    return end != at;
}

static void add_pids(const char *text, struct pids *pids)
{
    char *end = NULL;
    for (long pid; (pid = strtol(text, &end, 10)) > 0 && end != text; text = end) {
        pids->is_cut = pids->is_cut || pids->count == PROCESSES_MAX;
        if (pids->count < PROCESSES_MAX)
            pids->items[pids->count++] = (pid_t)pid;
    }
}

/* Each thread lists the children that it started. */
static void add_children(const char *proc, pid_t pid, struct pids *pids)
{
    _cleanup_free_ char *path = xasprintf("%s/%d/task", proc, (int)pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        return;
    for (const struct dirent *thread; (thread = readdir(threads)) != NULL;) {
        _cleanup_buffer_ struct buffer text = { 0 };
        _cleanup_free_ char *dir = xasprintf("%s/%s", path, thread->d_name);
        if (thread->d_name[0] != '.' && read_text(dir, "children", &text))
            add_pids(buffer_text(&text), pids);
    }
    (void)closedir(threads);
}

static void add_descendants(const char *proc, pid_t init_pid, struct pids *pids)
{
    pids->items[pids->count++] = init_pid;
    for (size_t i = 0; i < pids->count; i++)
        add_children(proc, pids->items[i], pids);
}

static uint64_t resident_bytes(const char *proc, pid_t pid)
{
    _cleanup_free_ char *dir = xasprintf("%s/%d", proc, (int)pid);
    uint64_t pages = 0;
    return read_number(dir, "statm", " ", &pages) ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* CPU time of the process and of the children that it has reaped. */
static uint64_t cpu_ticks(const char *proc, pid_t pid)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *dir = xasprintf("%s/%d", proc, (int)pid);
    uint64_t ticks = 0;
    if (!read_text(dir, "stat", &text))
        return 0;
    const char *p = strrchr(buffer_text(&text), ')');
    for (int field = 2; p != NULL && field < 17; field++) {
        p = strchr(p + 1, ' ');
        if (p != NULL && field + 1 >= 14)
            ticks += strtoull(p + 1, NULL, 10);
    }
    return ticks;
}

static bool is_stopped(const char *proc, pid_t pid)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *dir = xasprintf("%s/%d", proc, (int)pid);
    if (!read_text(dir, "stat", &text))
        return false;
    const char *name_end = strrchr(buffer_text(&text), ')');
    return name_end != NULL && strncmp(name_end, ") T", 3) == 0;
}

/* True if all processes but the init, which only waits, are stopped. */
static bool are_stopped(const char *proc, const struct pids *pids)
{
    bool are_all = pids->count > 1;
    for (size_t i = 1; are_all && i < pids->count; i++)
        are_all = is_stopped(proc, pids->items[i]);
    return are_all;
}

static void sum_up(const char *proc, const struct pids *pids, struct usage_host *ret)
{
    uint64_t ticks = 0;
    if (pids->is_cut || pids->count == 0)
        return;
    for (size_t i = 0; i < pids->count; i++) {
        ret->memory += ret->is_memory_known ? 0 : resident_bytes(proc, pids->items[i]);
        ticks += ret->is_cpu_known ? 0 : cpu_ticks(proc, pids->items[i]);
    }
    if (!ret->is_cpu_known)
        ret->cpu_ms = ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    ret->is_memory_known = ret->is_cpu_known = true;
}

/* The attempt's directory has its limit and contains the steps' directories. */
static bool read_memory(const char *cgroup, const char *file, uint64_t *ret)
{
    _cleanup_free_ char *attempt = xstrdup(cgroup);
    char *slash = strrchr(attempt, '/');
    if (slash != NULL)
        *slash = '\0';
    return read_number(attempt, file, "", ret) || read_number(cgroup, file, "", ret);
}

static bool read_cgroup_memory(const char *cgroup, uint64_t *ret)
{
    return read_memory(cgroup, "memory.peak", ret) || read_memory(cgroup, "memory.current", ret);
}

void usage_host_read(const char *proc, const char *cgroup, pid_t init_pid, struct usage_host *ret)
{
    struct pids pids = { .count = 0 };
    uint64_t frozen = 0;
    _cleanup_buffer_ struct buffer text = { 0 };
    *ret = (struct usage_host){ 0 };
    if (cgroup == NULL) {
        if (init_pid > 0)
            add_descendants(proc, init_pid, &pids);
        ret->is_paused = are_stopped(proc, &pids);
        return sum_up(proc, &pids, ret);
    }
    ret->is_cpu_known = read_number(cgroup, "cpu.stat", "usage_usec ", &ret->cpu_ms);
    ret->cpu_ms /= 1000;
    ret->is_memory_known = read_cgroup_memory(cgroup, &ret->memory);
    ret->is_paused = read_number(cgroup, "cgroup.events", "frozen ", &frozen) && frozen != 0;
    if (ret->is_cpu_known && ret->is_memory_known)
        return;
    if (read_text(cgroup, "cgroup.procs", &text))
        add_pids(buffer_text(&text), &pids);
    sum_up(proc, &pids, ret);
}

void usage_host_read_v1(const char *group, struct usage_host *ret)
{
    uint64_t peak;
    if (!read_number(group, "memory.max_usage_in_bytes", "", &peak))
        return;
    ret->memory = peak;
    ret->is_memory_known = true;
}

bool usage_host_peak(const char *cgroup, const char *v1_group, uint64_t *ret)
{
    if (v1_group != NULL && read_number(v1_group, "memory.max_usage_in_bytes", "", ret))
        return true;
    return cgroup != NULL && read_memory(cgroup, "memory.peak", ret);
}
