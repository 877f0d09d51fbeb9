/* SPDX-License-Identifier: MIT */
/*
 * A pid that was read from a list may be reused a moment later. Therefore each process is opened first, then
 * checked again, then signalled: if the pid was reused in between, either the check detects it or the
 * descriptor refers to a process that has ended.
 *
 * Runs after the gate: the process tree is collected in a fixed array. Processes that do not fit are found by
 * the next call, because callers repeat until none is left.
 */
#include "shepherd/processes/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "shepherd/processes/roles.h"

#define FIRST_PROCESS    "Name:\tpodman-init\n"
#define PROCESSES_MAX    16384U // found in one pass over the tree
#define CGROUP_PATH_MAX  4096
#define SURVEY_LOOKS     2 // a shell blocks signals while it starts a program
#define SETTLE_MS        10
#define CGROUP_NAMES_MAX 3 // final components of a cgroup path that name a step: instance, attempt, step

/* Calls `visit` for each number in a file of numbers. */
typedef void visit_pid_fn(void *arg, pid_t pid);

static void visit_pids(int dirfd, const char *name, visit_pid_fn *visit, void *arg)
{
    _cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    char text[4096];
    pid_t pid = 0;
    for (;;) {
        ssize_t n = read(fd, text, sizeof(text));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                visit(arg, pid);
                pid = 0;
            }
        }
    }
    if (pid > 0)
        visit(arg, pid);
}

struct pass {
    const struct tree *tree;
    const char *cgroup; // whose processes are visited
    bool is_inner;      // only those in their own PID namespace
    void (*act)(struct pass *pass, pid_t pid, int pidfd);
    int signal;
    int count;
    bool is_denied;
};

/* The name is read before the signal can end the process. */
static void send_signal(struct pass *pass, pid_t pid, int pidfd)
{
    struct roll before = { 0 };
    if (pass->tree->roll != NULL) {
        before = *pass->tree->roll;
        roll_add(pass->tree->roll, pid);
    }
    int r = process_signal(pidfd, pass->signal);
    if (r == -EPERM)
        pass->is_denied = true;
    if (r == 0)
        pass->count++;
    else if (pass->tree->roll != NULL)
        *pass->tree->roll = before;
}

static void survey(struct pass *pass, pid_t pid, int pidfd)
{
    roles_add(pid);
    pass->count++;
}

static void list(struct pass *pass, pid_t pid, int pidfd)
{
    roll_add(pass->tree->roll, pid);
    pass->count++;
}

/* --- in a container --- */

/*
 * True for a process in a nested PID namespace other than the runtime's own first process, which would
 * forward the signal to processes that receive it anyway.
 */
static bool is_inner(pid_t pid)
{
    char path[64], text[4096];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *line = strstr(text, "\nNSpid:");
    if (line == NULL || strncmp(text, FIRST_PROCESS, strlen(FIRST_PROCESS)) == 0)
        return false;
    const char *numbers = line + strlen("\nNSpid:");
    numbers += strspn(numbers, " \t");
    size_t first = strcspn(numbers, " \t\n");
    return numbers[first] != '\0' && numbers[first] != '\n';
}

static bool is_passed_over(const struct pass *pass, pid_t pid)
{
    const struct tree *tree = pass->tree;
    return pid == tree->spare || pid == tree->command || pid == tree->terminal ||
           (tree->roles != 0 && (tree->roles & ROLE_MASK(roles_of(pid))) == 0) ||
           (pass->is_inner && !is_inner(pid));
}

/* --- by cgroup --- */

/* The part of a cgroup's path that identifies the step, wherever the hierarchy is mounted. */
static const char *cgroup_tail(const char *path)
{
    const char *p = path + strlen(path);
    for (int names = 0; p > path && names < CGROUP_NAMES_MAX;)
        if (*--p == '/')
            names++;
    return p;
}

static bool is_in_cgroup(pid_t pid, const char *cgroup)
{
    char path[64], text[8192];
    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL)
        return false;
    const char *tail = cgroup_tail(cgroup);
    size_t length = strcspn(line + 1, "\n"), tail_length = strlen(tail);
    return length >= tail_length && strncmp(line + 1 + length - tail_length, tail, tail_length) == 0;
}

static void visit_member(void *arg, pid_t pid)
{
    struct pass *pass = arg;
    if (is_passed_over(pass, pid))
        return;
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && is_in_cgroup(pid, pass->cgroup))
        pass->act(pass, pid, pidfd);
}

/* Steps with their own limits have cgroups beside the command's. */
static void visit_siblings(struct pass *pass)
{
    const char *own = pass->tree->cgroup, *slash = strrchr(own, '/');
    _cleanup_close_ int dirfd = openat(pass->tree->cgroup_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct dirent64) char entries[4096];
    char path[CGROUP_PATH_MAX], procs[300];
    ssize_t n;
    while (dirfd >= 0 && slash != NULL && (n = getdents64(dirfd, entries, sizeof(entries))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
            at += entry->d_reclen;
            if (strncmp(entry->d_name, "step", 4) != 0 || strcmp(entry->d_name, slash + 1) == 0 ||
                snprintf(path, sizeof(path), "%.*s%.255s", (int)(slash + 1 - own), own, entry->d_name) >=
                    (int)sizeof(path))
                continue;
            (void)snprintf(procs, sizeof(procs), "%.255s/cgroup.procs", entry->d_name);
            pass->cgroup = path;
            visit_pids(dirfd, procs, visit_member, pass);
        }
    pass->cgroup = own;
}

/* --- by parent --- */

struct found {
    pid_t pid, parent;
};

static struct found found[PROCESSES_MAX];
static size_t n_found;

static void note_child(void *arg, pid_t pid)
{
    if (n_found < PROCESSES_MAX)
        found[n_found++] = (struct found){ .pid = pid, .parent = *(const pid_t *)arg };
}

/* The children of all threads of a process. */
static void collect_children(pid_t parent)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
    _cleanup_close_ int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return;
    _Alignas(struct dirent64) char entries[4096];
    for (;;) {
        ssize_t n = getdents64(dirfd, entries, sizeof(entries));
        if (n <= 0)
            return;
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
            at += entry->d_reclen;
            if (entry->d_name[0] == '.')
                continue;
            (void)snprintf(path, sizeof(path), "%.16s/children", entry->d_name);
            visit_pids(dirfd, path, note_child, &parent);
        }
    }
}

static pid_t parent_of(pid_t pid)
{
    char path[64], stat[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
    if (n <= 0)
        return -1;
    stat[n] = '\0';
    const char *p = strrchr(stat, ')');
    return p == NULL || strlen(p) < 4 ? -1 : (pid_t)strtol(p + 4, NULL, 10);
}

/* An orphan becomes a child of the init, or of this process. */
static bool is_still_ours(const struct tree *tree, const struct found *one)
{
    pid_t parent = parent_of(one->pid);
    return parent == one->parent || parent == tree->root || (tree->spare > 0 && parent == tree->spare);
}

static void visit_descendants(struct pass *pass)
{
    n_found = 0;
    collect_children(pass->tree->root);
    for (size_t i = 0; i < n_found; i++) {
        collect_children(found[i].pid);
        if (is_passed_over(pass, found[i].pid))
            continue;
        _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, found[i].pid, 0);
        if (pidfd >= 0 && is_still_ours(pass->tree, &found[i]))
            pass->act(pass, found[i].pid, pidfd);
    }
}

static void visit_all(struct pass *pass)
{
    if (pass->tree->cgroup_fd >= 0) {
        visit_pids(pass->tree->cgroup_fd, "cgroup.procs", visit_member, pass);
        visit_siblings(pass);
    } else if (pass->tree->root > 0)
        visit_descendants(pass);
}

/* A container's runtime must outlive the container to report its exit status. */
static void visit(struct pass *pass)
{
    pass->cgroup = pass->tree->cgroup;
    pass->is_inner = pass->tree->is_contained && pass->signal != SIGKILL;
    visit_all(pass);
    if (pass->is_inner && pass->count == 0 && !pass->is_denied) {
        pass->is_inner = false;
        visit_all(pass);
    }
}

int tree_signal(const struct tree *tree, int signal)
{
    struct pass pass = { .tree = tree, .act = send_signal, .signal = signal };
    visit(&pass);
    return pass.is_denied ? -EPERM : pass.count;
}

void tree_survey(const struct tree *tree, int signal)
{
    for (int looks = 0; looks < SURVEY_LOOKS; looks++) {
        struct pass pass = { .tree = tree, .act = survey, .signal = signal };
        if (looks > 0)
            (void)poll(NULL, 0, SETTLE_MS);
        roles_begin(signal);
        visit(&pass);
        if (!roles_are_unsettled())
            break;
    }
    roles_decide();
}

void tree_list(const struct tree *tree, struct roll *roll)
{
    struct tree listed = *tree;
    listed.roll = roll;
    struct pass pass = { .tree = &listed, .act = list, .signal = SIGKILL };
    visit(&pass);
}
