/* SPDX-License-Identifier: MIT */
/*
 * A process is identified by pid and start time, and is signalled only after both were found to match. The
 * cgroups of all steps of an attempt are next to each other, so the parent directory of one contains them
 * all.
 */
#include "agent/park/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/park/cuda_api.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"

#define UVM         "/nvidia-uvm"
#define WAIT_NS     1000000L // between two checks of processes that are to stop
#define PATH_SIZE   4200
#define STEPS_DEPTH 4 // cgroups of a container runtime below that of a step

static void note(struct park_tree *tree, pid_t pid)
{
    uint64_t start = pid > 0 && pid != tree->init_pid ? process_start_time(pid) : 0;
    if (start == 0)
        return;
    for (size_t i = 0; i < tree->count; i++)
        if (tree->processes[i].pid == pid && tree->processes[i].start == start) {
            tree->processes[i].is_seen = true;
            return;
        }
    tree->processes = xreallocarray(tree->processes, tree->count + 1, sizeof(*tree->processes));
    tree->processes[tree->count++] = (struct park_process){ .pid = pid, .start = start, .is_seen = true };
}

/* Calls note() for each number in the file; false if there is no such file. */
static bool read_pids(struct park_tree *tree, const char *path)
{
    FILE *file = fopen(path, "re");
    int pid;
    if (file == NULL)
        return false;
    while (fscanf(file, "%d", &pid) == 1)
        note(tree, pid);
    (void)fclose(file);
    return true;
}

static void read_cgroups(struct park_tree *tree, const char *path, int depth)
{
    char child[PATH_SIZE];
    if (snprintf(child, sizeof(child), "%s/cgroup.procs", path) >= (int)sizeof(child))
        return;
    (void)read_pids(tree, child);
    DIR *dir = depth > 0 ? opendir(path) : NULL;
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            snprintf(child, sizeof(child), "%s/%s", path, entry->d_name) < (int)sizeof(child))
            read_cgroups(tree, child, depth - 1);
    if (dir != NULL)
        (void)closedir(dir);
}

static void read_children(struct park_tree *tree, pid_t parent)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char file[PATH_SIZE];
        (void)snprintf(file, sizeof(file), "%s/%.16s/children", path, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)read_pids(tree, file);
    }
    if (dir != NULL)
        (void)closedir(dir);
}

bool park_tree_list(struct park_tree *tree)
{
    size_t known = tree->count, kept = 0;
    for (size_t i = 0; i < tree->count; i++)
        tree->processes[i].is_seen = false;
    if (tree->cgroup != NULL) {
        _cleanup_free_ char *attempt = xstrdup(tree->cgroup);
        char *slash = strrchr(attempt, '/');
        if (slash != NULL)
            *slash = '\0';
        read_cgroups(tree, attempt, STEPS_DEPTH);
    } else {
        read_children(tree, tree->init_pid);
        for (size_t i = 0; i < tree->count; i++) // the list grows meanwhile
            if (tree->processes[i].is_seen)
                read_children(tree, tree->processes[i].pid);
    }
    bool is_any_new = tree->count > known;
    for (size_t i = 0; i < tree->count; i++) {
        struct park_process *process = &tree->processes[i];
        if (!process->is_seen)
            continue;
        if (i >= known)
            process->state = CUDA_NO_STATE;
        tree->processes[kept++] = *process;
    }
    tree->count = kept;
    return is_any_new;
}

void park_tree_clear(struct park_tree *tree)
{
    free(tree->processes);
    tree->processes = NULL;
    tree->count = 0;
}

static void send_all(const struct park_tree *tree, int signal)
{
    for (size_t i = 0; i < tree->count; i++) {
        _cleanup_close_ int pidfd = process_open(tree->processes[i].pid, tree->processes[i].start);
        if (pidfd >= 0)
            (void)process_signal(pidfd, signal);
    }
}

/* Stopped, or dead. */
static bool is_still(pid_t pid)
{
    char path[64], text[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return true;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && strchr("TtZXx", end[2]) != NULL;
}

static pid_t find_moving(const struct park_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (!is_still(tree->processes[i].pid))
            return tree->processes[i].pid;
    return 0;
}

int park_tree_stop(struct park_tree *tree, int64_t timeout_ms, pid_t *ret_pid)
{
    int64_t until_ms = clock_boot_ms() + timeout_ms;
    send_all(tree, SIGSTOP);
    for (;;) {
        pid_t moving = find_moving(tree);
        /* A child that was forked before its parent stopped is found when all others are stopped. */
        bool is_any_new = moving == 0 && park_tree_list(tree);
        if (moving == 0 && !is_any_new)
            return 0;
        if (clock_boot_ms() >= until_ms) {
            *ret_pid = moving;
            return -ETIMEDOUT;
        }
        if (is_any_new)
            send_all(tree, SIGSTOP);
        else
            (void)nanosleep(&(struct timespec){ .tv_nsec = WAIT_NS }, NULL);
    }
}

void park_tree_continue(struct park_tree *tree)
{
    (void)park_tree_list(tree);
    send_all(tree, SIGCONT);
}

bool park_process_has_uvm(pid_t pid)
{
    char path[PATH_SIZE], target[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    bool has_uvm = false;
    while (dir != NULL && !has_uvm && (entry = readdir(dir)) != NULL) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        size_t length = strlen(target);
        has_uvm = length >= strlen(UVM) && strcmp(target + length - strlen(UVM), UVM) == 0;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return has_uvm;
}
