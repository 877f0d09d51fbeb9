/* SPDX-License-Identifier: MIT */
/*
 * With several GPUs the helper has a thread for each beside its main one. A signal would stop all threads of
 * a process; a tracer stops one. The thread is let go again when the tracer ends, whatever ends it.
 */
#include "lab/kit/helper_stop.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu/pollers.h"
#include "lab/kit/instance.h"

#define HELPER "mgpu-gpus"

/* `pid` may be a thread of another process. */
static bool is_named(pid_t pid, const char *wanted)
{
    char path[64], name[32] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL && fgets(name, sizeof(name), file) != NULL)
        name[strcspn(name, "\n")] = '\0';
    if (file != NULL)
        (void)fclose(file);
    return strcmp(name, wanted) == 0;
}

static bool is_helper(pid_t pid)
{
    return is_named(pid, HELPER);
}

/* A thread that asks one GPU, as opposed to those that wait for its errors; 0: there is none. */
static pid_t find_thread(pid_t pid)
{
    char path[64];
    pid_t found = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && found == 0 && (entry = readdir(dir)) != NULL;) {
        pid_t tid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        found = tid > 0 && is_named(tid, GPU_POLLER) ? tid : 0;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

int helper_stop_begin(const struct kit *kit, struct helper_stop *stop, struct error *err)
{
    *stop = (struct helper_stop){ .pid = instance_find(kit, is_helper) };
    stop->tid = stop->pid > 0 ? find_thread(stop->pid) : 0;
    if (stop->tid == 0)
        return error_set(
            err, -EOPNOTSUPP, "the helper has no separate thread for each GPU: there is one GPU");
    if (ptrace(PTRACE_SEIZE, stop->tid, NULL, NULL) < 0 ||
        ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL) < 0)
        return error_set(err, -EOPNOTSUPP, "a thread of the helper cannot be stopped: %s", strerror(errno));
    (void)waitpid(stop->tid, NULL, __WALL);
    return 0;
}

/* The helper may have been replaced, and killed, meanwhile. */
void helper_stop_end(const struct helper_stop *stop)
{
    (void)ptrace(PTRACE_DETACH, stop->tid, NULL, NULL);
    (void)waitpid(stop->tid, NULL, WNOHANG | __WALL);
}
